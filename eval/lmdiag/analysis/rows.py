"""The rows of a table of items that are analysed, in named steps, and their response as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame, Series, to_numeric
from scipy.special import logit

from lmdiag.measures import CRITICAL, Trials, registered
from lmdiag.results.item_rows import PARTS, PREDICTED
from lmdiag.stimuli.designs.design import joined_items
from lmdiag.stimuli.perturbations import NONE
from lmdiag.stimuli.proposing.other_rows import filter_of_numbers
from lmdiag.stimuli.values.kinds import MOST_LABELS, values_of
from lmdiag.stimuli.values.levels import joined_texts, level_texts
from lmdiag.stimuli.values.names import (
    TEXT_COLUMNS,
    is_named_as,
    is_outcome,
    named_columns,
    names_measures,
)
from lmdiag.tables.table_files import as_numbers
from lmdiag.text import DATA_SUFFIX, column_like, folded, shortened, without_copies
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas.api.typing import DataFrameGroupBy

EACH_REGION = "all"
"""Stands for every region, each by itself."""

_FEW_LEVELS = 24
"""Distinct values, at most, of a column that is named because rows of one cell differ in it."""

_IN_MOST = 0.5
"""Share of the cells above which their rows count as different in a column."""

_RUN_COLUMNS = {*PREDICTED, "model", "signature", "weights", "task", "perturbation", "shuffle"}
"""Columns of what was asked and answered."""

_RESERVED = {*_RUN_COLUMNS, "suite", *PARTS}
"""Columns of tables of items that are not columns of the data; see `items_of`.

