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
"""Most conditions of an interaction that is tested."""

_ALPHA = 0.05
"""Significance level of interactions whose simple effects are tested."""

_ROUNDING = 1e-6
"""Contrasts that are smaller, relative to the largest response, are rounding of float32."""


def within_item_intervals(
    values: stats.Values, *, is_accuracy: bool = False
) -> list[stats.Interval]:
    """Returns the 95% interval of the mean of each cell, for comparisons within items.

    Each value is taken less the mean of its item, plus the grand mean, so that items do not differ.
    This makes the deviations within a cell too small, so they are stretched by sqrt(C / (C - 1))
    for C cells. The interval is Student's t interval of the stretched values; that of an accuracy
    is `stats.cell_interval`, which stays within 0 and 1.

    Args:
        values: of each item in each cell, (n, C), C > 1.
        is_accuracy: whether they are right (1) or wrong (0), or shares of right answers.

    Source: Cousineau (2005); Morey (2008).
    """
    cell_means = values.mean(axis=0)
    item_means = values.mean(axis=1, keepdims=True)
    n_cells = values.shape[1]
    deviations = values - item_means + values.mean() - cell_means
    stretched = cell_means + deviations * math.sqrt(n_cells / (n_cells - 1))
    if is_accuracy:
        return [
            stats.cell_interval(column, mean)
            for column, mean in zip(stretched.T, cell_means, strict=True)
        ]
    return [stats.mean_interval(column) for column in stretched.T]


def effect_scores(means: DataFrame, levels: Levels, coding: Coding = "sum") -> DataFrame:
    """Returns the contrast of each item (rows) for each effect (columns).

    For a main effect it is the mean of the cells of the second level less that of the first, for an
    interaction the difference of these differences; cells of other conditions are averaged. For
    example, an item with 5 in the cell (affirmative, short), 6 in (affirmative, long), 9 in
    (negated, short) and 12 in (negated, long) has the contrast 5 for polarity, 2 for length, and 2
    for their interaction.

    Args:
        means: the mean response of each item (rows) in each cell (columns, which have a level of
            each condition).
        levels: condition -> its levels; with more than two of them, the effect names the pair.
        coding: "difference" for successive levels, else all pairs of levels.

    Returns:
        A table whose columns have three names: the family of effects whose p-values are adjusted
        together, the effect and its label, e.g. ("a:b", "a:b", "a[a2 - a1]:b[b2 - b1]").
    """
    names = [*means.columns.names]
    # the cells may be those of one suite, and lack levels that other suites have
    cell_levels = {name: [*means.columns.unique(name)] for name in names}
    pairs_of = pairwise if coding == "difference" else partial(combinations, r=2)
    main_effects_and_interactions = [
        conditions for n in range(1, _MOST_CROSSED + 1) for conditions in combinations(names, n)
    ]
    column_names = []
    weights = []  # of the cells, for each effect
    for conditions in main_effects_and_interactions:
        for pairs in product(*(pairs_of(cell_levels[name]) for name in conditions)):
            pair_of = dict(zip(conditions, pairs, strict=True))
            labels = {name: f"{name}[{high} - {low}]" for name, (low, high) in pair_of.items()}
            effect = [name if len(levels[name]) == 2 else labels[name] for name in conditions]
            column_names.append((":".join(conditions), ":".join(effect), ":".join(labels.values())))
            weights_of_conditions = [
                _level_weights(cell_levels[name], pair_of.get(name, ())) for name in names
            ]
            # cells are in the order of the levels of the first condition, then the second ...
            weights.append(reduce(np.kron, weights_of_conditions))
    values = means.to_numpy()
    scores = values @ np.column_stack(weights)
    # contrasts of equal responses are 0 but for rounding, which would have a spread and a huge t
    scores[np.abs(scores) <= _ROUNDING * np.abs(values).max()] = 0.0
    return DataFrame(scores, means.index, MultiIndex.from_tuples(column_names))


def _level_weights(levels: Sequence[str], pair: Collection[str]) -> Any:
    """Returns a weight for each level, by which a weighted sum compares or averages levels.

    For a pair of levels it is the second less the first, e.g. [-1, 1, 0]; for () the mean of all,
    e.g. [1/3, 1/3, 1/3].
    """
    if not pair:
        return np.full(len(levels), 1 / len(levels))
    low, high = pair
    names = np.array(levels)
    return (names == high).astype(float) - (names == low)


def paired_tests(scores: DataFrame) -> DataFrame:
    """Returns the paired t test of each column of `effect_scores`, a row each.

    t, interval and d_z are NaN where the items do not differ.

    Args:
        scores: the contrast of each item (rows) for each effect (columns).

    Returns:
        effect, label, n (items), estimate, ci_low, ci_high, t, df, p, d_z; p_sign_flip of up to 16
        items; p_holm and n_tests where a family has several effects.
    """
    n = len(scores)
    mean = scores.mean()
    sd = _standard_deviations(scores)
    table = _effect_tests(mean, sd / math.sqrt(n), n - 1, n)
    table = table.assign(d_z=(mean / sd).to_numpy())
    if n <= stats.MOST_EXACT:
        table["p_sign_flip"] = [stats.sign_flip(scores[name].to_numpy()).p for name in scores]
    families = scores.columns.get_level_values(0)
    return _with_holm(table, families)


