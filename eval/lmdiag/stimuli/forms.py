"""The form of a table: rows with a blank, sentences (also in regions), or minimal pairs.

Sentences in regions, minimal pairs and the extended sets become one row per sentence here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from lmdiag.stimuli.extended import EXTENDED_SETS, TEXT, extended_rows
from lmdiag.stimuli.regions import (
    is_region,
    refuse_fragments,
    with_critical,
    with_regions,
    without_gaps,
)
from lmdiag.stimuli.table import text_problem
from lmdiag.table_files import RawTable
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

PAIR = ("sentence_good", "sentence_bad")
"""Columns of minimal pairs as BLiMP has them."""

_OTHER_PAIRS = (("sen", "wrong_sen"), ("good_sentence", "bad_sentence"))
"""Those of MultiBLiMP and TurBLiMP."""

SHORT_NAMES: Mapping[str, str] = {"uid": "UID", "lang": "language"}
"""Column of pairs of a user's own -> its name here."""


def form_of(names: Collection[str]) -> str:
    """Returns the form that a table of these columns has; "" for rows with a blank."""
    pair = pair_columns(names)
    has_sentences = "sentence" in names or any(map(is_region, names))
    if "context" in names or ("target" in names and not has_sentences):
        return ""
    if has_sentences and not set(pair) <= set(names):
        return "sentences"
    return "" if set(pair).isdisjoint(names) else "minimal_pairs"


def in_form(table: RawTable, task: str, options: TableOptions = AS_IT_IS) -> RawTable:
    """Returns a table with its form, a row per sentence; a table of blanks as it is.

    Rows without names are named after the task.
    """
    if table.form:
        return table
    if task in EXTENDED_SETS and set(table.columns) == {TEXT}:
        return extended_rows(table, task)
    table = without_gaps(table, options.gap)
    form = "sentences" if "sentence" in table.chosen & {*table.columns} else form_of(table.columns)
    for option in ("separator", "critical") if form != "sentences" else ():
        if getattr(options, option):
            row = "two sentences" if form else "a word at a blank"
            rule = f"--{option} is for sentences, and a row is {row}: leave it out"
            raise BadInput(f"{table.name}: {rule}")
    if form == "minimal_pairs":
        return _pair_rows(table, task)
    if form == "sentences":
        refuse_fragments(table)
        table = with_critical(with_regions(table, options.separator), options.critical)
        if "target" in table.columns:
            remedy = "___ or --gap TEXT marks its place"
            table = table.noting(f"target: not read, since no sentence has a gap; {remedy}")
        return replace(table, form=form)
    if "sentence" in table.columns:
        remedy = "--columns sentence=sentence reads it instead"
        return table.noting(f"sentence: not read, since a row is a word in its context; {remedy}")
    return table


def pair_columns(names: Collection[str]) -> tuple[str, str]:
    """Returns the columns with the good and the bad sentence of a pair, present or not.

    A table has them under other names only if it has both: `sen` alone may be anything.

    >>> pair_columns(["sen", "wrong_sen"]), pair_columns(["sen"])
    (('sen', 'wrong_sen'), ('sentence_good', 'sentence_bad'))
    """
    others = [pair for pair in _OTHER_PAIRS if set(pair) <= set(names)]
    return others[0] if others and set(PAIR).isdisjoint(names) else PAIR


def _pair_rows(table: RawTable, task: str) -> RawTable:
    """Minimal pairs as rows: `PAIR-good` and `PAIR-bad` for each contrast PAIR."""
    pair = pair_columns(table.columns)
    for column in pair:
        if column not in table.columns:
            raise table.lacks(column, "every pair needs both")
        for row, text in enumerate(table.columns[column]):
            is_text = isinstance(text, str)
            problem = text_problem("sentence", text) if is_text else "is missing or not text"
            if problem:
                raise table.error(row, f"the column {column} {problem}")
    if made := [name for name in ("sentence", "good", "contrast") if name in table.columns]:
        origin = f"is made of {pair[0]} and {pair[1]} here: rename it"
        raise BadInput(f"{table.name}: the column {made[0]} {origin}")
    columns = {
        column if (name := SHORT_NAMES.get(column, column)) in table.columns else name: values
        for number, (column, values) in enumerate(table.columns.items())
        if column not in pair and (column or number)  # a first column without a name: row numbers
    }
    names = _pair_names(columns, len(table), task)
    sentences = zip(*(table.columns[column] for column in pair), strict=True)
    twice = replace(table, columns=columns).of([row for row in range(len(table)) for _ in pair])
    rows = {
        **twice.columns,
        "id": [f"{name}-{which}" for name in names for which in ("good", "bad")],
        "sentence": list(chain.from_iterable(sentences)),
        "good": [True, False] * len(table),
        "contrast": [name for name in names for _ in pair],
    }
    return replace(twice, columns=rows, form="minimal_pairs")


def _pair_names(columns: Mapping[str, Sequence[Any]], n_pairs: int, task: str) -> list[str]:
    """Names of the pairs: `UID` and its number, else their `id`, else the task and the row.

    `UID` and `id` stand behind the language, as translated sets repeat them in each language.
    """
    languages = columns.get("language", [""] * n_pairs)
    starts = [f"{language}-" if language else "" for language in languages]
    # the number of a pair within its UID: in BLiMP's files, and on the Hub
    numbers = columns.get("pairID", columns.get("pair_id", ()))
    parts = zip(starts, columns.get("UID", ()), numbers, strict=False)
    names = [f"{start}{uid}-{number}" for start, uid, number in parts]
    if n_pairs and len(set(names)) == n_pairs:
        return names
    if "id" in columns:
        return [f"{start}{name}" for start, name in zip(starts, columns["id"], strict=True)]
    return [f"{task}-{row + 1}" for row in range(n_pairs)]
