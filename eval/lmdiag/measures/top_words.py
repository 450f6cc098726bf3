"""Measures of the top-k list: accuracy@k, and how well it fits the determiner before the blank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lmdiag.measures.scores import Columns, Labels, Scores, Statistic, build
from lmdiag.measures.trials import Trials

VOWELS = frozenset("aeiou")
"""First letters that take "an", by spelling, as the items of NEG-136-SIMP have it."""


def accuracy(
    trials: Trials, k: Sequence[int], *, cased: bool, levels: Mapping[str, Labels] | None = None
) -> list[Scores]:
    """Returns accuracy@k: the share of rows with an expected word among the first k top words.

    Only rows with `expected` count. Words are compared whole, so a piece shown as "##ing" never
    equals a word. A k beyond the shortest list is left out, because the rest of that list is not
    known. Rows without any list are left out.

    Args:
        trials: rows and predictions.
        k: ranks.
        cased: compare words exactly, else case-blind.
        levels: break-down -> level of each row; None for the levels of the trials.

    Source: Ettinger (2020), tables 4, 7, 8 and 11.
    """
    if not trials.has("top_words"):
        return []
    where = with_expected(trials.rows)
    fold = str if cased else str.casefold
    words, expected = trials.predictions["top_words"], trials.rows["expected"]
    first = np.array([_first_match(words[i], expected[i], fold) for i in where])
    by = {name: [of[i] for i in where] for name, of in (levels or trials.levels).items()}
    hits = {rank: np.where(np.isnan(first), np.nan, first <= rank) for rank in k}
    return [
        build(f"accuracy@{rank}", trials.ids[where], hits[rank], "proportion", by)
        for rank in k
        if rank <= _shortest(words, where)
    ]


def with_expected(rows: Columns) -> list[int]:
    """Returns the positions of the rows that accuracy is over: the ones with expected words."""
    return [i for i, words in enumerate(rows["expected"]) if words]


def _shortest(lists: Sequence[Sequence[str] | None], where: Sequence[int]) -> int:
    return min((len(words) for i in where if (words := lists[i]) is not None), default=0)


def _first_match(
    top_words: Sequence[str] | None, expected: Sequence[str], fold: Callable[[str], str]
) -> float:
    """The place, from 1, of the first expected word; inf without one, NaN without a list."""
    if top_words is None:
        return np.nan
    wanted = {fold(word) for word in expected}
    matches = (place for place, word in enumerate(top_words, start=1) if fold(word) in wanted)
    return float(next(matches, np.inf))


def determiner_match(trials: Trials, k: Sequence[int]) -> list[Scores]:
    """Returns determiner_match@k: the mean share of the top k that fit the a or an before them.

    Over the distinct contexts of NEG-136-SIMP. By spelling, as the data set has it: `an` before a,
    e, i, o, u, else `a`. Only an item that starts with a letter can fit: a piece ("##n"), a
    punctuation mark, a number or a special token ("[UNK]") is not a word that a determiner could
    take. A k beyond the shortest list is left out, as for accuracy.

    Source: the observation on table 13 of Ettinger (2020), made a number.
    """
    if not trials.has("top_words"):
        return []
    rows, lists = trials.rows, trials.predictions["top_words"]
    first: dict[str, int] = {}  # of each distinct context of SIMP that ends in a determiner
    for i, (subset, context) in enumerate(zip(rows["subset"], rows["context"], strict=True)):
        if subset == "simp" and context.lower().endswith((" a", " an")):
            first.setdefault(context, i)
    where = list(first.values())
    fitting = [
        [fits(word, context.rsplit(maxsplit=1)[-1].lower()) for word in lists[i] or ()]
        for context, i in first.items()
    ]
    by = {"polarity": [rows["polarity"][i] for i in where]}
    scores = []
    for rank in k:
        if rank <= _shortest(lists, where):
            shares = np.array([np.mean(fit[:rank]) if fit else np.nan for fit in fitting])
            kind: Statistic = "proportion" if rank == 1 else "share"
            name = f"determiner_match@{rank}"
            scores.append(build(name, trials.ids[where], shares, kind, by))
    return scores


def fits(word: str, determiner: str) -> bool:
    """Returns whether a determiner can stand before a word, by its first letter.

    >>> fits("insect", "an"), fits("insect", "a"), fits("##n", "a"), fits("[UNK]", "a")
    (True, False, False, False)
    """
    return word[:1].isalpha() and (word[0].lower() in VOWELS) == (determiner == "an")
