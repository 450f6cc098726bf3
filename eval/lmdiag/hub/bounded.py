"""Reads the files of a submission within bounds: anyone may have written them.

Each file is read once; what is verified, shown and uploaded comes from these bytes. A Parquet file
of a few kilobytes can stand for gigabytes: repeated values are stored once, and the sizes in its
footer are what its writer claims. So the footer is checked first. Then only the known columns are
decoded, a few rows at a time, and each batch is checked before the next. A single row can still
decode to any size; the limits of the process (`isolation`) end that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.hub.names import DTYPES, QUANTIZATIONS
from lmdiag.reading import parse_json, read_bytes
from lmdiag.results import EW_AND_MW, PREDICTIONS, RESULTS, Device, Results
from lmdiag.text import all_visible, shortened, visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_REASONS = 10
"""Reasons that are listed for one submission."""

MAX_BYTES = {RESULTS: 5_000_000, PREDICTIONS: 256_000_000, EW_AND_MW: 256_000_000}
"""File -> the bytes that it may have; a full run has a tenth of that."""

_MAX_TEXT = 300
"""Characters of a text in results.json."""
_MAX_ITEMS = 50
"""Entries of a list in results.json."""
_MAX_COUNT = 2**53
"""Of parameters: a JavaScript number is exact up to here."""

_MAX_LIST = 1000
"""Entries of a list of top words."""
_MAX_STRING = 4000
"""Bytes of a text in a Parquet file."""
_MAX_ROW = 4000
"""Bytes of a row, encoded or decoded, on average over a file."""
_MAX_COLUMNS = 200
_BATCH_ROWS = 256
"""Rows that are decoded at a time."""
_GROUP_ROWS = 1000
"""A file may have one row group for so many rows, and 8 more."""


class Refused(BadInput):
    """A submission cannot be accepted.

    Attributes:
        reasons: each one line of at most 300 visible characters; at most `MAX_REASONS`.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(map(shortened, islice(reasons, MAX_REASONS)))
        super().__init__("; ".join(self.reasons))


def refuse(reasons: Iterable[str]) -> None:
    """Raises `Refused` if there are any reasons."""
    if listed := list(reasons):
        raise Refused(listed)


def read_files(folder: Path) -> dict[str, bytes]:
    """Returns file name -> bytes of a run directory; `agreement.parquet` may be missing.

    Raises:
        Refused: a file is missing, too large, or not a regular file.
    """
    names = [name for name in MAX_BYTES if name != EW_AND_MW or (folder / name).exists()]
    try:
        return {name: read_bytes(folder / name, MAX_BYTES[name]) for name in names}
    except BadInput as error:
        # Where the submission lies on this machine is left out of a reason that is published.
        raise Refused([str(error).replace(f"{folder}/", "")]) from None


# ---- results.json -------------------------------------------------------------------------------


def parse_results(content: bytes) -> Results:
    """Returns what a submission says of itself, with every text made visible.

    Facts that nobody can check and nothing needs are left out: device, versions, durations, files,
    and the name that the submitter gave to the model.

    Raises:
        Refused: not strict JSON, nested too deeply, of another version, a value that is missing,
            of the wrong type or too large.
    """
    try:
        results = Results.from_json(parse_json(content, RESULTS, finite=True), RESULTS)
    except BadInput as error:
        raise Refused([str(error)]) from None
    refuse(f"{RESULTS}: {complaint}" for complaint in _complaints(results))
    facts: dict[str, Any] = all_visible(asdict(results.model))
    facts |= dict.fromkeys(("max_length", "training_step", "attention", "name")) | {"bos": False}
    return replace(
        results,
        model=replace(results.model, **facts),
        finished=visible(results.finished),
        device=Device("", 0),
        n_contexts=0,
        identity={},
        versions={},
        seconds={},
        files={},
    )


def _complaints(results: Results) -> Iterator[str]:
    model = results.model
    if model.server is not None:
        yield (
            "the model was asked through a server, and no commit of it is known: run it by its Hub "
            "id, without --server"
        )
        return
    for where, record in (("model", model), ("protocol", results.protocol), ("data", results.data)):
        yield from _too_large(where, asdict(record))
    for name, known in (("dtype", DTYPES), ("quantization", QUANTIZATIONS)):
        if getattr(model, name) not in known:
            yield f"model.{name} must be one of {', '.join(map(str, known))}"
    for name in ("vocab_size", "n_parameters"):
        if not 0 <= getattr(model, name) < _MAX_COUNT:
            yield f"model.{name} must be between 0 and 2**53"


