"""Measures of rows that are not compared: surprisal and rank of words, surprisal of sentences."""

from __future__ import annotations

import math

import numpy as np

from lmdiag.measures.scores import Floats, Scores, build, floats
from lmdiag.measures.trials import Trials


def surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the target, -log2 p, in bits: a mean over rows.

    An unscorable word is left out, and so is a word with a probability of zero, whose surprisal is
    infinite.

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
    if trials.has("words"):
        sentences = trials.predictions["words"]
        counts = [sum(word.log_prob is not None for word in words or ()) for words in sentences]
    else:
        counts = [len(text.split()) for text in trials.rows["sentence"]]
    n_words = np.array([count or math.nan for count in counts])
    bits = _bits(trials) / n_words
    return [build("surprisal_per_word", trials.ids, bits, "mean", trials.levels)]


def rank(trials: Trials) -> list[Scores]:
    """Returns the rank of the target among all words: a median over rows.

    Only where the rank of every word with a probability is known: unknown ranks are the worst ones
    (in unit word, ranks end with the top list), and the median without them would be too low.
    """
    if not trials.has("rank") or not trials.has("log_prob"):
        return []
    ranks = floats(trials.predictions["rank"])
    if np.any(np.isnan(ranks) & ~np.isnan(trials.log_prob)):
        return []
    return [build("rank", trials.ids, ranks, "median", trials.levels)]


def _bits(trials: Trials) -> Floats:
    """Surprisals of the rows in bits; NaN for a probability of zero."""
    return np.where(np.isinf(trials.log_prob), np.nan, -trials.log_prob / math.log(2))
