"""CPRAG-102: commonsense and pragmatic inference.

Source: Ettinger (2020), sections 5.1 and 7; items of Federmeier and Kutas (1999).
"""

from __future__ import annotations

import hashlib
from functools import partial

from lmdiag.diagnostics.base import (
    Chart,
    Column,
    Diagnostic,
    FigureSelection,
    Finding,
    Perturbation,
    Stimulus,
    TableShape,
)


def random_order(n: int, item: str, shuffle: int, seed: int) -> list[int]:
    """Returns the numbers 0 to n - 1 in a random order, for n words.

    The order follows from the seed, the item and the number of the shuffle: 0 to n - 1 are sorted
    by the SHA-256 of each number together with these. Every order is equally likely, and none
    depends on other items, on processes or on the generator of a library.

    >>> random_order(4, "1", shuffle=0, seed=0)
    [2, 3, 1, 0]
    """
    digests = [hashlib.sha256(f"{seed}/{item}/{shuffle}/{i}".encode()).digest() for i in range(n)]
    return sorted(range(n), key=lambda i: digests[i])


def _perturbed_context(
    row: Stimulus, shuffle: int, seed: int, *, shuffles: bool = False, truncates: bool = False
) -> str:
    """Returns the context of a row with fewer words or another order of words.

    >>> row = {"item": "1", "sentence_1": "He ran home.", "sentence_2": "He was late for"}
    >>> _perturbed_context(row, shuffle=0, seed=0, truncates=True)
    'He ran home. late for'

    Args:
        row: with `sentence_1`, and `sentence_2` without its last word.
        shuffle, seed: see `random_order`.
        shuffles: shuffle the words of sentence 1, without its periods.
        truncates: keep the last two words of sentence 2 alone.
    """
    first_sentence = row["sentence_1"]
    second_sentence = row["sentence_2"]
    if shuffles:
        words = first_sentence.replace(".", "").split()
        order = random_order(len(words), row["item"], shuffle, seed)
        first_sentence = " ".join(words[i] for i in order) + "."  # one period, at the end
    if truncates:
        second_sentence = " ".join(second_sentence.split()[-2:])
    return f"{first_sentence} {second_sentence}"


_shuf = partial(_perturbed_context, shuffles=True)
_trunc = partial(_perturbed_context, truncates=True)
_shuf_trunc = partial(_perturbed_context, shuffles=True, truncates=True)


_SENTENCES = ("sentence_1", "sentence_2")

CPRAG102 = Diagnostic(
    name="cprag102",
    title="CPRAG-102: commonsense and pragmatic inference",
    short_title="CPRAG-102",
    about=(
        "Two sentences; the last word of the second one is missing and follows from common sense "
        "and from what the first sentence implies. Accuracy: the word that people expect is among "
        "the first k words of the model. Sensitivity: it is more probable than a word of the same "
        "category and than a word of another category."
    ),
    position=1,
    columns=(
        Column("sentence_1"),
        Column("sentence_2"),
        Column("constraint", required=True),
        Column("explanation"),
    ),
    breakdowns=("constraint",),
    perturbations=(
        Perturbation("shuf", "Shuf", _shuf, _SENTENCES, shuffled=True),
        Perturbation("trunc", "Trunc", _trunc, _SENTENCES),
        Perturbation(
            "shuf_trunc",
            "Shuf + Trunc",
            _shuf_trunc,
            _SENTENCES,
            shuffled=True,
            unshuffled="trunc",
        ),
    ),
    tables=(
        TableShape(
            "Accuracy",
            "Ettinger 2020, table 4",
            ("accuracy@*",),
            rows=("measure", "level"),
            columns="setting",
            by=("", "constraint"),
        ),
        TableShape(
            "Sensitivity",
            "Ettinger 2020, table 5",
            ("sensitivity*", "within_category_boost"),
            rows=("setting", "level"),
            by=("", "constraint"),
        ),
    ),
    charts=(
        Chart("figures"),
        Chart("scatter"),
        Chart("levels", "By constraint of the context", by="constraint", levels=("high", "low")),
        Chart("shuffles", "Accuracy with sentence 1 shuffled", measures=("accuracy@*",)),
    ),
    headlines=(FigureSelection(("accuracy@*", "sensitivity*")),),
    finding=Finding(
        "prefers the word that people expect", "prefers another word to the one that people expect"
    ),
    leaderboard=(
        FigureSelection(("accuracy@1",)),
        FigureSelection(("accuracy@5", "sensitivity"), is_overview=True),
        FigureSelection(("sensitivity@0.01",)),
    ),
    level_labels={"constraint": {"high": "high constraint", "low": "low constraint"}},
    published_rows=102,
)
