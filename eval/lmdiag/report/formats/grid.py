"""The one shape of tables: texts in rows and columns, which every format and page renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.results import CHANCE_LEGEND, CHANCE_SIGNS

_FACTS = ("n", "chance")
"""Headings of columns that say what the figures beside them are about."""


class CellText(NamedTuple):
    """A figure as text; an empty one where there is no figure.

    Attributes:
        value: the figure.
        interval: in brackets; "" without one.
        n, chance: of the figure, for a column or a heading that says them.
        published: the published figure of the same address; "" without one.
        is_percent: whether it is in percent.
    """

    value: str
    interval: str = ""
    n: int | None = None
    chance: float | None = None
    published: str = ""
    is_percent: bool = True

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
        is_of_results: whether `grid_of` made it.
    """

    title: str
    label_headings: tuple[str, ...]
    headings: tuple[Heading, ...]
    rows: tuple[GridRow, ...]
    unit: str = ""
    source: str = ""
    is_of_results: bool = False

    @property
    def caption(self) -> str:
        """Title, unit and source in one line."""
        interval = f"{'' if self.unit else ','} with 95% interval" if self.is_of_results else ""
        source = f" ({self.source})" if self.source else ""
        return f"{self.title}{self.unit}{interval}{source}"

    def halves(self) -> list[Grid]:
        """Returns two tables with half of its columns each; n and chance levels stand in both.

        Of a table with one column, nothing.
        """
        facts = [i for i, heading in enumerate(self.headings) if heading.label in _FACTS]
        others = [i for i in range(len(self.headings)) if i not in facts]
        half = (len(others) + 1) // 2
        halves = []
        for part in (others[:half], others[half:]) if len(others) > 1 else ():
            columns = part if self.is_of_results else sorted([*facts, *part])
            headings = tuple(self.headings[i] for i in columns)
            rows = [row._replace(cells=tuple(row.cells[i] for i in columns)) for row in self.rows]
            if self.is_of_results:  # what they have in common may be more than what all have
                labels = [heading.label for heading in headings]
                halves.append(grid_of(self.title, self.label_headings, labels, rows))
            else:
                halves.append(self._replace(headings=headings, rows=tuple(rows)))
        return halves


def grid_of(
    title: str,
    label_headings: tuple[str, ...],
    columns: Sequence[str],
    rows: Iterable[GridRow],
    source: str = "",
) -> Grid:
    """Returns the table of figures; columns and rows without any figure are left out.

    n and the chance level have columns of their own, unless the headings of the columns say all
    that the cells would. Published figures get rows of their own.

    Args:
        title, label_headings, source: see `Grid`.
        columns: headings of the figures.
        rows: of the table; those of published figures are made again.
    """
    rows = [r for r in rows if not r.is_published and any(cell.value for cell in r.cells)]
    kept = [i for i in range(len(columns)) if any(row.cells[i].value for row in rows)]
    rows = [row._replace(cells=tuple(row.cells[i] for i in kept)) for row in rows]
    by_column = list(zip(*(row.cells for row in rows), strict=True))
    has_n = any(len(_counts(cells)) != 1 for cells in by_column) or all(
        len(_counts(row.cells)) <= 1 for row in rows
    )
    has_chance = any(map(_levels, by_column)) and any(
        len({cell.chance for cell in _defined(cells)}) > 1 for cells in by_column
    )
    headings = []
    for i, cells in zip(kept, by_column, strict=True):
        n = [] if has_n else [f"n = {_counts(cells)[0]}"]
        chance = [] if has_chance else [f"chance {numbers.chances([x])}" for x in _levels(cells)]
        headings.append(Heading(columns[i], (*n, *chance), is_figure=True))
    texts = []
    for row in rows:
        before = (CellText(numbers.counts(_counts(row.cells))),) * has_n
        after = (CellText(numbers.chances(_levels(row.cells))),) * has_chance
        texts.append(row._replace(cells=(*before, *row.cells, *after)))
        if any(cell.published for cell in row.cells):
            labels = ("published", *[""] * (len(row.labels) - 1))
            empty = (CellText(""),)
            published = (CellText(cell.published) for cell in row.cells)
            cells = (*empty * has_n, *published, *empty * has_chance)
            texts.append(GridRow(labels, row.depth + 1, cells, is_published=True))
    is_percent = all(cell.is_percent for row in rows for cell in row.cells if cell.value)
    facts = [(Heading(fact),) * has for fact, has in zip(_FACTS, (has_n, has_chance), strict=True)]
    return Grid(
        title, label_headings, (*facts[0], *headings, *facts[1]), tuple(texts),
        ", percent" if is_percent else "", source, is_of_results=True,
    )  # fmt: skip


def _counts(cells: Iterable[CellText]) -> list[int]:
    """The distinct n of some figures, in ascending order."""
    return sorted({cell.n for cell in cells if cell.n is not None})


def _defined(cells: Iterable[CellText]) -> list[CellText]:
    return [cell for cell in cells if cell.value not in ("", numbers.UNDEFINED)]


def _levels(cells: Iterable[CellText]) -> list[float]:
    """The distinct chance levels of the figures that are defined, in ascending order."""
    return sorted({cell.chance for cell in _defined(cells) if cell.chance is not None})


def signs(grids: Iterable[Grid]) -> list[str]:
    """Returns a line for each sign that figures of the tables have, with its meaning."""
    rows = [row for grid in grids for row in grid.rows]
    published, computed = (
        [cell.value for row in rows if row.is_published == is_published for cell in row.cells]
        for is_published in (True, False)
    )
    chance = tuple(CHANCE_SIGNS.values())
    lines = {
        "* the published figure lies outside our 95% interval": any(
            text.endswith("*") for text in published
        ),
        CHANCE_LEGEND: any(text.endswith(chance) for text in computed),
        "± standard deviation over shuffles": any("±" in text for text in computed),
    }
    return [line for line, is_needed in lines.items() if is_needed]
