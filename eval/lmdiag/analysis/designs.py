"""The design of a table of items: cell means, effects and mixed models of one response."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from shlex import quote
from typing import Any, NamedTuple

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

_FindUses = Callable[[DataFrame], ColumnUses]
"""Finds what the columns of some rows are used for, or takes the conditions that the user names."""

_TableOfGroup = Mapping[tuple[str, str], DataFrame]
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
        """Returns the response and the conditions, instead of all tables."""
        conditions = " x ".join(self.conditions)
        return f"<Analysis of {self.response} by {conditions or 'a formula'}>"

    @property
    def has_models(self) -> bool:
        """Whether there are several models."""
        models = {*self.cells.get("model", ()), *self.mixed}
        return len(models) > 1

    def response_text(self) -> str:
        """Returns the response and what it is of, e.g. "surprisal of region 2"."""
        response = self.response.replace("_", " ")
        if self.region == rows.EACH_REGION:
            return visible(f"{response} in each region")
        if self.region == CRITICAL:
            return visible(f"{response} of the critical word")
        if self.region:
            return visible(f"{response} of region {self.region}")
        # "correct of the whole sentence" would say that the sentence is correct
        if self.part and self.response != "correct":
            return visible(f"{response} of {self.part}")
        return visible(response)

    def to_frame(self) -> DataFrame:
        """Returns all tables below each other as a pandas table.

        The first column, `table`, is effects, simple, differences, by, cells or mixed; the others
        are those of the tables, see the attributes, NaN where a table does not have them. The last
        ones say, where it is known, which models and files these are, and with which signatures.
        """
        tables = {
            "effects": self.effects, "simple": self.simple, "differences": self.differences,
            "by": self.by_level, "cells": self.cells, "mixed": self._mixed_terms(),
        }  # fmt: skip
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

    def _mixed_terms(self) -> DataFrame:
        """Returns the fixed effects of all mixed models below each other.

        A row is a term of a model: `model`, `term`, estimate, se, df, ci_low, ci_high, t and p.
        """
        if not self.mixed:
            return DataFrame()
        terms_of_model = {model: fit.terms for model, fit in self.mixed.items()}
        return concat(terms_of_model, names=["model"]).reset_index()

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag analyse --json` prints; undefined numbers are None.

        Rows name models where there are several; p_sign_flip and p_holm where there are any. Terms
        of mixed models have no intervals here; `mixed` is None if no formula was fitted, and
        `warning` is that of the first fit with a warning.

        `sources` (model or file -> what is known of it) and `signatures` name what was analysed.
        """
        mixed_terms = self._mixed_terms().drop(columns=["ci_low", "ci_high"], errors="ignore")
        tables = {"cells": self.cells, "effects": self.effects, "mixed": mixed_terms}
        if self.has_models:
            tables["differences"] = self.differences
        if len(self.simple):
            tables["simple"] = self.simple
        if self.by:
            tables["by"] = self.by_level
        record: dict[str, Any] = {}
        for name, table in tables.items():
            if not self.has_models:
                table = table.drop(columns="model", errors="ignore")
            record[name] = table.astype(object).where(table.notna(), None).to_dict("records")
        record["mixed"] = record["mixed"] or None
        warnings_of_fits = [fit.warning for fit in self.mixed.values() if fit.warning]
        if warnings_of_fits:
            record["warning"] = warnings_of_fits[0]
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
    request = _request_for(
        table, response=response, conditions=conditions, formula=formula, region=region, item=item,
        levels=levels or {}, by=by,
    )  # fmt: skip
    response = request.response
    by = request.by
    # the rows that are analysed, and the conditions of the design
    selected = _select_rows(table, request)
    find_uses = partial(_find_uses, request=request, has_suites="suite" in selected.table)
    design = _read_design(selected.table, request, find_uses)
    table = design.table

    # suite and model -> the mean of each item in each cell, and its contrast for each effect
    means = _means(table, find_uses, request)
    # the conditions of all suites, each once
    names = dict.fromkeys(
        name for cell_means in means.values() for name in cell_means.columns.names
    )
    factors = _ordered_factors(
        table, [*names, *request.named_columns], request.orders, design.levels
    )
    levels_in_order = {name: tuple(factors[name].cat.categories) for name in names}
    # only items with a value in every cell have contrasts
    complete_means = {group: cell_means.dropna() for group, cell_means in means.items()}
    n_incomplete = {
        group: len(cell_means) - len(complete_means[group]) for group, cell_means in means.items()
    }
    scores = {
        group: effect_scores(cell_means, levels_in_order, coding)
        for group, cell_means in complete_means.items()
    }
    # models are compared with the first one; a label is the name of a model, or the name and what
    # tells runs of the model apart
    models = [*table["model"].unique()]
    models_not_compared = tuple(
        label
        for label in models
        if any(label == name or label.startswith(f"{name} ") for name in not_compared)
    )
    compared_models = [model for model in models if model not in models_not_compared]
    differences = _differences_from_first(scores, compared_models)
    # intervals of cells stay within 0 and 1 if all responses are 0 or 1
    is_accuracy = response == "correct" or bool(table[response].isin((0, 1)).all())
    return Analysis(
        response=response,
        conditions=levels_in_order,
        items=_stack_tables(complete_means, _item_table),
        left_out=n_incomplete,
        cells=_stack_tables(complete_means, partial(_cell_table, is_accuracy=is_accuracy)),
        effects=_stack_tables(scores, paired_tests),
        simple=_stack_tables(complete_means, partial(simple_effects, levels=levels_in_order)),
        differences=_stack_tables(differences, paired_tests),
        mixed=_mixed_models(formula, table, factors, coding) if formula else {},
        by=by,
        by_level=_tests_by_level(scores, table, by, factors, names) if by else DataFrame(),
        region=selected.region,
        not_compared=models_not_compared,
        notes=tuple(note for note in (*selected.notes, design.note) if note),
        reads=design.reads,
        warnings=design.warnings,
    )


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What the user asks for, with columns as the table spells them.

    Attributes:
        response: a column, or "probability", "log_odds" or "correct".
        conditions: columns; [] to find them.
        formula: of a mixed model; "" for none.
        region: number or name of a region, or `EACH_REGION`; "" if none is chosen.
        item: columns whose values together name an item; [] for the column `item`.
        is_item_found: whether the user does not name this column.
        orders: column -> its levels in the order that the user chose.
        by: a factor between items; "" for none.
    """

    response: str
    conditions: Sequence[str]
    formula: str
    region: str
    item: Sequence[str]
    is_item_found: bool
    orders: Mapping[str, Sequence[object]]
    by: str

    @property
    def named_columns(self) -> list[str]:
        """The columns that the user names as conditions or factors."""
        factors_between_items = [self.by] if self.by else []
        return [*self.conditions, *factors_between_items, *self.orders]

    @property
    def is_each_region(self) -> bool:
        """Whether every region is analysed by itself."""
        return self.region == rows.EACH_REGION

    @property
    def needs_conditions(self) -> bool:
        """Whether a table without conditions is an error; a formula alone needs none."""
        return bool(self.conditions or self.by or not self.formula)


def _request_for(
    table: DataFrame,
    *,
    response: str,
    conditions: Sequence[str],
    formula: str,
    region: str,
    item: Sequence[str],
    levels: Mapping[str, Sequence[object]],
    by: str,
) -> _Request:
    """Returns the arguments of `analyse_table` with columns as the table spells them.

    For example, "RT" becomes "rt" if the table has this column. The response is by default that of
    the formula, or the surprisal. If the user names no column of items, it is found by its name.
    """
    if region == rows.EACH_REGION and formula:
        raise BadInput("a formula is fitted to one region: choose it with --region")
    columns = [*table.columns]  # the user may spell them in another way
    default_response = formula.partition("~")[0].strip(" `") or "surprisal"
    # a formula names the column of the items itself, if it needs one
    found_item = [] if item or formula else _item_column_by_name(table)
    return _Request(
        response=column_like(response, columns) if response else default_response,
        conditions=[column_like(name, columns) for name in conditions],
        formula=formula,
        region=region,
        item=[column_like(name, columns) for name in item] or found_item,
        is_item_found=bool(found_item),
        orders={column_like(name, columns): order for name, order in levels.items()},
        by=column_like(by, columns) if by else "",
    )


def _item_column_by_name(table: DataFrame) -> list[str]:
    """Returns the column that names the items, e.g. ["sentence_id"]; [] if none is found.

    [] also for a table with a column `item` or `contrast`, which needs no other one.
    """
    if {"item", "contrast"} & {*table.columns}:
        return []
    name = item_column({name: values_of(table[name]) for name in table})
    return [name] if name else []


class _SelectedRows(NamedTuple):
    """The rows that are analysed.

    Attributes:
        table: with the response as numbers, and the columns `model` and, if known, `item`.
        region: that the rows are of; "" for rows as a whole.
        notes: what was left out or found, for readers.
    """

    table: DataFrame
    region: str
    notes: Sequence[str]


def _select_rows(table: DataFrame, request: _Request) -> _SelectedRows:
    """Returns the unperturbed rows of the chosen region, of models that have any response.

    The rows have the response as numbers, and the columns `model` and `item`.
    """
    table = rows.select_unperturbed(table, request.item, request.named_columns)
    rows.check_one_measure(table)
    variables = names_in(request.formula)
    table = rows.select_region(table, request.region, [*request.named_columns, *variables])
    region = request.region or rows.region_of_all(table)
    table = rows.with_model_and_item(table)
    table, notes = rows.with_response(table, request.response)
    table, models_note = rows.select_models_with_values(table, request.response)
    notes.append(models_note)
    if request.is_item_found:
        notes += [f"columns: {name} as item" for name in request.item]
    return _SelectedRows(table, region, notes)


def _find_uses(table: DataFrame, *, request: _Request, has_suites: bool) -> ColumnUses:
    """Returns what the columns of some rows are used for, among them the conditions.

    `has_suites` says whether the whole table has a column `suite`, which then names items, too.
    """
    column_of_items = request.item[0] if request.item else "item"
    if len(request.item) > 1 or has_suites:  # no single column names the items
        column_of_items = ""
    data = rows.data_columns(table)
    return uses_of(data, request.conditions, request.response, item=column_of_items)


class _Design(NamedTuple):
    """A table whose columns were read.

    Attributes:
        table: the rows, with surprisals of words summed.
        levels: condition -> its levels in all suites; {} if a table has no items.
        reads: lines that show how the table was read.
        warnings: what looks wrong in its columns.
        note: how words were summed; "" where nothing was done.
    """

    table: DataFrame
    levels: Mapping[str, Sequence[str]] = {}
    reads: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    note: str = ""


def _read_design(table: DataFrame, request: _Request, find_uses: _FindUses) -> _Design:
    """Finds the conditions of a table, checks its columns, and sums surprisals over words.

    A table without a column `item` stays as it is: a formula may be fitted to it. `BadInput` if two
    levels look alike, or a condition differs between items only.

    Args:
        table: the rows that are analysed.
        request: what the user asks for.
        find_uses: finds what the columns of rows are used for.
    """
    if "item" not in table:
        return _Design(table)
    uses = find_uses(table)
    refuse_lookalike_levels(uses)
    refuse_between_items(uses)
    column_of_condition = {name: rows.column_of(table, name) for name in uses.conditions}
    reads = _read_lines(table, request.response, column_of_condition, uses, request.item)
    # words are summed within one value of each of these columns
    keys = [*column_of_condition.values(), *grouping_columns(request.formula)]
    if "suite" in table:
        keys.append("suite")
    variables = names_in(request.formula)
    table, note = rows.sum_over_words(table, request.response, keys, variables)
    return _Design(table, uses.conditions, reads, tuple(warnings_of(uses)), note)


def _read_lines(
    table: DataFrame,
    response: str,
    column_of_condition: Mapping[str, str],
    uses: ColumnUses,
    item: Sequence[str],
) -> tuple[str, ...]:
    """Returns two lines that show how a table was read: its first row, and the uses of its columns.

    For example, "reads item 3, amb: rt 402" and "columns: item: item; condition: ...".

    Args:
        table: with the columns `item` and `response`.
        response: a column of numbers.
        column_of_condition: name of a condition -> its column.
        uses: what all columns are used for.
        item: columns whose values together name an item; [] for the column `item`.
    """
    row = table.iloc[0]
    names = [f"item {written_text(row['item'])}"]
    names += [written_text(row[column]) for column in column_of_condition.values()]
    use_of = {"item": "item"}
    for name, level_names in uses.conditions.items():
        use_of[f"{name} ({', '.join(level_names)})"] = "condition"
    use_of[response] = "response"
    columns_in_use = [table[name] for name in ("item", response, *column_of_condition.values())]
    for name, use in uses.other_uses.items():
        # the reader of tables adds a copy of a column under its known name: one of the two is shown
        is_copy = name in table and any(table[name].equals(column) for column in columns_in_use)
        if not is_copy:
            use_of[name] = use
    if item:  # the column `item` was made of these columns, which are shown in its place
        other_uses = {name: use for name, use in use_of.items() if name not in ("item", *item)}
        use_of = dict.fromkeys(item, "item") | other_uses
    # these two columns say which run gave an answer, and have no use in the design
    use_of = {name: use for name, use in use_of.items() if name not in ("model", "signature")}
    return read_lines(names, f"{response} {row[response]:g}", use_of)


def _ordered_factors(
    table: DataFrame,
    names: Iterable[str],
    orders: Mapping[str, Any],
    levels_of: Mapping[str, Sequence[str]],
) -> DataFrame:
    """Returns columns as categories with their levels in order, under the user's names.

    For example, the column "length" with the values "short" and "long" has the levels ("long",
    "short") in alphabetical order, and ("short", "long") if the user gives this order.

    Args:
        table: a row per item and condition.
        names: of the columns.
        orders: column -> its levels in the order that the user chose; others are in alphabetical
            order.
        levels_of: condition -> the levels that are analysed; other values become missing.
    """
    factors = {}
    for name in names:
        texts = level_texts(table[rows.column_of(table, name)])
        if name in levels_of:
            texts = texts.where(texts.isin(levels_of[name]))
        levels = in_order(texts.dropna().unique())
        # levels may be given as numbers, and become texts as the values of a column do
        chosen_order = tuple(level_texts(Series(orders.get(name, ()), dtype=object)))
        factors[name] = Categorical(texts, in_given_order(name, levels, chosen_order))
    return DataFrame(factors, table.index)


def _means(
    table: DataFrame, find_uses: _FindUses, request: _Request
) -> dict[tuple[str, str], DataFrame]:
    """Returns suite and model -> the mean response of each item (rows) in each cell (columns).

    The suite is "" where all suites have the same conditions and are analysed together. Suites that
    cannot be analysed are left out; `BadInput` if none is left.
    """
    table_of_suite = {"": table}
    has_suites = "item" in table and "suite" in table
    # with `EACH_REGION`, the column `suite` has the names of the regions
    if has_suites and (request.is_each_region or not find_uses(table).conditions):
        table_of_suite = dict(iter(table.groupby("suite", sort=False)))
    means: dict[tuple[str, str], DataFrame] = {}
    problems = []
    for suite, suite_table in table_of_suite.items():
        if request.is_each_region and not suite_table[request.response].any():
            continue  # a region without words, whose surprisals are 0 or missing
        try:
            means_of_model = _means_of_models(suite_table, find_uses, request)
        except BadInput as error:
            problems.append(error)
            continue
        for model, model_means in means_of_model.items():
            means[suite, model] = model_means
    if problems and request.needs_conditions and not means:
        raise problems[0]
    return means


def _means_of_models(
    table: DataFrame, find_uses: _FindUses, request: _Request
) -> dict[str, DataFrame]:
    """Returns model -> mean response of each item (rows) in each cell of the design (columns).

    For example, with the conditions polarity and length, item "7" has a mean in each of the cells
    (affirmative, short), (affirmative, long), (negated, short) and (negated, long). Items without
    rows in a cell have NaN there.

    Args:
        table: the rows of one suite, or of a table without suites.
        find_uses: finds what the columns are used for, among them the conditions.
        request: what the user asks for.
    """
    if "item" not in table:
        near = suggest("item", table)
        problem = f"the table has no column item{near}, which names the items of the design"
        raise BadInput(f"{problem}: name them by --item COLUMN")
    uses = find_uses(table)
    names = [*uses.conditions]
    if not names:
        raise BadInput(why_no_conditions(uses) or NO_CONDITION)
    # all combinations of levels are cells, also those that no row has
    factors = _ordered_factors(table, names, request.orders, uses.conditions)
    levels = [[*factors[name].cat.categories] for name in names]
    for name, levels_of_condition in zip(names, levels, strict=True):
        if len(levels_of_condition) < 2:
            raise BadInput(f"the column {name} has fewer than two levels")
    cells = MultiIndex.from_product(levels, names=names)
    # the column "" has the items, since a condition may have the name of any other column
    keys = factors.astype(object).assign(**{"": name_texts(table["item"])})[["", *names]]
    means = {}
    for model, model_rows in table.groupby("model", sort=False):
        model_keys = keys.loc[model_rows.index]
        items = model_keys[""].dropna().unique()
        key_columns = [column for _, column in model_keys.items()]
        all_cells = MultiIndex.from_product([items, *levels])
        responses = model_rows[request.response]
        # all cells of the first item, then all cells of the second one: `reshape` makes them rows
        values = responses.groupby(key_columns).mean().reindex(all_cells).to_numpy()
        item_means = DataFrame(values.reshape(-1, len(cells)), items, cells).rename_axis("item")
        if item_means.isna().any(axis=1).all():
            raise BadInput(_no_complete_item(item_means))
        means[str(model)] = item_means
    return means


def _no_complete_item(means: DataFrame) -> str:
    """Returns why no item has a value in all cells, and what to do.

    Args:
        means: the mean response of each item (rows) in each cell (columns), NaN for none.
    """
    names = [*means.columns.names]
    problem = f"no item has a value in all {means.shape[1]} cells of {' x '.join(names)}"
    is_empty = means.isna().all().to_numpy()
    empty_cells = means.columns[is_empty]
    if len(empty_cells):
        cells = first_few([", ".join(cell) for cell in empty_cells])
        return f"{problem}, and none has one in {cells}: leave levels out by --filter"
    n_cells_of_item = means.notna().sum(axis=1)
    if (n_cells_of_item <= 1).all():
        remedy = "--by takes a column that differs between items"
        return f"{problem}, since each has one level: {remedy}"
    return f"{problem}: name fewer of them by --conditions, or leave levels out by --filter"


def cell_columns(conditions: Iterable[str]) -> dict[str, str]:
    """Returns condition -> the name of its column in the tables `Analysis.cells` and `.items`.

    A condition that is called as another column of these tables, such as "model" or "n", gets
    `_data` at its end.

    >>> cell_columns(["polarity", "model"])
    {'polarity': 'polarity', 'model': 'model_data'}
    """
    names = [*conditions]
    columns: dict[str, str] = {}
    for name in names:
        column = name
        while column in _CELL_COLUMNS or (column != name and column in names):
            column += DATA_SUFFIX
        columns[name] = column
    return columns


def _item_table(means: DataFrame) -> DataFrame:
    """Returns the means of items (rows) in cells (columns) as a row per item and cell.

    The columns are item, the conditions and value. For example, of the conditions polarity and
    length, a row is "7", "negative", "long", 11.2.
    """
    # a condition called as one of the other columns, for example "item", becomes "item_data"
    condition_columns = cell_columns(means.columns.names).values()
    # `melt` calls the column of the means `value`
    return means.rename_axis(columns=condition_columns).melt(ignore_index=False).reset_index()


def _cell_table(means: DataFrame, *, is_accuracy: bool) -> DataFrame:
    """Returns a row per cell (a combination of levels of the conditions).

    The columns are the conditions, n (items), mean, ci_low and ci_high. For example, of the
    conditions polarity and length, a row is "negative", "long", 24, 0.75, 0.6, 0.86.

    Args:
        means: the mean response of each item (rows) in each cell (columns), without NaN: only items
            with a value in every cell.
        is_accuracy: whether the response is 1 or 0.
    """
    intervals = within_item_intervals(means.to_numpy(), is_accuracy=is_accuracy)
    low, high = np.transpose(intervals)
    # a condition called as one of the other columns, for example "n", becomes "n_data"
    condition_columns = [*cell_columns(means.columns.names).values()]
    table = means.columns.to_frame(index=False, name=condition_columns)
    return table.assign(n=len(means), mean=means.mean().to_numpy(), ci_low=low, ci_high=high)


def _stack_tables(
    group_tables: _TableOfGroup, compute: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Computes a table from that of each suite and model, and stacks the results.

    They get the columns `suite` and `model`; `suite` is left out where all rows are analysed
    together. An empty table if there are no groups.
    """
    results = {group: compute(group_table) for group, group_table in group_tables.items()}
    if not results:
        return DataFrame()
    stacked = concat(results, names=["suite", "model"]).reset_index(["suite", "model"])
    text_columns = [name for name, kind in stacked.dtypes.items() if is_string_dtype(kind)]
    # a suite has no levels of the conditions that only other suites have
    stacked[text_columns] = stacked[text_columns].fillna("")
    stacked = stacked.reset_index(drop=True)
    return stacked if stacked["suite"].any() else stacked.drop(columns="suite")


