"""The tables of a run, and comparisons of models, on a terminal."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report import numbers
from lmdiag.report.comparing import p_text
from lmdiag.report.designs import Design, analysis_grids, analysis_remarks
from lmdiag.report.formats.grid import CellText, Grid, GridRow, Heading, grid_of
from lmdiag.report.labels import (
    asked,
    comparison_label,
    framing_facts,
    model_facts,
    model_label,
    run_letter,
)
from lmdiag.report.sections import Section, sections, signs
from lmdiag.report.tables import Table, overviews
from lmdiag.results import CHANCE_SIGNS, Results, SettingResults, of_setting
from lmdiag.text import shortened, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from lmdiag.analysis.designs import Analysis
    from lmdiag.analysis.fit import HumanFit
    from lmdiag.comparison import Comparison
    from lmdiag.results.multiverse import Multiverse

_NARROW = 18
"""Characters that the label of a row keeps where there is little room: the rest wraps."""

_UNLIMITED = 10_000
"""Characters of a line where the output is not a terminal."""

_GAP = (0, 0, 0, 1)
"""Padding of cells: above, right, below, left; rich itself puts one more blank between columns."""


# ---- runs ----------------------------------------------------------------------------------------


def print_results(
    results: Results, console: Console | None = None, designs: Sequence[Design] = ()
) -> None:
    """Prints what was evaluated, the conditions of own data, then the tables of each diagnostic."""
    from rich.console import Console

    console = console or Console(highlight=False)
    model = results.model
    *facts, commit = model_facts(model)
    facts += ["cased" if model.cased else "uncased", commit]
    console.print()
    _print_line(model_label(results), "bold", console)
    _print_line(" · ".join(facts), "dim", console)
    number = f"{results.n_contexts} {asked(results)}"
    _print_line(f"data {results.data.source} · {number}", "dim", console)
    if framing := framing_facts(results.protocol):
        said = (f"{name} {shortened(text, 80)}" for name, text in framing)
        _print_line(" · ".join(said), "dim", console)
    for design in designs:
        console.print()
        _print_line(f"{design.title}: conditions", "bold", console)
        _print_grids(design.grids, design.remarks, console)
    for section in sections([results]):
        _print_section(section, console)


def print_overview(runs: Sequence[Results], console: Console | None = None) -> None:
    """Prints the headline figures of several models: a table per task with a row per model."""
    from rich.console import Console

    console = console or Console(highlight=False)
    tables = overviews(runs)
    console.print()
    _print_line(f"All {len(runs)} models", "bold", console)
    for table in tables:
        _print_table(table, console)
    console.print()
    for line in signs(tables):
        _print_line(line, "dim", console, wrap=False)


def print_setting(
    task: str,
    setting: str,
    content: SettingResults,
    console: Console | None = None,
    *,
    form: str = "",
) -> None:
    """Prints the tables of one task in one setting.

    Args:
        task: name of the config.
        setting: perturbation or none.
        content: its figures.
        console: where to print; standard output by default.
        form: of the data, see `lmdiag.stimuli.Stimuli`.
    """
    from rich.console import Console

    for section in sections([of_setting(task, setting, content, form)]):
        _print_section(section, console or Console(highlight=False))


def output_console() -> Console:
    """Returns a console for standard output; output that is redirected is as wide as it needs."""
    from rich.console import Console

    is_limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if is_limited else _UNLIMITED)


def _print_line(text: str, style: str, console: Console, *, wrap: bool = True) -> None:
    from rich.text import Text

    console.print(Text(visible(text), style=style), soft_wrap=not wrap)


def _print_section(section: Section, console: Console) -> None:
    console.print()
    _print_line(section.title, "bold", console)
    for table in section.tables:
        _print_table(table, console)
    console.print()
    for line in (*section.remarks, *filter(None, section.signatures)):
        _print_line(line, "dim", console, wrap=False)


def _print_table(table: Table, console: Console) -> None:
    from rich.text import Text

    console.print()
    caption = Text(visible(f"{table.title}, percent" if table.is_percent else table.title))
    console.print(caption.append(f"  {table.source}", style="dim"))
    for grid in pieces(table, console.width):
        console.print(_drawn(grid, console.width))


# ---- a table that fits ---------------------------------------------------------------------------


class TableFit(NamedTuple):
    """How a table is drawn: intervals beside their figures or below, and how wide labels are."""

    is_beside: bool
    label: int


def pieces(table: Table, width: int) -> list[Grid]:
    """Returns the texts of the table, or of parts of its columns that each fit on the terminal."""
    grid, columns = grid_of(table), len(table.columns)
    if columns == 1 or _fit(grid, width) is not None:
        return [grid]
    halves = range((columns + 1) // 2), range((columns + 1) // 2, columns)
    return [piece for half in halves for piece in pieces(table.part(half), width)]


def _grid_pieces(grid: Grid, width: int) -> list[Grid]:
    """The texts, or parts of their columns that each fit on the terminal."""
    columns = len(grid.headings)
    if columns == 1 or _fit(grid, width) is not None:
        return [grid]
    halves = slice((columns + 1) // 2), slice((columns + 1) // 2, columns)
    parts = [
        grid._replace(
            headings=grid.headings[half],
            rows=tuple(row._replace(cells=row.cells[half]) for row in grid.rows),
        )
        for half in halves
    ]
    return [piece for part in parts for piece in _grid_pieces(part, width)]


def _fit(grid: Grid, width: int) -> TableFit | None:
    """The best way to draw a table that fits; None where there is none."""
    labels = [len(row.labels[0]) + 2 * row.depth for row in grid.rows if not row.is_published]
    longest = max([len(grid.label_headings[0]), *labels])
    fits = (
        TableFit(True, longest),
        TableFit(False, longest),
        TableFit(False, min(longest, _NARROW)),
    )
    return next((fit for fit in fits if _width(grid, fit) <= width), None)


def _width(grid: Grid, fit: TableFit) -> int:
    """Characters that the table takes when it is drawn so."""
    widths = [fit.label]
    for i, heading in enumerate(grid.headings):
        texts = [cell.value + cell.interval for cell in _column(grid, i, fit.is_beside)]
        lines = "\n".join([heading.label, *heading.facts, *texts]).split("\n")
        widths.append(max(map(len, lines)))
    return sum(widths) + (1 + _GAP[3]) * (len(widths) - 1)


def _column(grid: Grid, i: int, is_beside: bool) -> list[CellText]:
    """The texts of a column, each interval beside or below its figure, signs below each other."""
    own = [row.cells[i] for row in grid.rows if not row.is_published]
    space = max(len(cell.interval) for cell in own)
    signs = tuple(CHANCE_SIGNS.values())
    is_marked = any(cell.value.endswith(signs) for cell in own)
    texts = []
    for row in grid.rows:
        value, interval = row.cells[i]
        if is_marked and value and not value.endswith(signs) and not row.is_published:
            value += " "
        if interval:
            interval = interval.rjust(space + 1) if is_beside else f"\n{interval}"
        texts.append(CellText(value, interval))
    return texts


def _drawn(grid: Grid, width: int) -> RichTable:
    from rich.text import Text

    fit = _fit(grid, width) or TableFit(False, _NARROW)
    drawn = _rich_table(fit.label, _GAP)
    drawn.columns[0].header = Text(grid.label_headings[0])
    for heading in grid.headings:
        title = Text("\n".join([heading.label, *heading.facts]))
        style = "" if heading.is_figure else "dim"
        drawn.add_column(title, justify="right", style=style, no_wrap=heading.is_figure)
    columns = [_column(grid, i, fit.is_beside) for i in range(len(grid.headings))]
    for row, *cells in zip(grid.rows, *columns, strict=True):
        plain = "dim" if row.is_published else ""
        texts = [Text("  " * row.depth + row.labels[0], style=plain)]
        for heading, (value, interval) in zip(grid.headings, cells, strict=True):
            style = "bold" if heading.is_figure and not row.is_published else plain
            texts.append(Text(value, style=style).append(interval, style="not bold dim"))
        drawn.add_row(*texts)
    return drawn


def _rich_table(label: int, padding: tuple[int, ...] = (0, 1)) -> RichTable:
    """A table without rows, with the column of labels."""
    from rich import box
    from rich.table import Table as RichTable

    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="dim",
        padding=padding,  # type: ignore[arg-type]
    )
    drawn.add_column("", overflow="fold", min_width=label)
    return drawn


# ---- conditions --------------------------------------------------------------------------------


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Prints the effects of conditions, the cells, and mixed models; a warning of a fit first."""
    for fit in analysis.mixed.values():
        if fit.warning:
            _print_line(fit.warning, "bold", console, wrap=False)
    _print_grids(analysis_grids(analysis), analysis_remarks(analysis), console)


