"""The design of a table of items: cell means within items, effects over items, mixed models."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmdiag import stats
from lmdiag.analysis.items import PARTS, SCORES
from lmdiag.analysis.mixed import Coding, MixedFit, fit_mixed
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


class Cells(NamedTuple):
    """The items of a model that have all cells.

    Attributes:
        means: mean response of each item in each cell, in the order of the levels, (n, cells).
        items: their names.
        left_out: number of items that lack a cell.
    """

    means: np.ndarray[Any, np.dtype[np.float64]]
    items: list[str]
    left_out: int


@dataclass(frozen=True)
class Analysis:
    """Cells, effects and mixed models of one response.

    Attributes:
        response: its name.
        conditions: see `Levels`; empty where there is only a formula.
        items: model -> its items.
        cells: a row per model and cell: model, the conditions, n (items), mean, ci_low, ci_high
            (95% within items).
        effects: a row per model and effect: model, effect, n (items), estimate (second less first
            level; of an interaction, the difference of these differences), ci_low, ci_high (95%),
            t, df, p, d_z (estimate in standard deviations over items), p_sign_flip (for n up to
            16), p_holm (over the pairs of levels, for conditions of more than two).
        differences: the same, of the effects of the first model less those of each other one.
        mixed: model -> fit; "" for a formula with the column `model`, which is of all rows.
    """

    response: str
    conditions: Levels
    items: Mapping[str, Cells]
    cells: DataFrame
    effects: DataFrame
    differences: DataFrame
    mixed: Mapping[str, MixedFit]

    @property
    def unit(self) -> str:
        """Unit of the response; "" where it is not known."""
        return UNITS.get(self.response, "")

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag analyse --json` prints; undefined numbers are None.

        Models are named where there are several; p_sign_flip and p_holm where there are any.
        """
        from pandas import DataFrame

        terms = [{"model": m, **vars(term)} for m, fit in self.mixed.items() for term in fit.terms]
        several = len(set(self.items) | set(self.mixed)) > 1
        record: dict[str, Any] = {
            "cells": _records(self.cells, several),
            "effects": _records(self.effects, several),
            "mixed": _records(DataFrame(terms), several) or None,
        }
        if several:
            record["differences"] = _records(self.differences, several)
        if warnings := [fit.warning for fit in self.mixed.values() if fit.warning]:
            record["warning"] = warnings[0]
        return record


def _records(table: DataFrame, has_model: bool) -> list[dict[str, Any]]:
    table = table if has_model or "model" not in table else table.drop(columns="model")
    optional = [name for name in ("p_sign_flip", "p_holm") if name in table]
    empty = [name for name in optional if table[name].isna().all()]
    rows = table.drop(columns=empty).astype(object).to_dict("records")
    return [{str(k): None if v != v else v for k, v in row.items()} for row in rows]


def analyse_table(
    table: DataFrame,
    *,
    response: str = "",
    conditions: Sequence[str] = (),
    formula: str = "",
    region: str = "",
    coding: Coding = "sum",
    filters: Sequence[str] = (),
) -> Analysis:
    """Analyses the items of one or several models.

    Args:
        table: a row per item and condition, with a column `item` (or `contrast`), and a column
            `model` where there are several; see `lmdiag.analysis.items.items_table`.
        response: a column of numbers; or "probability" or "log_odds", which follow from a column
            surprisal in bits; or "correct": whether the good row of a contrast is the most
            probable, or else whether the top word is expected. "": the left side of the formula,
            else surprisal.
        conditions: columns; () for those that `find_conditions` finds.
        formula: of a mixed model, see `lmdiag.analysis.mixed`; fitted to the rows of each model, or
            to all rows if it has the column `model`.
        region: number or name of the region, in a table with a row per region.
        coding: of conditions and columns of text in the formula. "sum": -0.5 and 0.5 for two levels
            in alphabetical order, deviations from the mean of the levels for more; "treatment": 0
            and 1.
        filters: "COLUMN=VALUE" texts; rows with other values are left out.

    Raises:
        BadInput: there is no item column, no condition, no such response or region, no item with
            all cells, or the formula cannot be fitted.
    """
    import pandas as pd

    table = _prepared(table, region, filters)
    response = response or formula.partition("~")[0].strip(" `") or "surprisal"
    table[response] = response_of(table, response)
    table = table.replace({response: [np.inf, -np.inf]}, np.nan)
    if unknown := [name for name in conditions if name not in table]:
        raise BadInput(f"no column {unknown[0]!r}: choose from {', '.join(map(str, table))}")
    parts: dict[str, DataFrame] = dict(iter(table.groupby("model", sort=False)))
    try:
        levels = _levels(table, conditions)
        items = {model: _cells(rows, levels, response) for model, rows in parts.items()}
    except BadInput:
        if conditions or not formula:
            raise
        levels, items = {}, {}  # a formula needs no items and no design
    scores = {model: effect_scores(cells, levels) for model, cells in items.items()}
    first = next(iter(parts))
    gaps = {
        f"{first} - {other}": (scores[first] - scores[other]).dropna() for other in [*scores][1:]
    }
    is_joint = bool(re.search(r"(?<!\w)model(?!\w)", formula))
    fits = {}
    for model, rows in ({"": table} if is_joint else parts).items() if formula else ():
        coded, coding_of = _coded(rows, levels, formula, coding)
        fits[model] = fit_mixed(formula, coded, coding=coding_of)
    means = {model: cell_means(cells, levels) for model, cells in items.items()}
    return Analysis(
        response=response,
        conditions=levels,
        items=items,
        cells=pd.concat(means, names=["model"]).reset_index("model") if means else pd.DataFrame(),
        effects=_effects(scores),
        differences=_effects(gaps),
        mixed=fits,
    )


