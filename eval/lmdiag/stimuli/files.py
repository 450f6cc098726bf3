"""Reads files: csv, tsv, JSON lines, Parquet and text as tables, and JSON as a test suite."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.files import read_json, read_json_lines, read_parquet, read_text
from lmdiag.stimuli.extended import TEXT
from lmdiag.stimuli.forms import PAIR, PAIR_ALIASES
from lmdiag.stimuli.suites import suite_rows
from lmdiag.stimuli.table import RawTable, from_rows
from lmdiag.types import BadInput

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
"""Between the fields of a csv file; spreadsheets write a semicolon or a tab in many languages."""

_MISSING = "NA"
"""How R writes a missing value into a csv file."""

_KNOWN = {*(column.name for column in (*CORE, *SENTENCES)), *PAIR, *PAIR_ALIASES}
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
    return RawTable(str(path), columns, lambda row: f"{path}:{lines[row]}")


def _separator(header: str, default: str) -> str:
    """The separator that finds most of the core columns in the header."""

    def n_core(separator: str) -> int:
        fields = {field.strip(' "\r\n') for field in header.split(separator)}
        return len(fields & _KNOWN)

    return max((default, *_SEPARATORS), key=n_core)


def _read_json_lines(path: Path) -> RawTable:
    lines = list(read_json_lines(path))
    return from_rows(str(path), [row for _, row in lines], lambda row: lines[row][0])


def _read_parquet(path: Path) -> RawTable:
    return RawTable(str(path), read_parquet(path).to_pydict(), lambda row: f"{path}, row {row + 1}")


def _read_text(path: Path) -> RawTable:
    """The lines of a text file as the column `text`, as `datasets` reads them."""
    lines = read_text(path).removesuffix("\n").split("\n")
    return RawTable(str(path), {TEXT: lines}, lambda row: f"{path}:{row + 1}")


READERS: dict[str, Callable[[Path], RawTable]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
    ".json": lambda path: suite_rows(read_json(path), str(path), path.stem),
    ".txt": _read_text,
}
"""File suffix -> reader."""
