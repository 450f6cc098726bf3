"""Rows of text files: csv with its separators, R's tables, and results of PCIbex."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Literal

from lmdiag.files.reading import MAX_CELL, MAX_COLUMNS, MAX_ROWS, check_size, read_text
from lmdiag.tables.table_headers import (
    KNOWN_NAMES,
    Rows,
    TextRow,
    below_titles,
    can_be_names,
    has_known_name,
)
from lmdiag.text import folded, shortened
from lmdiag.types import BadInput

# between the fields of a line; spreadsheets write a semicolon or a tab in many languages
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_BLANK = " "
_SAMPLE = 50  # lines from which the separator is told, and
_SAMPLE_WIDTH = 100_000  # their characters
_MAX_LINE = 16 * MAX_CELL  # characters of a line of a text file
_QUOTED = re.compile(r'"[^"]*"')
_QUOTED_WORDS = re.compile(r'(?:^| )"[^"\n]* [^"\n]*"(?=\s|$)', re.MULTILINE)
_QUOTE_FIRST = re.compile(r'(?:^|(?<=[\t\r]))"', re.MULTILINE)
_IN_QUOTES = re.compile(r'(?:^|(?<=[\t\r]))"((?:[^"\t]|"")*+)"(?=[\t\r\n]|\Z)', re.MULTILINE)
# Excel: which character separates the fields
_SEPARATOR_LINE = re.compile(r"sep=(.)[\r\n]").match
_FIELD = re.compile(r'"[^"]*"|[^\s"]+').findall

# comments, of which the last may be the header of the row below
_COMMENTED_HEADER = re.compile(
    r"(?:#[^\r\n]*[\r\n]+)*?(?P<sign>#[ \t]*)(?P<names>[^\r\n]+)[\r\n]+(?P<row>[^#\r\n][^\r\n]*)"
).match

# a column of PCIbex, in the comments above its results
_PCIBEX = re.compile(r'"?#\s*(\d+)\.\s+(.*?)\.?[\s",]*$').match
# what PCIbex writes for a comma and for control characters
_PCIBEX_CODE = re.compile(r"%(2C|7F|[01][0-9A-F])")


def is_text_table(path: Path) -> bool:
    """Returns whether the lines of a text file are a table below a header.

    It names columns, one of them known, or `sentence` alone; or most lines have as many tabs, or
    all lines two or more other separators.
    """
    text = _without_sign(read_text(path))
    if _pcibex_names(path, text):
        return True
    sample = _sample(path, text)
    separator, head = _separator_and_header(sample)
    if not separator:
        return bool(sample) and sample[0].strip().strip('"').casefold() == "sentence"
    if KNOWN_NAMES & {*map(folded, _unquoted(head, separator))}:
        return True
    n = _count(head, separator)
    counts = [_count(line, separator) for line in sample[sample.index(head) + 1 :]]
    n_alike = sum(count in (n, n + 1) for count in counts)
    return 2 * n_alike > len(counts) if separator == "\t" else n_alike == len(counts) and n > 1


def text_rows(path: Path) -> Rows:
    """Returns the rows of a text file.

    Rows may have a cell more than the header: their names, as R's `write.table` writes them.
    """
    text = _without_sign(read_text(path))
    if _pcibex_names(path, text):
        return _pcibex_rows(path, text)
    sample = _sample(path, text)
    if sample and "\0" in sample[0]:
        raise BadInput(f"{path}:1: a NUL character; save the file as UTF-8 (in Excel: CSV UTF-8)")
    first = next((number for number, _ in _below_comments(path, text)), 1)
    notes = []
    if first > 1 and text.lstrip().startswith("#"):
        notes.append(f"comments: lines above line {first} are passed over")
    separator, head = _separator_and_header(sample)
    if not separator:
        head = sample[0] if sample else ""
        usual = "\t" if path.suffix.lower() in (".tsv", ".tab", ".txt") else ","
        separator = max((usual, *",;\t"), key=lambda x: _count(head, x))
    if match := _SEPARATOR_LINE(text[:10]):
        separator = match[1]
        notes.append(f"separator: line 1 is passed over, sep={separator}")
    check_size(path, 1 + head.count(separator), 0)
    rows = below_titles(_parsed(path, text, first, head, separator), "line", notes)
    if rows.rows and _has_row_names(rows.rows, head, separator):
        line, number, cells = rows.rows[0]
        rows.rows[0] = (line, number, ("", *cells))
        note = "row names: the first cell of each row, since the header has a cell less"
        rows = rows._replace(notes=(*rows.notes, note))
    _refuse_other_widths(path, rows.rows, separator)
    return rows._replace(separator=separator)


def _without_sign(text: str) -> str:
    """A text whose header is the last of the comments above the rows, without its sign."""
    match = _COMMENTED_HEADER(text)
    if not match:
        return text
    separator = max(_SEPARATORS, key=lambda x: _count(match["row"], x))
    n = _count(match["row"], separator)
    names, cells = (_unquoted(match[x], separator) for x in ("names", "row"))
    is_known = bool(KNOWN_NAMES & {*map(folded, names)} - {*map(folded, cells)})
    is_header = len(names) > 1 and can_be_names(names) and (is_known or not can_be_names(cells))
    if n and _count(match["names"], separator) == n and is_header:
        return text[: match.start("sign")] + text[match.start("names") :]
    return text


def _sample(path: Path, text: str) -> list[str]:
    """The first lines that have some text, below comments, without their ends."""
    lines = (line[:_SAMPLE_WIDTH] for _, line in _below_comments(path, text, _SAMPLE))
    return [line.rstrip("\r\n") for line in lines if line.strip(" ,;\t|\r\n")]


def _count(line: str, separator: str) -> int:
    """How often a line has a separator outside quotes; of blanks, several count once."""
    bare = _QUOTED.sub("_", line)
    return len(bare.split()) - 1 if separator == _BLANK else bare.count(separator)


def _separator_and_header(sample: Sequence[str]) -> tuple[str, str]:
    """What separates the fields, and the first line that names columns; "" and "" without one.

    Most lines have as many separators as this line, or all of them as many blanks.
    """
    for line in sample[: _SAMPLE // 2]:
        separator = max(_SEPARATORS, key=lambda x: _count(line, x))
        if not _count(line, separator):
            separator = _BLANK
        n = _count(line, separator)
        names = _unquoted(line, separator)
        counts = Counter(_count(other, separator) for other in sample)
        n_alike = max(counts[n], counts[n + 1] + 1)  # a cell more: names of rows
        least = len(sample) if separator == _BLANK and '"' not in line else len(sample) / 2
        is_header = len(names) > 1 if separator != _BLANK else has_known_name(names)
        is_header = is_header or [*map(folded, names)] == ["sentence"]
        if n and n_alike > 1 and n_alike >= least and is_header and can_be_names(names):
            return separator, line
    return "", ""


def _unquoted(line: str, separator: str) -> list[str]:
    """The fields of a line of names, without quotes and empty ones at its ends."""
    if separator == _BLANK:
        return [name.strip('"') for name in _FIELD(line)]
    return [name.strip('"') for name in line.strip(separator).split(separator)]


def _parsed(path: Path, text: str, first: int, head: str, separator: str) -> list[TextRow]:
    """The rows from a line on that have some text.

    `head` is the line of the header: with names in quotes, quotes surround fields; with a blank
    after each separator, blanks there belong to no field.
    """
    has_blanks = separator == _BLANK or 0 < head.count(separator) == head.count(f"{separator} ")
    is_quoted = separator in ",;|" or '"' in head or _has_quoted_fields(text, separator)
    if '"' in head and separator in "\t ":
        text = text.replace('\\"', '""')  # how R's `write.table` writes a quote
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    csv.field_size_limit(MAX_CELL)
    lines: Iterator[str] = islice(_lines(path, text), first - 1, None)
    if separator == _BLANK and '"' not in head:
        lines = (line.strip(" ") for line in lines)
    reader = csv.reader(
        chain(repeat("\n", first - 1), lines), delimiter=separator, quoting=quoting, strict=True,
        skipinitialspace=has_blanks,
    )  # fmt: skip
    rows: list[TextRow] = []
    texts: dict[str, str] = {}  # each distinct text, once
    end = 0
    try:
        for number, cells in enumerate(reader, start=1):
            end = reader.line_num
            if len(cells) > MAX_COLUMNS or number > MAX_ROWS:
                check_size(path, len(cells), number - 1)
            if "".join(cells).strip():
                # tuples of texts are not visited again by the garbage collector
                row = tuple(map(texts.setdefault, cells, cells))
                rows.append((end, number, row))
    except csv.Error as error:
        problem = f'{error}; write "" for a quote inside a quoted text'
        if "limit" in str(error):
            problem = f"a cell has more than {MAX_CELL:,} characters; split the text"
        elif "end of data" in str(error):
            problem = "a quote begins here that does not end; close it, or remove it"
        raise BadInput(f"{path}:{end + 1}: {problem}") from error
    return rows


def _has_row_names(rows: Sequence[TextRow], head: str, separator: str) -> bool:
    """Whether all rows have a cell more than the header, as R's `write.table` writes them.

    Without quotes, an empty last cell may be that of a column without a name.
    """
    n = len(rows[0][2])
    is_quoted = '"' in head
    if not (is_quoted or separator in "\t ") or {len(cells) for _, _, cells in rows[1:]} != {n + 1}:
        return False
    are_filled = (bool(cells[-1]) for _, _, cells in rows[1:])
    return any(are_filled) if is_quoted else all(are_filled)


def _refuse_other_widths(path: Path, rows: Sequence[TextRow], separator: str) -> None:
    """Refuses a row with another number of fields than the header, and names the remedy."""
    n = len(rows[0][2]) if rows else 0
    for line, _, cells in rows:
        if len(cells) < n or any(cells[n:]):
            quotes = "in double quotes"
            mark = _SEPARATORS.get(separator, "a blank")
            remedy = f"put text with {mark} {quotes}"
            if len(cells) < n:
                remedy = f"write {mark} for each empty cell, and text with a line break {quotes}"
            raise BadInput(f"{path}:{line}: {len(cells)} fields, expected {n}; {remedy}")


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
        is_separator = number == 1 and bool(_SEPARATOR_LINE(line))
        is_comment = is_comment and (line.startswith("#") or not line.strip() or is_separator)
        if line.strip() and not is_comment:
            yield number, line
            most -= 1
        if not most:
            return


def _has_quoted_fields(text: str, separator: str) -> bool:
    """Whether quotes surround fields with tabs or blanks between, or are characters of words.

    They surround fields if every field that begins with a quote ends with one, before the next tab,
    and one of them has a blank or a quote in it, or all lines below the header have such a field.
    """
    if separator == _BLANK:
        return bool(_QUOTED_WORDS.search(text))
    fields = _IN_QUOTES.findall(text)
    n_begun = len(_QUOTE_FIRST.findall(text))
    is_usual = 1 < text.rstrip().count("\n") <= len(fields)
    has_words = is_usual or any(re.search(r'\s|"', field) for field in fields)
    return len(fields) == n_begun and has_words


# ---- PCIbex --------------------------------------------------------------------------------------


def _pcibex_names(path: Path, text: str) -> dict[int, str]:
    """Number -> name of the columns in the comments at the beginning of results of PCIbex."""
    names: dict[int, str] = {}
    for line in _lines(path, text[:100_000]) if text.startswith(("#", '"#')) else ():
        if not _is_comment(line):
            break
        if match := _PCIBEX(line):
            names[int(match[1])] = match[2]
    return names if len(names) > 1 else {}


def _is_comment(line: str) -> bool:
    """Whether a line is a comment, also one that a spreadsheet wrote in quotes."""
    return line.startswith(("#", '"#'))


def _character(code: re.Match[str]) -> str:
    """Returns the character that a code of PCIbex stands for."""
    return chr(int(code[1], 16))


def _pcibex_rows(path: Path, text: str) -> Rows:
    """The rows of results of PCIbex below a header of the names that comments give.

    Comments name the columns of the rows below them, again for each kind of element; a row that
    lacks a column has an empty cell there.
    """
    names: dict[int, str] = {}
    records: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(_lines(path, text), start=1):
        check_size(path, len(names), number)
        if match := _PCIBEX(line):
            names = {n: name for n, name in names.items() if n < int(match[1])}
            is_repeated = match[2] in names.values()
            names[int(match[1])] = f"{match[2]} {match[1]}" if is_repeated else match[2]
        elif line.strip() and not _is_comment(line):
            cells = line.rstrip("\r\n").split(",")  # PCIbex writes quotes as they are
            if any(cells[len(names) :]):
                cells = next(csv.reader([line]))
            while len(cells) > len(names) and not cells[-1]:
                cells.pop()  # of a spreadsheet
            if len(cells) > len(names):
                n = f"{len(cells)} fields, and the comments above name {len(names)} columns"
                raise BadInput(f"{path}:{number}: {n}")
            texts = (_PCIBEX_CODE.sub(_character, cell).strip() for cell in cells)
            records.append((number, dict(zip(names.values(), texts, strict=False))))
    header = tuple(dict.fromkeys(name for _, record in records for name in record))
    rows = [
        (line, line, tuple(record.get(name, "") for name in header)) for line, record in records
    ]
    note = f"comments: they name the columns, as in results of PCIbex: {', '.join(header)}"
    return Rows([(1, 1, header), *rows], ",", (shortened(note, 300),))
