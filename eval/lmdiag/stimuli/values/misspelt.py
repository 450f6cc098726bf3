"""Levels that seem to be misspelt: those that look like another one, and rare ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from unicodedata import normalize

from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.values.kinds import DistinctValues, distinct_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_RARE = 3  # rows at most of a level that may be misspelt

FAR_FEWER = 0.25
"""A level that may be misspelt has less than this share of the rows of another one."""


def rare_levels(values: DistinctValues) -> NDArray[np.bool_]:
    """Returns whether each level has few rows, and far fewer than another one, (n levels,)."""
    counts = values.counts
    most = counts.max(initial=0)
    is_rare: NDArray[np.bool_] = (counts <= _RARE) & (counts < FAR_FEWER * most)
    return is_rare


def lookalike_levels(name: str, values: DistinctValues) -> dict[str, str]:
    """Returns level -> the more frequent level that looks the same; {} if there are none.

    For example, {"match": "Match"} for a column with ten rows of "Match" and one row of "match".
    Two such levels differ in letter case alone, or in Unicode normalization alone. Names of items
    may differ in letter case. A column with too many levels for a break-down is not examined,
    unless it names the items.

    Args:
        name: of the column; "item" for names of items.
        values: of the column.
    """
    is_item = name == "item"
    # each level may be there in two spellings; with more levels, too many are left in any case
    if not is_item and len(values.levels) > 2 * MOST_LEVELS:
        return {}
    appearance = {level: normalize("NFC", level) for level in values.levels}
    if not is_item:
        appearance = {level: text.casefold() for level, text in appearance.items()}
    if len({*appearance.values()}) == len(appearance):
        return {}
    usual_spelling: dict[str, str] = {}  # appearance -> its most frequent level
    for level in values.by_count():  # the most frequent one first, which is kept
        usual_spelling.setdefault(appearance[level], level)
    if not is_item and len(usual_spelling) > MOST_LEVELS:  # too many, even if spelled alike
        return {}
    return {
        level: usual_spelling[text]
        for level, text in appearance.items()
        if usual_spelling[text] != level
    }


def spelled_alike(values: DistinctValues, lookalikes: Mapping[str, str]) -> DistinctValues:
    """Returns a column in which levels are replaced by the ones that look the same.

    Args:
        values: of the column.
        lookalikes: level -> the level that replaces it, see `lookalike_levels`.
    """
    if not lookalikes:
        return values
    levels = [lookalikes.get(level, level) for level in values.levels]
    return distinct_values(values.codes, levels)


def lookalike_problems(name: str, values: DistinctValues) -> Iterator[tuple[int, str]]:
    """Yields (row, problem) for each level that looks the same as a more frequent one.

    The row is the first one with the level, counted from 0; the problem is a message.
    """
    counts = values.by_count()
    for level, spelling in lookalike_levels(name, values).items():
        is_normalized = normalize("NFC", level) == normalize("NFC", spelling)
        how = "Unicode normalization" if is_normalized else "letter case"
        n = counts[level]
        rows = f"{n} row{'s' if n > 1 else ''} as {level!r}, {counts[spelling]} as {spelling!r}"
        problem = f"has {rows}, which differ in {how} alone: make them equal"
        row = int((values.codes == values.levels.index(level)).argmax())
        yield row, f"the column {name} {problem}"
