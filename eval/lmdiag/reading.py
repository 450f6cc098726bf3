"""Reads files of any origin: text, JSON, YAML and Parquet, within fixed bounds.

All other modules read files through these functions. Whatever is wrong with a file (missing, a
directory, not UTF-8, cut off, nested too deeply, a number of a thousand digits) ends in one
`BadInput` that names the file, and never in another exception.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.text import truncated
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DOCUMENT = 64_000_000
"""Bytes of a JSON document that is read as a whole, e.g. results.json (a full run has 0.2 MB)."""

_MAX_YAML = 200_000
"""Characters of YAML: the parser is slow, and a data set card has a few thousand."""

_MAX_DEPTH = 64
"""Levels of nesting in JSON; what lmdiag writes has at most eight."""

_INT64 = range(-(2**63), 2**63)
_MAX_REASON = 100
"""Characters of a library's message that are repeated in an error."""


def user_path(text: str) -> Path:
    """Returns a path that a user typed, with `~` replaced if there is such a user."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 (Path's raises for an unknown user)


def exists(path: Path) -> bool:
    """Returns whether there is such a path; False for names that the system does not accept."""
    return os.path.exists(path)  # noqa: PTH110 (Path's raises for a name that is too long)


def is_folder(path: Path) -> bool:
    """Returns whether a path is a folder; False for names that the system does not accept."""
    return os.path.isdir(path)  # noqa: PTH112 (Path's raises for a name that is too long)


def is_file(path: Path) -> bool:
    """Returns whether a path is a regular file; False for names that the system does not accept."""
    return os.path.isfile(path)  # noqa: PTH113 (Path's raises for a name that is too long)


def real_path(path: Path) -> Path:
    """Returns the absolute path without links; the path itself if the system does not accept it."""
    try:
        return Path(os.path.realpath(path))  # Path.resolve raises for a loop of links
    except (OSError, ValueError):
        return path


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turns errors of the file system into `BadInput` that names the file.

    Raises:
        BadInput: the file cannot be opened or read.
    """
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeEncodeError:
        raise BadInput(f"{str(path)!r} is not a file name: it is not valid UTF-8") from None
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise BadInput(f"{str(path)!r} is not a file name: it has a NUL character") from None


def has_file(path: Path) -> bool:
    """Returns whether a path is a regular file, where `is_file` cannot say why it is not.

    Raises:
        BadInput: the folder may not be read, or the name is too long.
    """
    with readable(path):
        return path.is_file()


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Returns the content of a regular file.

    Args:
        path: of the file.
        limit: maximum size in bytes; None for any size.

    Raises:
        BadInput: it does not exist, is a directory or a device, is too large, or cannot be read.
    """
    with readable(path):
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise BadInput(f"{path} is not a regular file")
        if limit is not None and state.st_size > limit:
            raise BadInput(f"{path} has {state.st_size:,} bytes; at most {limit:,} are read")
        return path.read_bytes()


def read_text(path: Path, limit: int | None = None) -> str:
    """Returns a UTF-8 file as text, without a byte-order mark.

    Raises:
        BadInput: see `read_bytes`; also for bytes that are not UTF-8 (the line is named).
    """
    return decoded(read_bytes(path, limit), str(path))


def decoded(content: bytes, where: str) -> str:
    """Returns UTF-8 bytes as text, without a byte-order mark.

    Args:
        content: the bytes.
        where: names them in messages, e.g. "my.txt".

    Raises:
        BadInput: they are not UTF-8 (the line is named).
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{where}:{line}: not UTF-8 (byte {error.start}); save the file as UTF-8"
        ) from None


def short(reason: object) -> str:
    """Returns a library's message on one line of bounded length."""
    return truncated(" ".join(str(reason).split()), _MAX_REASON)


# ---- JSON and YAML -------------------------------------------------------------------------------


def parse_json(text: str | bytes, where: str, *, finite: bool = False) -> Any:
    """Returns the value of a JSON text.

    Args:
        text: as text, or as bytes in UTF-8.
        where: names the text in messages, e.g. "my.jsonl:3".
        finite: refuse NaN and Infinity, which are not JSON but which Python writes.

    Raises:
        BadInput: not JSON, nested deeper than `_MAX_DEPTH`, an integer beyond 64 bits, half of a
            surrogate pair, bytes that are not UTF-8.
    """
    hooks: dict[str, Any] = {"parse_int": _integer}
    if finite:
        hooks |= {"parse_constant": _refuse_constant, "parse_float": _finite}
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        value = json.loads(text, **hooks)
        if text.count("[") + text.count("{") > _MAX_DEPTH and _depth(value) > _MAX_DEPTH:
            raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos}"
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except UnicodeEncodeError:
        reason = "half of a surrogate pair"
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = str(error)
    else:
        return value
    raise BadInput(f"{where}: not valid JSON ({reason})")


