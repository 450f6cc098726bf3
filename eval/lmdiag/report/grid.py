"""The one shape of tables: texts in rows and columns, which every format and page renders."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.results import CHANCE_LEGEND, Figure
from lmdiag.results.published_figures import PublishedFigure
from lmdiag.text import visible

HEADING = 14
"""Characters in a line of the heading of a column, at least."""

PUBLISHED = "published"
"""Label of the published figures of the model in the row above."""

TIES = (
    "tied: two rows share the highest probability of the contrast, which is not right in the "
    "figure, and left out of tests"
)
"""What the number of ties beside a figure means."""

_OF_THE_COLUMN_BEFORE = re.compile(r"(p|t|SE|df|d_z|adjusted|95% interval)\b")
"""Matches the heading of a column that belongs to the figure before it, e.g. its p."""

PERCENT = ", percent"
"""After the title of a table of which all figures are in percent."""


_SHORT_BRACKETS = re.compile(r"[\[(][^\[\]()]{1,38}[\])]")
"""Matches brackets within which no line ends, e.g. `[yes - no]`."""

NAME_PARTS = re.compile(r"(?<=:)(?=\w)|(?<=\w)(?=\[)")
"""Matches where a line may end in the name of an effect."""

_TIE = "\x00"
"""Stands for a blank at which no line ends."""


def tied(text: str, width: int = 40, tie: str = "\xa0") -> str:
    """Returns a text whose short brackets keep on one line: their blanks are replaced.

    Args:
        width: characters of a bracket that is kept together, at most.
        tie: what takes the place of a blank; a no-break space by default.
    """

    def without_blanks(brackets: re.Match[str]) -> str:
        return brackets[0].replace(" ", tie) if len(brackets[0]) <= width else brackets[0]

    return _SHORT_BRACKETS.sub(without_blanks, text)


class _Lines(textwrap.TextWrapper):
    """Wraps texts after blanks, and after the marks between the parts of a name."""

    wordsep_re = re.compile(r"(\s+)|(?<=[\w\]][-:/_])(?=\w)|(?<=\w)(?=\[)")


def wrapped(text: str, width: int, *, break_words: bool = True) -> list[str]:
    """Returns the lines of a label or a heading, none of which ends in a bracket that fits.

    >>> wrapped("attractor[same - different] of all", 22)
    ['attractor', '[same - different] of', 'all']
    """
    lines = _Lines(width, break_long_words=break_words).wrap(tied(text, width, _TIE))
    return [line.replace(_TIE, " ") for line in lines]


class CellText(NamedTuple):
    """A figure as text, and its interval in brackets; "" without one.

    The number of ties, if there are any, stands behind the interval.
    `figure` is what it shows and `published` the published figure beside it, None in other texts;
    `link` is the path of a page; a page that is written has it relative to its own folder.
    """

    value: str
    interval: str = ""
    figure: Figure | None = None
    published: PublishedFigure | None = None
    link: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".strip()

    @property
    def lines(self) -> list[str]:
        """The lines of a text of several lines."""
        return self.value.splitlines()

    @property
    def n(self) -> int | None:
        """The number of items of the figure."""
        return self.figure.n if self.figure else None


def cell_of(
    figure: Figure | None,
    published: PublishedFigure | None = None,
    is_plain: bool = False,
) -> CellText:
    """Returns the cell of a figure; one that is plain has neither interval nor n."""
    if figure is None:
        return CellText("")
    if is_plain:
        figure = replace(figure, n=None, ci_low=None, ci_high=None)
    interval = numbers.bounds(figure.ci_low, figure.ci_high, figure.statistic)
    has_interval = figure.sd is None  # which is shown instead
    beside = f"{interval if has_interval else ''} {numbers.ties(figure)}".strip()
    return CellText(numbers.value(figure), beside, figure, published)


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
        is_published, is_human: whether these are published figures, or the human baseline.
        human: the human baseline of a headline figure, which pages show; None where the data do
            not contain it.
    """

    labels: tuple[str, ...]
    depth: int
    cells: tuple[CellText, ...]
    is_published: bool = False
    is_human: bool = False
    human: Figure | None = None

    @property
    def is_heading(self) -> bool:
        """Whether it is the heading of the rows below it."""
        return not any(cell.value for cell in self.cells)