def _print_grids(grids: Iterable[Grid], remarks: Iterable[str], console: Console) -> None:
    for grid in grids:
        console.print()
        if grid.caption:
            _print_line(grid.caption, "", console)
        rows = [row._replace(labels=(": ".join(row.labels),)) for row in grid.rows]
        for piece in _grid_pieces(grid._replace(rows=tuple(rows)), console.width):
            console.print(_drawn(piece, console.width))
    console.print()
    for line in remarks:
        _print_line(line, "dim", console, wrap=False)


def print_fit(fit: HumanFit, console: Console) -> None:
    """Prints the table over models of a fit to human measures, and how it was computed."""
    from lmdiag.report.human import fit_grid, further_lines, method_lines

    remarks = [*method_lines(fit), *further_lines(fit)]
    _print_grids([fit_grid(fit)._replace(caption="")], remarks, console)


# ---- comparisons ---------------------------------------------------------------------------------


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """Prints a table for each pair of models, task and setting."""
    several = len({one.second for one in comparisons}) > 1
    groups = groupby(comparisons, key=lambda one: (one.second, one.task, one.setting))
    for (second, task, setting), rows in groups:
        title = task if setting == "none" else f"{task}, {setting}"
        pair = f"A and {run_letter(second)}, " if several else ""
        console.print()
        _print_line(pair + title, "bold", console)
        for grid in _grid_pieces(_comparison_grid(list(rows), run_letter(second)), console.width):
            console.print(_drawn(grid, console.width))


