"""Mistakes in a user's own table that would change its design in silence: refused, with the remedy.

Names of columns that miss a known one by a letter, levels that differ in letter case or blanks at
their edges alone, and identical rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmdiag import diagnostics
from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.diagnostics.base import MOST_LEVELS, levels_of
from lmdiag.stimuli.extended import TEXT
from lmdiag.stimuli.forms import PAIR, form_of
from lmdiag.table_files import RawTable
from lmdiag.types import BadInput

_ROW_NAMES = ("", "__index_level_0__")
"""Columns of row names, which R and pandas add."""

_LONG = 8
"""Letters of a name in which another letter is a slip; "mood" and "good" are two words."""


def without_mistakes(table: RawTable, task: str, *, allow_duplicates: bool) -> RawTable:
    """Returns a user's own rows, each once; rows of diagnostics and of other forms as they are.

    Raises:
        BadInput: a column with nearly the name of a known one; identical rows, unless allowed.
    """
    if table.form or task in diagnostics.built_in() or TEXT in table.columns:
        return table
    refuse_near_names(table)
    return without_repeated_rows(table, allowed=allow_duplicates)


def refuse_near_names(table: RawTable) -> None:
    """Refuses a column whose name misses a known one by letter case, blanks or one letter.

    Of a table whose form is known, these are the columns of its form that it does not have.
    """
    names = table.columns.keys()
    form = form_of(names)
    blanks, sentences = ({column.name for column in core} for core in (CORE, SENTENCES))
    known = blanks | sentences | set(PAIR)
    if form == "minimal_pairs":
        known = set(PAIR)  # published sets have columns of any name
    elif form or {"context", "target"} <= names:
        known = sentences if form else blanks
    if any(re.fullmatch(r"region_[1-9]\d*", name) for name in names):
        known -= {"sentence"}
    for name in names:
        meant = next((x for x in sorted(known - names) if _is_near(name, x)), "")
        if region := re.fullmatch(r"[\W_]*regions?[\W_]*0*([1-9]\d*)[\W_]*", name, re.IGNORECASE):
            meant = f"region_{region[1]}"
        if meant and meant != name:
            what = f"the column {name!r} is nearly {meant!r}"
            raise BadInput(f"{table.name}: {what}: rename it to {meant}, or to another name")


def _is_near(name: str, known: str) -> bool:
    """Whether two names differ in case, blanks and the like, or by one letter."""
    a, b = (re.sub(r"[\W_]+", "", text.casefold()) for text in (name, known))
    if a == b or known == "id":
        return a == b
    if len(a) == len(b):
        other = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        is_swap = len(other) == 2 and a[other[0]] == b[other[1]] and a[other[1]] == b[other[0]]
        return is_swap or (len(other) == 1 and len(b) >= _LONG)
    short, long = sorted((a, b), key=len)
    return any(short == long[:i] + long[i + 1 :] for i in range(len(long)))


def refuse_near_levels(columns: Mapping[str, Sequence[Any]], table: RawTable) -> None:
    """Refuses a level that differs from another one in letter case or outer blanks alone."""
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
            raise table.error(levels.index(level), problem)


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
    kept = sorted(first.values())
    cells_kept = {name: [values[row] for row in kept] for name, values in table.columns.items()}
    return replace(table, columns=cells_kept, numbers=table.numbers.of(kept))
