"""The columns that together name the items of a table whose item numbers begin anew."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import prod

import numpy as np

from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.designs.conditions import ColumnUses
from lmdiag.stimuli.values.codes import (
    Codes,
    combine_codes,
    n_distinct,
    n_distinct_by,
)
from lmdiag.stimuli.values.kinds import MOST_LABELS, RELATED, DistinctValues, median_overlaps
from lmdiag.stimuli.values.names import is_outcome

_MOST_JOINED = 3  # columns beside the item
_MOST_TRIED = 8  # columns that are tried
_LEAST_COMPLETE = 0.9  # of the items, which have each condition once


def item_key(uses: ColumnUses) -> tuple[tuple[str, ...], int]:
    """Returns the fewest columns that name the items, in the order of the table, and their number.

    For example, (("experiment", "item"), 48) where 24 item numbers start again in each of two
    experiments; ((), 0) if no columns name the items. The key is one column alone, or up to three
    columns with the column of items. It names the items if the rows of an item have related texts,
    and if most items have each level of another column once, or each combination of the levels of
    two other columns, as the rows of a design have.
    """
    table = uses.table
    if table.texts is None or not uses.item_column:
        return (), 0
    texts = table.texts.tolist()
    items = table.items.codes
    # which columns may be in the key, and which ones may be conditions
    names = [name for name, values in table.columns.items() if _may_be_in_key(name, values)]
    names = names[:_MOST_TRIED]
    few_levels = {
        name: values
        for name, values in table.columns.items()
        if 2 <= len(values.levels) <= MOST_LABELS
    }
    # each column alone first, then pairs, then triples
    choices = [chosen for n in range(1, _MOST_JOINED + 1) for chosen in combinations(names, n)]
    for chosen in choices:
        # number of the new item of each row, if the columns name the items with the item column
        new_items = combine_codes(items, *(table.columns[name].codes for name in chosen))
        key = (*chosen, uses.item_column)
        if len(chosen) == 1:
            values_alone = table.columns[chosen[0]].codes
            # each value has one item, so that the column names the items without the item column
            if n_distinct(new_items) == n_distinct(values_alone):
                new_items = values_alone
                key = chosen
        conditions = {name: values for name, values in few_levels.items() if name not in chosen}
        if _has_each_condition_once(new_items, conditions):
            within, across = median_overlaps(texts, new_items)
            if within >= RELATED and within > across:
                return key, n_distinct(new_items)
    return (), 0


def _may_be_in_key(name: str, values: DistinctValues) -> bool:
    """Returns whether a column may be a part of the name of items.

    It has a value in each row, repeats, and is neither texts nor an outcome.
    """
    is_filled = values.n_filled == len(values.codes)
    return is_filled and values.are_groups and not (values.are_texts or is_outcome(name))


def _has_each_condition_once(items: Codes, columns: Mapping[str, DistinctValues]) -> bool:
    """Returns whether most items have each level of a column once, or each cell of two columns.

    For example, True if most items have two rows, one with sg and one with pl, of a column number.

    Args:
        items: number of the item of each row, (n rows,); -1 for a row without an item.
        columns: name -> levels, of the columns that may be conditions.
    """
    n_rows_of_item = np.bincount(items[items >= 0])
    if len(n_rows_of_item) < 2 or not 2 <= n_rows_of_item.max() <= MOST_LEVELS:
        return False
    for names in (*combinations(columns, 1), *combinations(columns, 2)):
        n_cells = prod(len(columns[name].levels) for name in names)
        if n_cells != np.median(n_rows_of_item):
            continue
        cells = combine_codes(*(columns[name].codes for name in names))
        has_all_cells = n_distinct_by(items, cells) == n_cells
        is_complete = has_all_cells & (n_rows_of_item == n_cells)
        if is_complete.mean() >= _LEAST_COMPLETE:
            return True
    return False
