"""Measures of whole sentences: by the sum of their words, and by the mean over tokens or words."""

from __future__ import annotations

import math

import numpy as np

from lmdiag.measures.scores import Floats, Scores, build, floats
from lmdiag.measures.trials import Trials, higher


def sentence_measures(trials: Trials) -> list[Scores]:
    """Returns the measures of contrasts between whole sentences; none where rows are not compared.

    sensitivity: the good sentence has a higher log-probability than every bad one.
    sensitivity_mean: it has a higher log-probability per token, which does not favour short ones.

    Without tokenizers that represent all words, and with equal sentences, a contrast is left out.

    Source: Warstadt et al. (2020); Lau et al. (2017) for the mean.
    """
    if not trials.has("log_prob") or "contrast" not in trials.rows:
        return []
    scores = [_sensitivity(trials, "sensitivity", trials.log_prob)]
    if trials.has("n_tokens"):
        scores.append(_sensitivity(trials, "sensitivity_mean", trials.log_prob / _n_tokens(trials)))
    return scores


def surprisal_per_word(trials: Trials) -> list[Scores]:
    """Returns -log2 p divided by the number of words, in bits: a mean over rows.

    Words without a probability count for neither.
    """
    if not trials.has("log_prob"):
        return []
    bits = finite(-trials.log_prob / math.log(2) / _n_words(trials))
    return [build("surprisal_per_word", trials.ids, bits, "mean", trials.levels)]


def _sensitivity(trials: Trials, name: str, values: Floats) -> Scores:
    contrasts = trials.contrasts
    return contrasts.build(name, higher(*contrasts.pairs(values)), chance=contrasts.chance)


def _n_tokens(trials: Trials) -> Floats:
    """Number of tokens with a probability, (n,); NaN for none."""
    counts = floats(trials.predictions["n_tokens"])
    return np.where(counts > 0, counts, np.nan)


def _n_words(trials: Trials) -> Floats:
    """Number of words with a probability, (n,); NaN for none.

    Of predictions that do not tell words apart, all words of the sentence.
    """
    if trials.has("words"):
        counts = [
            sum(word.log_prob is not None for word in words or ())
            for words in trials.predictions["words"]
        ]
    else:
        counts = [len(text.split()) for text in trials.rows["sentence"]]
    return np.where(np.array(counts) > 0, np.array(counts, dtype=np.float64), np.nan)


def finite(values: Floats) -> Floats:
    """Returns the values with NaN for infinite ones: a probability of zero has no surprisal."""
    return np.where(np.isinf(values), np.nan, values)
