"""The tables and headline figures of runs, in the shapes that the diagnostics declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic, Line, TableShape
from lmdiag.report.labels import measure_label, run_labels
from lmdiag.results import Figure, Place, Results
from lmdiag.results.published import PublishedFigure, published_beside

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


class Cell(NamedTuple):
    """One cell of a table: a figure, and the published figure of the same address."""

    figure: Figure
    published: PublishedFigure | None = None


class TableRow(NamedTuple):
    """A row of a table.

    Attributes:
        label: heading.
        cells: one per column, None where there is no figure.
        model: name of the run; "" for the human baseline.
        depth: 1 for a break-down of the row above.
    """

    label: str
    cells: tuple[Cell | None, ...]
    model: str
    depth: int = 0

    @property
    def n(self) -> str:
        """The n of its figures, e.g. `34`, or `31–33` where they differ."""
        counts = distinct_n(self.cells)
        return "–".join(dict.fromkeys(f"{n:,}" for n in (*counts[:1], *counts[-1:])))

    @property
    def is_published(self) -> bool:
        """Whether the paper has any of its figures."""
        return any(cell and cell.published is not None for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """A table: title, the table of the paper with the same shape, headings and rows."""

    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    @property
    def cells(self) -> list[Cell]:
        """All cells with a figure."""
        return [cell for row in self.rows for cell in row.cells if cell]

    @property
    def is_percent(self) -> bool:
        """Whether all figures are percentages."""
        return all(cell.figure.is_percent for cell in self.cells)

    def part(self, columns: Sequence[int]) -> Table:
        """Returns the table with some of its columns, and the rows that have figures there."""
        rows = (row._replace(cells=tuple(row.cells[i] for i in columns)) for row in self.rows)
        return replace(
            self,
            columns=tuple(self.columns[i] for i in columns),
            rows=tuple(row for row in rows if any(row.cells)),
        )


def distinct_n(cells: Iterable[Cell | None]) -> list[int]:
    """Returns the distinct n of some figures, in ascending order."""
    return sorted({cell.figure.n for cell in cells if cell and cell.figure.n is not None})


# ---- from shapes to tables -----------------------------------------------------------------------


def tables_of(task: str, sources: Sequence[Source]) -> tuple[list[Table], list[Table]]:
    """Returns the tables that a diagnostic declares, and the further ones.

    The last further one is of all figures that the others leave out.

    Args:
        task: name of the config.
        sources: runs that have the task.
    """
    diagnostic = sources[0].results.diagnostic(task)
    present = measured(diagnostic, sources)
    declared = diagnostic.tables or (everything(present),)
    shown: set[Place] = set()
    tables = [(shape, _fill(shape, present, sources, shown)) for shape in declared]
    rest = _fill(everything(present), present, sources, set(), skip=shown)
    return (
        [table for shape, table in tables if table.rows and not _is_further(shape, table)]
        + extended_table(present, sources),
        [*(table for shape, table in tables if table.rows and _is_further(shape, table))]
        + ([rest] if rest.rows else []),
    )


def _is_further(shape: TableShape, table: Table) -> bool:
    return shape.is_further and len(table.rows) > _LONG


class Present(NamedTuple):
    """What was measured on a task, over all runs.

    Attributes:
        diagnostic: of the task.
        settings: in the order of the paper.
        measures: name -> break-down -> levels, in order.
        counts: n of the unperturbed figures of the first run, by their addresses.
    """

    diagnostic: Diagnostic
    settings: list[str]
    measures: dict[str, dict[str, list[str]]]
    counts: Mapping[Place, int | None]

    def starting(self, prefix: str) -> list[str]:
        """Returns the measures whose names start so."""
        return [name for name in self.measures if name.startswith(prefix)]

    def levels(self, by: str) -> list[str]:
        """Returns the levels of a break-down that any measure has."""
        levels = dict.fromkeys(x for of in self.measures.values() for x in of.get(by, ()))
        return self.diagnostic.levels_in_order(by, levels)


def measured(diagnostic: Diagnostic, sources: Sequence[Source]) -> Present:
    """Returns what was measured on the task of a diagnostic, over all runs that have it."""
    task = diagnostic.name
    measures: dict[str, dict[str, list[str]]] = {}
    for place in dict.fromkeys(
        p for s in sources for p, _ in s.results.figures() if p.task == task
    ):
        levels = measures.setdefault(place.measure, {})
        if place.by and place.level not in levels.setdefault(place.by, []):
            levels[place.by].append(place.level)
    settings = dict.fromkeys(name for source in sources for name in source.results.tasks[task])
    counts = {place: figure.n for place, figure in sources[0].results.figures()}
    return Present(diagnostic, diagnostic.settings_in_order(settings), measures, counts)


def everything(present: Present) -> TableShape:
    """Returns the shape of a table with one row per measure and level, one column per setting.

    A break-down with a single level adds nothing. The curves over cut-offs have thousands of
    levels, which are in charts and in csv only.
    """
    rows = []
    for name, breakdowns in present.measures.items():
        rows.append(Line(measure=name))
        rows += [
            Line(measure=name, by=by, level=level)
            for by, levels in breakdowns.items()
            for level in levels
            if len(levels) > 1 and "@top=" not in name and "@bottom=" not in name
        ]
    return TableShape("All measures", "", tuple(rows), (Line(setting="*"),))


def expanded(line: Line, present: Present, column: Line | None = None) -> Iterator[Line]:
    """Yields a line for each measure, setting or level that a `*` stands for.

    Args:
        line: of a shape.
        present: what was measured.
        column: first column of the table, whose measure `{}@*` expands.
    """
    if line.setting == "*":
        yield from (replace(line, setting=each) for each in present.settings)
    elif line.level == "*":
        yield from (replace(line, level=each) for each in present.levels(line.by))
    elif line.measure == "{}@*" and column is not None:
        names = present.starting(f"{column.measure}@")
        cutoffs = [name.partition("@")[2] for name in names]
        yield from (
            replace(line, measure=f"{{}}@{cutoff}", label=cutoff.replace("=", " "))
            for cutoff in cutoffs
        )
    elif line.measure.endswith("*"):
        names = present.starting(line.measure.removesuffix("*"))
        yield from (replace(line, measure=name) for name in names)
    else:
        yield line


def line_label(line: Line, diagnostic: Diagnostic) -> str:
    """Returns the heading of a line: its own, or the usual name of what it fixes."""
    if line.label:
        return line.label
    level = diagnostic.level_label(line.by, line.level) if line.by else ""
    if line.measure:
        name = measure_label(line.measure)
        return f"{name}, {level}" if level else name
    return level or diagnostic.setting_label(line.setting)


def _lines(
    lines: Sequence[Line], present: Present, column: Line | None = None
) -> list[tuple[str, int, Line]]:
    """(label, depth, line) of one side of a table, expanded."""
    shown = []
    for each in (one for line in lines for one in expanded(line, present, column)):
        shown.append((line_label(each, present.diagnostic), 0, each))
        for part in each.below:
            below = replace(each, by=part.by, level=part.level, label="", below=())
            shown.append((line_label(part, present.diagnostic), 1, below))
    return shown


def _place(row: Line, column: Line, task: str) -> Place:
    """The address where a row and a column meet."""
    return Place(
        task=task,
        setting=column.setting or row.setting or "none",
        measure=row.measure.replace("{}", column.measure) or column.measure,
        by=row.by or column.by,
        level=row.level or column.level,
    )


def _fill(
    shape: TableShape,
    present: Present,
    sources: Sequence[Source],
    shown: set[Place],
    skip: Set[Place] = frozenset(),
) -> Table:
    """The table of a shape, without rows and columns that have no figure; adds to `shown`."""
    task = present.diagnostic.name
    columns = _lines(shape.columns, present)
    rows = []
    for label, depth, line in _lines(shape.rows, present, shape.columns[0]):
        places = [_place(line, column, task) for _, _, column in columns]
        for source in sources[:1] if line.is_human else sources:
            cells = [
                None if place in skip else _cell(source, place, column)
                for place, (_, _, column) in zip(places, columns, strict=True)
            ]
            if any(cells):
                shown.update(p for p, cell in zip(places, cells, strict=True) if cell)
                model = "" if line.is_human else source.label
                rows.append(TableRow(label, tuple(cells), model, depth))
    whole = Table(shape.title, shape.source, tuple(_headings(columns, shape, present)), tuple(rows))
    return whole.part([i for i in range(len(columns)) if any(row.cells[i] for row in rows)])


def _cell(source: Source, place: Place, column: Line) -> Cell | None:
    figure = source.results.figure(place)
    if figure is None:
        return None
    if column.is_plain:
        figure = replace(figure, n=None, ci_low=None, ci_high=None)
    return Cell(figure, source.published.get(place))


def _headings(
    columns: Sequence[tuple[str, int, Line]], shape: TableShape, present: Present
) -> list[str]:
    """The headings of the columns: the published ones where n is that of the paper in all."""
    task, published = present.diagnostic.name, [line.published for _, _, line in columns]
    for row in (each for line in shape.rows for each in expanded(line, present) if each.measure):
        places = [_place(Line(measure=row.measure), column, task) for _, _, column in columns]
        counts = [present.counts.get(place) for place in places]
        if all(published) and counts == [line.published_n for _, _, line in columns]:
            return published
    return [label for label, _, _ in columns]


# ---- small and extended sets ---------------------------------------------------------------------


def sets_beside(task: str, sources: Sequence[Source]) -> dict[str, str]:
    """Returns task -> label of the sets that are shown together with a task, itself included.

    Empty unless the runs have several of them, of which the task is the first.

    Args:
        task: name of the config.
        sources: runs that have the task.
    """
    sets = sources[0].results.diagnostic(task).extended_sets
    present = {
        name: label
        for name, label in (sets.labels.items() if sets else ())
        if any(name in source.results.tasks for source in sources)
    }
    return present if len(present) > 1 and task == next(iter(present)) else {}


def set_columns(present: Present) -> list[tuple[str, Line]]:
    """Returns label and line of each figure that small and extended sets have in common."""
    sets = present.diagnostic.extended_sets
    lines = [one for line in (sets.columns if sets else ()) for one in expanded(line, present)]
    return [(line.label or measure_label(line.measure), line) for line in lines]


def extended_table(present: Present, sources: Sequence[Source]) -> list[Table]:
    """Returns the table of the small and the extended sets that the runs have, if several."""
    sets = present.diagnostic.extended_sets
    labels = sets_beside(present.diagnostic.name, sources)
    if not sets or not labels:
        return []
    columns = set_columns(present)
    rows = []
    for task, label in labels.items():
        for source in sources:
            cells = tuple(_cell(source, _place(Line(), line, task), line) for _, line in columns)
            if any(cells):
                rows.append(TableRow(label, cells, source.label))
    return [Table(sets.title, sets.source, tuple(label for label, _ in columns), tuple(rows))]


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
    """Returns the headline figures of a task that any run has, one entry per run in each."""
    having = [each for each in sources if task in each.results.tasks]
    diagnostic = having[0].results.diagnostic(task)
    present = measured(diagnostic, having)
    own, usual = (
        [
            HeadlineFigure(
                line_label(line, diagnostic),
                place,
                [source.results.figure(place) for source in sources],
                next(filter(None, (source.results.figure(human) for source in sources)), None),
                [source.published.get(place) for source in sources],
            )
            for declared in each.headlines
            for line in expanded(declared, present)
            for place in [_place(line, Line(), task)]
            for human in [place._replace(measure=f"human_{place.measure}")]
            if any(source.results.figure(place) for source in sources)
        ]
        for each in (diagnostic, diagnostics.get(""))
    )
    return own or usual


def overviews(runs: Sequence[Results]) -> list[Table]:
    """Returns a table per task with a row per run and a column per headline figure."""
    sources = sources_of(runs)
    return [
        _overview(task, [source for source in sources if task in source.results.tasks])
        for task in dict.fromkeys(task for run in runs for task in run.tasks)
    ]


def _overview(task: str, sources: Sequence[Source]) -> Table:
    figures = headlines(task, sources)
    rows = []
    for number, source in enumerate(sources):
        own = [one.figures[number] for one in figures]
        cells = tuple(None if figure is None else Cell(figure) for figure in own)
        rows.append(TableRow(source.label, cells, source.label))
    title = sources[0].results.diagnostic(task).title
    return Table(title, "", tuple(one.label for one in figures), tuple(rows))
