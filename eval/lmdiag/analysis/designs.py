"""The design of a table of items: cell means, effects and mixed models of one response."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from shlex import quote
from typing import Any

import numpy as np
from pandas import Categorical, DataFrame, MultiIndex, Series, concat, to_numeric
from pandas.api.types import is_string_dtype

from lmdiag.analysis import rows
from lmdiag.analysis.effects import (
    Levels,
    effect_scores,
    paired_tests,
    simple_effects,
    tests_by_level,
    within_item_intervals,
)
from lmdiag.analysis.linear import LinearFit, fit_mixed
from lmdiag.analysis.regression import grouping_columns, names_in
from lmdiag.measures import CRITICAL
from lmdiag.presentable import Presentable
from lmdiag.stimuli.designs.column_warnings import (
    NO_CONDITION,
    refuse_between_items,
    refuse_lookalike_levels,
    warnings_of,
    why_no_conditions,
)
from lmdiag.stimuli.designs.conditions import ColumnUses, uses_of
from lmdiag.stimuli.designs.shown import read_lines
from lmdiag.stimuli.values.items import item_column
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.levels import in_given_order, level_texts
from lmdiag.tables.table_files import as_texts, name_texts, written_text
from lmdiag.text import (
    DATA_SUFFIX,
    column_like,
    first_few,
    in_order,
    listing,
    suggest,
    visible,
)
from lmdiag.types import BadInput, Coding

UNITS = {"surprisal": "bits", "log_odds": "nats", "correct": "share"}
"""Response -> its unit; others have none, or it is not known."""

PARTS_OF = {"sentence": "the whole sentence", "word": ""}
"""What rows ask, see `Diagnostic.asks` -> what the response of a row is of."""

_CELL_COLUMNS = {"suite", "model", "item", "n", "mean", "ci_low", "ci_high", "value"}
"""Columns of `Analysis.cells` and `Analysis.items` beside the conditions."""

_UsesOf = Callable[[DataFrame], ColumnUses]
"""What finds the conditions of a table, or takes those that the user names."""

_Groups = Mapping[tuple[str, str], DataFrame]
"""Suite and model -> a table; each is analysed by itself."""


@dataclass(frozen=True, repr=False)
class Analysis(Presentable):
    """Cells, effects and mixed models of one response.

    Where the suites of a folder have different conditions, each suite is analysed by itself; the
    tables then begin with a column `suite`.

    Attributes:
        response: its name.
        conditions: see `Levels`; empty where there is only a formula.
        items: the mean response of each item in each cell: model, item, the conditions, value.
        left_out: suite and model -> number of items that lack a cell.
        cells: a row per model and cell: model, the conditions, n (items), mean, ci_low, ci_high
            (95% within items; of a response that is 0 or 1, for 8 items or more). A condition with
            one of these names has `_data` at its end.
        effects: a row per model and effect: model, effect, label (the effect with its levels),
            n (items), estimate (second less first level; of an interaction, the difference of these
            differences), ci_low, ci_high (95%), t, df, p, p_sign_flip (for n up to 16), p_holm
            (over the n_tests pairs of levels, for conditions of more than two), d_z (estimate in
            standard deviations over items).
        simple: of each interaction of two conditions that is there, see `simple_effects`.
        differences: the same, of the effects of each other model less those of the first one.
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
        reads: the first row of a table that was made elsewhere, and what its columns are used for.
        warnings: what looks wrong in the columns of the table.
        sources: model or file -> what is known of it.
        signatures: of the runs, also of those that a table of items names.
    """

    response: str
    conditions: Levels
    items: DataFrame
    left_out: Mapping[tuple[str, str], int]
    cells: DataFrame
    effects: DataFrame
    simple: DataFrame
    differences: DataFrame
    mixed: Mapping[str, LinearFit]
    by: str
    by_level: DataFrame
    region: str
    not_compared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    part: str = ""
    reads: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    signatures: tuple[str, ...] = ()

    def __repr__(self) -> str:
        conditions = " x ".join(self.conditions)
        return f"<Analysis of {self.response} by {conditions or 'a formula'}>"

    @property
    def has_models(self) -> bool:
        """Whether there are several models."""
        return len({*self.cells.get("model", ()), *self.mixed}) > 1

    def response_text(self) -> str:
        """Returns the response and what it is of, e.g. "surprisal of region 2"."""
        part = f" of {self.part}" if self.part and self.response != "correct" else ""
        texts = {"": part, rows.EACH_REGION: " in each region", CRITICAL: " of the critical word"}
        region = texts.get(self.region, f" of region {self.region}")
        return visible(self.response.replace("_", " ") + region)

    def to_frame(self) -> DataFrame:
        """Returns all tables below each other as a pandas table.

        The first column, `table`, is effects, simple, differences, by, cells or mixed; the others
        are those of the tables, see the attributes, NaN where a table does not have them. The last
        ones say, where it is known, which models and files these are, and with which signatures.
        """
        tables = {
            "effects": self.effects, "simple": self.simple, "differences": self.differences,
            "by": self.by_level, "cells": self.cells,
        }  # fmt: skip
        if self.mixed:
            terms = concat({m: fit.terms for m, fit in self.mixed.items()}, names=["model"])
            tables["mixed"] = terms.reset_index()
        named_tables = [
            table.assign(table=name)[["table", *table]]
            for name, table in tables.items()
            if len(table)
        ]
        frame = concat(named_tables, ignore_index=True)
        if self.sources:
            texts = [f"{name}: {text}" for name, text in self.sources.items()]
            frame["source"] = "; ".join(texts)
        if self.signatures:
            frame["signature"] = "; ".join(self.signatures)
        return frame

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag analyse --json` prints; undefined numbers are None.

        Rows name models where there are several; p_sign_flip and p_holm where there are any.
        `sources` (model or file -> what is known of it) and `signatures` name what was analysed.
        """
        tables = {"cells": self.cells, "effects": self.effects, "mixed": DataFrame()}
        if self.mixed:
            terms = concat({m: fit.terms for m, fit in self.mixed.items()}, names=["model"])
            tables["mixed"] = terms.drop(columns=["ci_low", "ci_high"]).reset_index()
        if self.has_models:
            tables["differences"] = self.differences
        if len(self.simple):
            tables["simple"] = self.simple
        if self.by:
            tables["by"] = self.by_level
        record: dict[str, Any] = {}
        for name, table in tables.items():
            columns = table if self.has_models else table.drop(columns="model", errors="ignore")
            record[name] = columns.astype(object).where(columns.notna(), None).to_dict("records")
        record["mixed"] = record["mixed"] or None
        if warnings := [fit.warning for fit in self.mixed.values() if fit.warning]:
            record["warning"] = warnings[0]
        return record | {"sources": {**self.sources}, "signatures": [*self.signatures]}