def _differences_from_first(scores: _TableOfGroup, models: Sequence[str]) -> _TableOfGroup:
    """Returns the scores of each further model less those of the first one, by suite.

    They are over the items of both. The result has keys such as ("", "bert - gpt2"), with the suite
    and the names of both models.

    Args:
        scores: suite and model -> the contrast of each item (rows) for each effect (columns).
        models: that are compared, the first one with each of the others.
    """
    differences = {}
    for (suite, model), model_scores in scores.items():
        if model in models[1:] and (suite, models[0]) in scores:
            difference = model_scores - scores[suite, models[0]]
            differences[suite, f"{model} - {models[0]}"] = difference.dropna()
    return differences


def _tests_by_level(
    scores: _TableOfGroup, table: DataFrame, by: str, factors: DataFrame, names: Iterable[str]
) -> DataFrame:
    """Returns the tests of effects at each level of a factor between items.

    `BadInput` if an item has several levels of the factor.

    Args:
        scores: suite and model -> the contrast of each item (rows) for each effect (columns).
        table: the rows, with the column `item`.
        by: the factor.
        factors: the levels of all factors in these rows.
        names: of the conditions, for messages.
    """
    levels_of_item = factors[by].groupby(name_texts(table["item"]))
    has_several = levels_of_item.nunique() > 1
    first_levels = levels_of_item.first()
    if has_several.any():
        remedy = "leave --by out for its effect"
        other_conditions = [name for name in names if name != by]
        if other_conditions:
            level = quote(f"{by}={first_levels.iloc[0]}")
            conditions = listing(other_conditions)
            remedy = f"for the effects of {conditions} at one level give --filter {level}"
        raise BadInput(
            f"{by} differs within item {has_several.idxmax()}: --by takes a column that differs "
            f"between items only; {remedy}"
        )
    return _stack_tables(scores, partial(tests_by_level, level_of_item=first_levels))


def _mixed_models(
    formula: str, table: DataFrame, factors: DataFrame, coding: Coding
) -> dict[str, LinearFit]:
    """Fits a formula to the rows of each model; returns model -> its fit.

    If the formula has the column `model`, it is fitted to all rows, and the only key is "".

    Args:
        formula: in lme4's notation.
        table: the rows.
        factors: conditions as categories with their levels in order, for the same rows.
        coding: of the factors.
    """
    # a column of numbers stays one, unless it is a condition, or has names of groups after "|"
    columns = {}
    for name in table.columns:
        texts = level_texts(table[name])
        numbers = to_numeric(texts, errors="coerce")
        are_all_numbers = numbers.count() == texts.count()
        columns[name] = numbers if are_all_numbers else texts
    columns |= dict(factors.items())
    for name in grouping_columns(formula):
        if name in table:
            columns[name] = as_texts(table[name])
    all_rows = DataFrame(columns, table.index)
    if "model" in names_in(formula):
        return {"": fit_mixed(formula, all_rows, coding=coding)}
    return {
        str(model): fit_mixed(formula, model_rows, coding=coding)
        for model, model_rows in all_rows.groupby(table["model"], sort=False)
    }
