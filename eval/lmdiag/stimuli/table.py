"""Reads tables: csv, tsv, JSON-lines and Parquet files, and objects in memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmdiag.diagnostics import CORE_COLUMNS, NEEDED_COLUMNS
from lmdiag.reading import read_json_lines, read_parquet, read_text
from lmdiag.schema import BadInput

MEMORY = "rows"
"""What a table in memory is called in messages, and its task by default."""

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
"""Between the fields of a csv file; spreadsheets write a semicolon or a tab in many languages."""

_MISSING = "NA"
"""How R writes a missing value into a csv file."""

RowNames = Callable[[int], str]
"""Row number from 0 -> what to call the row in a message, for example "my.csv:3"."""


@dataclass(frozen=True)
class RawTable:
    """Rows as they were read, before their values are converted and checked.

    Attributes:
        name: of the file or data set.
        columns: column -> plain Python values, one per row.
        where: names a row in a message.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    where: RowNames

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))


def concatenate(parts: Sequence[RawTable]) -> RawTable:
    """Returns the rows of several files as one table, in order.

    Raises:
        BadInput: their columns differ.
    """
    if len(parts) == 1:
        return parts[0]
    if any(set(part.columns) != set(parts[0].columns) for part in parts):
        names = ", ".join(part.name for part in parts)
        raise BadInput(f"{names} are files of one config, but their columns differ")
    columns = {
        name: [value for part in parts for value in part.columns[name]] for name in parts[0].columns
    }
    origins = [(part, row) for part in parts for row in range(len(part))]
    return RawTable(parts[0].name, columns, lambda row: origins[row][0].where(origins[row][1]))


def from_rows(name: str, rows: Sequence[Mapping[str, Any]], where: RowNames) -> RawTable:
    """Returns a table of mappings; only core columns must be present in all rows or in none.

    Raises:
        BadInput: a row lacks a core column that another row has.
    """
    names = list(dict.fromkeys(column for row in rows for column in row))
    for i, row in enumerate(rows):
        for column in names:
            if column in CORE_COLUMNS and column not in row:
                raise BadInput(f"{where(i)}: the column {column} is missing")
    return RawTable(name, {column: [row.get(column) for row in rows] for column in names}, where)


# ---- files ---------------------------------------------------------------------------------------


def read_file(path: Path) -> RawTable:
    """Reads a csv, tsv, JSON-lines or Parquet file.

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
        return len(fields.intersection(CORE_COLUMNS))

    return max((default, *_SEPARATORS), key=n_core)


def _refuse_missing(table: RawTable) -> None:
    """Refuses NA as a context or a target: it may be R's missing value or the word NA."""
    for name in NEEDED_COLUMNS:
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


READERS: dict[str, Callable[[Path], RawTable]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
}
"""File suffix -> reader."""


# ---- memory --------------------------------------------------------------------------------------


def read_memory(data: Any) -> RawTable:
    """Returns the rows of an object in memory.

    Args:
        data: a pandas DataFrame (its index is ignored), a `datasets.Dataset`, a pyarrow Table, a
            mapping of column names to values, or an iterable of mappings, one per row.

    Raises:
        BadInput: it is something else, or its columns differ in length.
    """
    columns = _columns(data)
    if columns is None:
        rows = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            raise BadInput(
                f"cannot read stimuli from {type(data).__name__}: give the name of a data set, a "
                "file, a DataFrame, a list of dicts, or a dict of columns"
            )
        plain = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
        return from_rows(MEMORY, plain, _row_in_memory)
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    values_of = {str(name): [_plain(value) for value in values] for name, values in columns.items()}
    return RawTable(MEMORY, values_of, _row_in_memory)


def _row_in_memory(row: int) -> str:
    return f"{MEMORY}, row {row + 1}"


def _columns(data: Any) -> Mapping[str, Sequence[Any]] | None:
    """The columns of a table; None for what has none."""
    if isinstance(data, Mapping):
        return {name: list(values) for name, values in data.items()}
    columns: Mapping[str, Sequence[Any]] | None = None
    if hasattr(data, "iloc"):  # pandas: missing values become None
        columns = data.astype(object).where(data.notna(), None).to_dict("list")
    elif hasattr(data, "to_pydict"):  # pyarrow
        columns = data.to_pydict()
    elif hasattr(data, "to_dict"):  # datasets
        columns = data.to_dict()
    return columns


def _plain(value: Any) -> Any:
    """The Python value of a number or an array of numpy; None for NaN."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and value != value else value
