"""Reads tables of any supported format and brings the core columns to their types."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.reading import parse_json, read_parquet, read_text
from lmdiag.schema import CORE_COLUMNS, BadInput

if TYPE_CHECKING:
    import pyarrow as pa

Where = Callable[[int], str]
"""Row number from 0 -> what to call it in an error, e.g. "my.csv:3"."""

TRUTH = {"true": True, "1": True, "false": False, "0": False}
"""How csv files write `good`; compared in lower case."""

SEPARATOR = "|"
"""Between the words of a list in a csv field."""

LISTS = ("expected", "expected_responses")
FLOATS = ("expected_cloze", "target_cloze", "target_cloze_strict")
BOOLS = ("good", "natural")


@dataclass(frozen=True)
class Raw:
    """A table as it was read.

    Attributes:
        name: of the file or data set.
        table: all rows.
        where: names a row.
    """

    name: str
    table: pa.Table
    where: Where

    @classmethod
    def joined(cls, parts: Sequence[Raw]) -> Raw:
        """One table of several files, in order.

        Raises:
            BadInput: their columns differ.
        """
        if len(parts) == 1:
            return parts[0]
        import pyarrow as pa

        try:
            table = pa.concat_tables([part.table for part in parts])
        except pa.ArrowInvalid as error:
            names = ", ".join(part.name for part in parts)
            raise BadInput(f"the columns of {names} differ: they are one config") from error
        owners = [(part, row) for part in parts for row in range(part.table.num_rows)]
        return cls(parts[0].name, table, lambda row: owners[row][0].where(owners[row][1]))


def read_file(path: Path) -> Raw:
    """Reads a csv, tsv, JSON-lines or Parquet file.

    Raises:
        BadInput: the file cannot be read; the message names the line where there is one.
    """
    if path.suffix not in READERS:
        raise BadInput(f"{path}: a file ends in one of {', '.join(READERS)}")
    return READERS[path.suffix](path)


def _read_parquet(path: Path) -> Raw:
    return Raw(str(path), read_parquet(path), lambda row: f"{path}, row {row + 1}")


def _read_csv(path: Path, delimiter: str = ",") -> Raw:
    with io.StringIO(read_text(path), newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(reader, None)
            if not header or len(set(header)) < len(header):
                raise BadInput(f"{path}:1: the header must name each column once")
            rows, lines = [], []
            for fields in reader:
                if not fields:
                    continue
                if len(fields) != len(header):
                    raise BadInput(
                        f"{path}:{reader.line_num}: {len(fields)} fields, {len(header)} are due; "
                        "put text with a comma in double quotes"
                    )
                rows.append(fields)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise BadInput(f"{path}:{reader.line_num}: {error}") from error
    return _from_columns(
        path, {name: [row[i] for row in rows] for i, name in enumerate(header)}, lines
    )


def _read_json_lines(path: Path) -> Raw:
    rows, lines = [], []
    with io.StringIO(read_text(path), newline=None) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            row = parse_json(line, f"{path}:{number}")
            if not isinstance(row, dict):
                raise BadInput(f"{path}:{number}: a JSON object is due, one a line")
            rows.append(row)
            lines.append(number)
    names = dict.fromkeys(name for row in rows for name in row)
    for row, number in zip(rows, lines, strict=True):
        absent = [name for name in names if name in CORE_COLUMNS and name not in row]
        if absent:
            raise BadInput(f"{path}:{number}: the column {absent[0]} is missing")
    return _from_columns(path, {name: [row.get(name) for row in rows] for name in names}, lines)


def _from_columns(path: Path, columns: dict[str, list[Any]], lines: list[int]) -> Raw:
    import pyarrow as pa

    def where(row: int) -> str:
        return f"{path}:{lines[row]}"

    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(_typed(name, values, where))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BadInput(f"{path}: the column {name} mixes types: {error}") from error
    return Raw(str(path), pa.table(arrays), where)


READERS: dict[str, Callable[[Path], Raw]] = {
    ".csv": _read_csv,
    ".tsv": lambda path: _read_csv(path, "\t"),
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
}
"""File suffix -> reader."""


def normalise(raw: Raw) -> tuple[pa.Table, Where]:
    """Returns the table with the core columns in their types, and how to name its rows.

    `right_context` may be missing (the blank ends the sentence).

    Raises:
        BadInput: a core column is missing, has another type, or lacks a value in some row.
    """
    import pyarrow as pa

    table, where = raw.table, raw.where
    if not table.num_rows:
        raise BadInput(f"{raw.name} has no rows")
    if "right_context" not in table.column_names:
        table = table.append_column("right_context", pa.array([""] * table.num_rows))
    for name in CORE_COLUMNS:
        if name not in table.column_names:
            core = ", ".join(CORE_COLUMNS)
            raise BadInput(f"{raw.name}: the column {name} is missing; the core columns are {core}")
        place = table.column_names.index(name)
        table = table.set_column(place, name, _core(name, table.column(name), where))
    return table, where


def _core(name: str, column: pa.ChunkedArray, where: Where) -> pa.ChunkedArray | pa.Array:
    """A core column in its type: the same values, or an error that names the first bad row."""
    import pyarrow as pa

    due = {"good": pa.bool_(), "expected": pa.list_(pa.string())}.get(name, pa.string())
    if column.type != due or column.null_count:
        values = _typed(name, column.to_pylist(), where)
        if name == "right_context":  # what wrote the table may not tell "" from nothing
            values = [value or "" for value in values]
        try:
            column = pa.array(values, due)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BadInput(f"{where(0)}: the column {name} must be {due}: {error}") from error
    if column.null_count:
        row = column.to_pylist().index(None)
        raise BadInput(f"{where(row)}: the column {name} is empty")
    return column


def _typed(name: str, values: Iterable[Any], where: Where) -> list[Any]:
    """Values of a known column, from the strings of a csv; all other values as they are."""
    convert: Callable[[Any], Any] | None = None
    if name in BOOLS:
        convert = _bool
    elif name in LISTS:
        convert = _list
    elif name in FLOATS:
        convert = _float
    elif name in CORE_COLUMNS:
        convert = _text
    if convert is None:
        return list(values)
    typed = []
    for row, value in enumerate(values):
        try:
            typed.append(convert(value))
        except ValueError as error:
            raise BadInput(f"{where(row)}: the column {name}: {error}") from error
    return typed


def _bool(value: Any) -> bool | None:
    if value is None or value == "" or isinstance(value, bool):
        return None if value == "" else value
    found = TRUTH.get(str(value).lower())
    if found is None:
        raise ValueError(f"true or false is due, not {value!r}")
    return found


def _list(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [word.strip() for word in value.split(SEPARATOR)]
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    raise ValueError(f"a list of words is due, not {value!r}")


def _float(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"a number is due, not {value!r}") from None


def _text(value: Any) -> str | None:
    # Items are often numbers; everything else that is no text is a mistake.
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"text is due, not {value!r}")
