"""Reads rows: csv, tsv, JSON lines, Parquet, text, test suites in JSON, and objects in memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.files import (
    MAX_TABLE,
    read_json,
    read_json_lines,
    read_parquet,
    read_table_text,
    read_text,
)
from lmdiag.stimuli.extended import TEXT
from lmdiag.stimuli.forms import PAIR, PAIR_ALIASES
from lmdiag.stimuli.suites import suite_rows
from lmdiag.stimuli.table import RawTable
from lmdiag.types import BadInput

MEMORY = "rows"
"""What a table in memory is called in messages, and its task by default."""

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
"""Between the fields of a csv file; spreadsheets write a semicolon or a tab in many languages."""

_KNOWN = {*(column.name for column in (*CORE, *SENTENCES)), *PAIR, *PAIR_ALIASES}
"""Columns by which the separator of a file is recognised."""


def read_file(path: Path) -> RawTable:
    """Reads a file of rows or a test suite; an error names the line if there is one."""
    if path.suffix not in READERS:
        remedy = f"give a directory or a file ending in {', '.join(READERS)}"
        raise BadInput(f"{path} cannot be read as data: {remedy}")
    return READERS[path.suffix](path)


def _read_csv(path: Path) -> RawTable:
    text = read_table_text(path)
    head = text.partition("\n")[0]
    n_known = {
        separator: len(_KNOWN & {field.strip(' "\r\n') for field in head.split(separator)})
        for separator in ("\t" if path.suffix == ".tsv" else ",", *_SEPARATORS)
    }
    separator = max(n_known, key=n_known.__getitem__)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, lines = [], []
    try:
        header = next(reader, [])
        if not header or len(set(header)) < len(header):
            raise BadInput(f"{path}:1: the header must name each column once")
        for fields in filter(None, reader):
            if len(fields) != len(header):
                problem = f"{len(fields)} fields, expected {len(header)}"
                remedy = f"put text with {_SEPARATORS[separator]} in double quotes"
                raise BadInput(f"{path}:{reader.line_num}: {problem}; {remedy}")
            rows.append([None if field == "NA" else field for field in fields])  # as R writes it
            lines.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: {error}") from error
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return RawTable(str(path), columns, lambda row: f"{path}:{lines[row]}")


READERS: dict[str, Callable[[Path], RawTable]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": lambda path: RawTable.of_rows(str(path), read_json_lines(path)),
    ".parquet": lambda path: RawTable(
        str(path), read_parquet(path).to_pydict(), lambda row: f"{path}, row {row + 1}"
    ),
    ".json": lambda path: suite_rows(read_json(path), str(path), path.stem),
    # the lines of a text file as one column, as `datasets` reads them
    ".txt": lambda path: RawTable(
        str(path),
        {TEXT: read_text(path, MAX_TABLE).removesuffix("\n").split("\n")},
        lambda row: f"{path}:{row + 1}",
    ),
}
"""File suffix -> reader."""


def read_memory(data: Any, task: str) -> RawTable:
    """Returns the rows of an object in memory; a suite without a name gets that of the task.

    It is a pandas DataFrame (its index is ignored), a `datasets.Dataset`, a pyarrow Table, a
    mapping of column names to values, an iterable of mappings, one per row, or a suite.
    """
    if hasattr(data, "iloc"):  # pandas: missing values become None
        data = data.astype(object).where(data.notna(), None).to_dict("list")
    elif convert := getattr(data, "to_pydict", None) or getattr(data, "to_dict", None):
        data = convert()  # pyarrow, datasets
    if not isinstance(data, Mapping):
        rows = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            kinds = "the name of a data set, a file, a DataFrame, a list of dicts"
            problem = f"cannot read stimuli from {type(data).__name__}"
            raise BadInput(f"{problem}: give {kinds}, or a dict of columns")
        plain = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
        places = (f"{MEMORY}, row {number}" for number in range(1, len(plain) + 1))
        return RawTable.of_rows(MEMORY, zip(places, plain, strict=True))
    if {"items", "predictions"} <= data.keys():
        return suite_rows(data, MEMORY, task)
    columns = {str(name): [_plain(value) for value in values] for name, values in data.items()}
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    return RawTable(MEMORY, columns, lambda row: f"{MEMORY}, row {row + 1}")


def _plain(value: Any) -> Any:
    """The Python value of a number or an array of numpy; None for NaN."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(value, float) and value != value else value
