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
from lmdiag.stimuli.reading.steps import read_frame_rows
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.stimuli.values.names import named
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

        how = self.procedure
        roles = ("text", "sentence", "position", "word", "reader", "response")
        uses = {getattr(how, role): role for role in roles}
        uses |= dict.fromkeys(how.controls or (), "control")
        uses |= (
            dict.fromkeys(names_in(how.formula or " + ".join(how.predictors)), "predictor") | uses
        )
        uses |= {name: "surprisal" for name in surprisals if name not in uses}
        used = {name: use for name, use in uses.items() if name and name in self.frame}
        return used | {str(x): "not used" for x in self.frame if x and x not in used}

    def reads(self, surprisals: Sequence[str] = ()) -> tuple[str, ...]:
        """Returns the first word in its text with its response, and what columns are used for."""
        how = self.procedure
        uses = self.uses(surprisals)
        used = {name for name, use in uses.items() if use != "not used"}
        value = f"{how.response} {self.texts(how.response)[0]}" if how.response in used else ""
        shown = self._by_own_names(uses)
        if not {how.word, how.text, how.position} <= used:
            return read_lines([], value or f"{len(self.frame):,} rows", shown)
        of_text = np.flatnonzero(self.words["text"] == self.places["text"].iloc[0])
        rows = self.first_rows[of_text[of_text >= self.word[0]]]
        first, *following = self.texts(how.word)[rows[:9]]
        text, _ = running.joined_words([first, *following])
        line = f"[{first}]{text[len(first) :]}{' ...' if len(rows) > 9 else ''}"
        name = f"{how.text} {self.texts(how.text)[0]}, {how.position} {self.texts(how.position)[0]}"
        return read_lines([name, value], line, shown)

    def _by_own_names(self, uses: Mapping[str, str]) -> dict[str, str]:
        """The uses of columns by the names of the table, of which copies have known names."""
        unused = [name for name, use in uses.items() if use == "not used"]
        own_names = {}
        for name in (name for name, use in uses.items() if use != "not used"):
            same = (x for x in unused if self.frame[x].equals(self.frame[name]))
            own_names[name] = next(same, name)
        rest = [name for name in unused if name not in own_names.values()]
        return {own_names[x]: uses[x] for x in own_names} | dict.fromkeys(rest, "not used")

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
        how = self.procedure
        for place in ("text", "position"):
            if not getattr(how, place):
                columns = self.frame.to_dict("list")
                remedy = naming_option(columns, "surprisal") or f"--{place} COLUMN"
                raise BadInput(
                    f"{self.name}: which column is the {place} of a word? Name it, {remedy}; "
                    "words of earlier positions are needed"
                )
        positions = self.numbers(how.position)
        bad = np.flatnonzero(np.isnan(positions))
        if bad.size:
            raise BadInput(f"{self.where(bad[0])}: column {how.position} is missing")
        name_texts(self.frame[how.text])  # refuses numbers that are not whole
        places = DataFrame({"text": _ordered(self.names(how.text))})
        if how.sentence:
            names = self.names(how.sentence)  # names, or full texts in their order
            has_names = self.full_texts is None
            places["sentence"] = _ordered(names) if has_names else factorize(names)[0]
        return places.assign(position=positions)

    @cached_property
    def full_texts(self) -> Series[str] | None:
        """The text in which each row's word stands, if the column of sentences has texts."""
        if not self.procedure.sentence:
            return None
        texts = self.texts(self.procedure.sentence).str.strip()
        return texts if texts.str.contains(r"\s").mean() > 0.5 else None

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

    def check_words(self) -> None:
        """Refuses a table in which rows of one text and position have different words."""
        column = self.procedure.word
        words = self.names(column).to_numpy()
        first_rows = self.first_rows[self.word]
        different = np.flatnonzero(words != words[first_rows])
        if different.size:
            row = int(different[0])
            first_row = first_rows[row]
            own, first = (shortened(words[x], 60) for x in (row, first_row))
            has = f"{own!r} stands where {self.where(first_row)} has {first!r}"
            raise BadInput(f"{self.where(row)}: column {column}: {has}: {self._text_remedy()}")

    def _text_remedy(self) -> str:
        """How to tell apart the texts of rows that have one text and position, but two words."""
        how = self.procedure
        text = self.texts(how.text)
        same = [x for x in self.frame if x != how.text and self.texts(x).equals(text)]
        remedy = f"--columns text={shlex.quote((*same, how.text)[0])}"
        layout = TableLayout({str(name): self.texts(name).tolist() for name in self.frame})
        rows = None if how.sentence else word_rows(layout)
        if rows and rows.position == how.position and how.text not in rows.texts and not same:
            given = " ".join(f"text={shlex.quote(name)}" for name in rows.texts)
            tell = f"{' and '.join(rows.texts)} tell{'s' * (len(rows.texts) == 1)}"
            return f"{tell} texts apart: give --columns {given}"
        keys = [x for x in (how.text, how.sentence) if x]
        found = [*map(shlex.quote, dividing_columns(layout.values, how.word, how.position, keys))]
        if not found:
            return f"give a column that tells the texts apart as well, {remedy} text=COLUMN"
        what = f"{' and '.join(found)} tell{'s' * (len(found) == 1)} them apart: give {remedy}"
        what = " ".join([what, *(f"text={name}" for name in found)])
        sentences = f" for texts of their own, or `fit --sentence {found[0]}` for sentences of one"
        return what if len(found) > 1 else f"{what}{sentences} text"

    def gap_notes(self) -> list[str]:
        """Returns warnings on words that models read texts without, or with a blank before them."""
        if self.full_texts is not None:
            return []
        positions = self.words.groupby([*self.words][:-1])["position"]
        begins = positions.min()
        n_late = int(((begins > 1) & ~begins.isin(positions.max() + 1)).sum())
        n_missing = int((positions.diff() - 1).clip(lower=0).sum())
        late = f"{n_late:,} of {positions.ngroups:,} texts begin after position 1"
        missing = f"{n_missing:,} positions are missing within texts"
        gaps = " and ".join([late] * bool(n_late) + [missing] * bool(n_missing))
        words = self.texts(self.procedure.word)[self.first_rows]
        apart = running.apart(words)
        notes = [f"{gaps}, and models read the texts without these words"] * bool(gaps)
        if apart:
            what = f"words typed without a blank before them: {len(apart):,}, as {apart[0]!r}"
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
        how = self.procedure
        if not how.word:
            raise BadInput(f"{self.name}: which column has the words? Name it, --word COLUMN")
        words = self.texts(how.word)
        for row, word in enumerate(words):
            if word.split() != [word]:
                what = f"{shortened(word, 60)!r} contains a blank; a row is one word"
                if not word.strip():
                    remedy = shlex.quote(f"{how.word}!=")
                    what = f"is empty; write the word, or give --filter {remedy}"
                raise BadInput(f"{self.where(row)}: column {how.word} {what}")
        self.check_words()
        rows = self.first_rows
        names = self.texts(how.text)[rows].tolist()
        own = words[rows].tolist()
        if self.full_texts is None:
            return running.of_words(names, own)
        places = [*zip(names, self.full_texts[rows], strict=True)]
        try:
            return running.in_sentences(places, own, self.words["position"].tolist())
        except NotInSentence as wrong:
            row = rows[wrong.number]
            raise BadInput(f"{self.where(row)}: {str(wrong).format(how.sentence)}") from None


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