def analyse_table(
    table: DataFrame,
    *,
    response: str = "",
    conditions: Sequence[str] = (),
    formula: str = "",
    region: str = "",
    coding: Coding = "sum",
    item: Sequence[str] = (),
    levels: Mapping[str, Sequence[object]] | None = None,
    by: str = "",
    not_compared: Collection[str] = (),
) -> Analysis:
    """Analyses the items of one or several models; `lmdiag.analyse` has the other arguments.

    Args:
        table: a row per item and condition, with a column `item` (or `contrast`), and a column
            `model` where there are several; see `lmdiag.analysis.items.items_of`.
        conditions: columns; () for those that `uses_of` finds, in each suite by itself if
            suites have different conditions.
        formula: of a mixed model, see `fit_mixed`; fitted to the rows of each model, or to all
            rows if it has the column `model`.
        levels: column -> its levels in the order that the user chose.
        not_compared: models whose responses are not comparable with those of the first one.
    """
    columns = [*table.columns]  # the user may spell them in another way
    conditions = [column_like(name, columns) for name in conditions]
    by = by and column_like(by, columns)
    response = response and column_like(response, columns)
    item = [column_like(name, columns) for name in item]
    item_by_name = [] if item or formula else _item_by_name(table)
    item = item or item_by_name
    response = response or formula.partition("~")[0].strip(" `") or "surprisal"
    orders = {
        column_like(name, columns): levels_in_order
        for name, levels_in_order in (levels or {}).items()
    }
    named_columns = [*conditions, *filter(None, [by]), *orders]
    variables = names_in(formula)
    is_each_region = region == rows.EACH_REGION
    if is_each_region and formula:
        raise BadInput("a formula is fitted to one region: choose it with --region")

    table = rows.unperturbed(table, item, named_columns)
    rows.check_one_measure(table)
    table = rows.of_region(table, region, [*named_columns, *variables])
    region = region or rows.region_of_all(table)
    table = rows.with_model_and_item(table)
    table, notes = rows.with_response(table, response)
    table, left_out = rows.with_a_value(table, response)
    notes += [left_out, *(f"columns: {name} as item" for name in item_by_name)]
    reads: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    # the names of a suite and its item are joined
    item_column = item[0] if item else "item"
    if len(item) > 1 or "suite" in table:
        item_column = ""

    def uses_in(part: DataFrame) -> ColumnUses:
        return uses_of(rows.data_of(part), conditions, response, item=item_column)

    levels_found: Mapping[str, Sequence[str]] = {}
    if "item" in table:
        uses = uses_in(table)
        refuse_lookalike_levels(uses)
        refuse_between_items(uses)
        warnings = tuple(warnings_of(uses))
        levels_found = uses.conditions
        cells = [rows.column_of(table, name) for name in uses.conditions]
        reads = _read_lines(
            table, response, dict(zip(uses.conditions, cells, strict=True)), uses, item
        )
        keys = [*cells, *grouping_columns(formula), *(["suite"] if "suite" in table else [])]
        table, sum_note = rows.summed_over_words(table, response, keys, variables)
        notes.append(sum_note)

    is_accuracy = response == "correct" or bool(table[response].isin((0, 1)).all())
    is_required = bool(conditions or by or not formula)
    means = _means(
        table, uses_in, response, orders, is_required=is_required, is_each_region=is_each_region
    )
    names = dict.fromkeys(
        name for cell_means in means.values() for name in cell_means.columns.names
    )
    factors = _as_ordered_levels(table, [*names, *named_columns], orders, levels_found)
    levels_in_order = {name: tuple(factors[name].cat.categories) for name in names}
    complete_means = {group: cell_means.dropna() for group, cell_means in means.items()}
    scores = {
        group: effect_scores(cell_means, levels_in_order, coding)
        for group, cell_means in complete_means.items()
    }
    models = [*table["model"].unique()]
    unlike_models = tuple(
        x for x in models if any(x == y or x.startswith(f"{y} ") for y in not_compared)
    )
    differences = _differences(scores, [model for model in models if model not in unlike_models])
    return Analysis(
        response=response,
        conditions=levels_in_order,
        items=_stacked(complete_means, _long),
        left_out={
            group: len(cell_means) - len(complete_means[group])
            for group, cell_means in means.items()
        },
        cells=_stacked(complete_means, partial(_cell_means, is_accuracy=is_accuracy)),
        effects=_stacked(scores, paired_tests),
        simple=_stacked(complete_means, lambda cells: simple_effects(cells, levels_in_order)),
        differences=_stacked(differences, paired_tests),
        mixed=_mixed_models(formula, table, factors, coding) if formula else {},
        by=by,
        by_level=_tests_by_level(scores, table, by, factors, names) if by else DataFrame(),
        region=region,
        not_compared=unlike_models,
        notes=tuple(filter(None, notes)),
        reads=reads,
        warnings=warnings,
    )


