"""Tables as Markdown and LaTeX, and all figures as csv.

Markdown and LaTeX are templates, `cards/tables.*.j2`, over the texts of `grid`. To add a text
format, add its template and what escapes its texts. LaTeX tables fit a width: with several lines of
headings, intervals below figures, or as several tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from lmdiag.files import resource_path
from lmdiag.report.charts import name_part
from lmdiag.report.grid import (
    HEADING,
    CellText,
    Grid,
    GridRow,
    Section,
    fitted,
    signs,
    with_heading,
    wrapped,
)
from lmdiag.report.items import Chosen
from lmdiag.results import Results
from lmdiag.results.figures import figures
from lmdiag.text import csv_cell, visible


def figures_as_csv(runs: Sequence[Results]) -> str:
    """Returns the table of `lmdiag.results.figures.figures` at full precision."""
    texts = figures(runs).map(lambda x: csv_cell(visible(x)) if isinstance(x, str) else x)
    return str(texts.to_csv(index=False, lineterminator="\n"))


def render_tables(
    name: str, sections: Sequence[Section], chosen: Sequence[Chosen] = (), width: float = 8.0
) -> str:
    """Returns tables as `markdown` or `latex`, and the top words of chosen items.

    LaTeX tables fit into `width` centimetres.
    """

    def escaped(value: object) -> Markup:
        is_plain = isinstance(value, Markup) or (name == "markdown" and isinstance(value, CellText))
        text = str(value)
        return Markup(text if is_plain else _ESCAPING[name](visible(" ".join(text.split()))))

    env = Environment(
        "<%", "%>", "<<", ">>", "<%#", "#%>",
        trim_blocks=True, lstrip_blocks=True, autoescape=True, finalize=escaped,
    )  # fmt: skip
    env.filters["literal"] = lambda text: Markup(visible(" ".join(text.split())))
    template = env.from_string(resource_path("cards", f"tables.{name}.j2").read_text("utf-8"))
    tables = _latex_tables(sections, width) if name == "latex" else ()
    environment = "table" if width <= _COLUMN else "table*"
    text = template.render(sections=sections, chosen=chosen, tables=tables, environment=environment)
    return f"{text.rstrip()}\n"


# ---- what escapes texts --------------------------------------------------------------------------

_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""

_COMMANDS = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_\allowbreak{}", "/": r"/\allowbreak{}", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--", "|": r"\textbar{}\allowbreak{}",
    "†": r"$\dagger$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "●": r"$\bullet$", "…": r"\ldots{}",
})  # fmt: skip

_ESCAPING: dict[str, Callable[[str], str]] = {
    "markdown": lambda text: _MARKUP.sub(r"\\\g<0>", text),
    "latex": lambda text: text.translate(_COMMANDS),
}
"""Format with a template -> what escapes a text on one line."""

# ---- LaTeX tables that fit a width ---------------------------------------------------------------

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


def _latex_tables(sections: Sequence[Section], width: float) -> Iterator[dict[str, Any]]:
    """The tables of sections for the template, each no wider than `width` centimetres."""
    for section in sections:
        grids = [*section.tables, *section.further]
        for number, grid in enumerate(grids, start=1):
            fitting = fitted(_grouped(grid), width * _POINTS, _needed, _LABEL)
            parts = [part for table in fitting for part in _divided(table)]
            title = section.title if section.task else ""
            caption = ". ".join(filter(None, (title, grid.caption)))
            name = f"{name_part(section.task or section.title) or 'table'}-{number}"
            notes = signs([grid])
            if section.signatures and number == len(grids):
                notes = [*section.remarks, *section.signatures]
            for i, part in enumerate(parts, start=1):
                n = len(part.headings)
                yield {
                    "grid": part,
                    "label_points": part.room and part.room - _GAP,
                    "headings": [_heading_lines(part, column) for column in range(n)],
                    "caption": f"{caption} ({i} of {len(parts)})" if len(parts) > 1 else caption,
                    "label": f"{name}-{i}" if len(parts) > 1 else name,
                    "notes": notes if i == len(parts) else [],
                }


def _points(text: str, size: float = 8.0) -> float:
    """The width of a text in points, from the widths of Computer Modern's letters, rounded up."""
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
    labels = max(map(_label_width, grid.rows)) if grid.room is None else grid.room
    return labels + sum(_width(grid, i) for i in range(len(grid.headings)))


def _label_width(row: GridRow) -> float:
    """The points that a label needs on one line."""
    return _points(row.labels[0]) + 10 * row.depth


def _divided(grid: Grid) -> Iterator[Grid]:
    """Parts of a long table, which end before a heading where there is one."""
    rows = grid.rows
    while rows:
        heights = [*accumulate(_height(grid, row) for row in rows)]
        end = max(1, sum(height <= _MOST_LINES for height in heights))
        starts = [i for i in range(end // 2, end + 1) if i < len(rows) and not rows[i].depth]
        end = starts[-1] if end < len(rows) and starts else end
        yield grid._replace(rows=rows[:end])
        rows = rows[end:]


def _height(grid: Grid, row: GridRow) -> int:
    """The lines of a row."""
    n = 1 if grid.room is None else math.ceil(1.2 * _label_width(row) / grid.room)
    return max(n, 2 if any(cell.interval for cell in row.cells) and not grid.is_beside else 1)
