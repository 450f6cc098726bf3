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

_OWN = {*_RUN_COLUMNS, "suite", *PARTS}
"""Columns of tables of items that are not columns of the data; see `items_of`."""


def with_numbers(table: DataFrame, response: str, name: str) -> DataFrame:
    """Returns a table with a response as numbers, and the surprisals that one is computed from.

    Errors name the row by the index.
    """
    columns = [column_like(response, table.columns)]
    if columns[0] not in table:
        columns = ["surprisal"] if response in ("probability", "log_odds", "correct") else []

    def where(row: int) -> str:
        return f"{name}:{table.index[row]}"

    try:
        numbers = {x: as_numbers(table[x], x, where) for x in columns if x in table}
    except BadInput as error:
        raise BadInput(": ".join(filter(None, [str(error), _remedy(table, columns[0])]))) from None
    return table.assign(**numbers)


def _remedy(table: DataFrame, name: str) -> str:
    """How to mend a response whose values are partly or all not numbers; "" for no advice."""
    condition = filter_of_numbers({column: values_of(table[column]) for column in table}, name)
    if condition:
        return f"--filter {quote(condition)} keeps the rows with numbers"
    texts = level_texts(table[name]).dropna()
    not_numbers = texts[to_numeric(texts, errors="coerce").isna()]
    if 2 * len(not_numbers) < len(texts) and not_numbers.nunique() <= MOST_LABELS:
        excluded = quote(f"{name}!={','.join(not_numbers.unique())}")
        rows = f"{len(not_numbers):,} rows" if len(not_numbers) > 1 else "1 row"
        return f"--filter {excluded} leaves out {rows}"
    if not texts.str.contains(r"\d").any():
        return _response_choices(table)
    return ""


def _response_choices(table: DataFrame) -> str:
    """The columns that may be the response."""
    has_numbers = {
        str(name): to_numeric(table[name], errors="coerce").notna().any() for name in table
    }
    names = [name for name, has_one in has_numbers.items() if has_one]
    names = [name for name in names if folded(name) not in ("item", "model", "list")]
    names = [name for name in names if not is_named_as(name, "reader")] or names
    return f"choose --response from {', '.join(names)}" if names else "there are no numbers"


def column_of(table: DataFrame, name: str) -> str:
    """Returns the column of the data that the user calls by this name; see `items_of`."""
    return f"{name}{DATA_SUFFIX}" if name in _OWN and f"{name}{DATA_SUFFIX}" in table else name


def data_of(table: DataFrame) -> DataFrame:
    """Returns the columns of the data, by the user's names."""
    users = {f"{name}{DATA_SUFFIX}": name for name in _OWN if f"{name}{DATA_SUFFIX}" in table}
    no_data = {*_RUN_COLUMNS, *users.values()}
    no_data |= {*PARTS} if {*PARTS} <= {*table} else set()
    if {"state", "n_tokens"} <= {*table}:  # a table of `items_of`
        no_data |= {name for name in table if registered(name)}
    return table.drop(columns=[*no_data], errors="ignore").rename(columns=users)


def unperturbed(table: DataFrame, item: Sequence[str], named: Sequence[str]) -> DataFrame:
    """Returns the unperturbed rows of a task; `named` columns that mean something else are data."""
    if unknown := [name for name in (*named, *item) if name not in table]:
        names = ", ".join(without_copies(table))
        raise BadInput(f"no column {unknown[0]!r}: choose from {names}")
    renamed = [name for name in named if name in _OWN and f"{name}{DATA_SUFFIX}" not in table]
    table = table.rename(columns={name: f"{name}{DATA_SUFFIX}" for name in renamed})
    if item:
        table = table.assign(item=joined_items(table[[column_of(table, name) for name in item]]))
    if "perturbation" in table:
        table = table[table["perturbation"] == NONE]
    if "task" in table and table["task"].nunique() > 1:
        tasks = ", ".join(dict.fromkeys(table["task"]))
        raise BadInput(f"there are several tasks: choose one with --task from {tasks}")
    return table


def of_region(table: DataFrame, region: str, named: Sequence[str]) -> DataFrame:
    """Returns the rows of a region; of every one, with `suite` for its name.

    A table with several regions within its items needs one, unless their column is itself `named`
    as a condition or in a formula.
    """
    part = "number" if {*PARTS} <= {*table} else "region"
    if not region and (part not in table or part in named):
        return table
    items = table["item"] if "item" in table else Series(0, table.index)
    if not region and table[part].groupby(items).nunique().max() < 2:
        return table
    columns = [name for name in ("number", "name", "region") if name in table]
    if not columns:
        raise BadInput("the table has no regions: write it with --per region")
    texts = table[columns].apply(level_texts)
    names = joined_texts(texts).str.strip()
    if region == EACH_REGION:
        table = table.assign(suite=names.where(~names.str.isdigit(), "region " + names))
    else:
        table = table[(texts == region).any(axis=1)]
    if table.empty:
        regions = ", ".join(map(shortened, names.unique()[:20]))
        raise BadInput(f"choose a region with --region from {regions}")
    return table