def simple_effects(means: DataFrame, levels: Levels) -> DataFrame:
    """Returns the tests of simple effects, for each significant interaction of two conditions.

    An interaction is significant where its t test has p < .05. The simple effects are those of its
    first condition at each level of the second; cells of other conditions are averaged. Only
    conditions of two levels are tested.

    Args:
        means, levels: see `effect_scores`.

    Returns:
        The columns of `paired_tests`, of which p_holm is over the simple effects and their
        interaction; before them `interaction`, and `condition` and `level`, the second condition
        and its level ("" in the row of the interaction).
    """
    names = [name for name in means.columns.names if len(levels[name]) == 2]
    tables = []
    for tested, given in combinations(names, 2):
        interaction_name = f"{tested}:{given}"
        means_of_both = means.T.groupby(level=[tested, given], sort=False).mean().T
        scores = effect_scores(means_of_both, levels)
        # a single column, since each of the two conditions has two levels
        interaction = scores[[column for column in scores if column[0] == interaction_name]]
        is_significant = paired_tests(interaction)["p"].iloc[0] < _ALPHA
        if not is_significant:
            continue
        parts = [interaction]
        for level in levels[given]:
            scores = effect_scores(means.xs(level, axis="columns", level=given), levels)
            column = next(column for column in scores if column[0] == tested)
            _, _, label = column
            simple = scores[[column]]
            # of the family of the interaction: p-values are adjusted over both
            key = (interaction_name, f"{tested}, {given} = {level}", f"{label}, {given} = {level}")
            simple.columns = MultiIndex.from_tuples([key])
            parts.append(simple)
        table = paired_tests(concat(parts, axis="columns"))
        table.insert(0, "interaction", interaction_name)
        table.insert(1, "condition", given)
        table.insert(2, "level", ["", *levels[given]])
        tables.append(table)
    return concat(tables, ignore_index=True) if tables else DataFrame()


def tests_by_level(scores: DataFrame, level_of_item: Series) -> DataFrame:
    """Returns the effects over the items of each level of a factor, then their differences.

    The columns are `level` and those of `paired_tests`, `label` (the effect) among them. For
    example, of a factor with the levels low and high and one effect, rows have the `level` "low",
    "high" and "high - low".

    A row of a level has a paired t test over its items. A row of a difference has Welch's t test of
    the items of one level against those of the other, and n is the number of both together. Of
    three levels and more, `p_holm` of a difference is p adjusted over all pairs of levels; with two
    levels there is one difference, and its `p_holm` is missing.

    Args:
        scores: the contrast of each item (rows) for each effect (columns).
        level_of_item: item -> its level, a category.
    """
    levels = level_of_item.reindex(scores.index)
    scores_of_level = {}
    for level in levels.cat.categories:
        is_of_level = levels == level
        if is_of_level.any():
            scores_of_level[level] = scores[is_of_level]
    tests = [
        paired_tests(level_scores).assign(level=level)
        for level, level_scores in scores_of_level.items()
    ]
    differences = [
        _welch_tests(scores_of_level[high], scores_of_level[low]).assign(level=f"{high} - {low}")
        for low, high in combinations(scores_of_level, 2)
    ]
    if differences:
        table = concat(differences, ignore_index=True)
        # the family of a test: the differences of the same effect between all pairs of levels
        tests.append(_with_holm(table, table["label"]))
    table = concat(tests, ignore_index=True)
    return table[["level", *table.columns.drop("level")]]


def _welch_tests(high: DataFrame, low: DataFrame) -> DataFrame:
    """Welch's t test of each effect between the items of two levels (Welch 1947).

    Args:
        high, low: the contrast of each item of a level (rows) for each effect (columns).
    """
    high_variance = _standard_deviations(high) ** 2 / len(high)  # of the mean
    low_variance = _standard_deviations(low) ** 2 / len(low)
    variance = high_variance + low_variance  # of the difference of the means
    df = variance**2 / (high_variance**2 / (len(high) - 1) + low_variance**2 / (len(low) - 1))
    return _effect_tests(high.mean() - low.mean(), np.sqrt(variance), df, len(high) + len(low))


def _standard_deviations(scores: DataFrame) -> Series:
    """The standard deviation of each column; NaN where it is nothing but rounding."""
    sd = scores.std()
    return sd.where(sd > 1e-12 * scores.abs().max())


def _effect_tests(estimate: Series, se: Series, df: Series | int, n: int) -> DataFrame:
    """Returns a row for each effect: its names, n, estimate, 95% interval and two-sided t test.

    Args:
        estimate, se: of each effect; the index has three names of each effect: its family, e.g.
            "a:b", the effect, and the effect with its levels, e.g. "a[a2 - a1]:b[b2 - b1]".
        df: degrees of freedom.
        n: number of items.
    """
    columns = ["estimate", "ci_low", "ci_high", "t", "df", "p"]
    tests = t_tests(estimate, se, df)[columns].reset_index(drop=True)
    tests.insert(0, "effect", estimate.index.get_level_values(1))
    tests.insert(1, "label", estimate.index.get_level_values(2))
    tests.insert(2, "n", n)
    return tests


def _with_holm(table: DataFrame, families: Index | Series) -> DataFrame:
    """Adds the columns p_holm, p adjusted over the tests of a family by Holm's method, and n_tests.

    Both are missing in the rows of families of one test. If all families have one test, the table
    is returned without these columns. For example, p of .01 and .02 in one family become .02 and
    .02.

    Args:
        table: a row for each test, with the column p.
        families: the family of each test, parallel to the rows.
    """
    p_of_family = table["p"].groupby(families.to_numpy())
    is_several = p_of_family.transform("size") > 1
    if not is_several.any():
        return table
    p_holm = p_of_family.transform(lambda p_values: np.array(stats.holm([*p_values])))
    n_tests = p_of_family.transform("count").astype("Int64")
    return table.assign(p_holm=p_holm.where(is_several), n_tests=n_tests.where(is_several))
