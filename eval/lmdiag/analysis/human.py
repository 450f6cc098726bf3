"""Tables of human measures, a row per word or per word and reader, and surprisals for them."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series, factorize, to_numeric

from lmdiag.analysis import running
from lmdiag.analysis.items import items_of
from lmdiag.analysis.procedures import (
    COMPUTED,
    ENTROPY,
    PLACES,
    SURPRISAL,
    Procedure,
    Profile,
    procedure_for,
)
from lmdiag.analysis.running import NotInSentence, RunningTexts
from lmdiag.files.reading import MAX_DOCUMENT, exists, is_folder, parse_json, read_text, user_path
from lmdiag.results.item_rows import PREDICTED
from lmdiag.stats import Values
from lmdiag.stimuli.designs.shown import read_lines
from lmdiag.stimuli.proposing.other_rows import columns_of_words, is_one_text, naming_option
from lmdiag.stimuli.proposing.word_rows import dividing_columns, word_rows
from lmdiag.stimuli.reading.conversion import markup_problem
from lmdiag.stimuli.reading.filters import Condition
from lmdiag.stimuli.reading.steps import read_frame_rows
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.stimuli.values.names import named_columns
from lmdiag.tables.table_files import (
    MISSING,
    TRUTH,
    as_numbers,
    as_texts,
    has_json_rows,
    name_texts,
)
from lmdiag.text import backticks_hint, in_order, shortened, suggest, without_copies
from lmdiag.types import AS_IT_IS, BadInput, TableOptions


class SurprisalSource(NamedTuple):
    """Surprisals of one model for the rows of a table.

    Attributes:
        name: of the model.
        values: surprisals, (n rows,), in the units of the procedure; NaN where there is none.
        column: the column of the table that they stand in, or "".
        note: what readers should know about them, or "".
        entropy: of the distribution before each word, (n rows,); None where it is not known.
        layer: after which the model answered, of several that were asked; None for one answer.
        shares_token: of each row, "next" or "previous" for a word that shares a token with that
            neighbour, or ""; None where no word does.
    """

    name: str
    values: Values
    column: str = ""
    note: str = ""
    entropy: Values | None = None
    layer: int | None = None
    shares_token: NDArray[np.object_] | None = None


_MOSTLY = 0.5
"""Share of the rows above which a column has numbers, or has texts of several words."""

_SHOWN_WORDS = 9
"""Words of the first text that a line shows of how a table was read."""


class HumanTable:
    """A table of human measures and the words that its rows are about.

    Args:
        frame: the rows; values may be text. The index has their numbers for messages.
        name: of the file, for messages.
        procedure: which columns place a row in its text.
        notes: how the table was read.
    """

    def __init__(
        self, frame: DataFrame, name: str, procedure: Profile, notes: Sequence[str] = ()
    ) -> None:
        """Keeps the arguments; a table without a column of texts is one text named "1"."""
        if len(frame) == 0:
            raise BadInput(f"{name} has no rows")
        has_words = procedure.position and procedure.word
        if has_words and not procedure.text and is_one_text(frame):
            frame = frame.assign(text="1")
            procedure = replace(procedure, text="text")
            notes = (*notes, "text: all rows are of one text, since no column tells texts apart")
        self.frame = frame
        self.name = name
        self.procedure = procedure
        self.notes = notes
        self._texts: dict[str, Series[str]] = {}

    def uses(self, surprisals: Sequence[str] = ()) -> dict[str, str]:
        """Returns column -> what it is used for, e.g. "word", "control" or "not used".

        Columns that are used come first.

        Args:
            surprisals: columns that have the surprisals of models.
        """
        from lmdiag.analysis.regression import names_in

        procedure = self.procedure
        roles = ("text", "sentence", "position", "word", "reader", "response")
        use_of = {getattr(procedure, role): role for role in roles}  # "" for a role without column
        use_of |= dict.fromkeys(procedure.controls or (), "control")
        predictors = names_in(procedure.formula or " + ".join(procedure.predictors))
        use_of |= {name: "predictor" for name in predictors if name not in use_of}
        use_of |= {name: "surprisal" for name in surprisals if name not in use_of}
        used = {name: use for name, use in use_of.items() if name and name in self.frame}
        unused_columns = [str(name) for name in self.frame if name and name not in used]
        return used | dict.fromkeys(unused_columns, "not used")

    def reads(self, surprisals: Sequence[str] = ()) -> tuple[str, ...]:
        """Returns two lines that show how the table was read.

        They are the first row, with its word in brackets before the next words of its text, and the
        columns by their use, e.g. "reads text 1, position 1, rt 402: [The] hen eats." and "columns:
        text: text; ...".

        Args:
            surprisals: columns that have the surprisals of models.
        """
        procedure = self.procedure
        uses = self.uses(surprisals)
        used_columns = {name for name, use in uses.items() if use != "not used"}
        response_text = ""
        if procedure.response in used_columns:
            response_text = f"{procedure.response} {self.texts(procedure.response)[0]}"
        uses_by_user_name = self._by_user_names(uses)
        if not {procedure.word, procedure.text, procedure.position} <= used_columns:
            return read_lines([], response_text or f"{len(self.frame):,} rows", uses_by_user_name)
        # the words from the first row's word to the end of its text
        first_text = self.place_of_row["text"].iloc[0]
        words_of_text = np.flatnonzero(self.place_of_word["text"] == first_text)
        words_from_first_row = words_of_text[words_of_text >= self.word_of_row[0]]
        rows = self.first_row_of_word[words_from_first_row]
        words = [*self.texts(procedure.word)[rows[:_SHOWN_WORDS]]]
        text, _ = running.joined_words(words)
        line = f"[{words[0]}]{text[len(words[0]) :]}"  # "[The] hen eats."
        if len(rows) > _SHOWN_WORDS:
            line += " ..."
        columns = (procedure.text, procedure.position)
        place = ", ".join(f"{column} {self.texts(column)[0]}" for column in columns)
        return read_lines([place, response_text], line, uses_by_user_name)

    def _by_user_names(self, uses: Mapping[str, str]) -> dict[str, str]:
        """Returns the uses of columns by the names that the user wrote.

        The reader of tables adds a copy of a column under its known name: `word` for `Word`. In
        `uses` the copy has the use, and the user's column is "not used": {"word": "word", "Word":
        "not used"} becomes {"Word": "word"}.
        """
        unused = [name for name, use in uses.items() if use == "not used"]
        use_of = {}
        for name, use in uses.items():
            if use != "not used":
                copies = [other for other in unused if self.frame[other].equals(self.frame[name])]
                user_name = copies[0] if copies else name
                use_of[user_name] = use
        return use_of | {name: "not used" for name in unused if name not in use_of}

    def fingerprint(self) -> str:
        """Returns eight hexadecimal digits that identify the content."""
        return hashlib.sha256(self.frame.to_csv(index=False).encode()).hexdigest()[:8]

    def where(self, row: int) -> str:
        """Returns what messages call a row, e.g. "rts.csv:12".

        Rows are counted from 0 here, and named by their line in the file.
        """
        return f"{self.name}:{self.frame.index[row]}"

    def texts(self, column: str) -> Series[str]:
        """Returns a column as text, "" where a value is missing; `BadInput` for an unknown column.

        Rows are numbered from 0; the result is kept for the next call.
        """
        if column not in self.frame.columns:
            raise BadInput(f"{self.name}: {self._no_column(column)}")
        if column not in self._texts:
            values = as_texts(self.frame[column].reset_index(drop=True))
            self._texts[column] = values.where(values.notna(), "")
        return self._texts[column]

    def _no_column(self, column: str) -> str:
        """Returns a message about an unknown column, with what may be meant, and the columns."""
        names = without_copies(self.frame.columns)
        formula = self.procedure.formula
        hint = backticks_hint(formula, names)
        if not formula and re.fullmatch(r"\w+\(.+\)", column):  # as log(rt)
            formula = shlex.quote(f"{column} ~ surprisal")
            hint = f"; give a function of a column by --formula {formula}, with controls"
        suggestion = "" if hint else suggest(column, names)
        return f"no column {column!r}{suggestion}{hint}; columns: {', '.join(names)}"

    def names(self, column: str) -> Series[str]:
        """Returns the texts of a column with composed letters (é), which can be compared."""
        return self.texts(column).str.normalize("NFC")

    def missing(self, column: str) -> NDArray[np.bool_]:
        """Returns whether each value of a column is missing, (n rows,)."""
        return np.asarray(self.texts(column).isin(MISSING))

    def numbers(self, column: str) -> Values:
        """Returns a column as numbers; NaN where a value is missing, truth values as 1 and 0."""
        return as_numbers(self.texts(column), column, self.where)

    # ---- words

    @cached_property
    def place_of_row(self) -> DataFrame:
        """Numbers of the text and the sentence (if named) of each row, and its position.

        For example, a row has the `text` 0, the `sentence` 2 and the `position` 5. Sorting by these
        columns gives the order of words. Texts are numbered in the order of their names, and so are
        sentences; sentences whose column has their full texts are numbered as they stand in the
        table.
        """
        procedure = self.procedure
        for role in ("text", "position"):
            if not getattr(procedure, role):
                columns = self.frame.to_dict("list")
                remedy = naming_option(columns, "surprisal") or f"--{role} COLUMN"
                raise BadInput(
                    f"{self.name}: which column is the {role} of a word? Name it, {remedy}; "
                    "words of earlier positions are needed"
                )
        positions = self.numbers(procedure.position)
        rows_without = np.flatnonzero(np.isnan(positions))
        if rows_without.size:
            raise BadInput(f"{self.where(rows_without[0])}: column {procedure.position} is missing")
        name_texts(self.frame[procedure.text])  # refuses numbers that are not whole
        places = DataFrame({"text": _ranks_of_names(self.names(procedure.text))})
        if procedure.sentence:
            sentences = self.names(procedure.sentence)
            if self.full_texts is None:
                places["sentence"] = _ranks_of_names(sentences)
            else:
                places["sentence"] = factorize(sentences)[0]
        return places.assign(position=positions)

    @cached_property
    def full_texts(self) -> Series[str] | None:
        """The full sentence of each row's word; None if the column of sentences has names.

        Most values of a column of full sentences are several words, as "The hen eats.", and those
        of a column of names are not, as "s1".
        """
        if not self.procedure.sentence:
            return None
        texts = self.texts(self.procedure.sentence).str.strip()
        share_with_blanks = texts.str.contains(r"\s").mean()
        return texts if share_with_blanks > _MOSTLY else None

    @cached_property
    def word_of_row(self) -> NDArray[np.intp]:
        """The number of the word of each row, (n rows,), by text, sentence and position.

        Rows of several readers may have the same word.
        """
        return np.asarray(self.place_of_row.groupby([*self.place_of_row], sort=True).ngroup())

    @cached_property
    def place_of_word(self) -> DataFrame:
        """`place_of_row` of each word, in the order of the words; the index has its first row."""
        _, first_rows = np.unique(self.word_of_row, return_index=True)
        return self.place_of_row.iloc[first_rows]

    @property
    def first_row_of_word(self) -> NDArray[np.intp]:
        """The first row of each word, (n words,)."""
        return np.asarray(self.place_of_word.index)

    @property
    def _unit_columns(self) -> list[str]:
        """The columns of `place_of_word` that tell apart where positions begin anew."""
        return [name for name in self.place_of_word if name != "position"]

    def values_of_earlier_words(self, values: Values, lag: int) -> tuple[Values, NDArray[np.bool_]]:
        """Returns, for each word, the value of the word that is `lag` words before it.

        NaN if the text or sentence begins later than `lag` words before. Also returns whether a
        word between the two is missing in the table, since their positions are not `lag` apart.
        Both arrays are (n words,). For example, the words at positions 1, 2 and 4 with the values
        5, 6 and 7 have, with lag 1, the values [NaN, 5, 6] and the gaps [False, False, True].

        Args:
            values: of the words, (n words,).
            lag: from 1.
        """
        words = self.place_of_word.assign(value=values)
        earlier = words.groupby(self._unit_columns)[["position", "value"]].shift(lag)
        distance = words["position"] - earlier["position"]
        has_gap = distance.notna() & (distance != lag)
        return earlier["value"].to_numpy(), has_gap.to_numpy()

    def _refuse_markup(self, words: Series[str]) -> None:
        """Refuses a table with a word that is markup, as <eos>, which models would read as text.

        Args:
            words: of all rows.
        """
        for word in words.unique():
            problem = markup_problem(word)
            if problem:
                row = int(np.flatnonzero(words == word)[0])
                column = self.procedure.word
                remedy = f"{problem}, or give --filter {shlex.quote(f'{column}!={word}')}"
                raise BadInput(f"{self.where(row)}: column {column} {remedy}")

    def check_words(self) -> None:
        """Refuses a table in which rows of one text and position have different words.

        Such rows may be of several lists of texts, which the table calls by the same names. The
        error names both rows and what may tell the texts apart.
        """
        column = self.procedure.word
        words = self.names(column).to_numpy()
        first_rows = self.first_row_of_word[self.word_of_row]  # of the same word, for each row
        different_rows = np.flatnonzero(words != words[first_rows])
        if different_rows.size:
            row = int(different_rows[0])
            first_row = first_rows[row]
            word = shortened(words[row], 60)
            earlier_word = shortened(words[first_row], 60)
            problem = f"{word!r} stands where {self.where(first_row)} has {earlier_word!r}"
            remedy = self._remedy_for_mixed_texts()
            raise BadInput(f"{self.where(row)}: column {column}: {problem}: {remedy}")

    def _remedy_for_mixed_texts(self) -> str:
        """Returns how to divide texts in which one position has two words, by further columns.

        For example, "list tells them apart: give --columns text=item text=list ...". If other
        columns alone identify texts, so that the column of texts is not needed, they are named.
        """
        procedure = self.procedure
        text = self.texts(procedure.text)
        # the reader of tables may have copied the user's column under a known name
        equal_columns = [
            name for name in self.frame if name != procedure.text and self.texts(name).equals(text)
        ]
        layout = TableLayout({str(name): self.texts(name).tolist() for name in self.frame})
        proposed = None if procedure.sentence else word_rows(layout)
        if (
            proposed
            and proposed.position == procedure.position
            and procedure.text not in proposed.texts
            and not equal_columns
        ):  # other columns alone identify texts, and replace the column of texts
            options = " ".join(f"text={shlex.quote(name)}" for name in proposed.texts)
            verb = "tells" if len(proposed.texts) == 1 else "tell"
            columns = " and ".join(proposed.texts)
            return f"{columns} {verb} texts apart: give --columns {options}"
        # columns that divide the texts further, beside the column of texts
        text_columns = [name for name in (procedure.text, procedure.sentence) if name]
        dividing = dividing_columns(layout.values, procedure.word, procedure.position, text_columns)
        column_of_texts = equal_columns[0] if equal_columns else procedure.text
        option = f"--columns text={shlex.quote(column_of_texts)}"
        if not dividing:
            return f"give a column that tells the texts apart as well, {option} text=COLUMN"
        names = [shlex.quote(name) for name in dividing]
        options = " ".join([option, *(f"text={name}" for name in names)])
        if len(names) > 1:
            return f"{' and '.join(names)} tell them apart: give {options}"
        return (
            f"{names[0]} tells them apart: give {options} for texts of their own, or "
            f"`fit --sentence {names[0]}` for sentences of one text"
        )

    def gap_notes(self) -> list[str]:
        """Returns warnings where models read other texts than people did.

        That is where words are missing in the table, and where people saw no blank before a word,
        as before a comma. [] if the table has full sentences. For example, "warning: 3 positions
        are missing within texts, and models read the texts without these words: give the full texts
        by --sentence COLUMN".
        """
        if self.full_texts is not None:
            return []
        positions = self.place_of_word.groupby(self._unit_columns)["position"]
        starts = positions.min()
        # a text that begins where another one ends is numbered on, and lacks nothing
        begins_late = (starts > 1) & ~starts.isin(positions.max() + 1)
        n_late = int(begins_late.sum())
        # positions between two words of a text that no word of the table has
        n_missing = int((positions.diff() - 1).clip(lower=0).sum())
        gaps = []
        if n_late:
            gaps.append(f"{n_late:,} of {positions.ngroups:,} texts begin after position 1")
        if n_missing:
            gaps.append(f"{n_missing:,} positions are missing within texts")
        problems = []
        if gaps:
            problems.append(f"{' and '.join(gaps)}, and models read the texts without these words")
        words = self.texts(self.procedure.word)[self.first_row_of_word]
        unspaced = running.typed_without_space(words)
        if unspaced:
            count = f"{len(unspaced):,}, as {unspaced[0]!r}"
            problems.append(
                f"words typed without a blank before them: {count}, and models read one there"
            )
        column = self._column_of_full_texts() if problems else ""
        option = f"--sentence {shlex.quote(column) if column else 'COLUMN'}"
        return [f"warning: {problem}: give the full texts by {option}" for problem in problems]

    def _column_of_full_texts(self) -> str:
        """Returns the column with the full sentence in which each word stands; "" for none.

        Each column of texts is tried: it is taken if all words are found at their positions in it.
        """
        for name in map(str, self.frame):
            values = values_of(self.texts(name))
            if values.n_filled == len(self.frame) and values.kind() == "text":
                procedure = replace(self.procedure, sentence=name)
                with suppress(BadInput):  # a word is not at its position in such a sentence
                    table = HumanTable(self.frame, self.name, procedure)
                    table.running_texts()
                    if table.full_texts is not None:
                        return name
        return ""

    def running_texts(self) -> RunningTexts:
        """Returns the texts that models read, and where each word of the table stands in them.

        They are the words one after another or, if the table has full sentences, these.

        `BadInput`: a word is empty or has a blank, or is not at its position.
        """
        return self._running

    @cached_property
    def _running(self) -> RunningTexts:
        """The texts and places that `running_texts` returns; they are computed once."""
        procedure = self.procedure
        if not procedure.word:
            raise BadInput(f"{self.name}: which column has the words? Name it, --word COLUMN")
        words = self.texts(procedure.word)
        for row, word in enumerate(words):
            if word.split() != [word]:  # it is empty, or has a blank
                problem = f"{shortened(word, 60)!r} contains a blank; a row is one word"
                if not word.strip():
                    remedy = shlex.quote(f"{procedure.word}!=")
                    problem = f"is empty; write the word, or give --filter {remedy}"
                raise BadInput(f"{self.where(row)}: column {procedure.word} {problem}")
        self._refuse_markup(words)
        self.check_words()
        rows = self.first_row_of_word  # the rows of a word's other readers repeat it
        text_names = self.texts(procedure.text)[rows].tolist()
        distinct_words = words[rows].tolist()
        if self.full_texts is None:
            return running.texts_of_words(text_names, distinct_words)
        sentences = [*zip(text_names, self.full_texts[rows], strict=True)]
        positions = self.place_of_word["position"].tolist()
        try:
            return running.texts_of_sentences(sentences, distinct_words, positions)
        except NotInSentence as error:
            row = rows[error.number]
            where_expected = f"{procedure.sentence}, {error.sentence!r}"
            raise BadInput(f"{self.where(row)}: {error.problem} of {where_expected}") from None


def _ranks_of_names(names: Series[str]) -> NDArray[np.intp]:
    """The rank of each name in alphabetical order, from 0, (n rows,); of numbers, by size.

    For example, 2, 0, 2, 1 for the names "10", "2", "10" and "9".
    """
    codes, distinct_names = factorize(names)
    rank_of = {name: rank for rank, name in enumerate(in_order(distinct_names))}
    ranks: NDArray[np.intp] = np.array([rank_of[name] for name in distinct_names])[codes]
    return ranks


# ---- files --------------------------------------------------------------------------------------


def read_human(
    data: str | Path | DataFrame,
    profile: str | None = None,
    chosen: Procedure | None = None,
    options: TableOptions = AS_IT_IS,
) -> HumanTable:
    """Returns a table of human measures.

    Args:
        data: file of a table, a DataFrame, or a run directory, whose items are the rows.
        profile: name of a published procedure by which it will be fitted; None for none.
        chosen: what the user chooses of the procedure, e.g. the column of the response.
        options: how the table is read.
    """
    source = user_path(str(data)) if isinstance(data, str | Path) else data
    name = source.name if isinstance(source, Path) else "rows"
    frame, notes = _read_rows(source, options)
    has_response = profile or (chosen and (chosen.response or chosen.formula))
    if not has_response:
        raise BadInput(f"{name}: {_no_response(frame)}")
    procedure = with_word_columns(procedure_for(frame.columns, profile, chosen), frame)
    user_wants_no_lags = chosen is not None and chosen.lags == 0
    if procedure.lags == 0 and not procedure.formula and not user_wants_no_lags:
        notes = (*notes, "no columns of texts and positions: earlier words are not used")
    return HumanTable(frame, name, procedure, notes)


def _no_response(frame: DataFrame) -> str:
    """Returns a message that no response is named, with the columns that may be it.

    For example, "no response: name the column of the human measure, --response rt". These are
    columns that mostly have numbers, more than two distinct ones, and do not name items or places.
    """
    numbers_of = {}
    for column in frame:
        name = str(column)
        is_named_as_place = name.lower() in PLACES or any(
            named_columns(role, [name]) for role in ("item", "position")
        )
        if not is_named_as_place:
            numbers_of[name] = to_numeric(frame[column], errors="coerce")
    likely = [name for name, numbers in numbers_of.items() if numbers.notna().mean() > _MOSTLY]
    # not those with two values, as conditions have
    likely = [name for name in without_copies(likely) if numbers_of[name].nunique() > 2]
    examples = f", e.g. one of {', '.join(likely)}" if len(likely) > 1 else ""
    column = shlex.quote(likely[0]) if len(likely) == 1 else "COLUMN"
    return f"no response: name the column of the human measure, --response {column}{examples}"


def with_word_columns(
    procedure: Profile, table: DataFrame | Mapping[str, Sequence[Any]]
) -> Profile:
    """Returns the procedure with the columns of positions and words, if they are not named yet.

    They are found in a table with a row per word by names and values: any name of
    `lmdiag.stimuli.values.names.NAMES`, and numbers and single words.
    """
    if not procedure.text or (procedure.position and procedure.word):
        return procedure
    word_columns = columns_of_words(table)
    if not word_columns:
        return procedure
    position = procedure.position or word_columns["position"]
    word = procedure.word
    if word in ("", position):  # a column named as words may have their numbers
        word = word_columns["word"]
    return replace(procedure, position=position, word=word)


def _read_rows(
    source: Path | DataFrame, options: TableOptions = AS_IT_IS
) -> tuple[DataFrame, tuple[str, ...]]:
    """Returns the rows of a file, of a run's items or of a table, and notes how they were read.

    The index has the lines of a file; other rows are numbered from 1.
    """
    is_run = isinstance(source, Path) and is_folder(source)
    rows = items_of(source) if is_run else source
    # values as they are written, and columns also under their known names
    frame, notes = read_frame_rows(rows, options, PLACES, copies=True, raw=True)
    has_lines = isinstance(rows, Path)
    if not has_lines:
        frame = frame.set_axis(range(1, len(frame) + 1))
    return frame, notes


def surprisals_in_table(table: HumanTable) -> tuple[HumanTable, list[SurprisalSource]]:
    """Returns the surprisals that a table itself has in its column `surprisal`.

    With a column `model`, the same rows follow each other for each model: also returns the table
    with these rows once, and one source of surprisals for each model.
    """
    source = read_surprisals(table, SURPRISAL)
    # the user chooses the rows of one model, as by --filter model=gpt2
    conditions = [Condition.of(text) for text in table.procedure.filter]
    is_one_model = any(condition and condition.column == "model" for condition in conditions)
    if "model" not in table.frame.columns or is_one_model:
        return table, [source]
    models = table.texts("model").to_numpy()
    names = list(dict.fromkeys(models))
    if len(names) == 1:
        return table, [source._replace(name=names[0])]
    # what is left when the answers are dropped must be the same rows for each model
    data = table.frame.drop(columns=["model", *PREDICTED], errors="ignore")
    first_rows = data[models == names[0]]
    for name in names[1:]:
        rows = data[models == name]
        if not rows.reset_index(drop=True).equals(first_rows.reset_index(drop=True)):
            rule = "choose the rows of one, --filter model=NAME"
            raise BadInput(f"{table.name}: {names[0]} and {name} have different rows: {rule}")
    sources = [SurprisalSource(name, source.values[models == name]) for name in names]
    return HumanTable(first_rows, table.name, table.procedure, table.notes), sources


def read_surprisals(table: HumanTable, source: str) -> SurprisalSource:
    """Returns surprisals that were made elsewhere, by the rows of a table.

    Args:
        table: the human measures.
        source: a column of the table; or a JSON file, text -> sentences -> numbers, one per word;
            or a table with a column `surprisal`, also `entropy`, and columns that tell the rows:
            those that both tables have, or `text`, `position` and `word` as `lmdiag surprisal`
            writes them.
    """
    if source in table.frame.columns:
        return SurprisalSource(source, table.numbers(source), column=source)
    path = user_path(source)
    if not exists(path):
        raise BadInput(f"{source!r} is neither a column of {table.name} nor a file")
    if path.suffix == ".json" and not has_json_rows(path):
        # surprisal.json is called as its folder, which has the name of the model
        name = path.stem if path.stem != SURPRISAL else path.resolve().parent.name
        return SurprisalSource(name, _surprisals_of_json(table, path))
    return _surprisals_of_table(table, path)


def _surprisals_of_table(table: HumanTable, path: Path) -> SurprisalSource:
    """Returns the surprisals of another table, joined by the columns that both tables have.

    For example, by `text`, `position` and `word`: the surprisal of the word at position 3 of text
    "1" goes to all rows of this word in the table, of several readers. NaN for rows of which the
    other table has none.

    Args:
        table: the human measures.
        path: file of a table with the column `surprisal`, also `entropy`.
    """
    frame, _ = _read_rows(path)
    other = HumanTable(frame, path.name, table.procedure)
    columns = [*other.frame.columns]
    # "surprisal", "entropy" -> the column of the other table, in any letter case
    value_columns = {name.lower(): name for name in columns if name.lower() in (SURPRISAL, ENTROPY)}
    # column of this table -> the same column of the other one
    key_columns = {name: name for name in columns if name in table.frame.columns}
    # `lmdiag surprisal` calls its columns text, position and word: they are joined with the columns
    # that have these roles in this table, whatever their names are
    for role in ("text", "position", "word"):
        if role in columns:
            key_columns[getattr(table.procedure, role)] = role
    # lengths and frequencies may have been computed in another way, and so are not compared
    no_keys = {*value_columns.values(), *COMPUTED}
    key_columns = {
        name: column for name, column in key_columns.items() if name and column not in no_keys
    }
    key_names = [*key_columns]
    if SURPRISAL not in value_columns or not key_names:
        missing = f"a column of {table.name}" if value_columns else f"a column {SURPRISAL!r}"
        raise BadInput(f"{path.name} needs {missing}; it has {', '.join(columns)}")
    # the keys of the rows of this table and of the other one, in columns of the same names
    keys = DataFrame({name: table.names(name) for name in key_names})
    surprisals = DataFrame({name: other.names(column) for name, column in key_columns.items()})
    for name in key_names:
        numbers = _as_numbers_if_distinct(keys[name])
        numbers_of_other = _as_numbers_if_distinct(surprisals[name])
        if numbers is not None and numbers_of_other is not None:
            keys[name] = numbers
            surprisals[name] = numbers_of_other
    # rows of several readers have the same surprisal, and become one row of the other table
    values = {name: other.numbers(column) for name, column in value_columns.items()}
    surprisals = surprisals.assign(**values).drop_duplicates()
    repeated_rows = surprisals[surprisals.duplicated(key_names)]
    if len(repeated_rows):
        row = repeated_rows.iloc[0]
        key_text = ", ".join(map(str, row[key_names]))
        raise BadInput(f"{other.where(row.name)}: a second surprisal for {key_text}")
    joined = keys.merge(surprisals, how="left", on=key_names)
    if joined[SURPRISAL].isna().all():
        raise BadInput(f"{path.name} and {table.name} have no {', '.join(key_names)} in common")
    entropy = joined[ENTROPY].to_numpy() if ENTROPY in value_columns else None
    return SurprisalSource(path.stem, joined[SURPRISAL].to_numpy(), entropy=entropy)


def _as_numbers_if_distinct(names: Series[str]) -> Series[float] | None:
    """Returns names as numbers, so that "1" equals "1.0".

    For example, "1", "2.0" -> 1.0, 2.0. None if a name is not a number, or two names are the same
    number, as "1" and "01".
    """
    numbers = to_numeric(names.replace(TRUTH), errors="coerce")  # true is 1, false is 0
    are_distinct = names.nunique() == numbers.nunique()
    return numbers.astype(float) if numbers.notna().all() and are_distinct else None


def _surprisals_of_json(table: HumanTable, path: Path) -> Values:
    """Returns the surprisals of a JSON file for the rows of a table.

    The file has text -> sentences -> numbers, one per word, as Kuribayashi et al. (2024) publish
    them: {"1": [[3.2, 0.5], [8.1]]} for a text of three words in two sentences. A number goes to
    all rows of its word.
    """
    content = parse_json(read_text(path, MAX_DOCUMENT), path.name)
    # texts are in the order of the words of the table, and so are the surprisals of `values`
    n_words_of_text = Counter(table.texts(table.procedure.text)[table.first_row_of_word])
    if not isinstance(content, Mapping) or set(content) != set(n_words_of_text):
        raise BadInput(
            f"{path.name} must be an object with the texts of {table.name} "
            f"({table.procedure.text}) as names: {', '.join([*n_words_of_text][:3])}, ..."
        )
    values: list[float] = []
    for text, n_words in n_words_of_text.items():
        try:
            numbers = [float(number) for sentence in content[text] for number in sentence]
        except (TypeError, ValueError):
            raise BadInput(f"{path.name}: text {text} is not a list of lists of numbers") from None
        if len(numbers) != n_words:
            problem = f"has {len(numbers)} surprisals; {table.name} has {n_words} words"
            raise BadInput(f"{path.name}: text {text} {problem}")
        values += numbers
    return np.array(values)[table.word_of_row]
