"""Tables of runs, comparisons, analyses and multiverses on a terminal."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmdiag.analysis.designs import Analysis
from lmdiag.comparison import Comparison
from lmdiag.multiverse import Multiverse
from lmdiag.protocol import QueryOptions
from lmdiag.report import labels
from lmdiag.report.charts import MOST_BESIDE
from lmdiag.report.comparisons import comparison_grids, notes
from lmdiag.report.designs import analysis_grids, analysis_remarks
from lmdiag.report.grid import HEADING, PUBLISHED, Grid, Section, fitted, wrapped
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import overview, sections
from lmdiag.results import CHANCE_SIGNS, Results, cited_signature
from lmdiag.results.models import model_label
from lmdiag.text import shortened, visible

_MOST_ROWS = 500
_MOST_EFFECTS = 100
_MOST_PAIRS = 20
_MOST_DESIGNS = 5
"""What is printed: rows of a table, rows of an analysis (200 conditions have 19,900 differences),
pairs of models, tasks of one run with their conditions."""

_CSV = "--format csv, or to_frame() in Python,"
"""What gives all rows."""

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


def print_run(
    results: Results, path: Path, designs: Sequence[Section], console: Console | None = None
) -> None:
    """Prints what was asked, the conditions of own data, and the headline figures of a run.

    A line per task says how its further tables are shown.
    """
    console = console or output_console()
    _print_model(results, console)
    for design in designs[:_MOST_DESIGNS]:  # without tables, one line says why
        remarks = design.remarks[: None if design.tables else 1]
        print_section(design._replace(remarks=remarks), console)
    if len(designs) > _MOST_DESIGNS:
        console.print()
        line = f"the conditions of {len(designs) - _MOST_DESIGNS} more tasks: by the commands below"
        _print_lines([line], console)
    figures = ReportFigures.of([results])
    print_section(overview(figures)._replace(title=""), console)
    where = visible(shlex.quote(str(path)))
    console.print()
    for task in figures.tasks:
        title = visible(figures.diagnostic(task).short_title)
        command = f"lmdiag report {where} --format text --tasks {visible(shlex.quote(task))}"
        _print_lines([f"more of {title}: {command}"], console)


def print_overview(results: Sequence[Results], console: Console) -> None:
    """Prints the headline figures of the models of a command on a screen.

    Where the published columns do not fit beside three or more models, they are left out.
    """
    figures = ReportFigures.of(results)
    section = overview(figures)
    if len(results) <= MOST_BESIDE and not labels.order_of(results):
        section = section._replace(title="")  # the models are named by the columns
    for grid in section.tables:
        headings = [*enumerate(grid.headings)]
        smaller = grid.of_columns([i for i, x in headings if not x.label.endswith(PUBLISHED)])
        if len(results) > 2 and smaller != grid and len(_parts(grid, console)) > 1:
            line = f"{PUBLISHED} figures of other models: in a wider terminal, and on the page"
            section = section._replace(tables=[smaller], remarks=[*section.remarks, line])
    print_section(section, console)


def tables_as_text(results: Sequence[Results], sections: Sequence[Section]) -> str:
    """Returns all tables as a terminal shows them, further ones too, without colours."""
    with_further = [x._replace(tables=[*x.tables, *x.further], further=[]) for x in sections]
    _print_tables(results, with_further, output_console(file := io.StringIO()))
    return "\n".join(line.rstrip() for line in file.getvalue().strip().splitlines()) + "\n"


def print_results(results: Results, console: Console | None = None) -> None:
    """Prints all tables of a run, or of what was measured; standard output by default."""
    _print_tables([results], sections(ReportFigures.of([results])), console or output_console())


def _print_tables(
    results: Sequence[Results], sections: Sequence[Section], console: Console
) -> None:
    """The overview of runs, or of one what was asked, then the tables of each task."""
    headline_section = overview(ReportFigures.of(results))
    printed = [headline_section, *sections]
    if not results[0].data.source:  # of measures without a run, the signatures
        printed = [*sections, Section("", [], headline_section.signatures)]
    elif len(results) == 1:
        _print_model(results[0], console)
        printed[0] = headline_section._replace(title="")
    for section in printed:
        print_section(section, console)


def _print_model(results: Results, console: Console) -> None:
    """What was asked of which model."""
    model = results.model
    *facts, commit = labels.model_facts(model)
    facts = [*facts, "cased" if model.cased else "uncased", commit]
    source = f"data {results.data.source} · {results.n_contexts} {labels.asked(results)}"
    known = labels.framing_facts(results.protocol).items()
    framing = " · ".join(f"{name} {shortened(text, 80)}" for name, text in known)
    console.print()
    _print_lines([model_label(model)], console, "bold", wrap=True)
    lines = (" · ".join(facts), source, framing, *labels.remarks_on_model(results))
    _print_lines(filter(None, lines), console, wrap=True)


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Prints the effects of conditions, the cells, and mixed models; a warning of a fit first."""
    warnings = tuple(fit.warning for fit in analysis.mixed.values() if fit.warning)
    remarks = [*analysis_remarks(analysis)]
    _print_lines((remark for remark in remarks if remark.endswith(warnings)), console, "bold")
    others = [remark for remark in remarks if not remark.endswith(warnings)]
    print_section(
        Section("", [*analysis_grids(analysis)], others), console, _MOST_EFFECTS, "--json"
    )


