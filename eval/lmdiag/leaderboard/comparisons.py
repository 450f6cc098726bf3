"""Every two rows compared, with the numbers that `lmdiag compare` gives for their runs.

What random draws make of a row is computed once for all its pairs: the mean of resampled items and
the sum of items with random signs are linear, so those of a difference of two rows are differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from lmdiag import stats
from lmdiag.comparison import RESAMPLES, Pair, compare_pairs, pair_at, side_of
from lmdiag.hub.benchmark import columns
from lmdiag.measures import Scores
from lmdiag.results import Run

_Pairs = Mapping[tuple[int, int], Pair]
"""Numbers of two rows -> their scores."""
_Results = dict[tuple[int, int], tuple[float, ...]]
"""Numbers of two rows -> difference, first minus second; ends of its 95% interval; p."""


def comparisons(runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the comparison of every two runs in each column of the leaderboard.

    Returns:
        `results`: the distinct ones, each a list of difference (first minus second), lower and
        upper end of the 95% interval, and p, rounded to six digits, None where undefined;
        `columns`: id of a column -> for each first run, for each second one, the index of their
        result, None where they cannot be compared.
    """
    sides = [*map(side_of, runs)]
    index: dict[tuple[float | None, ...], int] = {}
    tables = {}
    for place, column in columns().items():
        if not all((place.task, place.setting) in side.settings for side in sides):
            continue
        numbers = permutations(range(len(runs)), 2)
        pairs = {(i, j): x for i, j in numbers if (x := pair_at(sides[i], sides[j], place))}
        table: list[list[int | None]] = [[None] * len(runs) for _ in runs]
        for (i, j), result in _compare(pairs).items():
            rounded = tuple(None if math.isnan(x) else round(x, 6) + 0.0 for x in result)
            table[i][j] = index.setdefault(rounded, len(index))
        tables[column.task_id] = table
    return {"results": [*index], "columns": tables}


def _compare(pairs: _Pairs) -> _Results:
    """Compares one figure of all pairs of rows."""
    parts = {i: pair.a for (i, _), pair in pairs.items()}
    statistics = {part.statistic for part in parts.values()}
    if statistics == {"proportion"}:
        return _compare_counts(pairs, parts)
    done = _compare_means(pairs, parts) if statistics <= {"share", "mean"} else {}
    return {key: done.get(key) or _compare_pair(pair) for key, pair in pairs.items()}


def _compare_pair(pair: Pair) -> tuple[float, ...]:
    (result,) = compare_pairs([pair], seed=0, resamples=RESAMPLES)
    return result.difference, result.ci_low, result.ci_high, result.p


def _compare_counts(pairs: _Pairs, parts: Mapping[int, Scores]) -> _Results:
    """Compares proportions once for each number of items, of wins and of losses."""
    values = pd.DataFrame({i: pd.Series(part.values, part.items) for i, part in parts.items()})
    right, wrong = (values == 1).astype(float), (values == 0).astype(float)
    both, wins = (right + wrong).T @ (right + wrong), right.T @ wrong
    counts = {(i, j): (both.at[i, j], wins.at[i, j], wins.at[j, i]) for i, j in pairs}
    examples = {of_pair: pairs[key] for key, of_pair in counts.items()}
    results = {of_pair: _compare_pair(pair) for of_pair, pair in examples.items()}
    return {key: results[of_pair] for key, of_pair in counts.items()}


def _compare_means(pairs: _Pairs, parts: Mapping[int, Scores]) -> _Results:
    """Compares means of rows on the same items, with random draws that all pairs share.

    Left out are pairs whose sign-flip test is exact, and those that differ by the same everywhere.
    """
    rows_on: dict[tuple[str, ...], list[int]] = {}
    for i, part in parts.items():
        rows_on.setdefault(tuple(part.items), []).append(i)
    results: _Results = {}
    for items, rows in rows_on.items():
        if len(items) <= stats.MOST_EXACT:
            continue
        values = np.column_stack([parts[i].values for i in rows])
        rng = next(iter(pairs.values())).generator(seed=0)
        means = stats.resampled_means(values, rng, RESAMPLES).T.copy()
        sums = stats.random_flips(values, rng).T.copy()
        for a, b in permutations(range(len(rows)), 2):
            d = values[:, a] - values[:, b]
            if np.count_nonzero(d) > stats.MOST_EXACT and np.ptp(d):
                interval = stats.percentiles(means[a] - means[b])
                p = stats.flip_p(sums[a] - sums[b], d)
                results[rows[a], rows[b]] = (float(d.mean()), *interval, p)
    return results