def _comparison_grid(rows: Sequence[Comparison], other: str) -> Grid:
    """The comparisons of one pair of models in one task and setting."""
    named = ("n", "A", other)
    headings = [Heading(label) for label in named]
    headings += [Heading(label, is_figure=True) for label in (f"A − {other}", "p", "p adj.")]
    return Grid("", ("",), tuple(headings), tuple(map(_comparison_row, rows)))


def _comparison_row(one: Comparison) -> GridRow:
    bounds = [numbers.number(bound, one.statistic) for bound in (one.ci_low, one.ci_high)]
    interval = "" if math.isnan(one.ci_low) else f"[{', '.join(bounds)}]"
    cells = (
        CellText(str(one.n)),
        *(CellText(numbers.number(value, one.statistic)) for value in (one.a, one.b)),
        CellText(numbers.signed(one.difference, one.statistic), interval),
        CellText(p_text(one)),
        CellText(numbers.p_value(one.p_adjusted)),
    )
    return GridRow((visible(comparison_label(one)),), 0, cells)


# ---- a multiverse --------------------------------------------------------------------------------


def print_multiverse(multiverse: Multiverse, console: Console) -> None:
    """Prints the range of each headline figure, and where the first model is ahead of others."""
    from lmdiag.report.multiverse import protocols, remarks, shown_choices, task_tables

    for model in multiverse.models:
        knobs = "; ".join(f"{knob} {', '.join(c)}" for knob, c in shown_choices(multiverse, model))
        count = protocols(len(multiverse.numbers_of(model)))
        console.print()
        _print_line(model, "bold", console)
        _print_line(": ".join(filter(None, (count, knobs))), "", console, wrap=False)
    for task in task_tables(multiverse):
        console.print()
        _print_line(task.diagnostic.title, "bold", console)
        for grid in (*task.ranges, *task.differences):
            console.print()
            for piece in _grid_pieces(grid, console.width):
                console.print(_drawn(piece, console.width))
    console.print()
    for line in remarks(multiverse):
        _print_line(line, "dim", console, wrap=False)
