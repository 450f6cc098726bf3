"""Reads text files line by line, so that every error names file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Fields = dict[str, str]
"""The fields of a line of a source file: column -> text."""

Row = dict[str, Any]
"""A row of the data set: column -> value."""


class BadSource(Exception):
    """A source cannot be used. The message is one line that names the thing and the remedy."""


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yields ("FILE:LINE", text without its line end), skipping empty lines.

    Raises:
        BadSource: the file cannot be read, or a line is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    line = raw.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise BadSource(f"{path}:{number}: not UTF-8 ({error.reason})") from error
                if line:
                    yield f"{path}:{number}", line
    except OSError as error:
        raise BadSource(f"{path}: cannot be read ({error.strerror})") from error


def tsv_lines(
    path: Path, columns: Sequence[str], *, header: bool = True
) -> Iterator[tuple[str, Fields]]:
    """Yields ("FILE:LINE", {column: text}) of a tab-separated file without quoting.

    Spaces around a field are removed: ROLE-88's contexts end in one.

    Args:
        path: the file.
        columns: names of all columns, in order.
        header: whether the first line must consist of exactly these names.

    Raises:
        BadSource: another header, another number of fields, or an empty field.
    """
    lines = numbered_lines(path)
    if header and next(lines, ("", ""))[1].split("\t") != list(columns):
        raise BadSource(f"{path}:1: the header must name the columns {', '.join(columns)}")
    for where, line in lines:
        fields = [field.strip(" ") for field in line.split("\t")]
        if len(fields) != len(columns):
            raise BadSource(f"{where}: {len(fields)} tab-separated fields, expected {len(columns)}")
        if "" in fields:
            raise BadSource(f"{where}: the column {columns[fields.index('')]} is empty")
        yield where, dict(zip(columns, fields, strict=True))


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("FILE:LINE", object) of a file with one JSON object per line.

    Raises:
        BadSource: a line is not a JSON object.
    """
    for where, line in numbered_lines(path):
        try:
            value = json.loads(line)
            if "\\u" in line:  # half of a surrogate pair is not text
                json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise BadSource(f"{where}: not JSON ({str(error)[:100]})") from error
        if not isinstance(value, dict):
            raise BadSource(f"{where}: expected a JSON object, not {line[:40]}")
        yield where, value


def proportion(where: str, line: Fields, column: str) -> float:
    """The number in a column, as the double nearest to the source's decimals.

    Raises:
        BadSource: the field is not a number in [0, 1].
    """
    try:
        value = float(line[column])
    except ValueError as error:
        raise BadSource(f"{where}: {column} is not a number: {line[column]!r}") from error
    if not 0 <= value <= 1:
        raise BadSource(f"{where}: {column} is not a proportion: {line[column]!r}")
    return value


def choice(where: str, line: Fields, column: str, meanings: dict[str, Any]) -> Any:
    """What the code in a column means.

    Raises:
        BadSource: an unknown code.
    """
    if line[column] not in meanings:
        known = ", ".join(meanings)
        raise BadSource(f"{where}: {column} must be one of {known}, not {line[column]!r}")
    return meanings[line[column]]


def refuse_repeated(seen: dict[str, str], where: str, identifier: str) -> None:
    """Adds an id and its place to those seen.

    Raises:
        BadSource: it was seen before.
    """
    first = seen.setdefault(identifier, where)
    if first != where:
        raise BadSource(f"{where}: the item {identifier} is repeated, first at {first}")
