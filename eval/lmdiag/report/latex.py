"""Tables as LaTeX that fit a width: lines of headings, intervals below figures, several tables.

What a text needs is estimated from the widths of Computer Modern's letters, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from lmdiag.report.charts import name_part
from lmdiag.report.grid import (
    HEADING,
    CellText,
    Grid,
    GridRow,
    Layout,
    Section,
    fitted,
    signs,
    with_heading,
    wrapped,
)

_POINTS = 72.27 / 2.54
"""Points in a centimetre."""

_COLUMN = 9.0
"""Width in centimetres up to which a table stands in a column of a page."""

_GAP = 6.0
_LABEL = 64.0
"""Points between columns, and points that labels have at least where they are wrapped."""

_SHORT_HEADING = 8
"""Characters in a line of a heading, at least, where labels are wrapped."""

_MOST_LINES = 38
"""Lines of a table; a longer one is divided."""


class LatexTable(NamedTuple):
    """A table with escaped texts, see `cards/tables.latex.j2`.

    Attributes:
        environment, columns: of LaTeX, e.g. `table*` and `lrr`.
        caption, label, notes: above and below the table, not escaped.
        heading, lines: the lines of the table, without the ends of lines.
    """

    environment: str
    columns: Markup
    caption: str
    label: str
    notes: Sequence[str]
    heading: Markup
    lines: Sequence[Markup]


def latex_tables(
    sections: Sequence[Section], width: float, escaped: Callable[[object], str]
) -> Iterator[LatexTable]:
    """Yields the tables of sections, each no wider than `width` centimetres."""
    environment = "table" if width <= _COLUMN else "table*"
    for section in sections:
        grids = [*section.tables, *section.further]
        for number, grid in enumerate(grids, start=1):
            layouts = fitted(_grouped(grid), width * _POINTS, _needed, _LABEL)
            parts = [part for layout in layouts for part in _divided(layout)]
            title = section.title if section.task else ""
            caption = ". ".join(filter(None, (title, grid.caption)))
            notes = signs([grid])
            if section.signatures and number == len(grids):
                notes = [*section.remarks, *section.signatures]
            name = f"{name_part(section.task or section.title) or 'table'}-{number}"
            for i, part in enumerate(parts, start=1):
                of = f" ({i} of {len(parts)})" if len(parts) > 1 else ""
                label = f"{name}-{i}" if len(parts) > 1 else name
                yield LatexTable(
                    environment, _columns(part), f"{caption}{of}", label,
                    notes if i == len(parts) else [],
                    _heading(part, escaped), [*_lines(part, escaped)],
                )  # fmt: skip


def _points(text: str, size: float = 8.0) -> float:
    """The width of a text in points."""
    narrow = sum(letter in " .,:;()[]|/'ijlt-" for letter in text)
    wide = sum(letter.isupper() or letter in "mw%@±−<>↑↓≤" for letter in text)
    return size * (0.57 * len(text) - 0.2 * narrow + 0.25 * wide)


def _grouped(grid: Grid) -> Grid:
    """A table with one column of labels: those of models are below that of their figure."""
    if len(grid.label_headings) < 2:
        return grid
    rows = list[GridRow]()
    heading = None
    for row in grid.rows:
        first, *others = row.labels
        if not any(others):
            rows.append(row)
            continue
        part = row._replace(labels=(*others,))
        rows += with_heading(first, [part])[first == heading :]
        heading = first
    return grid._replace(label_headings=("",), rows=tuple(rows))


def _heading_lines(layout: Layout, i: int) -> list[str]:
    """The lines of the heading of a column, which are short where labels wrap, too."""
    widest = max(len(row.cells[i].value) for row in layout.grid.rows)
    least = HEADING if layout.room is None else _SHORT_HEADING
    heading = layout.grid.headings[i]
    return [*wrapped(heading.label, max(widest, least), break_words=False), *heading.facts]


def _width(layout: Layout, i: int) -> float:
    """The points that a column needs."""
    texts = [_points(line) for line in _heading_lines(layout, i)]
    for row in layout.grid.rows:
        cell = row.cells[i]
        parts = (_points(cell.value), _points(cell.interval, 7.0))
        texts.append(sum(parts) + 3 if layout.is_beside and cell.interval else max(parts))
    return max(texts) + _GAP


def _needed(layout: Layout) -> float:
    """The points that a table needs."""
    labels = max(map(_label_width, layout.grid.rows)) if layout.room is None else layout.room
    return labels + sum(_width(layout, i) for i in range(len(layout.grid.headings)))


def _label_width(row: GridRow) -> float:
    """The points that a label needs on one line."""
    return _points(row.labels[0]) + 10 * row.depth


def _divided(layout: Layout) -> Iterator[Layout]:
    """Parts of a long table, which end before a heading where there is one."""
    rows = layout.grid.rows
    while rows:
        heights = [*accumulate(_height(layout, row) for row in rows)]
        end = max(1, sum(height <= _MOST_LINES for height in heights))
        starts = [i for i in range(end // 2, end + 1) if i < len(rows) and not rows[i].depth]
        end = starts[-1] if end < len(rows) and starts else end
        yield layout._replace(grid=layout.grid._replace(rows=rows[:end]))
        rows = rows[end:]


def _height(layout: Layout, row: GridRow) -> int:
    """The lines of a row."""
    n = 1 if layout.room is None else math.ceil(1.2 * _label_width(row) / layout.room)
    return max(n, 2 if any(cell.interval for cell in row.cells) and not layout.is_beside else 1)


def _columns(layout: Layout) -> Markup:
    """The columns of a tabular."""
    labels = "l" if layout.room is None else f"p{{{layout.room - _GAP:.0f}pt}}"
    return Markup(labels + "r" * len(layout.grid.headings))


def _heading(layout: Layout, escaped: Callable[[object], str]) -> Markup:
    """The heading of a table, whose columns have several lines."""
    cells = [escaped(layout.grid.label_headings[0])]
    for i in range(len(layout.grid.headings)):
        lines = r"\\".join(map(escaped, _heading_lines(layout, i)))
        cells.append(rf"\shortstack[r]{{{lines}}}")
    return Markup(" & ".join(cells))


def _lines(layout: Layout, escaped: Callable[[object], str]) -> Iterator[Markup]:
    """The lines of the rows."""
    for row in layout.grid.rows:
        wraps = rf"\raggedright\hangindent={row.depth + 0.5}em "
        start = "" if layout.room is None else wraps
        label = start + r"\quad " * row.depth + escaped(row.labels[0])
        cells = [_cell(cell, escaped, is_beside=layout.is_beside) for cell in row.cells]
        yield Markup(" & ".join([label, *cells]))


def _cell(cell: CellText, escaped: Callable[[object], str], *, is_beside: bool) -> str:
    """A figure and its interval, which is small."""
    value = escaped(cell.value)
    if not cell.interval:
        return value
    interval = rf"{{\scriptsize {escaped(cell.interval)}}}"
    if is_beside:
        return f"{value} {interval}"
    return rf"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{value}\\{interval}\end{{tabular}}"
