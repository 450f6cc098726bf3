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
    """Surprisals of one model.

    Attributes:
        name: of the model.
        values: (n rows of the table,), in the units of the procedure; NaN where there is none.
        column: the column of the table that they stand in, or "".
        note: what readers should know about them, or "".
        entropy: of the distributions before each word, likewise; None where there are none.
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
"""Share of the rows in which a column of numbers has one, or a column of texts several words."""

_SHOWN_WORDS = 9
"""Words of a text that are shown of the way in which a table is read."""


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
        """Returns what each column is used for, those that are used first.

        `surprisals` are columns that have the surprisals of models.
        """
        from lmdiag.analysis.regression import names_in

        procedure = self.procedure
        roles = ("text", "sentence", "position", "word", "reader", "response")
        uses = {getattr(procedure, role): role for role in roles}
        uses |= dict.fromkeys(procedure.controls or (), "control")
        uses |= (
            dict.fromkeys(
                names_in(procedure.formula or " + ".join(procedure.predictors)), "predictor"
            )
            | uses
        )
        uses |= {name: "surprisal" for name in surprisals if name not in uses}
        present = {name: use for name, use in uses.items() if name and name in self.frame}
        return present | {str(x): "not used" for x in self.frame if x and x not in present}

    def reads(self, surprisals: Sequence[str] = ()) -> tuple[str, ...]:
        """Returns the first word in its text with its response, and what columns are used for."""
        procedure = self.procedure
        uses = self.uses(surprisals)
        used_columns = {name for name, use in uses.items() if use != "not used"}
        value = (
            f"{procedure.response} {self.texts(procedure.response)[0]}"
            if procedure.response in used_columns
            else ""
        )
        uses_by_own_name = self._by_own_names(uses)
        if not {procedure.word, procedure.text, procedure.position} <= used_columns:
            return read_lines([], value or f"{len(self.frame):,} rows", uses_by_own_name)
        words_of_text = np.flatnonzero(self.words["text"] == self.places["text"].iloc[0])
        rows = self.first_rows[words_of_text[words_of_text >= self.word[0]]]
        first_word, *next_words = self.texts(procedure.word)[rows[:_SHOWN_WORDS]]
        text, _ = running.joined_words([first_word, *next_words])
        line = (
            f"[{first_word}]{text[len(first_word) :]}{' ...' if len(rows) > _SHOWN_WORDS else ''}"
        )
        columns = (procedure.text, procedure.position)
        name = ", ".join(f"{column} {self.texts(column)[0]}" for column in columns)
        return read_lines([name, value], line, uses_by_own_name)

    def _by_own_names(self, uses: Mapping[str, str]) -> dict[str, str]:
        """Returns the uses of columns by the table's names; copies of them have known names."""
        unused = [name for name, use in uses.items() if use == "not used"]
        own_names = {}
        for name in (name for name, use in uses.items() if use != "not used"):
            same = (x for x in unused if self.frame[x].equals(self.frame[name]))
            own_names[name] = next(same, name)
        others = [name for name in unused if name not in own_names.values()]
        return {own_names[x]: uses[x] for x in own_names} | dict.fromkeys(others, "not used")

    def fingerprint(self) -> str:
        """Returns eight hexadecimal digits that identify the content."""
        return hashlib.sha256(self.frame.to_csv(index=False).encode()).hexdigest()[:8]

    def where(self, row: int) -> str:
        """Returns what to call a row of the file, counted from 0, in a message."""
        return f"{self.name}:{self.frame.index[row]}"

    def texts(self, column: str) -> Series[str]:
        """Returns a column as text, "" where a value is missing; `BadInput` if there is none."""
        if column not in self.frame.columns:
            names = without_copies(self.frame.columns)
            formula = self.procedure.formula
            hint = backticks_hint(formula, names)
            if not formula and re.fullmatch(r"\w+\(.+\)", column):
                formula = shlex.quote(f"{column} ~ surprisal")
                hint = f"; give a function of a column by --formula {formula}, with controls"
            suggestion = "" if hint else suggest(column, names)
            raise BadInput(
                f"{self.name}: no column {column!r}{suggestion}{hint}; columns: {', '.join(names)}"
            )
        if column not in self._texts:
            values = as_texts(self.frame[column].reset_index(drop=True))
            self._texts[column] = values.where(values.notna(), "")
        return self._texts[column]

    def names(self, column: str) -> Series[str]:
        """Returns the texts of a column for comparisons: with composed letters (é)."""
        return self.texts(column).str.normalize("NFC")

    def missing(self, column: str) -> NDArray[np.bool_]:
        """Returns which values of a column are missing."""
        return np.asarray(self.texts(column).isin(MISSING))

    def numbers(self, column: str) -> Values:
        """Returns a column as numbers; NaN where a value is missing, truth values as 1 and 0."""
        return as_numbers(self.texts(column), column, self.where)

    # ---- words

    @cached_property
    def places(self) -> DataFrame:
        """Text, sentence (if named) and position of each row; the position is last."""
        procedure = self.procedure
        for place in ("text", "position"):
            if not getattr(procedure, place):
                columns = self.frame.to_dict("list")
                remedy = naming_option(columns, "surprisal") or f"--{place} COLUMN"
                raise BadInput(
                    f"{self.name}: which column is the {place} of a word? Name it, {remedy}; "
                    "words of earlier positions are needed"
                )
        positions = self.numbers(procedure.position)
        bad = np.flatnonzero(np.isnan(positions))
        if bad.size:
            raise BadInput(f"{self.where(bad[0])}: column {procedure.position} is missing")
        name_texts(self.frame[procedure.text])  # refuses numbers that are not whole
        places = DataFrame({"text": _ordered(self.names(procedure.text))})
        if procedure.sentence:
            names = self.names(procedure.sentence)  # names, or full texts in their order
            has_names = self.full_texts is None
            places["sentence"] = _ordered(names) if has_names else factorize(names)[0]
        return places.assign(position=positions)

    @cached_property
    def full_texts(self) -> Series[str] | None:
        """The text in which each row's word stands, if the column of sentences has texts."""
        if not self.procedure.sentence:
            return None
        texts = self.texts(self.procedure.sentence).str.strip()
        return texts if texts.str.contains(r"\s").mean() > _MOSTLY else None

    @cached_property
    def word(self) -> NDArray[np.intp]:
        """Number of the word of each row, (n rows,), by text, sentence and position."""
        return np.asarray(self.places.groupby([*self.places], sort=True).ngroup())

    @cached_property
    def words(self) -> DataFrame:
        """Text, sentence (if named) and position of each word; the index has its first row."""
        return self.places.iloc[np.unique(self.word, return_index=True)[1]]

    @property
    def first_rows(self) -> NDArray[np.intp]:
        """The first row of each word, (n words,)."""
        return np.asarray(self.words.index)

    def lagged(self, values: Values, lag: int) -> tuple[Values, NDArray[np.bool_]]:
        """Returns values of the words `lag` words earlier, (n words,); NaN before a beginning.

        Also returns which of these words are not `lag` positions earlier.
        """
        words = self.words.assign(value=values)
        earlier = words.groupby([*self.words][:-1])[["position", "value"]].shift(lag)
        distance = words["position"] - earlier["position"]
        return earlier["value"].to_numpy(), (distance.notna() & (distance != lag)).to_numpy()

    def _refuse_markup(self, words: Series[str]) -> None:
        """Refuses words as <eos>, which models would read as text."""
        for word in words.unique():
            if problem := markup_problem(word):
                row = int(np.flatnonzero(words == word)[0])
                column = self.procedure.word
                remedy = f"{problem}, or give --filter {shlex.quote(f'{column}!={word}')}"
                raise BadInput(f"{self.where(row)}: column {column} {remedy}")

    def check_words(self) -> None:
        """Refuses a table in which rows of one text and position have different words."""
        column = self.procedure.word
        words = self.names(column).to_numpy()
        first_rows = self.first_rows[self.word]
        different = np.flatnonzero(words != words[first_rows])
        if different.size:
            row = int(different[0])
            first_row = first_rows[row]
            word = shortened(words[row], 60)
            earlier_word = shortened(words[first_row], 60)
            has = f"{word!r} stands where {self.where(first_row)} has {earlier_word!r}"
            raise BadInput(f"{self.where(row)}: column {column}: {has}: {self._text_remedy()}")

    def _text_remedy(self) -> str:
        """How to tell apart the texts of rows that have one text and position, but two words."""
        procedure = self.procedure
        text = self.texts(procedure.text)
        equal_columns = [
            x for x in self.frame if x != procedure.text and self.texts(x).equals(text)
        ]
        remedy = f"--columns text={shlex.quote((*equal_columns, procedure.text)[0])}"
        layout = TableLayout({str(name): self.texts(name).tolist() for name in self.frame})
        rows = None if procedure.sentence else word_rows(layout)
        if (
            rows
            and rows.position == procedure.position
            and procedure.text not in rows.texts
            and not equal_columns
        ):
            options = " ".join(f"text={shlex.quote(name)}" for name in rows.texts)
            verb = "tells" if len(rows.texts) == 1 else "tell"
            columns = " and ".join(rows.texts)
            return f"{columns} {verb} texts apart: give --columns {options}"
        text_columns = [x for x in (procedure.text, procedure.sentence) if x]
        dividing = [
            *map(
                shlex.quote,
                dividing_columns(layout.values, procedure.word, procedure.position, text_columns),
            )
        ]
        if not dividing:
            return f"give a column that tells the texts apart as well, {remedy} text=COLUMN"
        verb = "tells" if len(dividing) == 1 else "tell"
        advice = f"{' and '.join(dividing)} {verb} them apart: give {remedy}"
        advice = " ".join([advice, *(f"text={name}" for name in dividing)])
        sentences = (
            f" for texts of their own, or `fit --sentence {dividing[0]}` for sentences of one"
        )
        return advice if len(dividing) > 1 else f"{advice}{sentences} text"

    def gap_notes(self) -> list[str]:
        """Returns warnings on words that models read texts without, or with a blank before them."""
        if self.full_texts is not None:
            return []
        positions = self.words.groupby([*self.words][:-1])["position"]
        begins = positions.min()
        n_late = int(((begins > 1) & ~begins.isin(positions.max() + 1)).sum())
        n_missing = int((positions.diff() - 1).clip(lower=0).sum())
        gaps = []
        if n_late:
            gaps.append(f"{n_late:,} of {positions.ngroups:,} texts begin after position 1")
        if n_missing:
            gaps.append(f"{n_missing:,} positions are missing within texts")
        notes = []
        if gaps:
            notes.append(f"{' and '.join(gaps)}, and models read the texts without these words")
        joined = running.typed_without_space(self.texts(self.procedure.word)[self.first_rows])
        if joined:
            what = f"words typed without a blank before them: {len(joined):,}, as {joined[0]!r}"
            notes.append(f"{what}, and models read one there")
        column = self._column_of_full_texts() if notes else ""
        named = shlex.quote(column) if column else "COLUMN"
        remedy = f"give the full texts by --sentence {named}"
        return [f"warning: {note}: {remedy}" for note in notes]

    def _column_of_full_texts(self) -> str:
        """The column with the full text in which the word of each row stands; "" for none."""
        for name in map(str, self.frame):
            values = values_of(self.texts(name))
            if values.n_filled == len(self.frame) and values.kind() == "text":
                with suppress(BadInput):
                    how = replace(self.procedure, sentence=name)
                    table = HumanTable(self.frame, self.name, how)
                    table.running_texts()
                    if table.full_texts is not None:
                        return name
        return ""

    def running_texts(self) -> RunningTexts:
        """Returns what models read: the words of each text, or its full sentences.

        `BadInput`: a word is empty or has a blank, or is not at its position.
        """
        return self._running

    @cached_property
    def _running(self) -> RunningTexts:
        """The texts that models read, and where each word of the table stands in them.

        They are the words one after another or, if the table has whole sentences, these.
        """
        procedure = self.procedure
        if not procedure.word:
            raise BadInput(f"{self.name}: which column has the words? Name it, --word COLUMN")
        words = self.texts(procedure.word)
        for row, word in enumerate(words):
            if word.split() != [word]:
                what = f"{shortened(word, 60)!r} contains a blank; a row is one word"
                if not word.strip():
                    remedy = shlex.quote(f"{procedure.word}!=")
                    what = f"is empty; write the word, or give --filter {remedy}"
                raise BadInput(f"{self.where(row)}: column {procedure.word} {what}")
        self._refuse_markup(words)
        self.check_words()
        rows = self.first_rows
        names = self.texts(procedure.text)[rows].tolist()
        words_of_rows = words[rows].tolist()
        if self.full_texts is None:
            return running.of_words(names, words_of_rows)
        places = [*zip(names, self.full_texts[rows], strict=True)]
        try:
            return running.in_sentences(places, words_of_rows, self.words["position"].tolist())
        except NotInSentence as wrong:
            row = rows[wrong.number]
            raise BadInput(f"{self.where(row)}: {str(wrong).format(procedure.sentence)}") from None


