"""Tables with a row per word: the surprisal of a region is the sum over its words."""

from __future__ import annotations

from collections.abc import Sequence

from pandas import DataFrame, Series

from lmdiag.stimuli.columns import READER_NAMES, WORD_PLACES
from lmdiag.text import folded
from lmdiag.types import BadInput


def rows_of_words(
    table: DataFrame, response: str, keys: Sequence[str], constant: Sequence[str]
) -> tuple[DataFrame, str]:
    """Returns a row per item, cell and reader where there is one per word, and what was done.

    Surprisals are summed over words; rows of one position and reader are averaged before. Of every
    other response, and of tables without words, the rows stay: their mean is taken later.

    Args:
        table: with the columns `item` and `model`, the rows of one region or of whole sentences.
        response: column of numbers.
        keys: columns of the cells.
        constant: columns of a formula, which must not differ within a sum.

    Raises:
        BadInput: a column of the formula differs between the words that are summed.
    """
    readers = [name for name in table if folded(name) in READER_NAMES]
    groups = [name for name in dict.fromkeys(["model", "item", *keys]) if name in table]
    n_cells = table.groupby(groups, dropna=False).ngroups
    if len(table) == n_cells:
        return table, ""
    positions = [name for name in table if folded(name) in WORD_PLACES]
    words = [name for name in table if folded(name) in ("word", "token", "ia")]
    groups = list(dict.fromkeys([*groups, *readers]))
    several = table.groupby(groups, dropna=False)
    is_words = bool(positions) or any(several[name].nunique().gt(1).any() for name in words)
    if response != "surprisal" or not is_words:
        what = f"{response}: mean over the rows of an item and cell"
        return table, f"{what}, {len(table):,} rows of {n_cells:,} cells"
    for name in constant:
        if name not in (response, *groups) and several[name].nunique(dropna=False).gt(1).any():
            raise BadInput(
                f"{name} differs between words whose surprisals are summed: leave it out of the "
                "formula, or make a table with a row per region"
            )
    of_words = table.groupby([*groups, *positions[:1]], dropna=False, sort=False)
    words_once = of_words.first().assign(**{response: of_words[response].mean()}).reset_index()
    words_once = words_once if positions else table
    summed = words_once.groupby(groups, dropna=False, sort=False)
    sums = summed.first().assign(**{response: summed[response].agg(_sum)}).reset_index()
    what = f"{response}: sum over the words of an item and cell"
    return sums, f"{what}, {len(table):,} rows make {len(sums):,} sums"


def _sum(values: Series) -> float:
    """The sum of numbers; NaN if one is missing."""
    return float(values.sum(skipna=False))
