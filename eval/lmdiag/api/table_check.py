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
"""Characters of a line, which the name of a column may exceed."""

READ_AS = ("sentence", "context", "target", "right_context", "sentence_good", "sentence_bad")
"""Known names of columns of texts."""

_NAMED = {
    "cloze": (*READ_AS, "response"),
    "surprisal": ("text", "position", "word"),
    "analyse": (),
}
"""Command -> the uses of columns that it reads by `columns`; other commands read texts."""

_REMEDY = re.compile(r"--(filter|split|critical|separator|gap) ('[^']+'|[^\s'][^\s;,]*)")
"""An option with one value, in a message."""

_REMEDIES = {
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
        lacks: what is missing of stimuli, e.g. "column of texts"; "" where they are read.
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
        other: what its rows are, if not stimuli, or not stimuli alone, and which command reads it.
        others: further commands that read it, as they are typed, after what they are for.
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
        """The options as they are typed."""
        return " ".join(filter(None, (as_typed(self.options), as_typed(self.design))))

    # ---- options that read the table in another way ----------------------------------------------

    def given(self) -> dict[str, Any]:
        """Returns the options by which the table is read, as keywords of `lmdiag.check`."""
        return {**self.options.stored(), **self.design.stored()}

    def with_uses(self, uses: Mapping[str, str]) -> dict[str, Any]:
        """Returns the options that read the table with other uses of columns.

        What was found without an option, and is not changed, stays without one.

        Args:
            uses: column -> its use; other columns are used as they were found.

        >>> import lmdiag
        >>> rows = {"nr": [1, 1], "number": ["sg", "pl"], "text": ["A hen ran.", "Two hens ran."]}
        >>> lmdiag.check(rows).with_uses({"text": "sentence", "nr": "item"})
        {'columns': ['sentence=text', 'item=nr']}
        """
        use_before = {column.name: column.use for column in self.columns if not column.is_made}
        use_now = {**use_before, **uses}
        names: dict[str, list[str]] = {use: [] for use in use_now.values()}
        for name, use in use_now.items():
            if name in use_before:
                names[use].append(name)
        moved = [name for name, use in use_before.items() if use_now[name] != use]
        # both the uses that a column had and those that it has now need an option
        changed_uses = {use_before[name] for name in moved} | {use_now[name] for name in moved}
        options = self.given()
        if changed_uses & {*self._named_uses(changed_uses), "item"}:
            options["columns"] = [*self._column_options(names, changed_uses)]
        items = names.get("item", [])
        if "item" in changed_uses and len(items) > 1:
            options["item"] = items
        if "condition" in changed_uses:
            made = [name for name in self.conditions if name not in use_before]
            options["conditions"] = [*names.get("condition", ()), *made]
        for use in changed_uses & {"wide", "critical"}:
            options[use] = names.get(use)
        return {name: value for name, value in options.items() if value}

    def _named_uses(self, changed: Container[str]) -> tuple[str, ...]:
        """The uses of columns that the command for the table reads by `columns`.

        Those of a table of words are read of each table, which makes it one.
        """
        uses = _NAMED.get(self.command, (*READ_AS, "region"))
        return (*uses, *(x for x in _NAMED["surprisal"] if x in changed and x not in uses))

    def _column_options(
        self, names: Mapping[str, list[str]], changed: Container[str]
    ) -> Iterator[str]:
        """The values of the option `columns`: what is changed, and names of the user."""
        for use in (*self._named_uses(changed), "item"):
            columns = names.get(use, [])
            if use == "region":
                yield from [f"region={columns[0]}..{columns[-1]}"] if columns else []
            elif use != "item" or use not in changed or len(columns) == 1:
                yield from (f"{use}={x}" for x in columns if use in changed or use != folded(x))

    def proposed(self) -> list[Remedy]:
        """Returns what the proposals say that may be done."""
        design = self.design.stored()
        return [
            Remedy(f"Read it as: {proposal.rows[0]}", {**design, **proposal.options.stored()})
            for proposal in self.proposals
            if proposal.rows
        ]

    def remedies(self, line: str) -> list[Remedy]:
        """Returns what a warning or an error, with options as typed, says that may be done."""
        given = self.given()
        found = []
        for option, value in _REMEDY.findall(line):
            (text,) = shlex.split(value)
            values = [*given.get(option, ()), text] if option in ("filter", "split") else text
            found.append(Remedy(_REMEDIES[option].format(text), {**given, option: values}))
        return found

    # ---- printing --------------------------------------------------------------------------------

    def __str__(self) -> str:
        return "\n".join(truncated(visible(line), _LONGEST_LINE) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        """Yields what is printed."""
        if self.error:
            yield f"error: {self.error}"
            return
        form = f"rows without a {self.lacks}" if self.lacks else self.form
        yield f"{self.task}: {self.n_rows:,} {form}"
        if self.lacks:
            yield f"columns     {', '.join(x.name for x in self.columns if not x.is_made)}"
            yield from [f"perhaps     {self.other}"] if self.other else []
        yield from self._proposal_lines()
        yield from map(_labelled, self.notes)
        yield from (f"reads       {row}" for row in self.reads)
        yield from [f"texts       {self.texts}"] if self.texts else []
        yield from [f"response    {self.response}"] if self.command == "analyse" else []
        if self.n_contrasts:
            yield f"compared    {self.n_contrasts:,} contrasts of good and bad rows"
        yield from [f"items       {self.n_items:,}"] if self.n_items else []
        yield from self._design_lines()
        yield from (f"warning: {line}" for line in self.warnings)
        yield from map(_labelled, self.others)
        yield from [f"perhaps     {self.other}"] if self.other and not self.lacks else []
        yield from (f"bytes       {line}" for line in self.tokens)

    def _proposal_lines(self) -> Iterator[str]:
        for number, proposal in enumerate(self.proposals):
            typed = " ".join(filter(None, (proposal.typed, as_typed(self.design))))
            command = f"lmdiag run {shlex.quote(self.file)} --model M {typed}"
            yield f"{'or' if number else 'proposed':<11} {command}"
            yield from (f"reads       {row}" for row in proposal.rows)
            yield from [f"then        {proposal.summary}"] if proposal.summary else []
            yield from (f"warning: {note}" for note in proposal.notes)

    def _design_lines(self) -> Iterator[str]:
        """Yields conditions, their cells, and what other columns are."""
        of_name = {column.read_as or column.name: column for column in self.columns}
        for name in self.conditions:
            levels = of_name[name].levels.items()
            yield f"condition   {name}: {', '.join(f'{level} ({n} rows)' for level, n in levels)}"
        if self.cells:
            yield f"cells       {' x '.join(self.conditions)}: {self.n_complete:,} items have all"
        for cell, (n_items, n_rows) in self.cells.items():
            yield f"            {cell}: {n_items:,} items, {n_rows:,} rows"
        yield from (f"column      {x.name}: {x.why}" for x in self.columns if x.why)
        if self.comparing:
            yield f"or          {self.comparing} compares good and bad rows"


def _labelled(note: str) -> str:
    """A note with its first word in a column of its own."""
    step, _, text = note.partition(": ")
    return f"{step:<11} {text}"
