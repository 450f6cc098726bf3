"""The one shape of tables: texts in rows and columns, which every format and page renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.results import CHANCE_LEGEND, CHANCE_SIGNS, Figure
from lmdiag.results.published import PublishedFigure
from lmdiag.text import visible


class CellText(NamedTuple):
    """A figure, and its interval in brackets; "" without one."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".strip()


class Heading(NamedTuple):
    """A heading of a column, and what all its figures have in common: n, chance level.

    Attributes:
        label: of the column.
        facts: e.g. `n = 34`.
        is_figure: False for columns that say what the figures are about, e.g. n.
    """

    label: str
    facts: tuple[str, ...] = ()
    is_figure: bool = False

    def __str__(self) -> str:
        return f"{self.label} ({', '.join(self.facts)})" if self.facts else self.label


class GridRow(NamedTuple):
    """A row of texts.

    Attributes:
        labels: of the row and, where there are several runs, of the model.
        depth: steps by which the first label is indented.
        cells: parallel to the headings of the grid.
        is_published: whether these are the published figures of the row above.
        is_human: whether these are the human baseline.
    """

    labels: tuple[str, ...]
    depth: int
    cells: tuple[CellText, ...]
    is_published: bool = False
    is_human: bool = False


class Grid(NamedTuple):
    """The texts of a table.

    Attributes:
        title: what the figures are.
        label_headings: of the columns of labels.
        headings: of all other columns.
        rows: of the table, published figures in rows of their own.
        unit: after the title, e.g. ", percent".
        source: of the shape of the table; "" for one of our own.
        has_intervals: whether a caption must say that the intervals are 95% intervals.
        figures: rows that the texts were made from, if they are figures of results.
    """

    title: str
    label_headings: tuple[str, ...]
    headings: tuple[Heading, ...]
    rows: tuple[GridRow, ...]
    unit: str = ""
    source: str = ""
    has_intervals: bool = False
    figures: Sequence[FigureRow] = ()

    @property
    def caption(self) -> str:
        """Title, unit and source in one line."""
        interval = f"{'' if self.unit else ','} with 95% interval" if self.has_intervals else ""
        source = f" ({self.source})" if self.source else ""
        return f"{self.title}{self.unit}{interval}{source}"

    def halves(self) -> list[Grid]:
        """Returns two tables with half of its columns each; n and chance levels stand in both.

        Of a table with one column, nothing.
        """
        facts = [i for i, heading in enumerate(self.headings) if heading.label in ("n", "chance")]
        others = [i for i in range(len(self.headings)) if i not in facts]
        half = (len(others) + 1) // 2
        parts = (range(half), range(half, len(others))) if len(others) > 1 else ()
        return [self._part([others[i] for i in part], part, facts) for part in parts]

    def _part(self, kept: Sequence[int], part: range, facts: Sequence[int]) -> Grid:
        if self.figures:  # what they have in common may be more than what all of them have
            labels = [self.headings[i].label for i in kept]
            rows = [row._replace(cells=[row.cells[i] for i in part]) for row in self.figures]
            has_models = len(self.label_headings) > 1
            return grid_of(self.title, labels, rows, source=self.source, has_models=has_models)
        columns = sorted([*kept, *facts])
        return self._replace(
            headings=tuple(self.headings[i] for i in columns),
            rows=tuple(
                row._replace(cells=tuple(row.cells[i] for i in columns)) for row in self.rows
            ),
        )


# ---- figures as texts ----------------------------------------------------------------------------


class Cell(NamedTuple):
    """A figure, and the published figure of the same address."""

    figure: Figure
    published: PublishedFigure | None = None


class FigureRow(NamedTuple):
    """A row of figures.

    Attributes:
        label: heading.
        cells: one per column, None where there is no figure.
        model: name of the run; "" for the human baseline.
        depth: 1 for a break-down of the row above.
    """

    label: str
    cells: Sequence[Cell | None]
    model: str
    depth: int = 0


