"""The tables and charts of a result as a Word document, by python-docx (the extra `word`)."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from lmdiag.report.charts.output import image_file
from lmdiag.report.grid import Grid, fitted
from lmdiag.report.output import Output, Section
from lmdiag.text import visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from docx.document import Document

_WIDTH = 17.0
"""Centimetres between the margins."""

_CHARACTERS = 100
"""Characters of a line of a table between the margins, at 8 points in a wide font."""

_LEAST = 24
_PADDING = 3
"""Characters of a label that wraps, at least, and characters of the margins of a cell."""

_TOGETHER = 20
"""Rows of a table that is not divided between pages."""

_SHORT = 8
"""Characters of a heading that is not divided, e.g. `p < .05`."""

_TABLE_TEXT = "Table Text"
"""Style of the paragraphs in cells, also of empty ones."""

_CHART = 12.0
"""Width of a chart in centimetres."""


def render(output: Output, width: float) -> bytes:
    """Returns the document."""
    try:
        import docx
        from docx.shared import Cm
    except ImportError as error:
        raise BadInput(
            "a .docx file needs python-docx: `pip install python-docx`, or write .html or .tex"
        ) from error
    document = docx.Document()
    for section in document.sections:
        section.left_margin = section.right_margin = Cm((21.0 - _WIDTH) / 2)
        section.page_width, section.page_height = Cm(21.0), Cm(29.7)
    _add_style(document)
    document.add_heading(visible(output.title), 0)
    for line in output.lines:
        document.add_paragraph(visible(line))
    for part in output.sections:
        _add_section(document, part)
    document.save(file := io.BytesIO())
    return file.getvalue()


def _add_style(document: Document) -> None:
    """Adds the style of the paragraphs in cells."""
    from docx.enum.style import WD_STYLE_TYPE
    from docx.shared import Pt

    style: Any = document.styles.add_style(_TABLE_TEXT, WD_STYLE_TYPE.PARAGRAPH)
    style.font.size = Pt(8)
    style.paragraph_format.space_after = Pt(0)


def _add_section(document: Document, section: Section) -> None:
    """Adds title, charts, tables and remarks."""
    from docx.shared import Cm

    plots = [plot for plot in section.plots if not plot.is_repeated and not plot.is_further]
    lines = [*section.remarks, *section.signatures]
    if section.title and (section.grids or plots or lines):
        document.add_heading(visible(section.title), 1)
    for plot in plots:
        image = image_file(plot.spec, "png", _CHART)
        document.add_picture(io.BytesIO(image), width=Cm(_CHART))
        document.paragraphs[-1].paragraph_format.keep_with_next = True
        document.add_paragraph(visible(plot.caption), "Caption")
    for grid in section.grids:
        if grid.caption:
            caption = document.add_paragraph(visible(grid.caption), "Caption")
            caption.paragraph_format.keep_with_next = True
        for part in fitted(grid, _CHARACTERS, _needed, _LEAST):
            _add_table(document, part)
            document.add_paragraph()
    for line in lines:
        document.add_paragraph(visible(line), "List Bullet")


def _column_widths(grid: Grid) -> list[int]:
    """The characters that each column needs, those of labels first."""
    widths = []
    for i, name in enumerate(grid.label_headings):
        lengths = [len(row.labels[i]) for row in grid.rows]
        if i == 0:  # bold
            lengths = [_bold(row.labels[0]) + 2 * row.depth for row in grid.rows]
        widths.append(max(_bold(name), *lengths))
    if grid.room is not None:
        widths[0] = min(widths[0], int(grid.room))
    for i, heading in enumerate(grid.headings):
        label = heading.label
        parts = [label] if len(label) <= _SHORT else label.split()
        words = [_bold(word) for word in (*parts, *heading.facts)]
        cells = [len(line) for row in grid.rows for line in _lines(grid, row.cells[i])]
        widths.append(max([*words, *cells, 1]))
    return [width + _PADDING for width in widths]


def _bold(text: str) -> int:
    """The width of a bold text, in characters that are not bold."""
    return math.ceil(1.15 * len(text))


def _needed(grid: Grid) -> float:
    """The characters that a line of a table needs."""
    return float(sum(_column_widths(grid)))


def _lines(grid: Grid, cell: Any) -> list[str]:
    """The lines of a cell."""
    if grid.is_beside or not cell.interval:
        return str(cell).splitlines()
    return [cell.value, cell.interval]


def _add_table(document: Document, grid: Grid) -> None:
    """Adds a table whose headings stand on every page, and whose rows are not divided."""
    from docx.oxml import OxmlElement
    from docx.shared import Cm

    widths = _column_widths(grid)
    table = document.add_table(1 + len(grid.rows), len(widths), "Light Shading")
    table.autofit = False
    headings = [*grid.label_headings, *(_heading(x.label, x.facts) for x in grid.headings)]
    _fill(table.rows[0], headings, len(grid.label_headings))
    table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    for row, made in zip(grid.rows, [*table.rows][1:], strict=True):
        made._tr.get_or_add_trPr().append(OxmlElement("w:cantSplit"))
        first, *others = row.labels
        cells = ["\n".join(_lines(grid, cell)) for cell in row.cells]
        _fill(made, ["\u2003" * row.depth + first, *others, *cells], len(row.labels))
    kept = table.rows[: len(grid.rows) if len(grid.rows) <= _TOGETHER else 1]
    for cell in (cell for row in kept for cell in row.cells):
        cell.paragraphs[0].paragraph_format.keep_with_next = True
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Cm(_WIDTH * width / max(_CHARACTERS, sum(widths)))
        for cell in column.cells:
            cell.width = column.width


def _heading(label: str, facts: Any) -> str:
    return "\n".join((label, *facts))


def _fill(row: Any, texts: list[str], n_labels: int) -> None:
    """Writes the texts of a row; those of figures stand right."""
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    for i, (cell, text) in enumerate(zip(row.cells, texts, strict=True)):
        paragraph = cell.paragraphs[0]
        paragraph.style = _TABLE_TEXT
        paragraph.add_run(visible_lines(text))
        if i >= n_labels:
            paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def visible_lines(text: str) -> str:
    """The text with every invisible character spelled out but for the ends of lines."""
    return "\n".join(map(visible, text.split("\n")))