def region_of_all(table: DataFrame) -> str:
    """Returns the region of all rows if it is the critical word; "" otherwise."""
    has_parts = {*PARTS} <= {*table}
    return CRITICAL if has_parts and (table["name"] == CRITICAL).all() else ""


def with_model_and_item(table: DataFrame) -> DataFrame:
    """Returns the table with `item` and with `model`, which tells several precisions apart, too."""
    table = table.reset_index(drop=True)
    present = [name for name in ("model", "weights", "signature") if name in table]
    names: list[str] = []
    if "model" in present:  # the shortest choice of facts that tells all models apart
        choices = (["model"], ["model", "weights"], ["model", "signature"], present)
        n_distinct = {(*x,): len(table[x].drop_duplicates()) for x in choices if {*x} <= {*present}}
        n_models = n_distinct[(*present,)]
        names = [*next(choice for choice, n in n_distinct.items() if n == n_models)]
    table["model"] = joined_texts(table[names]).str.strip() if names else ""
    has_several_rows = "item" in table and table.duplicated(["model", "item"]).any()
    if {"good", "contrast"} <= {*table} and not has_several_rows:
        table["item"] = table["contrast"]
    return table


def with_response(table: DataFrame, response: str) -> tuple[DataFrame, list[str]]:
    """Returns the table with the response, and how many of its values are missing or infinite."""
    values = _response(table, response)
    notes = []
    n = int(values.isna().sum())
    if n and response in table and "state" not in table:  # states of a run are counted
        notes.append(f"{response} is missing in {n:,} of {len(table):,} rows")
    is_infinite = np.isinf(values)  # of words of probability 0
    table = table.assign(**{response: values.mask(is_infinite)})
    n = int(is_infinite.sum())
    rows = f"{n:,} rows, which count as missing values"
    if n == 1:
        rows = "1 row, which counts as a missing value"
    return table, [*notes, *([f"{response} is infinite in {rows}"] if n else [])]


def with_a_value(table: DataFrame, response: str) -> tuple[DataFrame, str]:
    """Returns the rows of the models that have a value of the response, and which have none.

    Raises:
        BadInput: no model has one.
    """
    has_value = table[response].notna().groupby(table["model"], sort=False).any()
    if not has_value.any():
        raise BadInput(f"{response} is missing in all {len(table):,} rows")
    if has_value.all():
        return table, ""
    names = ", ".join(map(str, has_value.index[~has_value]))
    return table[table["model"].map(has_value)], f"left out: {names}: {response} is missing"


def _response(table: DataFrame, response: str) -> Series:
    """The response of each row, NaN where it is not known; see `lmdiag.analyse`."""
    columns = {*table}
    if response in columns:
        return to_numeric(table[response]).astype(float)
    if response in ("probability", "log_odds") and "surprisal" in columns:
        probability = 2.0 ** -table["surprisal"].astype(float)
        return probability if response == "probability" else logit(probability)
    if response != "correct":
        if re.fullmatch(r"\w+\(.+\)", response):
            rule = "compute a function of a column as a column of its own first"
            raise BadInput(f"no column {response!r}: {rule}")
        has_texts = any(values_of(table[name]).kind() == "text" for name in table)
        remedy = "; `lmdiag run FILE` gives surprisals of texts" if has_texts else ""
        raise BadInput(f"no column {response!r}: {_response_choices(table)}{remedy}")
    for name in ("sensitivity", "accuracy@1"):
        if name in columns:
            return to_numeric(table[name]).astype(float)
    # a table that was made elsewhere has no measures
    if {"good", "contrast", "surprisal"} <= columns:
        return _sensitivity(table)
    if not {"expected", "top_word"} <= columns:
        raise BadInput("correct needs the columns good and contrast, or expected and top_word")
    pairs = table[["top_word", "expected"]].dropna().map(str.lower)
    hits = [word in expected.split("|") for word, expected in pairs.to_numpy()]
    return Series(hits, pairs.index, dtype=float).reindex(table.index)


def _sensitivity(table: DataFrame) -> Series:
    """The sensitivity of each contrast of a table in its good row."""
    ids = [*map(str, table.index)]
    texts = [name for name in TEXT_COLUMNS if name in table]
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
        scores = trials.contrasts.share_with_good_highest("sensitivity", trials.log_prob)
    except ValueError as error:
        raise BadInput(f"correct: {error}") from None
    values = dict(zip(scores.items, scores.values, strict=True))
    return rows["contrast"].map(values).astype(float).where(rows["good"])


