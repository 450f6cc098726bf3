"""The one shape of tables: texts in rows and columns, which every format and page renders."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
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

_KEPT_BLANK = "\x00"
"""Stands for a blank at which no line ends while `wrapped` divides a text into lines."""


def with_kept_brackets(text: str, width: int = 40, kept_blank: str = "\xa0") -> str:
    """Returns a text in which no line ends within short brackets, as in "verb [yes - no]".

    The blanks within such brackets are replaced.

    Args:
        width: most characters of brackets that are kept on one line.
        kept_blank: what takes the place of a blank; a no-break space by default.
    """

    def without_blanks(match: re.Match[str]) -> str:
        brackets = match[0]
        return brackets.replace(" ", kept_blank) if len(brackets) <= width else brackets

    return _SHORT_BRACKETS.sub(without_blanks, text)


class _Lines(textwrap.TextWrapper):
    """Wraps texts after blanks, after `-`, `:`, `/` and `_`, and before `[`."""

    wordsep_re = re.compile(r"(\s+)|(?<=[\w\]][-:/_])(?=\w)|(?<=\w)(?=\[)")


def wrapped(text: str, width: int, *, break_words: bool = True) -> list[str]:
    """Returns the lines of a label or a heading; brackets that fit into a line stay on one.

    >>> wrapped("attractor[same - different] of all", 22)
    ['attractor', '[same - different] of', 'all']
    """
    kept_together = with_kept_brackets(text, width, _KEPT_BLANK)
    lines = _Lines(width, break_long_words=break_words).wrap(kept_together)
    return [line.replace(_KEPT_BLANK, " ") for line in lines]


class CellText(NamedTuple):
    """The text of a cell.

    Attributes:
        value: a figure as text, or any other text.
        interval: of the figure, in brackets, with the number of ties behind it; "" without both.
        figure: that the cell shows; None for other texts.
        published: the published figure that is compared with it; None without one.
        link: path of the page that the text links to; a page that is written has it relative to
            its own folder.
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
        """The number of items of the figure; None where the cell has no figure."""
        return self.figure.n if self.figure else None


def cell_of(
    figure: Figure | None,
    published: PublishedFigure | None = None,
    is_plain: bool = False,
) -> CellText:
    """Returns the cell of a figure with its interval and ties; an empty one without a figure.

    Args:
        published: the published figure that is compared with it.
        is_plain: whether the cell has neither interval nor n.
    """
    if figure is None:
        return CellText("")
    if is_plain:  # `figure_grid` reads n from the figure of the cell
        figure = replace(figure, n=None, ci_low=None, ci_high=None)
    interval = ""
    if figure.sd is None:  # a figure over shuffles has its standard deviation in the value instead
        interval = numbers.bounds(figure.ci_low, figure.ci_high, figure.statistic)
    beside_value = f"{interval} {numbers.ties(figure)}".strip()
    return CellText(numbers.value(figure), beside_value, figure, published)


