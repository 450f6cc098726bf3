"""Measures of the scored words themselves, for rows that are not compared with each other."""

from __future__ import annotations

import math

import numpy as np

from lmdiag.measures.levels import Levels
from lmdiag.measures.scores import Columns, Scores, build, floats, known, objects


def surprisal(rows: Columns, predictions: Columns, levels: Levels) -> list[Scores]:
    """Returns the surprisal of the target, -log2 p, in bits: a mean over rows.

    A word that the tokenizer cannot spell is left out, and so is one with a probability of zero,
    whose surprisal is infinite.

    Source: Hale (2001); Levy (2008).
    """
    if not known(predictions, "log_prob"):
        return []
    log_prob = floats(predictions["log_prob"])
    bits = np.where(np.isinf(log_prob), np.nan, -log_prob / math.log(2))
    return [build("surprisal", objects(rows["id"]), bits, "mean", levels)]


def rank(rows: Columns, predictions: Columns, levels: Levels) -> list[Scores]:
    """Returns the rank of the target among all words: a median over rows.

    Only where the rank of every word that has a probability is known: those that are not are the
    worst ones (in unit word, ranks end with the top list), and without them the median would lie.
    """
    if not known(predictions, "rank") or not known(predictions, "log_prob"):
        return []
    ranks, log_prob = floats(predictions["rank"]), floats(predictions["log_prob"])
    if np.any(np.isnan(ranks) & ~np.isnan(log_prob)):
        return []
    return [build("rank", objects(rows["id"]), ranks, "median", levels)]
