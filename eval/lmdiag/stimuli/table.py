"""Tables as they were read, before values are converted and checked; tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmdiag.types import BadInput

MEMORY = "rows"
"""What a table in memory is called in messages, and its task by default."""


@dataclass(frozen=True)
class RawTable:
    """Rows as they were read, before their values are converted and checked.

    Attributes:
        name: of the file or data set.
        columns: column -> plain Python values, one per row.
        where: row number from 0 -> what to call it in a message, for example "my.csv:3".
        form: of rows that were made from other data; see `lmdiag.stimuli.Stimuli`.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    where: Callable[[int], str]
    form: str = ""

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def error(self, row: int, message: str) -> BadInput:
        """Returns the error that a row is wrong."""
        return BadInput(f"{self.where(row)}: {message}")


def concatenate(parts: Sequence[RawTable]) -> RawTable:
    """Returns the rows of several files as one table, in order.

    Files of minimal pairs may differ in columns, as those of BLiMP do.

    Raises:
        BadInput: their forms or columns differ.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    names = dict.fromkeys(name for part in parts for name in part.columns)
    for part in parts:
        if part.form != first.form:
            raise BadInput(f"{first.name} and {part.name} have different forms: keep them apart")
        if part.form != "minimal_pairs" and set(part.columns) != set(names):
            files = ", ".join(part.name for part in parts)
            raise BadInput(f"{files} are files of one config, but their columns differ")
    columns = {
        name: [value for part in parts for value in part.columns.get(name, [None] * len(part))]
        for name in names
    }
    origins = [(part, row) for part in parts for row in range(len(part))]
    return RawTable(
        first.name, columns, lambda row: origins[row][0].where(origins[row][1]), first.form
    )


def from_rows(
    name: str, rows: Sequence[Mapping[str, Any]], where: Callable[[int], str]
) -> RawTable:
    """Returns a table of mappings; a column that a row does not have is None there."""
    names = dict.fromkeys(column for row in rows for column in row)
    return RawTable(name, {column: [row.get(column) for row in rows] for column in names}, where)


def read_memory(data: Any) -> RawTable:
    """Returns the rows of an object in memory.

    Args:
        data: a pandas DataFrame (its index is ignored), a `datasets.Dataset`, a pyarrow Table, a
            mapping of column names to values, or an iterable of mappings, one per row.

    Raises:
        BadInput: it is something else, or its columns differ in length.
    """

    def where(row: int) -> str:
        return f"{MEMORY}, row {row + 1}"

    if hasattr(data, "iloc"):  # pandas: missing values become None
        data = data.astype(object).where(data.notna(), None).to_dict("list")
    elif convert := getattr(data, "to_pydict", None) or getattr(data, "to_dict", None):
        data = convert()  # pyarrow, datasets
    if not isinstance(data, Mapping):
        rows = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            raise BadInput(
                f"cannot read stimuli from {type(data).__name__}: give the name of a data set, a "
                "file, a DataFrame, a list of dicts, or a dict of columns"
            )
        plain = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
        return from_rows(MEMORY, plain, where)
    columns = {str(name): [_plain(value) for value in values] for name, values in data.items()}
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    return RawTable(MEMORY, columns, where)


def _plain(value: Any) -> Any:
    """The Python value of a number or an array of numpy; None for NaN."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and value != value else value