def grid_of(
    title: str,
    columns: Sequence[str],
    rows: Sequence[FigureRow],
    *,
    source: str = "",
    has_models: bool = False,
) -> Grid:
    """Returns the texts of figures; columns and rows without any figure are left out.

    n and the chance level have columns of their own, unless the headings of the columns say all
    that the cells would.

    Args:
        title: what the figures are.
        columns: headings.
        rows: of the table.
        source: of its shape.
        has_models: whether a column names the model of each row.
    """
    rows = [row for row in rows if any(row.cells)]
    kept = [i for i in range(len(columns)) if any(row.cells[i] for row in rows)]
    rows = [row._replace(cells=[row.cells[i] for i in kept]) for row in rows]
    by_column = list(zip(*(row.cells for row in rows), strict=True))
    n = any(len(_counts(cells)) != 1 for cells in by_column) or all(
        len(_counts(row.cells)) <= 1 for row in rows
    )
    has_chance = any(_chances(cells) - {None} for cells in by_column)
    chance = has_chance and any(len(_chances(cells)) > 1 for cells in by_column)
    headings = [Heading("n")] if n else []
    for i, cells in zip(kept, by_column, strict=True):
        facts = [] if n else [f"n = {_counts(cells)[0]}"]
        facts += [] if chance else [f"chance {numbers.chances([x])}" for x in _defined(cells)]
        headings.append(Heading(visible(columns[i]), tuple(facts), is_figure=True))
    headings += [Heading("chance")] if chance else []
    texts = []
    for row in rows:
        before = [CellText(numbers.counts(_counts(row.cells)))] if n else []
        after = [CellText(numbers.chances(_defined(row.cells)))] if chance else []
        labels = (visible(row.label), *([row.model] if has_models else []))
        figures = (*before, *map(_figure_text, row.cells), *after)
        texts.append(GridRow(labels, row.depth, figures, is_human=not row.model))
        if any(cell and cell.published for cell in row.cells):
            labels = ("published", *([""] if has_models else []))
            nothing = [[CellText("")] * len(part) for part in (before, after)]
            figures = (*nothing[0], *map(_published_text, row.cells), *nothing[1])
            texts.append(GridRow(labels, row.depth + 1, figures, is_published=True))
    is_percent = all(cell.figure.is_percent for row in rows for cell in row.cells if cell)
    return Grid(
        title, ("", "model")[: 1 + has_models], tuple(headings), tuple(texts),
        ", percent" if is_percent else "", source, has_intervals=True, figures=rows,
    )  # fmt: skip


def _counts(cells: Iterable[Cell | None]) -> list[int]:
    """The distinct n of some figures, in ascending order."""
    return sorted({cell.figure.n for cell in cells if cell and cell.figure.n is not None})


def _chances(cells: Iterable[Cell | None]) -> set[float | None]:
    """The chance levels of the figures that are defined, None for a figure without one."""
    levels = [cell.figure.chance for cell in cells if cell and cell.figure.value is not None]
    return {None if level is None else round(level, 9) for level in levels}  # means of thirds


def _defined(cells: Iterable[Cell | None]) -> list[float]:
    """The distinct chance levels of some figures, in ascending order."""
    return sorted(level for level in _chances(cells) if level is not None)


def _figure_text(cell: Cell | None) -> CellText:
    if cell is None:
        return CellText("")
    return CellText(numbers.value(cell.figure), numbers.interval(cell.figure))


def _published_text(cell: Cell | None) -> CellText:
    return CellText("" if cell is None else numbers.published(cell.published, cell.figure))


def signs(grids: Iterable[Grid]) -> list[str]:
    """Returns a line for each sign that figures of the tables have, with its meaning."""
    rows = [row for grid in grids for row in grid.rows]
    published, own = (
        [cell.value for row in rows if row.is_published == is_published for cell in row.cells]
        for is_published in (True, False)
    )
    chance = tuple(CHANCE_SIGNS.values())
    lines = {
        "* the published figure lies outside our 95% interval": any(
            text.endswith("*") for text in published
        ),
        CHANCE_LEGEND: any(text.endswith(chance) for text in own),
        "± standard deviation over shuffles": any("±" in text for text in own),
    }
    return [line for line, is_needed in lines.items() if is_needed]
