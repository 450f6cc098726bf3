"""Measures of the top words: whether they have what is expected, or fit what stands before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmdiag.measures.registry import register
from lmdiag.measures.scores import Columns, Scores, Statistic, Trials, build, fold_word


@register("word", "accuracy")
def accuracy(trials: Trials, k: Sequence[int]) -> list[Scores]:
    """Returns accuracy@k: the share of rows with an expected word among the first k top words.

    Only rows with `expected` count. Words are compared whole, by `fold_word`, so a piece shown as
    "##ing" never equals a word. A k beyond the shortest list is left out, and so are rows without
    any list.

    Source: Ettinger (2020), tables 4, 7, 8 and 11.
    """
    if not trials.has("top_words"):
        return []
    row_positions = with_expected(trials.rows)
    lists = trials.predictions["top_words"]
    ranks = np.full(len(row_positions), np.nan)  # place, from 1, of the first expected word
    for place, i in enumerate(row_positions):
        if lists[i] is not None:
            expected_words = {fold_word(word, trials.folds) for word in trials.rows["expected"][i]}
            list_words = (fold_word(word, trials.folds) for word in lists[i])
            matches = (
                rank for rank, word in enumerate(list_words, start=1) if word in expected_words
            )
            ranks[place] = next(matches, np.inf)
    levels = {**trials.levels, **trials.accuracy_levels}
    labels_of_rows = {name: [labels[i] for i in row_positions] for name, labels in levels.items()}
    hits = {rank: np.where(np.isnan(ranks), np.nan, ranks <= rank) for rank in k}
    return [
        build(
            f"accuracy@{rank}", trials.ids[row_positions], hits[rank], "proportion", labels_of_rows
        )
        for rank in k
        if rank <= _shortest(lists, row_positions)
    ]


def with_expected(rows: Columns) -> list[int]:
    """Returns the positions of the rows that accuracy is over: the ones with expected words."""
    return [i for i, words in enumerate(rows["expected"]) if words]


@register(("neg136", "neg1500_gen", "neg1500_temp"), "determiner_match")
def determiner_match(trials: Trials, k: Sequence[int]) -> list[Scores]:
    """Returns determiner_match@k: the mean share of the top k that fit the a or an before them.

    Over the distinct contexts of NEG-136-SIMP. By spelling, as the data set has it: `an` before a,
    e, i, o, u, else `a`. Only an item that starts with a letter can fit, not a piece ("##n") or a
    special token ("[UNK]"). A k beyond the shortest list is left out, as for accuracy.

    Source: the observation on table 13 of Ettinger (2020), made a number.
    """
    if not trials.has("top_words"):
        return []
    rows = trials.rows
    lists = trials.predictions["top_words"]
    row_of: dict[str, int] = {}  # of each distinct context of SIMP that ends in a determiner
    for i, (subset, context) in enumerate(zip(rows["subset"], rows["context"], strict=True)):
        if subset == "simp" and context.lower().endswith((" a", " an")):
            row_of.setdefault(context, i)
    where = [*row_of.values()]
    fitting = [
        [_fits_determiner(word, context) for word in lists[i] or ()]
        for context, i in row_of.items()
    ]
    by = {"polarity": [rows["polarity"][i] for i in where]}
    scores = []
    for rank in k:
        if rank <= _shortest(lists, where):
            shares = np.array([np.mean(fit[:rank]) if fit else np.nan for fit in fitting])
            kind: Statistic = "proportion" if rank == 1 else "share"
            scores.append(build(f"determiner_match@{rank}", trials.ids[where], shares, kind, by))
    return scores


def _fits_determiner(word: str, context: str) -> bool:
    """Whether a word fits the "a" or "an" at the end of a context, by its first letter."""
    begins_with_vowel = word[:1].lower() in [*"aeiou"]
    return word[:1].isalpha() and begins_with_vowel == context.lower().endswith("n")


def _shortest(lists: Sequence[Sequence[str] | None], rows: Sequence[int]) -> int:
    """Returns the length of the shortest list of top words of some rows; 0 without any list.

    A longer k would count what the shorter lists do not tell.
    """
    lengths = [len(words) for words in (lists[row] for row in rows) if words is not None]
    return min(lengths, default=0)
