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
    where = with_expected(trials.rows)
    lists = trials.predictions["top_words"]
    ranks = np.full(len(where), np.nan)  # place, from 1, of the first expected word
    for place, i in enumerate(where):
        if lists[i] is not None:
            wanted = {fold_word(word, trials.folds) for word in trials.rows["expected"][i]}
            listed = (fold_word(word, trials.folds) for word in lists[i])
            matches = (rank for rank, word in enumerate(listed, start=1) if word in wanted)
            ranks[place] = next(matches, np.inf)
    levels = {**trials.levels, **trials.accuracy_levels}
    by = {name: [labels[i] for i in where] for name, labels in levels.items()}
    hits = {rank: np.where(np.isnan(ranks), np.nan, ranks <= rank) for rank in k}
    return [
        build(f"accuracy@{rank}", trials.ids[where], hits[rank], "proportion", by)
        for rank in k
        if rank <= _shortest(lists, where)
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
        [
            word[:1].isalpha() and (word[0].lower() in "aeiou") == context.lower().endswith("n")
            for word in lists[i] or ()
        ]
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


def _shortest(lists: Sequence[Sequence[str] | None], where: Sequence[int]) -> int:
    return min((len(words) for i in where if (words := lists[i]) is not None), default=0)
