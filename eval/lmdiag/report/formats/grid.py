"""A table as texts: what all formats share."""

from __future__ import annotations

from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.report.table import Cell, Table
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
    """

    labels: tuple[str, ...]
    depth: int
    cells: tuple[CellText, ...]
    is_published: bool = False


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
    """Returns the texts of a table; with several runs, a column names the model of each row."""
    n, chance = table.n_by == "row", table.chance_by == "row"
    rows = []
    for row in table.rows:
        figures = map(_own, row.cells)
        before = [CellText(row.n)] if n else []
        after = [CellText(numbers.chances(row.chances))] if chance else []
        labels = (visible(row.label), *([row.model] if runs > 1 else []))
        rows.append(GridRow(labels, row.depth, (*before, *figures, *after)))
        if row.is_published:
            cells = [*map(_published, row.cells)]
            empty = CellText("")
            full = (*([empty] if n else []), *cells, *([empty] if chance else []))
            labels = ("published", *([""] if runs > 1 else []))
            rows.append(GridRow(labels, row.depth + 1, full, is_published=True))
    headings = [
        *([Heading("n")] if n else []),
        *(
            Heading(visible(label), tuple(table.column_facts(i)), is_figure=True)
            for i, label in enumerate(table.columns)
        ),
        *([Heading("chance")] if chance else []),
    ]
    unit = ", percent with 95% interval" if table.is_percent else ", with 95% interval"
    caption = f"{table.title}{unit}{f' ({table.source})' if table.source else ''}"
    return Grid(caption, ("", "model")[: min(runs, 2)], tuple(headings), tuple(rows))


def _own(cell: Cell | None) -> CellText:
    if cell is None:
        return CellText("")
    return CellText(numbers.value(cell.figure), numbers.interval(cell.figure))


def _published(cell: Cell | None) -> CellText:
    return CellText("" if cell is None else numbers.published(cell.published, cell.figure))
