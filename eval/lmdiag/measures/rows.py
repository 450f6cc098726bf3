"""Measures of rows that are not compared: top words, surprisal and rank; human correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lmdiag.frequencies import log_frequencies
from lmdiag.measures.scores import (
    Columns,
    Floats,
    Items,
    Scores,
    Statistic,
    Trials,
    build,
    floats,
)
from lmdiag.types import BadInput


def accuracy(trials: Trials, k: Sequence[int]) -> list[Scores]:
    """Returns accuracy@k: the share of rows with an expected word among the first k top words.

    Only rows with `expected` count. Words are compared whole, so a piece shown as "##ing" never
    equals a word. A k beyond the shortest list is left out, and so are rows without any list.

    Source: Ettinger (2020), tables 4, 7, 8 and 11.
    """
    if not trials.has("top_words"):
        return []
    fold = str if trials.cased else str.casefold
    where = with_expected(trials.rows)
    lists = trials.predictions["top_words"]
    ranks = np.full(len(where), np.nan)  # place, from 1, of the first expected word
    for place, i in enumerate(where):
        if lists[i] is not None:
            wanted = {*map(fold, trials.rows["expected"][i])}
            matches = (n for n, word in enumerate(lists[i], start=1) if fold(word) in wanted)
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


def _shortest(lists: Sequence[Sequence[str] | None], where: Sequence[int]) -> int:
    return min((len(words) for i in where if (words := lists[i]) is not None), default=0)


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


def surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the target, -log2 p, in bits: a mean over rows.

    A word with a probability of zero is left out.

    Source: Hale (2001); Levy (2008).
    """
    if not trials.has("log_prob"):
        return []
    return [build("surprisal", trials.ids, _bits(trials), "mean", trials.levels)]


def surprisal_per_word(trials: Trials) -> list[Scores]:
    """Returns the surprisal of a sentence per word, in bits: a mean over rows.

    Words without a probability count for neither. Of predictions that do not tell words apart, all
    words of the sentence count.
    """
    if not trials.has("log_prob"):
        return []
    bits = _bits(trials) / np.array([len(words) or math.nan for words in _scored_words(trials)])
    return [build("surprisal_per_word", trials.ids, bits, "mean", trials.levels)]


def slor(trials: Trials) -> list[Scores]:
    """Returns SLOR of a sentence, in bits per word: a mean over rows.

    The log-probability of the sentence less the sum of those of its words alone, over the number of
    words: how much more probable the words are in this order than by their frequencies. These are
    of `wordfreq`, in the language of the column `language`, otherwise in English; without the
    package, or with several languages, there is no SLOR. A sentence with a word that wordfreq does
    not know is left out. Words without a probability count for none of the three.

    Source: Pauls and Klein (2012); Lau, Clark and Lappin (2017), by words.
    """
    languages = {*trials.rows.get("language", ("en",))}
    if not trials.has("log_prob") or len(languages) != 1:
        return []
    language = str(languages.pop())
    sentences = _scored_words(trials)
    words = sorted({word for sentence in sentences for word in sentence})
    try:
        alone = dict(zip(words, log_frequencies(words, language).tolist(), strict=True))
    except BadInput:
        return []
    unigram = np.array([math.fsum(alone[word] for word in words) for words in sentences])
    n_words = np.array([len(words) or math.nan for words in sentences])
    values = (-_bits(trials) - unigram) / n_words
    return [build(f"slor@language={language}", trials.ids, values, "mean", trials.levels)]


def _scored_words(trials: Trials) -> list[list[str]]:
    """The words of each sentence that have a probability; all, if predictions do not tell them."""
    texts = trials.rows["sentence"]
    if not trials.has("words"):
        return [text.split() for text in texts]
    pairs = zip(texts, trials.predictions["words"], strict=True)
    return [
        [text[word.start : word.end] for word in words or () if word.log_prob is not None]
        for text, words in pairs
    ]


def _bits(trials: Trials) -> Floats:
    """Surprisals of the rows in bits; NaN for a probability of zero."""
    return np.where(np.isinf(trials.log_prob), np.nan, -trials.log_prob / math.log(2))


def rank(trials: Trials) -> list[Scores]:
    """Returns the rank of the target among all words: a median over rows.

    Only where the rank of every word with a probability is known: unknown ranks are the worst ones,
    and the median without them would be too low.
    """
    if not trials.has("rank") or not trials.has("log_prob"):
        return []
    ranks = floats(trials.predictions["rank"])
    if np.any(np.isnan(ranks) & ~np.isnan(trials.log_prob)):
        return []
    return [build("rank", trials.ids, ranks, "median", trials.levels)]


def correlations(trials: Trials) -> list[Scores]:
    """Returns the correlations of the target's log-probability with its cloze probability."""
    if not trials.has("log_prob"):
        return []
    return cloze_correlations(trials.ids, trials.log_prob, floats(trials.rows["target_cloze"]))


def cloze_correlations(ids: Items, log_prob: Floats, cloze: Floats) -> list[Scores]:
    """Returns Spearman and Pearson of log-probability and cloze probability, over words, (n,) each.

    The values are (n, 2). A probability of zero is left out of Pearson, and has the lowest rank in
    Spearman; NaN is left out.
    """
    finite = np.where(np.isinf(log_prob), np.nan, log_prob)
    return [
        build("spearman", ids, np.column_stack([log_prob, cloze]), "spearman"),
        build("pearson", ids, np.column_stack([finite, cloze]), "pearson"),
    ]
