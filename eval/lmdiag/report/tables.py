"""The tables and headline figures of runs, in the shapes that the diagnostics declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic, Line, TableShape
from lmdiag.report import numbers
from lmdiag.report.formats.grid import CellText, Grid, GridRow, grid_of
from lmdiag.report.labels import measure_label, run_labels
from lmdiag.results import Figure, Place, Results
from lmdiag.results.published import PublishedFigure, published_beside
from lmdiag.text import visible

_LONG = 15
"""Rows of a table above which it may be folded."""


class Source(NamedTuple):
    """A run, its name, and what the papers report for its model.

    Attributes:
        results: of the run.
        label: name that distinguishes its model from the other runs'.
        published: published figures by their addresses.
    """

    results: Results
    label: str
    published: Mapping[Place, PublishedFigure]


def sources_of(runs: Sequence[Results]) -> list[Source]:
    """Returns the runs with their names and the published figures of their models."""
    labels = run_labels(runs)
    return [Source(r, label, published_beside(r)) for r, label in zip(runs, labels, strict=True)]


def having(task: str, sources: Sequence[Source]) -> list[Source]:
    """Returns the runs that have a task."""
    return [source for source in sources if task in source.results.tasks]


# ---- from shapes to tables -----------------------------------------------------------------------


def tables_of(task: str, sources: Sequence[Source]) -> tuple[list[Grid], list[Grid]]:
    """Returns the tables that a diagnostic declares, and the further ones.

    The last further one is of all figures that the others leave out.

    Args:
        task: name of the config.
        sources: all runs; with several, each row names its model.
    """
    present = measured(task, sources)
    shown: set[Place] = set()
    tables: list[Grid] = []
    further: list[Grid] = []
    for shape in present.diagnostic.tables or (_everything(present),):
        grid = _filled(shape, present, shown)
        if grid.rows:
            (further if shape.is_further and len(grid.rows) > _LONG else tables).append(grid)
    rest = _filled(_everything(present), present, set(), skip=shown)
    return tables + _sets_grid(present), further + ([rest] if rest.rows else [])


class Present(NamedTuple):
    """What was measured on a task, over all runs.

    Attributes:
        diagnostic: of the task.
        sources: runs that have it.
        label_headings: of tables, with the model of each row where there are several runs.
        settings: in the order of the paper.
        measures: name -> break-down -> levels, in order.
    """

    diagnostic: Diagnostic
    sources: Sequence[Source]
    label_headings: tuple[str, ...]
    settings: list[str]
    measures: dict[str, dict[str, list[str]]]

    def starting(self, prefix: str) -> list[str]:
        """Returns the measures whose names start so."""
        return [name for name in self.measures if name.startswith(prefix)]


def measured(task: str, sources: Sequence[Source]) -> Present:
    """Returns what was measured on a task, over all runs."""
    present = having(task, sources)
    runs = [source.results for source in present]
    measures: dict[str, dict[str, list[str]]] = {}
    for place in dict.fromkeys(p for run in runs for p, _ in run.figures() if p.task == task):
        levels = measures.setdefault(place.measure, {})
        if place.by and place.level not in levels.setdefault(place.by, []):
            levels[place.by].append(place.level)
    settings = dict.fromkeys(name for run in runs for name in run.tasks[task])
    diagnostic = runs[0].diagnostic(task)
    in_order = diagnostic.settings_in_order(settings)
    headings = ("", "model")[: min(len(sources), 2)]
    return Present(diagnostic, present, headings, in_order, measures)


def _everything(present: Present) -> TableShape:
    """The shape of a table with one row per measure and level, one column per setting.

    A break-down with a single level adds nothing. The curves over cut-offs have thousands of
    levels, which are in charts and in csv only.
    """
    rows = []
    for name, breakdowns in present.measures.items():
        is_curve = "@top=" in name or "@bottom=" in name
        rows.append(Line(measure=name))
        rows += [
            Line(measure=name, by=by, level=level)
            for by, levels in breakdowns.items()
            for level in levels
            if len(levels) > 1 and not is_curve
        ]
    return TableShape("All measures", "", tuple(rows), (Line(setting="*"),))


def expanded(line: Line, present: Present, column: Line | None = None) -> list[Line]:
    """Returns a line for each measure, setting or level that a `*` stands for.

    Args:
        line: of a shape.
        present: what was measured.
        column: first column of the table, whose measure `{}@*` expands.
    """
    if line.setting == "*":
        return [replace(line, setting=setting) for setting in present.settings]
    if line.level == "*":
        levels = dict.fromkeys(x for of in present.measures.values() for x in of.get(line.by, ()))
        in_order = present.diagnostic.levels_in_order(line.by, levels)
        return [replace(line, level=level) for level in in_order]
    if line.measure == "{}@*" and column is not None:
        names = present.starting(f"{column.measure}@")
        cutoffs = [name.partition("@")[2] for name in names]
        return [replace(line, measure=f"{{}}@{c}", label=c.replace("=", " ")) for c in cutoffs]
    if line.measure.endswith("*"):
        names = present.starting(line.measure.removesuffix("*"))
        return [replace(line, measure=name) for name in names]
    return [line]


def line_label(line: Line, diagnostic: Diagnostic) -> str:
    """Returns the heading of a line: its own, or the usual name of what it fixes."""
    level = diagnostic.level_label(line.by, line.level) if line.by else ""
    measure = measure_label(line.measure) if line.measure else ""
    usual = ", ".join(filter(None, (measure, level))) or diagnostic.setting_label(line.setting)
    return line.label or usual


def _place(row: Line, column: Line, task: str) -> Place:
    """The address where a row and a column meet."""
    return Place(
        task=task,
        setting=column.setting or row.setting or "none",
        measure=row.measure.replace("{}", column.measure) or column.measure,
        by=row.by or column.by,
        level=row.level or column.level,
    )


def _filled(
    shape: TableShape, present: Present, shown: set[Place], skip: Set[Place] = frozenset()
) -> Grid:
    """The table of a shape without the addresses to skip; adds its addresses to `shown`."""
    task = present.diagnostic.name
    columns = [column for line in shape.columns for column in expanded(line, present)]
    rows = []
    for label, depth, line in _row_lines(shape, present):
        places = [_place(line, column, line.task or task) for column in columns]
        for source in present.sources[: 1 if line.is_human else None]:
            figures = [None if p in skip else source.results.figure(p) for p in places]
            shown.update(p for p, figure in zip(places, figures, strict=True) if figure)
            cells = (
                _text(figure, source.published.get(place), is_plain=column.is_plain)
                for figure, place, column in zip(figures, places, columns, strict=True)
            )
            model = "" if line.is_human else source.label
            labels = (visible(label), model)[: len(present.label_headings)]
            rows.append(GridRow(labels, depth, tuple(cells), is_human=line.is_human))
    names = [line_label(column, present.diagnostic) for column in columns]
    published_n = [column.published_n for column in columns]
    if all(published_n) and published_n in [[cell.n for cell in row.cells] for row in rows]:
        names = [column.published for column in columns]
    headings = [visible(name) for name in names]
    return grid_of(shape.title, present.label_headings, headings, rows, shape.source)


def _row_lines(shape: TableShape, present: Present) -> Iterator[tuple[str, int, Line]]:
    """Label, depth and line of each row of a shape."""
    for declared in shape.rows:
        for line in expanded(declared, present, shape.columns[0]):
            yield line_label(line, present.diagnostic), 0, line
            for part in line.below:
                label = line_label(part, present.diagnostic)
                yield label, 1, replace(line, by=part.by, level=part.level)


def _text(
    figure: Figure | None, published: PublishedFigure | None = None, *, is_plain: bool = False
) -> CellText:
    if figure is None:
        return CellText("")
    return CellText(
        numbers.value(figure),
        "" if is_plain else numbers.interval(figure),
        None if is_plain else figure.n,
        None if figure.chance is None else round(figure.chance, 9),  # means of thirds
        numbers.published(published, figure),
        figure.is_percent,
    )


# ---- small and extended sets ---------------------------------------------------------------------


def sets_beside(task: str, sources: Sequence[Source]) -> dict[str, str]:
    """Returns task -> label of the sets that are shown together with a task, itself included.

    Empty unless the runs have several of them, of which the task is the first.
    """
    sets = having(task, sources)[0].results.diagnostic(task).extended_sets
    labels = sets.labels.items() if sets else ()
    present = {name: label for name, label in labels if having(name, sources)}
    return present if len(present) > 1 and task == next(iter(present)) else {}


def set_columns(present: Present) -> list[tuple[str, Line]]:
    """Returns label and line of each figure that small and extended sets have in common."""
    sets = present.diagnostic.extended_sets
    lines = [
        line for declared in (sets.columns if sets else ()) for line in expanded(declared, present)
    ]
    return [(line.label or measure_label(line.measure), line) for line in lines]


def _sets_grid(present: Present) -> list[Grid]:
    """The table of the small and the extended sets that the runs have, if several."""
    sets, labels = (
        present.diagnostic.extended_sets,
        sets_beside(present.diagnostic.name, present.sources),
    )
    if not sets or not labels:
        return []
    rows = tuple(Line(label, task=task) for task, label in labels.items())
    columns = tuple(replace(line, label=label) for label, line in set_columns(present))
    return [_filled(TableShape(sets.title, sets.source, rows, columns), present, set())]


# ---- headline figures ----------------------------------------------------------------------------


class HeadlineFigure(NamedTuple):
    """A headline figure of a diagnostic.

    Attributes:
        label: what was measured.
        place: the address of the figures.
        figures: of each run, None where it has none.
        human: the human baseline, None where the data do not contain it.
        published: published figures of each run, None where there are none.
    """

    label: str
    place: Place
    figures: list[Figure | None]
    human: Figure | None
    published: list[PublishedFigure | None]


def headlines(task: str, sources: Sequence[Source]) -> list[HeadlineFigure]:
    """Returns the headline figures of a task that any run has, one entry per run in each.

    Where no run has those that the diagnostic declares, they are the usual ones.
    """
    present = measured(task, sources)
    for declared in (present.diagnostic.headlines, diagnostics.get("").headlines):
        lines = [line for shape_line in declared for line in expanded(shape_line, present)]
        places = {_place(line, Line(), task): line for line in lines}
        rows = [
            HeadlineFigure(
                line_label(line, present.diagnostic),
                place,
                [source.results.figure(place) for source in sources],
                next(filter(None, (source.results.figure(human) for source in sources)), None),
                [source.published.get(place) for source in sources],
            )
            for place, line in places.items()
            for human in [place._replace(measure=f"human_{place.measure}")]
        ]
        if present_rows := [row for row in rows if any(row.figures)]:
            return present_rows
    return []


def overviews(runs: Sequence[Results]) -> list[Grid]:
    """Returns a table per task with a row per run and a column per headline figure."""
    sources = sources_of(runs)
    grids = []
    for task in dict.fromkeys(task for run in runs for task in run.tasks):
        present = having(task, sources)
        figures = headlines(task, present)
        rows = [
            GridRow((source.label,), 0, tuple(_text(headline.figures[i]) for headline in figures))
            for i, source in enumerate(present)
        ]
        title = present[0].results.diagnostic(task).title
        grids.append(grid_of(title, ("",), [visible(figure.label) for figure in figures], rows))
    return grids