# ---- the table -----------------------------------------------------------------------------------


def _prepared(table: DataFrame, region: str, filters: Sequence[str]) -> DataFrame:
    """The unperturbed rows of a task and region that pass the filters, with `item` and `model`."""
    table = table.set_axis(list(map(str, table.columns)), axis=1)
    if not table.columns.is_unique:
        raise BadInput("the table has two columns of one name: rename one of them")
    if "perturbation" in table:
        table = table[table["perturbation"] == NONE]
    if "task" in table and table["task"].nunique() > 1:
        tasks = ", ".join(dict.fromkeys(table["task"]))
        raise BadInput(f"there are several tasks: choose one with --task from {tasks}")
    for condition in filters:
        name, sign, value = map(str.strip, condition.partition("="))
        if not sign or name not in table:
            known = ", ".join(table)
            raise BadInput(f"filter {condition!r}: write it as COLUMN=VALUE, columns are {known}")
        texts = level_texts(table[name])
        if not (texts == value).any():
            known = ", ".join(map(shortened, texts.dropna().unique()[:20]))
            raise BadInput(f"filter {condition!r}: no row has this value; values are {known}")
        table = table[texts == value]
    table = _of_region(table, region).reset_index(drop=True)
    names = [name for name in ("model", "signature") if name in table]
    if len(names) == 2 and len(table[names].drop_duplicates()) == table["model"].nunique():
        names = names[:1]  # else the same model was asked in several ways
    table["model"] = table[names].astype(str).agg(" ".join, axis=1) if names else ""
    is_alone = "item" not in table or not table.duplicated(["model", "item"]).any()
    if is_alone and "contrast" in table:  # no item has two rows
        table["item"] = table["contrast"]
    return table


def _levels(table: DataFrame, conditions: Sequence[str]) -> Levels:
    """The conditions of a design that are named, or found, and their levels."""
    if "item" not in table:
        raise BadInput("the table has no column item, which names the items of the design")
    names = list(conditions) or find_conditions(table)
    if not names and "suite" in table and table["suite"].nunique() > 1:
        suites = ", ".join(map(shortened, table["suite"].unique()))
        raise BadInput(
            "the suites have different conditions: choose one with --filter suite=NAME from "
            f"{suites}"
        )
    if not names:
        raise BadInput(
            "no column with 2 to 6 levels differs within items: name the conditions with "
            "--conditions, and the items in the column item"
        )
    levels = {name: levels_in_order(table[name]) for name in names}
    if single := [name for name, of in levels.items() if len(of) < 2]:
        raise BadInput(f"the column {single[0]} has fewer than two levels")
    return levels


def _of_region(table: DataFrame, region: str) -> DataFrame:
    """The rows of a region; all rows of a table without regions."""
    names = [name for name in ("number", "name", "region") if name in table]
    if not region and not set(PARTS) <= set(table.columns):
        return table
    if not names:
        raise BadInput("the table has no regions: write it with --per region")
    known = table[names].drop_duplicates().astype(str)
    mask = (table[names].astype(str) == region).any(axis=1) | (not region and len(known) == 1)
    if not mask.any():
        regions = ", ".join(known.agg(" ".join, axis=1).str.strip())
        raise BadInput(f"choose a region with --region from {regions}")
    return table[mask]


