"""The form of a table, and minimal pairs as rows: two sentences a pair, good and bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from lmdiag.stimuli.checks import sentence_problem
from lmdiag.stimuli.columns import missing_column
from lmdiag.stimuli.extended import extended_rows, is_extended
from lmdiag.stimuli.suites import divided_rows
from lmdiag.stimuli.table import PAIR_ALIASES, RawTable, form_of, pair_columns
from lmdiag.types import BadInput

_PAIR_NUMBERS = ("pairID", "pair_id")
"""Column with the number of a pair within its `UID`: in BLiMP's files, and on the Hub."""

_MADE = ("sentence", "good", "contrast")
"""Columns that are made of a pair."""


def in_form(table: RawTable, name: str) -> RawTable:
    """Returns a table with its form, a row per sentence; a table of blanks as it is.

    Args:
        table: as it was read.
        name: of the task, which rows without names of their own are named after.

    Raises:
        BadInput: a minimal pair lacks a sentence, the regions of a sentence are no sentence, or the
            sentences are no extended set.
    """
    if is_extended(table, name):
        return extended_rows(table, name)
    form = table.form or form_of(table.columns)
    if form == "sentences" and not table.form:
        return divided_rows(replace(table, form=form))
    if table.form or form != "minimal_pairs":
        return replace(table, form=form)
    return _pair_rows(table, name)


def _pair_rows(table: RawTable, name: str) -> RawTable:
    """Minimal pairs as rows: `PAIR-good` and `PAIR-bad` for each contrast PAIR."""
    pair = pair_columns(table.columns)
    good, bad = (_sentences(table, column) for column in pair)
    if taken := [column for column in _MADE if column in table.columns]:
        raise BadInput(
            f"{table.name}: the column {taken[0]} is made of {pair[0]} and {pair[1]} here: "
            "rename it"
        )
    others = {
        column if (here := PAIR_ALIASES.get(column, column)) in table.columns else here: values
        for number, (column, values) in enumerate(table.columns.items())
        if column not in pair and (column or number)  # a first column without a name: row numbers
    }
    pairs = _pair_names(others, len(table), name)
    further = {column: _twice(values) for column, values in others.items() if column != "id"}
    columns: dict[str, Sequence[Any]] = {
        "id": [f"{pair}-{which}" for pair in pairs for which in ("good", "bad")],
        "sentence": list(chain(*zip(good, bad, strict=True))),
        "good": [True, False] * len(table),
        "contrast": _twice(pairs),
    }
    where = table.where
    return RawTable(table.name, columns | further, lambda row: where(row // 2), "minimal_pairs")


def _twice(values: Sequence[Any]) -> list[Any]:
    return [value for value in values for _ in range(2)]


def _sentences(table: RawTable, column: str) -> list[str]:
    """One sentence of each pair; errors name its column, which the rows do not have."""
    if column not in table.columns:
        start = missing_column(table.name, column, list(table.columns))
        raise BadInput(f"{start}; every pair needs both")
    texts = []
    for row, text in enumerate(table.columns[column]):
        problem = sentence_problem(text) if isinstance(text, str) else "is not text"
        if problem:
            raise BadInput(f"{table.where(row)}: the column {column} {problem}")
        texts.append(text)
    return texts


def _pair_names(columns: Mapping[str, Sequence[Any]], n_pairs: int, name: str) -> list[str]:
    """Names of the pairs: `UID` and its number, else their `id`, else the name and the row.

    `UID` and `id` stand behind the language, as translated sets repeat them in each language.
    """
    languages = columns.get("language", [""] * n_pairs)
    starts = [f"{language}-" if language else "" for language in languages]
    if number := next((column for column in _PAIR_NUMBERS if column in columns), None):
        parts = zip(starts, columns.get("UID", ()), columns[number], strict=False)
        names = [f"{start}{uid}-{pair}" for start, uid, pair in parts]
        if len(set(names)) == n_pairs:
            return names
    if "id" in columns:
        return [start + str(pair) for start, pair in zip(starts, columns["id"], strict=True)]
    return [f"{name}-{row + 1}" for row in range(n_pairs)]
