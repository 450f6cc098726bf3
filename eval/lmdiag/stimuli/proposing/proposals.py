"""The options that may read the stimuli of a table of an unknown layout: only proposed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.stimuli.proposing.other_rows import other_rows
from lmdiag.stimuli.proposing.rows_of_texts import not_stimuli, rows_of_texts
from lmdiag.stimuli.proposing.shapes import candidates, texts_after_contexts
from lmdiag.stimuli.proposing.text_columns import SAMPLE, TextColumns
from lmdiag.stimuli.reading.forms import form_of
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.layouts import as_typed
from lmdiag.stimuli.values.marks import GAP, ends_open
from lmdiag.stimuli.values.names import TEXT_COLUMNS
from lmdiag.tables.table_files import Table
from lmdiag.text import DATA_SUFFIX, shortened
from lmdiag.types import BadInput, TableOptions

if TYPE_CHECKING:
    from lmdiag.stimuli.stimulus_rows import Stimuli

_PARTS = {"number", "start", "surprisal", "state"}  # of a text, as lmdiag writes them
_MOST_PROPOSED = 3
_MANY_CELLS = 1_000_000
_GAP = re.compile(GAP, re.IGNORECASE).search


class Reading(NamedTuple):
    """What options make of a table whose layout is not known.

    Attributes:
        options: beside those that the user gave.
        rows: as they are read.
    """

    options: TableOptions
    rows: Stimuli


class UnknownLayout(BadInput):
    """A table without a column of texts that are read.

    Attributes:
        table: as it is.
        columns: its columns by the names in the file.
        lacks: what is missing, e.g. "column of texts".
        other: what it has instead of stimuli, or what a row of it seems to be, if no options read
            it; None for a table of which some do.
        candidates: options that may read it, the most likely first.
        readings: what those of them read that read all of its texts, after `tried`.
        notes: of the readings, what is not known.
    """

    def __init__(self, table: Table) -> None:
        columns = own_names(table.columns)
        self._layout = TextColumns(columns)
        self.table = table
        self.columns = [*filter(None, columns)]
        self.other = not_stimuli(self._layout) or other_rows(self._layout)
        options = () if self.other else candidates(self._layout)
        self.candidates = [*dict.fromkeys(_of_source(x, table.sources) for x in options)]
        self.readings: Sequence[Reading] = ()
        has_text = "context" in columns or self._layout.gapped
        self.lacks = "column target" if has_text and not self.other else "column of texts"
        if not (self.other or self.candidates):
            self.other = rows_of_texts(self._layout)
        super().__init__(self._message())

    def tried(self, read: Callable[[TableOptions], Stimuli]) -> UnknownLayout:
        """Returns the error with what the candidates read."""
        readings: list[Reading] = []
        problems: dict[TableOptions, str] = {}
        partial: dict[TableOptions, list[str]] = {}
        for options in self.candidates:
            if unread := self._left_out(options):
                problems[options] = f"{', '.join(unread)} would not be read"
                continue
            try:
                rows = read(options)
            except BadInput as problem:
                problems[options] = str(problem).removeprefix(f"{self.table.name}: ")
                continue
            unread = self._unread(rows)
            if not unread:
                readings.append(Reading(options, rows))
                continue
            problems[options] = f"{', '.join(unread)} would not be read"
            if self._are_beside(unread, options):
                partial[options] = unread
        self.readings = readings[:_MOST_PROPOSED]
        if not readings and problems:
            self.other = rows_of_texts(self._layout, problems, partial)
        self.args = (self._message(),)
        return self

    def _left_out(self, options: TableOptions) -> list[str]:
        """The columns of texts beside many wide ones, whose rows need not be made to know them.

        There would be as many cells as the square of the columns.
        """
        others = {*self.columns} - {*options.wide}
        if len(self.table) * len(options.wide) * len(others) < _MANY_CELLS:
            return []
        named = {text.partition("=")[2] for text in options.columns}
        return [x for x in self._layout.texts_of_rows if x in others - named]

    def _unread(self, rows: Stimuli) -> list[str]:
        """The columns of texts that are not read, and of which the texts that are have no part."""
        columns = rows.columns()
        read = rows.texts(*TEXT_COLUMNS)
        never = {"good", *TEXT_COLUMNS} - ({"sentence"} if rows.asks_words else {"context"})
        texts = self._layout.texts_of_rows
        names = {x: x for x in texts if x in columns and x not in never}
        names |= {x: f"{x}{DATA_SUFFIX}" for x in texts if f"{x}{DATA_SUFFIX}" in columns}
        return [own for own, name in names.items() if not _are_parts(columns[name], read)]

    def _are_beside(self, unread: Sequence[str], options: TableOptions) -> bool:
        """Whether unread columns have other words than several that are read, as comments have."""
        read = [*options.wide, *(text.partition("=")[2] for text in options.columns)]
        texts = [name for name in read if name in self._layout.texts_of_rows]
        pairs = product(unread, texts)
        return len(read) > 1 and not any(self._layout.are_related(*pair) for pair in pairs)

    @property
    def notes(self) -> list[str]:
        """What is not known of the readings, a line each."""
        pair = self._layout.pair
        if not (pair and any(x.options.wide == pair and not x.options.good for x in self.readings)):
            return []
        good, bad = pair
        named = f"--columns sentence_good={good} sentence_bad={bad}"
        notes = [f"which of {good} and {bad} is good is not known: if it is {good}, give {named}"]
        if self._layout.verdicts:
            which = f"{self._layout.verdicts} may say which of {good} and {bad} is good in a row"
            remedy = "then write it into a column sentence_good, the other in sentence_bad"
            return [f"{which}: {remedy}"]
        return notes

    def _options(self) -> list[str]:
        return [as_typed(reading.options) for reading in self.readings]

    def _message(self) -> str:
        names = ", ".join(self.columns)
        needs = "give context and target, or a sentence, or sentence_good and sentence_bad"
        choices = self._options() or [as_typed(options) for options in self.candidates[:1]]
        hint = f"perhaps {', or '.join(choices)}"
        if self.other:
            hint = f"{'it may have ' if self.other.command else ''}{self.other.text()}"
        if self._layout.pair and not (self.other and self.other.command):
            good, bad = self._layout.pair
            remedy = f"--columns sentence_good={good} sentence_bad={bad}, or the other way round"
            needs = f"{good} and {bad} are two texts in a row: say which is good: {remedy}"
        return f"{self.table.name}: no {self.lacks}; found: {names:.800}; {needs:.400}; {hint:.900}"


def readings_with_contexts(
    columns: Mapping[str, Sequence[Any]], read: Callable[[TableOptions], Stimuli]
) -> Iterator[Reading]:
    """Yields what options read of a table with sentences, beside which contexts or words stand.

    Args:
        columns: of the file, one of which has sentences that are read by themselves.
        read: returns the rows with further options.
    """
    layout = TextColumns(columns)
    for options in () if not_stimuli(layout) else texts_after_contexts(layout):
        with suppress(BadInput):
            yield Reading(options, read(options))


def own_names(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Returns columns by the names that they have in the file; see `name_columns`."""
    own = {name: name.removesuffix(DATA_SUFFIX) for name in columns}
    return {name if own[name] in columns else own[name]: x for name, x in columns.items()}


