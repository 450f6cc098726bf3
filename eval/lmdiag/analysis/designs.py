"""The design of a table of items: cell means within items, effects over items, mixed models."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import stats
from lmdiag.analysis.items import PARTS, SCORES
from lmdiag.analysis.linear import Coding, LinearFit, fit_mixed
from lmdiag.perturb import NONE
from lmdiag.text import shortened
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Levels = Mapping[str, tuple[str, ...]]
"""Condition -> its levels in alphabetical order, numbers by size."""

UNITS = {"surprisal": "bits", "log_odds": "nats", "correct": "share"}
"""Response -> its unit; others have none, or it is not known."""

_MOST_LEVELS, _MOST_CROSSED, _EXACT = 6, 3, 16
"""Levels of a condition that is found; conditions of an interaction; items for a sign-flip p."""

_NEVER_FOUND = {
    *SCORES, "model", "signature", "task", "perturbation", "shuffle", "id", "item",
    "contrast", "context", "right_context", "target", "sentence", "expected", "word", "region",
    "regions", "formulas",
}  # fmt: skip
"""Columns that are conditions only where they are named."""

_ROUNDING = 1e-6
"""Contrasts that are smaller, relative to the largest response, are rounding of float32."""


@dataclass(frozen=True)
class Analysis:
    """Cells, effects and mixed models of one response.

    Where the suites of a folder have different conditions, each suite is analysed by itself; the
    tables then begin with a column `suite`.

    Attributes:
        response: its name.
        conditions: see `Levels`; empty where there is only a formula.
        items: the mean response of each item in each cell: model, item, the conditions, value.
        left_out: suite and model -> number of items that lack a cell.
        cells: a row per model and cell: model, the conditions, n (items), mean, ci_low, ci_high
            (95% within items).
        effects: a row per model and effect: model, effect, n (items), estimate (second less first
            level; of an interaction, the difference of these differences), ci_low, ci_high (95%),
            t, df, p, p_sign_flip (for n up to 16), p_holm (over the pairs of levels, for conditions
            of more than two), d_z (estimate in standard deviations over items).
        differences: the same, of the effects of the first model less those of each other one.
        mixed: model -> fit; "" for a formula with the column `model`, which is of all rows.
    """

    response: str
    conditions: Levels
    items: DataFrame
    left_out: Mapping[tuple[str, str], int]
    cells: DataFrame
    effects: DataFrame
    differences: DataFrame
    mixed: Mapping[str, LinearFit]

    @property
    def has_models(self) -> bool:
        """Whether there are several models."""
        return len({*self.cells.get("model", ()), *self.mixed}) > 1

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag analyse --json` prints; undefined numbers are None.

        Models are named where there are several; p_sign_flip and p_holm where there are any.
        """
        from pandas import DataFrame

        terms = [{"model": m, **vars(term)} for m, fit in self.mixed.items() for term in fit.terms]
        tables = {"cells": self.cells, "effects": self.effects, "mixed": DataFrame(terms)}
        if self.has_models:
            tables["differences"] = self.differences
        record: dict[str, Any] = {}
        for name, table in tables.items():
            shown = table if self.has_models else table.drop(columns="model", errors="ignore")
            record[name] = shown.astype(object).where(shown.notna(), None).to_dict("records")
        record["mixed"] = record["mixed"] or None
        if warnings := [fit.warning for fit in self.mixed.values() if fit.warning]:
            record["warning"] = warnings[0]
        return record


