"""Reads the lines of source files, so that every error names file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmdiag.files.reading import read_text
from lmdiag.types import BadInput

Fields = dict[str, str]
"""The fields of a line of a source file: column -> text."""

Row = dict[str, Any]
"""A row of the data set: column -> value."""


def separated_lines(
    path: Path,
    columns: Sequence[str],
    separator: str = "\t",
    *,
    key: Sequence[str] = ("item",),
    header: bool = True,
) -> Iterator[tuple[str, Fields]]:
    """Yields ("FILE:LINE", {column: text}) of a file without quoting; empty lines are skipped.

    Spaces around a field are removed: ROLE-88's contexts end in one.

    Args:
        path: the file.
        columns: names of all columns, in order.
        separator: between the fields of a line.
        key: columns whose values together must differ from line to line.
        header: whether the first line must consist of exactly these names.
    """
    seen: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        fields = [field.strip(" ") for field in line.rstrip("\r").split(separator)]
        if header and number == 1:
            if fields != list(columns):
                raise BadInput(f"{path}:1: the header must name the columns {', '.join(columns)}")
        elif line.rstrip("\r"):
            if len(fields) != len(columns):
                raise BadInput(f"{path}:{number}: {len(fields)} fields, expected {len(columns)}")
            if "" in fields:
                empty = columns[fields.index("")]
                raise BadInput(f"{path}:{number}: the column {empty} is empty")
            row = dict(zip(columns, fields, strict=True))
            identifier = ",".join(row[name] for name in key)
            if (first := seen.setdefault(identifier, number)) != number:
                raise BadInput(
                    f"{path}:{number}: the item {identifier} is repeated, first in line {first}"
                )
            yield f"{path}:{number}", row


def proportion(where: str, line: Fields, column: str) -> float:
    """Returns the number from 0 to 1 in a column: the double nearest to the source's decimals."""
    try:
        value = float(line[column])
    except ValueError as error:
        raise BadInput(f"{where}: {column} is not a number: {line[column]!r}") from error
    if not 0 <= value <= 1:
        raise BadInput(f"{where}: {column} is not a proportion: {line[column]!r}")
    return value


def choice(where: str, line: Mapping[str, Any], column: str, meanings: Mapping[Any, Any]) -> Any:
    """Returns what the code in a column means."""
    code = line.get(column)
    if code not in list(meanings):  # a list, as a code of JSON may be anything
        known = ", ".join(map(str, meanings))
        raise BadInput(f"{where}: {column} must be one of {known}, not {code!r}")
    return meanings[code]
