"""Reads tables of any supported format and brings their columns to their types."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmdiag import diagnostics
from lmdiag.diagnostics import CORE_COLUMNS, NEEDED_COLUMNS
from lmdiag.reading import parse_json, read_parquet, read_text
from lmdiag.schema import BadInput
from lmdiag.stimuli import values

Where = Callable[[int], str]
"""Row number from 0 -> what to call it in an error, e.g. "my.csv:3"."""

SEPARATORS = ",;\t"
"""Between the fields of a csv file: a comma, or what spreadsheets write in many languages."""

MISSING = "NA"
"""How R writes a missing value into a csv file."""

ROW_NAMES = ("", "__index_level_0__")
"""Column of row names that R and pandas add: it is ignored."""

DEFAULTS: Mapping[str, Any] = {"item": "", "condition": "", "right_context": "", "expected": []}
"""Core column -> its value in every row of data that do not have the column."""


@dataclass(frozen=True)
class Raw:
    """A table as it was read.

    Attributes:
        name: of the file or data set.
        columns: column -> plain Python values, one per row.
        where: names a row.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    where: Where

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    @classmethod
    def joined(cls, parts: Sequence[Raw]) -> Raw:
        """One table of several files, in order.

        Raises:
            BadInput: their columns differ.
        """
        if len(parts) == 1:
            return parts[0]
        if any(set(part.columns) != set(parts[0].columns) for part in parts):
            names = ", ".join(part.name for part in parts)
            raise BadInput(f"the columns of {names} differ: they are one config")
        columns = {
            name: [value for part in parts for value in part.columns[name]]
            for name in parts[0].columns
        }
        owners = [(part, row) for part in parts for row in range(len(part))]
        return cls(parts[0].name, columns, lambda row: owners[row][0].where(owners[row][1]))


# ---- files ---------------------------------------------------------------------------------------


def read_file(path: Path) -> Raw:
    """Reads a csv, tsv, JSON-lines or Parquet file.

    Raises:
        BadInput: the file cannot be read; the message names the line where there is one.
    """
    if path.suffix not in READERS:
        raise BadInput(f"{path}: a file ends in one of {', '.join(READERS)}")
    return READERS[path.suffix](path)


def _read_parquet(path: Path) -> Raw:
    return Raw(str(path), read_parquet(path).to_pydict(), lambda row: f"{path}, row {row + 1}")


def _read_csv(path: Path) -> Raw:
    text = read_text(path)
    first = text.partition("\n")[0]
    separator = _separator(first, default="\t" if path.suffix == ".tsv" else ",")
    with io.StringIO(text, newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
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
                        f"{path}:{reader.line_num}: {len(fields)} fields, expected {len(header)}; "
                        f"put text with {_NAMES[separator]} in double quotes"
                    )
                rows.append(fields)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise BadInput(f"{path}:{reader.line_num}: {error}") from error
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return _without_missing(Raw(str(path), columns, lambda row: f"{path}:{lines[row]}"))


_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


def _separator(header: str, default: str) -> str:
    """The separator by which the header has most of the core columns."""
    known: dict[str, int] = {}
    for separator in (default, *SEPARATORS):
        fields = [field.strip(' "\r\n') for field in header.split(separator)]
        known[separator] = len(set(fields).intersection(CORE_COLUMNS))
    return max(known, key=lambda separator: known[separator])


def _without_missing(raw: Raw) -> Raw:
    """The table with None for each NA of R's.

    Raises:
        BadInput: NA stands where a word or a text is needed, which it may be meant to be.
    """
    for name in NEEDED_COLUMNS:
        if MISSING in raw.columns.get(name, ()):
            row = raw.columns[name].index(MISSING)
            raise BadInput(
                f"{raw.where(row)}: the column {name} is NA, a missing value in R: fill it in; if "
                "the word NA is meant, save the rows as JSON lines (.jsonl)"
            )
    columns = {
        name: [None if value == MISSING else value for value in column]
        for name, column in raw.columns.items()
    }
    return Raw(raw.name, columns, raw.where)