class Grid(NamedTuple):
    """The texts of a table.

    Attributes:
        title: what the figures are.
        label_headings, headings: of the columns of labels, and of all other columns.
        rows: of the table, published figures in rows of their own.
        unit: after the title, e.g. ", percent".
        source: the table of a paper that has this shape, or "".
        is_beside: whether intervals stand beside their figures, and not below them.
        room: the width of labels that wrap; None where they do not.
        notes: what a reader of this table alone has to know.
    """

    title: str
    label_headings: tuple[str, ...]
    headings: tuple[Heading, ...]
    rows: tuple[GridRow, ...]
    unit: str = ""
    source: str = ""
    is_beside: bool = True
    room: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def has_figures(self) -> bool:
        """Whether it was made of figures, not of texts."""
        return any(cell.figure for row in self.rows for cell in row.cells)

    @property
    def is_percent(self) -> bool:
        """Whether all figures are in percent."""
        return self.unit == PERCENT

    def shades(self, column: int) -> list[int]:
        """Returns the shade of each cell of a column, 0 to 8.

        Of percentages it is that of 100, else between the lowest and the highest value.
        """
        figures = [row.cells[column].figure for row in self.rows]
        values = [figure.value if figure else None for figure in figures]
        defined = [value for value in values if value is not None] or [0.0]
        is_percent = any(figure.is_percent for figure in figures if figure)
        low, high = (0.0, 1.0) if is_percent else (min(defined), max(defined))
        span = high - low or 1.0
        return [0 if value is None else round(8 * (value - low) / span) for value in values]

    @property
    def chance_levels(self) -> str:
        """The chance levels of the figures, by the headings of the rows: "A 33.3, B 50.0"."""
        levels = dict[str, dict[str, None]]()
        title = ""
        for row in self.rows:
            title = f"{row.labels[0]} " if row.is_heading else title
            row_levels = levels.setdefault(title, {})
            row_levels |= dict.fromkeys(filter(None, _chance_levels(row.cells)))
        return ", ".join(
            title + " and ".join(levels_below)
            for title, levels_below in levels.items()
            if levels_below
        )

    @property
    def caption(self) -> str:
        """Title, unit and source in one line."""
        interval = ""
        if self.has_figures:
            interval = " with 95% interval" if self.unit else ", with 95% interval"
        source = f" ({self.source})" if self.source else ""
        return f"{self.title}{self.unit}{interval}{source}"

    def of_columns(self, columns: Sequence[int]) -> Grid:
        """Returns the table with some of its columns."""
        rows = [row._replace(cells=tuple(row.cells[i] for i in columns)) for row in self.rows]
        return self._replace(headings=tuple(self.headings[i] for i in columns), rows=tuple(rows))

    def halves(self) -> list[Grid]:
        """Returns two tables with half of the columns each; n and chance levels stand in both.

        Of a table with one column, nothing.
        """
        shared_columns = [
            i for i, heading in enumerate(self.headings) if heading.label in ("n", "chance")
        ]
        groups = list[list[int]]()  # columns that stay together
        for i, heading in enumerate(self.headings):
            if groups and _OF_THE_COLUMN_BEFORE.match(heading.label):
                groups[-1].append(i)
            elif i not in shared_columns:
                groups.append([i])
        middle = (len(groups) + 1) // 2
        halves = []
        for half_of_groups in (groups[:middle], groups[middle:]) if middle < len(groups) else ():
            half_columns = [i for group in half_of_groups for i in group]
            rows = [
                row
                for row in self.rows
                if row.labels[0] != PUBLISHED
                and (row.is_heading or any(row.cells[i].value for i in half_columns))
            ]
            # n and chance of figures may be the same within it
            columns = half_columns if self.has_figures else sorted((*shared_columns, *half_columns))
            half = self._replace(rows=tuple(rows)).of_columns(columns)
            names = [heading.label for heading in half.headings]
            texts = [heading.label for heading in half.headings if not heading.is_figure]
            laid_out = figure_grid(self.title, self.label_headings, names, half.rows, "", texts)
            halves.append(laid_out._replace(notes=self.notes))
        return halves


