"""What must hold of stimuli, whoever made them: the contract of SPEC 1's core columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.schema import BadInput
from lmdiag.stimuli.tables import Where

Columns = Mapping[str, Sequence[Any]]

BLANK = re.compile(r"_{3,}|(?<!\w)__(?!\w)|\[BLANK\]|<blank>", re.IGNORECASE)
"""How a blank is often written; a context ends where it is. Two underscores are part of a name."""

SEVERAL = re.compile(r"[,;|]\s+\S")
"""Several words in one: a comma, a semicolon or a bar with a blank after it."""


def check(columns: Columns, where: Where) -> None:
    """Checks all rows.

    Args:
        columns: the core columns, in their types.
        where: names a row in an error.

    Raises:
        BadInput: the first row that breaks the contract, with its column.
    """
    _check_ids(columns["id"], where)
    _check_blanks(columns, where)
    _check_texts(columns, where)
    if "contrast" in columns:
        _check_contrasts(columns, where)


def _check_ids(ids: Sequence[str], where: Where) -> None:
    first: dict[str, int] = {}
    for row, identifier in enumerate(ids):
        if not identifier:
            raise BadInput(f"{where(row)}: the column id is empty")
        if first.setdefault(identifier, row) != row:
            raise BadInput(
                f"{where(row)}: the column id has {identifier!r} again, first in "
                f"{where(first[identifier])}: every row needs an id of its own"
            )


def _check_blanks(columns: Columns, where: Where) -> None:
    """No text has a blank in it: it is between `context` and `right_context`."""
    for name in ("context", "right_context"):
        for text in dict.fromkeys(columns[name]):  # most rows share theirs with others
            if blank := BLANK.search(text):
                place = where(columns[name].index(text))
                raise BadInput(
                    f"{place}: the column {name} has a blank in it, {blank[0]!r}: write what is "
                    "left of the blank into context, and what follows it into right_context"
                )


def _check_texts(columns: Columns, where: Where) -> None:
    texts = zip(columns["context"], columns["target"], columns["expected"], strict=True)
    for row, (context, target, expected) in enumerate(texts):
        if context != context.rstrip():
            raise BadInput(f"{where(row)}: the column context ends in a blank: remove it")
        if not target.strip():
            raise BadInput(f"{where(row)}: the column target is empty: name the word to score")
        if target != target.strip():
            raise BadInput(f"{where(row)}: the column target has a blank at its edge: remove it")
        if not all(expected):
            raise BadInput(f"{where(row)}: the column expected has an empty word: {expected!r}")
        for word in expected:
            if word != word.strip() or SEVERAL.search(word):
                raise BadInput(
                    f"{where(row)}: the column expected: {word!r} can never be one of the top "
                    "words: give each word on its own, without blanks at its edges"
                )


def _check_contrasts(columns: Columns, where: Where) -> None:
    """Every contrast has exactly one good row and at least one bad row."""
    counts: dict[str, list[int]] = {}
    first: dict[str, int] = {}
    for row, (contrast, good) in enumerate(zip(columns["contrast"], columns["good"], strict=True)):
        if not contrast:
            raise BadInput(f"{where(row)}: the column contrast is empty")
        first.setdefault(contrast, row)
        counts.setdefault(contrast, [0, 0])[good] += 1
    for contrast, (bad, good) in counts.items():
        if good != 1 or bad < 1:
            raise BadInput(
                f"{where(first[contrast])}: the column contrast: {contrast!r} has {good} good and "
                f"{bad} bad rows, it needs exactly one good and at least one bad"
            )
