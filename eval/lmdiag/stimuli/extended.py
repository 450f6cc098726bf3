"""The extended sets of Shivagunde et al. (2023): pairs of sentences as rows with a blank.

A file has one sentence per line, with a comma at its end; the last word is the target. The two
sentences of a pair follow each other: affirmative and negated, or the two orders of two roles. As
these sets have no columns but the sentences, their name decides what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from lmdiag.stimuli.table import RawTable
from lmdiag.types import BadInput

EXTENDED_SETS: Mapping[str, str] = {
    "neg1500_gen": "NEG-1500-SIMP-GEN",
    "neg1500_temp": "NEG-1500-SIMP-TEMP",
    "role1500": "ROLE-1500",
}
"""Task -> name of the set, which is that of its data set on the Hub and of the authors' file."""

TEXT = "text"
"""Column of the sentences, as `datasets` calls the lines of a text file."""

_STATEMENT = re.compile(r"(?P<subject>.+) is (?P<negation>not )?an?")
_ROLES = re.compile(r"(?P<start>.*\bwhich) (?P<object>.+?) the (?P<subject>.+) had", re.IGNORECASE)

_TAKES_AN = re.compile(
    r"(?!uni(?![mn])|u[krst][aeiou]|eu|ew|once?\b)[aeiou]|hour|heir|hono|honest", re.IGNORECASE
)
"""Words that begin with the sound of a vowel; "utensil" does not, for example."""

_LIKE = 0.5
"""Smallest similarity of the subjects of a pair: the published files have a few misprints."""


class _Sentence(NamedTuple):
    """A sentence: what to call it in messages, the text before its last word, and that word."""

    where: str
    context: str
    target: str


_Rows = Iterator[dict[str, Any]]


def extended_task(name: str) -> str | None:
    """Returns the task of a file or a data set by its name; None for other names.

    >>> extended_task("NEG-1500-SIMP-GEN.txt"), extended_task("role1500"), extended_task("notes")
    ('neg1500_gen', 'role1500', None)
    """
    names = {_letters(name): task for task, full in EXTENDED_SETS.items() for name in (task, full)}
    return names.get(_letters(name.removesuffix(".txt")))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def is_extended(table: RawTable, task: str) -> bool:
    """Returns whether a table has the sentences of an extended set, which are not rows yet."""
    return task in EXTENDED_SETS and set(table.columns) == {TEXT}


def extended_rows(table: RawTable, task: str) -> RawTable:
    """Returns the rows of an extended set, four for each pair.

    Args:
        table: with the sentences, in the order of the file.
        task: one of `EXTENDED_SETS`.

    Raises:
        BadInput: a sentence without a comma at its end, half a pair, a pair of `neg1500_*` that is
            not an affirmative sentence and its negation; the message names the line.
    """
    sentences = list(_sentences(table))
    if len(sentences) % 2:
        raise BadInput(
            f"{sentences[-1].where}: the pair of this sentence has no second one: {table.name} has "
            f"an odd number of sentences, {len(sentences):,}; add the one that is missing"
        )
    make = _role_rows if task == "role1500" else _negation_rows
    pairs = enumerate(zip(sentences[::2], sentences[1::2], strict=True), start=1)
    rows = [
        (pair[0].where, {"item": str(number), "right_context": ""} | row)
        for number, pair in pairs
        for row in make(f"{task}-{number}", *pair)
    ]
    names = rows[0][1] if rows else ()
    columns = {name: [row[name] for _, row in rows] for name in names}
    return RawTable(table.name, columns, lambda row: rows[row][0])


def _sentences(table: RawTable) -> Iterator[_Sentence]:
    """The sentences of all lines that are not empty; several blanks count as one."""
    for row, line in enumerate(table.columns[TEXT]):
        if line is None or not str(line).strip():
            continue
        if not str(line).rstrip().endswith(","):
            raise table.error(row, f"the sentence has no comma at its end: {line!r:.90}: add one")
        *words, target = str(line).rstrip().removesuffix(",").split() or [""]
        if not words:
            raise table.error(row, f"expected a sentence whose last word is the target: {line!r}")
        yield _Sentence(table.where(row), " ".join(words), target)


def _negation_rows(pair: str, affirmative: _Sentence, negative: _Sentence) -> _Rows:
    """All four conditions of a pair: both targets in both sentences, as in NEG-136-SIMP."""
    subjects = [_subject(affirmative, negated=False), _subject(negative, negated=True)]
    nouns = [_letters(re.sub(r"^an? ", "", subject, flags=re.IGNORECASE)) for subject in subjects]
    if SequenceMatcher(None, nouns[0], nouns[1]).ratio() < _LIKE:
        raise BadInput(
            f"{negative.where}: its subject {subjects[1]!r} is not that of the line before, "
            f"{subjects[0]!r}: the two sentences of a pair differ in the negation and the last word"
        )
    for condition in ("TA", "FA", "TN", "FN"):
        is_affirmative = condition[1] == "A"
        polarity = "affirmative" if is_affirmative else "negative"
        # What is true of the affirmed statement is false of the negated one.
        target = (affirmative if condition in ("TA", "FN") else negative).target
        context = (affirmative if is_affirmative else negative).context.rpartition(" ")[0]
        yield {
            "id": f"{pair}-{condition}",
            "condition": condition,
            "context": f"{context} {'an' if _TAKES_AN.match(target) else 'a'}",
            "target": target,
            "good": condition[0] == "T",
            "contrast": f"{pair}-{polarity}",
            "expected": [target] if condition == "TA" else [],
            "subset": "simp",
            "polarity": polarity,
            "natural": None,
        }


def _subject(sentence: _Sentence, *, negated: bool) -> str:
    """The subject of a statement, which is checked to be affirmative or negated."""
    statement = _STATEMENT.fullmatch(sentence.context)
    if statement is None or bool(statement["negation"]) != negated:
        which, form = ("second", "is not a") if negated else ("first", "is a")
        text = f"{sentence.context} {sentence.target},"
        raise BadInput(
            f"{sentence.where}: the {which} sentence of a pair must be 'SUBJECT {form} TARGET,', "
            f"not {text!r:.90}: put the two sentences of each pair on two lines after each other"
        )
    return statement["subject"]


def _role_rows(pair: str, first: _Sentence, second: _Sentence) -> _Rows:
    """Each target in its own context and in the other one, as in ROLE-88."""
    kind = "reversal" if _is_reversal(first, second) else "other"
    for name, right, reverse in (("a", first, second), ("b", second, first)):
        for condition, context in (("appropriate", right.context), ("reversed", reverse.context)):
            roles = _ROLES.fullmatch(context)
            yield {
                "id": f"{pair}-{name}-{condition}",
                "condition": condition,
                "context": context,
                "target": right.target,
                "good": condition == "appropriate",
                "contrast": f"{pair}-{name}",
                "expected": [right.target] if condition == "appropriate" else [],
                "object": roles and roles["object"],
                "subject": roles and roles["subject"],
                "pair": kind,
            }


def _is_reversal(first: _Sentence, second: _Sentence) -> bool:
    """Whether two sentences differ in the order of two nouns and in the verb, and in nothing else.

    Not all published pairs do: some keep the verb or the nouns, or change more words.
    """
    matches = [_ROLES.fullmatch(sentence.context.casefold()) for sentence in (first, second)]
    if not all(matches) or first.target.casefold() == second.target.casefold():
        return False
    (start, noun, other), exchanged = (match.groups() for match in matches if match)
    return noun != other and exchanged == (start, other, noun)