def analyse_table(
    table: DataFrame,
    *,
    response: str = "",
    conditions: Sequence[str] = (),
    formula: str = "",
    region: str = "",
    coding: Coding = "sum",
) -> Analysis:
    """Analyses the items of one or several models.

    Args:
        table: a row per item and condition, with a column `item` (or `contrast`), and a column
            `model` where there are several; see `lmdiag.analysis.items.items_of`.
        response: a column of numbers; or "probability" or "log_odds", which follow from a column
            surprisal in bits; or "correct": whether the good row of a contrast is the most
            probable, or else whether the top word is expected. "": the left side of the formula,
            else surprisal.
        conditions: columns; () for those that `find_conditions` finds, in each suite by itself if
            suites have different conditions.
        formula: of a mixed model, see `fit_mixed`; fitted to the rows of each model, or to all
            rows if it has the column `model`.
        region: number or name of the region, in a table with a row per region.
        coding: of conditions and columns of text in the formula, see `fit_mixed`.

    Raises:
        BadInput: there is no item column, no condition, no such response or region, no item with
            all cells, or the formula cannot be fitted.
    """
    table = _chosen(table, region)
    response = response or formula.partition("~")[0].strip(" `") or "surprisal"
    table[response] = _response(table, response).replace([np.inf, -np.inf], np.nan)
    if unknown := [name for name in conditions if name not in table]:
        raise BadInput(f"no column {unknown[0]!r}: choose from {', '.join(map(str, table))}")
    means = _means(table, conditions, response, required=not formula)
    names = dict.fromkeys(name for wide in means.values() for name in wide.columns.names)
    levels = {name: levels_in_order(table[name]) for name in names}
    complete = {key: wide.dropna() for key, wide in means.items()}
    scores = {key: effect_scores(wide, levels) for key, wide in complete.items()}
    models = dict(iter(table.groupby("model", sort=False)))
    first = next(iter(models), "")
    gaps = {
        (suite, f"{first} - {model}"): (scores[suite, first] - contrasts).dropna()
        for (suite, model), contrasts in scores.items()
        if model != first and (suite, first) in scores
    }
    fitted = {"": table} if re.search(r"(?<!\w)model(?!\w)", formula) else models
    return Analysis(
        response=response,
        conditions=levels,
        items=_stacked({k: w.melt(ignore_index=False).reset_index() for k, w in complete.items()}),
        left_out={k: len(w) - len(complete[k]) for k, w in means.items()},
        cells=_stacked({key: _cell_means(wide) for key, wide in complete.items()}),
        effects=_stacked({key: _effect_tests(contrasts) for key, contrasts in scores.items()}),
        differences=_stacked({key: _effect_tests(contrasts) for key, contrasts in gaps.items()}),
        mixed={
            model: fit_mixed(formula, _typed(rows, levels), coding=coding)
            for model, rows in (fitted if formula else {}).items()
        },
    )


def _stacked(tables: Mapping[tuple[str, str], DataFrame]) -> DataFrame:
    """The tables below each other, with the model, and the suite if each is by itself."""
    from pandas import DataFrame, concat

    if not tables:
        return DataFrame()
    whole = concat(tables, names=["suite", "model"]).reset_index(["suite", "model"])
    texts = whole.select_dtypes(["object", "str"]).columns
    whole[texts] = whole[texts].fillna("")  # conditions of other suites
    return whole.reset_index(drop=True).drop(columns=[] if whole["suite"].any() else "suite")


# ---- the table -----------------------------------------------------------------------------------


def _chosen(table: DataFrame, region: str) -> DataFrame:
    """The unperturbed rows of a task and region, with `item` and `model`."""
    table = table.set_axis(list(map(str, table.columns)), axis=1)
    if not table.columns.is_unique:
        raise BadInput("the table has two columns of one name: rename one of them")
    if "perturbation" in table:
        table = table[table["perturbation"] == NONE]
    if "task" in table and table["task"].nunique() > 1:
        tasks = ", ".join(dict.fromkeys(table["task"]))
        raise BadInput(f"there are several tasks: choose one with --task from {tasks}")
    has_regions = set(PARTS) <= set(table.columns)
    if region or (has_regions and table["number"].nunique() > 1):
        names = [name for name in ("number", "name", "region") if name in table]
        if not names:
            raise BadInput("the table has no regions: write it with --per region")
        texts = table[names].apply(level_texts)
        table = table[(texts == region).any(axis=1)]
        if table.empty:
            known = texts.fillna("").drop_duplicates()[:20].agg(" ".join, axis=1).str.strip()
            regions = ", ".join(map(shortened, known))
            raise BadInput(f"choose a region with --region from {regions}")
    table = table.reset_index(drop=True)
    names = [name for name in ("model", "signature") if name in table]
    if len(names) == 2 and len(table[names].drop_duplicates()) == table["model"].nunique():
        names = names[:1]  # else the same model was asked in several ways
    table["model"] = table[names].astype(str).agg(" ".join, axis=1) if names else ""
    is_alone = "item" not in table or not table.duplicated(["model", "item"]).any()
    if is_alone and "contrast" in table:  # no item has two rows
        table["item"] = table["contrast"]
    return table


def _response(table: DataFrame, response: str) -> Series:
    """The response of each row, NaN where it is not known; see `analyse_table`."""
    import pandas as pd
    from scipy.special import logit

    columns = set(table)
    if response in columns:
        try:
            return pd.to_numeric(table[response]).astype(float)
        except (ValueError, TypeError):
            raise BadInput(f"the column {response} has values that are not numbers") from None
    if response in ("probability", "log_odds") and "surprisal" in columns:
        probability = 2.0 ** -table["surprisal"].astype(float)
        return probability if response == "probability" else logit(probability)
    if response == "correct" and {"good", "contrast", "surprisal"} <= columns:
        good = level_texts(table["good"]).isin(["true", "1"])  # it is known in good rows alone
        bits = table["surprisal"].astype(float)
        keys = [table["model"], table["contrast"]]
        worse = bits.mask(good).groupby(keys).transform("min")
        unknown = bits.isna().groupby(keys).transform("any")
        return (bits < worse).astype(float).where(good & ~unknown)
    if response == "correct" and {"expected", "top_word"} <= columns:
        pairs = table[["top_word", "expected"]].dropna().map(str.lower)
        hits = [word in expected.split("|") for word, expected in pairs.to_numpy()]
        return pd.Series(hits, pairs.index, dtype=float).reindex(table.index)
    if response == "correct":
        raise BadInput("correct needs the columns good and contrast, or expected and top_word")
    names = [str(name) for name in table if pd.api.types.is_numeric_dtype(table[name])]
    raise BadInput(f"no column {response!r}: choose --response from {', '.join(names)}")