A column of the data with such a name has `_data` at its end."""


def with_numbers(table: DataFrame, response: str, name: str) -> DataFrame:
    """Returns a table whose response, or the surprisals that it is computed from, are numbers.

    A table without such a column is returned as it is: it is refused later, when the response is
    computed (`with_response`).

    Args:
        table: values may be texts. The index has the numbers of the rows, for messages.
        response: a column, or "probability", "log_odds" or "correct".
        name: of the file, for messages.
    """
    column = column_like(response, table.columns)
    if column not in table and response in ("probability", "log_odds", "correct"):
        column = "surprisal"
    if column not in table:
        return table

    def row_name(row: int) -> str:
        return f"{name}:{table.index[row]}"

    try:
        numbers = as_numbers(table[column], column, row_name)
    except BadInput as error:
        remedy = _remedy_for_texts(table, column)
        raise BadInput(f"{error}: {remedy}" if remedy else str(error)) from None
    return table.assign(**{column: numbers})


def _remedy_for_texts(table: DataFrame, response: str) -> str:
    """Returns what to do about a response whose values are partly or all texts; "" for no advice.

    For example, "--filter rt!=timeout leaves out 12 rows".
    """
    values_by_column = {column: values_of(table[column]) for column in table}
    # of another column, as "measure=rt"
    condition = filter_of_numbers(values_by_column, response)
    if condition:
        return f"--filter {quote(condition)} keeps the rows with numbers"
    texts = level_texts(table[response]).dropna()
    not_numbers = texts[to_numeric(texts, errors="coerce").isna()]
    are_most_numbers = 2 * len(not_numbers) < len(texts)
    if are_most_numbers and not_numbers.nunique() <= MOST_LABELS:
        excluded = quote(f"{response}!={','.join(not_numbers.unique())}")
        rows = f"{len(not_numbers):,} rows" if len(not_numbers) > 1 else "1 row"
        return f"--filter {excluded} leaves out {rows}"
    if not texts.str.contains(r"\d").any():
        return _response_choices(table)
    return ""


def _response_choices(table: DataFrame) -> str:
    """Returns advice that names the columns with numbers: "choose --response from rt, accuracy".

    Left out are columns whose numbers are names, of items, models, lists and readers.
    """
    names = [str(name) for name in table if _has_numbers(table[name])]
    # numbers of items, models, lists and readers are names
    names = [name for name in names if folded(name) not in ("item", "model", "list")]
    names_but_readers = [name for name in names if not is_named_as(name, "reader")]
    names = names_but_readers or names
    return f"choose --response from {', '.join(names)}" if names else "there are no numbers"


def column_of(table: DataFrame, name: str) -> str:
    """Returns the column of the data that the user calls by this name.

    It is the name itself, or the name with `_data` at its end: in a table of a run's items, a
    column of the data called "rank" is "rank_data", since "rank" is that of the prediction.
    """
    data_name = f"{name}{DATA_SUFFIX}"
    return data_name if name in _RESERVED and data_name in table else name


def data_columns(table: DataFrame) -> DataFrame:
    """Returns the columns of the data alone, with the user's names.

    Columns that a run adds to its items (the model, predictions, measures) are left out, and
    "rank_data", a column of the data called as one of them, gets its own name "rank" back.
    """
    users_names = {}  # column with `_data` at its end -> the user's name
    for name in _RESERVED:
        if f"{name}{DATA_SUFFIX}" in table:
            users_names[f"{name}{DATA_SUFFIX}"] = name
    no_data = {*_RUN_COLUMNS, *users_names.values()}
    if {*PARTS} <= {*table}:  # rows are regions or words
        no_data |= {*PARTS}
    # only tables of a run's items have these two columns; they have measures, too
    if {"state", "n_tokens"} <= {*table}:
        no_data |= {name for name in table if registered(name)}
    return table.drop(columns=[*no_data], errors="ignore").rename(columns=users_names)


def select_unperturbed(table: DataFrame, item: Sequence[str], named: Sequence[str]) -> DataFrame:
    """Returns the rows of the unperturbed setting; `BadInput` if they are of several tasks.

    Args:
        table: a row per item and condition.
        item: columns whose values together name an item; they become the column `item`. If none is
            given, the column stays as it is.
        named: columns that the user names as conditions. One whose name means something else in
            tables of items, as `suite`, gets `_data` at its end.
    """
    unknown_names = [name for name in (*named, *item) if name not in table]
    if unknown_names:
        names = ", ".join(without_copies(table))
        raise BadInput(f"no column {unknown_names[0]!r}: choose from {names}")
    data_names = {
        name: f"{name}{DATA_SUFFIX}"
        for name in named
        if name in _RESERVED and f"{name}{DATA_SUFFIX}" not in table
    }
    table = table.rename(columns=data_names)
    if item:
        item_columns = [column_of(table, name) for name in item]
        table = table.assign(item=joined_items(table[item_columns]))
    if "perturbation" in table:
        table = table[table["perturbation"] == NONE]
    if "task" in table and table["task"].nunique() > 1:
        tasks = ", ".join(dict.fromkeys(table["task"]))
        raise BadInput(f"there are several tasks: choose one with --task from {tasks}")
    return table


def select_region(table: DataFrame, region: str, named: Sequence[str]) -> DataFrame:
    """Returns the rows of one region, or of every region with its name in the column `suite`.

    For example, the rows of the region "verb", so that conditions are compared at this region
    alone. A table without several regions per item is returned as it is. `BadInput` if no region is
    chosen although items have several, and if no row is of the region.

    Args:
        table: a row per region or word of an item, or a row per item.
        region: number or name of a region; `EACH_REGION` for every one; "" if none is chosen.
        named: columns that the user names as conditions or in a formula. If that of the regions is
            one of them, no region needs to be chosen.
    """
    region_column = "number" if {*PARTS} <= {*table} else "region"
    if not region:
        if region_column not in table or region_column in named:
            return table
        # without a column of items, all rows are counted as one item
        items = table["item"] if "item" in table else Series(0, table.index)
        if table[region_column].groupby(items).nunique().max() < 2:
            return table
        # a region must be chosen: no row is of the region "", and the error below lists the regions
    columns = [name for name in ("number", "name", "region") if name in table]
    if not columns:
        raise BadInput("the table has no regions: write it with --per region")
    texts = table[columns].apply(level_texts)
    names = joined_texts(texts).str.strip()  # e.g. "3 verb" of number 3 and name "verb"
    if region == EACH_REGION:  # one that has a number alone is called as "region 2"
        table = table.assign(suite=names.where(~names.str.isdigit(), "region " + names))
    else:
        table = table[(texts == region).any(axis=1)]
    if table.empty:
        regions = ", ".join(map(shortened, names.unique()[:20]))
        raise BadInput(f"choose a region with --region from {regions}")
    return table


def region_of_all(table: DataFrame) -> str:
    """Returns `CRITICAL` if all rows are the region of a critical word; "" otherwise."""
    has_parts = {*PARTS} <= {*table}
    return CRITICAL if has_parts and (table["name"] == CRITICAL).all() else ""


def with_model_and_item(table: DataFrame) -> DataFrame:
    """Returns the table with the columns `item` and `model`, and rows numbered from 0.

    If there are several runs of one model, e.g. in two precisions, the values of `model` are joined
    with those of `weights` or `signature`, as many as tell the runs apart. Without these three
    columns, `model` is "". If the rows of a contrast are compared with each other, `item` is the
    contrast.
    """
    table = table.reset_index(drop=True)
    present = [name for name in ("model", "weights", "signature") if name in table]
    names: list[str] = []
    if "model" in present:
        n_models = len(table[present].drop_duplicates())
        # the fewest columns that tell all models apart
        for names in (["model"], ["model", "weights"], ["model", "signature"], present):
            if {*names} <= {*present} and len(table[names].drop_duplicates()) == n_models:
                break
    table["model"] = joined_texts(table[names]).str.strip() if names else ""
    # where each row is an item of its own, the rows of a contrast become one item
    has_several_rows = "item" in table and table.duplicated(["model", "item"]).any()
    if {"good", "contrast"} <= {*table} and not has_several_rows:
        table["item"] = table["contrast"]
    return table


def with_response(table: DataFrame, response: str) -> tuple[DataFrame, list[str]]:
    """Returns the table with the response as a column of numbers, NaN for an infinite value.

    Also returns notes that say how many values are missing or infinite.
    """
    values = _response_values(table, response)
    notes = []
    n_missing = int(values.isna().sum())
    if n_missing and response in table and "state" not in table:  # `state` counts them in runs
        notes.append(f"{response} is missing in {n_missing:,} of {len(table):,} rows")
    is_infinite = np.isinf(values)  # of words of probability 0
    n_infinite = int(is_infinite.sum())
    if n_infinite == 1:
        notes.append(f"{response} is infinite in 1 row, which counts as a missing value")
    elif n_infinite:
        rows = f"{n_infinite:,} rows, which count as missing values"
        notes.append(f"{response} is infinite in {rows}")
    return table.assign(**{response: values.mask(is_infinite)}), notes


def select_models_with_values(table: DataFrame, response: str) -> tuple[DataFrame, str]:
    """Returns the rows of the models that have any value of the response.

    Also returns a note that names the other models: "left out: gpt2: rt is missing"; "" if there
    are none.

    Raises:
        BadInput: no model has a value.
    """
    has_value = table[response].notna().groupby(table["model"], sort=False).any()
    if not has_value.any():
        raise BadInput(f"{response} is missing in all {len(table):,} rows")
    if has_value.all():
        return table, ""
    names = ", ".join(map(str, has_value.index[~has_value]))
    return table[table["model"].map(has_value)], f"left out: {names}: {response} is missing"


def _response_values(table: DataFrame, response: str) -> Series:
    """Returns the response of each row as numbers, NaN where it is not known.

    For example, the probability of a row with a surprisal of 2 bits is 0.25.

    Args:
        table: a row for each answer of a model.
        response: a column of the table; or "probability" or "log_odds", which are computed from the
            column `surprisal`; or "correct", which is 1 or 0 by the first of these that the table
            has: a measure of a run (`sensitivity`, `accuracy@1`); rows of contrasts with their
            surprisals, where the good row of a contrast is 1 if it has the lowest surprisal, and
            bad rows are NaN; words that are expected, where a row is 1 if its `top_word` is one of
            those in `expected` ("bird|robin").
    """
    columns = {*table}
    if response in columns:
        return to_numeric(table[response]).astype(float)
    if response in ("probability", "log_odds") and "surprisal" in columns:
        probability = 2.0 ** -table["surprisal"].astype(float)
        return probability if response == "probability" else logit(probability)
    if response != "correct":
        raise BadInput(f"no column {response!r}: {_remedy_for_unknown_response(table, response)}")
    for measure in ("sensitivity", "accuracy@1"):
        if measure in columns:
            return to_numeric(table[measure]).astype(float)
    # a table that was made elsewhere has no measures
    if {"good", "contrast", "surprisal"} <= columns:
        return _sensitivity_of_good_rows(table)  # NaN in bad rows
    if not {"expected", "top_word"} <= columns:
        raise BadInput("correct needs the columns good and contrast, or expected and top_word")
    pairs = table[["top_word", "expected"]].dropna().map(str.lower)
    is_expected = [top_word in expected.split("|") for top_word, expected in pairs.to_numpy()]
    known = Series(is_expected, pairs.index, dtype=float)
    return known.reindex(table.index)  # NaN in rows without a top word or an expected one


def _remedy_for_unknown_response(table: DataFrame, response: str) -> str:
    """Returns what to do if the response is not a column: "choose --response from rt, accuracy"."""
    if re.fullmatch(r"\w+\(.+\)", response):  # as log(rt)
        return "compute a function of a column as a column of its own first"
    has_texts = any(values_of(table[name]).kind() == "text" for name in table)
    remedy = "; `lmdiag run FILE` gives surprisals of texts" if has_texts else ""
    return f"{_response_choices(table)}{remedy}"


def _sensitivity_of_good_rows(table: DataFrame) -> Series:
    """Returns, in the good row of each contrast, whether it has the lowest surprisal (1 or 0).

    NaN in bad rows and where it is undefined.

    Args:
        table: with the columns model, good, contrast and surprisal, and texts where there are any.
    """
    ids = [*map(str, table.index)]
    text_columns = [name for name in TEXT_COLUMNS if name in table]
    are_texts_known = "sentence" in text_columns or {"context", "target"} <= {*text_columns}
    rows = DataFrame({
        "id": ids,
        "good": level_texts(table["good"]).isin(["true", "1"]),
        # each model has contrasts of its own
        "contrast": table["model"].astype(str) + "|" + table["contrast"].astype(str),
        "sentence": ids,  # rows of which no text is known are never the same
        "right_context": "",
    })  # fmt: skip
    if are_texts_known:
        rows = rows.assign(**{name: table[name].astype(str) for name in text_columns})
    log_prob = -table["surprisal"].astype(float).to_numpy() * math.log(2)
    predictions = {"log_prob": log_prob.tolist()}
    trials = Trials(rows.to_dict("list"), predictions, levels={})
    try:
        scores = trials.contrasts.share_with_good_highest("sensitivity", trials.log_prob)
    except ValueError as error:
        raise BadInput(f"correct: {error}") from None
    value_of_contrast = dict(zip(scores.items, scores.values, strict=True))
    return rows["contrast"].map(value_of_contrast).astype(float).where(rows["good"])


def sum_over_words(
    table: DataFrame, response: str, keys: Sequence[str], formula_columns: Sequence[str]
) -> tuple[DataFrame, str]:
    """Returns a row per item, cell and reader where there is one per word, and a note on it.

    Surprisals are summed over words, since the surprisal of a region is that of all of its words.
    For example, two words of 3 and 4 bits in the region of an item make one row of 7 bits. If a
    word has several rows of one reader, their mean is taken before. Of every other response, and of
    tables without words, the rows are returned as they are: their mean is taken later.

    Args:
        table: with the columns `item` and `model`, the rows of one region or of whole sentences.
        response: column of numbers.
        keys: columns that tell the cells of an item apart.
        formula_columns: columns of a formula, which must have one value within a sum.
    """
    cell_columns = [name for name in dict.fromkeys(["model", "item", *keys]) if name in table]
    n_rows = len(table)
    rows_of_cell = table.groupby(cell_columns, dropna=False)
    n_cells = rows_of_cell.ngroups
    if n_rows == n_cells:
        return table, ""
    # rows are words if they have positions, or if the rows of one sum have several words; a target
    # is the word at a blank, and not one of the words of a text
    positions = [name for name in named_columns("position", table) if _has_numbers(table[name])]
    words = [name for name in named_columns("word", table) if folded(name) != "target"]
    readers = [name for name in named_columns("reader", table) if name not in cell_columns]
    sum_columns = [*cell_columns, *readers]
    rows_of_sum = table.groupby(sum_columns, dropna=False)
    are_rows_words = bool(positions) or any(
        rows_of_sum[name].nunique().gt(1).any() for name in words
    )
    if response != "surprisal" or not are_rows_words:
        note = f"{response}: mean over the rows of an item and cell, {n_rows:,} rows of "
        note += f"{n_cells:,} cells"
        note += _differing_note(rows_of_cell, rows_of_sum, [*sum_columns, response])
        return table, note + _repeated_note(table, response, readers)
    # the words of a sum must have the same value in each column of the formula
    for name in formula_columns:
        is_within_sum = name not in (response, *sum_columns)
        if is_within_sum and rows_of_sum[name].nunique(dropna=False).gt(1).any():
            raise BadInput(
                f"{name} differs between words whose surprisals are summed: leave it out of the "
                "formula, or make a table with a row per region"
            )
    # first the mean over the rows of one word and reader
    average_note = ""
    if positions:
        rows_of_word = table.groupby([*sum_columns, *positions, *words], dropna=False, sort=False)
        has_several_values = rows_of_word[response].nunique() > 1
        n_averaged = int(rows_of_word.size()[has_several_values].sum())
        means = rows_of_word[response].mean()
        table = rows_of_word.first().assign(**{response: means}).reset_index()
        if n_averaged:
            average_note = (
                f"; {n_averaged:,} rows of one word with several values are averaged before"
            )
    # then the sum over words; a sum of which a word has no surprisal is missing
    words_of_sum = table.groupby(sum_columns, dropna=False, sort=False)
    values = words_of_sum[response].agg(lambda surprisals: surprisals.sum(skipna=False))
    sums = words_of_sum.first().assign(**{response: values}).reset_index()
    note = f"{response}: sum over the words of an item and cell"
    return sums, f"{note}, {n_rows:,} rows make {len(sums):,} sums{average_note}"


def _repeated_note(table: DataFrame, response: str, readers: Sequence[str]) -> str:
    """Returns a note on rows that equal an earlier row of the same reader but for responses.

    For example, "; 12 rows repeat an earlier one of their reader, but for rt". "" if there are no
    such rows.

    Args:
        table: the rows.
        response: column of the response.
        readers: columns that name readers; if there are none, nothing is counted.
    """
    if not readers:
        return ""
    columns = [name for name in table if name != response and not is_outcome(str(name))]
    n = int(table[columns].astype(str).duplicated().sum())
    return f"; {n:,} rows repeat an earlier one of their reader, but for {response}" if n else ""


def _has_numbers(column: Series) -> bool:
    """Whether any value of a column is a number, or a text that is one."""
    return bool(to_numeric(column, errors="coerce").notna().any())


def _differing_note(
    rows_of_cell: DataFrameGroupBy, rows_of_reader: DataFrameGroupBy, known: Sequence[str]
) -> str:
    """Returns a note that names the columns in which rows of one cell differ; "" for none.

    A mean over such rows may mix what the user wants to compare. For example, "; the rows of a cell
    differ in list: --filter list=VALUE chooses some".

    Args:
        rows_of_cell: a table grouped by item and cell.
        rows_of_reader: the same by item, cell and reader. Columns with more than `MOST_LABELS`
            levels must differ within these: between readers, the number of a trial differs anyway.
        known: columns that are not named.
    """
    table = rows_of_cell.obj
    differing = []
    for name in data_columns(table):
        if name not in table or name in {"id", *TEXT_COLUMNS, *known}:
            continue
        n_levels = table[name].nunique()
        if not 2 <= n_levels <= _FEW_LEVELS:
            continue
        groups = rows_of_cell if n_levels <= MOST_LABELS else rows_of_reader
        has_several_rows = groups.size() > 1
        n_levels_of_groups = groups[name].nunique()[has_several_rows]
        if len(n_levels_of_groups) and (n_levels_of_groups > 1).mean() > _IN_MOST:
            differing.append(str(name))
    if not differing:
        return ""
    remedy = f"--filter {quote(differing[0])}=VALUE chooses some"
    return f"; the rows of a cell differ in {', '.join(differing)}: {remedy}"


def check_one_measure(table: DataFrame) -> None:
    """Refuses a table with a row per measure, where a column still names several measures.

    For example, a column `measure` with the levels "first fixation" and "gaze duration".
    """
    for name in data_columns(table):
        if name in table and 2 <= table[name].nunique() <= _FEW_LEVELS:
            levels = [*level_texts(table[name]).dropna().unique()]
            if names_measures(levels):
                problem = f"{name} has the names of {len(levels)} measures ({', '.join(levels)})"
                raise BadInput(f"{problem}: choose one by --filter {name}={levels[0]}")
