"""Reads files: csv, tsv, JSON lines, Parquet and text as tables, and JSON as a test suite."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from lmdiag.diagnostics import CORE_COLUMNS, SENTENCE_COLUMNS
from lmdiag.files import read_json_lines, read_parquet, read_text
from lmdiag.stimuli.extended import SENTENCES
from lmdiag.stimuli.suites import SUITE_SUFFIX, read_suite
from lmdiag.stimuli.table import PAIR_ALIASES, PAIR_COLUMNS, RawTable, from_rows, needed_columns
from lmdiag.types import BadInput

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
"""Between the fields of a csv file; spreadsheets write a semicolon or a tab in many languages."""

TEXT_SUFFIX = ".txt"
"""Suffix of the files of extended sets, see `lmdiag.stimuli.extended`."""

_MISSING = "NA"
"""How R writes a missing value into a csv file."""

_KNOWN = {*CORE_COLUMNS, *SENTENCE_COLUMNS, *PAIR_COLUMNS, *PAIR_ALIASES}
"""Columns by which the separator of a file is recognised."""


def read_file(path: Path) -> RawTable:
    """Reads a csv, tsv, JSON-lines, Parquet or text file, or a test suite.

    Raises:
        BadInput: the file cannot be read; the message names the line if there is one.
    """
    if path.suffix not in READERS:
        raise BadInput(f"{path}: the file name must end in {', '.join(READERS)}")
    return READERS[path.suffix](path)


def _read_csv(path: Path) -> RawTable:
    text = read_text(path)
    separator = _separator(text.partition("\n")[0], "\t" if path.suffix == ".tsv" else ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, lines = [], []
    try:
        header = next(reader, [])
        if not header or len(set(header)) < len(header):
            raise BadInput(f"{path}:1: the header must name each column once")
        for fields in filter(None, reader):
            if len(fields) != len(header):
                raise BadInput(
                    f"{path}:{reader.line_num}: {len(fields)} fields, expected {len(header)}; "
                    f"put text with {_SEPARATORS[separator]} in double quotes"
                )
            rows.append([None if field == _MISSING else field for field in fields])
            lines.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: {error}") from error
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    table = RawTable(str(path), columns, lambda row: f"{path}:{lines[row]}")
    _refuse_missing(table)
    return table


def _separator(header: str, default: str) -> str:
    """The separator that finds most of the core columns in the header."""

    def n_core(separator: str) -> int:
        fields = {field.strip(' "\r\n') for field in header.split(separator)}
        return len(fields & _KNOWN)

    return max((default, *_SEPARATORS), key=n_core)


def _refuse_missing(table: RawTable) -> None:
    """Refuses NA as a context, target or sentence: it may be R's missing value or the word NA."""
    for name in needed_columns(table.columns):
        if None in table.columns.get(name, ()):
            row = table.columns[name].index(None)
            raise BadInput(
                f"{table.where(row)}: the column {name} is NA, a missing value in R: fill it in; "
                "if the word NA is meant, save the rows as JSON lines (.jsonl)"
            )


def _read_json_lines(path: Path) -> RawTable:
    lines = list(read_json_lines(path))
    return from_rows(str(path), [row for _, row in lines], lambda row: lines[row][0])


def _read_parquet(path: Path) -> RawTable:
    return RawTable(str(path), read_parquet(path).to_pydict(), lambda row: f"{path}, row {row + 1}")


def _read_lines(path: Path) -> RawTable:
    """The lines of a text file as the column `text`, as `datasets` reads them."""
    lines = read_text(path).removesuffix("\n").split("\n")
    return RawTable(str(path), {SENTENCES: lines}, lambda row: f"{path}:{row + 1}")


READERS: dict[str, Callable[[Path], RawTable]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
    SUITE_SUFFIX: read_suite,
    TEXT_SUFFIX: _read_lines,
}
"""File suffix -> reader."""
