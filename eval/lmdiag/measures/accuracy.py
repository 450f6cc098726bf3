"""Measures of the top words: whether they have what is expected, or fit what stands before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmdiag.measures.registry import register
from lmdiag.measures.scores import Columns, Scores, Statistic, Trials, build_scores, fold_word


@register("word", "accuracy")
def accuracy(trials: Trials, k: Sequence[int]) -> list[Scores]:
    """Returns accuracy@k: the share of rows with an expected word among the first k top words.

    Only rows with `expected` count. Words are compared whole, without the differences that
    `trials.folds` names, so a piece shown as "##ing" never equals a word. Rows without a list of
    top words are left out.

    Args:
        trials: rows, and what a model predicted for them.
        k: ranks, e.g. (1, 5); one beyond the shortest list of top words is left out.

    Source: Ettinger (2020), tables 4, 7, 8 and 11.
    """
    if not trials.has("top_words"):
        return []
    rows = rows_with_expected(trials.rows)
    top_words = trials.predictions["top_words"]
    # rank of the first expected word in each list: infinite without any, NaN without a list
    ranks = np.full(len(rows), np.nan)
    for place, row in enumerate(rows):
        if top_words[row] is None:
            continue
        expected = {fold_word(word, trials.folds) for word in trials.rows["expected"][row]}
        ranks[place] = np.inf
        for rank, word in enumerate(top_words[row], start=1):
            if fold_word(word, trials.folds) in expected:
                ranks[place] = rank
                break
    ids = trials.ids[rows]
    breakdowns = {**trials.levels, **trials.accuracy_levels}
    labels_of_rows = {by: [labels[row] for row in rows] for by, labels in breakdowns.items()}
    largest_k = _shortest_length(top_words, rows)
    scores = []
    for cutoff in k:
        if cutoff <= largest_k:
            is_hit = np.where(np.isnan(ranks), np.nan, ranks <= cutoff)
            name = f"accuracy@{cutoff}"
            scores.append(build_scores(name, ids, is_hit, "proportion", labels_of_rows))
    return scores


def rows_with_expected(rows: Columns) -> list[int]:
    """Returns the positions of the rows with expected words, which accuracy is computed over."""
    return [row for row, words in enumerate(rows["expected"]) if words]


@register(("neg136", "neg1500_gen", "neg1500_temp"), "determiner_match")
def determiner_match(trials: Trials, k: Sequence[int]) -> list[Scores]:
    """Returns determiner_match@k: the mean share of the k top words that fit the a or an before.

    It is over the distinct contexts of NEG-136-SIMP that end in "a" or "an". Spelling decides, as
    in the data set: `an` before a, e, i, o, u, else `a`. A piece ("##n") and a special token
    ("[UNK]") never fit, since they do not start with a letter.

    Args:
        trials: rows, and what a model predicted for them.
        k: ranks, e.g. (1, 5); one beyond the shortest list of top words is left out.

    Source: the observation on table 13 of Ettinger (2020), made a number.
    """
    if not trials.has("top_words"):
        return []
    columns = trials.rows
    top_words = trials.predictions["top_words"]
    row_of_context: dict[str, int] = {}  # the first row of each distinct context
    for row, (subset, context) in enumerate(
        zip(columns["subset"], columns["context"], strict=True)
    ):
        if subset == "simp" and context.lower().endswith((" a", " an")):
            row_of_context.setdefault(context, row)
    rows = [*row_of_context.values()]
    fits = [  # of each context, whether each of its top words fits
        [_fits_determiner(word, context) for word in top_words[row] or ()]
        for context, row in row_of_context.items()
    ]
    labels = {"polarity": [columns["polarity"][row] for row in rows]}
    largest_k = _shortest_length(top_words, rows)
    scores = []
    for cutoff in k:
        if cutoff <= largest_k:
            shares = np.array([np.mean(fit[:cutoff]) if fit else np.nan for fit in fits])
            statistic: Statistic = "proportion" if cutoff == 1 else "share"
            name = f"determiner_match@{cutoff}"
            scores.append(build_scores(name, trials.ids[rows], shares, statistic, labels))
    return scores


def _fits_determiner(word: str, context: str) -> bool:
    """Whether a word fits the "a" or "an" at the end of a context, by its first letter.

    >>> _fits_determiner("apple", "It is an"), _fits_determiner("apple", "It is a")
    (True, False)
    """
    letter = word[:1]
    is_vowel = letter.lower() in ("a", "e", "i", "o", "u")
    needs_vowel = context.lower().endswith("n")
    return letter.isalpha() and is_vowel == needs_vowel


def _shortest_length(top_words: Sequence[Sequence[str] | None], rows: Sequence[int]) -> int:
    """Returns the length of the shortest list of top words among some rows; 0 without any list.

    For example, 5 for lists of 10 and 5 words: accuracy@10 would count a list of 5 words as wrong
    although its sixth word may be right.

    Args:
        top_words: the list of each row, None for a row without one.
        rows: positions of rows.
    """
    lists = [top_words[row] for row in rows]
    return min((len(words) for words in lists if words is not None), default=0)
