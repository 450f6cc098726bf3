"""The columns that together name the items of a table whose item numbers begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np

from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.designs.conditions import Uses
from lmdiag.stimuli.values.codes import Codes, combined, n_distinct, n_distinct_by
from lmdiag.stimuli.values.kinds import MOST_LABELS, RELATED, Distinct, shared_words
from lmdiag.stimuli.values.names import is_outcome

_MOST_JOINED = 3  # columns beside the item
_MOST_TRIED = 8  # columns that are tried
_LEAST_COMPLETE = 0.9  # of the items, which have each condition once


def item_key(uses: Uses) -> tuple[tuple[str, ...], int]:
    """Returns the fewest columns that name the items, in the order of the table, and their number.

    That is one column, or some with the column of items. Rows of each of these items have related
    texts, and each combination of the levels of one column or two once. ((), 0) for none.
    """
    rows = uses.rows
    if rows.texts is None or not uses.item:
        return (), 0
    texts = rows.texts.tolist()
    columns = {name: values for name, values in rows.columns.items() if _may_name(values, name)}
    few = {name: x for name, x in rows.columns.items() if 2 <= len(x.levels) <= MOST_LABELS}
    for names in _choices([*columns][:_MOST_TRIED]):
        parts = [columns[name].codes for name in names]
        is_alone = len(names) == 1 and _is_finer(parts[0], rows.items.codes)
        codes = parts[0] if is_alone else combined(rows.items.codes, *parts)
        conditions = {name: x for name, x in few.items() if name not in names}
        if _has_each_once(codes, conditions):
            within, across = shared_words(texts, codes)
            if within >= RELATED and within > across:
                key = names if is_alone else (*names, uses.item)
                return key, n_distinct(codes)
    return (), 0


def _may_name(values: Distinct, name: str) -> bool:
    """Whether a column may be a part of the name of items: it has no gaps and no texts."""
    is_filled = values.n_filled == len(values.codes)
    return is_filled and values.are_groups and not (values.are_texts or is_outcome(name))


def _choices(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for n in range(1, _MOST_JOINED + 1):
        yield from combinations(names, n)


def _is_finer(codes: Codes, items: Codes) -> bool:
    """Whether each value of a column has one item, so that it names items by itself."""
    return n_distinct(combined(codes, items)) == n_distinct(codes)


def _has_each_once(codes: Codes, columns: Mapping[str, Distinct]) -> bool:
    """Whether most groups have each level of a column once, or each pair of levels of two."""
    sizes = np.bincount(codes[codes >= 0])
    if len(sizes) < 2 or sizes.max() < 2 or sizes.max() > MOST_LEVELS:
        return False
    for n in (1, 2):
        for names in combinations(columns, n):
            n_cells = prod(len(columns[name].levels) for name in names)
            if n_cells != np.median(sizes):
                continue
            cells = combined(*(columns[name].codes for name in names))
            is_complete = (n_distinct_by(codes, cells) == n_cells) & (sizes == n_cells)
            if is_complete.mean() >= _LEAST_COMPLETE:
                return True
    return False
