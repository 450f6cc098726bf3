"""The form of a table: rows with a blank, sentences (also in regions), or minimal pairs.

Sentences in regions, minimal pairs and the extended sets become one row per sentence here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmdiag.diagnostics import CORE
from lmdiag.stimuli.columns import missing_column, text_problem
from lmdiag.stimuli.extended import extended_rows, is_extended
from lmdiag.stimuli.table import RawTable
from lmdiag.types import BadInput

PAIR = ("sentence_good", "sentence_bad")
"""Columns of minimal pairs as BLiMP has them."""

PAIR_ALIASES: Mapping[str, str] = {
    "sen": "sentence_good", "wrong_sen": "sentence_bad",  # MultiBLiMP
    "good_sentence": "sentence_good", "bad_sentence": "sentence_bad",  # TurBLiMP
    "uid": "UID", "lang": "language",  # tables of a user's own
}  # fmt: skip
"""Column of a published set of minimal pairs -> its name here."""

_PAIR_NUMBERS = ("pairID", "pair_id")
"""Column with the number of a pair within its `UID`: in BLiMP's files, and on the Hub."""

_OPENING = ("Ps", "Pi")
"""Unicode categories of opening brackets and quotation marks, which have a blank before them."""


def form_of(names: Collection[str]) -> str:
    """Returns the form that a table of these columns has; "" for rows with a blank."""
    if any(column.required and column.name in names for column in CORE):
        return ""
    pair = pair_columns(names)
    if ("sentence" in names or region_names(names)) and not set(pair) <= set(names):
        return "sentences"
    return "" if set(pair).isdisjoint(names) else "minimal_pairs"


def in_form(table: RawTable, name: str) -> RawTable:
    """Returns a table with its form, a row per sentence; a table of blanks as it is.

    Args:
        table: as it was read.
        name: of the task, which rows without names of their own are named after.

    Raises:
        BadInput: a minimal pair lacks a sentence, the regions of a sentence are no sentence, or the
            sentences are no extended set.
    """
    if table.form:
        return table
    if is_extended(table, name):
        return extended_rows(table, name)
    form = form_of(table.columns)
    if form == "minimal_pairs":
        return _pair_rows(table, name)
    return replace(_joined_regions(table) if form else table, form=form)


# ---- regions -------------------------------------------------------------------------------------


def region_names(names: Collection[str]) -> list[str]:
    """Returns the columns `region_1`, `region_2`, ... in the order of their numbers."""
    matches = [name for name in names if re.fullmatch(r"region_[1-9]\d{0,3}", name)]
    return sorted(matches, key=lambda name: int(name.partition("_")[2]))


def joined(
    regions: Iterable[tuple[int, str]], names: Mapping[str, str], place: str
) -> tuple[str, list[dict[str, Any]]]:
    """Returns the sentence of some regions, and each region with its position in it.

    Contents are stripped, empty ones left out, and the others joined by a blank, except before
    punctuation that belongs to what precedes it, as a comma does.

    Args:
        regions: number and content of each.
        names: number, as text, -> name of the region.
        place: for messages.

    Raises:
        BadInput: they are no sentence.
    """
    text = ""
    spans = []
    for number, content in regions:
        content = content.strip()
        category = unicodedata.category(content[0]) if content else "P"
        if text and (not category.startswith("P") or category in _OPENING):
            text += " "
        start, text = len(text), text + content
        name = names.get(str(number), "")
        spans.append({"number": number, "name": name, "start": start, "end": len(text)})
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := text_problem("sentence", text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def _joined_regions(table: RawTable) -> RawTable:
    """Sentences of the columns `region_1`, ..., or of parts between bars; others as they are."""
    names = region_names(table.columns)
    if names and "sentence" in table.columns:
        raise BadInput(
            f"{table.name}: the columns sentence and {names[0]} are both there: leave sentence "
            "out, which is made of the regions"
        )
    rows: list[list[tuple[int, Any]]]
    if names:
        numbers = [int(name.partition("_")[2]) for name in names]
        contents = zip(*(table.columns[name] for name in names), strict=True)
        rows = [list(zip(numbers, row, strict=True)) for row in contents]
    elif any("|" in str(text) for text in table.columns["sentence"]):
        rows = [list(enumerate(str(x).split("|"), start=1)) for x in table.columns["sentence"]]
    else:
        return table
    if "regions" in table.columns:
        raise BadInput(f"{table.name}: the column regions is made of the regions: rename it")
    for row, regions in enumerate(rows):
        if wrong := [x for _, x in regions if x is not None and not isinstance(x, str)]:
            raise table.error(row, f"a region must be text, not {wrong[0]!r:.60}")
    sentences = [
        joined([(number, content or "") for number, content in regions], {}, table.where(row))
        for row, regions in enumerate(rows)
    ]
    others = {name: values for name, values in table.columns.items() if name not in names}
    texts, spans = zip(*sentences, strict=True) if sentences else ((), ())
    return replace(table, columns=others | {"sentence": texts, "regions": spans})


# ---- minimal pairs -------------------------------------------------------------------------------


def pair_columns(names: Collection[str]) -> tuple[str, str]:
    """Returns the columns with the good and the bad sentence of a pair, present or not.

    A table has them under other names only if it has both: `sen` alone may be anything.

    >>> pair_columns(["sen", "wrong_sen"]), pair_columns(["sen"])
    (('sen', 'wrong_sen'), ('sentence_good', 'sentence_bad'))
    """
    good, bad = ([name for name in names if PAIR_ALIASES.get(name) == column] for column in PAIR)
    if set(PAIR).isdisjoint(names) and good and bad:
        return good[0], bad[0]
    return PAIR


def _pair_rows(table: RawTable, name: str) -> RawTable:
    """Minimal pairs as rows: `PAIR-good` and `PAIR-bad` for each contrast PAIR."""
    pair = pair_columns(table.columns)
    for column in pair:
        if column not in table.columns:
            raise missing_column(table, column, "every pair needs both")
        for row, text in enumerate(table.columns[column]):
            problem = (
                text_problem("sentence", text)
                if isinstance(text, str)
                else "is missing or not text"
            )
            if problem:
                raise table.error(row, f"the column {column} {problem}")
    for column in ("sentence", "good", "contrast"):
        if column in table.columns:
            raise BadInput(
                f"{table.name}: the column {column} is made of {pair[0]} and {pair[1]} here: "
                "rename it"
            )
    others = {
        column if (here := PAIR_ALIASES.get(column, column)) in table.columns else here: values
        for number, (column, values) in enumerate(table.columns.items())
        if column not in pair and (column or number)  # a first column without a name: row numbers
    }
    names = _pair_names(others, len(table), name)
    twice = {column: _interleaved(values, values) for column, values in others.items()}
    columns = twice | {
        "id": [f"{pair}-{which}" for pair in names for which in ("good", "bad")],
        "sentence": _interleaved(*(table.columns[column] for column in pair)),
        "good": [True, False] * len(table),
        "contrast": _interleaved(names, names),
    }
    return RawTable(table.name, columns, lambda row: table.where(row // 2), "minimal_pairs")


def _interleaved(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [value for pair in zip(first, second, strict=True) for value in pair]


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
