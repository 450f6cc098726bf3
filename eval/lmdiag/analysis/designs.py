"""The design of a table of items: cell means within items, effects over items, mixed models."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import stats
from lmdiag.analysis.items import PARTS, SCORES
from lmdiag.analysis.linear import LinearFit, fit_mixed
from lmdiag.perturb import NONE
from lmdiag.text import in_order, shortened, visible
from lmdiag.types import BadInput, Coding

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Levels = Mapping[str, tuple[str, ...]]
"""Condition -> its levels in order."""

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

_DATA = "_data"
"""End of the name of a column of the data whose own name means something else in a table."""

_OWN = {"model", "signature", "task", "perturbation", "shuffle", "suite", *PARTS, *SCORES}
"""Columns of tables of items that are not columns of the data; see `items_of`."""

_CELL_COLUMNS = {"suite", "model", "item", "n", "mean", "ci_low", "ci_high", "value"}
"""Columns of `Analysis.cells` and `Analysis.items` beside the conditions."""

_ALL = "all"
"""Stands for every region."""

_MODEL = re.compile(r"(?<!\w)model(?!\w)")
"""The column `model` in a formula."""

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
            (95% within items). A condition with one of these names has `_data` at its end.
        effects: a row per model and effect: model, effect, label (the effect with its levels),
            n (items), estimate (second less first level; of an interaction, the difference of these
            differences), ci_low, ci_high (95%), t, df, p, p_sign_flip (for n up to 16), p_holm
            (over the n_tests pairs of levels, for conditions of more than two), d_z (estimate in
            standard deviations over items).
        differences: the same, of the effects of the first model less those of each other one.
        mixed: model -> fit; "" for a formula with the column `model`, which is of all rows.
        by: a factor between items by which effects are broken down; "" for none.
        by_level: the effects over the items of each of its levels, with a column `level`; then the
            differences between two levels, Welch's t test over n items in both, p_holm over the
            pairs of more than two levels.
        region: number or name of the region; "" for rows as a whole; "all" for each by itself, in
            tables that begin with a column `suite`.
        apart: models that are not compared with the first one.
    """

    response: str
    conditions: Levels
    items: DataFrame
    left_out: Mapping[tuple[str, str], int]
    cells: DataFrame
    effects: DataFrame
    differences: DataFrame
    mixed: Mapping[str, LinearFit]
    by: str
    by_level: DataFrame
    region: str
    apart: tuple[str, ...] = ()

    @property
    def has_models(self) -> bool:
        """Whether there are several models."""
        return len({*self.cells.get("model", ()), *self.mixed}) > 1

    def response_text(self, part: str = "") -> str:
        """Returns the response and its region, e.g. "surprisal of region 2", or else `part`."""
        of = {"": part, _ALL: " in each region"}.get(self.region, f" of region {self.region}")
        return visible(self.response.replace("_", " ") + of)

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag analyse --json` prints; undefined numbers are None.

        Models are named where there are several; p_sign_flip and p_holm where there are any.
        """
        from pandas import DataFrame

        terms = [{"model": m, **vars(term)} for m, fit in self.mixed.items() for term in fit.terms]
        tables = {"cells": self.cells, "effects": self.effects, "mixed": DataFrame(terms)}
        if self.has_models:
            tables["differences"] = self.differences
        if self.by:
            tables["by"] = self.by_level
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
    item: str = "",
    levels: Mapping[str, Sequence[object]] | None = None,
    by: str = "",
    apart: Collection[str] = (),
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
        region: number or name of the region, in a table with a row per region; "all" for an
            analysis of each region by itself.
        coding: of conditions and columns of text in the formula, see `fit_mixed`; with "difference"
            the effects of a condition are those of each level less the one before it.
        item: the column that names the items; "" for `item` (or `contrast`).
        levels: column -> its levels in order; of others, alphabetical without regard to case and
            accents, numbers by size.
        by: a column that differs between items only, by whose levels effects are broken down.
        apart: models whose responses are not comparable with those of the first one.

    Raises:
        BadInput: there is no item column, no condition, no such response, region or level, no item
            with all cells, a column `by` that differs within items, or the formula cannot be
            fitted.
    """
    given = (*conditions, *filter(None, [by]), *(levels or ()))
    table = _chosen(table, region, item, given)
    response = response or formula.partition("~")[0].strip(" `") or "surprisal"
    table[response] = _response(table, response).replace([np.inf, -np.inf], np.nan)
    orders = {name: tuple(map(_level_text, of)) for name, of in (levels or {}).items()}
    columns = {name: _column(table, name) for name in given}
    if region == _ALL and formula:
        raise BadInput("a formula is fitted to one region: choose it with --region")
    means = _means(table, conditions, response, orders, required=not formula, each=region == _ALL)
    names = dict.fromkeys(name for wide in means.values() for name in wide.columns.names)
    columns |= {name: _column(table, name) for name in names}
    ordered = {
        name: levels_in_order(table[column], orders.get(name, ()))
        for name, column in columns.items()
    }
    found = {name: ordered[name] for name in names}
    complete = {key: wide.dropna() for key, wide in means.items()}
    scores = {key: effect_scores(wide, found, coding) for key, wide in complete.items()}
    models = dict(iter(table.groupby("model", sort=False)))
    first = next(iter(models), "")
    other = tuple(x for x in models if any(x == y or x.startswith(f"{y} ") for y in apart))
    gaps = {
        (suite, f"{first} - {model}"): (scores[suite, first] - contrasts).dropna()
        for (suite, model), contrasts in scores.items()
        if model != first and model not in other and (suite, first) in scores
    }
    groups = _level_of_item(table, by, columns[by]) if by else None
    broken = (
        {} if groups is None else {k: _by_level(x, groups, ordered[by]) for k, x in scores.items()}
    )
    fitted = {"": table} if _MODEL.search(formula) else models
    return Analysis(
        response=response,
        conditions=found,
        items=_stacked({key: _long(wide) for key, wide in complete.items()}),
        left_out={k: len(w) - len(complete[k]) for k, w in means.items()},
        cells=_stacked({key: _cell_means(wide) for key, wide in complete.items()}),
        effects=_stacked({key: _effect_tests(contrasts) for key, contrasts in scores.items()}),
        differences=_stacked({key: _effect_tests(contrasts) for key, contrasts in gaps.items()}),
        mixed={
            model: fit_mixed(formula, _typed(rows, columns, ordered), coding=coding)
            for model, rows in (fitted if formula else {}).items()
        },
        by=by,
        by_level=_stacked(broken),
        region=region,
        apart=other,
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


def _chosen(table: DataFrame, region: str, item: str, given: Sequence[str]) -> DataFrame:
    """The unperturbed rows of a task and region, with `item` and `model`.

    Columns of the design whose names mean something else here get the end `_data`.
    """
    table = table.set_axis(list(map(str, table.columns)), axis=1)
    if not table.columns.is_unique:
        raise BadInput("the table has two columns of one name: rename one of them")
    if unknown := [x for x in (*given, *filter(None, [item])) if x not in table]:
        raise BadInput(f"no column {unknown[0]!r}: choose from {', '.join(table)}")
    own = [name for name in given if name in _OWN and f"{name}{_DATA}" not in table]
    table = table.rename(columns={name: f"{name}{_DATA}" for name in own})
    if item:
        table = table.assign(item=table[_column(table, item)])
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
        known = texts.fillna("").agg(" ".join, axis=1).str.strip()
        if region == _ALL:
            table = table.assign(suite=known.where(~known.str.isdigit(), "region " + known))
        else:
            table = table[(texts == region).any(axis=1)]
        if table.empty:
            regions = ", ".join(map(shortened, known.unique()[:20]))
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


def _column(table: DataFrame, name: str) -> str:
    """The column of the data that the user calls by this name; see `items_of`."""
    return f"{name}{_DATA}" if name in _OWN and f"{name}{_DATA}" in table else name


def _name(column: str) -> str:
    """The user's name of a column of the data; the inverse of `_column`."""
    name = column.removesuffix(_DATA)
    return name if name in _OWN else column


def _level_text(level: object) -> str:
    """A level as `level_texts` writes it."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def level_texts(column: Series) -> Series:
    """Returns values as texts: truth values in lower case, 1.0 as "1"; what is missing is NaN."""
    texts = column.map(str)
    if column.dtype.kind == "f":
        texts = texts.str.removesuffix(".0")
    is_truth = texts.str.lower().isin(["true", "false"])
    return texts.where(~is_truth, texts.str.lower()).where(column.notna() & (texts != ""))


def levels_in_order(column: Series, order: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the levels of a column in the given order, or else by `lmdiag.text.in_order`.

    Raises:
        BadInput: the order does not name each level once.
    """
    levels = in_order(level_texts(column).dropna().unique())
    if order and sorted(order) != sorted(levels):
        raise BadInput(
            f"the order {','.join(order)} does not name each level of {_name(str(column.name))} "
            f"once: {', '.join(levels)}"
        )
    return tuple(order) or levels


def _typed(table: DataFrame, columns: Mapping[str, str], levels: Levels) -> DataFrame:
    """The table with texts of numbers as numbers, and the columns of the design as categories.

    Those have the user's names.
    """
    from pandas import Categorical, DataFrame, to_numeric

    typed = {}
    for name in table.columns:
        texts = level_texts(table[name])
        numbers = to_numeric(texts, errors="coerce")
        typed[name] = numbers if numbers.count() == texts.count() else texts
    for name, column in columns.items():
        typed[name] = Categorical(level_texts(table[column]), levels[name])
    return DataFrame(typed, table.index)


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
    table: DataFrame,
    conditions: Sequence[str],
    response: str,
    orders: Levels,
    *,
    required: bool,
    each: bool,
) -> dict[tuple[str, str], DataFrame]:
    """Suite and model -> the mean response of each item (rows) in each cell (columns).

    Suites with different conditions, or each of them, are apart; those without a design or a
    response other than 0 are left out. Raises `BadInput` if nothing is left and conditions are
    named or a design is required.
    """
    suites = {"": table}
    has_suites = {"item", "suite"} <= set(table)
    if has_suites and (each or not (conditions or find_conditions(table))):
        suites = dict(iter(table.groupby("suite", sort=False)))
        if each:
            suites = {suite: rows for suite, rows in suites.items() if rows[response].any()}
    means: dict[tuple[str, str], DataFrame] = {}
    problems = []
    for suite, rows in suites.items():
        try:
            means |= _means_of_suite(rows, str(suite), conditions, response, orders)
        except BadInput as error:
            problems.append(error)
    if not means and (conditions or required):
        raise problems[0]
    return means