def _ordered(names: Series[str]) -> NDArray[np.intp]:
    """The rank of each name, (n rows,); numbers by size."""
    codes, distinct = factorize(names)
    rank_of = {name: rank for rank, name in enumerate(in_order(distinct))}
    ranks: NDArray[np.intp] = np.array([rank_of[name] for name in distinct])[codes]
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
        data: a table, see `lmdiag.tables.table_files`, a DataFrame, or a run directory, whose
            items are the rows.
        profile, chosen: how it will be fitted, see `procedure_for`.
        options: how the table is read.
    """
    source = user_path(str(data)) if isinstance(data, str | Path) else data
    name = source.name if isinstance(source, Path) else "rows"
    frame, notes = _read_rows(source, options)
    if not (profile or (chosen and (chosen.response or chosen.formula))):
        raise BadInput(f"{name}: {_without_response(frame)}")
    procedure = with_places(procedure_for(frame.columns, profile, chosen), frame)
    if procedure.lags == 0 and not (procedure.formula or (chosen and chosen.lags == 0)):
        notes = (*notes, "no columns of texts and positions: earlier words are not used")
    return HumanTable(frame, name, procedure, notes)


def _without_response(frame: DataFrame) -> str:
    """What to do where no response is named: the columns that may be one are those of numbers."""
    numbers_of = {
        str(name): to_numeric(frame[name], errors="coerce")
        for name in frame
        if str(name).lower() not in PLACES
        and not any(named_columns(role, [str(name)]) for role in ("item", "position"))
    }
    likely = [name for name, of in numbers_of.items() if of.notna().mean() > _MOSTLY]
    likely = [name for name in without_copies(likely) if numbers_of[name].nunique() > 2]
    which = f", e.g. one of {', '.join(likely)}" if len(likely) > 1 else ""
    column = shlex.quote(likely[0]) if len(likely) == 1 else "COLUMN"
    return f"no response: name the column of the human measure, --response {column}{which}"


def with_places(procedure: Profile, table: DataFrame | Mapping[str, Sequence[Any]]) -> Profile:
    """Returns the procedure with position and word, where a table with texts has a row per word.

    Their names are any of `lmdiag.stimuli.values.names.NAMES`, and their values numbers and single
    words.
    """
    if not procedure.text or (procedure.position and procedure.word):
        return procedure
    word_columns = columns_of_words(table)
    if not word_columns:
        return procedure
    position = procedure.position or word_columns["position"]
    word = word_columns["word"] if procedure.word in ("", position) else procedure.word
    return replace(procedure, position=position, word=word)


def _read_rows(
    source: Path | DataFrame, options: TableOptions = AS_IT_IS
) -> tuple[DataFrame, tuple[str, ...]]:
    """The rows of a file, a run's items or a table, by their numbers; and how they were read."""
    is_run = isinstance(source, Path) and is_folder(source)
    rows = items_of(source) if is_run else source
    frame, notes = read_frame_rows(rows, options, PLACES, copies=True, raw=True)
    has_lines = isinstance(rows, Path)
    return frame if has_lines else frame.set_axis(range(1, len(frame) + 1)), notes


