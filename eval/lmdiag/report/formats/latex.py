"""The tables of a result as LaTeX, which fit a width.

The template is `cards/tables.latex.j2`. Tables fit with several lines of headings, intervals below
figures, scaled to at least 0.85 of their size, in both columns of a page, or, with more than six
columns, as several tables. LaTeX scales what is wider than its line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from lmdiag.report.charts import name_part
from lmdiag.report.formats.templates import template
from lmdiag.report.grid import (
    HEADING,
    NAME_PARTS,
    Grid,
    GridRow,
    fitted,
    grouped,
    tied,
    wrapped,
)
from lmdiag.report.output import WARNING, Output
from lmdiag.text import visible


def render(output: Output, width: float) -> str:
    """Returns the tables, which fit into `width` centimetres."""
    text = template("latex", _escaped).render(
        output=output, tables=_tables(output, width), warnings=_warnings(output)
    )
    return f"{text.rstrip()}\n"


# ---- what escapes texts --------------------------------------------------------------------------

_COMMANDS = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_\allowbreak{}", "/": r"/\allowbreak{}", "{": r"\{", "}": r"\}",
    "~": r"$\sim$", "\xa0": "~", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--", "|": r"\textbar{}\allowbreak{}",
    "≈": r"$\approx$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "●": r"$\bullet$", "…": r"\ldots{}",
})  # fmt: skip


def _escaped(text: str) -> str:
    """Returns a text with the characters that LaTeX takes for commands replaced."""
    return text.translate(_COMMANDS)


# ---- LaTeX tables that fit a width ---------------------------------------------------------------

_POINTS = 72.27 / 2.54
"""Points in a centimetre."""

_COLUMN = 9.0
"""Width in centimetres up to which a table stands in a column of a page."""

_PAGE = 17.0
"""Width in centimetres of both columns of a page, for what does not fit in one."""

_MOST_COLUMNS = 6
"""Columns of figures of a table that is never divided."""

_LONGEST_NAME = 40
_FUNCTION_WORDS = {"by", "for", "in", "of", "on", "over", "the", "to", "with"}
"""Characters of the label of a table, and words that it does not end in."""

_IN_HEADINGS = re.compile(r"\b(d_z|[nptF])\b")
_IN_NOTES = re.compile(r"\b(d_z|(?<!')p(?= (?:adj\.|exact|is|of)))\b")
"""Match the symbols of statistics, which are in italics."""

_GAP = 6.0
_LABEL = 64.0
"""Points between columns, and points that labels have at least where they are wrapped."""

_ROUNDING = 1e-6
_SMALLEST = 0.85
"""The size to which a table is scaled before its columns are divided."""

_SHORT_HEADING = 8
"""Characters in a line of a heading, at least, where labels are wrapped."""

_BREAKS = re.compile(r" +|(?<=[-/_|])|(?<=:)(?=\w)|(?<=\w)(?=\[)")
"""Matches where a line of a label may end."""

_MOST_LINES = 38
_USUAL_HEADING = 4
"""Lines of a table with headings of this many lines; a longer one is divided."""


def _warnings(output: Output) -> list[str]:
    """The warnings of the data, which are for the author of a paper and not for its readers."""
    remarks = [line for section in output.sections for line in section.remarks]
    return [line for line in dict.fromkeys(remarks) if line.startswith(WARNING)]


def _tables(output: Output, width: float) -> Iterator[dict[str, Any]]:
    """The tables of a result for the template, each with its note."""
    names = dict[str, int]()
    for section in output.sections:
        for grid in section.grids:
            shapes, room = _layout(grouped(grid), width)
            parts = [part for shape in shapes for part in _divided(shape)]
            title = section.title if section.task else ""
            caption = ". ".join(filter(None, (title, grid.caption)))
            name = _label(section.task, grid.title, names)
            note = [_with_symbols(line, _IN_NOTES) for line in output.note(section, grid)]
            for i, part in enumerate(parts, start=1):
                n = len(part.headings)
                lines = [_heading_lines(part, column) for column in range(n)]
                yield {
                    "grid": part,
                    "environment": "table" if room <= _COLUMN else "table*",
                    "row_labels": [_row_label(row.labels[0]) for row in part.rows],
                    "label_points": part.room and part.room - _GAP,
                    "headings": [
                        [_with_symbols(line, _IN_HEADINGS) for line in of_column]
                        for of_column in lines
                    ],
                    "caption": f"{caption} ({i} of {len(parts)})" if len(parts) > 1 else caption,
                    "label": f"{name}-{i}" if len(parts) > 1 else name,
                    "note": note,
                }


def _label(task: str, title: str, names: dict[str, int]) -> str:
    """The label of a table, which says what it is; `names` counts those that there are."""
    words = name_part(f"{task} {title}").split("-")
    while len("-".join(words)) > _LONGEST_NAME or (words and words[-1] in _FUNCTION_WORDS):
        words.pop()
    name = "-".join(words) or "table"
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}-{names[name]}"


def _row_label(text: str) -> Markup:
    """A label of a row, escaped, whose lines end before brackets and not in them."""
    parts = NAME_PARTS.split(tied(visible(text)))
    return Markup(r"\allowbreak{}".join(map(_escaped, parts)))


def _with_symbols(text: str, pattern: re.Pattern[str]) -> Markup:
    """A text with the symbols of statistics in italics, escaped."""
    parts = pattern.split(visible(text))  # every other one is a symbol
    return Markup("").join(
        Markup(f"${part}$" if i % 2 else _escaped(part)) for i, part in enumerate(parts)
    )


def _layout(grid: Grid, width: float) -> tuple[Sequence[Grid], float]:
    """The parts of a table, and the width in centimetres that they are made for.

    A table that does not fit a column is made for a page, and divided only if it is too wide for
    it and has more than six columns; a table of fewer is scaled by LaTeX.
    """
    widths = [width, max(width, _PAGE)] if width <= _COLUMN else [width]
    for room in widths:
        points = room * _POINTS
        parts = _parts_that_fit(grid, points)
        if len(parts) == 1 and _SMALLEST * _points_needed(parts[0]) <= points + _ROUNDING:
            return parts, room
    if len(grid.headings) <= _MOST_COLUMNS:
        return [grid._replace(is_beside=False, room=_least_label(grid, points))], room
    return parts, room


def _parts_that_fit(grid: Grid, points: float) -> Sequence[Grid]:
    """The table, scaled if need be; or parts of its columns that each fit."""
    least = _least_label(grid, points)
    for size in (1.0, _SMALLEST):
        parts = fitted(grid, points / size, _points_needed, least)
        if len(parts) == 1 and _points_needed(parts[0]) <= points / size + _ROUNDING:
            return parts
    return fitted(grid, points, _points_needed, least)


def _least_label(grid: Grid, points: float) -> float:
    """The points that labels have at least where they are wrapped."""
    longest = max((_longest_piece(row) for row in grid.rows), default=0.0)
    return min(max(_LABEL, longest), points / 2)


def _longest_piece(row: GridRow) -> float:
    """Returns the width, in points, of the longest piece of a row's label that cannot be broken."""
    pieces = _BREAKS.split(tied(visible(row.labels[0])))
    longest = max((_points(piece) for piece in pieces), default=0.0)
    return longest + 10 * row.depth + _GAP


def _points(text: str, size: float = 8.0) -> float:
    """The width of a text in points, from the widths of Computer Modern's letters, rounded up."""
    narrow = sum(letter in " .,:;()[]|/'ijlt-" for letter in text)
    wide = sum(letter.isupper() or letter in "mw%@±−<>≈↑↓≤" for letter in text)
    return size * (0.57 * len(text) - 0.2 * narrow + 0.25 * wide)


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


def _points_needed(grid: Grid) -> float:
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
    most_lines = _MOST_LINES - max(0, max(headings, default=0) - _USUAL_HEADING)
    while rows:
        heights = [*accumulate(_height(grid, row) for row in rows)]
        end = max(1, sum(height <= most_lines for height in heights))
        starts = [i for i in range(end // 2, end + 1) if i < len(rows) and not rows[i].depth]
        end = starts[-1] if end < len(rows) and starts else end
        yield grid._replace(rows=rows[:end])
        rows = rows[end:]


def _height(grid: Grid, row: GridRow) -> int:
    """The lines of a row."""
    n = 1 if grid.room is None else math.ceil(1.2 * _label_width(row) / grid.room)
    return max(n, 2 if any(cell.interval for cell in row.cells) and not grid.is_beside else 1)