def _means_of_suite(
    table: DataFrame, suite: str, conditions: Sequence[str], response: str, orders: Levels
) -> dict[tuple[str, str], DataFrame]:
    """The means of one suite, or of a table without suites; see `_means`."""
    from pandas import DataFrame, MultiIndex

    if "item" not in table:
        raise BadInput("the table has no column item, which names the items of the design")
    names = list(conditions) or [_name(column) for column in find_conditions(table)]
    if not names:
        raise BadInput(
            "no column with 2 to 6 levels differs within items: name the conditions with "
            "--conditions, and the items in the column item"
        )
    columns = {name: table[_column(table, name)] for name in names}
    levels = [levels_in_order(column, orders.get(name, ())) for name, column in columns.items()]
    if single := [name for name, of in zip(names, levels, strict=True) if len(of) < 2]:
        raise BadInput(f"the column {single[0]} has fewer than two levels")
    cells = MultiIndex.from_product(levels, names=names)
    item, values_of = level_texts(table["item"]), table[response]
    keys = [item, *(level_texts(column) for column in columns.values())]
    means = {}
    for model, numbers in table.groupby("model", sort=False).indices.items():
        items = item.iloc[numbers].dropna().unique()
        every = MultiIndex.from_product([items, *levels])
        of_model = values_of.iloc[numbers].groupby([key.iloc[numbers] for key in keys]).mean()
        values = of_model.reindex(every).to_numpy()
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


