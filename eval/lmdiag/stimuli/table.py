"""Tables as they were read, before values are converted and checked; tables in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmdiag.diagnostics import CORE_COLUMNS, NEEDED_COLUMNS, SENTENCE_COLUMNS
from lmdiag.types import BadInput

MEMORY = "rows"
"""What a table in memory is called in messages, and its task by default."""

PAIR_COLUMNS = ("sentence_good", "sentence_bad")
"""Columns of minimal pairs as BLiMP has them."""

PAIR_ALIASES: Mapping[str, str] = {
    "sen": "sentence_good", "wrong_sen": "sentence_bad",  # MultiBLiMP
    "good_sentence": "sentence_good", "bad_sentence": "sentence_bad",  # TurBLiMP
    "uid": "UID", "lang": "language",  # tables of a user's own
}  # fmt: skip
"""Column of a published set of minimal pairs -> its name here."""

RowNames = Callable[[int], str]
"""Row number from 0 -> what to call the row in a message, for example "my.csv:3"."""


@dataclass(frozen=True)
class RawTable:
    """Rows as they were read, before their values are converted and checked.

    Attributes:
        name: of the file or data set.
        columns: column -> plain Python values, one per row.
        where: names a row in a message.
        form: of data that were not a table, or whose rows were made from others; see
            `lmdiag.stimuli.Stimuli`.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    where: RowNames
    form: str = ""

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))


def form_of(names: Collection[str]) -> str:
    """Returns the form that a table of these columns has; "" for rows with a blank."""
    if not set(NEEDED_COLUMNS).isdisjoint(names):
        return ""
    is_text = "sentence" in names or bool(region_names(names))
    pair = pair_columns(names)
    if is_text and not set(pair) <= set(names):
        return "sentences"
    return "" if set(pair).isdisjoint(names) else "minimal_pairs"


def pair_columns(names: Collection[str]) -> tuple[str, str]:
    """Returns the columns with the good and the bad sentence of a pair, present or not.

    A table has them under other names only if it has both: `sen` alone may be anything.

    >>> pair_columns(["sen", "wrong_sen"]), pair_columns(["sen"])
    (('sen', 'wrong_sen'), ('sentence_good', 'sentence_bad'))
    """
    good, bad = (
        [name for name in names if PAIR_ALIASES.get(name) == column] for column in PAIR_COLUMNS
    )
    if set(PAIR_COLUMNS).isdisjoint(names) and good and bad:
        return good[0], bad[0]
    return PAIR_COLUMNS


def region_names(names: Collection[str]) -> list[str]:
    """Returns the columns `region_1`, `region_2`, ... in the order of their numbers."""
    found = [name for name in names if re.fullmatch(r"region_[1-9]\d{0,3}", name)]
    return sorted(found, key=lambda name: int(name.partition("_")[2]))


def needed_columns(names: Collection[str]) -> tuple[str, ...]:
    """Returns the columns that a table of this form cannot do without."""
    pair = pair_columns(names)
    return {"": NEEDED_COLUMNS, "sentences": ("sentence",), "minimal_pairs": pair}[form_of(names)]


def concatenate(parts: Sequence[RawTable]) -> RawTable:
    """Returns the rows of several files as one table, in order.

    Files of minimal pairs may differ in columns, as those of BLiMP do.

    Raises:
        BadInput: their forms or columns differ.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if other := next((part for part in parts if part.form != first.form), None):
        raise BadInput(f"{first.name} and {other.name} have different forms: keep them apart")
    names = dict.fromkeys(name for part in parts for name in part.columns)
    if first.form != "minimal_pairs" and any(set(part.columns) != set(names) for part in parts):
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


def from_rows(name: str, rows: Sequence[Mapping[str, Any]], where: RowNames) -> RawTable:
    """Returns a table of mappings; only core columns must be present in all rows or in none.

    Raises:
        BadInput: a row lacks a core column that another row has.
    """
    names = list(dict.fromkeys(column for row in rows for column in row))
    pair = pair_columns(names)
    core = {"": CORE_COLUMNS, "sentences": SENTENCE_COLUMNS}.get(form_of(names), pair)
    for i, row in enumerate(rows):
        for column in names:
            if column in core and column not in row:
                raise BadInput(f"{where(i)}: the column {column} is missing")
    return RawTable(name, {column: [row.get(column) for row in rows] for column in names}, where)


# ---- memory --------------------------------------------------------------------------------------


def read_memory(data: Any) -> RawTable:
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
        return from_rows(MEMORY, plain, _row_in_memory)
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    values_of = {str(name): [_plain(value) for value in values] for name, values in columns.items()}
    return RawTable(MEMORY, values_of, _row_in_memory)


def _row_in_memory(row: int) -> str:
    return f"{MEMORY}, row {row + 1}"


def _columns(data: Any) -> Mapping[str, Sequence[Any]] | None:
    """The columns of a table; None for what has none."""
    if isinstance(data, Mapping):
        return {name: list(values) for name, values in data.items()}
    columns: Mapping[str, Sequence[Any]] | None = None
    if hasattr(data, "iloc"):  # pandas: missing values become None
        columns = data.astype(object).where(data.notna(), None).to_dict("list")
    elif hasattr(data, "to_pydict"):  # pyarrow
        columns = data.to_pydict()
    elif hasattr(data, "to_dict"):  # datasets
        columns = data.to_dict()
    return columns


def _plain(value: Any) -> Any:
    """The Python value of a number or an array of numpy; None for NaN."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and value != value else value