def print_comparisons(
    comparisons: Sequence[Comparison],
    names: Sequence[str],
    weights: Sequence[str],
    signatures: Sequence[str],
    protocols: Sequence[QueryOptions],
    console: Console,
) -> None:
    """Prints a table for each pair of models, task and setting, and how it was computed."""
    n_named = min(len(names), 1 + _MOST_PAIRS)
    facts = [f"{name}  {text}".rstrip() for name, text in zip(names, weights, strict=True)]
    _print_lines(facts[:n_named], console, "bold", wrap=True)
    _print_lines(labels.asked_differently(protocols[:n_named], names), console, "")
    for number, compared in groupby(comparisons, key=lambda c: c.number):
        if number >= n_named:
            break
        title = labels.difference_title(names[0], names[number])
        grids = comparison_grids(compared, visible(names[0]), visible(names[number]))
        print_section(Section(title, grids), console)
    lines = [*notes(comparisons), *dict.fromkeys(map(cited_signature, signatures))]
    if n_named < len(names):
        lines.append(f"the first {_MOST_PAIRS} of {len(names) - 1:,} pairs; {_CSV} has all")
    print_section(Section("", [], lines), console)


def print_multiverse(multiverse: Multiverse, console: Console) -> None:
    """Prints the range of each headline figure, and where the first model is ahead of others."""
    from lmdiag.report.multiverse import multiverse_sections, protocols_line

    for model in multiverse.models:
        console.print()
        _print_lines([model], console, "bold", wrap=True)
        _print_lines([protocols_line(multiverse, model)], console, "")
    for section in multiverse_sections(multiverse):
        grids = [*section.ranges, *section.differences]
        print_section(Section(section.diagnostic.title, grids), console)
    below = "below each knob: the largest difference of the means of two of its choices"
    print_section(Section("", [], [below]), console)


# ---- what all of them print ----------------------------------------------------------------------


def _print_lines(
    lines: Iterable[str], console: Console, style: str = "dim", *, wrap: bool = False
) -> None:
    for line in lines:  # a terminal wraps them itself, a recorded page of a notebook does not
        text = Text(visible(line), style=style)
        console.print(text, soft_wrap=not (wrap or console.record))


def print_section(
    section: Section, console: Console, most: int = _MOST_ROWS, complete: str = _CSV
) -> None:
    """Prints tables, each in as many parts as its width needs, and lines below them.

    Of a table the first `most` rows are printed; `complete` is the option or method that gives all.
    """
    if section.title:
        console.print()
        _print_lines([section.title], console, "bold", wrap=True)
    lines = [*section.remarks]
    for grid in section.tables:
        console.print()
        if grid.title or grid.unit:
            source = f"  {grid.source}" if grid.source else ""
            console.print(Text(visible(f"{grid.title}{grid.unit}")).append(source, style="dim"))
        for table in _parts(grid._replace(rows=grid.rows[:most]), console):
            console.print(table)
        if len(grid.rows) > most:
            title = f"{grid.title}: " if grid.title else ""
            lines.append(f"{title}the first {most} of {len(grid.rows):,} rows; {complete} has all")
    if lines := [*lines, *filter(None, section.signatures)]:
        console.print()
        _print_lines(lines, console)


def _parts(grid: Grid, console: Console) -> list[Table]:
    """The table if it fits, or parts of its columns that each fit."""
    unlimited = console.options.update(max_width=_UNLIMITED)

    def needed(part: Grid) -> float:
        return console.measure(_drawn(part), options=unlimited).maximum

    return [_drawn(part) for part in fitted(grid, console.width, needed, _NARROW)]


def _drawn(grid: Grid) -> Table:
    """The table for rich."""
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
        lines = wrapped(heading.label, max(widest, HEADING), break_words=grid.room is not None)
        style = "" if heading.is_figure else "dim"
        title = Text("\n".join([*lines, *heading.facts]))
        table.add_column(title, justify="right", style=style, no_wrap=True)
        columns.append(_column(grid, i))
    for row, *cells in zip(grid.rows, *columns, strict=True):
        label = ": ".join(row.labels)
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
        style = "dim" if row.is_published else "bold" if grid.headings[i].is_figure else ""
        if has_signs and value and not value.endswith(signs) and not row.is_published:
            value += " "
        if interval:
            interval = interval.rjust(space + 1) if grid.is_beside else f"\n{interval}"
        texts.append(Text(value, style=style).append(interval, style="not bold dim"))
    return texts