def _read_lines(
    table: DataFrame,
    response: str,
    conditions: Mapping[str, str],
    found: ColumnUses,
    item: Sequence[str],
) -> tuple[str, ...]:
    """Returns how a table of responses was read: its first row, and the uses of its columns.

    Args:
        conditions: name of a condition -> its column.
        found: what all columns are used for.
        item: columns whose values together name an item.
    """
    row = table.iloc[0]
    names = [written_text(row[column]) for column in conditions.values()]
    names = [f"item {written_text(row['item'])}", *names]
    levels = {
        f"{name} ({', '.join(level_names)})": "condition"
        for name, level_names in found.conditions.items()
    }
    roles = ("item", response, *conditions.values())
    others = {  # without columns that have a known name, too
        name: use
        for name, use in found.other_uses.items()
        if name not in table or not any(table[name].equals(table[role]) for role in roles)
    }
    uses = {"item": "item", **levels, response: "response", **others}
    if item:
        uses = dict.fromkeys(item, "item") | {x: uses[x] for x in uses if x not in ("item", *item)}
    uses = {name: use for name, use in uses.items() if name not in ("model", "signature")}
    return read_lines(names, f"{response} {row[response]:g}", uses)


def _as_ordered_levels(
    table: DataFrame,
    names: Iterable[str],
    orders: Mapping[str, Any],
    levels_found: Mapping[str, Sequence[str]],
) -> DataFrame:
    """The columns of the design, by the user's names, as categories with their levels in order.

    `kept` has the levels of conditions that were found; rows with other ones have none.
    """
    factors = {}
    for name in names:
        texts = level_texts(table[rows.column_of(table, name)])
        texts = texts.where(texts.isin(levels_found[name])) if name in levels_found else texts
        levels = in_order(texts.dropna().unique())
        chosen_order = tuple(level_texts(Series(orders.get(name, ()), dtype=object)))
        factors[name] = Categorical(texts, in_given_order(name, levels, chosen_order))
    return DataFrame(factors, table.index)


