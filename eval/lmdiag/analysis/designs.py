"""The design of a table of items: cell means, effects and mixed models of one response."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas import Categorical, DataFrame, MultiIndex, Series, concat, to_numeric
from scipy.special import logit

from lmdiag.analysis.effects import (
    Levels,
    effect_scores,
    paired_tests,
    tests_by_level,
    within_item_intervals,
)
from lmdiag.analysis.items import MEASURE_NAMES, PARTS, PREDICTED
from lmdiag.analysis.linear import LinearFit, fit_mixed
from lmdiag.analysis.regression import grouping_columns, names_in
from lmdiag.analysis.words import rows_of_words
from lmdiag.diagnostics import is_measure
from lmdiag.measures import Trials
from lmdiag.perturb import NONE
from lmdiag.printable import Printable
from lmdiag.stimuli.design import find_conditions, level_texts, why_no_conditions
from lmdiag.text import column_like, in_order, shortened, visible
from lmdiag.types import BadInput, Coding

if TYPE_CHECKING:
    import altair
    from rich.console import Console

Orders = Mapping[str, Sequence[object]]
"""Column -> its levels in the order that the user chose."""

UNITS = {"surprisal": "bits", "log_odds": "nats", "correct": "share"}
"""Response -> its unit; others have none, or it is not known."""

PARTS_OF = {"sentence": "the whole sentence", "word": ""}
"""What rows ask, see `Diagnostic.asks` -> what the response of a row is of."""

_RUN_COLUMNS = {*PREDICTED, "model", "signature", "weights", "task", "perturbation", "shuffle"}
"""Columns of what was asked and answered."""

_DATA = "_data"
"""End of the name of a column of the data whose own name means something else in a table."""

_OWN = {*_RUN_COLUMNS, "suite", *PARTS}
"""Columns of tables of items that are not columns of the data; see `items_of`."""

_CELL_COLUMNS = {"suite", "model", "item", "n", "mean", "ci_low", "ci_high", "value"}
"""Columns of `Analysis.cells` and `Analysis.items` beside the conditions."""

_ALL = "all"
"""Stands for every region."""

_MODEL = re.compile(r"(?<!\w)model(?!\w)")
"""The column `model` in a formula."""

_Groups = Mapping[tuple[str, str], DataFrame]
"""Suite and model -> a table; each is analysed by itself."""


@dataclass(frozen=True, repr=False)
class Analysis(Printable):
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
        not_compared: models that are not compared with the first one.
        notes: how the rows were read.
        part: what the response is of, where it is not of a region; "" where it is not known.
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
    not_compared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    part: str = ""

    def __repr__(self) -> str:
        conditions = " x ".join(self.conditions)
        return f"<Analysis of {self.response} by {conditions or 'a formula'}>"

    def show(self, console: Console) -> None:
        """Prints the tables."""
        from lmdiag.report.terminal import print_analysis

        print_analysis(self, console)

    def chart(self) -> altair.TopLevelMixin:
        """Returns the means of the conditions and the items as an altair chart."""
        from lmdiag.report.charts.conditions import condition_plot
        from lmdiag.report.charts.output import notebook

        return notebook(condition_plot("conditions", self))

    @property
    def has_models(self) -> bool:
        """Whether there are several models."""
        return len({*self.cells.get("model", ()), *self.mixed}) > 1

    def response_text(self) -> str:
        """Returns the response and what it is of, e.g. "surprisal of region 2"."""
        of = f" of {self.part}" if self.part and self.response != "correct" else ""
        texts = {"": of, _ALL: " in each region", "critical": " of the critical word"}
        region = texts.get(self.region, f" of region {self.region}")
        return visible(self.response.replace("_", " ") + region)

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag analyse --json` prints; undefined numbers are None.

        Models are named where there are several; p_sign_flip and p_holm where there are any.
        """
        tables = {"cells": self.cells, "effects": self.effects, "mixed": DataFrame()}
        if self.mixed:
            terms = concat({m: fit.terms for m, fit in self.mixed.items()}, names=["model"])
            tables["mixed"] = terms.drop(columns=["ci_low", "ci_high"]).reset_index()
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
    levels: Orders | None = None,
    by: str = "",
    not_compared: Collection[str] = (),
) -> Analysis:
    """Analyses the items of one or several models; `lmdiag.analyse` has the other arguments.

    Args:
        table: a row per item and condition, with a column `item` (or `contrast`), and a column
            `model` where there are several; see `lmdiag.analysis.items.items_of`.
        conditions: columns; () for those that `find_conditions` finds, in each suite by itself if
            suites have different conditions.
        formula: of a mixed model, see `fit_mixed`; fitted to the rows of each model, or to all
            rows if it has the column `model`.
        not_compared: models whose responses are not comparable with those of the first one.

    Raises:
        BadInput: there is no item column, no condition, no such response, region or level, no item
            with all cells, a column `by` that differs within items, or the formula cannot be
            fitted.
    """
    columns = [*map(str, table.columns)]  # the user may spell them in another way
    conditions = [column_like(name, columns) for name in conditions]
    by, item, response = (x and column_like(x, columns) for x in (by, item, response))
    orders = {column_like(name, columns): order for name, order in (levels or {}).items()}
    named = [*conditions, *filter(None, [by]), *orders]
    if region == _ALL and formula:
        raise BadInput("a formula is fitted to one region: choose it with --region")
    prepared = _prepared(table, item, named)
    table = _with_model_and_item(_of_region(prepared, region, [*named, *names_in(formula)]))
    response = response or formula.partition("~")[0].strip(" `") or "surprisal"
    values = _response(table, response)
    table[response] = values.mask(np.isinf(values))
    n_infinite = int(np.isinf(values).sum())
    infinite = ""
    if n_infinite:  # of words of probability 0
        rows = "1 row, which counts as a missing value"
        if n_infinite > 1:
            rows = f"{n_infinite:,} rows, which count as missing values"
        infinite = f"{response} is infinite in {rows}"
    note = ""
    if "item" in table:
        cells = [_column(table, name) for name in conditions or _conditions_of(table)]
        keys = [*cells, *grouping_columns(formula), *(["suite"] if "suite" in table else [])]
        table, note = rows_of_words(table, response, keys, names_in(formula))
    is_required = bool(by or not formula)
    means = _means(table, conditions, response, orders, required=is_required, each=region == _ALL)
    names = dict.fromkeys(name for wide in means.values() for name in wide.columns.names)
    factors = _factors(table, [*names, *named], orders)
    order = {name: tuple(factors[name].cat.categories) for name in names}
    complete = {group: wide.dropna() for group, wide in means.items()}
    scores = {group: effect_scores(wide, order, coding) for group, wide in complete.items()}
    models = [*table["model"].unique()]
    unlike = tuple(x for x in models if any(x == y or x.startswith(f"{y} ") for y in not_compared))
    differences = _differences(scores, [model for model in models if model not in unlike])
    return Analysis(
        response=response,
        conditions=order,
        items=_stacked(complete, _long),
        left_out={group: len(wide) - len(complete[group]) for group, wide in means.items()},
        cells=_stacked(complete, _cell_means),
        effects=_stacked(scores, paired_tests),
        differences=_stacked(differences, paired_tests),
        mixed=_mixed_models(formula, table, factors, coding) if formula else {},
        by=by,
        by_level=_tests_by_level(scores, table, by, factors) if by else DataFrame(),
        region=region,
        not_compared=unlike,
        notes=tuple(filter(None, [infinite, note])),
    )