def own_surprisals(table: HumanTable) -> tuple[HumanTable, list[SurprisalSource]]:
    """Returns the rows, each once, and the surprisals in the column `surprisal` of each `model`."""
    frame = table.frame
    source = read_surprisals(table, SURPRISAL)
    if "model" not in frame.columns or any(x.startswith("model") for x in table.procedure.filter):
        return table, [source]
    models = table.texts("model").to_numpy()
    names = list(dict.fromkeys(models))
    if len(names) == 1:
        return table, [source._replace(name=names[0])]
    without_predictions = frame.drop(columns=["model", *PREDICTED], errors="ignore")
    rows = without_predictions[models == names[0]]
    for name in names[1:]:
        if (
            not without_predictions[models == name]
            .reset_index(drop=True)
            .equals(rows.reset_index(drop=True))
        ):
            rule = "choose the rows of one, --filter model=NAME"
            raise BadInput(f"{table.name}: {names[0]} and {name} have different rows: {rule}")
    first_model_table = HumanTable(rows, table.name, table.procedure, table.notes)
    return first_model_table, [
        SurprisalSource(name, source.values[models == name]) for name in names
    ]


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
        return SurprisalSource(source, table.numbers(source), source)
    path = user_path(source)
    if not exists(path):
        raise BadInput(f"{source!r} is neither a column of {table.name} nor a file")
    if path.suffix == ".json" and not has_json_rows(path):
        name = path.stem if path.stem != SURPRISAL else path.resolve().parent.name
        return SurprisalSource(name, _from_json(table, path))
    return _from_table(table, path)