def cell_columns(conditions: Iterable[str]) -> dict[str, str]:
    """Returns the column of each condition in `Analysis.cells` and `Analysis.items`."""
    names = [*conditions]
    columns: dict[str, str] = {}
    for name in names:
        column = name
        while column in _CELL_COLUMNS or (column != name and column in names):
            column += _DATA
        columns[name] = column
    return columns


def _long(means: DataFrame) -> DataFrame:
    """The columns of `_means` below each other; see `Analysis.items`."""
    columns = cell_columns(means.columns.names)
    return means.rename_axis(columns=columns.values()).melt(ignore_index=False).reset_index()


def _cell_means(means: DataFrame) -> DataFrame:
    """The mean of each column of `_means` with its interval; see `Analysis.cells`."""
    low, high = np.transpose(within_item_intervals(means.to_numpy()))
    table = means.columns.to_frame(index=False, name=[*cell_columns(means.columns.names).values()])
    return table.assign(n=len(means), mean=means.mean().to_numpy(), ci_low=low, ci_high=high)


def effect_scores(means: DataFrame, named: Levels, coding: Coding = "sum") -> DataFrame:
    """Returns the contrast of each item (rows) for each effect (columns).

    For a main effect it is the mean of the cells of the second level less that of the first, for an
    interaction the difference of these differences; cells of other conditions are averaged. The
    columns are a family, which Holm's method adjusts together, a name, and a name with levels.

    Args:
        means: of each item in each cell, see `_means`.
        named: conditions with more than two levels here have the pair of levels in the name.
        coding: "difference" for successive levels, else all pairs of levels.
    """
    from pandas import DataFrame, MultiIndex

    sides = []  # of each condition: family, name and weights of its levels
    for name in means.columns.names:
        levels = means.columns.unique(name)
        averaged = ("", "", "", np.full(len(levels), 1 / len(levels)))
        compared = pairwise(levels) if coding == "difference" else combinations(levels, 2)
        pairs = [
            (
                str(name),
                name if len(named[name]) == 2 else f"{name}[{high} - {low}]",
                f"{name}[{high} - {low}]",
                (levels == high) * 1.0 - (levels == low),
            )
            for low, high in compared
        ]
        sides.append([*pairs, averaged])
    weights = {}
    for crossed in product(*sides):
        *texts, vectors = zip(*crossed, strict=True)
        if 0 < sum(map(bool, texts[0])) <= _MOST_CROSSED:
            key = tuple(":".join(filter(None, parts)) for parts in texts)
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
    n, mean, sd = len(scores), scores.mean(), _deviations(scores)
    table = _t_tests(mean, sd / math.sqrt(n), n - 1).assign(d_z=mean / sd)
    table.insert(0, "n", n)
    if n <= _EXACT:
        table["p_sign_flip"] = scores.apply(lambda column: stats.sign_flip(column.to_numpy()).p)
    families = table.groupby(level=0)["p"]
    if (has_pairs := families.transform("size") > 1).any():
        table["p_holm"] = families.transform(_holm).where(has_pairs)
        table["n_tests"] = families.transform("count").where(has_pairs)
    return _named(table)


