"""Measures of the top-k list: accuracy@k, and its fit to the determiner before the blank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lmdiag.measures.levels import Levels
from lmdiag.measures.scores import Columns, Scores, build, known, objects, select

VOWELS = frozenset("aeiou")
"""First letters that take "an", by spelling, as NEG-136-SIMP itself picks its determiners."""


def accuracy(
    rows: Columns, predictions: Columns, levels: Levels, *, k: Sequence[int], cased: bool
) -> list[Scores]:
    """Returns accuracy@k: the share of rows with an expected word among the first k top words.

    Only rows with `expected` count (SPEC 1). Words are compared whole, so a piece shown as "##ing"
    never passes for a word. A k beyond the shortest list is left out: the rest of that list is not
    known. Rows without any list are left out.

    Source: Ettinger (2020), tables 4, 7, 8 and 11.
    """
    if not known(predictions, "top_words"):
        return []
    where = expecting(rows)
    fold = str if cased else str.casefold
    first = np.array(
        [first_hit(predictions["top_words"][i], rows["expected"][i], fold) for i in where]
    )
    chosen = {name: select(labels, where) for name, labels in levels.items()}
    items = objects(rows["id"])[where]
    undefined = np.isnan(first)
    return [
        build(
            f"accuracy@{rank}",
            items,
            np.where(undefined, np.nan, first <= rank),
            "proportion",
            chosen,
        )
        for rank in k
        if rank <= shortest(predictions, where)
    ]


def expecting(rows: Columns) -> list[int]:
    """Returns the positions of the rows that accuracy is over: those with expected words."""
    return [i for i, words in enumerate(rows["expected"]) if words]


def shortest(predictions: Columns, where: Sequence[int]) -> int:
    """Returns the length of the shortest list of top words at some rows; 0 without any list."""
    lists = [predictions["top_words"][i] for i in where]
    return min((len(words) for words in lists if words is not None), default=0)


def first_hit(
    top_words: Sequence[str] | None, expected: Sequence[str], fold: Callable[[str], str]
) -> float:
    """Returns the place, from 1, of the first hit; inf without one, NaN without a list."""
    if top_words is None:
        return np.nan
    wanted = {fold(word) for word in expected}
    hits = (place for place, word in enumerate(top_words, start=1) if fold(word) in wanted)
    return float(next(hits, np.inf))


def determiner_match(rows: Columns, predictions: Columns, *, k: Sequence[int]) -> list[Scores]:
    """Returns determiner_match@k: the mean share of the top k that fit the a or an before it.

    Counted once for each distinct context of NEG-136-SIMP. By spelling, as the data set has it:
    `an` before a, e, i, o, u, else `a`. Only an item that starts with a letter can fit: a piece
    ("##n"), a punctuation mark, a number or a special token ("[UNK]") is no word that a determiner
    could take. A k beyond the shortest list is left out, as for accuracy.

    Source: the observation on table 13 of Ettinger (2020), made a number.
    """
    if not known(predictions, "top_words"):
        return []
    where = simple_contexts(rows)
    items = objects(rows["id"])[where]
    levels = {"polarity": select(rows["polarity"], where)}
    determiners = [rows["context"][i].rsplit(maxsplit=1)[-1].lower() for i in where]
    lists = [predictions["top_words"][i] for i in where]
    return [
        build(
            f"determiner_match@{rank}",
            items,
            np.array(
                [fitting(words, word, rank) for words, word in zip(lists, determiners, strict=True)]
            ),
            "proportion" if rank == 1 else "share",
            levels,
        )
        for rank in k
        if rank <= shortest(predictions, where)
    ]


def simple_contexts(rows: Columns) -> list[int]:
    """Returns the first row of each distinct context of simp that ends in a determiner."""
    first: dict[str, int] = {}
    for i, (subset, context) in enumerate(zip(rows["subset"], rows["context"], strict=True)):
        if subset == "simp" and context.lower().endswith((" a", " an")):
            first.setdefault(context, i)
    return list(first.values())


def fitting(top_words: Sequence[str] | None, determiner: str, k: int) -> float:
    """Returns the share of the first k words that fit the determiner; NaN for an empty list."""
    if not top_words:
        return np.nan
    words = top_words[:k]
    return sum(fits(word, determiner) for word in words) / len(words)


def fits(word: str, determiner: str) -> bool:
    """Returns whether a word's first letter goes with the determiner.

    >>> fits("insect", "an"), fits("insect", "a"), fits("##n", "a"), fits("[UNK]", "a")
    (True, False, False, False)
    """
    return word[:1].isalpha() and (word[0].lower() in VOWELS) == (determiner == "an")