# ---- the table -----------------------------------------------------------------------------------


def with_numbers(table: DataFrame, response: str, name: str) -> DataFrame:
    """Returns a table with the values of a response as numbers, if it is a column.

    Args:
        table: its index has the numbers of the rows.
        name: of the file or run, for messages.

    Raises:
        BadInput: a value is not a number; names row and column.
    """
    column = column_like(response, map(str, table.columns))
    if column not in table:
        return table
    numbers = to_numeric(table[column], errors="coerce")
    wrong = table.index[numbers.isna() & table[column].notna()]
    if len(wrong):
        value = shortened(str(table[column][wrong[0]]))
        raise BadInput(f"{name}:{wrong[0]}: the column {column}: {value!r} is not a number")
    return table.assign(**{column: numbers})


def _prepared(table: DataFrame, item: str, named: Sequence[str]) -> DataFrame:
    """The unperturbed rows of a task.

    Columns of the design whose names mean something else here get the end `_data`.
    """
    table = table.set_axis(list(map(str, table.columns)), axis=1)
    if not table.columns.is_unique:
        raise BadInput("the table has two columns of one name: rename one of them")
    if unknown := [x for x in (*named, *filter(None, [item])) if x not in table]:
        raise BadInput(f"no column {unknown[0]!r}: choose from {', '.join(table)}")
    taken = [name for name in named if name in _OWN and f"{name}{_DATA}" not in table]
    table = table.rename(columns={name: f"{name}{_DATA}" for name in taken})
    if item:
        table = table.assign(item=table[_column(table, item)])
    if "perturbation" in table:
        table = table[table["perturbation"] == NONE]
    if "task" in table and table["task"].nunique() > 1:
        tasks = ", ".join(dict.fromkeys(table["task"]))
        raise BadInput(f"there are several tasks: choose one with --task from {tasks}")
    return table