def _from_table(table: HumanTable, path: Path) -> SurprisalSource:
    """Surprisals of another table, joined by the columns that tell the rows of both."""
    other = HumanTable(_read_rows(path)[0], path.name, table.procedure)
    columns = [*other.frame.columns]
    value_columns = {name.lower(): name for name in columns if name.lower() in (SURPRISAL, ENTROPY)}
    column_of_key = {name: name for name in columns if name in table.frame.columns}
    for key_text in ("text", "position", "word"):
        if key_text in columns:
            column_of_key[getattr(table.procedure, key_text)] = key_text
    no_keys = {*value_columns.values(), *COMPUTED}
    column_of_key = {
        name: column for name, column in column_of_key.items() if name and column not in no_keys
    }
    if SURPRISAL not in value_columns or not column_of_key:
        missing = f"a column of {table.name}" if value_columns else f"a column {SURPRISAL!r}"
        raise BadInput(f"{path.name} needs {missing}; it has {', '.join(columns)}")
    keys = DataFrame({name: table.names(name) for name in column_of_key})
    surprisals = DataFrame({name: other.names(column) for name, column in column_of_key.items()})
    for name in column_of_key:
        spellings = [_as_one_number(keys[name]), _as_one_number(surprisals[name])]
        if all(x is not None for x in spellings):
            keys[name], surprisals[name] = spellings
    numbers = {name: other.numbers(column) for name, column in value_columns.items()}
    surprisals = surprisals.assign(**numbers).drop_duplicates()
    repeated = surprisals[surprisals.duplicated([*column_of_key])]
    if len(repeated):
        row = repeated.iloc[0]
        key_text = ", ".join(map(str, row[[*column_of_key]]))
        raise BadInput(f"{other.where(row.name)}: a second surprisal for {key_text}")
    joined = keys.merge(surprisals, how="left", on=[*column_of_key])
    if joined[SURPRISAL].isna().all():
        raise BadInput(f"{path.name} and {table.name} have no {', '.join(column_of_key)} in common")
    entropy = joined[ENTROPY].to_numpy() if ENTROPY in value_columns else None
    return SurprisalSource(path.stem, joined[SURPRISAL].to_numpy(), entropy=entropy)