def _holm(p: Series) -> stats.Values:
    return np.array(stats.holm([*p]))


def _named(table: DataFrame) -> DataFrame:
    """The table with effect and label, the last two levels of its index, as first columns."""
    table.insert(0, "effect", table.index.get_level_values(1))
    table.insert(1, "label", table.index.get_level_values(2))
    return table.reset_index(drop=True)


def _deviations(scores: DataFrame) -> Series:
    """The standard deviation of each column, NaN where it is rounding."""
    sd = scores.std()
    return sd.where(sd > 1e-12 * scores.abs().max())


def _t_tests(estimate: Series, se: Series, df: Series | int) -> DataFrame:
    """Estimates with their 95% intervals and two-sided t tests."""
    from pandas import DataFrame
    from scipy.special import stdtr, stdtrit

    margin = stdtrit(df, (1 + stats.LEVEL) / 2) * se
    t = estimate / se
    table = DataFrame({"estimate": estimate, "ci_low": estimate - margin})
    return table.assign(ci_high=estimate + margin, t=t, df=df, p=2 * stdtr(df, -t.abs()))


# ---- a factor between items ----------------------------------------------------------------------


def _level_of_item(table: DataFrame, by: str, column: str) -> Series:
    """Item -> its level of a factor between items; `BadInput` if one has several."""
    if "item" not in table:
        raise BadInput("the table has no column item, which names the items of the design")
    levels = level_texts(table[column]).groupby(level_texts(table["item"]))
    if (several := levels.nunique() > 1).any():
        raise BadInput(
            f"{by} differs within item {several.idxmax()}: --by takes a column that differs "
            "between items only"
        )
    return levels.first()


def _by_level(scores: DataFrame, groups: Series, order: Sequence[str]) -> DataFrame:
    """The effects at each level, then Welch's tests of two levels; see `Analysis.by_level`."""
    from pandas import concat

    levels = groups.reindex(scores.index)
    parts = {level: scores[levels == level] for level in order if (levels == level).any()}
    tests = {level: _effect_tests(part) for level, part in parts.items()}
    pairs = [*combinations(parts, 2)]
    for low, high in pairs:
        tests[f"{high} - {low}"] = _welch_tests(parts[high], parts[low])
    table = concat(tests, names=["level"]).reset_index("level").reset_index(drop=True)
    if len(pairs) > 1:
        of_pairs = table["level"].isin([f"{high} - {low}" for low, high in pairs])
        families = table[of_pairs].groupby("label")["p"]
        table.loc[of_pairs, "p_holm"] = families.transform(_holm)
        table.loc[of_pairs, "n_tests"] = families.transform("count")
    return table


def _welch_tests(high: DataFrame, low: DataFrame) -> DataFrame:
    """Welch's t test of each effect between the items of two levels (Welch 1947)."""
    squares = _deviations(high) ** 2 / len(high), _deviations(low) ** 2 / len(low)
    total = squares[0] + squares[1]
    df = total**2 / (squares[0] ** 2 / (len(high) - 1) + squares[1] ** 2 / (len(low) - 1))
    table = _t_tests(high.mean() - low.mean(), np.sqrt(total), df)
    table.insert(0, "n", len(high) + len(low))
    return _named(table)
