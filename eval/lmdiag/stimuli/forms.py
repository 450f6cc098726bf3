"""The form of a table: rows with a blank, sentences (also in regions), or minimal pairs.

Sentences in regions, minimal pairs and the extended sets become one row per sentence here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from lmdiag.diagnostics import CORE
from lmdiag.stimuli.extended import EXTENDED_SETS, TEXT, extended_rows
from lmdiag.stimuli.table import text_problem
from lmdiag.table_files import RawTable
from lmdiag.types import BadInput

PAIR = ("sentence_good", "sentence_bad")
"""Columns of minimal pairs as BLiMP has them."""

PAIR_ALIASES: Mapping[str, str] = {
    "sen": "sentence_good", "wrong_sen": "sentence_bad",  # MultiBLiMP
    "good_sentence": "sentence_good", "bad_sentence": "sentence_bad",  # TurBLiMP
    "uid": "UID", "lang": "language",  # tables of a user's own
}  # fmt: skip
"""Column of a published set of minimal pairs -> its name here."""

_REGION = re.compile(r"region_([1-9]\d{0,3})").fullmatch


def form_of(names: Collection[str]) -> str:
    """Returns the form that a table of these columns has; "" for rows with a blank."""
    if any(column.required and column.name in names for column in CORE):
        return ""
    pair = pair_columns(names)
    if ("sentence" in names or any(map(_REGION, names))) and not set(pair) <= set(names):
        return "sentences"
    return "" if set(pair).isdisjoint(names) else "minimal_pairs"


def in_form(table: RawTable, task: str) -> RawTable:
    """Returns a table with its form, a row per sentence; a table of blanks as it is.

    Rows without names are named after the task.
    """
    if table.form:
        return table
    if task in EXTENDED_SETS and set(table.columns) == {TEXT}:
        return extended_rows(table, task)
    form = form_of(table.columns)
    if form == "minimal_pairs":
        return _pair_rows(table, task)
    return replace(_joined_regions(table) if form else table, form=form)


def joined(
    regions: Iterable[tuple[int, str]], names: Mapping[str, str], place: str
) -> tuple[str, list[dict[str, Any]]]:
    """Returns the sentence of some regions, and each region with its position in it.

    Contents are stripped, empty ones left out, and the others joined by a blank, except before
    punctuation that belongs to what precedes it: a comma does, an opening bracket or quotation
    mark (categories Ps and Pi of Unicode) does not. Names are by number, as text.
    """
    text = ""
    spans = []
    for number, content in regions:
        content = content.strip()
        category = unicodedata.category(content[0]) if content else "P"
        if text and (not category.startswith("P") or category in ("Ps", "Pi")):
            text += " "
        start = len(text)
        text = text + content
        name = names.get(str(number), "")
        spans.append({"number": number, "name": name, "start": start, "end": len(text)})
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := text_problem("sentence", text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def _joined_regions(table: RawTable) -> RawTable:
    """Sentences of the columns `region_1`, ..., or of parts between bars; others as they are."""
    numbers = {int(match[1]): match[0] for match in map(_REGION, table.columns) if match}
    columns = {name: v for name, v in table.columns.items() if name not in numbers.values()}
    rows: list[list[tuple[int, Any]]]
    if numbers:
        if "sentence" in columns:
            both = f"the columns sentence and {numbers[min(numbers)]} are both there"
            remedy = "leave sentence out, which is made of the regions"
            raise BadInput(f"{table.name}: {both}: {remedy}")
        contents = zip(*(table.columns[numbers[n]] for n in sorted(numbers)), strict=True)
        rows = [list(zip(sorted(numbers), row, strict=True)) for row in contents]
    elif any("|" in str(text) for text in columns["sentence"]):
        texts = columns["sentence"]
        if None in texts:
            raise table.error(texts.index(None), "the column sentence is empty: write a sentence")
        rows = [list(enumerate(str(text).split("|"), start=1)) for text in texts]
    else:
        return table
    if "regions" in columns:
        raise BadInput(f"{table.name}: the column regions is made of the regions: rename it")
    sentences = []
    spans = []
    for row, regions in enumerate(rows):
        for number, content in regions:
            if content is None:
                remedy = "write its words, or an empty text where the sentence has none there"
                raise table.error(row, f"the column region_{number} is NA or NaN: {remedy}")
            if not isinstance(content, str):
                raise table.error(row, f"a region must be text, not {content!r:.60}")
        text, spans_of_row = joined(regions, {}, table.where(row))
        sentences.append(text)
        spans.append(spans_of_row)
    return replace(table, columns=columns | {"sentence": sentences, "regions": spans})


def pair_columns(names: Collection[str]) -> tuple[str, str]:
    """Returns the columns with the good and the bad sentence of a pair, present or not.

    A table has them under other names only if it has both: `sen` alone may be anything.

    >>> pair_columns(["sen", "wrong_sen"]), pair_columns(["sen"])
    (('sen', 'wrong_sen'), ('sentence_good', 'sentence_bad'))
    """
    good, bad = ([name for name in names if PAIR_ALIASES.get(name) == column] for column in PAIR)
    return (good[0], bad[0]) if set(PAIR).isdisjoint(names) and good and bad else PAIR


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
    for column in ("sentence", "good", "contrast"):
        if column in table.columns:
            origin = f"is made of {pair[0]} and {pair[1]} here: rename it"
            raise BadInput(f"{table.name}: the column {column} {origin}")
    columns = {
        column if (here := PAIR_ALIASES.get(column, column)) in table.columns else here: values
        for number, (column, values) in enumerate(table.columns.items())
        if column not in pair and (column or number)  # a first column without a name: row numbers
    }
    names = _pair_names(columns, len(table), task)
    sentences = zip(*(table.columns[column] for column in pair), strict=True)
    twice = {column: [x for x in values for _ in pair] for column, values in columns.items()}
    rows = twice | {
        "id": [f"{name}-{which}" for name in names for which in ("good", "bad")],
        "sentence": list(chain.from_iterable(sentences)),
        "good": [True, False] * len(table),
        "contrast": [name for name in names for _ in pair],
    }
    numbers = table.numbers.of(row for row in range(len(table)) for _ in pair)
    return RawTable(table.name, rows, numbers, form="minimal_pairs")


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
        return [start + str(name) for start, name in zip(starts, columns["id"], strict=True)]
    return [f"{task}-{row + 1}" for row in range(n_pairs)]