def _of_region(table: DataFrame, region: str, named: Sequence[str]) -> DataFrame:
    """The rows of a region; of every one, with `suite` for its name, so that each is by itself.

    Where none is given, a table with several of them within its items needs one, unless the column
    itself is named as a condition or in a formula.
    """
    part = "number" if set(PARTS) <= set(table.columns) else "region"
    if not region and (part not in table or part in named):
        return table
    items = table["item"] if "item" in table else Series(0, table.index)
    if not region and table[part].groupby(items).nunique().max() < 2:
        return table
    columns = [name for name in ("number", "name", "region") if name in table]
    if not columns:
        raise BadInput("the table has no regions: write it with --per region")
    texts = table[columns].apply(level_texts)
    names = texts.fillna("").agg(" ".join, axis=1).str.strip()
    if region == _ALL:
        table = table.assign(suite=names.where(~names.str.isdigit(), "region " + names))
    else:
        table = table[(texts == region).any(axis=1)]
    if table.empty:
        regions = ", ".join(map(shortened, names.unique()[:20]))
        raise BadInput(f"choose a region with --region from {regions}")
    return table


def _with_model_and_item(table: DataFrame) -> DataFrame:
    """The table with `model`, also where the same model was asked in several ways, and `item`."""
    table = table.reset_index(drop=True)
    facts = [name for name in ("model", "weights", "signature") if name in table]
    names: list[str] = []
    if "model" in facts:  # the shortest choice of facts that tells all models apart
        choices = (["model"], ["model", "weights"], ["model", "signature"], facts)
        n_of = {(*x,): len(table[x].drop_duplicates()) for x in choices if {*x} <= {*facts}}
        names = [*next(x for x, n in n_of.items() if n == n_of[(*facts,)])]
    texts = table[names].fillna("").astype(str)
    table["model"] = texts.agg(" ".join, axis=1).str.strip() if names else ""
    has_several_rows = "item" in table and table.duplicated(["model", "item"]).any()
    if "contrast" in table and not has_several_rows:
        table["item"] = table["contrast"]
    return table


def _response(table: DataFrame, response: str) -> Series:
    """The response of each row, NaN where it is not known; see `analyse_table`."""
    columns = set(table)
    if response in columns:
        return to_numeric(table[response]).astype(float)
    if response in ("probability", "log_odds") and "surprisal" in columns:
        probability = 2.0 ** -table["surprisal"].astype(float)
        return probability if response == "probability" else logit(probability)
    if response == "correct":
        return _correct(table)
    names = [str(name) for name in table if pd.api.types.is_numeric_dtype(table[name])]
    raise BadInput(f"no column {response!r}: choose --response from {', '.join(names)}")


