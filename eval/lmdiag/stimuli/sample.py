"""A part of the rows for a quick run: whole contrasts, shared evenly over the break-downs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmdiag.diagnostics import CORE_COLUMNS

MOST_LEVELS = 24
"""A column with more distinct values than this is not shared over: it is text."""

Columns = Mapping[str, Sequence[Any]]
Stratum = tuple[str, ...]
"""One value for each column that the sample is shared over."""


def sample(columns: Columns, limit: int, seed: int) -> list[int]:
    """Returns the positions of the sampled rows, in the order of the rows.

    A contrast is taken whole or not at all. Contrasts are drawn one by one, each from a combination
    of levels that has been drawn least, and among these from the one whose single levels have been
    drawn least. Every choice beyond that follows from a SHA-256 of the seed and the contrast, so
    the sample does not depend on the machine, nor on the order of the rows.

    Args:
        columns: all columns of the rows.
        limit: number of rows at most; one contrast is taken even if it has more.
        seed: another one gives another sample.
    """
    contrasts = grouped(columns)
    chosen: list[int] = []
    for rows in drawn(strata(columns, contrasts, seed)):
        if chosen and len(chosen) + len(rows) > limit:
            break
        chosen += rows
    return sorted(chosen)


def grouped(columns: Columns) -> dict[str, list[int]]:
    """Returns contrast -> positions of its rows, the good one first; alone where not compared."""
    found: dict[str, list[int]] = {}
    for row, name in enumerate(columns.get("contrast", columns["id"])):
        found.setdefault(name, []).append(row)
    if "good" in columns:
        for rows in found.values():
            rows.sort(key=lambda row: not columns["good"][row])
    return found


def strata(
    columns: Columns, contrasts: Mapping[str, list[int]], seed: int
) -> dict[Stratum, list[list[int]]]:
    """Returns combination of levels -> its contrasts, the next one to draw last."""
    shared = [columns["condition"], *(columns[name] for name in further(columns))]
    keys = {name: _digest(f"{seed}/{name}") for name in contrasts}
    found: dict[Stratum, list[list[int]]] = {}
    for name in sorted(contrasts, key=lambda name: keys[name], reverse=True):
        rows = contrasts[name]
        stratum = tuple(str(column[rows[0]]) for column in shared)
        found.setdefault(stratum, []).append(rows)
    return dict(sorted(found.items(), key=lambda item: _digest(f"{seed}/{item[0]}")))


def further(columns: Columns) -> list[str]:
    """Returns the further columns with at least two and at most `MOST_LEVELS` distinct levels."""
    names = sorted(name for name in columns if name not in CORE_COLUMNS)
    return [name for name in names if _is_factor(columns[name])]


def _is_factor(values: Sequence[Any]) -> bool:
    kinds = set(map(type, values)) - {type(None)}
    return kinds <= {str, bool, int} and 2 <= len(set(values)) <= MOST_LEVELS


def drawn(strata: Mapping[Stratum, list[list[int]]]) -> Iterator[list[int]]:
    """Yields all contrasts in the order in which they are drawn."""
    taken: Counter[tuple[int, str]] = Counter()
    while any(strata.values()):
        left = [stratum for stratum, contrasts in strata.items() if contrasts]
        while left:  # a round: one contrast of each combination of levels
            next_one = min(left, key=lambda stratum: sum(taken[at] for at in enumerate(stratum)))
            left.remove(next_one)
            taken.update(enumerate(next_one))
            yield strata[next_one].pop()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