def _means(
    table: DataFrame,
    uses_in: _UsesOf,
    response: str,
    orders: Mapping[str, Any],
    *,
    is_required: bool,
    is_each_region: bool,
) -> dict[tuple[str, str], DataFrame]:
    """Suite and model -> the mean response of each item (rows) in each cell (columns)."""
    suites = {"": table}
    if {"item", "suite"} <= {*table} and (is_each_region or not uses_in(table).conditions):
        suites = dict(iter(table.groupby("suite", sort=False)))
    means: dict[tuple[str, str], DataFrame] = {}
    problems = []
    for suite, suite_rows in suites.items():
        if is_each_region and not suite_rows[response].any():
            continue
        try:
            cell_means = _means_of_models(suite_rows, uses_in, response, orders)
            means |= {
                (suite, model): means_of_model for model, means_of_model in cell_means.items()
            }
        except BadInput as error:
            problems.append(error)
    if problems and is_required and not means:
        raise problems[0]
    return means


def _item_by_name(table: DataFrame) -> list[str]:
    """Returns the column that names the items of a table without a column item; [] for none."""
    if {"item", "contrast"} & {*table.columns}:
        return []
    name = item_column({name: values_of(table[name]) for name in table})
    return [name] if name else []


def _means_of_models(
    table: DataFrame, uses_in: _UsesOf, response: str, orders: Mapping[str, Any]
) -> dict[str, DataFrame]:
    """Returns model -> mean response of each item (rows) in each cell of the design (columns).

    The table is one suite, or has no suites. Items without rows in a cell have nan there; see
    `_means` for the arguments.
    """
    if "item" not in table:
        near = suggest("item", table)
        has = f"the table has no column item{near}, which names the items of the design"
        raise BadInput(f"{has}: name them by --item COLUMN")
    uses = uses_in(table)
    names = [*uses.conditions]
    if not names:
        raise BadInput(why_no_conditions(uses) or NO_CONDITION)
    factors = _as_ordered_levels(table, names, orders, uses.conditions)
    levels = [[*factors[name].cat.categories] for name in names]
    if single := [
        name
        for name, levels_of_condition in zip(names, levels, strict=True)
        if len(levels_of_condition) < 2
    ]:
        raise BadInput(f"the column {single[0]} has fewer than two levels")
    cells = MultiIndex.from_product(levels, names=names)
    keys = factors.astype(object).assign(**{"": name_texts(table["item"])})[["", *names]]
    means = {}
    for model, model_rows in table.groupby("model", sort=False):
        row_keys = [values for _, values in keys.loc[model_rows.index].items()]
        items = row_keys[0].dropna().unique()
        all_cells = MultiIndex.from_product([items, *levels])
        values = model_rows[response].groupby(row_keys).mean().reindex(all_cells).to_numpy()
        item_means = DataFrame(values.reshape(-1, len(cells)), items, cells).rename_axis("item")
        if item_means.isna().any(axis=1).all():
            raise BadInput(_no_complete_item(item_means))
        means[str(model)] = item_means
    return means


def _no_complete_item(means: DataFrame) -> str:
    """Why no item has a value in all cells, and what to do."""
    names = [*means.columns.names]
    has = f"no item has a value in all {means.shape[1]} cells of {' x '.join(names)}"
    empty = means.columns[means.isna().all().to_numpy()]
    if len(empty):
        cells = first_few([", ".join(cell) for cell in empty])
        return f"{has}, and none has one in {cells}: leave levels out by --filter"
    if (means.notna().sum(axis=1) <= 1).all():
        return f"{has}, since each has one level: --by takes a column that differs between items"
    return f"{has}: name fewer of them by --conditions, or leave levels out by --filter"


