"""Rows of Excel files: one sheet, merged cells in all their rows, values of formulas."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, iterparse

from lmdiag.files import reading
from lmdiag.files.reading import MAX_CELL, MAX_TABLE, check_size
from lmdiag.tables.table_headers import KNOWN_NAMES, Rows, TextRow, header_and_data
from lmdiag.text import date_text, folded, shortened, suggest
from lmdiag.types import BadInput

_MAX_ROW = 4 * MAX_CELL  # bytes of a row of an Excel file, unpacked
_MOST_NOTES = 12  # rows of a sheet that may be notes about the table in another one,
_TIMES_NOTES = 2  # which has so many times as many rows at least
_MAX_CELLS = 50_000_000  # of the rows that have some text, as wide as the widest


def excel_rows(path: Path, sheet: str = "") -> Rows:
    """Returns the rows with some text in a sheet of an Excel file.

    Args:
        path: of the file.
        sheet: name of the sheet, or its number from 1; "" for the first visible one with two
            columns, or else with some text. A few rows without a known name above them are notes
            where another sheet has twice as many.

    Raises:
        BadInput: the file cannot be read or is too large, there is no such sheet, or a formula has
            no stored value.
    """
    try:
        _check_parts(path)
        with (
            reading.opened(path) as file,
            zipfile.ZipFile(file) as archive,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # on parts of the file that have no cells
            titles, rows_of_sheet = _rows_of_sheets(path, archive, sheet)
    except BadInput:
        raise
    except Exception as error:  # openpyxl does not check what it reads
        raise BadInput(f"{path} cannot be read: not valid Excel ({shortened(error)})") from None
    if not rows_of_sheet:
        return header_and_data([], "row")
    title = _title_of_table(rows_of_sheet)
    notes = []
    if len(titles) > 1 and not sheet:
        names = ", ".join(titles)
        notes.append(f"sheet: {title} of {len(titles)} ({shortened(names)}); --sheet chooses one")
    rows = rows_of_sheet[title]
    width = _widest(rows)
    padded = [(row, row, cells + ("",) * (width - len(cells))) for row, _, cells in rows]
    return header_and_data(padded, "row", notes)


def _widest(rows: list[TextRow]) -> int:
    """Number of cells of the widest row."""
    return max(len(cells) for _, _, cells in rows)


def _title_of_table(rows_of_sheet: dict[str, list[TextRow]]) -> str:
    """The title of the sheet that has the table: the first one with two columns, or the first one.

    If this sheet may have notes about a table, such as names of columns and what they mean, the
    longest sheet with two columns is taken instead, if it has twice as many rows or more.

    Args:
        rows_of_sheet: title -> rows with some text.
    """
    with_columns = [title for title, rows in rows_of_sheet.items() if _widest(rows) > 1]
    title = with_columns[0] if with_columns else next(iter(rows_of_sheet))
    if with_columns and _may_be_notes(rows_of_sheet[title]):
        longest = max(with_columns, key=lambda other: len(rows_of_sheet[other]))
        if len(rows_of_sheet[longest]) >= _TIMES_NOTES * len(rows_of_sheet[title]):
            return longest
    return title


def _rows_of_sheets(
    path: Path, archive: zipfile.ZipFile, sheet: str
) -> tuple[list[str], dict[str, list[TextRow]]]:
    """The titles of all sheets, and title -> rows with some text, of the sheets that are read.

    Sheets are read up to one with two columns that cannot be notes. Those without text are left
    out.

    Args:
        path: of the file, for messages.
        archive: the opened file.
        sheet: name or number of the only sheet to read; "" for the visible ones.
    """
    from openpyxl import load_workbook

    book = load_workbook(archive.fp, read_only=True, data_only=True)
    has_values = _has_computed_values(archive)
    worksheets = book.worksheets  # without sheets that are charts
    titles = [x.title for x in worksheets]
    if not titles:
        raise BadInput(f"{path} has no sheet that is read: save it as Excel Workbook or as csv")
    visible_titles = [x.title for x in worksheets if x.sheet_state == "visible"]
    titles_read = [_title_of(path, titles, sheet)] if sheet else visible_titles or titles
    rows_of_sheet: dict[str, list[TextRow]] = {}
    for worksheet in worksheets:
        if worksheet.title not in titles_read:
            continue
        merged = _merged_ranges(path, archive, worksheet._worksheet_path, has_values=has_values)
        rows = [*_filled_rows(path, worksheet, merged)]
        if rows:
            rows_of_sheet[worksheet.title] = rows
            if _widest(rows) > 1 and not _may_be_notes(rows):
                break  # the others may be a text about the table
    return titles, rows_of_sheet


def _may_be_notes(rows: list[TextRow]) -> bool:
    """Whether a sheet has few rows and no known name above them, as notes in two columns have."""
    names = {folded(cell) for cell in rows[0][2]}
    return len(rows) <= _MOST_NOTES and names.isdisjoint(KNOWN_NAMES)


def _has_computed_values(archive: zipfile.ZipFile) -> bool:
    """Whether the file has the values of its formulas, as Excel stores them.

    XlsxWriter stores 0 for each formula, and asks Excel to compute all values on opening
    (fullCalcOnLoad). The XML is read here because openpyxl takes a missing attribute for true.
    """
    for part in archive.namelist():
        if part.endswith("/workbook.xml"):
            with archive.open(part) as content:
                for _, element in iterparse(content):
                    if _local_name(element) == "calcPr":
                        return element.get("fullCalcOnLoad", "0") not in ("1", "true")
    return True


def _title_of(path: Path, titles: list[str], sheet: str) -> str:
    """The title of the sheet of this name or number."""
    if sheet in titles:
        return sheet
    if sheet.isdecimal() and 1 <= int(sheet) <= len(titles):
        return titles[int(sheet) - 1]
    names = f"{suggest(sheet, titles)}; there are {shortened(', '.join(titles), 300)}"
    raise BadInput(f"{path}: --sheet {sheet}: no such sheet{names}")


def _filled_rows(
    path: Path, worksheet: Any, merged: dict[int, dict[int, int]]
) -> Iterator[TextRow]:
    """Yields the rows of a sheet that have some text, without empty cells at their ends.

    For example, (2, 2, ("1", "The dog barks.")) for row 2, and (3, 3, ("1", "The dogs bark.")) for
    row 3, if A2 and A3 are merged: each cell of a merged range gets the value of the range, which
    the file has in the first cell alone.

    Args:
        path: of the file, for messages.
        worksheet: as openpyxl reads it.
        merged: number of the row in which a merged range begins -> its column -> its last row.
    """
    worksheet.reset_dimensions()  # what the file says of them need not be true
    n_rows = 0
    width = 0
    # column -> value and last row of the merged range that covers it now
    merged_values: dict[int, tuple[str, int]] = {}
    for number, row in enumerate(worksheet.iter_rows(values_only=True), start=1):
        check_size(path, len(row), number)
        cells = [excel_text(cell) for cell in row]
        # by its own cells: a row that merged cells alone reach into is not a row of data
        is_empty = not any(cell.strip() for cell in cells)
        for column, last in merged.get(number, {}).items():
            merged_values[column] = (cells[column] if column < len(cells) else "", last)
        for column, (_, last) in [*merged_values.items()]:
            if last < number:
                del merged_values[column]
        if is_empty:
            continue
        for column, (text, _) in merged_values.items():
            cells += [""] * (column + 1 - len(cells))
            cells[column] = text
        while not cells[-1].strip():
            cells.pop()
        n_rows += 1
        width = max(width, len(cells))
        if n_rows * width > _MAX_CELLS:
            has = f"{n_rows:,} rows of up to {width:,} cells"
            most = f"at most {_MAX_CELLS:,} cells are read"
            raise BadInput(f"{path} has {has}; {most}: save it as csv")
        yield number, number, tuple(cells)  # lines and rows are the same here


def _merged_ranges(
    path: Path, archive: zipfile.ZipFile, part: str, *, has_values: bool
) -> dict[int, dict[int, int]]:
    """First row of merged cells -> their first column, from 0 -> their last row.

    For example, {2: {0: 4}} for A2:A4, and {1: {0: 1}} for a title in A1:D1: of several columns,
    the first alone has the value. `BadInput` for a formula without a stored value, which
    openpyxl reads as an empty cell.

    Args:
        path: of the file, for messages.
        archive: the opened file.
        part: of the archive that has the sheet.
        has_values: whether the file has the values of its formulas.
    """
    from openpyxl.utils import range_boundaries

    merged: dict[int, dict[int, int]] = {}
    parent = Element("")  # of the rows or merged cells that are read now
    with archive.open(part.lstrip("/")) as content:
        for event, element in iterparse(content, events=("start", "end")):
            name = _local_name(element)
            if event == "start":
                parent = element if name in ("sheetData", "mergeCells") else parent
                continue
            if name == "c" and _lacks_value(element, has_values):
                cell = element.get("r", "")
                remedy = "open the file in Excel and save it, or write the value"
                raise BadInput(f"{path}, cell {cell}: a formula without a stored value: {remedy}")
            if name == "mergeCell":
                column, row, _, last_row = range_boundaries(element.get("ref", ""))
                if column <= reading.MAX_COLUMNS:  # no table has the columns beyond
                    merged.setdefault(row, {})[column - 1] = last_row
            if name in ("row", "mergeCell"):
                parent.clear()  # a sheet need not fit into memory
    return merged


def _local_name(element: Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _lacks_value(cell: Element, has_values: bool) -> bool:
    """Whether a cell has a formula without a stored value; an empty text is a value.

    For example, True for <c><f>A1+1</f></c>, False for <c><f>A1+1</f><v>3</v></c>.

    Args:
        cell: an element "c", with a formula in "f" and a value in "v".
        has_values: whether the file has the values of its formulas.
    """
    parts = {_local_name(part): part for part in cell}
    if "f" not in parts:
        return False
    if "v" not in parts or not has_values:
        return True
    is_text = cell.get("t") == "str"
    return not parts["v"].text and not is_text


def _check_parts(path: Path) -> None:
    """Refuses a file that would take too much memory: openpyxl takes 80 times the size of a row.

    There are limits for the whole file, for each part of its archive that has no cells, and for a
    row.
    """
    with reading.opened(path) as file, zipfile.ZipFile(file) as archive:
        size_of = {part.filename: part.file_size for part in archive.infolist()}
        with_cells = [x for x in size_of if x.startswith(("xl/worksheets/", "xl/sharedStrings"))]
        largest_other = max((n for x, n in size_of.items() if x not in with_cells), default=0)
        for what, size, most in (
            ("in all", sum(size_of.values()), MAX_TABLE),
            ("in a part without cells", largest_other, reading.MAX_INDEX),
        ):
            if size > most:
                problem = f"{size:,} bytes {what}; at most {most:,} are read"
                raise BadInput(f"{path} has {problem}: save it as csv")
        for name in with_cells:
            n_in_row = 0  # bytes of chunks in which no row ends
            with archive.open(name) as content:
                for chunk in iter(partial(content.read, MAX_CELL), b""):
                    has_end = re.search(rb"</(\w+:)?(row|si)>", chunk)  # of a row or a text
                    n_in_row = 0 if has_end else n_in_row + len(chunk)
                    if n_in_row > _MAX_ROW:
                        raise BadInput(f"{path} has a row of more than {_MAX_ROW:,} bytes")


def excel_letters(number: int) -> str:
    """Returns what Excel calls the column of a number, from 1: A for 1, AA for 27."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(number))


def excel_text(cell: Any) -> str:
    """Returns the value of a cell as text: no decimals in whole numbers, dates as ISO 8601.

    Formats of numbers are not applied: 1 and 0.5 where Excel shows 001 and 50%.
    """
    from openpyxl.utils.escape import unescape

    if cell is None:
        return ""
    if isinstance(cell, str):
        return str(unescape(cell)) if "_x" in cell else cell  # _x000D_ is a carriage return
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return date_text(cell) if hasattr(cell, "isoformat") else str(cell)
