"""The one shape of tables: texts in rows and columns, which every format and page renders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.report.charts import Plot
from lmdiag.results import CHANCE_LEGEND, CHANCE_SIGNS
from lmdiag.text import visible


class CellText(NamedTuple):
    """A figure as text; an empty one where there is no figure.

    Attributes:
        value, interval: the figure, and its interval in brackets; "" without one.
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
    """A heading of a column, and facts that hold for all its figures, e.g. `n = 34`.

    `is_figure` is False for columns that say what the figures are about, e.g. n.
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
        label_headings, headings: of the columns of labels, and of all other columns.
        rows: of the table, published figures in rows of their own.
        unit: after the title, e.g. ", percent".
        source: the table of a paper that has this shape, or "".
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
        """Returns two tables with half of the columns each; n and chance levels stand in both.

        Of a table with one column, nothing.
        """
        facts = [i for i, heading in enumerate(self.headings) if heading.label in ("n", "chance")]
        others = [i for i in range(len(self.headings)) if i not in facts]
        half = (len(others) + 1) // 2
        halves = []
        for part in (others[:half], others[half:]) if len(others) > 1 else ():
            columns = part if self.is_of_results else sorted((*facts, *part))
            headings = tuple(self.headings[i] for i in columns)
            rows = [row._replace(cells=tuple(row.cells[i] for i in columns)) for row in self.rows]
            grid = self._replace(headings=headings, rows=tuple(rows))
            if self.is_of_results:  # n and chance may be the same within a half
                names = [heading.label for heading in headings]
                grid = grid_of(self.title, self.label_headings, names, rows)
            halves.append(grid)
        return halves


def text_grid(
    title: str,
    label_headings: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], Mapping[str, str | CellText]]],
    facts: Collection[str] = (),
) -> Grid:
    """Returns a table of texts.

    Args:
        title, label_headings: see `Grid`.
        rows: labels, and heading -> text for the same headings in every row.
        facts: headings of columns that are not of figures.
    """
    texts = [(tuple(map(visible, labels)), cells) for labels, cells in rows]
    headings = [Heading(name, (), name not in facts) for _, cells in texts[:1] for name in cells]
    made = [
        GridRow(
            labels, 0, tuple(x if isinstance(x, CellText) else CellText(x) for x in of.values())
        )
        for labels, of in texts
    ]
    return Grid(title, label_headings, tuple(headings), tuple(made))


def grid_of(
    title: str,
    label_headings: tuple[str, ...],
    columns: Sequence[str],
    rows: Iterable[GridRow],
    source: str = "",
) -> Grid:
    """Returns a table of figures; columns and rows without any figure are left out.

    n and the chance level have columns of their own, unless the headings of the columns say all
    that the cells would. Published figures get rows of their own, and rows of them that are given
    are left out. `columns` are the headings of the figures.
    """
    rows = [r for r in rows if not r.is_published and any(cell.value for cell in r.cells)]
    kept = [i for i in range(len(columns)) if any(row.cells[i].value for row in rows)]
    rows = [row._replace(cells=tuple(row.cells[i] for i in kept)) for row in rows]
    facts_of = [_facts(cells) for cells in zip(*(row.cells for row in rows), strict=True)]
    has_n = any(len(n) != 1 for n, _ in facts_of) or all(len(_facts(x.cells)[0]) <= 1 for x in rows)
    has_chance = any(any(of) for _, of in facts_of) and any(len(of) > 1 for _, of in facts_of)
    headings = []
    for i, (n, chance) in zip(kept, facts_of, strict=True):
        facts = [] if has_n else [f"n = {n[0]}"]
        facts += [] if has_chance else [f"chance {level}" for level in chance if level]
        headings.append(Heading(columns[i], tuple(facts), is_figure=True))
    texts = []
    empty = CellText("")
    for row in rows:
        known = ([*filter(None, of)] for of in _facts(row.cells))
        common, level = ("–".join(of[:1] + of[1:][-1:]) for of in known)  # e.g. 31–33
        cells = (*(CellText(common),) * has_n, *row.cells, *(CellText(level),) * has_chance)
        texts.append(row._replace(cells=cells))
        if any(cell.published for cell in row.cells):
            labels = ("published", *[""] * (len(row.labels) - 1))
            reported = (CellText(cell.published) for cell in row.cells)
            cells = (*(empty,) * has_n, *reported, *(empty,) * has_chance)
            texts.append(GridRow(labels, row.depth + 1, cells, is_published=True))
    is_percent = all(cell.is_percent for row in rows for cell in row.cells if cell.value)
    every = (*(Heading("n"),) * has_n, *headings, *(Heading("chance"),) * has_chance)
    unit = ", percent" if is_percent else ""
    return Grid(title, label_headings, every, tuple(texts), unit, source, is_of_results=True)


def _facts(cells: Iterable[CellText]) -> tuple[list[str], list[str]]:
    """The distinct n and chance levels of some figures in ascending order; "" for no level."""
    n = sorted({cell.n for cell in cells if cell.n is not None})
    defined = {cell.chance for cell in cells if cell.value not in ("", numbers.UNDEFINED)}
    levels = sorted(-1.0 if level is None else level for level in defined)
    return [f"{x:,}" for x in n], ["" if x < 0 else numbers.number(x, "share") for x in levels]


def signs(grids: Iterable[Grid]) -> list[str]:
    """Returns a line for each sign that figures of the tables have, with its meaning."""
    rows = [row for grid in grids for row in grid.rows]
    published = " ".join(cell.value for row in rows if row.is_published for cell in row.cells)
    computed = " ".join(cell.value for row in rows if not row.is_published for cell in row.cells)
    lines = {
        "* the published figure lies outside our 95% interval": "*" in published,
        CHANCE_LEGEND: any(sign in computed for sign in CHANCE_SIGNS.values()),
        "± standard deviation over shuffles": "±" in computed,
    }
    return [line for line, is_needed in lines.items() if is_needed]


class Section(NamedTuple):
    """Tables, charts and texts with one heading, as pages and all formats show them.

    Attributes:
        title: of a diagnostic, or the name of own data.
        tables, further: in order; a page folds the further ones, a terminal leaves them out.
        remarks: what a reader has to know: notes, signs, human facts, words that were left out.
        signatures: of the runs; figures with equal ones are comparable.
        task: name of the config; "" if the tables are not those of a diagnostic.
        plots: above the tables of a page.
    """

    title: str
    tables: Sequence[Grid] = ()
    remarks: Sequence[str] = ()
    further: Sequence[Grid] = ()
    signatures: Sequence[str] = ()
    task: str = ""
    plots: Sequence[Plot] = ()
