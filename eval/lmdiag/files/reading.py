"""Reads files of any origin within fixed bounds.

Whatever is wrong with a file (missing, a directory, not UTF-8, cut off, nested too deeply, a number
of a thousand digits) ends in one `BadInput` that names the file, and never in another exception.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.text import closest, shortened, truncated
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_DOCUMENT = 64_000_000
"""Bytes of a JSON document that is read as a whole, e.g. results.json (a full run has 0.2 MB)."""

MAX_COLUMNS, MAX_ROWS, MAX_CELL = 1_000, 5_000_000, 2**20
"""Of a table that users bring; a cell has at most so many characters."""

MAX_TABLE = 2**31
"""Bytes of a table in a text file, and of one from Parquet in memory."""

MAX_INDEX = 8 * 2**20
"""Bytes of the configuration of a model, of an index of its weights and of their header."""

MAX_YAML = 200_000
"""Characters of a YAML text: the parser is slow, and a data set card has a few thousand."""

exists, is_file, is_folder = os.path.exists, os.path.isfile, os.path.isdir
"""For paths of users: False for names that the system does not accept, where `Path`'s may raise."""


def user_path(text: str) -> Path:
    """Returns a path that a user typed, with `~` replaced if there is such a user."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 (Path's raises for an unknown user)


def real_path(path: Path) -> Path:
    """Returns the absolute path without links; the path itself if the system does not accept it."""
    with suppress(OSError, ValueError):
        path = Path(os.path.realpath(path))  # Path.resolve raises for a loop of links
    return path


def resource_path(*parts: str) -> Path:
    """Returns the path of a file that is not Python, e.g. `resource_path("cards", "base.css")`.

    The build puts `cards/`, `metrics/` and `datasets/` into the package (setup.cfg, `package_dir`);
    in a clone they are in its root. `BadInput` if there is no such file.
    """
    from importlib.resources import files

    package = Path(str(files("lmdiag")))
    root = package if is_folder(package / "cards") else package.parents[1]
    path = root.joinpath(*parts)
    if not path.exists():
        problem = f"{'/'.join(parts)} is missing from this installation (looked in {root})"
        raise BadInput(f"{problem}: install lmdiag again, or run `make setup` in a clone")
    return path


def near_path(path: Path) -> str:
    """Returns ` (did you mean 'x'?)` for a path that does not exist; "" if no name is close.

    Of results/gpt2/run, if there is no folder results/gpt2, the name "gpt2" is compared with the
    names in results. Close is a similar name, as "gpt", or else the only name that contains it, as
    "openai-community--gpt2".
    """
    # the path itself comes first, its outermost folder last
    missing_parts = [part for part in (path, *path.parents) if not os.path.lexists(part)]
    if not missing_parts:
        return ""
    outermost = missing_parts[-1]
    try:
        names = [entry.name for entry in outermost.parent.iterdir()]
    except OSError:  # a folder that may not be read, or a file
        return ""
    close_name = closest(outermost.name, names)
    containing = [name for name in names if outermost.name.lower() in name.lower()]
    if not close_name and len(containing) == 1:
        close_name = containing[0]
    return f" (did you mean {str(outermost.with_name(close_name))!r}?)" if close_name else ""


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turns errors of the file system in the block into `BadInput` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise BadInput(f"there is no file or folder {path}{near_path(path)}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # of the name of the file, or of what the block does
        if "null" in str(error):  # "embedded null byte"
            reason = "has a NUL character"
        elif isinstance(error, UnicodeEncodeError):
            reason = "is not valid UTF-8"
        else:
            raise
        raise BadInput(f"{str(path)!r} is not a file name: it {reason}") from None


def has_file(path: Path) -> bool:
    """Returns whether a path is a regular file; `BadInput` if the system cannot say."""
    with readable(path):
        return path.is_file()


def check_file(path: Path, limit: int | None = None) -> None:
    """Refuses what is not a regular file, or has more bytes than the limit.

    Folders, devices and named pipes are refused: reading may wait or go on forever.
    """
    with readable(path):
        size = path.stat().st_size
        if not path.is_file():
            raise BadInput(f"{path} is not a regular file")
        if limit is not None and size > limit:
            raise BadInput(f"{path} has {size:,} bytes; at most {limit:,} are read")


@contextmanager
def opened(path: Path, limit: int | None = None) -> Iterator[BufferedReader]:
    """Opens a file of a user to read its bytes; `BadInput` if it is larger than `limit`, in bytes.

    Every file that a user names is opened here, but for Parquet (`read_parquet`). See `check_file`.
    """
    check_file(path, limit)
    with readable(path), path.open("rb") as file:
        yield file


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Returns the content of a file of at most `limit` bytes; `BadInput` if it cannot be read."""
    with opened(path, limit) as file:
        return file.read()