def _read_json_lines(path: Path) -> Raw:
    rows, lines = [], []
    with io.StringIO(read_text(path), newline=None) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            row = parse_json(line, f"{path}:{number}")
            if not isinstance(row, dict):
                raise BadInput(f"{path}:{number}: expected one JSON object per line")
            rows.append(row)
            lines.append(number)
    return of_rows(str(path), rows, lambda row: f"{path}:{lines[row]}")


def of_rows(name: str, rows: Sequence[Mapping[str, Any]], where: Where) -> Raw:
    """Returns a table of rows; a further column may be missing from some of them.

    Raises:
        BadInput: a row lacks a core column that another one has.
    """
    names = list(dict.fromkeys(column for row in rows for column in row))
    core = [column for column in names if column in CORE_COLUMNS]
    for i, row in enumerate(rows):
        if absent := [column for column in core if column not in row]:
            raise BadInput(f"{where(i)}: the column {absent[0]} is missing")
    return Raw(name, {column: [row.get(column) for row in rows] for column in names}, where)


READERS: dict[str, Callable[[Path], Raw]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".parquet": _read_parquet,
}
"""File suffix -> reader."""


# ---- columns -------------------------------------------------------------------------------------


def normalise(raw: Raw, task: str) -> dict[str, list[Any]]:
    """Returns the columns, those that mean something in their types.

    `good` and `contrast` are there where rows are compared; the other core columns always are.

    Args:
        raw: as it was read.
        task: what the rows are; only a diagnostic of the project has types for further columns.

    Raises:
        BadInput: a column is missing, has another type, or lacks a value in some row.
    """
    if not len(raw):
        raise BadInput(f"{raw.name} has no rows")
    columns = {name: list(column) for name, column in raw.columns.items() if _is_kept(raw, name)}
    for name in NEEDED_COLUMNS:
        if name not in columns:
            needed = " and ".join(NEEDED_COLUMNS)
            raise BadInput(f"{raw.name}: the column {name} is missing; every row needs {needed}")
    _refuse_half_a_contrast(raw.name, columns)
    columns.setdefault("id", [f"{task}-{row + 1}" for row in range(len(raw))])
    for name, default in DEFAULTS.items():
        columns.setdefault(name, [default] * len(raw))
    converters = {
        each.name: values.TYPES[each.type]
        for each in diagnostics.get(task).columns
        if each.type in values.TYPES
    } | dict(values.CORE)
    for name in set(converters).intersection(columns):
        columns[name] = _converted(name, columns[name], converters[name], raw.where)
    order = dict.fromkeys((*CORE_COLUMNS, *columns))
    return {name: columns[name] for name in order if name in columns}


def _is_kept(raw: Raw, name: str) -> bool:
    """Whether a column counts: not row names, nor a core column without any value."""
    empty = all(value is None or value == "" for value in raw.columns[name])
    if name == "" and not empty and name != next(iter(raw.columns)):
        raise BadInput(f"{raw.name}: a column has no name: name it in the header")
    optional = name in CORE_COLUMNS and name not in NEEDED_COLUMNS
    return not (name in ROW_NAMES or (empty and optional))


def _refuse_half_a_contrast(name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    for there, other in (("good", "contrast"), ("contrast", "good")):
        if there in columns and other not in columns:
            raise BadInput(
                f"{name}: there is a column {there} but no {other}: give both, or leave both out "
                "if no rows are compared"
            )


def _converted(
    name: str, column: Sequence[Any], convert: values.Convert, where: Where
) -> list[Any]:
    """The values of a column in its type, or an error that names the first bad row."""
    if set(map(type, column)) <= {values.KEPT.get(convert)}:
        return list(column)
    found = []
    for row, value in enumerate(column):
        try:
            found.append(convert(value))
        except ValueError as error:
            raise BadInput(f"{where(row)}: the column {name}: {error}") from error
        if found[-1] is None and name in CORE_COLUMNS:
            if name not in DEFAULTS:
                raise BadInput(f"{where(row)}: the column {name} is empty")
            found[-1] = DEFAULTS[name]
    return found
