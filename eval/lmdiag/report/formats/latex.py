"""The tables of a result as LaTeX, which fit a width.

The template is `cards/tables.latex.j2`. Tables fit with several lines of headings, intervals below
figures, scaled to at least 0.85 of their size, or as several tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from lmdiag.report.charts import name_part
from lmdiag.report.formats.templates import template
from lmdiag.report.grid import (
    HEADING,
    Grid,
    GridRow,
    fitted,
    signs,
    with_heading,
    wrapped,
)
from lmdiag.report.output import Output, Section


def render(output: Output, width: float) -> str:
    """Returns the tables, which fit into `width` centimetres."""
    tables = [table for i, x in enumerate(output.sections, 1) for table in _tables(x, i, width)]
    environment = "table" if width <= _COLUMN else "table*"
    text = template("latex", _escaped).render(output=output, tables=tables, environment=environment)
    return f"{text.rstrip()}\n"


# ---- what escapes texts --------------------------------------------------------------------------

_COMMANDS = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_\allowbreak{}", "/": r"/\allowbreak{}", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--", "|": r"\textbar{}\allowbreak{}",
    "≈": r"$\approx$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "●": r"$\bullet$", "…": r"\ldots{}",
})  # fmt: skip


def _escaped(text: str) -> str:
    return text.translate(_COMMANDS)


# ---- LaTeX tables that fit a width ---------------------------------------------------------------

_POINTS = 72.27 / 2.54
"""Points in a centimetre."""

_COLUMN = 9.0
"""Width in centimetres up to which a table stands in a column of a page."""

_GAP = 6.0
_LABEL = 64.0
"""Points between columns, and points that labels have at least where they are wrapped."""

_ROUNDING = 1e-6
_SMALLEST = 0.85
"""The size to which a table is scaled before its columns are divided."""

_SHORT_HEADING = 8
"""Characters in a line of a heading, at least, where labels are wrapped."""

_BREAKS = re.compile(r"\s+|(?<=[-/_|])")
"""Matches where a line of a label may end."""

_MOST_LINES = 38
_USUAL_HEADING = 4
"""Lines of a table with headings of this many lines; a longer one is divided."""


def _tables(section: Section, number: int, width: float) -> Iterator[dict[str, Any]]:
    """The tables of a section for the template, each no wider than `width` centimetres."""
    grids = section.grids
    of_section = section.task or section.title or f"section-{number}"
    for place, grid in enumerate(grids, start=1):
        parts = [part for table in _fitting(grid, width * _POINTS) for part in _divided(table)]
        title = section.title if section.task else ""
        caption = ". ".join(filter(None, (title, grid.caption)))
        name = f"{name_part(of_section) or 'table'}-{place}"
        notes = signs([grid])
        if not section.task and place == len(grids):
            notes = [*section.remarks, *section.signatures]
        for i, part in enumerate(parts, start=1):
            n = len(part.headings)
            yield {
                "grid": part,
                "scale": max(_SMALLEST, min(1.0, width * _POINTS / _needed(part))),
                "label_points": part.room and part.room - _GAP,
                "headings": [_heading_lines(part, column) for column in range(n)],
                "caption": f"{caption} ({i} of {len(parts)})" if len(parts) > 1 else caption,
                "label": f"{name}-{i}" if len(parts) > 1 else name,
                "notes": notes if i == len(parts) else [],
            }


def _fitting(grid: Grid, points: float) -> Sequence[Grid]:
    """The table, scaled if need be; or parts of its columns that each fit."""
    grid = _grouped(grid)
    longest = max((_longest_piece(row) for row in grid.rows), default=0.0)
    least = min(max(_LABEL, longest), points / 2)
    for size in (1.0, _SMALLEST):
        parts = fitted(grid, points / size, _needed, least)
        if len(parts) == 1 and _needed(parts[0]) <= points / size + _ROUNDING:
            return parts
    return fitted(grid, points, _needed, least)


def _longest_piece(row: GridRow) -> float:
    """The points of the longest part of a label that is not divided."""
    longest = max((_points(piece) for piece in _BREAKS.split(row.labels[0])), default=0.0)
    return longest + 10 * row.depth + _GAP


def _points(text: str, size: float = 8.0) -> float:
    """The width of a text in points, from the widths of Computer Modern's letters, rounded up."""
    narrow = sum(letter in " .,:;()[]|/'ijlt-" for letter in text)
    wide = sum(letter.isupper() or letter in "mw%@±−<>≈↑↓≤" for letter in text)
    return size * (0.57 * len(text) - 0.2 * narrow + 0.25 * wide)


def _grouped(grid: Grid) -> Grid:
    """A table with one column of labels: those of models are below that of their figure."""
    if len(grid.label_headings) < 2:
        return grid
    rows = list[GridRow]()
    heading = None
    for row in grid.rows:
        label, *others = row.labels
        if not any(others):
            rows.append(row)
            continue
        part = row._replace(labels=(*others,))
        rows += with_heading(label, [part])[label == heading :]
        heading = label
    return grid._replace(label_headings=("",), rows=tuple(rows))


def _heading_lines(grid: Grid, i: int) -> list[str]:
    """The lines of the heading of a column, which are short where labels wrap, too."""
    widest = max(len(row.cells[i].value) for row in grid.rows)
    least = HEADING if grid.room is None else _SHORT_HEADING
    heading = grid.headings[i]
    return [*wrapped(heading.label, max(widest, least), break_words=False), *heading.facts]


def _width(grid: Grid, i: int) -> float:
    """The points that a column needs."""
    texts = [_points(line) for line in _heading_lines(grid, i)]
    for row in grid.rows:
        cell = row.cells[i]
        parts = (_points(cell.value), _points(cell.interval, 7.0))
        texts.append(sum(parts) + 3 if grid.is_beside and cell.interval else max(parts))
    return max(texts) + _GAP


def _needed(grid: Grid) -> float:
    """The points that a table needs."""
    widths = [_points(grid.label_headings[0]), *map(_label_width, grid.rows)]
    labels = max(widths) if grid.room is None else grid.room
    return labels + sum(_width(grid, i) for i in range(len(grid.headings)))


def _label_width(row: GridRow) -> float:
    """The points that a label needs on one line."""
    return _points(row.labels[0]) + 10 * row.depth


def _divided(grid: Grid) -> Iterator[Grid]:
    """Parts of a long table, which end before a heading where there is one."""
    rows = grid.rows
    headings = [len(_heading_lines(grid, i)) for i in range(len(grid.headings))]
    most = _MOST_LINES - max(0, max(headings, default=0) - _USUAL_HEADING)
    while rows:
        heights = [*accumulate(_height(grid, row) for row in rows)]
        end = max(1, sum(height <= most for height in heights))
        starts = [i for i in range(end // 2, end + 1) if i < len(rows) and not rows[i].depth]
        end = starts[-1] if end < len(rows) and starts else end
        yield grid._replace(rows=rows[:end])
        rows = rows[end:]


def _height(grid: Grid, row: GridRow) -> int:
    """The lines of a row."""
    n = 1 if grid.room is None else math.ceil(1.2 * _label_width(row) / grid.room)
    return max(n, 2 if any(cell.interval for cell in row.cells) and not grid.is_beside else 1)
