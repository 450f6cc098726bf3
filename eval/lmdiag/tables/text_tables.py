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
    can_be_names,
    has_known_name,
    header_and_data,
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
# a field in quotes with a blank in it, where blanks separate fields
_QUOTED_WORDS = re.compile(r'(?:^| )"[^"\n]* [^"\n]*"(?=\s|$)', re.MULTILINE)
# where tabs separate fields: a quote at the beginning of a field, and a whole field in quotes
_QUOTE_FIRST = re.compile(r'(?:^|(?<=[\t\r]))"', re.MULTILINE)
_IN_QUOTES = re.compile(r'(?:^|(?<=[\t\r]))"((?:[^"\t]|"")*+)"(?=[\t\r\n]|\Z)', re.MULTILINE)
# Excel: which character separates the fields
_SEPARATOR_LINE = re.compile(r"sep=(.)[\r\n]").match
# fields that blanks separate
_find_fields = re.compile(r'"[^"]*"|[^\s"]+').findall

# comments, of which the last may be the header of the row below
_COMMENTED_HEADER = re.compile(
    r"(?:#[^\r\n]*[\r\n]+)*?(?P<sign>#[ \t]*)(?P<names>[^\r\n]+)[\r\n]+(?P<row>[^#\r\n][^\r\n]*)"
).match

# a column of PCIbex, in the comments above its results
_PCIBEX = re.compile(r'"?#\s*(\d+)\.\s+(.*?)\.?[\s",]*$').match
_LONGEST_COMMENTS = 100_000  # characters at the beginning of a file of which columns are read
# what PCIbex writes for a comma and for control characters
_PCIBEX_CODE = re.compile(r"%(2C|7F|[01][0-9A-F])")


def is_text_table(path: Path) -> bool:
    """Returns whether the lines of a text file are a table below a header, and no plain texts.

    They are a table if the header names several columns, one of them by a known name, or a column
    `sentence` alone. With other names, they are a table if most lines have as many tabs as the
    header, or if all lines have as many of another separator as the header, two or more.
    """
    text = _with_plain_header(read_text(path))
    if _pcibex_names(path, text):
        return True
    sample = _sample(path, text)
    separator, header = _separator_and_header(sample)
    if not separator:
        return bool(sample) and sample[0].strip().strip('"').casefold() == "sentence"
    if any(folded(name) in KNOWN_NAMES for name in _names_in(header, separator)):
        return True
    n = _count_separators(header, separator)
    lines_below = sample[sample.index(header) + 1 :]
    counts = [_count_separators(line, separator) for line in lines_below]
    n_alike = sum(count in (n, n + 1) for count in counts)  # one more where rows have names
    if separator == "\t":
        return 2 * n_alike > len(counts)
    return n_alike == len(counts) and n > 1


def text_rows(path: Path) -> Rows:
    """Returns the rows of a text file, the header first.

    Rows may have a cell more than the header: their names, as R's `write.table` writes them.
    """
    text = _with_plain_header(read_text(path))
    if _pcibex_names(path, text):
        return _pcibex_rows(path, text)
    sample = _sample(path, text)
    if sample and "\0" in sample[0]:
        raise BadInput(f"{path}:1: a NUL character; save the file as UTF-8 (in Excel: CSV UTF-8)")
    # number of the first line below comments, which is the header or a title above it
    first = next((number for number, _ in _below_comments(path, text)), 1)
    notes = []
    if first > 1 and text.lstrip().startswith("#"):
        notes.append(f"comments: lines above line {first} are passed over")
    separator, header = _separator_and_header(sample)
    if not separator:  # no line seems to name columns: the first one is taken
        header = sample[0] if sample else ""
        usual = "\t" if path.suffix.lower() in (".tsv", ".tab", ".txt") else ","
        # the most frequent one; the usual one if none is there
        separator = max((usual, *",;\t"), key=lambda x: _count_separators(header, x))
    if match := _SEPARATOR_LINE(text[:10]):  # it decides, whatever the lines look like
        separator = match[1]
        notes.append(f"separator: line 1 is passed over, sep={separator}")
    check_size(path, n_columns=1 + header.count(separator), n_rows=0)  # before rows are parsed
    parsed_rows = _parsed_rows(path, text, first, header, separator)
    # `Rows` of a text without titles and notes; its separator is added below
    rows, _, notes_on_rows = header_and_data(parsed_rows, "line", notes)
    if rows and _has_row_names(rows, header, separator):
        line, number, cells = rows[0]
        rows[0] = (line, number, ("", *cells))
        note = "row names: the first cell of each row, since the header has a cell less"
        notes_on_rows = (*notes_on_rows, note)
    _refuse_other_widths(path, rows, separator)
    return Rows(rows, separator, notes_on_rows)


