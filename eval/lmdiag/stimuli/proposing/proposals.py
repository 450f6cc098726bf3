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

_COLUMNS_OF_PARTS = {"number", "start", "surprisal", "state"}  # of a text, as lmdiag writes them
_MOST_PROPOSED = 3  # readings that are shown
_MANY_CELLS = 1_000_000  # of a table with a row for each wide column, which take too long to make
_find_gap = re.compile(GAP, re.IGNORECASE).search


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
        readings: of those candidates that read all of its texts; made by `with_readings`.
        notes: of the readings, what is not known.
    """

    def __init__(self, table: Table) -> None:
        """Finds what the table has instead of texts, or else the options that may read it."""
        columns = own_names(table.columns)
        self._layout = TextColumns(columns)
        self.table = table
        self.columns = [name for name in columns if name]
        self.other = not_stimuli(self._layout) or other_rows(self._layout)
        options = () if self.other else candidates(self._layout)
        options_of_file = (_with_source_names(x, table.sources) for x in options)
        self.candidates = [*dict.fromkeys(options_of_file)]
        self.readings: Sequence[Reading] = ()
        has_text = "context" in columns or self._layout.gapped
        self.lacks = "column target" if has_text and not self.other else "column of texts"
        if not (self.other or self.candidates):
            self.other = rows_of_texts(self._layout)
        super().__init__(self._message())

    def with_readings(self, read: Callable[[TableOptions], Stimuli]) -> UnknownLayout:
        """Returns the error after each of the candidates was tried: with its readings and message.

        Args:
            read: returns the rows of the table with some options, or raises `BadInput`.
        """
        readings: list[Reading] = []
        problems: dict[TableOptions, str] = {}  # why options do not read the table
        partial: dict[TableOptions, list[str]] = {}  # what options leave unread, as comments
        for options in self.candidates:
            if unread := self._unread_beside_many(options):
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
            if self._are_unrelated(unread, options):
                partial[options] = unread
        self.readings = readings[:_MOST_PROPOSED]
        if not readings and problems:
            self.other = rows_of_texts(self._layout, problems, partial)
        self.args = (self._message(),)
        return self

    def _unread_beside_many(self, options: TableOptions) -> list[str]:
        """The columns of texts that options with many wide columns do not name.

        A table with a row for each wide column has as many cells as rows times wide columns times
        other columns, and takes too long to make if these are millions. Columns that the options do
        not name stay unread in any case. [] for tables that are small enough to be read.
        """
        other_columns = {*self.columns} - {*options.wide}
        n_cells = len(self.table) * len(options.wide) * len(other_columns)
        if n_cells < _MANY_CELLS:
            return []
        columns_read = {text.partition("=")[2] for text in options.columns}
        unread = other_columns - columns_read
        return [name for name in self._layout.texts_of_rows if name in unread]

    def _unread(self, rows: Stimuli) -> list[str]:
        """The columns of texts that the model does not read, also not as a part of another text.

        A column of critical words, for example, is a part of the sentences.
        """
        columns = rows.columns()
        texts_read = rows.texts(*TEXT_COLUMNS)
        # a model reads contexts, or sentences
        unread_name = "sentence" if rows.asks_words else "context"
        names_read = {"good", *TEXT_COLUMNS} - {unread_name}
        texts = self._layout.texts_of_rows
        # column of the file -> its name among the rows: NAME_data where NAME is another column
        names = {x: x for x in texts if x in columns and x not in names_read}
        names |= {x: f"{x}{DATA_SUFFIX}" for x in texts if f"{x}{DATA_SUFFIX}" in columns}
        return [x for x, name in names.items() if not _are_parts(columns[name], texts_read)]

    def _are_unrelated(self, unread: Sequence[str], options: TableOptions) -> bool:
        """Whether unread columns have other words than the columns that options read.

        Such columns may be comments, and the options are then worth showing though they do not read
        all texts. False where options read only one column, with which nothing can be compared.
        """
        columns_read = [*options.wide, *(text.partition("=")[2] for text in options.columns)]
        if len(columns_read) < 2:
            return False
        texts = [name for name in columns_read if name in self._layout.texts_of_rows]
        pairs = product(unread, texts)
        return not any(self._layout.are_related(first, second) for first, second in pairs)

    @property
    def notes(self) -> list[str]:
        """What is not known of the readings, a line each: which sentence of a pair is good."""
        pair = self._layout.pair
        options = [reading.options for reading in self.readings]
        # a reading of both as conditions, by --wide without --good, does not say which is good
        if not pair or not any(x.wide == pair and not x.good for x in options):
            return []
        good, bad = pair
        if self._layout.verdicts:
            which = f"{self._layout.verdicts} may say which of {good} and {bad} is good in a row"
            remedy = "then write it into a column sentence_good, the other in sentence_bad"
            return [f"{which}: {remedy}"]
        named = f"--columns sentence_good={good} sentence_bad={bad}"
        return [f"which of {good} and {bad} is good is not known: if it is {good}, give {named}"]

    def _message(self) -> str:
        """The error in one line: what is missing, what is there, and which options may help."""
        names = ", ".join(self.columns)
        needs = "give context and target, or a sentence, or sentence_good and sentence_bad"
        proposed = [reading.options for reading in self.readings] or self.candidates[:1]
        hint = f"perhaps {', or '.join(map(as_typed, proposed))}"
        if self.other:  # a command that may read it, or why none does
            hint = f"it may have {self.other.text()}" if self.other.command else self.other.text()
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
    if not_stimuli(layout):
        return
    for options in texts_after_contexts(layout):
        with suppress(BadInput):
            yield Reading(options, read(options))


def own_names(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Returns columns by the names that they have in the file, without an added `_data`.

    >>> own_names({"item": ["1"], "sentence_data": ["a"]})
    {'item': ['1'], 'sentence': ['a']}
    """
    values_of_name = {}
    for name, values in columns.items():
        own_name = name.removesuffix(DATA_SUFFIX)
        is_taken = own_name in columns
        values_of_name[name if is_taken else own_name] = values
    return values_of_name


