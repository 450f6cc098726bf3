"""Columns as the numbers (codes) of their values, 0, 1 and so on; -1 for a missing value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.intp]"
"""The number of the value in each row of a column, (n rows,); -1 where it is missing."""


def combine_codes(*columns: Codes) -> Codes:
    """Returns the number of the combination of values in each row, (n rows,).

    It is -1 where one of the columns has no value. Combinations have the numbers 0, 1 and so on, in
    the order of the rows; a single column is returned as it is.

    >>> import numpy as np
    >>> combine_codes(np.array([0, -1, 1, 1]), np.array([0, 1, 0, 0])).tolist()
    [0, -1, 1, 1]
    """
    import numpy as np
    from pandas import factorize

    codes, *further_columns = columns
    for column in further_columns:
        is_filled = (codes >= 0) & (column >= 0)
        n_values = int(column.max(initial=0)) + 1
        pairs = codes * n_values + column  # another number for each pair of values
        codes = np.full(len(pairs), -1)
        codes[is_filled] = factorize(pairs[is_filled])[0]  # 0, 1, ... in place of these numbers
    return codes


def first_row_of_each(codes: Codes) -> Codes:
    """Returns the first row that has each value, in the order of the rows, (n values,).

    >>> import numpy as np
    >>> first_row_of_each(np.array([1, -1, 1, 0])).tolist()
    [0, 3]
    """
    import numpy as np
    from pandas import Series

    is_repeated = Series(codes).duplicated().to_numpy()
    return np.flatnonzero((codes >= 0) & ~is_repeated)


def n_distinct(codes: Codes) -> int:
    """Returns the number of distinct values, missing ones not counted."""
    import numpy as np

    n_rows_of_value = np.bincount(codes[codes >= 0])
    return int(np.count_nonzero(n_rows_of_value))


def n_distinct_by(groups: Codes, codes: Codes) -> Codes:
    """Returns the number of distinct values in each group, (n groups,).

    Args:
        groups: number of the group of each row, such as its item.
        codes: number of the value of each row.
    """
    import numpy as np

    n_groups = int(groups.max(initial=-1)) + 1
    rows = first_row_of_each(combine_codes(groups, codes))  # one for each group and value
    return np.bincount(groups[rows], minlength=n_groups)


def is_determined_by(codes: Codes, others: Sequence[Codes]) -> bool:
    """Returns whether rows with the same values in other columns have the same value in this one.

    Rows with a missing value are ignored. False if there are no other columns.
    """
    import numpy as np

    if not others:
        return False
    combinations = np.where(codes < 0, -1, combine_codes(*others))
    # as many combinations with the value of this column as without it: each has one value
    return n_distinct(combine_codes(combinations, codes)) == n_distinct(combinations)


def n_rows_by(groups: Codes, codes: Codes, n_levels: int) -> Codes:
    """Returns the number of rows of each level in each group, (n groups, n levels).

    Args:
        groups: number of the group of each row, such as its item.
        codes: number of the level of each row, below `n_levels`.
    """
    import numpy as np

    n_groups = int(groups.max(initial=-1)) + 1
    is_filled = (groups >= 0) & (codes >= 0)
    # cell 0 is group 0 with level 0, cell 1 is group 0 with level 1, and so on
    cells = groups[is_filled].astype(np.int64) * n_levels + codes[is_filled]
    return np.bincount(cells, minlength=n_groups * n_levels).reshape(n_groups, n_levels)


def chi_square_per_df(counts: Codes) -> float:
    """Returns Pearson's X2 of independence of groups and levels, by its degrees of freedom.

    It is 1 on average if each row has its level by chance, and less if groups have levels more
    evenly than that; 0 without degrees of freedom.

    Args:
        counts: number of rows of each level in each group, (n groups, n levels); groups without
            rows do not count, and each level has rows.
    """
    import numpy as np

    counts = counts[counts.any(axis=1)]
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if degrees <= 0:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return float(((counts - expected) ** 2 / expected).sum() / degrees)
