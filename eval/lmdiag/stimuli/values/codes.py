"""Columns as the numbers (codes) of their values, 0, 1 and so on; -1 for a missing value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.intp]"
"""Numbers of the values of a column, (n rows,)."""


def combined(*columns: Codes) -> Codes:
    """Returns the number of each combination of values, (n rows,); -1 where one is missing."""
    import numpy as np
    from pandas import factorize

    codes, *others = columns
    is_missing = codes < 0
    for column in others:
        is_missing |= column < 0
        codes = factorize(codes * (int(column.max(initial=0)) + 1) + column)[0]
    return np.where(is_missing, -1, codes)


def first_rows_of(codes: Codes) -> Codes:
    """Returns the first row of each value, in their order, (n values,)."""
    import numpy as np
    from pandas import Series

    return np.flatnonzero((codes >= 0) & ~Series(codes).duplicated().to_numpy())


def n_distinct(codes: Codes) -> int:
    """Returns the number of distinct values."""
    import numpy as np

    return int(np.count_nonzero(np.bincount(codes[codes >= 0])))


def n_distinct_by(groups: Codes, codes: Codes) -> Codes:
    """Returns the number of distinct values in each group, (n groups,)."""
    import numpy as np

    rows = first_rows_of(combined(groups, codes))
    return np.bincount(groups[rows], minlength=int(groups.max(initial=-1)) + 1)


def is_known_from(codes: Codes, others: Sequence[Codes]) -> bool:
    """Returns whether the level of a column is known where those of others are."""
    import numpy as np

    if not others:
        return False
    by = combined(*others)
    by = np.where(codes < 0, -1, by)
    return n_distinct(combined(by, codes)) == n_distinct(by)


def presence(items: Codes, codes: Codes, n_levels: int) -> Codes:
    """Returns the number of rows of each level in each item, (n items, n levels)."""
    import numpy as np

    n_items = int(items.max(initial=-1)) + 1
    filled = (items >= 0) & (codes >= 0)
    cells = items[filled].astype(np.int64) * n_levels + codes[filled]
    return np.bincount(cells, minlength=n_items * n_levels).reshape(n_items, n_levels)


def variance_of_counts(counts: Codes) -> float:
    """Returns the variance of numbers of rows, for one of what chance gives; 0 without any.

    That is Pearson's X2 of independence for one degree of freedom, 1 on average by chance.

    Args:
        counts: (n groups, n levels); groups without rows do not count.
    """
    import numpy as np

    counts = counts[counts.any(axis=1)]
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if degrees <= 0:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return float(((counts - expected) ** 2 / expected).sum() / degrees)
