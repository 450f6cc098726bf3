"""Rows of Excel files: one sheet, merged cells in all their rows, values of formulas."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lmdiag import files
from lmdiag.files import MAX_CELL, MAX_TABLE, check_size
from lmdiag.table_headers import Rows, TextRow, below_titles
from lmdiag.text import date_text, shortened, suggest
from lmdiag.types import BadInput

_MAX_ROW = 4 * MAX_CELL  # bytes of a row of an Excel file, unpacked
_MAX_CELLS = 50_000_000  # of the rows that have some text, as wide as the widest
_MOST_MERGED = 1_000  # merged cells that are compared with the next one
_OVERLAP = 10_000  # bytes of a part of a sheet that are looked at again with the next

_MERGED = re.compile(rb'<mergeCell ref="([A-Z]+)(\d+):[A-Z]+(\d+)"')
_FORMULA = rb"<f(?:/>|[^>]*/>|[^>]*>[^<]*</f>)"
# an empty value of a formula whose value is a text is one
_NO_VALUE = re.compile(
    rb'<c r="([A-Z]+\d+)"(?:[^>]*>' + _FORMULA + rb'|(?![^>]* t="str")[^>]*>' + _FORMULA
    + rb"(?:<v\s*/>|<v></v>))</c>"
)  # fmt: skip


def excel_rows(path: Path, sheet: str = "") -> Rows:
    """Returns the rows with some text in a sheet of an Excel file.

    Args:
        path: of the file.
        sheet: name of the sheet, or its number from 1; "" for the first visible one with two
            columns, or else with some text.

    Raises:
        BadInput: the file cannot be read or is too large, there is no such sheet, or a formula has
            no stored value.
    """
    from openpyxl import load_workbook

    try:
        _check_parts(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on parts of the file that have no cells
            book = load_workbook(path, read_only=True, data_only=True)
        titles = [x.title for x in book.worksheets]
        if not titles:
            raise BadInput(f"{path} has no sheet that is read: save it as Excel Workbook or as csv")
        shown = [x.title for x in book.worksheets if x.sheet_state == "visible"]
        chosen = [_chosen(path, titles, sheet)] if sheet else shown or titles
        found: dict[str, list[TextRow]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on parts of the file that have no cells
            for worksheet in book.worksheets:
                if worksheet.title in chosen and (rows := [*_filled(path, worksheet)]):
                    found[worksheet.title] = rows
                    if any(len(cells) > 1 for _, _, cells in rows):
                        break  # the others may be a text about the table
    except BadInput:
        raise
    except Exception as error:  # openpyxl does not check what it reads
        raise BadInput(f"{path} cannot be read: not valid Excel ({shortened(error)})") from None
    notes = []
    width = {name: max(len(cells) for _, _, cells in rows) for name, rows in found.items()}
    title = max(found, key=lambda name: width[name] > 1, default="")
    if title and len(titles) > 1 and not sheet:
        names = ", ".join(titles)
        notes.append(f"sheet: {title} of {len(titles)} ({shortened(names)}); --sheet chooses one")
    rows = found.get(title, [])
    padded = [(row, row, cells + ("",) * (width[title] - len(cells))) for row, _, cells in rows]
    return below_titles(padded, "row", notes)


def _chosen(path: Path, titles: list[str], sheet: str) -> str:
    """The title of the sheet of this name or number."""
    if sheet in titles:
        return sheet
    if sheet.isdecimal() and 1 <= int(sheet) <= len(titles):
        return titles[int(sheet) - 1]
    names = f"{suggest(sheet, titles)}; there are {shortened(', '.join(titles), 300)}"
    raise BadInput(f"{path}: --sheet {sheet}: no such sheet{names}")


def _filled(path: Path, worksheet: Any) -> Iterator[TextRow]:
    """Yields the rows of a sheet that have some text, without empty cells at their ends."""
    merged = _merged(path, worksheet._worksheet_path)
    worksheet.reset_dimensions()  # what the file says of them need not be true
    n_rows = 0
    width = 0
    values: dict[int, tuple[str, int]] = {}  # column -> value of a merged cell, and its last row
    for number, row in enumerate(worksheet.iter_rows(values_only=True), start=1):
        check_size(path, len(row), number)
        cells = [excel_text(cell) for cell in row]
        is_empty = not any(cell.strip() for cell in cells)
        for column, last in merged.get(number, ()):
            values[column] = (cells[column] if column < len(cells) else "", last)
        values = {column: (text, last) for column, (text, last) in values.items() if last >= number}
        if is_empty:
            continue
        for column, (text, _) in values.items():
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
        yield number, number, tuple(cells)


def _merged(path: Path, part: str) -> dict[int, list[tuple[int, int]]]:
    """First row of merged cells -> their columns, from 0, and last rows.

    `BadInput` for a formula without a stored value, which openpyxl reads as an empty cell.
    """
    from openpyxl.utils import column_index_from_string

    merged: dict[int, list[tuple[int, int]]] = {}
    with zipfile.ZipFile(path) as archive, archive.open(part.lstrip("/")) as content:
        tail = b""
        for chunk in iter(partial(content.read, MAX_CELL), b""):
            text = tail + chunk
            if match := _NO_VALUE.search(text):
                cell = match[1].decode()
                remedy = "open the file in Excel and save it, or write the value"
                raise BadInput(f"{path}, cell {cell}: a formula without a stored value: {remedy}")
            for match in _MERGED.finditer(text):
                column = column_index_from_string(match[1].decode()) - 1
                place = (column, int(match[3]))
                places = merged.setdefault(int(match[2]), [])
                if column < files.MAX_COLUMNS and place not in places[-_MOST_MERGED:]:
                    places.append(place)
            tail = text[-_OVERLAP:]
    return merged


def _check_parts(path: Path) -> None:
    """Refuses a file that would take too much memory: openpyxl takes 80 times the size of a row."""
    with files.opened(path) as file, zipfile.ZipFile(file) as archive:
        parts = {part.filename: part.file_size for part in archive.infolist()}
        cells = [name for name in parts if name.startswith(("xl/worksheets/", "xl/sharedStrings"))]
        other = max((size for name, size in parts.items() if name not in cells), default=0)
        for what, size, most in (
            ("in all", sum(parts.values()), MAX_TABLE),
            ("in a part without cells", other, files.MAX_INDEX),
        ):
            if size > most:
                problem = f"{size:,} bytes {what}; at most {most:,} are read"
                raise BadInput(f"{path} has {problem}: save it as csv")
        for name in cells:
            n_in_row = 0
            with archive.open(name) as content:
                for chunk in iter(partial(content.read, MAX_CELL), b""):
                    has_end = re.search(rb"</(\w+:)?(row|si)>", chunk)
                    n_in_row = 0 if has_end else n_in_row + len(chunk)
                    if n_in_row > _MAX_ROW:
                        raise BadInput(f"{path} has a row of more than {_MAX_ROW:,} bytes")


def excel_letters(number: int) -> str:
    """Returns what Excel calls a column: A for 1, AA for 27."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(number))


def excel_text(cell: Any) -> str:
    """Returns a cell as Excel saves it in a csv file; a date as ISO 8601."""
    if cell is None or isinstance(cell, bool):
        return "" if cell is None else str(cell).upper()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return date_text(cell) if hasattr(cell, "isoformat") else str(cell)