def _with_plain_header(text: str) -> str:
    """A text without the sign "#" before its header, if the last comment above the rows is one.

    For example, "# item,sentence" above "1,The dog barks." becomes "item,sentence". Such a comment
    has as many separators as the first row below it, and cells that can be names; one of these is a
    known name, or else the cells of the row below cannot be names.
    """
    match = _COMMENTED_HEADER(text)
    if not match:
        return text
    header, row = match["names"], match["row"]
    separator = max(_SEPARATORS, key=lambda x: _count_separators(row, x))
    n = _count_separators(row, separator)
    if not n or _count_separators(header, separator) != n:
        return text
    names = _names_in(header, separator)
    cells = _names_in(row, separator)
    known = KNOWN_NAMES.intersection(map(folded, names)).difference(map(folded, cells))
    is_header = len(names) > 1 and can_be_names(names) and (known or not can_be_names(cells))
    if not is_header:
        return text
    return text[: match.start("sign")] + text[match.start("names") :]


def _sample(path: Path, text: str) -> list[str]:
    """The first lines that have some text, below comments, without their ends."""
    lines = (line[:_SAMPLE_WIDTH] for _, line in _below_comments(path, text, _SAMPLE))
    return [line.rstrip("\r\n") for line in lines if line.strip(" ,;\t|\r\n")]


def _count_separators(line: str, separator: str) -> int:
    """How often a line has a separator outside quotes; of blanks, several count once."""
    bare = _QUOTED.sub("_", line)
    return len(bare.split()) - 1 if separator == _BLANK else bare.count(separator)


