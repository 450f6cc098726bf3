"""Levels that seem to be misspelt: those that look like another one, and rare ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from unicodedata import normalize

from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.values.kinds import Distinct, distinct_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_RARE = 3  # rows at most of a level that may be misspelt

FAR_FEWER = 0.25
"""A level that may be misspelt has less than this share of the rows of another one."""


def rare_levels(values: Distinct) -> NDArray[np.bool_]:
    """Returns which levels have few rows, and far fewer than another one, (n levels,)."""
    counts = values.counts
    is_rare: NDArray[np.bool_] = (counts <= _RARE) & (counts < FAR_FEWER * counts.max(initial=0))
    return is_rare


def near_levels(name: str, values: Distinct) -> dict[str, str]:
    """Returns level -> the more frequent level that looks the same, of a column of a few levels.

    They differ in Unicode normalization alone, or, but for items, in letter case.
    """
    is_item = name == "item"
    if not (is_item or len(values.levels) <= 2 * MOST_LEVELS):
        return {}
    plain = {level: normalize("NFC", level) for level in values.levels}
    if not is_item:
        plain = {level: text.casefold() for level, text in plain.items()}
    if len({*plain.values()}) == len(plain):
        return {}
    spellings: dict[str, str] = {}  # the most frequent one of each level
    for level in values.by_count():
        spellings.setdefault(plain[level], level)
    near = {level: spellings[x] for level, x in plain.items() if spellings[x] != level}
    return near if is_item or len(spellings) <= MOST_LEVELS else {}


def spelled_alike(values: Distinct, near: Mapping[str, str]) -> Distinct:
    """Returns a column with the more frequent level in place of each of `near_levels`."""
    if not near:
        return values
    return distinct_values(values.codes, [near.get(level, level) for level in values.levels])


def near_level_problems(name: str, values: Distinct) -> Iterator[tuple[int, str]]:
    """Yields the first row of each of `near_levels`, and what is wrong with it."""
    counts = values.by_count()
    for level, spelling in near_levels(name, values).items():
        is_normalized = normalize("NFC", level) == normalize("NFC", spelling)
        how = "Unicode normalization" if is_normalized else "letter case"
        n = counts[level]
        rows = f"{n} row{'s' if n > 1 else ''} as {level!r}, {counts[spelling]} as {spelling!r}"
        problem = f"has {rows}, which differ in {how} alone: make them equal"
        row = int((values.codes == values.levels.index(level)).argmax())
        yield row, f"the column {name} {problem}"
