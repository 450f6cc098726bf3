"""Rows that a program holds already: a DataFrame, a table of a library, columns or dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmdiag.schema import BadInput
from lmdiag.stimuli.tables import Raw, of_rows

NAME = "rows"
"""What such data are called where a file would be named, and their task by default."""


def read_memory(data: Any) -> Raw:
    """Returns the rows of an object in memory.

    Args:
        data: a pandas DataFrame (its index is ignored), a `datasets.Dataset`, a pyarrow Table, a
            mapping of column names to values, or an iterable of mappings, one per row.

    Raises:
        BadInput: it is something else, or its columns differ in length.
    """
    columns = _columns(data)
    if columns is None:
        rows = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            raise BadInput(
                f"cannot read stimuli from {type(data).__name__}: give the name of a data set, a "
                "file, a DataFrame, a list of dicts, or a dict of columns"
            )
        plain = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
        return of_rows(NAME, plain, _where)
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{NAME}: the columns differ in length: {lengths}")
    plain_columns = {
        str(name): [_plain(value) for value in values] for name, values in columns.items()
    }
    return Raw(NAME, plain_columns, _where)


def _where(row: int) -> str:
    return f"{NAME}, row {row + 1}"


def _columns(data: Any) -> Mapping[str, Sequence[Any]] | None:
    """The columns of a table; None for what has none."""
    if isinstance(data, Mapping):
        return {name: list(values) for name, values in data.items()}
    if hasattr(data, "to_pydict"):  # pyarrow
        columns: Mapping[str, Sequence[Any]] = data.to_pydict()
        return columns
    if hasattr(data, "iloc"):  # pandas: missing values become None, numbers those of Python
        present = data.astype(object).where(data.notna(), None)
        return {name: present[name].tolist() for name in data.columns}
    if hasattr(data, "to_dict"):  # datasets
        columns = data.to_dict()
        return columns
    return None


def _plain(value: Any) -> Any:
    """A value as Python has it: arrays and numbers of numpy converted, NaN as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and value != value else value
