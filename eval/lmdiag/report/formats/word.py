"""The tables and charts of a result as a Word document, by python-docx (the extra `word`).

Tables are those of the manual of the American Psychological Association (APA): a number, a title in
italics, three black rules, and a note directly below.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from lmdiag.report.charts.output import image_file
from lmdiag.report.grid import (
    CellText,
    Grid,
    fit_to_width,
    with_kept_brackets,
    with_one_label_column,
)
from lmdiag.report.output import Output, Section
from lmdiag.text import visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from docx.document import Document

_WIDTH = 17.0
"""Centimetres between the margins."""

_CHARACTERS = 100
"""Characters of a line of a table between the margins, at 8 points in a wide font."""

_BETWEEN_FACTORS = re.compile(r"(?<=\]:)")
_BREAK = "\u200b"
"""Matches where a line may end in the name of an interaction; the character that says so."""

_LEAST_LABEL = 24
_PADDING = 3
"""Characters of a label that wraps, at least, and characters of the margins of a cell."""

_TOGETHER = 48
"""Lines, at most, of a table that is kept on one page; a page has room for some more, which the
title, the headings and the note take."""

_LABEL_INDENT = 8
"""Points by which each step of a label is indented, and the further lines of a label."""

_THICK_RULE = 8
_THIN_RULE = 4
"""Width of the rules around a table, and of the one below its headings, in eighths of a point."""

_MOST_COLUMNS = 6
"""Columns of figures of a table that is never divided."""

_SHORT = 8
"""Characters of a heading that is not divided, e.g. `p < .05`."""

_TABLE_TEXT = "Table Text"
"""Style of the paragraphs in cells, also of empty ones."""

_CHART = 12.0
"""Width of a chart in centimetres."""


def render(output: Output, width: float) -> bytes:
    """Returns a result as the content of a .docx file; charts have a width of their own."""
    try:
        import docx
        from docx.shared import Cm
    except ImportError as error:
        raise BadInput(
            "a .docx file needs python-docx: `pip install python-docx`, or write .html or .tex"
        ) from error
    document = docx.Document()
    for section in document.sections:  # of Word, for which pages have one size
        section.left_margin = section.right_margin = Cm((21.0 - _WIDTH) / 2)
        section.page_width, section.page_height = Cm(21.0), Cm(29.7)
    _set_styles(document)
    document.add_heading(visible(output.title), 0)
    for line in output.lines:
        document.add_paragraph(visible(line))
    table_numbers = count(1)
    for section_of_result in output.sections:
        _add_section(document, output, section_of_result, table_numbers)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _set_styles(document: Document) -> None:
    """Adds the style of the paragraphs in cells, and makes all headings black."""
    from docx.enum.style import WD_STYLE_TYPE
    from docx.oxml.ns import qn
    from docx.shared import Pt, RGBColor

    style: Any = document.styles.add_style(_TABLE_TEXT, WD_STYLE_TYPE.PARAGRAPH)
    style.font.size = Pt(8)
    style.paragraph_format.space_after = Pt(0)
    for name in ("Title", "Heading 1", "Caption"):
        heading_style: Any = document.styles[name]
        heading_style.font.color.rgb = RGBColor(0, 0, 0)
    caption: Any = document.styles["Caption"]
    caption.font.bold = False
    title: Any = document.styles["Title"]
    # python-docx's document has a blue line below its title
    blue_line = title.element.pPr.find(qn("w:pBdr"))
    title.element.pPr.remove(blue_line)


def _add_section(
    document: Document, output: Output, section: Section, table_numbers: Iterator[int]
) -> None:
    """Adds the title of a section, its charts, its tables with their notes, and its remarks.

    `table_numbers` yields the next number of a table of the document.
    """
    from docx.shared import Cm

    plots = [plot for plot in section.plots if not plot.is_repeated and not plot.is_further]
    notes = [output.note(section, grid) for grid in section.grids]
    note_lines = {line.lower() for note in notes for line in note}
    lines = [*section.remarks, *section.signatures]
    # what the note of a table says is not repeated at the end of the section
    lines = [line for line in lines if line.rstrip(".").lower() not in note_lines]
    if section.title and (section.grids or plots or lines):
        document.add_heading(visible(section.title), 1)
    for plot in plots:
        image = image_file(plot.spec, "png", _CHART)
        document.add_picture(io.BytesIO(image), width=Cm(_CHART))
        document.paragraphs[-1].paragraph_format.keep_with_next = True
        document.add_paragraph(visible(plot.caption), "Caption")
    for grid, note in zip(section.grids, notes, strict=True):
        parts = _parts_that_fit(with_one_label_column(grid))
        number = f"Table {next(table_numbers)}"
        for i, part in enumerate(parts):
            _add_title(document, f"{number} (continued)" if i else number, grid.caption)
            part_note = note if i == len(parts) - 1 else []  # below the last part alone
            _add_table(document, part, has_note=bool(part_note))
            _add_note(document, part_note)
    for line in lines:
        document.add_paragraph(visible(line), "List Bullet")


def _parts_that_fit(grid: Grid) -> list[Grid]:
    """The table if it fits between the margins, or parts of its columns that each fit.

    A table of up to `_MOST_COLUMNS` columns is never divided: its labels wrap, and its intervals
    stand below the figures.
    """
    parts = fit_to_width(grid, _CHARACTERS, _width_needed, _LEAST_LABEL)
    if len(parts) > 1 and len(grid.headings) <= _MOST_COLUMNS:
        return [grid._replace(has_intervals_beside=False, label_width=_LEAST_LABEL)]
    return parts


def _add_title(document: Document, number: str, title: str) -> None:
    """Adds two paragraphs above a table: its number ("Table 1"), and its title in italics.

    Both are kept on the page of the table.
    """
    from docx.shared import Pt

    number_paragraph = document.add_paragraph()
    number_paragraph.add_run(number).bold = True
    title_paragraph = document.add_paragraph()
    title_paragraph.add_run(visible(title)).italic = True
    for paragraph in (number_paragraph, title_paragraph):
        paragraph.paragraph_format.keep_with_next = True
        paragraph.paragraph_format.space_after = Pt(3)


def _add_note(document: Document, lines: list[str]) -> None:
    """Adds the note below a table: "Note. " and a sentence per line.

    Without lines, an empty paragraph keeps the distance to what follows.
    """
    from docx.shared import Pt

    paragraph = document.add_paragraph(style=_TABLE_TEXT)
    paragraph.paragraph_format.space_before = Pt(3)
    paragraph.paragraph_format.space_after = Pt(14)
    if lines:
        paragraph.add_run("Note. ").italic = True
        paragraph.add_run(visible(" ".join(f"{line}." for line in lines)))


def _column_widths(grid: Grid) -> list[int]:
    """The width of each column in characters, margins of cells included; labels come first.

    For example, [27, 11] for a label that wraps at 24 characters and a cell of 8, with margins of 3
    characters each.
    """
    widths = []
    for i, name in enumerate(grid.label_headings):
        lengths = [len(row.labels[i]) for row in grid.rows]
        if i == 0:  # indented; each step takes two characters
            lengths = [len(row.labels[0]) + 2 * row.depth for row in grid.rows]
        widths.append(max(len(name), *lengths))
    if grid.label_width is not None:
        widths[0] = min(widths[0], int(grid.label_width))
    for i, heading in enumerate(grid.headings):
        label = heading.label
        # a long heading wraps at its blanks
        words = [label] if len(label) <= _SHORT else with_kept_brackets(label).split(" ")
        heading_lengths = [len(word) for word in (*words, *heading.facts)]
        cell_lengths = [len(line) for row in grid.rows for line in _cell_lines(grid, row.cells[i])]
        widths.append(max([*heading_lengths, *cell_lengths, 1]))
    return [width + _PADDING for width in widths]


def _width_needed(grid: Grid) -> float:
    """The width of a table in characters."""
    return float(sum(_column_widths(grid)))


def _cell_lines(grid: Grid, cell: CellText) -> list[str]:
    """The lines of a cell: figure and interval beside each other, or the interval below."""
    if grid.has_intervals_beside or not cell.interval:
        return str(cell).splitlines()
    return [cell.value, cell.interval]


def _add_table(document: Document, grid: Grid, *, has_note: bool) -> None:
    """Adds a table, which stands on one page with its note if it is not longer than a page.

    The headings of a longer one are repeated on every page. No row is divided between pages.

    Args:
        document: the Word document, at whose end the table is added.
        grid: the table: labels of rows, headings and cells.
        has_note: whether a note follows, which is to stand on the page of the table's end.
    """
    from docx.enum.table import WD_ALIGN_VERTICAL
    from docx.oxml import OxmlElement
    from docx.shared import Cm, Pt

    widths = _column_widths(grid)
    table = document.add_table(1 + len(grid.rows), len(widths))
    table.autofit = False
    headings = ["\n".join((heading.label, *heading.facts)) for heading in grid.headings]
    style_id = document.styles[_TABLE_TEXT].style_id
    options = {
        "style_id": style_id,
        "n_labels": len(grid.label_headings),
        "label_width": grid.label_width,
    }
    _fill_row(table.rows[0], [*grid.label_headings, *headings], **options)
    for cell in table.rows[0].cells:
        cell.vertical_alignment = WD_ALIGN_VERTICAL.BOTTOM
    repeated_on_every_page = OxmlElement("w:tblHeader")
    table.rows[0]._tr.get_or_add_trPr().append(repeated_on_every_page)
    word_rows = [*table.rows]  # python-docx makes this list anew each time it is read
    n_lines = 0  # of all rows below the headings
    for row, word_row in zip(grid.rows, word_rows[1:], strict=True):
        not_divided = OxmlElement("w:cantSplit")
        word_row._tr.get_or_add_trPr().append(not_divided)
        texts = [*row.labels, *("\n".join(_cell_lines(grid, cell)) for cell in row.cells)]
        _fill_row(word_row, texts, **options)
        # the first line of a label begins one step left of its further lines
        label_format = word_row.cells[0].paragraphs[0].paragraph_format
        label_format.left_indent = Pt(_LABEL_INDENT * (row.depth + 1))
        label_format.first_line_indent = Pt(-_LABEL_INDENT)
        n_lines += max(text.count("\n") + 1 for text in texts)
    _draw_rule(word_rows[0], "top", _THICK_RULE)
    _draw_rule(word_rows[0], "bottom", _THIN_RULE)
    _draw_rule(word_rows[-1], "bottom", _THICK_RULE)
    _keep_on_page(word_rows, n_lines, has_note=has_note)
    for column, width in zip(table.columns, widths, strict=True):
        # a table with fewer characters than a line has is narrower than the page
        column.width = Cm(_WIDTH * width / max(_CHARACTERS, sum(widths)))
        for cell in column.cells:
            cell.width = column.width


def _keep_on_page(word_rows: list[Any], n_lines: int, *, has_note: bool) -> None:
    """Makes Word keep a table and its note on one page, if it is short enough for a page.

    Word has no such option for a table: each row is kept on the page of the next one, and the last
    row on that of the note. Of a longer table, the headings stay with the first row.

    Args:
        word_rows: of the table; the first one has the headings.
        n_lines: lines of all rows below the headings.
        has_note: whether a note follows the table.
    """
    if n_lines > _TOGETHER or len(word_rows) == 1:
        kept_with_next = word_rows[:1]
    elif has_note:
        kept_with_next = word_rows
    else:
        kept_with_next = word_rows[:-1]
    for row in kept_with_next:
        for cell in row.cells:
            cell.paragraphs[0].paragraph_format.keep_with_next = True


def _draw_rule(row: Any, side: str, eighths: int) -> None:
    """Draws a black rule along a row of a table.

    python-docx has no function for this: each cell gets a border in Word's XML.

    Args:
        row: of a table of python-docx.
        side: "top" or "bottom".
        eighths: width of the rule in eighths of a point.
    """
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    for cell in row.cells:
        properties = cell._tc.get_or_add_tcPr()
        borders = properties.find(qn("w:tcBorders"))
        if borders is None:
            borders = OxmlElement("w:tcBorders")
            properties.append(borders)
        edge = OxmlElement(f"w:{side}")
        values = {"val": "single", "sz": str(eighths), "space": "0", "color": "000000"}
        for name, value in values.items():
            edge.set(qn(f"w:{name}"), value)
        borders.append(edge)


def _fill_row(
    row: Any, texts: list[str], *, n_labels: int, label_width: float | None, style_id: str
) -> None:
    """Writes texts into the cells of a row: labels on the left, figures right-aligned.

    Args:
        n_labels: how many of the texts are labels; they come first.
        label_width: of labels that wrap, in characters; None if they do not.
        style_id: of the paragraphs. By a name, python-docx would read all styles for each cell.
    """
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    for i, (cell, text) in enumerate(zip(row.cells, texts, strict=True)):
        paragraph = cell.paragraphs[0]
        paragraph._p.style = style_id
        text = visible_lines(text)
        if i < n_labels:
            paragraph.add_run(_breakable_label(text, label_width))
        else:
            paragraph.add_run(with_kept_brackets(text))
            paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def _breakable_label(text: str, label_width: float | None) -> str:
    """A label whose lines may end between the factors of an interaction (`_BREAK`).

    No line ends in the brackets of a factor, unless it is longer than `label_width`.
    """
    parts = []
    for part in _BETWEEN_FACTORS.split(text):
        is_too_long = label_width and len(part) > label_width
        parts.append(part if is_too_long else with_kept_brackets(part))
    return _BREAK.join(parts)


def visible_lines(text: str) -> str:
    """Returns a text with invisible characters spelled out, except for the ends of lines."""
    return "\n".join(map(visible, text.split("\n")))