def _correct(table: DataFrame) -> Series:
    """Whether a contrast is right (sensitivity, in its good row), or else a row (accuracy@1).

    They are computed here for a table that was made elsewhere, which does not have them.
    """
    columns = {*table}
    for name in ("sensitivity", "accuracy@1"):
        if name in columns:
            return to_numeric(table[name]).astype(float)
    if {"good", "contrast", "surprisal"} <= columns:
        return _sensitivity(table)
    if not {"expected", "top_word"} <= columns:
        raise BadInput("correct needs the columns good and contrast, or expected and top_word")
    pairs = table[["top_word", "expected"]].dropna().map(str.lower)
    hits = [word in expected.split("|") for word, expected in pairs.to_numpy()]
    return pd.Series(hits, pairs.index, dtype=float).reindex(table.index)


def _sensitivity(table: DataFrame) -> Series:
    """The sensitivity of each contrast of a table in its good row."""
    ids = [*map(str, table.index)]
    texts = [x for x in ("context", "target", "right_context", "sentence") if x in table]
    is_asked = "sentence" in texts or {"context", "target"} <= {*texts}
    rows = DataFrame({
        "id": ids,
        "good": level_texts(table["good"]).isin(["true", "1"]),
        "contrast": table["model"].astype(str) + "|" + table["contrast"].astype(str),
        "sentence": ids,  # rows of which no text is known are never the same
        "right_context": "",
    })  # fmt: skip
    rows = rows.assign(**{name: table[name].astype(str) for name in texts if is_asked})
    log_prob = -table["surprisal"].astype(float).to_numpy() * math.log(2)
    trials = Trials(rows.to_dict("list"), {"log_prob": log_prob.tolist()}, {})
    try:
        scores = trials.contrasts.verdicts("sensitivity", trials.log_prob)
    except ValueError as error:
        raise BadInput(f"correct: {error}") from None
    values = dict(zip(scores.items, scores.values, strict=True))
    return rows["contrast"].map(values).astype(float).where(rows["good"])


def _column(table: DataFrame, name: str) -> str:
    """The column of the data that the user calls by this name; see `items_of`."""
    return f"{name}{_DATA}" if name in _OWN and f"{name}{_DATA}" in table else name


def _levels(table: DataFrame, name: str, orders: Orders) -> tuple[str, ...]:
    """The levels of a column in the user's order, or else by `lmdiag.text.in_order`."""
    levels = in_order(level_texts(table[_column(table, name)]).dropna().unique())
    given = tuple(level_texts(Series(orders.get(name, ()), dtype=object)))
    if given and sorted(given) != sorted(levels):
        raise BadInput(
            f"the order {','.join(given)} does not name each level of {name} once: "
            f"{', '.join(levels)}"
        )
    return given or levels


def _factors(table: DataFrame, names: Iterable[str], orders: Orders) -> DataFrame:
    """The columns of the design, by the user's names, as categories with their levels in order."""
    texts = {name: level_texts(table[_column(table, name)]) for name in names}
    factors = {name: Categorical(x, _levels(table, name, orders)) for name, x in texts.items()}
    return DataFrame(factors, table.index)


# ---- the design ----------------------------------------------------------------------------------


def _conditions_of(table: DataFrame) -> list[str]:
    """The conditions that are found among the columns of the data; see `find_conditions`."""
    return find_conditions(_data_of(table))


def _data_of(table: DataFrame) -> DataFrame:
    """The columns of the data, by the user's names."""
    users = {f"{name}{_DATA}": name for name in _OWN if f"{name}{_DATA}" in table}
    never = {*_RUN_COLUMNS, *users.values(), *(PARTS if {*PARTS} <= {*table.columns} else ())}
    never |= {*table.attrs.get(MEASURE_NAMES, ())}
    if "signature" in table:
        never |= {name for name in table if is_measure(name)}
    data = table.drop(columns=[name for name in never if name in table])
    return data.rename(columns=users)