def _with_source_names(options: TableOptions, sources: Mapping[str, str]) -> TableOptions:
    """Options that name columns as the file does.

    For example, --columns context=sentence becomes --columns context=Sentence where the file has a
    column `Sentence`, which is read as `sentence`.

    Args:
        options: that name columns by the names that are read.
        sources: name that is read -> name in the file, where it is another one.
    """

    def renamed(text: str, mark: str = "") -> str:
        """A text that begins with the name of a column, which goes up to a mark or to its end."""
        column, sign, rest = text.partition(mark) if mark else (text, "", "")
        return f"{sources.get(column, column)}{sign}{rest}"

    pairs = (text.partition("=") for text in options.columns)
    return replace(
        options,
        columns=tuple(f"{name}={renamed(column)}" for name, _, column in pairs),
        wide=tuple(renamed(name) for name in options.wide),
        filter=tuple(renamed(text, "=") for text in options.filter),
        critical=tuple(renamed(text, ":") for text in options.critical),
    )


def _are_parts(values: Sequence[Any], texts: Sequence[str]) -> bool:
    """Whether nine in ten distinct values are a part of the text of one of their rows.

    For example, True for the values ["dog", "cat"] of the texts ["The dog barks.", "A cat sat."].

    Args:
        values: (n rows,); empty ones do not count.
        texts: (n rows,).
    """
    texts_of: dict[str, list[str]] = defaultdict(list)  # value -> the texts of its rows
    for value, text in zip(values, texts, strict=True):
        texts_of[str(value or "").strip()].append(text)
    texts_of.pop("", None)
    n_parts = sum(any(value in text for text in rows) for value, rows in texts_of.items())
    return n_parts >= 0.9 * len(texts_of)


def check_layout(table: Table) -> None:
    """Raises `UnknownLayout` for a table without known texts, if something can be said about it.

    Texts are known where the table has a form, or contexts and targets. Sentences with gaps have no
    form unless there are target words.
    """
    columns = table.columns
    if columns.keys() >= _COLUMNS_OF_PARTS:
        what = "a row is a region or a word of `lmdiag items --per`, which `lmdiag analyse` reads"
        raise BadInput(f"{table.name}: {what}; `lmdiag items` without it writes a row per text")
    form = table.form or form_of(columns, table.chosen.keys() & columns.keys())
    if form == "sentences" and not table.form:  # by the names of the columns alone
        may_have_gaps = "sentence" in columns and "target" not in columns
        is_chosen = "sentence" in table.chosen
        if may_have_gaps and not is_chosen and _lack_words(columns["sentence"]):
            form = ""
    if not len(table) or form or {"context", "target"} <= columns.keys():
        return
    unknown = UnknownLayout(table)
    if unknown.other or unknown.candidates:  # it has something else, or options may read it
        raise unknown
    _refuse_unfit_texts(table)


def _lack_words(sentences: Sequence[Any]) -> bool:
    """Whether some sentences have the marker of a missing word, or all end in an ellipsis.

    All may also have one underscore each, which then is the marker.
    """
    values = values_of(sentences)
    are_open = len(values.levels) > 1 and all(map(ends_open, values.levels))
    have_gaps = any(map(_find_gap, values.levels[:SAMPLE]))
    return are_open or have_gaps or values.are_underscored


def _refuse_unfit_texts(table: Table) -> None:
    """Refuses a table in which columns that are named as texts have values of another kind.

    The reader has renamed them: `sentence_data` is a column `sentence` of numbers, for example.
    """
    for name, values in table.columns.items():
        column = name.removesuffix(DATA_SUFFIX)
        if name != column and column in TEXT_COLUMNS:
            example = shortened(next((str(value) for value in values if value), ""), 40)
            problem = f"no column of texts: {column} has values of another kind, as {example!r}"
            remedy = f"--columns {column}={column} reads them as they are"
            raise BadInput(f"{table.name}: {problem}; {remedy}")