def fitted(
    grid: Grid,
    width: float,
    needed: Callable[[Grid], float],
    least: float,
    *,
    wraps_first: bool = False,
) -> list[Grid]:
    """Returns the table if it fits into a width, or parts of its columns that each fit.

    If need be, intervals stand below figures and labels wrap. A part that cannot be divided further
    is returned although it is too wide.

    Args:
        width: what there is, in the unit of `needed`.
        needed: returns the width that a table needs.
        least: width that labels have at least where they wrap.
        wraps_first: whether labels wrap before intervals stand below figures.
    """
    shapes = [(True, None), (False, None), (True, least), (False, least)]
    for is_beside, room in sorted(shapes, key=lambda shape: wraps_first and not shape[0]):
        candidate = grid._replace(is_beside=is_beside, room=room)
        spare = width - needed(candidate)
        if spare >= 0:
            return [candidate._replace(room=room and room + spare)]
    fit_half = partial(fitted, width=width, needed=needed, least=least, wraps_first=wraps_first)
    return [part for half in grid.halves() for part in fit_half(half)] or [candidate]


def with_heading(title: str, rows: Iterable[GridRow]) -> list[GridRow]:
    """Returns rows below a row that names what they have in common."""
    below = [row._replace(depth=row.depth + 1) for row in rows]
    empty = [CellText("")] * len(below[0].cells) if below else []
    return [GridRow((title,), 0, tuple(empty)), *below] if below else []


def grouped(grid: Grid) -> Grid:
    """A table with one column of labels, those of a figure's models below the figure.

    Where the rows of a model follow each other, those of its figures are below the model.
    """
    if len(grid.label_headings) < 2:
        return grid
    models = [row.labels[1] for row in grid.rows if row.labels[1]]
    n_blocks = sum(1 for _ in groupby(models))
    if n_blocks == len({*models}) < len(models):
        swapped = [row._replace(labels=(*reversed(row.labels),)) for row in grid.rows]
        grid = grid._replace(rows=tuple(swapped))
    rows = list[GridRow]()
    heading = None
    for row in grid.rows:
        label, *others = row.labels
        if not label or not any(others):
            rows.append(row._replace(labels=(label or others[0],)))
            continue
        without_label = row._replace(labels=(*others,))
        rows += with_heading(label, [without_label])[label == heading :]
        heading = label
    return grid._replace(label_headings=("",), rows=tuple(rows))


def text_grid(
    title: str,
    label_headings: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], Mapping[str, str | CellText]]],
    facts: Collection[str] = (),
) -> Grid:
    """Returns a table of texts: labels, and heading -> text for the same headings in every row.

    `facts` are headings of columns that are not of figures.
    """
    names = list[str]()
    grid_rows = []
    for labels, texts in rows:
        names = [*texts]
        cells = (text if isinstance(text, CellText) else CellText(text) for text in texts.values())
        grid_rows.append(GridRow(tuple(map(visible, labels)), 0, tuple(cells)))
    return figure_grid(title, label_headings, names, grid_rows, "", facts)


