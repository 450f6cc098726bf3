"""A table as texts: what all formats share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.report.tables import Cell, Table, distinct_n
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
        is_figure: False for the columns of n and of the chance level.
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
        caption: title, unit and source.
        label_headings: of the columns of labels.
        headings: of all other columns.
        rows: of the table, published figures in rows of their own.
    """

    caption: str
    label_headings: tuple[str, ...]
    headings: tuple[Heading, ...]
    rows: tuple[GridRow, ...]


def grid_of(table: Table, runs: int = 1) -> Grid:
    """Returns the texts of a table; with several runs, a column names the model of each row.

    n and the chance level have columns of their own, unless the headings of the columns say all
    that the cells would.
    """
    columns = [[row.cells[i] for row in table.rows] for i in range(len(table.columns))]
    is_n_shared = all(len(distinct_n(cells)) == 1 for cells in columns)
    n = not is_n_shared or all(len(distinct_n(row.cells)) <= 1 for row in table.rows)
    has_chance = any(_chances(cells) - {None} for cells in columns)
    chance = has_chance and any(len(_chances(cells)) > 1 for cells in columns)
    rows = []
    for row in table.rows:
        before = [CellText(row.n)] if n else []
        after = [CellText(numbers.chances(_defined(row.cells)))] if chance else []
        labels = (visible(row.label), *([row.model] if runs > 1 else []))
        figures = (*before, *map(_own, row.cells), *after)
        rows.append(GridRow(labels, row.depth, figures, is_human=not row.model))
        if row.is_published:
            labels = ("published", *([""] if runs > 1 else []))
            figures = (*(CellText("") for _ in before), *map(_published, row.cells))
            figures = (*figures, *(CellText("") for _ in after))
            rows.append(GridRow(labels, row.depth + 1, figures, is_published=True))
    headings = [Heading("n")] if n else []
    for label, cells in zip(table.columns, columns, strict=True):
        facts = [] if n else [f"n = {distinct_n(cells)[0]}"]
        facts += (
            [] if chance else [f"chance {numbers.chances([level])}" for level in _defined(cells)]
        )
        headings.append(Heading(visible(label), tuple(facts), is_figure=True))
    headings += [Heading("chance")] if chance else []
    unit = ", percent with 95% interval" if table.is_percent else ", with 95% interval"
    caption = f"{table.title}{unit}{f' ({table.source})' if table.source else ''}"
    return Grid(caption, ("", "model")[: min(runs, 2)], tuple(headings), tuple(rows))


def _chances(cells: Iterable[Cell | None]) -> set[float | None]:
    """The chance levels of the figures that are defined, None for a figure without one."""
    levels = [cell.figure.chance for cell in cells if cell and cell.figure.value is not None]
    return {None if level is None else round(level, 9) for level in levels}  # means of thirds


def _defined(cells: Iterable[Cell | None]) -> list[float]:
    """The distinct chance levels of some figures, in ascending order."""
    return sorted(level for level in _chances(cells) if level is not None)


def _own(cell: Cell | None) -> CellText:
    if cell is None:
        return CellText("")
    return CellText(numbers.value(cell.figure), numbers.interval(cell.figure))


def _published(cell: Cell | None) -> CellText:
    return CellText("" if cell is None else numbers.published(cell.published, cell.figure))
