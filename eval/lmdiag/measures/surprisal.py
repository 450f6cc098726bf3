"""Measures of single words, for rows that are not compared with each other."""

from __future__ import annotations

import math

import numpy as np

from lmdiag.measures.scores import Scores, build, floats
from lmdiag.measures.trials import Trials


def surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the target, -log2 p, in bits: a mean over rows.

    An unscorable word is left out, and so is a word with a probability of zero, whose surprisal is
    infinite.

    Source: Hale (2001); Levy (2008).
    """
    if not trials.has("log_prob"):
        return []
    bits = np.where(np.isinf(trials.log_prob), np.nan, -trials.log_prob / math.log(2))
    return [build("surprisal", trials.ids, bits, "mean", trials.levels)]


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