def response_of(table: DataFrame, response: str) -> Series:
    """Returns the response of each row, NaN where it is not known; see `analyse_table`.

    Raises:
        BadInput: it is not a column of numbers and does not follow from one.
    """
    import pandas as pd

    if response in ("probability", "log_odds") and response not in table and "surprisal" in table:
        probability = 2.0 ** -table["surprisal"].astype(float)
        if response == "probability":
            return probability
        with np.errstate(divide="ignore"):
            return np.log(probability) - np.log1p(-probability)
    if response == "correct" and response not in table:
        return _correct(table)
    if response not in table:
        names = [str(name) for name in table if pd.api.types.is_numeric_dtype(table[name])]
        raise BadInput(f"no column {response!r}: choose --response from {', '.join(names)}")
    try:
        return pd.to_numeric(table[response]).astype(float)
    except (ValueError, TypeError):
        raise BadInput(f"the column {response} has values that are not numbers") from None


def _correct(table: DataFrame) -> Series:
    """Whether the good row of a contrast is the most probable; known in good rows alone. Without
    contrasts, whether the top word is one of the expected words."""
    if {"good", "contrast", "surprisal"} <= set(table.columns):
        good = level_texts(table["good"]).isin(["true", "1"])
        bits = table["surprisal"].astype(float)
        keys = [table["model"], table["contrast"]]
        worse = bits.mask(good).groupby(keys).transform("min")
        unknown = bits.isna().groupby(keys).transform("any")
        return (bits < worse).astype(float).where(good & ~unknown)
    if not {"expected", "top_word"} <= set(table.columns):
        raise BadInput("correct needs the columns good and contrast, or expected and top_word")
    known = table[table["expected"].notna() & table["top_word"].notna()]
    expected = known["expected"].str.lower().str.split("|", regex=False)
    pairs = zip(known["top_word"].str.lower(), expected, strict=True)
    hits = [float(top in words) for top, words in pairs]
    return (
        known["item"]
        .map(lambda _: np.nan)
        .astype(float)
        .add(hits, fill_value=0)
        .reindex(table.index)
    )


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


# ---- the design ----------------------------------------------------------------------------------


def find_conditions(table: DataFrame) -> list[str]:
    """Returns the columns that are conditions of a design.

    A condition has 2 to 6 levels, and at least half of the items have all of them; other columns
    are covariates or text. A column that names the cells of other conditions is left out, and so is
    one that follows from another condition.
    """
    found = []
    never = _NEVER_FOUND | (set(PARTS) if set(PARTS) <= set(table.columns) else set())
    for name in sorted(map(str, table.columns), key=lambda name: name == "good"):
        n = 0 if name in never else table[name].nunique()
        if 2 <= n <= _MOST_LEVELS:
            has_all = table.groupby("item")[name].nunique() == n
            found += [name] if has_all.mean() >= 0.5 else []
    for name in sorted(found, key=lambda name: -table[name].nunique()):
        if name not in found:  # it follows from another one
            continue
        parts = [other for other in found if other != name and _follows(table, other, [name])]
        if len(parts) > 1 and _follows(table, name, parts):  # it names their cells
            found.remove(name)
        else:
            found = [other for other in found if other not in parts]
    return [str(name) for name in table.columns if name in found]


def _follows(table: DataFrame, name: str, others: list[str]) -> bool:
    """Whether the values of a column follow from those of others."""
    return bool((table.groupby(others)[name].nunique() <= 1).all())


def _cells(table: DataFrame, levels: Levels, response: str) -> Cells:
    from pandas import MultiIndex

    keys = [table["item"].astype(str), *(level_texts(table[name]) for name in levels)]
    means = table[response].groupby(keys).mean().unstack([*range(1, len(keys))])
    if len(levels) == 1:
        means.columns = MultiIndex.from_arrays([means.columns])
    means = means.reindex(columns=MultiIndex.from_product(levels.values()))
    complete = means.dropna()
    if not len(complete):
        raise BadInput(
            f"no item has a value in all {means.shape[1]} cells of {' x '.join(levels)}: name the "
            "conditions with --conditions"
        )
    n_items = table["item"].nunique()
    return Cells(complete.to_numpy(float), [*complete.index], n_items - len(complete))


