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
from typing import TYPE_CHECKING, Any

from lmdiag.tables.table_files import Table, row_index
from lmdiag.types import BadInput

if TYPE_CHECKING:
    pass

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
# what to call it in messages, the text before its last word, and that word
_Sentence = tuple[str, str, str]


def extended_task(name: str) -> str | None:
    """Returns the task of a file or a data set by its name; None for other names.

    >>> extended_task("NEG-1500-SIMP-GEN.txt"), extended_task("role1500"), extended_task("notes")
    ('neg1500_gen', 'role1500', None)
    """
    names = {_letters(name): task for task, full in EXTENDED_SETS.items() for name in (task, full)}
    return names.get(_letters(name.removesuffix(".txt")))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def extended_rows(table: Table, task: str) -> Table:
    """Returns the rows of an extended set, four for each pair of sentences in the column `TEXT`.

    A sentence without a comma at its end, half a pair, or a pair of `neg1500_*` that is not an
    affirmative sentence and its negation is a `BadInput`, which names the line.
    """
    sentences: list[_Sentence] = []
    for row, line in enumerate(table.columns[TEXT]):
        text = str(line or "").rstrip()
        if not text:
            continue
        if not text.endswith(","):
            raise table.error(row, f"the sentence has no comma at its end: {line!r:.90}: add one")
        *words, target = text.removesuffix(",").split() or [""]
        if not words:
            raise table.error(row, f"expected a sentence whose last word is the target: {line!r}")
        sentences.append((table.where(row), " ".join(words), target))
    if len(sentences) % 2:
        odd = f"an odd number of sentences, {len(sentences):,}; add the one that is missing"
        place = f"{sentences[-1][0]}: the pair of this sentence has no second one"
        raise BadInput(f"{place}: {table.name} has {odd}")
    make = _role_rows if task == "role1500" else _negation_rows
    rows: list[dict[str, Any]] = []
    places = []
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    for number, (first, second) in enumerate(pairs, start=1):
        for values in make(f"{task}-{number}", first, second):
            rows.append({"item": str(number), "right_context": ""} | values)
            places.append(first[0])
    return Table.of_rows(table.name, rows, row_index(places))


def _negation_rows(pair: str, first: _Sentence, second: _Sentence) -> Iterator[dict[str, Any]]:
    """All four conditions of a pair: both targets in both sentences, as in NEG-136-SIMP."""
    nouns = []
    for (where, context, target), negated in ((first, False), (second, True)):
        statement = _STATEMENT.fullmatch(context)
        if statement is None or bool(statement["negation"]) != negated:
            which, form = ("second", "is not a") if negated else ("first", "is a")
            rule = f"the {which} sentence of a pair must be 'SUBJECT {form} TARGET,'"
            remedy = "put the two sentences of each pair on two lines after each other"
            raise BadInput(f"{where}: {rule}, not {f'{context} {target},'!r:.90}: {remedy}")
        nouns.append(statement["subject"])
    bare = [_letters(re.sub(r"^an? ", "", noun, flags=re.IGNORECASE)) for noun in nouns]
    # the published files have a few misprints
    if SequenceMatcher(None, bare[0], bare[1]).ratio() < 0.5:
        before = f"is not that of the line before, {nouns[0]!r}"
        rule = "the two sentences of a pair differ in the negation and the last word"
        raise BadInput(f"{second[0]}: its subject {nouns[1]!r} {before}: {rule}")
    for condition in ("TA", "FA", "TN", "FN"):
        polarity = "affirmative" if condition[1] == "A" else "negative"
        # What is true of the affirmed statement is false of the negated one.
        target = (first if condition in ("TA", "FN") else second)[2]
        context = (first if condition[1] == "A" else second)[1].rpartition(" ")[0]
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


def _role_rows(pair: str, first: _Sentence, second: _Sentence) -> Iterator[dict[str, Any]]:
    """Each target in its own context and in the other one, as in ROLE-88."""
    # Not all published pairs exchange two nouns and the verb, and nothing else: some keep the verb
    # or the nouns, or change more words.
    one, two = (_ROLES.fullmatch(context.casefold()) for _, context, _ in (first, second))
    is_reversal = (
        one is not None
        and two is not None
        and one["object"] != one["subject"]
        and two.groups() == one.group("start", "subject", "object")
        and first[2].casefold() != second[2].casefold()
    )
    for name, (_, context, target), other in (("a", first, second[1]), ("b", second, first[1])):
        for condition, text in (("appropriate", context), ("reversed", other)):
            is_good = condition == "appropriate"
            roles = _ROLES.fullmatch(text)
            yield {
                "id": f"{pair}-{name}-{condition}",
                "condition": condition,
                "context": text,
                "target": target,
                "good": is_good,
                "contrast": f"{pair}-{name}",
                "expected": [target] if is_good else [],
                "object": roles and roles["object"],
                "subject": roles and roles["subject"],
                "pair": "reversal" if is_reversal else "other",
            }