def _as_one_number(names: Series[str]) -> Series[float] | None:
    """Names as numbers, so that 1 is 1.0; None if one is not a number, or two are equal."""
    numbers = to_numeric(names.replace(TRUTH), errors="coerce")
    is_distinct = names.nunique() == numbers.nunique()
    return numbers.astype(float) if numbers.notna().all() and is_distinct else None


def _from_json(table: HumanTable, path: Path) -> Values:
    """Surprisals of texts and sentences, as Kuribayashi et al. (2024) publish them."""
    content = parse_json(read_text(path, MAX_DOCUMENT), path.name)
    texts = Counter(table.texts(table.procedure.text)[table.first_rows])
    if not isinstance(content, Mapping) or set(content) != set(texts):
        raise BadInput(
            f"{path.name} must be an object with the texts of {table.name} "
            f"({table.procedure.text}) as names: {', '.join([*texts][:3])}, ..."
        )
    values: list[float] = []
    for text, n_words in texts.items():
        try:
            numbers = [float(number) for sentence in content[text] for number in sentence]
        except (TypeError, ValueError):
            raise BadInput(f"{path.name}: text {text} is not a list of lists of numbers") from None
        if len(numbers) != n_words:
            problem = f"has {len(numbers)} surprisals; {table.name} has {n_words} words"
            raise BadInput(f"{path.name}: text {text} {problem}")
        values += numbers
    return np.array(values)[table.word]