def cell_means(cells: Cells, levels: Levels) -> DataFrame:
    """Returns cell means with within-item intervals; see `Analysis.cells`.

    Each value is taken less the mean of its item, plus the grand mean; the deviations within a cell
    are then stretched by sqrt(C / (C - 1)) for C cells, and have a t interval.

    Source: Cousineau (2005); Morey (2008).
    """
    from pandas import DataFrame

    values = cells.means
    mean = values.mean(axis=0)
    deviations = values - values.mean(axis=1, keepdims=True) + values.mean() - mean
    stretched = mean + deviations * math.sqrt(len(mean) / (len(mean) - 1))
    bounds = zip(*map(stats.mean_interval, stretched.T), strict=True)
    table = DataFrame(list(product(*levels.values())), columns=list(levels))
    low, high = map(list, bounds)
    return table.assign(n=len(values), mean=mean, ci_low=low, ci_high=high)


def effect_scores(cells: Cells, levels: Levels) -> DataFrame:
    """Returns the contrast of each item (rows) for each effect (columns).

    For a main effect it is the mean of the cells of the second level less that of the first, for an
    interaction the difference of these differences; cells of other conditions are averaged.
    """
    from pandas import DataFrame

    scores = {}
    for size in range(1, min(len(levels), _MOST_CROSSED) + 1):
        for crossed in combinations(levels, size):
            for pairs in product(*(combinations(levels[name], 2) for name in crossed)):
                weights: Any = np.ones(1)
                chosen = dict(zip(crossed, pairs, strict=True))
                for name, of in levels.items():
                    low, high = chosen.get(name, ("", ""))
                    sides = [float(level == high) - float(level == low) for level in of]
                    weights = np.kron(weights, sides if name in chosen else [1 / len(of)] * len(of))
                names = (
                    name if len(levels[name]) == 2 else f"{name}[{high} - {low}]"
                    for name, (low, high) in chosen.items()
                )
                scores[":".join(names)] = cells.means @ weights
    table = DataFrame(scores, index=cells.items)
    return table.where(table.abs() > _ROUNDING * np.abs(cells.means).max(), 0.0)


def _effects(scores: Mapping[str, DataFrame]) -> DataFrame:
    """The tests of contrasts of each model; those of pairs of levels are adjusted together."""
    from pandas import DataFrame

    rows = []
    for model, contrasts in scores.items():
        tests = [
            {"model": model} | effect_test(name, contrasts[name].to_numpy()) for name in contrasts
        ]
        families = [
            ":".join(part.partition("[")[0] for part in test["effect"].split(":"))
            if "[" in test["effect"]
            else ""
            for test in tests
        ]
        for family in filter(None, set(families)):
            members = [test for test, of in zip(tests, families, strict=True) if of == family]
            for test, p in zip(members, stats.holm([test["p"] for test in members]), strict=True):
                test["p_holm"] = p
        rows += tests
    return DataFrame(rows)


def effect_test(name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """Returns the paired t test of a contrast, (n,), as a row of `Analysis.effects`."""
    from scipy.special import stdtr

    n, mean = len(values), float(values.mean())
    sd = float(values.std(ddof=1)) if n > 1 else math.nan
    if not sd > 1e-12 * np.abs(values).max():  # the items do not differ
        sd = math.nan
    t = mean / sd * math.sqrt(n)
    low, high = stats.mean_interval(values)
    return {
        "effect": name, "n": n, "estimate": mean, "ci_low": low, "ci_high": high, "t": t,
        "df": n - 1, "p": 2 * float(stdtr(n - 1, -abs(t))) if n > 1 else math.nan,
        "d_z": mean / sd, "p_sign_flip": stats.sign_flip(values) if n <= _EXACT else math.nan,
        "p_holm": math.nan,
    }  # fmt: skip


def _coded(
    table: DataFrame, levels: Levels, formula: str, coding: Coding
) -> tuple[DataFrame, dict[str, Coding]]:
    """The table with two-level conditions and texts as numbers, and the coding of the others."""
    import pandas as pd

    coded, by_column = table.copy(), {}
    for name in set(map(str, table.columns)) - {"item", "id", "context", "sentence"}:
        if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", formula):
            continue
        if name not in levels and pd.api.types.is_float_dtype(table[name]):
            continue
        texts = level_texts(table[name])
        numbers = pd.to_numeric(texts, errors="coerce")
        of = levels_in_order(table[name])
        if name not in levels and numbers.notna().sum() == texts.notna().sum():
            coded[name] = numbers
        elif len(of) == 2:
            low, high = (-0.5, 0.5) if coding == "sum" else (0.0, 1.0)
            coded[name] = texts.map({of[0]: low, of[1]: high})
        elif len(of) <= _MOST_LEVELS:
            coded[name], by_column[name] = texts, coding
    return coded, by_column
