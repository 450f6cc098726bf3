"""Whether probabilities at one blank can be true together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

MOST_TOGETHER = 1.05
"""Of probabilities of words of which none begins another; what is above 1 is rounding, of engines
that compute in half precision."""

BELOW_FIRST = 0.5
"""Nats by which a word of rank 1 may be below the first of the list: engines that compute in half
precision round otherwise where a prompt is longer by a token."""


def impossible_sum(words: Mapping[str, float]) -> float | None:
    """Returns the probability of words that exclude each other, if it is above 1; else None.

    Words of which one begins another do not exclude each other: a token may be the beginning of
    the other word. Of a word and the longer words that begin with it, the sum has the larger: the
    probability of the word, or that of the longer words together.

    >>> round(impossible_sum({"bird": -0.1, "tool": -0.2}), 4)  # exp(-.1) + exp(-.2)
    1.7236
    >>> impossible_sum({"bird": -0.1, "birds": -0.2}) is None
    True

    Args:
        words: word -> its log-probability at the blank, in nats.
    """
    if math.fsum(map(math.exp, words.values())) <= MOST_TOGETHER:  # nearly always
        return None
    largest: list[tuple[str, float]] = []  # words that no earlier one begins, with what they hide
    for word in sorted(words, reverse=True):  # longer words come before their beginnings
        covered = 0.0
        while largest and largest[-1][0].startswith(word):
            covered += largest.pop()[1]
        largest.append((word, max(covered, math.exp(words[word]))))
    total = math.fsum(share for _, share in largest)
    return total if total > MOST_TOGETHER else None


def is_below_first(log_prob: float | None, rank: int | None, listed: Sequence[float]) -> bool:
    """Returns whether a word of one token has rank 1 and is below the first of the list."""
    if log_prob is None or rank != 1 or not listed:
        return False
    return log_prob < listed[0] - BELOW_FIRST