def read_text(path: Path, limit: int = MAX_TABLE) -> str:
    """Returns the text of a file of at most `limit` bytes, in UTF-8 or UTF-16; see `decoded`."""
    return decoded(read_bytes(path, limit), str(path))


def encoding_of(content: bytes) -> str:
    """Returns the encoding of a text from its first bytes: UTF-16 with a byte-order mark, UTF-8."""
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if is_utf_16 else "utf-8-sig"


def decoded(content: bytes, where: str) -> str:
    """Returns bytes as text: UTF-8, or UTF-16 with a byte-order mark.

    `BadInput` for other bytes names the line; `where` is the name of the file in it.
    """
    try:
        return content.decode(encoding_of(content)).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"{where}:{line}: not UTF-8 (byte {error.start})"
        raise BadInput(f"{problem}; save the file as UTF-8 (in Excel: CSV UTF-8)") from None


def check_size(where: object, n_columns: int, n_rows: int) -> None:
    """Refuses a table with more than `MAX_COLUMNS` or `MAX_ROWS`; `where` names it."""
    limits = ((n_columns, MAX_COLUMNS, "columns"), (n_rows, MAX_ROWS, "rows"))
    for n, most, noun in limits:
        if n > most:
            raise BadInput(f"{where} has {n:,} {noun}; at most {most:,} are read: split the table")


def parse_json(text: str | bytes, where: str, *, finite: bool = False) -> Any:
    """Returns the value of a JSON text, which messages call `where`, e.g. "my.jsonl:3".

    `BadInput` for what is not JSON, nested deeper than about 200 levels, an integer beyond 64 bits,
    half of a surrogate pair, bytes that are not UTF-8, and, if it has to be `finite`, for NaN and
    infinite numbers, which are not JSON but which Python writes.
    """
    from pydantic_core import from_json

    content = text if isinstance(text, bytes) else text.encode()
    try:
        document = from_json(content.removeprefix(codecs.BOM_UTF8), allow_inf_nan=not finite)
        values = [document]
        for value in values:  # to which the loop adds the values within a value
            if isinstance(value, dict):
                values += value.values()
            elif isinstance(value, list):
                values += value
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                number = truncated(str(value), 20)
                raise ValueError(f"the integer {number} does not fit into 64 bits")
            elif finite and isinstance(value, float) and math.isinf(value):
                raise ValueError("a number is too large")
    except ValueError as error:
        raise BadInput(f"{where}: not valid JSON ({error})") from None
    return document