def cell_columns(conditions: Iterable[str]) -> dict[str, str]:
    """Returns the column of each condition in `Analysis.cells` and `Analysis.items`."""
    names = [*conditions]
    columns: dict[str, str] = {}
    for name in names:
        column = name
        while column in _CELL_COLUMNS or (column != name and column in names):
            column += DATA_SUFFIX
        columns[name] = column
    return columns


def _long(means: DataFrame) -> DataFrame:
    """Returns the means of `_means` as a row per item and cell; see `Analysis.items`."""
    columns = cell_columns(means.columns.names)
    return means.rename_axis(columns=columns.values()).melt(ignore_index=False).reset_index()


def _cell_means(means: DataFrame, *, is_accuracy: bool) -> DataFrame:
    """The mean of each column of `_means` with its interval; see `Analysis.cells`."""
    intervals = within_item_intervals(means.to_numpy(), is_accuracy=is_accuracy)
    low, high = np.transpose(intervals)
    table = means.columns.to_frame(index=False, name=[*cell_columns(means.columns.names).values()])
    return table.assign(n=len(means), mean=means.mean().to_numpy(), ci_low=low, ci_high=high)


def _stacked(groups: _Groups, table_of: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Returns a table of each group, below each other, after columns `suite` and `model`.

    The column `suite` is left out where all rows are analysed together.
    """
    tables = {group: table_of(group_table) for group, group_table in groups.items()}
    if not tables:
        return DataFrame()
    stacked = concat(tables, names=["suite", "model"]).reset_index(["suite", "model"])
    texts = [name for name, kind in stacked.dtypes.items() if is_string_dtype(kind)]
    stacked[texts] = stacked[texts].fillna("")  # conditions of other suites
    return stacked.reset_index(drop=True).drop(columns=[] if stacked["suite"].any() else "suite")


def _differences(scores: _Groups, models: Sequence[str]) -> _Groups:
    """The contrasts of each model less those of the first one, over the items of both."""
    return {
        (suite, f"{model} - {models[0]}"): (model_scores - scores[suite, models[0]]).dropna()
        for (suite, model), model_scores in scores.items()
        if model in models[1:] and (suite, models[0]) in scores
    }


def _tests_by_level(
    scores: _Groups, table: DataFrame, by: str, factors: DataFrame, names: Iterable[str]
) -> DataFrame:
    """The effects by a factor between items; `BadInput` if an item has several of its levels."""
    others = [name for name in names if name != by]
    levels = factors[by].groupby(name_texts(table["item"]))
    several = levels.nunique() > 1
    if several.any():
        remedy = "leave --by out for its effect"
        if others:
            level = quote(f"{by}={levels.first().iloc[0]}")
            remedy = f"for the effects of {listing(others)} at one level give --filter {level}"
        raise BadInput(
            f"{by} differs within item {several.idxmax()}: --by takes a column that differs "
            f"between items only; {remedy}"
        )
    first_levels = levels.first()
    return _stacked(scores, lambda group: tests_by_level(group, first_levels))


def _mixed_models(
    formula: str, table: DataFrame, factors: DataFrame, coding: Coding
) -> dict[str, LinearFit]:
    """Model -> its fit; "" -> one fit of all rows, if the formula has the column `model`."""
    texts = {name: level_texts(table[name]) for name in table.columns}
    numbers = {name: to_numeric(column, errors="coerce") for name, column in texts.items()}
    typed_columns = {
        x: numbers[x] if numbers[x].count() == texts[x].count() else texts[x] for x in texts
    }
    groups_of = {name: as_texts(table[name]) for name in grouping_columns(formula) if name in table}
    rows_of_all = DataFrame(typed_columns | dict(factors.items()) | groups_of, table.index)
    is_of_all_models = re.search(r"(?<!\w)model(?!\w)", formula)
    groups = (
        [("", rows_of_all)] if is_of_all_models else rows_of_all.groupby(table["model"], sort=False)
    )
    return {str(model): fit_mixed(formula, part, coding=coding) for model, part in groups}