def figure_grid(
    title: str,
    label_headings: tuple[str, ...],
    columns: Sequence[str],
    rows: Sequence[GridRow],
    source: str = "",
    texts: Collection[str] = (),
) -> Grid:
    """Returns a table of figures with the headings `columns`, of which `texts` have only texts.

    n and the chance level have columns of their own, unless the headings of the columns say all
    that the cells would. Published figures get rows of their own.
    """
    n_of_columns = []
    chance_of_columns = []
    for column_cells in zip(*(row.cells for row in rows), strict=True):
        n_of_columns.append(_numbers_of_items(column_cells))
        chance_of_columns.append(_chance_levels(column_cells))
    # One n for each row is a column; one n for each column of figures is part of its heading.
    differs_in_columns = any(len(n) > 1 for n in n_of_columns)
    differs_in_rows = any(len(_numbers_of_items(row.cells)) > 1 for row in rows)
    has_n = any(n_of_columns) and (differs_in_columns or not differs_in_rows)
    has_chance = any(map(any, chance_of_columns)) and any(
        len(levels) > 1 for levels in chance_of_columns
    )

    def with_facts(
        cells: Iterable[CellText], n: str = "", chance: str = ""
    ) -> tuple[CellText, ...]:
        before = [CellText(n)] if has_n else []
        after = [CellText(chance)] if has_chance else []
        return (*before, *cells, *after)

    headings = [Heading("n")] if has_n else []
    for column, n, chance in zip(columns, n_of_columns, chance_of_columns, strict=True):
        facts = [] if has_n else [f"n = {number}" for number in n]
        facts += [] if has_chance else [f"chance {level}" for level in chance if level]
        headings.append(Heading(column, tuple(facts), column not in texts))
    headings += [Heading("chance")] if has_chance else []
    with_published = []
    for row in rows:
        n_of_row = _range(_numbers_of_items(row.cells))
        chance_of_row = _range([*filter(None, _chance_levels(row.cells))])
        cells_of_row = with_facts(row.cells, n_of_row, chance_of_row)
        with_published.append(row._replace(cells=cells_of_row))
        published = [x.figure and numbers.published(x.published, x.figure) for x in row.cells]
        if any(published):
            labels = (PUBLISHED, *[""] * (len(row.labels) - 1))
            cells = with_facts(CellText(text or "") for text in published)
            with_published.append(GridRow(labels, row.depth + 1, cells, is_published=True))
    are_percent = {cell.figure.is_percent for row in rows for cell in row.cells if cell.figure}
    unit = PERCENT if are_percent == {True} else ""
    return Grid(title, label_headings, tuple(headings), tuple(with_published), unit, source)


def _range(values: list[str]) -> str:
    """The first and the last of some values, e.g. 31–33; the only one; "" for none."""
    return "–".join(values[:1] + values[1:][-1:])


def _numbers_of_items(cells: Iterable[CellText]) -> list[str]:
    """The distinct n of some figures in ascending order."""
    n = {cell.figure.n for cell in cells if cell.figure and cell.figure.n is not None}
    return [f"{number:,}" for number in sorted(n)]


def _chance_levels(cells: Iterable[CellText]) -> list[str]:
    """The distinct chance levels of some figures in ascending order; "" for figures without one."""
    figures = [cell.figure for cell in cells if cell.figure]
    levels = {figure.chance for figure in figures if figure.value is not None}
    chance = sorted({-1.0 if x is None else round(x, 9) for x in levels})  # means of thirds
    return ["" if x < 0 else numbers.number(x, "share") for x in chance]


def chance_legend(figures: Iterable[Figure | None]) -> str:
    """Returns what the signs beside figures mean; without signs, ""."""
    figures_with_sign = [figure for figure in figures if figure and figure.chance_sign]
    has_means = any(figure.statistic != "proportion" for figure in figures_with_sign)
    legend = CHANCE_LEGEND if has_means else CHANCE_LEGEND.replace("; for EW and MW, t test", "")
    return legend if figures_with_sign else ""


def signs(grids: Iterable[Grid]) -> list[str]:
    """Returns a line for each sign that figures of the tables have, with its meaning."""
    rows = [row for grid in grids for row in grid.rows]
    published = " ".join(cell.value for row in rows if row.is_published for cell in row.cells)
    cells = [cell for row in rows if not row.is_published for cell in row.cells]
    computed = " ".join(cell.value for cell in cells)
    legend = chance_legend(cell.figure for cell in cells)
    lines = {
        "* the published figure lies outside our 95% interval": "*" in published,
        legend: bool(legend),
        "± standard deviation over shuffles": "±" in computed,
        TIES: any(cell.figure and cell.figure.n_tied for cell in cells),
    }
    return [line for line, is_needed in lines.items() if is_needed]
