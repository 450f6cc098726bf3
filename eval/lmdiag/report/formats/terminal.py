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
from lmdiag.report.grid import HEADING, PUBLISHED, Grid, fit_to_width, signs, wrapped
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
    """Returns a console that prints to standard output, or to `file` if there is one.

    Its lines have the width of the terminal; if standard output is redirected, any width.
    """
    is_limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if is_limited else _UNLIMITED
    return Console(file=file, highlight=False, width=width)


def _with_smaller_tables(section: Section, console: Console) -> Section:
    """The section with smaller tables in place of those that do not fit, see `_smaller_table`.

    Its remarks then say what these tables lack.
    """
    grids = []
    remarks = dict[str, None]()  # in order, each once
    for grid in section.tables:
        if not _fits_undivided(grid, console):
            grid, lines = _smaller_table(grid, console)
            remarks |= dict.fromkeys(lines)
        grids.append(grid)
    return section._replace(tables=grids, remarks=[*section.remarks, *remarks])


def _fits_undivided(grid: Grid, console: Console) -> bool:
    """Whether a table fits undivided, with its intervals beside the figures."""
    parts = _parts_that_fit(grid, console)
    return len(parts) == 1 and parts[0].has_intervals_beside


def _smaller_table(grid: Grid, console: Console) -> tuple[Grid, list[str]]:
    """Returns a table without its columns of published figures, and lines that say what it lacks.

    If it still does not fit and is in percent, its intervals are rounded to whole percent ("20–61"
    for "[20.3, 61.4]"), and a line takes the place of the column of chance levels: "chance: 50.0".
    """
    lines = []
    names = [heading.label for heading in grid.headings]
    columns = [i for i, name in enumerate(names) if not name.endswith(PUBLISHED)]
    if len(columns) < len(names):
        lines.append(f"{PUBLISHED} figures of other models: in a wider terminal, and on the page")
    smaller = grid.select_columns(columns)
    if _fits_undivided(smaller, console) or not smaller.is_percent:
        return smaller, lines
    smaller = grid.select_columns([i for i in columns if names[i] != "chance"])
    rows = []
    for row in smaller.rows:
        cells = (cell._replace(interval=numbers.whole_bounds(cell.figure)) for cell in row.cells)
        rows.append(row._replace(cells=tuple(cells)))
    lines.append("beside each figure: its 95% interval, rounded to whole percent")
    if smaller.chance_levels:
        lines.append(f"chance: {smaller.chance_levels}")
    return smaller._replace(rows=tuple(rows)), lines


def render(output: Output, width: float) -> str:
    """Returns all tables as a terminal shows them, without colours; `width` is not used."""
    file = io.StringIO()
    print_output(output, output_console(file))
    lines = file.getvalue().strip("\n").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def recorded(output: Output) -> Console:
    """Returns a console that has recorded a result, to be exported as text or HTML.

    Python shows results in this way, in lines of at most 100 characters.
    """
    file = io.StringIO()  # in a notebook, rich would also display what is only recorded here
    console = Console(file=file, record=True, width=100, highlight=False, force_jupyter=False)
    print_output(output, console)
    return console


