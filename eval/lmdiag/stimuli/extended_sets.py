"""The extended sets of Shivagunde et al. (2023) as rows.

A file of an extended set has one sentence per line, with a comma at its
end; the last word is the target. The two sentences of a pair follow each other: affirmative and
negated, or the two orders of two roles. As these sets have no columns but the sentences, their name
decides what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from lmdiag.tables.table_files import Table, row_index
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

# words that begin with the sound of a vowel; "utensil" does not, for example
_TAKES_AN = re.compile(
    r"(?!uni(?![mn])|u[krst][aeiou]|eu|ew|once?\b)[aeiou]|hour|heir|hono|honest", re.IGNORECASE
)


class _Sentence(NamedTuple):
    """A sentence of an extended set.

    Attributes:
        place: what messages call it, e.g. "FILE:3".
        context: its text before the last word.
        target: its last word.
    """

    place: str
    context: str
    target: str


def extended_task(name: str) -> str | None:
    """Returns the task of a file or a data set by its name; None for other names.

    >>> extended_task("NEG-1500-SIMP-GEN.txt"), extended_task("role1500"), extended_task("notes")
    ('neg1500_gen', 'role1500', None)
    """
    plain = _letters(name.removesuffix(".txt"))
    for task, set_name in EXTENDED_SETS.items():
        if plain in (_letters(task), _letters(set_name)):
            return task
    return None


def _letters(text: str) -> str:
    """Returns the letters and digits of a text, in lower case."""
    return re.sub(r"[\W_]+", "", text.lower())


def extended_rows(table: Table, task: str) -> Table:
    """Returns the rows of an extended set, four for each pair of sentences in the column `TEXT`.

    Two lines of the file are a pair: "A robin is a bird," and "A robin is not a tree,". The last
    word of each sentence is its target.

    `BadInput`, which names the line: a sentence without a comma at its end, a last sentence without
    its partner, or a pair of `neg1500_*` that is not an affirmative sentence and its negation.
    """
    sentences: list[_Sentence] = []
    for row, line in enumerate(table.columns[TEXT]):
        text = str(line or "").rstrip()
        if not text:
            continue
        if not text.endswith(","):
            raise table.error(row, f"the sentence has no comma at its end: {line!r:.90}: add one")
        *words, target = text.removesuffix(",").split() or [""]  # a line may be a comma alone
        if not words:
            raise table.error(row, f"expected a sentence whose last word is the target: {line!r}")
        sentences.append(_Sentence(table.where(row), " ".join(words), target))
    if len(sentences) % 2:
        odd = f"an odd number of sentences, {len(sentences):,}; add the one that is missing"
        place = f"{sentences[-1].place}: the pair of this sentence has no second one"
        raise BadInput(f"{place}: {table.name} has {odd}")
    rows_of_pair = _role_rows if task == "role1500" else _negation_rows
    rows: list[dict[str, Any]] = []
    places = []
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    for number, (first, second) in enumerate(pairs, start=1):
        for values in rows_of_pair(f"{task}-{number}", first, second):
            rows.append({"item": str(number), "right_context": ""} | values)
            places.append(first.place)
    return Table.of_rows(table.name, rows, row_index(places))


def _negation_rows(pair: str, first: _Sentence, second: _Sentence) -> Iterator[dict[str, Any]]:
    """Yields the four rows of a pair: both targets in both sentences, as in NEG-136-SIMP.

    For example, TA "A robin is a" bird, FA "A robin is a" tree, TN "A robin is not a" tree and FN
    "A robin is not a" bird: true or false (T, F), and affirmative or negated (A, N).

    `BadInput` if the pair is not an affirmative sentence and its negation.

    Args:
        pair: name of the pair, with which ids begin.
        first: the affirmative sentence, e.g. "A robin is a bird".
        second: the negated one, e.g. "A robin is not a tree".
    """
    subjects = []
    for sentence, is_negated in ((first, False), (second, True)):
        statement = _STATEMENT.fullmatch(sentence.context)
        if statement is None or bool(statement["negation"]) != is_negated:
            which, form = ("second", "is not a") if is_negated else ("first", "is a")
            rule = f"the {which} sentence of a pair must be 'SUBJECT {form} TARGET,'"
            text = f"{sentence.context} {sentence.target},"
            remedy = "put the two sentences of each pair on two lines after each other"
            raise BadInput(f"{sentence.place}: {rule}, not {text!r:.90}: {remedy}")
        subjects.append(statement["subject"])
    bare = [_letters(re.sub(r"^an? ", "", subject, flags=re.IGNORECASE)) for subject in subjects]
    # half of the letters are enough, since the published files have a few misprints
    if SequenceMatcher(None, bare[0], bare[1]).ratio() < 0.5:
        before = f"is not that of the line before, {subjects[0]!r}"
        rule = "the two sentences of a pair differ in the negation and the last word"
        raise BadInput(f"{second.place}: its subject {subjects[1]!r} {before}: {rule}")
    for condition in ("TA", "FA", "TN", "FN"):  # true or false, affirmative or negated
        is_true = condition[0] == "T"
        is_affirmative = condition[1] == "A"
        polarity = "affirmative" if is_affirmative else "negative"
        # What is true of the affirmed statement is false of the negated one.
        target = first.target if is_true == is_affirmative else second.target
        context = first.context if is_affirmative else second.context
        context_without_article = context.rpartition(" ")[0]
        yield {
            "id": f"{pair}-{condition}",
            "condition": condition,
            "context": f"{context_without_article} {'an' if _TAKES_AN.match(target) else 'a'}",
            "target": target,
            "good": is_true,
            "contrast": f"{pair}-{polarity}",
            "expected": [target] if condition == "TA" else [],  # as in NEG-136-SIMP
            "subset": "simp",
            "polarity": polarity,
            "natural": None,
        }


def _role_rows(pair: str, first: _Sentence, second: _Sentence) -> Iterator[dict[str, Any]]:
    """Yields the four rows of a pair: each target in its own and the other context, as in ROLE-88.

    Args:
        pair: name of the pair, with which ids begin.
        first: a sentence, e.g. "... which customer the waitress had served".
        second: the sentence with the two roles exchanged.
    """
    # Not all published pairs exchange two nouns and the verb, and nothing else: some keep the verb
    # or the nouns, or change more words.
    first_roles = _ROLES.fullmatch(first.context.casefold())
    second_roles = _ROLES.fullmatch(second.context.casefold())
    is_reversal = (
        first_roles is not None
        and second_roles is not None
        and first_roles["object"] != first_roles["subject"]
        and second_roles.groups() == first_roles.group("start", "subject", "object")
        and first.target.casefold() != second.target.casefold()
    )
    for name, sentence, other in (("a", first, second), ("b", second, first)):
        for condition in ("appropriate", "reversed"):
            is_good = condition == "appropriate"
            context = sentence.context if is_good else other.context
            roles = _ROLES.fullmatch(context)
            yield {
                "id": f"{pair}-{name}-{condition}",
                "condition": condition,
                "context": context,
                "target": sentence.target,
                "good": is_good,
                "contrast": f"{pair}-{name}",
                "expected": [sentence.target] if is_good else [],
                "object": roles and roles["object"],
                "subject": roles and roles["subject"],
                "pair": "reversal" if is_reversal else "other",
            }