def level_texts(column: Series) -> Series:
    """Returns values as texts: truth values in lower case, 1.0 as "1"; what is missing is NaN."""
    texts = column.map(str)
    if column.dtype.kind == "f":
        texts = texts.str.removesuffix(".0")
    is_truth = texts.str.lower().isin(["true", "false"])
    return texts.where(~is_truth, texts.str.lower()).where(column.notna() & (texts != ""))


def levels_in_order(column: Series) -> tuple[str, ...]:
    """Returns the levels of a column in alphabetical order, numbers by size."""
    levels = sorted(level_texts(column).dropna().unique())
    try:
        return tuple(sorted(levels, key=float))
    except ValueError:
        return tuple(levels)


def _typed(table: DataFrame, levels: Levels) -> DataFrame:
    """The table with conditions as categories, and texts of numbers as numbers."""
    from pandas import Categorical, to_numeric

    columns = {}
    for name in table.columns:
        texts = level_texts(table[name])
        numbers = to_numeric(texts, errors="coerce")
        columns[name] = numbers if numbers.count() == texts.count() else texts
        if name in levels:
            columns[name] = Categorical(texts, levels[name])
    return table.assign(**columns)


# ---- the design ----------------------------------------------------------------------------------


def find_conditions(table: DataFrame) -> list[str]:
    """Returns the columns that are conditions of a design.

    A condition has 2 to 6 levels, and at least half of the items have all of them; other columns
    are covariates or text. A column that follows from other conditions is left out, as one that
    names their cells does.
    """
    never = _NEVER_FOUND | (set(PARTS) if set(PARTS) <= set(table.columns) else set())
    n_levels = table.drop(columns=[name for name in never if name in table]).nunique()
    n_levels = n_levels[n_levels.between(2, _MOST_LEVELS)]
    has_all = table.groupby("item")[[*n_levels.index]].nunique().eq(n_levels)
    found = [name for name in n_levels.index if has_all[name].mean() >= 0.5]

    def follows(name: str, others: list[str]) -> bool:
        return bool(others) and table.groupby(others)[name].nunique().max() <= 1

    chosen: list[str] = []
    for name in sorted(found, key=lambda name: (n_levels[name], name == "good")):
        if not follows(name, chosen):
            chosen = [*(other for other in chosen if not follows(other, [name])), name]
    return [name for name in found if name in chosen]


def _means(
    table: DataFrame, conditions: Sequence[str], response: str, *, required: bool
) -> dict[tuple[str, str], DataFrame]:
    """Suite and model -> the mean response of each item (rows) in each cell (columns).

    Suites with different conditions are apart, and those without a design are left out. Raises
    `BadInput` if nothing is left and conditions are named or a design is required.
    """
    suites = {"": table}
    if {"item", "suite"} <= set(table) and not (conditions or find_conditions(table)):
        suites = dict(iter(table.groupby("suite", sort=False)))
    means: dict[tuple[str, str], DataFrame] = {}
    problems = []
    for suite, rows in suites.items():
        try:
            means |= _means_of_suite(rows, str(suite), conditions, response)
        except BadInput as error:
            problems.append(error)
    if not means and (conditions or required):
        raise problems[0]
    return means


def _means_of_suite(
    table: DataFrame, suite: str, conditions: Sequence[str], response: str
) -> dict[tuple[str, str], DataFrame]:
    """The means of one suite, or of a table without suites; see `_means`."""
    from pandas import DataFrame, MultiIndex

    if "item" not in table:
        raise BadInput("the table has no column item, which names the items of the design")
    names = list(conditions) or find_conditions(table)
    if not names:
        raise BadInput(
            "no column with 2 to 6 levels differs within items: name the conditions with "
            "--conditions, and the items in the column item"
        )
    levels = [levels_in_order(table[name]) for name in names]
    if single := [name for name, of in zip(names, levels, strict=True) if len(of) < 2]:
        raise BadInput(f"the column {single[0]} has fewer than two levels")
    cells = MultiIndex.from_product(levels, names=names)
    texts = table.assign(**{name: level_texts(table[name]) for name in ("item", *names)})
    means = {}
    for model, rows in texts.groupby("model", sort=False):
        items = rows["item"].dropna().unique()
        every = MultiIndex.from_product([items, *levels])
        values = rows.groupby(["item", *names])[response].mean().reindex(every).to_numpy()
        wide = DataFrame(values.reshape(-1, len(cells)), items, cells).rename_axis("item")
        if wide.isna().any(axis=1).all():
            raise BadInput(
                f"no item has a value in all {len(cells)} cells of {' x '.join(names)}: name the "
                "conditions with --conditions"
            )
        means[suite, str(model)] = wide
    return means


