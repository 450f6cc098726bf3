"""A sample of the rows for a quick run: whole contrasts, drawn evenly over the break-downs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from lmdiag.diagnostics import Diagnostic

_MOST_LEVELS = 24
"""A column with more distinct values is text; the sample is not balanced over it."""

_Content = TypeVar("_Content")
_Levels = tuple[str, ...]
_Strata = dict[_Levels, dict[_Levels, list[list[int]]]]
"""Levels of the break-downs that every contrast has -> levels of the others, which divide some of
these combinations -> the rows of each contrast with these levels."""


def sample(
    columns: Mapping[str, Sequence[Any]], limit: int, seed: int, diagnostic: Diagnostic
) -> list[int]:
    """Returns the positions of the sampled rows, in the order of the rows.

    A contrast, or an item of a test suite, is taken whole or not at all. Contrasts are drawn one by
    one, each from a combination of levels that has been drawn least, and among these from the one
    whose single levels have been drawn least. A break-down that some contrasts do not have (natural
    sentences in NEG-136) divides the share of the others. Every choice beyond that follows from a
    SHA-256 of the seed and the contrast, so the sample does not depend on the machine, nor on the
    order of the rows.

    Args:
        columns: all columns of the rows.
        limit: maximum number of rows; one contrast is taken even if it has more.
        seed: another one gives another sample.
        diagnostic: what is declared for the rows.
    """
    chosen: list[int] = []
    for rows in _drawn(_strata(columns, seed, diagnostic)):
        if chosen and len(chosen) + len(rows) > limit:
            break
        chosen += rows
    return sorted(chosen)


def _strata(columns: Mapping[str, Sequence[Any]], seed: int, diagnostic: Diagnostic) -> _Strata:
    """The contrasts by their levels, those of the good row; the next contrast to draw is last."""
    contrasts: dict[str, list[int]] = {}  # a row that is not compared stands alone
    whole = "item" if diagnostic.has_regions else "contrast"
    for row, name in enumerate(columns.get(whole, columns["id"])):
        contrasts.setdefault(name, []).append(row)
    names = sorted(name for name in columns if name not in diagnostic.core_columns)
    factors = [n for n in names if n in diagnostic.breakdowns or _is_factor(columns[n])]
    balanced = [columns["condition"], *(columns[name] for name in factors)]
    is_shared = [not any(value is None or value == "" for value in column) for column in balanced]
    good = columns.get("good", [True] * len(columns["id"]))
    strata: _Strata = {}
    for name in sorted(contrasts, key=lambda name: _digest(f"{seed}/{name}"), reverse=True):
        rows = sorted(contrasts[name], key=lambda row: not good[row])
        levels = tuple(str(column[rows[0]]) for column in balanced)
        shared = tuple(level for level, is_one in zip(levels, is_shared, strict=True) if is_one)
        strata.setdefault(shared, {}).setdefault(levels, []).append(rows)
    return _shuffled({shared: _shuffled(parts, seed) for shared, parts in strata.items()}, seed)


def _shuffled(strata: Mapping[_Levels, _Content], seed: int) -> dict[_Levels, _Content]:
    return dict(sorted(strata.items(), key=lambda item: _digest(f"{seed}/{item[0]}")))


def _is_factor(values: Sequence[Any]) -> bool:
    types = set(map(type, values)) - {type(None)}
    return types <= {str, bool, int} and 2 <= len(set(values)) <= _MOST_LEVELS


def _drawn(strata: _Strata) -> Iterator[list[int]]:
    """Yields the rows of all contrasts in the order in which they are drawn."""
    taken: Counter[tuple[int, str]] = Counter()
    together: Counter[_Levels] = Counter()

    def times(levels: _Levels) -> int:
        return sum(taken[at] for at in enumerate(levels))

    left = [[(levels, rows) for levels, rows in parts.items()] for parts in strata.values()]
    while remaining := [parts for parts in left if any(rows for _, rows in parts)]:
        while remaining:  # one round: a contrast of each combination of levels
            parts = min(remaining, key=lambda parts: min(times(levels) for levels, _ in parts))
            remaining.remove(parts)
            some = [(levels, rows) for levels, rows in parts if rows]
            levels, rows = min(some, key=lambda part: (together[part[0]], times(part[0])))
            together[levels] += 1
            taken.update(enumerate(levels))
            yield rows.pop()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
