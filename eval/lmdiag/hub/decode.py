"""Reading the Parquet files of a submission within bounds.

A Parquet file of a few kilobytes can stand for gigabytes: what is encoded as "the same again" is
small, and the sizes in its footer are whatever its writer says. So the footer is checked first, and
then the known columns alone are decoded, a few rows at a time, each batch being checked before the
next. A single row can still decode to any size; the limits of the process (`isolation`) end that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lmdiag.hub.refusal import Refused

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_LIST = 1000
"""Entries of one top list."""

MAX_STRING = 4000
"""Bytes of one text."""

MAX_ROW = 4000
"""Bytes of one row, encoded or decoded, averaged over a file."""

MAX_COLUMNS = 200
BATCH = 256
"""Rows that are decoded at a time."""

GROUP = 1000
"""A file may have one row group for so many rows, and a few more."""


def decode(content: bytes, name: str, schema: pa.Schema, rows: int) -> pa.Table:
    """Returns the columns of a schema from the bytes of a Parquet file.

    Args:
        content: the file.
        name: of the file, for messages.
        schema: the columns that are read, and their types.
        rows: that the benchmark has; the file may have twice as many, so that what is doubled can
            be named.

    Raises:
        Refused: not a Parquet file, columns missing or of another type, or too large in any way.
        MemoryError: a single batch takes more than the process may have.
    """
    import pyarrow as pa

    try:
        file = _open(content)
    except Exception:  # pyarrow raises what its decoders raise
        raise Refused([f"{name} is not a Parquet file"]) from None
    if problems := list(_footer_problems(content, name, file, schema, rows)):
        raise Refused(problems)
    try:
        batches = list(_batches(file, name, schema, rows))
        table = pa.Table.from_batches(batches) if batches else schema.empty_table()
        table = table.select(schema.names).cast(schema)
        table.validate(full=True)
    except pa.ArrowMemoryError as error:
        raise MemoryError(str(error)) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise Refused([f"{name} cannot be read: {reason}"]) from None
    return table


def _open(content: bytes) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        pa.BufferReader(content),
        pre_buffer=False,
        arrow_extensions_enabled=False,
        thrift_string_size_limit=1_000_000,
        thrift_container_size_limit=100_000,
        schema_depth_limit=8,
    )


def _footer_problems(
    content: bytes, name: str, file: pq.ParquetFile, schema: pa.Schema, rows: int
) -> Iterator[str]:
    """What the file says of itself: cheap to check, and not to be relied upon."""
    metadata, most = file.metadata, 2 * rows
    groups = [metadata.row_group(i) for i in range(min(metadata.num_row_groups, rows))]
    unpacked = sum(group.total_byte_size for group in groups)
    if metadata.num_rows > most or max(unpacked, len(content)) > MAX_ROW * most:
        yield f"{name} is larger than {MAX_ROW * most:,} bytes or {most:,} rows"
    if metadata.num_row_groups > 8 + most // GROUP:
        yield f"{name} has {metadata.num_row_groups:,} row groups"
    if metadata.num_columns > MAX_COLUMNS:
        yield f"{name} has {metadata.num_columns:,} columns"
        return
    yield from _column_problems(file.schema_arrow, name, schema)


def _column_problems(there: pa.Schema, name: str, schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        if there.names.count(field.name) != 1:
            yield f"{name} has no column {field.name}, or several"
        elif there.field(field.name).type != field.type:
            yield (
                f"{name}: column {field.name} is {there.field(field.name).type}, not {field.type}"
            )


def _batches(
    file: pq.ParquetFile, name: str, schema: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    """Yields the rows a few at a time, each batch checked."""
    seen = size = 0
    for batch in file.iter_batches(batch_size=BATCH, columns=schema.names, use_threads=False):
        seen, size = seen + batch.num_rows, size + batch.nbytes
        if seen > 2 * rows or size > MAX_ROW * 2 * rows:
            raise Refused([f"{name} decodes to more than {MAX_ROW * 2 * rows:,} bytes"])
        for column in batch.schema.names:
            _check_values(batch.column(column), f"{name}: column {column}")
        yield batch


def _check_values(values: Any, where: str) -> None:
    """Refuses lists and texts that are too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(values.type):
        if (pc.max(pc.list_value_length(values)).as_py() or 0) > MAX_LIST:
            raise Refused([f"{where} has a list of more than {MAX_LIST:,} entries"])
        values = values.flatten()
    if (
        pa.types.is_string(values.type)
        and (pc.max(pc.binary_length(values)).as_py() or 0) > MAX_STRING
    ):
        raise Refused([f"{where} has a text of more than {MAX_STRING:,} bytes"])
