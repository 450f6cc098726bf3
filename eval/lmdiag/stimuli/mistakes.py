"""Mistakes in a user's own table that would change its design in silence: refused, with the remedy.

Levels that differ in letter case or blanks at their edges alone, and identical rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.diagnostics.base import MOST_LEVELS, levels_of
from lmdiag.table_files import Problems, RawTable

_ROW_NAMES = ("", "__index_level_0__")
"""Columns of row names, which R and pandas add."""


def refuse_near_levels(
    columns: Mapping[str, Sequence[Any]], table: RawTable, problems: Problems
) -> None:
    """Adds levels that differ from another one in letter case or outer blanks alone."""
    core = {column.name for column in (*CORE, *SENTENCES)} - {"condition"}
    for name, values in columns.items():
        if name in core and name != "item":
            continue
        levels = levels_of(values)
        counts = Counter(level for level in levels if level is not None)
        first: dict[str, str] = {}  # the most frequent spelling of each level
        for level, n in counts.most_common():
            same = first.setdefault(level.strip() if name == "item" else _folded(level), level)
            if same == level or (len({*map(_folded, counts)}) > MOST_LEVELS and name != "item"):
                continue
            how = "letter case" if level.strip() == level else "blanks at its edges"
            rows = f"{n} row{'s' if n > 1 else ''} as {level!r}, {counts[same]} as {same!r}"
            problem = f"the column {name} has {rows}, which differ in {how} alone: make them equal"
            problems.append(str(table.error(levels.index(level), problem)))


def _folded(level: str) -> str:
    return level.strip().casefold()


def without_repeated_rows(table: RawTable, *, allowed: bool) -> RawTable:
    """Returns the rows, each once; `BadInput` for identical rows if they are not allowed."""
    columns = [values for name, values in table.columns.items() if name not in _ROW_NAMES]
    first: dict[int, int] = {}
    repeated = []
    for row, cells in enumerate(zip(*columns, strict=True)):
        if first.setdefault(hash(repr(cells)), row) != row:
            repeated.append(row)
    if not repeated:
        return table
    if not allowed:
        row = repeated[0]
        same = first[hash(repr(tuple(values[row] for values in columns)))]
        earlier = table.numbers.text([same])
        every = f"{len(repeated)} repeated: {table.numbers.text(repeated)}"
        remedy = "remove them, or keep one of each by --allow-duplicates"
        raise table.error(row, f"the row is identical to {earlier} ({every}): {remedy}")
    return table.of(sorted(first.values()))
