"""A sample of the rows for a quick run: whole contrasts, drawn evenly over the break-downs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmdiag.diagnostics import Diagnostic

_MOST_LEVELS = 24
"""A column with more distinct values is text; the sample is not balanced over it."""

_Levels = tuple[str, ...]


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
    contrasts: dict[str, list[int]] = {}  # a row that is not compared stands alone
    whole = "item" if diagnostic.has_regions else "contrast"
    for row, name in enumerate(columns.get(whole, columns["id"])):
        contrasts.setdefault(name, []).append(row)
    chosen: list[int] = []
    for name in _drawn(_strata(columns, contrasts, seed, diagnostic)):
        if chosen and len(chosen) + len(contrasts[name]) > limit:
            break
        chosen += contrasts[name]
    return sorted(chosen)


def _strata(
    columns: Mapping[str, Sequence[Any]], contrasts: Mapping[str, list[int]], seed: int,
    diagnostic: Diagnostic,
) -> list[dict[_Levels, list[str]]]:  # fmt: skip
    """The contrasts by the levels of their good rows; the next contrast to draw is last.

    One stratum for each combination of the levels that every contrast has; the levels of the other
    break-downs divide some of them.
    """
    names = sorted(name for name in columns if name not in diagnostic.core_columns)
    factors = [n for n in names if n in diagnostic.breakdowns or _is_factor(columns[n])]
    balanced = [columns["condition"], *(columns[name] for name in factors)]
    is_shared = [not any(value is None or value == "" for value in column) for column in balanced]
    good = columns.get("good", [True] * len(columns["id"]))
    strata: dict[_Levels, dict[_Levels, list[str]]] = {}
    for name in sorted(contrasts, key=lambda name: _digest(f"{seed}/{name}"), reverse=True):
        row = min(contrasts[name], key=lambda row: not good[row])
        levels = tuple(str(column[row]) for column in balanced)
        shared = tuple(level for level, is_one in zip(levels, is_shared, strict=True) if is_one)
        strata.setdefault(shared, {}).setdefault(levels, []).append(name)

    def in_order(levels: _Levels) -> bytes:
        return _digest(f"{seed}/{levels}")

    return [
        {levels: strata[shared][levels] for levels in sorted(strata[shared], key=in_order)}
        for shared in sorted(strata, key=in_order)
    ]


def _is_factor(values: Sequence[Any]) -> bool:
    types = set(map(type, values)) - {type(None)}
    return types <= {str, bool, int} and 2 <= len(set(values)) <= _MOST_LEVELS


def _drawn(strata: list[dict[_Levels, list[str]]]) -> Iterator[str]:
    """Yields all contrasts in the order in which they are drawn."""
    taken: Counter[tuple[int, str]] = Counter()
    together: Counter[_Levels] = Counter()

    def times(levels: _Levels) -> int:
        return sum(taken[at] for at in enumerate(levels))

    while remaining := [parts for parts in strata if any(parts.values())]:
        while remaining:  # one round: a contrast of each combination of levels
            parts = min(remaining, key=lambda parts: min(map(times, parts)))
            remaining.remove(parts)
            left = [levels for levels, names in parts.items() if names]
            levels = min(left, key=lambda levels: (together[levels], times(levels)))
            together[levels] += 1
            taken.update(enumerate(levels))
            yield parts[levels].pop()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
