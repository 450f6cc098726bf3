"""A table as plain data: what all formats write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lmdiag.results import Figure
from lmdiag.results.published import PublishedFigure


class Cell(NamedTuple):
    """One cell of a table: a figure, and the published figure of the same address."""

    figure: Figure
    published: PublishedFigure | None = None


@dataclass(frozen=True)
class TableRow:
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
    def counts(self) -> list[int]:
        """The distinct n of its figures, in ascending order."""
        return _counts(self.cells)

    @property
    def n(self) -> str:
        """The n of its figures, e.g. `34`, or `31–33` where they differ."""
        return "–".join(dict.fromkeys(f"{n:,}" for n in (*self.counts[:1], *self.counts[-1:])))

    @property
    def chances(self) -> list[float]:
        """The distinct chance levels of its figures, in ascending order."""
        return sorted({chance for chance in _chances(self.cells) if chance is not None})

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

    def part(self, start: int, stop: int) -> Table:
        """Returns the table with some of its columns, and the rows that have figures there."""
        cut = (replace(row, cells=row.cells[start:stop]) for row in self.rows)
        rows = tuple(row for row in cut if any(row.cells))
        return replace(self, columns=self.columns[start:stop], rows=rows)

    @property
    def is_percent(self) -> bool:
        """Whether all figures are percentages."""
        return all(cell.figure.is_percent for row in self.rows for cell in row.cells if cell)

    @property
    def n_by(self) -> Literal["row", "column"]:
        """Where n is shown: once per row, or once per column where only that is complete."""
        rows = all(len(row.counts) <= 1 for row in self.rows)
        columns = all(self.column_n(i) is not None for i in range(len(self.columns)))
        return "column" if columns and not rows else "row"

    @property
    def chance_by(self) -> Literal["row", "column", ""]:
        """Where the chance level is shown: in the headings of columns if these say everything."""
        columns = [_chances(row.cells[i] for row in self.rows) for i in range(len(self.columns))]
        chances = [set(column) for column in columns]
        if not any(each - {None} for each in chances):
            return ""
        return "column" if all(len(each) <= 1 for each in chances) else "row"

    def column_facts(self, column: int) -> list[str]:
        """Returns what is shown below a heading: n and chance, where all figures share them."""
        chances = _chances(row.cells[column] for row in self.rows)
        chance = next(iter(chances), None) if self.chance_by == "column" else None
        n = [f"n = {self.column_n(column)}"] if self.n_by == "column" else []
        return n + ([] if chance is None else [f"chance {100 * chance:.1f}"])

    def column_n(self, column: int) -> int | None:
        """Returns the n of a column, None where its figures do not share one."""
        counts = _counts(row.cells[column] for row in self.rows)
        return counts[0] if len(counts) == 1 else None


def _chances(cells: Iterable[Cell | None]) -> list[float | None]:
    """The chance levels of the figures that are defined, None for a figure without one."""
    levels = [cell.figure.chance for cell in cells if cell and cell.figure.value is not None]
    return [None if level is None else round(level, 9) for level in levels]  # means of thirds


def _counts(cells: Iterable[Cell | None]) -> list[int]:
    """The distinct n of some figures, in ascending order."""
    return sorted({cell.figure.n for cell in cells if cell and cell.figure.n is not None})