def read_json(path: Path, most: int = MAX_DOCUMENT) -> Any:
    """Returns the value in a JSON file of at most so many bytes; its numbers are finite."""
    return parse_json(read_text(path, most), str(path), finite=True)


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("FILE:LINE", object) for each line that is not empty; `BadInput` for another line."""
    with opened(path, MAX_TABLE) as file:
        lines = iter(lambda: file.readline(MAX_DOCUMENT + 1), b"")  # b"" is the end of the file
        for number, line in enumerate(lines, start=1):
            where = f"{path}:{number}"
            if len(line) > MAX_DOCUMENT:
                raise BadInput(f"{where}: the line has more than {MAX_DOCUMENT:,} bytes")
            check_size(path, 0, number)
            if not line.strip():
                continue
            value = parse_json(line, where)
            if not isinstance(value, dict):
                raise BadInput(f"{where}: expected one JSON object per line")
            # `_repeated_key` takes long: not for a line with no more keys than its object has
            may_repeat_key = line.count(b'":') > len(value)
            key = _repeated_key(line) if may_repeat_key else ""
            if key:
                raise BadInput(f"{where}: the key {key!r:.60} is there twice: rename one")
            yield where, value


def json_layout(path: Path) -> Literal["list", "lines", ""]:
    """Returns how a JSON file stores the rows of a table, judged by its beginning.

    "list" is one list of objects, "lines" an object in each of several lines, and "" anything else.
    """
    with opened(path) as file:
        start = file.read(1_000).removeprefix(codecs.BOM_UTF8).lstrip()
        if re.match(rb"\[\s*\{", start):
            return "list"
        file.seek(0)
        first_line = file.readline(MAX_DOCUMENT).strip()
        is_object = start.startswith(b"{") and first_line.endswith(b"}")
        has_second_line = bool(file.read(1_000).strip())
        return "lines" if is_object and has_second_line else ""


def read_json_list(path: Path) -> list[dict[str, Any]]:
    """Returns the objects in the list of a JSON file; `BadInput` if there is anything else."""
    content = read_bytes(path, MAX_DOCUMENT)
    rows = parse_json(content, str(path))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{path}: expected a list of objects, one for each row")
    key = _repeated_key(content)
    if key:
        raise BadInput(f"{path}: the key {key!r:.60} is there twice: rename one")
    return rows


def _repeated_key(content: bytes) -> str:
    """Returns the first key that an object of a JSON text has twice; "" if there is none.

    A parser would keep the last value of such a key, and lose the others without a message.

    >>> _repeated_key(b'{"a": 1, "b": 2, "a": 3}')
    'a'
    """
    repeated_keys: list[str] = []

    def note_repeated(pairs: list[tuple[str, Any]]) -> None:
        """Notes the keys that an object has twice; inner objects come before outer ones."""
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                repeated_keys.append(key)
            seen.add(key)

    json.loads(content.removeprefix(codecs.BOM_UTF8), object_pairs_hook=note_repeated)
    return repeated_keys[0] if repeated_keys else ""


def parse_yaml(text: str, where: str) -> Any:
    """Returns the value of a YAML text; `BadInput` if it is not YAML, or has impossible values."""
    import yaml

    if len(text) > MAX_YAML:
        raise BadInput(f"{where}: {len(text):,} characters of YAML; at most {MAX_YAML:,} are read")
    try:
        return yaml.safe_load(text)  # libyaml's faster loader crashes where text is nested deeply
    except Exception as error:  # the constructors of the loader check no dates, numbers or keys
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        reason = shortened(getattr(error, "problem", None) or error)
        raise BadInput(f"{where}: not valid YAML{line} ({reason})") from None


def read_parquet(path: Path, columns: Container[str] | None = None) -> pa.Table:
    """Returns a Parquet file as a table in which every value can become a Python object.

    Args:
        path: of the file.
        columns: those that are read, of those that are in the file; None for all.

    Raises:
        BadInput: the file is missing or damaged, names a column twice, has values that Python
            cannot represent (text, dates, time zones), or that would take too much memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path)
    try:
        # pq.read_table would import pandas
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            check_size(path, len(file.schema), file.metadata.num_rows)
            repeated_names = [name for name in names if names.count(name) > 1]
            if repeated_names:
                name = repeated_names[0]
                raise BadInput(f"{path} has the column {name} twice: rename one of them")
            _check_parquet_size(path, file)
            names_read = [name for name in names if columns is None or name in columns]
            table = file.read(columns=names_read).select(names_read)
        table.validate(full=True)
        for name, column in zip(table.column_names, table.columns, strict=True):
            # `validate` accepts values of these types that Python cannot represent
            if re.search("time|date|duration|interval|extension", str(column.type)):
                try:  # `to_pylist` makes each value a Python object, `dumps` its text
                    json.dumps(column.to_pylist(), default=str)
                except Exception as error:
                    raise ValueError(f"column {name} of type {column.type}: {error}") from None
    except (pa.ArrowException, ValueError, OverflowError, KeyError, MemoryError) as error:
        if "Resource temporarily unavailable" in str(error):  # no memory for another thread
            raise MemoryError from None
        raise BadInput(f"{path} cannot be read: not valid Parquet ({shortened(error)})") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {shortened(error.strerror or error)}") from None
    return table


def _check_parquet_size(path: Path, file: pq.ParquetFile) -> None:
    """Refuses a file whose values would take too much memory: a few kB may hold 5 TB of text."""
    file.scan_contents()  # raises where `RowGroupMetaData.column` would end the process
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    size = 0
    for number in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(number)
        for i, column in enumerate(columns):
            chunk = row_group.column(i)
            # a repeated value may be stored once; in memory each has 8 bytes or its fixed length
            least_size = chunk.num_values * max(8, column.length)
            size += max(chunk.total_uncompressed_size, least_size)
    if size <= MAX_TABLE:
        text_columns = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        size += _size_of_texts(path, text_columns)
    if size > MAX_TABLE:
        raise BadInput(f"{path} has values of more than {MAX_TABLE >> 30} GiB: split the table")


def _size_of_texts(path: Path, columns: list[str]) -> int:
    """Returns the bytes of the texts in columns of a Parquet file, repeated ones each time.

    Only the distinct texts are read. `BadInput` for a text of more than `MAX_CELL` bytes.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    size = 0
    with pq.ParquetFile(path, read_dictionary=columns) as file:
        for column in columns:
            for values in file.read(columns=[column]).column(0).chunks:
                # Lists and structs are opened until the texts within them are reached: `flatten`
                # gives an array for a list, and a list of arrays for a struct, of which one field
                # was read.
                while hasattr(values, "flatten") and not hasattr(values, "dictionary"):
                    values = values.flatten()
                    values = values[0] if isinstance(values, list) else values
                if not hasattr(values, "dictionary"):
                    continue
                lengths = pc.binary_length(values.dictionary)  # of the distinct texts
                longest = pc.max(lengths).as_py() or 0
                if longest > MAX_CELL:
                    problem = f"{longest:,} bytes; at most {MAX_CELL:,} are read"
                    raise BadInput(f"{path}: a text in the column {column} has {problem}")
                size += pc.sum(lengths.take(values.indices)).as_py() or 0
    return size