def _separator_and_header(sample: Sequence[str]) -> tuple[str, str]:
    """The separator of fields, and the first line that names columns; "" and "" without one.

    For example, (";", "item;sentence") of the lines "item;sentence", "1;The dog barks, and runs."
    and "2;It ran.". At least half of the lines have as many separators as this line, or where
    blanks separate fields, all lines.

    Args:
        sample: the first lines of a file.
    """
    for line in sample[: _SAMPLE // 2]:
        separator = max(_SEPARATORS, key=lambda x: _count_separators(line, x))
        if not _count_separators(line, separator):
            separator = _BLANK
        n = _count_separators(line, separator)
        counts = Counter(_count_separators(other, separator) for other in sample)
        n_alike = max(counts[n], 1 + counts[n + 1])  # the header, and rows with their names
        # words of texts also have blanks between them
        must_be_all = separator == _BLANK and '"' not in line
        least = len(sample) if must_be_all else len(sample) / 2
        names = _names_in(line, separator)
        is_header = has_known_name(names) if separator == _BLANK else len(names) > 1
        is_header = is_header or [*map(folded, names)] == ["sentence"]
        if n and n_alike > 1 and n_alike >= least and is_header and can_be_names(names):
            return separator, line
    return "", ""


def _names_in(line: str, separator: str) -> list[str]:
    """The fields of a line of names, without quotes, and without empty ones at its ends."""
    if separator == _BLANK:
        return [name.strip('"') for name in _find_fields(line)]
    return [name.strip('"') for name in line.strip(separator).split(separator)]


def _parsed_rows(path: Path, text: str, first: int, header: str, separator: str) -> list[TextRow]:
    """The rows of a text that have cells with some text.

    Args:
        path: of the file, for messages.
        text: of the file.
        first: number of the first line that is read, from 1; lines above are comments.
        header: the line that names the columns: with names in quotes, quotes surround fields; with
            a blank after each separator, blanks there belong to no field.
        separator: of fields.
    """
    n_separators = header.count(separator)
    has_blanks = separator == _BLANK or 0 < n_separators == header.count(f"{separator} ")
    is_quoted = separator in ",;|" or '"' in header or _has_quoted_fields(text, separator)
    if '"' in header and separator in "\t ":
        text = text.replace('\\"', '""')  # how R's `write.table` writes a quote
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    csv.field_size_limit(MAX_CELL)
    lines: Iterator[str] = islice(_lines(path, text), first - 1, None)
    if separator == _BLANK and '"' not in header:
        lines = (line.strip(" ") for line in lines)
    empty_lines = repeat("\n", first - 1)  # so that the reader counts lines as the file does
    reader = csv.reader(
        chain(empty_lines, lines), delimiter=separator, quoting=quoting, strict=True,
        skipinitialspace=has_blanks,
    )  # fmt: skip
    rows: list[TextRow] = []
    distinct_texts: dict[str, str] = {}  # equal cells share one object, to save memory
    end = 0  # the last line of the row
    try:
        for number, cells in enumerate(reader, start=1):
            end = reader.line_num
            if len(cells) > MAX_COLUMNS or number > MAX_ROWS:
                check_size(path, len(cells), number - 1)
            if "".join(cells).strip():
                # tuples of texts are not visited again by the garbage collector
                row = tuple(map(distinct_texts.setdefault, cells, cells))
                rows.append((end, number, row))
    except csv.Error as error:
        problem = f'{error}; write "" for a quote inside a quoted text'
        if "limit" in str(error):
            problem = f"a cell has more than {MAX_CELL:,} characters; split the text"
        elif "end of data" in str(error):
            problem = "a quote begins here that does not end; close it, or remove it"
        raise BadInput(f"{path}:{end + 1}: {problem}") from error
    return rows


def _has_row_names(rows: Sequence[TextRow], header: str, separator: str) -> bool:
    """Whether all rows have a cell more than the header, as R's `write.table` writes them.

    For example, `"item" "rt"` above `"1" 7 402`, where "1" is the name of the row. Without quotes
    around the names of columns, the last cell of all rows must be filled: an empty one may be that
    of a column without a name.

    Args:
        rows: the header first.
        header: its line.
        separator: of fields.
    """
    n_names = len(rows[0][2])
    is_quoted = '"' in header
    if not is_quoted and separator not in "\t ":
        return False
    cells_below = [cells for _, _, cells in rows[1:]]
    if {len(cells) for cells in cells_below} != {n_names + 1}:
        return False
    are_filled = (bool(cells[-1]) for cells in cells_below)
    return any(are_filled) if is_quoted else all(are_filled)


def _refuse_other_widths(path: Path, rows: Sequence[TextRow], separator: str) -> None:
    """Refuses a row with another number of fields than the header, and names the remedy.

    Empty cells behind the last column do no harm.
    """
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
    """Yields the lines of a text with their ends; `BadInput` for a line that is too long."""
    for number, line in enumerate(StringIO(text, newline=""), start=1):
        if len(line) > _MAX_LINE:
            problem = f"the line has more than {_MAX_LINE:,} characters"
            raise BadInput(f"{path}:{number}: {problem}; split the text")
        yield line


def _below_comments(path: Path, text: str, most: int = 1) -> Iterator[tuple[int, str]]:
    """Yields (number, text) of the first lines below comments that are not empty.

    For example, (3, "item,rt") for the lines "# my data", "" and "item,rt". Comments begin with "#"
    and stand at the beginning of the file, as does the line `sep=;` of Excel.

    Args:
        path: of the file, for messages.
        text: of the file.
        most: number of lines.
    """
    is_above = True  # no line of the table came yet
    n_lines = 0
    for number, line in enumerate(_lines(path, text), start=1):
        if is_above:
            is_separator_line = number == 1 and bool(_SEPARATOR_LINE(line))
            is_above = line.startswith("#") or not line.strip() or is_separator_line
        if line.strip() and not is_above:
            yield number, line
            n_lines += 1
            if n_lines == most:
                return


def _has_quoted_fields(text: str, separator: str) -> bool:
    """Whether quotes in a text surround fields; if not, they are parts of the texts in fields.

    For example, True for the line `1<tab>"He ran."`, and False for `1<tab>"Run!" he said.`, where
    the field goes on behind the quote. With tabs as separators, quotes surround fields if every
    field that begins with a quote also ends with one. In addition, one of these fields must have a
    blank or a quote in it, or there must be such a field for each line below the header.

    Args:
        text: of the file.
        separator: of fields, a tab or a blank.
    """
    if separator == _BLANK:
        return bool(_QUOTED_WORDS.search(text))
    fields = _IN_QUOTES.findall(text)
    n_begun = len(_QUOTE_FIRST.findall(text))
    n_lines_below = text.rstrip().count("\n")
    has_field_per_line = 1 < n_lines_below <= len(fields)
    has_words = has_field_per_line or any(re.search(r'\s|"', field) for field in fields)
    return len(fields) == n_begun and has_words


# ---- PCIbex --------------------------------------------------------------------------------------


def _pcibex_names(path: Path, text: str) -> dict[int, str]:
    """Number -> name of the columns in the comments at the beginning of results of PCIbex.

    For example, {1: "Controller name", 2: "Item number"} for "# 1. Controller name." and "# 2. Item
    number."; {} for other files.
    """
    names: dict[int, str] = {}
    for line in _lines(path, text[:_LONGEST_COMMENTS]):
        if not _is_comment(line):
            break
        if match := _PCIBEX(line):
            names[int(match[1])] = match[2]
    return names if len(names) > 1 else {}


def _is_comment(line: str) -> bool:
    """Whether a line is a comment, also one that a spreadsheet wrote in quotes."""
    return line.startswith(("#", '"#'))


def _character(code: re.Match[str]) -> str:
    """The character that a code of PCIbex stands for: "," for %2C."""
    return chr(int(code[1], 16))


def _pcibex_rows(path: Path, text: str) -> Rows:
    """The rows of results of PCIbex below a header of the names that comments give.

    For example, below the comments "# 1. Time." and "# 2. Value." the row "17,yes" has the cells
    Time "17" and Value "yes". Each kind of element has comments of its own, which name the columns
    of the rows below them; a row has an empty cell in each column that its comments do not name.
    """
    names: dict[int, str] = {}  # number of a column -> its name, in the rows that follow
    records: list[tuple[int, dict[str, str]]] = []  # line of a row, and column -> cell
    for number, line in enumerate(_lines(path, text), start=1):
        check_size(path, len(names), number)
        if match := _PCIBEX(line):
            column = int(match[1])
            # a lower number begins the columns of another element, which shares the first ones
            names = {n: name for n, name in names.items() if n < column}
            is_repeated = match[2] in names.values()
            names[column] = f"{match[2]} {match[1]}" if is_repeated else match[2]
        elif line.strip() and not _is_comment(line):
            cells = line.rstrip("\r\n").split(",")  # PCIbex writes quotes as they are
            if any(cells[len(names) :]):  # a comma within quotes, which a spreadsheet wrote
                cells = next(csv.reader([line]))
            while len(cells) > len(names) and not cells[-1]:
                cells.pop()  # an empty cell that a spreadsheet added
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
