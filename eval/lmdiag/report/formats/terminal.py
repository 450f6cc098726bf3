"""The tables of a result on a terminal and in a notebook, and what is printed of a new run."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmdiag.report import numbers
from lmdiag.report.grid import HEADING, PUBLISHED, Grid, fitted, signs, wrapped
from lmdiag.report.output import Output, Section
from lmdiag.results import CHANCE_SIGNS
from lmdiag.text import visible

_MOST_ROWS = 500
"""Rows of a table that are printed: 200 conditions have 19,900 differences."""

_CSV = "--format csv, or to_frame() in Python,"
"""What gives all rows."""

_MEASURE = re.compile(r"[a-z_]+@[\d.]+")
"""Matches a measure in a heading, which is not divided."""

_NARROW = 18
_UNLIMITED = 10_000
"""Characters that the label of a row keeps where there is little room; characters of a line where
the output is not a terminal."""


def output_console(file: IO[str] | None = None) -> Console:
    """Returns a console for standard output; output that is redirected is as wide as it needs.

    With a file, what is for standard output goes there.
    """
    is_limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if is_limited else _UNLIMITED
    return Console(file=file, highlight=False, width=width)


def _with_smaller_tables(section: Section, console: Console) -> Section:
    """The section without published columns and with shorter intervals where it does not fit."""
    grids = []
    lines = dict[str, None]()
    for grid in section.tables:
        if not _is_whole(grid, console):
            grid, smaller_lines = _smaller(grid, console)
            lines |= dict.fromkeys(smaller_lines)
        grids.append(grid)
    return section._replace(tables=grids, remarks=[*section.remarks, *lines])


def _is_whole(grid: Grid, console: Console) -> bool:
    """Whether a table fits undivided, with its intervals beside the figures."""
    parts = _parts_that_fit(grid, console)
    return len(parts) == 1 and parts[0].is_beside


def _smaller(grid: Grid, console: Console) -> tuple[Grid, list[str]]:
    """A table without published columns, and if need be with shorter intervals, and what it lacks.

    Chance levels then stand in a line below the table.
    """
    lines = []
    names = [heading.label for heading in grid.headings]
    columns = [i for i, name in enumerate(names) if not name.endswith(PUBLISHED)]
    if len(columns) < len(names):
        lines.append(f"{PUBLISHED} figures of other models: in a wider terminal, and on the page")
    smaller = grid.of_columns(columns)
    if _is_whole(smaller, console) or not smaller.is_percent:
        return smaller, lines
    smaller = grid.of_columns([i for i in columns if names[i] != "chance"])
    rows = []
    for row in smaller.rows:
        cells = (cell._replace(interval=numbers.whole_bounds(cell.figure)) for cell in row.cells)
        rows.append(row._replace(cells=tuple(cells)))
    lines.append("beside each figure: its 95% interval, rounded to whole percent")
    if levels := smaller.chance_levels:
        lines.append(f"chance: {levels}")
    return smaller._replace(rows=tuple(rows)), lines


def render(output: Output, width: float) -> str:
    """Returns all tables as a terminal shows them, without colours."""
    print_output(output, output_console(file := io.StringIO()))
    return "\n".join(line.rstrip() for line in file.getvalue().strip("\n").splitlines()) + "\n"


def recorded(output: Output) -> Console:
    """Returns a console with what is shown in Python: lines of at most 100 characters."""
    file = io.StringIO()  # in a notebook, rich would also display what is only recorded here
    console = Console(file=file, record=True, width=100, highlight=False, force_jupyter=False)
    print_output(output, console)
    return console


def print_output(
    output: Output, console: Console | None = None, *, is_undivided: bool = False
) -> None:
    """Prints warnings, facts, findings and all tables; standard output by default.

    Tables that must stay undivided lose published columns, then digits of intervals.
    """
    console = console or output_console()
    _print_lines(output.warnings, console, "bold")
    for fact in output.facts:
        console.print()
        _print_lines([fact.name], console, "bold", wrap=True)
        _print_lines(fact.lines, console, wrap=True)
    if output.findings:
        console.print()
    _print_lines(output.findings, console, "bold", wrap=True)
    for section in output.sections:
        if section.grids or section.remarks or section.signatures:
            shown = section._replace(tables=section.grids, further=())
            print_section(_with_smaller_tables(shown, console) if is_undivided else shown, console)


# ---- what all of them print ----------------------------------------------------------------------


def _print_lines(
    lines: Iterable[str], console: Console, style: str = "dim", *, wrap: bool = False
) -> None:
    """Prints lines of text.

    Args:
        wrap: whether rich wraps them at blanks; a terminal wraps others itself, anywhere.
    """
    for line in lines:  # a terminal wraps them itself, a recorded page of a notebook does not
        text = Text(visible(line), style=style)
        console.print(text, soft_wrap=not (wrap or console.record))


def print_section(section: Section, console: Console) -> None:
    """Prints tables, each in as many parts as its width needs, and lines below them.

    What a sign means stands below the first table that has it, if others follow.
    """
    is_repeated = len(section.tables) == 1 and section.tables[0].title == section.title
    if section.title and not is_repeated:
        console.print()
        _print_lines([section.title], console, "bold", wrap=True)
    meanings = {line[0]: line for line in signs(section.tables) if line in section.remarks}
    lines = [line for line in section.remarks if line not in meanings.values()]
    for grid in section.tables:
        console.print()
        if grid.title or grid.unit:
            source = f"  {grid.source}" if grid.source else ""
            console.print(Text(visible(f"{grid.title}{grid.unit}")).append(source, style="dim"))
        for part in _parts_that_fit(grid._replace(rows=grid.rows[:_MOST_ROWS]), console):
            console.print(_rich_table(part))
        new_signs = [line[0] for line in signs([grid]) if line[0] in meanings]
        sign_lines = [meanings.pop(sign) for sign in new_signs]
        if grid is section.tables[-1]:
            lines = [*sign_lines, *lines]
        elif sign_lines:
            console.print()
            _print_lines(sign_lines, console)
        if len(grid.rows) > _MOST_ROWS:
            title = f"{grid.title}: " if grid.title else ""
            lines.append(
                f"{title}the first {_MOST_ROWS} of {len(grid.rows):,} rows; {_CSV} has all"
            )
    if lines := [*lines, *filter(None, section.signatures)]:
        console.print()
        _print_lines(lines, console)


def _parts_that_fit(grid: Grid, console: Console) -> list[Grid]:
    """The table if it fits, or parts of its columns that each fit."""
    unlimited = console.options.update(max_width=_UNLIMITED)

    def needed(part: Grid) -> float:
        return console.measure(_rich_table(part), options=unlimited).maximum

    return fitted(grid, console.width, needed, _NARROW, wraps_first=True)


def _rich_table(grid: Grid) -> Table:
    """Returns a grid as a table of rich.

    Columns of figures never wrap: their headings do, to the width of the widest cell, though
    not within the name of a measure. Labels wrap where the page is narrow (`room`).
    """
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim",
        padding=(0, 0, 0, 1),  # rich puts one more blank between columns
    )  # fmt: skip
    least = None if grid.room is None else _NARROW
    table.add_column(Text(grid.label_headings[0]), overflow="fold", min_width=least)
    columns = []
    for i, heading in enumerate(grid.headings):
        widest = max(
            len(str(row.cells[i]) if grid.is_beside else row.cells[i].value) for row in grid.rows
        )
        measures = map(len, _MEASURE.findall(heading.label))
        width = max(widest, HEADING, *measures)
        lines = wrapped(heading.label, width, break_words=grid.room is not None)
        style = "" if heading.is_figure else "dim"
        title = Text("\n".join([*lines, *heading.facts]))
        table.add_column(title, justify="right", style=style, no_wrap=True)
        columns.append(_column(grid, i))
    for row, *cells in zip(grid.rows, *columns, strict=True):
        label = ": ".join(filter(None, row.labels))
        indent = "  " * row.depth
        lines = [label] if grid.room is None else wrapped(label, int(grid.room) - len(indent))
        text = "\n".join(indent + line for line in lines)
        table.add_row(Text(text, style="dim" if row.is_published else ""), *cells)
    return table


def _column(grid: Grid, i: int) -> list[Text]:
    """The texts of a column, each interval beside or below its figure, signs below each other."""
    signs = tuple(CHANCE_SIGNS.values())
    computed = [row.cells[i] for row in grid.rows if not row.is_published]
    space = max(len(cell.interval) for cell in computed)
    has_signs = any(cell.value.endswith(signs) for cell in computed)
    texts = []
    for row in grid.rows:
        value, interval, *_ = row.cells[i]
        style = ""
        if row.is_published:
            style = "dim"
        elif grid.headings[i].is_figure:
            style = "bold"
        if has_signs and value and not value.endswith(signs) and not row.is_published:
            value += " "
        if interval:
            interval = interval.rjust(space + 1) if grid.is_beside else f"\n{interval}"
        texts.append(Text(value, style=style).append(interval, style="not bold dim"))
    return texts
