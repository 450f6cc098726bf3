"""Effects of conditions over items: a contrast of cells for each item, and t tests of contrasts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial, reduce
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from pandas import DataFrame, Index, MultiIndex, Series, concat

from lmdiag import stats
from lmdiag.analysis.linear import t_tests
from lmdiag.types import Coding

Levels = Mapping[str, tuple[str, ...]]
"""Condition -> its levels in order."""

_MOST_CROSSED = 3
"""Conditions of an interaction."""

_ALPHA = 0.05

_ROUNDING = 1e-6
"""Contrasts that are smaller, relative to the largest response, are rounding of float32."""


def within_item_intervals(
    values: stats.Values, *, is_accuracy: bool = False
) -> list[stats.Interval]:
    """Returns the 95% interval of the mean of each cell, for comparisons within items.

    Each value is taken less the mean of its item, plus the grand mean; the deviations within a cell
    are then stretched by sqrt(C / (C - 1)) for C cells, and have a t interval; of an accuracy, see
    `stats.cell_interval`.

    Args:
        values: of each item in each cell, (n, C), C > 1.
        is_accuracy: whether they are right (1) or wrong (0), or shares of right answers.

    Source: Cousineau (2005); Morey (2008).
    """
    mean = values.mean(axis=0)
    n_cells = values.shape[1]
    deviations = values - values.mean(axis=1, keepdims=True) + values.mean() - mean
    stretched = mean + deviations * math.sqrt(n_cells / (n_cells - 1))
    if is_accuracy:
        return [stats.cell_interval(*pair) for pair in zip(stretched.T, mean, strict=True)]
    return [stats.mean_interval(column) for column in stretched.T]


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
    names = [*means.columns.names]
    cell_levels = {name: [*means.columns.unique(name)] for name in names}
    pairs_of = pairwise if coding == "difference" else partial(combinations, r=2)
    effects = []
    weights = []
    crossed = [factors for n in range(1, _MOST_CROSSED + 1) for factors in combinations(names, n)]
    for conditions in crossed:
        for pairs in product(*(pairs_of(cell_levels[name]) for name in conditions)):
            compared = dict(zip(conditions, pairs, strict=True))
            labels = {name: f"{name}[{high} - {low}]" for name, (low, high) in compared.items()}
            names_in_effect = [
                name if len(levels[name]) == 2 else labels[name] for name in conditions
            ]
            effects.append(
                (":".join(conditions), ":".join(names_in_effect), ":".join(labels.values()))
            )
            parts = [_weights(cell_levels[name], compared.get(name, ())) for name in names]
            # cells are in the order of the levels of the first condition, then the second ...
            weights.append(reduce(np.kron, parts))
    values = means.to_numpy()
    scores = values @ np.column_stack(weights)
    # else items with equal responses would have a spread, and a huge t
    scores[np.abs(scores) <= _ROUNDING * np.abs(values).max()] = 0.0
    return DataFrame(scores, means.index, MultiIndex.from_tuples(effects))


def _weights(levels: Sequence[str], pair: Collection[str]) -> Any:
    """The weights of levels for their mean, or for the second of a pair less the first."""
    if not pair:
        return np.full(len(levels), 1 / len(levels))
    low, high = pair
    names = np.array(levels)
    return (names == high).astype(float) - (names == low)


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


def simple_effects(means: DataFrame, levels: Levels) -> DataFrame:
    """Returns the tests of simple effects, for each interaction of two conditions that is there.

    It is there where its t test rejects at the 5% level. The simple effects are those of its first
    condition at each level of the second; cells of other conditions are averaged. Only conditions
    of two levels have them.

    Args:
        means, levels: see `effect_scores`.

    Returns:
        The columns of `paired_tests`, of which p_holm is over the simple effects and their
        interaction; before them `interaction`, and `condition` and `level`, the second condition
        and its level ("" in the row of the interaction).
    """
    names = [name for name in means.columns.names if len(levels[name]) == 2]
    tables = []
    for first, second in combinations(names, 2):
        scores = effect_scores(means.T.groupby(level=[first, second], sort=False).mean().T, levels)
        interaction = scores[[column for column in scores if column[0] == f"{first}:{second}"]]
        if not paired_tests(interaction)["p"].iloc[0] < _ALPHA:
            continue
        parts = [interaction]
        for level in levels[second]:
            simple = effect_scores(means.xs(level, axis="columns", level=second), levels)
            column = next(column for column in simple if column[0] == first)
            simple_key = (interaction.columns[0][0], f"{first}, {second} = {level}")
            simple = simple[[column]]
            simple.columns = MultiIndex.from_tuples(
                [(*simple_key, f"{column[2]}, {second} = {level}")]
            )
            parts.append(simple)
        table = paired_tests(concat(parts, axis="columns"))
        columns_before = {"interaction": f"{first}:{second}", "condition": second}
        table = table.assign(**columns_before, level=["", *levels[second]])
        tables.append(
            table[[*columns_before, "level", *table.columns.drop([*columns_before, "level"])]]
        )
    return concat(tables, ignore_index=True) if tables else DataFrame()


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
    high_variance = _deviations(high) ** 2 / len(high)
    low_variance = _deviations(low) ** 2 / len(low)
    total = high_variance + low_variance
    df = total**2 / (high_variance**2 / (len(high) - 1) + low_variance**2 / (len(low) - 1))
    return _t_tests(high.mean() - low.mean(), np.sqrt(total), df, len(high) + len(low))


def _deviations(scores: DataFrame) -> Series:
    """The standard deviation of each column, NaN where it is rounding."""
    sd = scores.std()
    return sd.where(sd > 1e-12 * scores.abs().max())


def _t_tests(estimate: Series, se: Series, df: Series | int, n: int) -> DataFrame:
    """Estimates of the columns of `effect_scores` with 95% intervals and two-sided t tests."""
    columns = ["estimate", "ci_low", "ci_high", "t", "df", "p"]
    tests = t_tests(estimate, se, df)[columns].reset_index(drop=True)
    tests.insert(0, "effect", estimate.index.get_level_values(1))
    tests.insert(1, "label", estimate.index.get_level_values(2))
    tests.insert(2, "n", n)
    return tests


def _with_holm(table: DataFrame, family: Index | Series) -> DataFrame:
    """The tests with p_holm and n_tests, if a family has several tests; missing for the others."""
    p = table["p"].groupby(family.to_numpy())
    is_several = p.transform("size") > 1
    if not is_several.any():
        return table
    adjusted = p.transform(lambda values: np.array(stats.holm([*values])))
    n_tests = p.transform("count").astype("Int64")
    return table.assign(p_holm=adjusted.where(is_several), n_tests=n_tests.where(is_several))