def _integer(digits: str) -> int:
    if len(digits) > 20 or (value := int(digits)) not in _INT64:
        raise ValueError(f"the integer {digits[:20]}... does not fit into 64 bits")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _depth(value: Any) -> int:
    """Levels of lists and objects in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def read_json(path: Path) -> Any:
    """Returns the value in a JSON file of at most `MAX_DOCUMENT` bytes; see `parse_json`."""
    return parse_json(read_text(path, MAX_DOCUMENT), str(path), finite=True)


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("FILE:LINE", object) for each line that is not empty.

    Raises:
        BadInput: the file cannot be read, or a line is not a JSON object.
    """
    with readable(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                where = f"{path}:{number}"
                value = parse_json(line, where)
                if not isinstance(value, dict):
                    raise BadInput(f"{where}: expected one JSON object per line")
                yield where, value


def a_mapping(value: Any, where: str) -> Mapping[str, Any]:
    """Returns a JSON or YAML value that must be an object.

    Raises:
        BadInput: it is something else.
    """
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected an object, not {type(value).__name__}")
    return value


def parse_yaml(text: str, where: str) -> Any:
    """Returns the value of a YAML text, read with the safe loader.

    Raises:
        BadInput: not YAML, too long, impossible dates, numbers with too many digits.
    """
    import yaml

    if len(text) > _MAX_YAML:
        raise BadInput(f"{where}: {len(text):,} characters of YAML; at most {_MAX_YAML:,} are read")
    line = ""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or "a character that YAML does not allow"
    except RecursionError:
        reason = "nested too deeply"
    except Exception as error:  # the constructors of the loader check no dates, numbers or keys
        reason = str(error)
    raise BadInput(f"{where}: not valid YAML{line} ({short(reason)})")


# ---- Parquet -------------------------------------------------------------------------------------


def parquet_names(path: Path) -> list[str]:
    """Returns the column names of a Parquet file, in order.

    Raises:
        BadInput: the file is missing or damaged, or names a column twice.
    """
    import pyarrow.parquet as pq

    with readable(path):
        if not path.is_file():
            why = "is not a regular file" if path.exists() else "does not exist"
            raise BadInput(f"{path} {why}")
    with _valid_parquet(path):
        names = list(pq.read_schema(path).names)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"{path} has the column {twice[0]} twice: rename one of them")
    return names


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, schema: pa.Schema | None = None
) -> pa.Table:
    """Returns a Parquet file as a table in which every value can become a Python object.

    Args:
        path: of the file.
        columns: to read; None for all of them.
        schema: types to cast to; its columns are read, in its order.

    Raises:
        BadInput: the file is missing or damaged, lacks a column, has text that is not UTF-8,
            dates or time zones that do not exist, or columns of other types than the schema's.
    """
    import pyarrow.parquet as pq

    names = parquet_names(path)
    wanted = names if columns is None else columns
    wanted = list(wanted if schema is None else schema.names)
    if missing := [name for name in wanted if name not in names]:
        raise BadInput(f"{path} has no column {missing[0]}")
    with _valid_parquet(path):
        with pq.ParquetFile(path) as file:  # pq.read_table would import pandas
            table = file.read(columns=wanted).select(wanted)
        if schema is not None:
            table = table.cast(schema)
        table.validate(full=True)
        for name, column in zip(table.column_names, table.columns, strict=True):
            _check_values(name, column)
    return table


@contextmanager
def _valid_parquet(path: Path) -> Iterator[None]:
    """Turns what Arrow raises on a damaged file into `BadInput` that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OverflowError, ValueError, KeyError,
            MemoryError) as error:  # fmt: skip
        raise BadInput(f"{path} cannot be read: not valid Parquet ({short(error)})") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {short(error.strerror or error)}") from None


def _check_values(name: str, column: pa.ChunkedArray) -> None:
    """Converts values of types that `validate` accepts although Python may not represent them."""
    if not _is_plain(column.type):
        try:
            json.dumps(column.to_pylist(), default=str)
        except Exception as error:  # time zones, dates and extension types raise many errors
            raise ValueError(f"column {name} of type {column.type}: {error}") from None


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Python can represent all values of a type."""
    from pyarrow import types

    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    plain = (
        types.is_string, types.is_large_string, types.is_boolean, types.is_integer,
        types.is_floating, types.is_null,
    )  # fmt: skip
    return any(is_kind(kind) for is_kind in plain)
