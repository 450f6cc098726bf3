"""Reads text files line by line, so that whatever is wrong can be said with file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


class BadSource(Exception):
    """A source cannot be used. The message is one line that names the thing and what to do."""


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, text without its line end), leaving out empty lines.

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
                    yield number, line
    except OSError as error:
        raise BadSource(f"{path}: cannot be read ({error.strerror})") from error


def tsv_rows(
    path: Path, columns: Sequence[str], *, header: bool = True
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields ("FILE:LINE", {column: text}) of a tab-separated file without quoting.

    Blanks around a field are dropped: ROLE-88's contexts end in one.

    Args:
        path: the file.
        columns: names of all columns, in order.
        header: whether the first line must hold exactly these names.

    Raises:
        BadSource: another header, another number of fields, or an empty field.
    """
    lines = numbered_lines(path)
    if header:
        number, line = next(lines, (1, ""))
        if line.split("\t") != list(columns):
            names = ", ".join(columns)
            raise BadSource(f"{path}:{number}: the header must name the columns {names}")
    for number, line in lines:
        fields = [field.strip(" ") for field in line.split("\t")]
        if len(fields) != len(columns):
            raise BadSource(
                f"{path}:{number}: {len(fields)} tab-separated fields where {len(columns)} are due"
            )
        row = dict(zip(columns, fields, strict=True))
        for column, field in row.items():
            if not field:
                raise BadSource(f"{path}:{number}: the column {column} is empty")
        yield f"{path}:{number}", row


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number from 1, object) of a file of JSON objects, one a line.

    Raises:
        BadSource: a line is not a JSON object.
    """
    for number, line in numbered_lines(path):
        try:
            row = json.loads(line)
            if "\\u" in line:  # half of a surrogate pair is no text
                json.dumps(row, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            message = f"{path}:{number}: not JSON ({error.msg}, column {error.colno})"
            raise BadSource(message) from error
        except (ValueError, RecursionError) as error:
            raise BadSource(f"{path}:{number}: not JSON ({str(error)[:100]})") from error
        if not isinstance(row, dict):
            raise BadSource(f"{path}:{number}: a JSON object is due, not {line[:40]}")
        yield number, row


def decimal(where: str, row: dict[str, str], column: str) -> float:
    """The number in a column, as the double nearest to the source's decimals.

    Raises:
        BadSource: the field is no number in [0, 1]; the sources have proportions only.
    """
    try:
        value = float(row[column])
    except ValueError as error:
        raise BadSource(f"{where}: {column} is no number: {row[column]!r}") from error
    if not 0 <= value <= 1:
        raise BadSource(f"{where}: {column} is no proportion: {row[column]!r}")
    return value


def choice(where: str, row: dict[str, str], column: str, meanings: dict[str, Any]) -> Any:
    """What the code in a column means.

    Raises:
        BadSource: the code is none of the known ones.
    """
    if row[column] not in meanings:
        known = ", ".join(meanings)
        raise BadSource(f"{where}: {column} must be one of {known}, not {row[column]!r}")
    return meanings[row[column]]


class Unique:
    """Refuses an id that comes twice."""

    def __init__(self) -> None:
        """Starts with no ids."""
        self._first: dict[str, str] = {}

    def add(self, where: str, identifier: str) -> None:
        """Notes an id and where it stands.

        Raises:
            BadSource: it was there before.
        """
        first = self._first.setdefault(identifier, where)
        if first != where:
            raise BadSource(f"{where}: the item {identifier} was there before, at {first}")
