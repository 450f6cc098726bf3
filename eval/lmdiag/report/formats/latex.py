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
    fit_to_width,
    with_kept_brackets,
    with_one_label_column,
    wrapped,
)
from lmdiag.report.output import WARNING, Output
from lmdiag.text import visible


def render(output: Output, width: float) -> str:
    """Returns the tables of a result as LaTeX; they fit into `width` centimetres."""
    text = template("latex", _escape).render(
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


def _escape(text: str) -> str:
    """Returns a text with LaTeX commands in place of the characters that are special to LaTeX."""
    return text.translate(_COMMANDS)


# ---- LaTeX tables that fit a width ---------------------------------------------------------------

_POINTS_PER_CM = 72.27 / 2.54
"""Points of TeX, of which an inch has 72.27, in a centimetre."""

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
_INDENT = 10
"""Points between columns, that labels have at least where they wrap, and of a step of a label."""

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
    """The warnings of the data, each once: they are for the author of a paper, not its readers."""
    remarks = [line for section in output.sections for line in section.remarks]
    return [line for line in dict.fromkeys(remarks) if line.startswith(WARNING)]


def _tables(output: Output, width: float) -> Iterator[dict[str, Any]]:
    """Yields what the template prints of each table, or of each part of a table that is divided.

    The tables are made for `width` centimetres; see `_layout`.
    """
    n_tables = dict[str, int]()
    for section in output.sections:
        for grid in section.grids:
            # a table that is too wide is divided by columns, and each part that is too long by rows
            column_parts, layout_width = _layout(with_one_label_column(grid), width)
            parts = [part for columns in column_parts for part in _parts_of_rows(columns)]
            is_divided = len(parts) > 1
            title = section.title if section.task else ""
            caption = ". ".join(filter(None, (title, grid.caption)))
            label = _table_label(section.task, grid.title, n_tables)
            note = [_with_symbols(line, _IN_NOTES) for line in output.note(section, grid)]
            for i, part in enumerate(parts, start=1):
                headings = []
                for column in range(len(part.headings)):
                    lines = _heading_lines(part, column)
                    headings.append([_with_symbols(line, _IN_HEADINGS) for line in lines])
                yield {
                    "grid": part,
                    "environment": "table" if layout_width <= _COLUMN else "table*",
                    "row_labels": [_row_label(row.labels[0]) for row in part.rows],
                    # None where labels do not wrap; LaTeX adds the gap itself
                    "label_points": part.label_width and part.label_width - _GAP,
                    "headings": headings,
                    "caption": f"{caption} ({i} of {len(parts)})" if is_divided else caption,
                    "label": f"{label}-{i}" if is_divided else label,
                    "note": note,
                }


def _table_label(task: str, title: str, n_tables: dict[str, int]) -> str:
    """The label by which a text refers to a table, of words of its task and title.

    For example, "neg136-accuracy-by-polarity" for the task "neg136" and the title "Accuracy by
    polarity". `n_tables` counts the tables that would have the same label; later ones are numbered
    from 2.
    """
    words = name_part(f"{task} {title}").split("-")
    # words at the end are left out while the label is too long or ends in a function word
    while len("-".join(words)) > _LONGEST_NAME or (words and words[-1] in _FUNCTION_WORDS):
        words.pop()
    label = "-".join(words) or "table"
    n_tables[label] = n_tables.get(label, 0) + 1
    return label if n_tables[label] == 1 else f"{label}-{n_tables[label]}"


def _row_label(text: str) -> Markup:
    r"""The LaTeX of a label of a row, in which a line may end before brackets, but not within them.

    For example, "verb[a - b]" -> r"verb\allowbreak{}[a~-~b]", where ~ is a blank at which no line
    ends.
    """
    parts = NAME_PARTS.split(with_kept_brackets(visible(text)))
    return Markup(r"\allowbreak{}".join(map(_escape, parts)))


def _with_symbols(text: str, pattern: re.Pattern[str]) -> Markup:
    r"""A text, escaped, with the symbols of statistics that a pattern matches in italics.

    For example, "p adj. of A & B" becomes "$p$ adj. of A \& B".
    """
    parts = pattern.split(visible(text))  # every other one is a symbol
    return Markup("").join(
        Markup(f"${part}$" if i % 2 else _escape(part)) for i, part in enumerate(parts)
    )


def _layout(grid: Grid, width: float) -> tuple[Sequence[Grid], float]:
    """The parts of a table, and the width in centimetres that they are made for.

    A table that does not fit a column is made for a page, and divided only if it is too wide for
    it and has more than six columns; a table of fewer is scaled by LaTeX.
    """
    layout_widths = [width]
    if width <= _COLUMN:
        layout_widths.append(max(width, _PAGE))
    for layout_width in layout_widths:
        points = layout_width * _POINTS_PER_CM
        parts = _parts_that_fit(grid, points)
        # a table that is a little too wide is scaled, to `_SMALLEST` at least
        if len(parts) == 1 and _SMALLEST * _table_width(parts[0]) <= points + _ROUNDING:
            return parts, layout_width
    # it does not fit the last of these widths undivided
    if len(grid.headings) <= _MOST_COLUMNS:
        label_width = _least_label_width(grid, points)
        parts = [grid._replace(has_intervals_beside=False, label_width=label_width)]
    return parts, layout_width


def _parts_that_fit(grid: Grid, points: float) -> Sequence[Grid]:
    """The table if it fits a width in points, scaled if need be; or parts of its columns that do.

    The parts are not scaled.
    """
    least = _least_label_width(grid, points)
    for size in (1.0, _SMALLEST):
        parts = fit_to_width(grid, points / size, _table_width, least)
        if len(parts) == 1 and _table_width(parts[0]) <= points / size + _ROUNDING:
            return parts
    return fit_to_width(grid, points, _table_width, least)


def _least_label_width(grid: Grid, points: float) -> float:
    """The least width of labels that wrap, in points, in a table that is `points` wide.

    The longest part of a label that cannot be divided fits, if half of the table is enough for it.
    """
    longest = max((_longest_piece(row) for row in grid.rows), default=0.0)
    return min(max(_LABEL, longest), points / 2)


def _longest_piece(row: GridRow) -> float:
    """The width in points of the longest piece of a row's label that cannot be divided."""
    pieces = _BREAKS.split(with_kept_brackets(visible(row.labels[0])))
    longest = max((_text_width(piece) for piece in pieces), default=0.0)
    return longest + _INDENT * row.depth + _GAP


def _text_width(text: str, size: float = 8.0) -> float:
    """The width of a text in points, in a font of this size.

    The factors are those of letters of Computer Modern, rounded up: .57 of the size for most, .37
    for narrow ones, .82 for wide ones.
    """
    n_narrow = sum(letter in " .,:;()[]|/'ijlt-" for letter in text)
    n_wide = sum(letter.isupper() or letter in "mw%@±−<>≈↑↓≤" for letter in text)
    return size * (0.57 * len(text) - 0.2 * n_narrow + 0.25 * n_wide)


def _heading_lines(grid: Grid, i: int) -> list[str]:
    """The lines of the heading of column i: its words wrapped, then its facts, e.g. "n = 34".

    They are at least as wide as the figures; headings of a table whose labels wrap are narrower.
    """
    widest = max(len(row.cells[i].value) for row in grid.rows)
    least = HEADING if grid.label_width is None else _SHORT_HEADING
    heading = grid.headings[i]
    return [*wrapped(heading.label, max(widest, least), break_words=False), *heading.facts]


def _column_width(grid: Grid, i: int) -> float:
    """The width of column i in points, with the gap to the next column.

    It is that of the widest line of the heading, or of the widest cell.
    """
    widths = [_text_width(line) for line in _heading_lines(grid, i)]
    for row in grid.rows:
        cell = row.cells[i]
        value_width = _text_width(cell.value)
        interval_width = _text_width(cell.interval, 7.0)  # in smaller letters
        if grid.has_intervals_beside and cell.interval:
            widths.append(value_width + interval_width + 3)  # and a blank
        else:
            widths.append(max(value_width, interval_width))
    return max(widths) + _GAP


def _table_width(grid: Grid) -> float:
    """The width of a table in points."""
    column_widths = [_column_width(grid, i) for i in range(len(grid.headings))]
    if grid.label_width is not None:  # the width of labels that wrap
        return grid.label_width + sum(column_widths)
    label_widths = [_text_width(grid.label_headings[0]), *map(_label_width, grid.rows)]
    return max(label_widths) + sum(column_widths)


def _label_width(row: GridRow) -> float:
    """The width of a row's label on one line, in points."""
    return _text_width(row.labels[0]) + _INDENT * row.depth


def _parts_of_rows(grid: Grid) -> Iterator[Grid]:
    """Yields parts of a table that are each short enough for a page.

    A part ends before a row that is not indented, if there is one in its second half: with the rows
    below it, such a row begins a group.
    """
    rows = grid.rows
    n_heading_lines = [len(_heading_lines(grid, i)) for i in range(len(grid.headings))]
    most_lines = _MOST_LINES - max(0, max(n_heading_lines, default=0) - _USUAL_HEADING)
    while rows:
        last_lines = [*accumulate(_n_lines(grid, row) for row in rows)]  # where each row ends
        end = max(1, sum(line <= most_lines for line in last_lines))
        if end < len(rows):
            second_half = range(max(1, end // 2), end + 1)  # without row 0: no part is empty
            group_starts = [i for i in second_half if rows[i].depth == 0]
            end = group_starts[-1] if group_starts else end
        yield grid._replace(rows=rows[:end])
        rows = rows[end:]


def _n_lines(grid: Grid, row: GridRow) -> int:
    """The number of lines of a row: those of its label, but at least 2 with intervals below."""
    n_label_lines = 1
    if grid.label_width is not None:
        # a wrapped line is not full, so that a label needs a fifth more
        n_label_lines = math.ceil(1.2 * _label_width(row) / grid.label_width)
    has_interval_below = not grid.has_intervals_beside and any(cell.interval for cell in row.cells)
    return max(n_label_lines, 2 if has_interval_below else 1)