def _too_large(where: str, record: dict[str, Any]) -> Iterator[str]:
    for name, value in record.items():
        values = value if isinstance(value, list | tuple) else [value]
        if len(values) > _MAX_ITEMS:
            yield f"{where}.{name} has more than {_MAX_ITEMS} entries"
        if any(isinstance(text, str) and len(text) > _MAX_TEXT for text in values):
            yield f"{where}.{name} has more than {_MAX_TEXT} characters"


# ---- Parquet ------------------------------------------------------------------------------------


def decode(content: bytes, name: str, schema: pa.Schema, rows: int) -> pa.Table:
    """Returns the columns of a schema from the bytes of a Parquet file.

    Args:
        content: the file.
        name: of the file, for messages.
        schema: the columns to read, and their types.
        rows: of the benchmark; the file may have twice as many, so that doubled rows can be named.

    Raises:
        Refused: not a Parquet file, columns missing or of another type, or too large in any way.
        MemoryError: a single batch takes more than the process may have.
    """
    import pyarrow as pa

    file, most = _opened(content, name), 2 * rows
    refuse(f"{name} {problem}" for problem in _footer_problems(file, schema, len(content), most))
    try:
        batches = list(_batches(file, name, schema, most))
        table = pa.Table.from_batches(batches) if batches else schema.empty_table()
        table = table.select(schema.names).cast(schema)
        table.validate(full=True)
    except pa.ArrowMemoryError as error:
        raise MemoryError(str(error)) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise Refused([f"{name} cannot be read: {reason}"]) from None
    return table


def _opened(content: bytes, name: str) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(
            pa.BufferReader(content),
            pre_buffer=False,
            arrow_extensions_enabled=False,
            thrift_string_size_limit=1_000_000,
            thrift_container_size_limit=100_000,
            schema_depth_limit=8,
        )
    except Exception:  # pyarrow raises what its decoders raise
        raise Refused([f"{name} is not a Parquet file"]) from None


def _footer_problems(
    file: pq.ParquetFile, schema: pa.Schema, size: int, most: int
) -> Iterator[str]:
    """Yields problems with what the file says of itself: cheap to check, and only a claim."""
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(min(metadata.num_row_groups, most))]
    unpacked = sum(group.total_byte_size for group in groups)
    if metadata.num_rows > most or max(unpacked, size) > _MAX_ROW * most:
        yield f"is larger than {_MAX_ROW * most:,} bytes or {most:,} rows"
    if metadata.num_row_groups > 8 + most // _GROUP_ROWS:
        yield f"has {metadata.num_row_groups:,} row groups"
    if metadata.num_columns > _MAX_COLUMNS:
        yield f"has {metadata.num_columns:,} columns"
        return
    for field in schema:
        columns = [column for column in file.schema_arrow if column.name == field.name]
        if len(columns) != 1:
            yield f"has {len(columns) or 'no'} columns {field.name}, expected one"
        elif columns[0].type != field.type:
            yield f"has a column {field.name} of type {columns[0].type}, expected {field.type}"


def _batches(
    file: pq.ParquetFile, name: str, schema: pa.Schema, most: int
) -> Iterator[pa.RecordBatch]:
    """Yields at most so many rows, a few at a time, each batch checked."""
    seen = size = 0
    for batch in file.iter_batches(_BATCH_ROWS, columns=schema.names, use_threads=False):
        seen, size = seen + batch.num_rows, size + batch.nbytes
        if seen > most or size > _MAX_ROW * most:
            raise Refused([f"{name} decodes to more than {_MAX_ROW * most:,} bytes"])
        for column in batch.schema.names:
            if problem := _value_problem(batch.column(column)):
                raise Refused([f"{name}: column {column} has {problem}"])
        yield batch


def _value_problem(values: Any) -> str | None:
    """Names a list or a text that is too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(values.type):
        if (pc.max(pc.list_value_length(values)).as_py() or 0) > _MAX_LIST:
            return f"a list of more than {_MAX_LIST:,} entries"
        values = values.flatten()
    is_text = pa.types.is_string(values.type)
    if is_text and (pc.max(pc.binary_length(values)).as_py() or 0) > _MAX_STRING:
        return f"a text of more than {_MAX_STRING:,} bytes"
    return None
