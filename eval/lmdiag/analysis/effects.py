"""Effects of conditions over items: a contrast of cells for each item, and t tests of contrasts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numpy as np
from pandas import DataFrame, Index, MultiIndex, Series, concat
from scipy.special import stdtr, stdtrit

from lmdiag import stats
from lmdiag.types import Coding

Levels = Mapping[str, tuple[str, ...]]
"""Condition -> its levels in order."""

_MOST_CROSSED = 3
"""Conditions of an interaction."""

_ROUNDING = 1e-6
"""Contrasts that are smaller, relative to the largest response, are rounding of float32."""


def within_item_intervals(values: stats.Values) -> list[stats.Interval]:
    """Returns the 95% interval of the mean of each cell, for comparisons within items.

    Each value is taken less the mean of its item, plus the grand mean; the deviations within a cell
    are then stretched by sqrt(C / (C - 1)) for C cells, and have a t interval.

    Args:
        values: of each item in each cell, (n, C), C > 1.

    Source: Cousineau (2005); Morey (2008).
    """
    mean = values.mean(axis=0)
    n_cells = values.shape[1]
    deviations = values - values.mean(axis=1, keepdims=True) + values.mean() - mean
    stretched = mean + deviations * math.sqrt(n_cells / (n_cells - 1))
    return [stats.mean_interval(column) for column in stretched.T]


# ---- contrasts -----------------------------------------------------------------------------------


class _Contrast(NamedTuple):
    """A comparison of levels or of cells, as the sum of weighted means.

    Attributes:
        conditions: whose levels are compared; Holm's method adjusts the contrasts of the same
            conditions together.
        effect: its name, e.g. "a:c[z - x]"; conditions of two levels have no levels in it.
        label: its name with all levels, e.g. "a[y - x]:c[z - x]".
        weights: of the levels of a condition, or of the cells.
    """

    conditions: tuple[str, ...]
    effect: str
    label: str
    weights: stats.Values


def effect_scores(means: DataFrame, levels: Levels, coding: Coding = "sum") -> DataFrame:
    """Returns the contrast of each item (rows) for each effect (columns).

    For a main effect it is the mean of the cells of the second level less that of the first, for an
    interaction the difference of these differences; cells of other conditions are averaged. The
    columns have the family, which Holm's method adjusts together, the effect, and its label.

    Args:
        means: of each item (rows) in each cell (columns).
        levels: of each condition; with more than two of them, the effect names the pair.
        coding: "difference" for successive levels, else all pairs of levels.
    """
    sides = []
    for name in means.columns.names:
        of_cells = [*means.columns.unique(name)]
        averaged = _Contrast((), "", "", np.full(len(of_cells), 1 / len(of_cells)))
        sides.append([*_contrasts_of_levels(name, of_cells, len(levels[name]), coding), averaged])
    contrasts = [
        reduce(_crossed, parts)
        for parts in product(*sides)
        if 0 < sum(bool(part.conditions) for part in parts) <= _MOST_CROSSED
    ]
    contrasts.sort(key=lambda contrast: len(contrast.conditions))  # main effects first
    values = means.to_numpy()
    scores = values @ np.column_stack([contrast.weights for contrast in contrasts])
    scores[np.abs(scores) <= _ROUNDING * np.abs(values).max()] = 0.0
    columns = [(":".join(x.conditions), x.effect, x.label) for x in contrasts]
    return DataFrame(scores, means.index, MultiIndex.from_tuples(columns))


def _contrasts_of_levels(
    name: str, levels: Sequence[str], n_levels: int, coding: Coding
) -> list[_Contrast]:
    """The later level less the earlier one, of all pairs or of successive levels."""
    names = np.array(levels)
    pairs = pairwise(levels) if coding == "difference" else combinations(levels, 2)
    contrasts = []
    for low, high in pairs:
        label = f"{name}[{high} - {low}]"
        weights = (names == high) * 1.0 - (names == low)
        contrasts.append(_Contrast((name,), name if n_levels == 2 else label, label, weights))
    return contrasts


def _crossed(first: _Contrast, second: _Contrast) -> _Contrast:
    """The interaction of two contrasts of different conditions."""
    return _Contrast(
        first.conditions + second.conditions,
        ":".join(filter(None, (first.effect, second.effect))),
        ":".join(filter(None, (first.label, second.label))),
        np.asarray(np.kron(first.weights, second.weights), np.float64),
    )


# ---- tests ---------------------------------------------------------------------------------------


def paired_tests(scores: DataFrame) -> DataFrame:
    """Returns the paired t test of each column of `effect_scores`, a row each.

    t, interval and d_z are not defined where the items do not differ.

    Returns:
        effect, label, n (items), estimate, ci_low, ci_high, t, df, p, d_z; p_sign_flip of up to 16
        items; p_holm and n_tests where a family has several effects.
    """
    n = len(scores)
    mean = scores.mean()
    sd = _deviations(scores)
    table = _t_tests(mean, sd / math.sqrt(n), n - 1, n).assign(d_z=(mean / sd).to_numpy())
    if n <= stats.MOST_EXACT:
        table["p_sign_flip"] = [stats.sign_flip(scores[name].to_numpy()).p for name in scores]
    return _with_holm(table, scores.columns.get_level_values(0))


def tests_by_level(scores: DataFrame, level_of_item: Series) -> DataFrame:
    """Returns the effects over the items of each level of a factor, then their differences.

    Args:
        scores: see `effect_scores`.
        level_of_item: item -> its level, a category.

    Returns:
        The columns of `paired_tests` and `level`; a difference of two levels, "high - low", has
        Welch's t test over n items in both, and p_holm over the pairs of more than two levels.
    """
    level = level_of_item.reindex(scores.index)
    parts = {x: scores[level == x] for x in level.cat.categories if (level == x).any()}
    tests = [paired_tests(part).assign(level=name) for name, part in parts.items()]
    pairs = [
        _welch_tests(parts[high], parts[low]).assign(level=f"{high} - {low}")
        for low, high in combinations(parts, 2)
    ]
    if pairs:
        differences = concat(pairs, ignore_index=True)
        tests.append(_with_holm(differences, differences["label"]))
    table = concat(tests, ignore_index=True)
    return table[["level", *table.columns.drop("level")]]


def _welch_tests(high: DataFrame, low: DataFrame) -> DataFrame:
    """Welch's t test of each effect between the items of two levels (Welch 1947)."""
    of_high = _deviations(high) ** 2 / len(high)
    of_low = _deviations(low) ** 2 / len(low)
    total = of_high + of_low
    df = total**2 / (of_high**2 / (len(high) - 1) + of_low**2 / (len(low) - 1))
    return _t_tests(high.mean() - low.mean(), np.sqrt(total), df, len(high) + len(low))