def within_item_intervals(values: stats.Values) -> list[stats.Interval]:
    """Returns the 95% interval of the mean of each cell, for comparisons within items.

    Each value is taken less the mean of its item, plus the grand mean; the deviations within a cell
    are then stretched by sqrt(C / (C - 1)) for C cells, and have a t interval.

    Args:
        values: of each item in each cell, (n, C), C > 1.

    Source: Cousineau (2005); Morey (2008).
    """
    mean, n_cells = values.mean(axis=0), values.shape[1]
    deviations = values - values.mean(axis=1, keepdims=True) + values.mean() - mean
    stretched = mean + deviations * math.sqrt(n_cells / (n_cells - 1))
    return [stats.mean_interval(column) for column in stretched.T]


def _cell_means(means: DataFrame) -> DataFrame:
    """The mean of each column of `_means` with its interval; see `Analysis.cells`."""
    low, high = np.transpose(within_item_intervals(means.to_numpy()))
    table = means.columns.to_frame(index=False)
    return table.assign(n=len(means), mean=means.mean().to_numpy(), ci_low=low, ci_high=high)


def effect_scores(means: DataFrame, named: Levels) -> DataFrame:
    """Returns the contrast of each item (rows) for each effect (columns).

    For a main effect it is the mean of the cells of the second level less that of the first, for an
    interaction the difference of these differences; cells of other conditions are averaged. The
    columns are pairs of a family, which Holm's method adjusts together, and a name.

    Args:
        means: of each item in each cell, see `_means`.
        named: conditions with more than two levels here have the pair of levels in the name.
    """
    from pandas import DataFrame, MultiIndex

    sides = []  # of each condition: family, name and weights of its levels
    for name in means.columns.names:
        levels = means.columns.unique(name)
        averaged = ("", "", np.full(len(levels), 1 / len(levels)))
        pairs = [
            (
                str(name),
                name if len(named[name]) == 2 else f"{name}[{high} - {low}]",
                (levels == high) * 1.0 - (levels == low),
            )
            for low, high in combinations(levels, 2)
        ]
        sides.append([*pairs, averaged])
    weights = {}
    for crossed in product(*sides):
        families, labels, vectors = zip(*crossed, strict=True)
        if 0 < sum(map(bool, families)) <= _MOST_CROSSED:
            key = ":".join(filter(None, families)), ":".join(filter(None, labels))
            weights[key] = reduce(np.kron, vectors)
    columns = sorted(weights, key=lambda key: key[0].count(":"))  # main effects first
    values = means.to_numpy()
    scores = values @ np.column_stack([weights[key] for key in columns])
    scores[np.abs(scores) <= _ROUNDING * np.abs(values).max()] = 0.0
    return DataFrame(scores, means.index, MultiIndex.from_tuples(columns))


def _effect_tests(scores: DataFrame) -> DataFrame:
    """The paired t test of each column of `effect_scores`, as rows of `Analysis.effects`.

    t, interval and d_z are not defined where the items do not differ.
    """
    from pandas import DataFrame
    from scipy.special import stdtr, stdtrit

    n, mean, sd = len(scores), scores.mean(), scores.std()
    sd = sd.where(sd > 1e-12 * scores.abs().max())
    t = mean / sd * math.sqrt(n)
    margin = stdtrit(n - 1, (1 + stats.LEVEL) / 2) * sd / math.sqrt(n) if n > 1 else math.nan
    table = DataFrame({"effect": scores.columns.get_level_values(1), "n": n}, mean.index)
    table = table.assign(estimate=mean, ci_low=mean - margin, ci_high=mean + margin, t=t)
    table = table.assign(df=n - 1, p=2 * stdtr(n - 1, -t.abs()))
    if n <= _EXACT:
        table["p_sign_flip"] = scores.apply(lambda column: stats.sign_flip(column.to_numpy()))
    families = table.groupby(level=0)["p"]
    if (has_pairs := families.transform("size") > 1).any():
        adjusted = families.transform(lambda p: np.array(stats.holm([*p])))
        table["p_holm"] = adjusted.where(has_pairs)
    return table.assign(d_z=mean / sd).reset_index(drop=True)