def print_output(
    output: Output, console: Console | None = None, *, is_undivided: bool = False
) -> None:
    """Prints the warnings, facts, findings and tables of a result.

    Args:
        console: None for standard output.
        is_undivided: whether a table that is too wide becomes smaller (see `_smaller_table`) before
            it is divided into parts.
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
            # the tables that have rows; none is folded on a terminal
            section = section._replace(tables=section.grids, further=())
            if is_undivided:
                section = _with_smaller_tables(section, console)
            print_section(section, console)


# ---- the parts of what is printed ----------------------------------------------------------------


def _print_lines(
    lines: Iterable[str], console: Console, style: str = "dim", *, wrap: bool = False
) -> None:
    """Prints lines of text, in which invisible characters are spelled out.

    Args:
        style: name of a style of rich.
        wrap: whether long lines end at blanks; others end where the terminal does, so that what is
            copied from it has no new line ends.
    """
    for line in lines:
        text = Text(visible(line), style=style)
        # a recorded page of a notebook has no terminal that would wrap lines
        console.print(text, soft_wrap=not (wrap or console.record))


def print_section(section: Section, console: Console) -> None:
    """Prints the tables of a section, each in as many parts as its width needs, and its remarks.

    A remark that says what a sign means, e.g. "* the published figure lies outside our 95%
    interval", stands directly below the first table that has the sign.
    """
    table_has_title = len(section.tables) == 1 and section.tables[0].title == section.title
    if section.title and not table_has_title:
        console.print()
        _print_lines([section.title], console, "bold", wrap=True)
    # sign, e.g. "*" -> its meaning, as long as it has not been printed; the line begins with the
    # sign
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
        if grid is section.tables[-1]:  # the remarks stand directly below it
            lines = [*sign_lines, *lines]
        elif sign_lines:
            console.print()
            _print_lines(sign_lines, console)
        if len(grid.rows) > _MOST_ROWS:
            title = f"{grid.title}: " if grid.title else ""
            lines.append(
                f"{title}the first {_MOST_ROWS} of {len(grid.rows):,} rows; {_CSV} has all"
            )
    lines += filter(None, section.signatures)
    if lines:
        console.print()
        _print_lines(lines, console)


def _parts_that_fit(grid: Grid, console: Console) -> list[Grid]:
    """The table if it fits into the width of the console, or parts of its columns that each fit."""
    unlimited = console.options.update(max_width=_UNLIMITED)

    def width_needed(part: Grid) -> float:
        return console.measure(_rich_table(part), options=unlimited).maximum

    return fit_to_width(grid, console.width, width_needed, _NARROW, wraps_first=True)


def _rich_table(grid: Grid) -> Table:
    """Returns a grid as a table of rich.

    Cells of figures never wrap. Headings wrap to the width of the widest cell, but not within the
    name of a measure; labels of rows wrap if the grid limits their width (`grid.label_width`).
    """
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim",
        padding=(0, 0, 0, 1),  # rich puts one more blank between columns
    )  # fmt: skip
    least = None if grid.label_width is None else _NARROW
    table.add_column(Text(grid.label_headings[0]), overflow="fold", min_width=least)
    columns = []
    for i, heading in enumerate(grid.headings):
        cells = [row.cells[i] for row in grid.rows]
        widest = max(len(str(cell) if grid.has_intervals_beside else cell.value) for cell in cells)
        measures = map(len, _MEASURE.findall(heading.label))
        width = max(widest, HEADING, *measures)
        # a table whose labels wrap has little room: then long words of headings are divided, too
        lines = wrapped(heading.label, width, break_words=grid.label_width is not None)
        style = "" if heading.is_figure else "dim"
        title = Text("\n".join([*lines, *heading.facts]))
        table.add_column(title, justify="right", style=style, no_wrap=True)
        columns.append(_column_texts(grid, i))
    for row, *cell_texts in zip(grid.rows, *columns, strict=True):
        label = ": ".join(filter(None, row.labels))
        indent = "  " * row.depth
        lines = [label]
        if grid.label_width is not None:
            lines = wrapped(label, int(grid.label_width) - len(indent))
        text = "\n".join(indent + line for line in lines)
        table.add_row(Text(text, style="dim" if row.is_published else ""), *cell_texts)
    return table


def _column_texts(grid: Grid, i: int) -> list[Text]:
    """The cells of column i as texts, each with its interval beside or below the figure.

    Blanks are added so that the digits of figures are below each other where only some figures
    have a sign of their test against chance, e.g. "↑", and so are the ends of intervals.
    """
    signs = tuple(CHANCE_SIGNS.values())
    computed = [row.cells[i] for row in grid.rows if not row.is_published]
    interval_width = max(len(cell.interval) for cell in computed)
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
        if interval and grid.has_intervals_beside:
            interval = interval.rjust(interval_width + 1)
        elif interval:
            interval = f"\n{interval}"
        texts.append(Text(value, style=style).append(interval, style="not bold dim"))
    return texts
