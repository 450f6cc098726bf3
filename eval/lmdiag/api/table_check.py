"""The record of `lmdiag.check`: how a table is read, and options that read it in another way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmdiag.stimuli.values.layouts import as_typed
from lmdiag.text import folded, truncated, visible
from lmdiag.types import AS_IT_IS, FactorOptions, TableOptions

_LONGEST_LINE = 4_000
"""Characters of a printed line; a name of a column alone may have more."""

READ_AS = ("sentence", "context", "target", "right_context", "sentence_good", "sentence_bad")
"""Known names of columns of texts."""

_USES_IN_COLUMNS_OPTION = {
    "cloze": (*READ_AS, "response"),
    "surprisal": ("text", "position", "word"),
    "analyse": (),
}
"""Command -> the uses that its option `columns` can give to columns, as in `word=ia`.

For other commands, these are the texts and regions.
"""

_OPTION_WITH_VALUE = re.compile(r"--(filter|split|critical|separator|gap) ('[^']+'|[^\s'][^\s;,]*)")
"""An option of these with one value, as it is typed in a message: its name, and its value."""

_REMEDY_TEXTS = {
    "filter": "Keep only the rows with {}",
    "split": "Divide a column: {}",
    "critical": "Read {} as the critical word",
    "separator": "Divide the sentences at {}",
    "gap": "Read {} as the gap",
}
"""Option -> what it does with its value."""


@dataclass(frozen=True)
class CheckedColumn:
    """What a column is used for.

    Attributes:
        name: in the file; of a column that an option makes, as `condition` of wide ones, its own.
        use: a known name of a text (`sentence`, `context`, `target` ...), `item`, `condition`,
            `region`, `critical`, `wide`, `response`, `word`, `position`, `text`, `reader`, `list`,
            `covariate`, `break-down`, or `not used`.
        why: the same in words; "" for texts, items and conditions.
        values: its first three distinct values.
        problems: the warnings and errors that name it.
        levels: of a condition: level -> number of rows.
        read_as: its name in lmdiag, where it has another one there.
        is_made: whether an option makes it.
    """

    name: str
    use: str
    why: str = ""
    values: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    read_as: str = ""
    is_made: bool = False


@dataclass(frozen=True)
class Proposal:
    """Options that may read a table.

    Attributes:
        options: all options, with those that were given.
        rows: the first row as models would read it, of pairs the good and the bad one.
        summary: what its columns would be used for.
        notes: what is a guess, a line each.
    """

    options: TableOptions
    rows: tuple[str, ...]
    summary: str
    notes: tuple[str, ...] = ()

    @property
    def typed(self) -> str:
        """The options as they are typed."""
        return as_typed(self.options)


class Remedy(NamedTuple):
    """Options that read a table in another way.

    Attributes:
        text: what they do, in words.
        options: all options of the table, as keywords of `lmdiag.check`.
    """

    text: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class TableCheck:
    """How a table is read; printed, it is what `lmdiag check` prints.

    Attributes:
        file: as it was named; "rows" for rows in memory.
        task: name of the rows.
        command: which reads it: run, cloze, surprisal or analyse; "" for none.
        options: how it is read, with those that name the columns of words and responses.
        design: its conditions and items, as far as they were given.
        response: column of the response, of a table of responses or words.
        columns: of the file in their order, then those that options make.
        n_rows: number of rows, of texts that are read the number of texts.
        form: what a row is, in words.
        lacks: what a table of stimuli needs and this one does not have, e.g. "column of texts"; ""
            if stimuli are read.
        first_rows: the first five rows of the file as texts, by column.
        reads: the first row as models read it, of pairs the good and the bad one.
        summary: one line: the rows, the conditions with their levels, the other columns.
        notes: how rows and columns were read, "STEP: text" each.
        texts: what is read: columns of texts, or the number of texts of a table of words.
        n_items: number of items; 0 without any.
        n_contrasts: number of pairs that are compared; 0 without any.
        conditions: their names, in the order of the cells.
        cells: cell of the crossed conditions -> number of items and of rows.
        n_complete: number of items with all cells.
        regions: number of a region -> its text in the first row that has one; empty where a
            critical word is read.
        comparing: options that compare good rows with bad ones; "" for none.
        warnings: what looks wrong, a line each.
        error: why it is not read, and what to do; "" if it is.
        other: what its rows are if they are not stimuli, or not only stimuli, and which command
            reads it; "" for stimuli.
        others: further commands that read it, as they are typed, each after what it is for and a
            colon.
        proposals: options that may read it, the most likely first.
        tokens: how the tokenizer of a model splits the texts, a line each.
    """

    file: str
    task: str
    command: str = "run"
    options: TableOptions = AS_IT_IS
    design: FactorOptions = field(default_factory=FactorOptions)
    response: str = ""
    columns: tuple[CheckedColumn, ...] = ()
    n_rows: int = 0
    form: str = "rows"
    lacks: str = ""
    first_rows: tuple[Mapping[str, str], ...] = ()
    reads: tuple[str, ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = ()
    texts: str = ""
    n_items: int = 0
    n_contrasts: int = 0
    conditions: tuple[str, ...] = ()
    cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    n_complete: int = 0
    regions: Mapping[str, str] = field(default_factory=dict)
    comparing: str = ""
    warnings: tuple[str, ...] = ()
    error: str = ""
    other: str = ""
    others: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    tokens: tuple[str, ...] = ()

    @property
    def typed(self) -> str:
        """The options as they are typed, for example "--columns sentence=text --item nr"."""
        return " ".join(filter(None, (as_typed(self.options), as_typed(self.design))))

    # ---- options that read the table in another way ----------------------------------------------

    def given(self) -> dict[str, Any]:
        """Returns the options by which the table is read, as keywords of `lmdiag.check`.

        Options that have their default are left out. For example, {"columns": ("sentence=text",),
        "item": ("nr",)} for a table that was read with --columns sentence=text --item nr.
        """
        return {**self.options.stored(), **self.design.stored()}

    def with_uses(self, uses: Mapping[str, str]) -> dict[str, Any]:
        """Returns the options that read the table with other uses of columns.

        Columns that were recognised without an option, and whose use is not changed, get none.

        Args:
            uses: column -> its new use; other columns keep their use.

        >>> import lmdiag
        >>> rows = {"nr": [1, 1], "number": ["sg", "pl"], "text": ["A hen ran.", "Two hens ran."]}
        >>> lmdiag.check(rows).with_uses({"text": "sentence", "nr": "item"})
        {'columns': ['sentence=text', 'item=nr']}
        """
        use_before = {column.name: column.use for column in self.columns if not column.is_made}
        use_now = {**use_before, **uses}
        columns_of_use: dict[str, list[str]] = {use: [] for use in use_now.values()}
        for name, use in use_now.items():
            if name in use_before:
                columns_of_use[use].append(name)
        # The options of a use name all its columns. So they change for the use that a column had
        # before, which has a column less, and for the use that it has now.
        changed_uses = set[str]()
        for name, use in use_before.items():
            if use_now[name] != use:
                changed_uses |= {use, use_now[name]}
        options = self.given()
        if changed_uses & {*self._uses_in_columns_option(changed_uses), "item"}:
            options["columns"] = [*self._columns_option(columns_of_use, changed_uses)]
        items = columns_of_use.get("item", [])
        if "item" in changed_uses and len(items) > 1:
            options["item"] = items
        if "condition" in changed_uses:
            made_conditions = [name for name in self.conditions if name not in use_before]
            options["conditions"] = [*columns_of_use.get("condition", ()), *made_conditions]
        for use in changed_uses & {"wide", "critical"}:
            options[use] = columns_of_use.get(use)  # None or [] if no column has the use any more
        # an option without a value is left out
        return {name: value for name, value in options.items() if value}

    def _uses_in_columns_option(self, changed_uses: Container[str]) -> tuple[str, ...]:
        """Returns the uses that the option `columns` can give to columns of this table.

        Among `changed_uses`, word, position and text are always possible: they make any table a
        table of words.
        """
        uses = _USES_IN_COLUMNS_OPTION.get(self.command, (*READ_AS, "region"))
        uses_of_words = [
            use
            for use in _USES_IN_COLUMNS_OPTION["surprisal"]
            if use in changed_uses and use not in uses
        ]
        return (*uses, *uses_of_words)

    def _columns_option(
        self, columns_of_use: Mapping[str, list[str]], changed_uses: Container[str]
    ) -> Iterator[str]:
        """Yields the values of the option `columns`, for example "sentence=text".

        A column has a value if its use is changed, or if it does not have the name of its use.

        Args:
            columns_of_use: use -> the names of the columns that have it now.
            changed_uses: the uses that some column had before or has now.
        """
        for use in (*self._uses_in_columns_option(changed_uses), "item"):
            columns = columns_of_use.get(use, [])
            if use == "region":
                if columns:
                    yield f"region={columns[0]}..{columns[-1]}"
                continue
            if use == "item" and use in changed_uses and len(columns) > 1:
                continue  # several columns of items are the option `item`
            for name in columns:
                if use in changed_uses or use != folded(name):
                    yield f"{use}={name}"

    def proposed(self) -> list[Remedy]:
        """Returns the options of each proposal that has a first row, with a text for a button."""
        design = self.design.stored()
        return [
            Remedy(f"Read it as: {proposal.rows[0]}", {**design, **proposal.options.stored()})
            for proposal in self.proposals
            if proposal.rows
        ]

    def remedies(self, line: str) -> list[Remedy]:
        """Returns the options that a warning or an error names as a remedy, in their order.

        For example, "3 items are fillers: leave them out by --filter number!=filler" gives the text
        "Keep only the rows with number!=filler" and all options of the table with this filter.
        """
        given = self.given()
        remedies = []
        for option, typed_value in _OPTION_WITH_VALUE.findall(line):
            (value,) = shlex.split(typed_value)  # 'a b' without its quotation marks
            takes_several = option in ("filter", "split")
            values = [*given.get(option, ()), value] if takes_several else value
            text = _REMEDY_TEXTS[option].format(value)
            remedies.append(Remedy(text, {**given, option: values}))
        return remedies

    # ---- printing --------------------------------------------------------------------------------

    def __str__(self) -> str:
        """Returns the lines that `lmdiag check` prints."""
        return "\n".join(truncated(visible(line), _LONGEST_LINE) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        """Yields the lines that are printed: a word for what a line is about, then its text.

        For example "items       24". If no stimuli are read from the table (`lacks` is not ""), the
        lines have its columns, what its rows may be, and proposals. Otherwise they have what is
        read. A field that does not apply is empty in the record, and has no line.
        """
        if self.error:
            yield f"error: {self.error}"
            return
        form = f"rows without a {self.lacks}" if self.lacks else self.form
        yield f"{self.task}: {self.n_rows:,} {form}"
        if self.lacks:
            yield f"columns     {', '.join(x.name for x in self.columns if not x.is_made)}"
            if self.other:
                yield f"perhaps     {self.other}"
        yield from self._proposal_lines()
        yield from map(_labelled, self.notes)
        yield from (f"reads       {row}" for row in self.reads)
        if self.texts:
            yield f"texts       {self.texts}"
        if self.command == "analyse":
            yield f"response    {self.response}"
        if self.n_contrasts:
            yield f"compared    {self.n_contrasts:,} contrasts of good and bad rows"
        if self.n_items:
            yield f"items       {self.n_items:,}"
        yield from self._design_lines()
        yield from (f"warning: {line}" for line in self.warnings)
        yield from map(_labelled, self.others)
        if self.other and not self.lacks:
            yield f"perhaps     {self.other}"
        yield from (f"bytes       {line}" for line in self.tokens)

    def _proposal_lines(self) -> Iterator[str]:
        """Yields lines for each proposal: its command, first row, uses of columns, and guesses.

        The first proposal is labelled "proposed", the others "or".
        """
        for number, proposal in enumerate(self.proposals):
            typed = " ".join(filter(None, (proposal.typed, as_typed(self.design))))
            label = "or" if number else "proposed"
            yield f"{label:<11} lmdiag run {shlex.quote(self.file)} --model M {typed}"
            yield from (f"reads       {row}" for row in proposal.rows)
            if proposal.summary:
                yield f"then        {proposal.summary}"
            yield from (f"warning: {note}" for note in proposal.notes)

    def _design_lines(self) -> Iterator[str]:
        """Yields the conditions with their levels, the cells of the design, and other columns."""
        columns = {column.read_as or column.name: column for column in self.columns}
        for name in self.conditions:
            levels = [f"{level} ({n} rows)" for level, n in columns[name].levels.items()]
            yield f"condition   {name}: {', '.join(levels)}"
        if self.cells:
            yield f"cells       {' x '.join(self.conditions)}: {self.n_complete:,} items have all"
        for cell, (n_items, n_rows) in self.cells.items():
            yield f"            {cell}: {n_items:,} items, {n_rows:,} rows"
        yield from (f"column      {x.name}: {x.why}" for x in self.columns if x.why)
        if self.comparing:
            yield f"or          {self.comparing} compares good and bad rows"


def _labelled(note: str) -> str:
    """Returns a note "STEP: text" with the step in a column of its own, 11 characters wide.

    >>> _labelled("filter: 3 rows left out")
    'filter      3 rows left out'
    """
    step, _, text = note.partition(": ")
    return f"{step:<11} {text}"