def _means(
    table: DataFrame,
    conditions: Sequence[str],
    response: str,
    orders: Orders,
    *,
    required: bool,
    each: bool,
) -> dict[tuple[str, str], DataFrame]:
    """Suite and model -> the mean response of each item (rows) in each cell (columns)."""
    suites = {"": table}
    has_suites = {"item", "suite"} <= set(table)
    if has_suites and (each or not (conditions or _conditions_of(table))):
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
    table: DataFrame, suite: str, conditions: Sequence[str], response: str, orders: Orders
) -> dict[tuple[str, str], DataFrame]:
    """The means of one suite, or of a table without suites; see `_means`."""
    if "item" not in table:
        raise BadInput("the table has no column item, which names the items of the design")
    names = list(conditions) or _conditions_of(table)
    if not names:
        raise BadInput(why_no_conditions(_data_of(table)))
    columns = ["item", *(_column(table, name) for name in names)]
    levels = [_levels(table, name, orders) for name in names]
    if single := [name for name, of in zip(names, levels, strict=True) if len(of) < 2]:
        raise BadInput(f"the column {single[0]} has fewer than two levels")
    cells = MultiIndex.from_product(levels, names=names)
    means = {}
    for model, rows in table.groupby("model", sort=False):
        keys = [level_texts(rows[column]) for column in columns]
        items = keys[0].dropna().unique()
        every = MultiIndex.from_product([items, *levels])
        values = rows[response].groupby(keys).mean().reindex(every).to_numpy()
        wide = DataFrame(values.reshape(-1, len(cells)), items, cells).rename_axis("item")
        if wide.isna().any(axis=1).all():
            raise BadInput(
                f"no item has a value in all {len(cells)} cells of {' x '.join(names)}: name the "
                "conditions with --conditions"
            )
        means[suite, str(model)] = wide
    return means


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


def _stacked(groups: _Groups, table_of: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """A table of each group, below each other: `model`, and `suite` where each is by itself."""
    tables = {group: table_of(of) for group, of in groups.items()}
    if not tables:
        return DataFrame()
    whole = concat(tables, names=["suite", "model"]).reset_index(["suite", "model"])
    texts = [name for name, kind in whole.dtypes.items() if pd.api.types.is_string_dtype(kind)]
    whole[texts] = whole[texts].fillna("")  # conditions of other suites
    return whole.reset_index(drop=True).drop(columns=[] if whole["suite"].any() else "suite")


def _differences(scores: _Groups, models: Sequence[str]) -> _Groups:
    """The contrasts of the first model less those of each other one, over the items of both."""
    return {
        (suite, f"{models[0]} - {model}"): (scores[suite, models[0]] - of_model).dropna()
        for (suite, model), of_model in scores.items()
        if model in models[1:] and (suite, models[0]) in scores
    }


def _tests_by_level(scores: _Groups, table: DataFrame, by: str, factors: DataFrame) -> DataFrame:
    """The effects by a factor between items; `BadInput` if an item has several of its levels."""
    levels = factors[by].groupby(level_texts(table["item"]))
    several = levels.nunique() > 1
    if several.any():
        raise BadInput(
            f"{by} differs within item {several.idxmax()}: --by takes a column that differs "
            "between items only"
        )
    of_items = levels.first()
    return _stacked(scores, lambda of_group: tests_by_level(of_group, of_items))


def _mixed_models(
    formula: str, table: DataFrame, factors: DataFrame, coding: Coding
) -> dict[str, LinearFit]:
    """Model -> its fit; "" -> one fit of all rows, if the formula has the column `model`."""
    groups = table.groupby("model", sort=False)
    tables = {"": table} if _MODEL.search(formula) else dict(iter(groups))
    return {
        model: fit_mixed(formula, _typed(rows, factors), coding=coding)
        for model, rows in tables.items()
    }


def _typed(table: DataFrame, factors: DataFrame) -> DataFrame:
    """The table with texts of numbers as numbers, and the columns of the design as categories."""
    typed = {}
    for name in table.columns:
        texts = level_texts(table[name])
        numbers = to_numeric(texts, errors="coerce")
        typed[name] = numbers if numbers.count() == texts.count() else texts
    typed |= dict(factors.loc[table.index].items())
    return DataFrame(typed, table.index)
