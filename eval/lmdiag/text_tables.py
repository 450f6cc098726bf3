"""Rows of text files: csv with its separators, R's tables, and results of PCIbex.

Lines of comments and a title above the header are passed over, which is said.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Literal, NamedTuple

from lmdiag.files import MAX_CELL, MAX_COLUMNS, MAX_ROWS, check_size, read_text
from lmdiag.text import folded, shortened
from lmdiag.types import BadInput

# between the fields of a line; spreadsheets write a semicolon or a tab in many languages
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_MAX_LINE = 16 * MAX_CELL  # characters of a line of a text file
_QUOTE_FIRST = re.compile(r'(?:^|(?<=\t))"', re.MULTILINE)
_IN_QUOTES = re.compile(r'(?:^|(?<=\t))"((?:[^"\t\n]|"")*+)"(?=\t|\r?$)', re.MULTILINE)

# a column of PCIbex, in the comments above its results
_PCIBEX = re.compile(r"#\s*(\d+)\.\s+(.*?)\.?\s*")
_NAMES = {"text", "sentence", "word", "context", "item", "condition", "target"}

TextRow = tuple[int, int, tuple[str, ...]]
"""The last line of a row (in Excel the row), its number among all rows, and its cells."""


class Rows(NamedTuple):
    """The rows of a file that have some text, the header first.

    Attributes:
        rows: their places and cells, all of one length.
        separator: the character between fields; "" if the file is not a text file.
        notes: what was passed over.
    """

    rows: list[TextRow]
    separator: str = ""
    notes: tuple[str, ...] = ()


def is_text_table(path: Path) -> bool:
    """Returns whether a text file begins with a header: names of columns, or `sentence` alone."""
    text = read_text(path)
    if _pcibex_names(path, text):
        return True
    head = next((line for _, line in _below_comments(path, text)), "").strip()
    names = [name.strip('"') for name in re.split(r'[\t,;]|(?<=") (?=")', head)]
    is_known = {"text", "sentence", "word", "context", "item"} & {*map(folded, names)}
    has_names = len(names) > 1 or names[0].casefold() == "sentence"
    return has_names and bool(is_known) and not any(name[:1].isspace() for name in names)


def text_rows(path: Path) -> Rows:
    """Returns the rows of a text file.

    Below a header in quotes, rows may have a cell more: their names, as R's `write.table` does.
    """
    text = read_text(path)
    if _pcibex_names(path, text):
        return _pcibex_rows(path, text)
    lines = [*_below_comments(path, text, 2)]
    notes = []
    first = lines[0][0] if lines else 1
    if first > 1 and text.lstrip().startswith("#"):
        notes.append(f"comments: lines above line {first} are passed over")
    if len(lines) > 1 and _is_title(lines[0][1], lines[1][1]):
        notes.append(f"title: line {first} is passed over, {shortened(lines[0][1], 60)!r}")
        first = lines[1][0]
        lines = lines[1:]
    head = lines[0][1] if lines else ""
    if "\0" in head:
        raise BadInput(f"{path}:1: a NUL character; save the file as UTF-8 (in Excel: CSV UTF-8)")
    usual = "\t" if path.suffix.lower() in (".tsv", ".tab", ".txt") else ","
    separator = max((usual, *_SEPARATORS), key=re.sub(r'"[^"]*"', "", head).count)
    if re.fullmatch(r'"[^"]*"( "[^"]*")+\s*', head):  # R's write.table
        separator = " "
    check_size(path, 1 + head.count(separator), 0)
    is_quoted = separator != "\t" or '"' in head or _has_quoted_fields(text)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader(
        chain(repeat("\n", first - 1), islice(_lines(path, text), first - 1, None)),
        delimiter=separator, quoting=quoting, strict=True,
        escapechar="\\" if separator == " " else None,
    )  # fmt: skip
    rows: list[TextRow] = []
    texts: dict[str, str] = {}  # each distinct text, once
    try:
        for number, cells in enumerate(reader, start=1):
            if len(cells) > MAX_COLUMNS or number > MAX_ROWS:
                check_size(path, len(cells), number - 1)
            if "".join(cells).strip():
                # tuples of texts are not visited again by the garbage collector
                row = tuple(map(texts.setdefault, cells, cells))
                rows.append((reader.line_num, number, row))
    except csv.Error as error:
        too_long = f"a cell has more than {MAX_CELL:,} characters; split the text"
        remedy = 'write "" for a quote inside a quoted text'
        problem = too_long if "limit" in str(error) else f"{error}; {remedy}"
        raise BadInput(f"{path}:{reader.line_num}: {problem}") from error
    n = len(rows[0][2]) if rows else 0
    if '"' in head and all(len(cells) == n + 1 for _, _, cells in rows[1:]):
        n += 1
        rows[:1] = [(line, number, ("", *cells)) for line, number, cells in rows[:1]]
    for line, _, row in rows:
        if len(row) < n or any(row[n:]):
            remedy = f"put text with {_SEPARATORS.get(separator, 'a blank')} in double quotes"
            raise BadInput(f"{path}:{line}: {len(row)} fields, expected {n}; {remedy}")
    return Rows(rows, separator, tuple(notes))


def _lines(path: Path, text: str) -> Iterator[str]:
    """Yields the lines of a text with their ends."""
    for number, line in enumerate(StringIO(text, newline=""), start=1):
        if len(line) > _MAX_LINE:
            problem = f"the line has more than {_MAX_LINE:,} characters"
            raise BadInput(f"{path}:{number}: {problem}; split the text")
        yield line


def _below_comments(path: Path, text: str, most: int = 1) -> Iterator[tuple[int, str]]:
    """Yields the first lines that are not empty, with their numbers, below comments."""
    is_comment = True
    for number, line in enumerate(_lines(path, text), start=1):
        is_comment = is_comment and (line.startswith("#") or not line.strip())
        if line.strip() and not is_comment:
            yield number, line
            most -= 1
        if not most:
            return


def is_title(cells: Sequence[str], next_cells: Sequence[str]) -> bool:
    """Returns whether a row is a title: one cell above names of columns, one of them known."""
    filled = [cell for cell in cells if cell.strip()]
    names = [cell.strip().strip('"') for cell in next_cells if cell.strip()]
    is_one = len(filled) == 1 and folded(filled[0]) not in _NAMES
    is_header = len(names) > 1 and bool({*map(folded, names)} & _NAMES)
    return is_one and is_header and all(len(name) <= 60 for name in names)


def _is_title(line: str, next_line: str) -> bool:
    return any(is_title(line.split(x), next_line.split(x)) for x in _SEPARATORS)


def _has_quoted_fields(text: str) -> bool:
    """Whether quotes surround tab-separated fields, or are characters of their words.

    They surround fields if every field that begins with a quote ends with one, and one of them has
    a blank or a quote in it.
    """
    fields = _IN_QUOTES.findall(text)
    n_begun = len(_QUOTE_FIRST.findall(text))
    return len(fields) == n_begun and any(re.search(r'\s|"', field) for field in fields)


# ---- PCIbex --------------------------------------------------------------------------------------


def _pcibex_names(path: Path, text: str) -> dict[int, str]:
    """Number -> name of the columns in the comments at the beginning of results of PCIbex."""
    names: dict[int, str] = {}
    for line in _lines(path, text[:100_000]) if text.startswith("#") else ():
        if not line.startswith("#"):
            break
        if match := _PCIBEX.fullmatch(line.rstrip("\r\n")):
            names[int(match[1])] = match[2]
    return names if len(names) > 1 else {}


def _pcibex_rows(path: Path, text: str) -> Rows:
    """The rows of results of PCIbex below a header of the names that comments give.

    Comments name the columns of the rows below them, again for each kind of element; a row that
    lacks a column has an empty cell there.
    """
    names: dict[int, str] = {}
    records: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(_lines(path, text), start=1):
        check_size(path, len(names), number)
        if match := _PCIBEX.fullmatch(line.rstrip("\r\n")):
            names = {n: name for n, name in names.items() if n < int(match[1])}
            taken = match[2] in names.values()
            names[int(match[1])] = f"{match[2]} {match[1]}" if taken else match[2]
        elif line.strip() and not line.startswith("#"):
            cells = next(csv.reader([line]))
            if len(cells) > len(names):
                n = f"{len(cells)} fields, and the comments above name {len(names)} columns"
                raise BadInput(f"{path}:{number}: {n}")
            texts = (cell.replace("%2C", ",").strip() for cell in cells)
            records.append((number, dict(zip(names.values(), texts, strict=False))))
    header = tuple(dict.fromkeys(name for _, record in records for name in record))
    rows = [
        (line, line, tuple(record.get(name, "") for name in header)) for line, record in records
    ]
    note = f"comments: they name the columns, as in results of PCIbex: {', '.join(header)}"
    return Rows([(1, 1, header), *rows], ",", (shortened(note, 300),))
