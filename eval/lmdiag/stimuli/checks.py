"""Checks rows of any origin against section 1 of docs/specification.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.stimuli.table import RowNames
from lmdiag.types import BadInput

_BLANK = re.compile(r"_{3,}|(?<!\w)__(?!\w)|\[BLANK\]|<blank>", re.IGNORECASE)
"""How a blank is often written. Two underscores may be part of a name."""

_SEVERAL = re.compile(r"[,;|]\s+\S")
"""Several words in one: a comma, a semicolon or a bar with a space after it."""


def check(columns: Mapping[str, Sequence[Any]], where: RowNames) -> None:
    """Checks all rows.

    Args:
        columns: the core columns, with converted values; sentences, or contexts and targets.
        where: names a row in an error.

    Raises:
        BadInput: the first row that breaks a rule, with its column.
    """
    first: dict[str, int] = {}
    for row, identifier in enumerate(columns["id"]):
        if not identifier:
            raise BadInput(f"{where(row)}: the column id is empty")
        if first.setdefault(identifier, row) != row:
            raise BadInput(
                f"{where(row)}: the column id has {identifier!r} again, first in "
                f"{where(first[identifier])}: every row needs an id of its own"
            )
    if "sentence" in columns and "context" not in columns:
        _check_sentences(columns["sentence"], where)
    else:
        _check_blanks(columns, where)
    if "contrast" in columns:
        _check_contrasts(columns, where)


def sentence_problem(text: str) -> str:
    """Returns what is wrong with a sentence; "" if nothing is."""
    if not text.strip():
        return "is empty: write a sentence, or leave the row out"
    if blank := _BLANK.search(text):
        return (
            f"has a blank in it, {blank[0]!r}: write whole sentences, or give context and target "
            "to score a word at a blank"
        )
    return ""


def _check_sentences(sentences: Sequence[str], where: RowNames) -> None:
    for row, text in enumerate(sentences):
        if problem := sentence_problem(text):
            raise BadInput(f"{where(row)}: the column sentence {problem}")


def _check_blanks(columns: Mapping[str, Sequence[Any]], where: RowNames) -> None:
    """Checks the texts of rows with a blank."""
    for name in ("context", "right_context"):
        for text in dict.fromkeys(columns[name]):  # many rows share a text
            if blank := _BLANK.search(text):
                raise BadInput(
                    f"{where(columns[name].index(text))}: the column {name} has a blank in it, "
                    f"{blank[0]!r}: write what is left of the blank into context, and what follows "
                    "it into right_context"
                )
    texts = zip(columns["context"], columns["target"], columns["expected"], strict=True)
    for row, (context, target, expected) in enumerate(texts):
        if problem := _text_problem(context, target, expected):
            raise BadInput(f"{where(row)}: the column {problem}")


def _text_problem(context: str, target: str, expected: Sequence[str]) -> str:
    """What is wrong with the texts of a row; "" if nothing is."""
    if context != context.rstrip():
        return "context ends in a space: remove it"
    if not target.strip():
        return "target is empty: name the word to score"
    if target != target.strip():
        return "target has a space at its edge: remove it"
    if not all(expected):
        return f"expected has an empty word: {expected!r}"
    for word in expected:
        if word != word.strip() or _SEVERAL.search(word):
            return (
                f"expected: {word!r} can never be one of the top words: give each word on its own, "
                "without spaces at its edges"
            )
    return ""


def _check_contrasts(columns: Mapping[str, Sequence[Any]], where: RowNames) -> None:
    """Checks that every contrast has exactly one good row and at least one bad row."""
    goods: dict[str, list[bool]] = {}
    for row, (contrast, good) in enumerate(zip(columns["contrast"], columns["good"], strict=True)):
        if not contrast:
            raise BadInput(f"{where(row)}: the column contrast is empty")
        goods.setdefault(contrast, []).append(good)
    for contrast, rows in goods.items():
        if sum(rows) != 1 or len(rows) < 2:
            raise BadInput(
                f"{where(columns['contrast'].index(contrast))}: the column contrast: {contrast!r} "
                f"has {sum(rows)} good and {len(rows) - sum(rows)} bad rows, it needs exactly one "
                "good and at least one bad"
            )