def _deviations(scores: DataFrame) -> Series:
    """The standard deviation of each column, NaN where it is rounding."""
    sd = scores.std()
    return sd.where(sd > 1e-12 * scores.abs().max())


def _t_tests(estimate: Series, se: Series, df: Series | int, n: int) -> DataFrame:
    """Estimates of the columns of `effect_scores` with 95% intervals and two-sided t tests."""
    margin = stdtrit(df, (1 + stats.LEVEL) / 2) * se
    t = estimate / se
    table = estimate.index.to_frame(index=True, name=["family", "effect", "label"])
    table = table.drop(columns="family").assign(
        n=n, estimate=estimate, ci_low=estimate - margin, ci_high=estimate + margin,
        t=t, df=df, p=2 * stdtr(df, -t.abs()),
    )  # fmt: skip
    return table.reset_index(drop=True)


def _with_holm(table: DataFrame, family: Index | Series) -> DataFrame:
    """The tests with p_holm and n_tests, if a family has several tests; missing for the others."""
    p = table["p"].groupby(family.to_numpy())
    is_several = p.transform("size") > 1
    if not is_several.any():
        return table
    adjusted = p.transform(lambda values: np.array(stats.holm([*values])))
    n_tests = p.transform("count").astype("Int64")
    return table.assign(p_holm=adjusted.where(is_several), n_tests=n_tests.where(is_several))