_MOSTLY = 0.5
"""Share of the rows in which a column of numbers has one."""


def _without_response(frame: DataFrame) -> str:
    """What to do where no response is named: the columns that may be one are those of numbers."""
    numbers = {
        str(name): to_numeric(frame[name], errors="coerce")
        for name in frame
        if str(name).lower() not in PLACES
        and not any(named(role, [str(name)]) for role in ("item", "position"))
    }
    likely = [name for name, of in numbers.items() if of.notna().mean() > _MOSTLY]
    likely = [name for name in without_copies(likely) if numbers[name].nunique() > 2]
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
    found = columns_of_words(table)
    if not found:
        return procedure
    position = procedure.position or found["position"]
    word = found["word"] if procedure.word in ("", position) else procedure.word
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
    shared = frame.drop(columns=["model", *PREDICTED], errors="ignore")
    rows = shared[models == names[0]]
    for name in names[1:]:
        if not shared[models == name].reset_index(drop=True).equals(rows.reset_index(drop=True)):
            rule = "choose the rows of one, --filter model=NAME"
            raise BadInput(f"{table.name}: {names[0]} and {name} have different rows: {rule}")
    once = HumanTable(rows, table.name, table.procedure, table.notes)
    return once, [SurprisalSource(name, source.values[models == name]) for name in names]


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
    values = {name.lower(): name for name in columns if name.lower() in (SURPRISAL, ENTROPY)}
    shared = {name: name for name in columns if name in table.frame.columns}
    for place in ("text", "position", "word"):
        if place in columns:
            shared[getattr(table.procedure, place)] = place
    never = {*values.values(), *COMPUTED}
    shared = {name: column for name, column in shared.items() if name and column not in never}
    if SURPRISAL not in values or not shared:
        missing = f"a column of {table.name}" if values else f"a column {SURPRISAL!r}"
        raise BadInput(f"{path.name} needs {missing}; it has {', '.join(columns)}")
    keys = DataFrame({name: table.names(name) for name in shared})
    surprisals = DataFrame({name: other.names(column) for name, column in shared.items()})
    for name in shared:
        spellings = [_as_one_number(keys[name]), _as_one_number(surprisals[name])]
        if all(x is not None for x in spellings):
            keys[name], surprisals[name] = spellings
    numbers = {name: other.numbers(column) for name, column in values.items()}
    surprisals = surprisals.assign(**numbers).drop_duplicates()
    repeated = surprisals[surprisals.duplicated([*shared])]
    if len(repeated):
        row = repeated.iloc[0]
        place = ", ".join(map(str, row[[*shared]]))
        raise BadInput(f"{other.where(row.name)}: a second surprisal for {place}")
    joined = keys.merge(surprisals, how="left", on=[*shared])
    if joined[SURPRISAL].isna().all():
        raise BadInput(f"{path.name} and {table.name} have no {', '.join(shared)} in common")
    entropy = joined[ENTROPY].to_numpy() if ENTROPY in values else None
    return SurprisalSource(path.stem, joined[SURPRISAL].to_numpy(), entropy=entropy)


def _as_one_number(names: Series[str]) -> Series[float] | None:
    """Names as numbers, so that 1 is 1.0; None if some are none, or two are the same number."""
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