def summed_over_words(
    table: DataFrame, response: str, keys: Sequence[str], formula_columns: Sequence[str]
) -> tuple[DataFrame, str]:
    """Returns a row per item, cell and reader where there is one per word, and what was done.

    Surprisals are summed over words; rows of one position, word and reader are averaged before. Of
    every other response, and of tables without words, the rows stay: their mean is taken later.

    Args:
        table: with the columns `item` and `model`, the rows of one region or of whole sentences.
        response: column of numbers.
        keys: columns of the cells.
        formula_columns: which must not differ within a sum.
    """
    groups = [name for name in dict.fromkeys(["model", "item", *keys]) if name in table]
    n_cells = table.groupby(groups, dropna=False).ngroups
    n_rows = len(table)
    if n_rows == n_cells:
        return table, ""
    places = [name for name in named_columns("position", table) if _are_numbers(table[name])]
    words = [name for name in named_columns("word", table) if folded(name) != "target"]
    readers = [name for name in named_columns("reader", table) if name not in groups]
    groups += readers
    reader_rows = table.groupby(groups, dropna=False)
    cell_rows = table.groupby([x for x in groups if x not in readers], dropna=False)
    is_words = bool(places) or any(reader_rows[name].nunique().gt(1).any() for name in words)
    if response != "surprisal" or not is_words:
        what = f"{response}: mean over the rows of an item and cell, {n_rows:,} rows of "
        differing = _differing_note(cell_rows, reader_rows, [*groups, response])
        return (
            table,
            f"{what}{n_cells:,} cells{differing}{_repeated_note(table, response, readers)}",
        )
    for name in formula_columns:
        if name not in (response, *groups) and reader_rows[name].nunique(dropna=False).gt(1).any():
            raise BadInput(
                f"{name} differs between words whose surprisals are summed: leave it out of the "
                "formula, or make a table with a row per region"
            )
    average_note = ""
    if places:
        at_place = table.groupby([*groups, *places, *words], dropna=False, sort=False)
        n_averaged = int(at_place.size()[at_place[response].nunique() > 1].sum())
        table = at_place.first().assign(**{response: at_place[response].mean()}).reset_index()
        if n_averaged:
            average_note = (
                f"; {n_averaged:,} rows of one word with several values are averaged before"
            )
    summed = table.groupby(groups, dropna=False, sort=False)
    values = summed[response].agg(lambda words: words.sum(skipna=False))
    sums = summed.first().assign(**{response: values}).reset_index()
    what = f"{response}: sum over the words of an item and cell"
    return sums, f"{what}, {n_rows:,} rows make {len(sums):,} sums{average_note}"


def _repeated_note(table: DataFrame, response: str, readers: Sequence[str]) -> str:
    """How many rows of readers differ from an earlier one in responses alone; "" for none."""
    others = [name for name in table if name != response and not is_outcome(str(name))]
    n = int(table[others].astype(str).duplicated().sum()) if readers else 0
    return f"; {n:,} rows repeat an earlier one of their reader, but for {response}" if n else ""


def _are_numbers(column: Series) -> bool:
    """Whether a column has any number."""
    return bool(to_numeric(column, errors="coerce").notna().any())


def _differing_note(
    cell_rows: DataFrameGroupBy, reader_rows: DataFrameGroupBy, groups: Sequence[str]
) -> str:
    """The columns in which rows of one cell differ, and how to choose rows.

    Of those with more than a few levels, only rows of one reader count: others have a trial each.
    """
    table = cell_rows.obj
    names = []
    passed_over = {"id", *TEXT_COLUMNS, *groups}
    for name in data_of(table):
        n = table[name].nunique() if name in table and name not in passed_over else 0
        rows = cell_rows if n <= MOST_LABELS else reader_rows
        if 2 <= n <= _FEW_LEVELS:
            n_levels = rows[name].nunique()[rows.size() > 1]
            if len(n_levels) and (n_levels > 1).mean() > _IN_MOST:
                names.append(str(name))
    if not names:
        return ""
    remedy = f"--filter {quote(names[0])}=VALUE chooses some"
    return f"; the rows of a cell differ in {', '.join(names)}: {remedy}"


def check_one_measure(table: DataFrame) -> None:
    """Refuses a table with several measures in one column, of which none was chosen."""
    for name in data_of(table):
        if name in table and 2 <= table[name].nunique() <= _FEW_LEVELS:
            levels = [*level_texts(table[name]).dropna().unique()]
            if names_measures(levels):
                has = f"{name} has the names of {len(levels)} measures ({', '.join(levels)})"
                raise BadInput(f"{has}: choose one by --filter {name}={levels[0]}")