class Heading(NamedTuple):
    """A heading of a column, and facts that hold for all its figures, e.g. `n = 34`.

    `is_figure` is False for columns that say what the figures are about, e.g. n or p: a terminal
    shows these dimmed, and figures in bold.
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
        """Whether it is the heading of the rows below it: all its cells are empty."""
        return not any(cell.value for cell in self.cells)


class Grid(NamedTuple):
    """The texts of a table.

    Attributes:
        title: what the figures are.
        label_headings, headings: of the columns of labels, and of all other columns.
        rows: of the table, published figures in rows of their own.
        unit: after the title, e.g. ", percent".
        source: the table of a paper that has this shape, or "".
        has_intervals_beside: whether intervals stand beside their figures, and not below them.
        label_width: the width of labels that wrap, in the unit of the format; None if they do not.
        notes: what a reader of this table alone has to know.
    """

    title: str
    label_headings: tuple[str, ...]
    headings: tuple[Heading, ...]
    rows: tuple[GridRow, ...]
    unit: str = ""
    source: str = ""
    has_intervals_beside: bool = True
    label_width: float | None = None
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
        """Returns the shade of each cell of a column, from 0 (lightest) to 8 (darkest).

        Shades of percentages go from 0 to 100 percent, others from the lowest to the highest value
        of the column. A cell without a value has the shade 0.
        """
        figures = [row.cells[column].figure for row in self.rows]
        values = [figure.value if figure else None for figure in figures]
        low, high = 0.0, 1.0
        if not any(figure.is_percent for figure in figures if figure):
            defined = [value for value in values if value is not None] or [0.0]
            low, high = min(defined), max(defined)
        span = high - low or 1.0  # equal values have the shade 0
        return [0 if value is None else round(8 * (value - low) / span) for value in values]

    @property
    def chance_levels(self) -> str:
        """The chance levels of the figures in percent, as text: "A 33.3, B 25.0 and 50.0".

        A and B are the headings of the rows with these levels. In a table without such headings,
        the text is, for example, "50.0".
        """
        levels_below = dict[str, dict[str, None]]()  # heading of rows -> their distinct levels
        heading = ""
        for row in self.rows:
            if row.is_heading:
                heading = f"{row.labels[0]} "
            for level in _chance_levels(row.cells):
                if level:
                    levels_below.setdefault(heading, {})[level] = None
        return ", ".join(heading + " and ".join(levels) for heading, levels in levels_below.items())

    @property
    def caption(self) -> str:
        """Title, unit and source: "Accuracy, percent with 95% interval (Table 2)"."""
        interval = ""
        if self.has_figures:
            interval = " with 95% interval" if self.unit else ", with 95% interval"
        source = f" ({self.source})" if self.source else ""
        return f"{self.title}{self.unit}{interval}{source}"

    def select_columns(self, positions: Sequence[int]) -> Grid:
        """Returns the table with the columns at some positions, from 0; labels do not count."""
        rows = [row._replace(cells=tuple(row.cells[i] for i in positions)) for row in self.rows]
        headings = tuple(self.headings[i] for i in positions)
        return self._replace(headings=headings, rows=tuple(rows))

    def halves(self) -> list[Grid]:
        """Returns two tables with half of the columns each; [] if there is nothing to divide.

        The columns n and chance stand in both tables. A column that belongs to the column before
        it, as the p of a figure, stays with that column: the columns "n", "A", "p", "B" are divided
        into "n", "A", "p" and "n", "B". A row that is empty in one of the tables is left out there.
        """
        shared_columns = [
            i for i, heading in enumerate(self.headings) if heading.label in ("n", "chance")
        ]
        groups = list[list[int]]()  # positions of columns that stay together
        for i, heading in enumerate(self.headings):
            if groups and _OF_THE_COLUMN_BEFORE.match(heading.label):
                groups[-1].append(i)
            elif i not in shared_columns:
                groups.append([i])
        if len(groups) < 2:
            return []
        middle = (len(groups) + 1) // 2
        halves = []
        for groups_of_half in (groups[:middle], groups[middle:]):
            columns = [i for group in groups_of_half for i in group]
            rows = [
                row
                for row in self.rows
                if row.labels[0] != PUBLISHED  # `figure_grid` makes these rows again
                and (row.is_heading or any(row.cells[i].value for i in columns))
            ]
            if not self.has_figures:  # n and chance of figures are made again, too
                columns = sorted((*shared_columns, *columns))
            half = self._replace(rows=tuple(rows)).select_columns(columns)
            names = [heading.label for heading in half.headings]
            text_columns = [heading.label for heading in half.headings if not heading.is_figure]
            half_grid = figure_grid(
                self.title, self.label_headings, names, half.rows, text_columns=text_columns
            )
            halves.append(half_grid._replace(notes=self.notes))
        return halves


def fit_to_width(
    grid: Grid,
    width: float,
    width_needed: Callable[[Grid], float],
    least_label_width: float,
    *,
    wraps_first: bool = False,
) -> list[Grid]:
    """Returns the table if it fits into a width, or parts of its columns that each fit.

    If need be, intervals stand below figures and labels wrap. A part that cannot be divided further
    is returned although it is too wide.

    Args:
        grid: the table.
        width: available width, in the unit of `width_needed`.
        width_needed: returns the width that a table needs.
        least_label_width: width that labels have at least where they wrap.
        wraps_first: whether labels wrap before intervals stand below figures.
    """
    # whether intervals are beside figures, and the width of labels that wrap; the widest first
    layouts = [(True, None), (False, None), (True, least_label_width), (False, least_label_width)]
    if wraps_first:
        layouts[1], layouts[2] = layouts[2], layouts[1]
    for has_intervals_beside, label_width in layouts:
        candidate = grid._replace(
            has_intervals_beside=has_intervals_beside, label_width=label_width
        )
        spare = width - width_needed(candidate)
        if spare >= 0:
            if label_width is not None:  # labels get the width that is left
                candidate = candidate._replace(label_width=label_width + spare)
            return [candidate]
    parts = list[Grid]()
    for half in grid.halves():
        parts += fit_to_width(half, width, width_needed, least_label_width, wraps_first=wraps_first)
    return parts or [candidate]  # the narrowest layout, of a table that cannot be divided


def rows_below_heading(title: str, rows: Iterable[GridRow]) -> list[GridRow]:
    """Returns the rows, each indented by one step more, with a heading row above them.

    For example, the rows "accuracy" and "sensitivity" become "NEG-136", and indented "accuracy" and
    "sensitivity". The heading row has the title as its only label, and as many empty cells as the
    rows have cells. [] without rows.
    """
    indented_rows = [row._replace(depth=row.depth + 1) for row in rows]
    if not indented_rows:
        return []
    empty_cells = [CellText("")] * len(indented_rows[0].cells)
    heading_row = GridRow(labels=(title,), depth=0, cells=tuple(empty_cells))
    return [heading_row, *indented_rows]


def with_one_label_column(grid: Grid) -> Grid:
    """Returns a table with one column of labels, made of one with two: figure and model.

    The rows of models stand, indented, below a row with the name of their figure. For example,
    ("accuracy", "gpt2") and ("accuracy", "bert") become "accuracy", and indented "gpt2" and "bert".
    If all rows of each model follow each other, the rows of figures stand below a row with the name
    of the model instead.
    """
    if len(grid.label_headings) < 2:
        return grid
    models = [row.labels[1] for row in grid.rows if row.labels[1]]
    n_blocks = sum(1 for _ in groupby(models))  # stretches of rows of the same model
    # each model has one stretch, and some stretch has several rows
    are_models_blocks = n_blocks == len({*models}) < len(models)
    rows = list[GridRow]()
    last_heading = None
    for row in grid.rows:
        heading, label = reversed(row.labels) if are_models_blocks else row.labels
        if not heading or not label:  # people and published figures have one label
            rows.append(row._replace(labels=(heading or label,)))
            continue
        with_heading_row = rows_below_heading(heading, [row._replace(labels=(label,))])
        # the heading row stands once, above the first of the rows with this heading
        rows += with_heading_row[1:] if heading == last_heading else with_heading_row
        last_heading = heading
    return grid._replace(label_headings=("",), rows=tuple(rows))


def text_grid(
    title: str,
    label_headings: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], Mapping[str, str | CellText]]],
    text_columns: Collection[str] = (),
) -> Grid:
    """Returns a table of texts.

    For example, the row (("gpt2",), {"n": "34", "mean": "1.20"}) is the label "gpt2" and the cells
    "34" and "1.20" below the headings "n" and "mean".

    Args:
        title: of the table.
        label_headings: of the columns of labels.
        rows: the labels of each row, and heading of each other column -> its text; all rows have
            the same headings.
        text_columns: headings of columns that say what the figures are about, e.g. n or p, and are
            less prominent than the figures, see `Heading`.
    """
    headings = list[str]()
    grid_rows = []
    for labels, texts in rows:
        headings = [*texts]
        cells = (text if isinstance(text, CellText) else CellText(text) for text in texts.values())
        grid_rows.append(GridRow(tuple(map(visible, labels)), 0, tuple(cells)))
    return figure_grid(title, label_headings, headings, grid_rows, text_columns=text_columns)


def figure_grid(
    title: str,
    label_headings: tuple[str, ...],
    columns: Sequence[str],
    rows: Sequence[GridRow],
    source: str = "",
    text_columns: Collection[str] = (),
) -> Grid:
    """Returns a table of figures.

    n and the chance level have columns of their own, unless all figures of a column have the same
    one: then it is part of the heading, as "accuracy (n = 34, chance 50.0)". Published figures get
    rows of their own below the figures.

    Args:
        title: of the table.
        label_headings: of the columns of labels.
        columns: headings of the cells of `rows`.
        source: the table of a paper that has this shape, or "".
        text_columns: those of `columns` that say what the figures are about, e.g. n or p, and are
            less prominent than the figures, see `Heading`.
    """
    # whether n and the chance level have columns of their own
    n_of_columns = []
    chance_of_columns = []
    for column_cells in zip(*(row.cells for row in rows), strict=True):
        n_of_columns.append(_numbers_of_items(column_cells))
        chance_of_columns.append(_chance_levels(column_cells))
    # One n for each row is a column; one n for each column of figures is part of its heading.
    differs_in_columns = any(len(n) > 1 for n in n_of_columns)
    differs_in_rows = any(len(_numbers_of_items(row.cells)) > 1 for row in rows)
    has_n_column = any(n_of_columns) and (differs_in_columns or not differs_in_rows)
    has_levels = any(level for levels in chance_of_columns for level in levels)
    has_chance_column = has_levels and any(len(levels) > 1 for levels in chance_of_columns)

    def with_facts(
        cells: Iterable[CellText], n: str = "", chance: str = ""
    ) -> tuple[CellText, ...]:
        """Returns cells with that of n before them and that of the chance level behind them."""
        before = [CellText(n)] if has_n_column else []
        after = [CellText(chance)] if has_chance_column else []
        return (*before, *cells, *after)

    # the headings, with n and the chance level where these have no column
    headings = [Heading("n")] if has_n_column else []
    for column, n, levels in zip(columns, n_of_columns, chance_of_columns, strict=True):
        facts = list[str]()
        if not has_n_column:
            facts += [f"n = {number}" for number in n]
        if not has_chance_column:
            facts += [f"chance {level}" for level in levels if level]
        headings.append(Heading(column, tuple(facts), column not in text_columns))
    headings += [Heading("chance")] if has_chance_column else []
    # the rows, each followed by the published figures that are compared with it
    grid_rows = []
    for row in rows:
        n_of_row = _range(_numbers_of_items(row.cells))
        chance_of_row = _range([level for level in _chance_levels(row.cells) if level])
        cells_of_row = with_facts(row.cells, n_of_row, chance_of_row)
        grid_rows.append(row._replace(cells=cells_of_row))
        published_texts = [
            numbers.published(cell.published, cell.figure) if cell.figure else ""
            for cell in row.cells
        ]
        if any(published_texts):
            labels = (PUBLISHED, *[""] * (len(row.labels) - 1))
            cells = with_facts(map(CellText, published_texts))
            grid_rows.append(GridRow(labels, row.depth + 1, cells, is_published=True))
    are_percent = {cell.figure.is_percent for row in rows for cell in row.cells if cell.figure}
    unit = PERCENT if are_percent == {True} else ""
    return Grid(title, label_headings, tuple(headings), tuple(grid_rows), unit, source)


def _range(values: list[str]) -> str:
    """Returns the first and the last of some values; a single value alone; "" for [].

    >>> _range(["31", "32", "33"]), _range(["31"]), _range([])
    ('31–33', '31', '')
    """
    return "–".join(values if len(values) < 2 else [values[0], values[-1]])


def _numbers_of_items(cells: Iterable[CellText]) -> list[str]:
    """Returns the distinct n of the figures in some cells in ascending order, e.g. ["31", "33"]."""
    n = {cell.figure.n for cell in cells if cell.figure and cell.figure.n is not None}
    return [f"{number:,}" for number in sorted(n)]


def _chance_levels(cells: Iterable[CellText]) -> list[str]:
    """Returns the distinct chance levels of the figures in some cells in percent, in order.

    "" comes first and stands for figures without a chance level: ["", "33.3", "50.0"]. Figures
    without a value are passed over.
    """
    figures = [cell.figure for cell in cells if cell.figure]
    levels = [figure.chance for figure in figures if figure.value is not None]
    # means of thirds differ in the last digits of a float
    distinct = sorted({round(level, 9) for level in levels if level is not None})
    texts = [numbers.number(level, "share") for level in distinct]
    return ["", *texts] if None in levels else texts


def chance_legend(figures: Iterable[Figure | None]) -> str:
    """Returns what the signs ↑, ↓ and ≈ beside figures mean; "" if no figure has one."""
    figures_with_sign = [figure for figure in figures if figure and figure.chance_sign]
    if not figures_with_sign:
        return ""
    if any(figure.statistic != "proportion" for figure in figures_with_sign):
        return CHANCE_LEGEND
    # the t test is that of EW and MW, which are not proportions
    return CHANCE_LEGEND.replace("; for EW and MW, t test", "")


def signs(grids: Iterable[Grid]) -> list[str]:
    """Returns a line with the meaning of each sign that stands in the tables: *, ↑, ±, tied."""
    rows = [row for grid in grids for row in grid.rows]
    published_cells = [cell for row in rows if row.is_published for cell in row.cells]
    cells = [cell for row in rows if not row.is_published for cell in row.cells]
    legend = chance_legend(cell.figure for cell in cells)
    is_needed = {
        "* the published figure lies outside our 95% interval": any(
            "*" in cell.value for cell in published_cells
        ),
        legend: legend != "",
        "± standard deviation over shuffles": any("±" in cell.value for cell in cells),
        TIES: any(cell.figure and cell.figure.n_tied for cell in cells),
    }
    return [line for line in is_needed if is_needed[line]]