def _of_source(options: TableOptions, sources: Mapping[str, str]) -> TableOptions:
    """Options with columns by the names that they have in the file."""

    def own(name: str, mark: str) -> str:
        column, sign, rest = name.partition(mark)
        return f"{sources.get(column, column)}{sign}{rest}"

    pairs = (text.partition("=") for text in options.columns)
    return replace(
        options,
        columns=tuple(f"{name}={sources.get(column, column)}" for name, _, column in pairs),
        wide=tuple(sources.get(name, name) for name in options.wide),
        filter=tuple(own(text, "=") for text in options.filter),
        critical=tuple(own(text, ":") for text in options.critical),
    )


def _are_parts(values: Sequence[Any], texts: Sequence[str]) -> bool:
    """Whether nine in ten values stand in a text of their rows."""
    texts_of: dict[str, list[str]] = defaultdict(list)
    for value, text in zip(values, texts, strict=True):
        texts_of[str(value or "").strip()].append(text)
    texts_of.pop("", None)
    inside = [any(value in text for text in of_value) for value, of_value in texts_of.items()]
    return 10 * sum(inside) >= 9 * len(inside)


def check_layout(table: Table) -> None:
    """Raises `UnknownLayout` for a table in which no column has texts and something is known."""
    columns = table.columns
    if columns.keys() >= _PARTS:
        what = "a row is a region or a word of `lmdiag items --per`, which `lmdiag analyse` reads"
        raise BadInput(f"{table.name}: {what}; `lmdiag items` without it writes a row per text")
    form = table.form or form_of(columns, table.chosen.keys() & columns.keys())
    is_alone = "sentence" in columns and "target" not in columns and "sentence" not in table.chosen
    if form == "sentences" and not table.form and is_alone and _lack_words(columns["sentence"]):
        form = ""
    if not len(table) or form or {"context", "target"} <= columns.keys():
        return
    unknown = UnknownLayout(table)
    if unknown.other or unknown.candidates:
        raise unknown
    _refuse_unfit_texts(table)


def _lack_words(sentences: Sequence[Any]) -> bool:
    """Whether sentences have the marker of a missing word, or all end in an ellipsis."""
    values = values_of(sentences)
    are_open = len(values.levels) > 1 and all(map(ends_open, values.levels))
    is_marked = any(_GAP(text) for text in values.levels[:SAMPLE])
    return are_open or is_marked or values.are_underscored


def _refuse_unfit_texts(table: Table) -> None:
    """Refuses a table in which columns that are named as texts have values of another kind."""
    for name, values in table.columns.items():
        column = name.removesuffix(DATA_SUFFIX)
        if name != column and column in TEXT_COLUMNS:
            example = shortened(next((str(value) for value in values if value), ""), 40)
            problem = f"no column of texts: {column} has values of another kind, as {example!r}"
            remedy = f"--columns {column}={column} reads them as they are"
            raise BadInput(f"{table.name}: {problem}; {remedy}")
