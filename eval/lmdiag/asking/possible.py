"""Whether probabilities at one blank can be true together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

MOST_TOGETHER = 1.05
"""Highest sum of probabilities that words may have at one blank if none of them begins another one.
What is above 1 is rounding, of engines that compute in half precision."""

BELOW_FIRST = 0.5
"""Nats by which a word of rank 1 may be below the first of the list: engines that compute in half
precision round otherwise where a prompt is longer by a token."""


def impossible_sum(words: Mapping[str, float]) -> float | None:
    """Returns the summed probability of words that exclude each other, if it is above 1; else None.

    A sum above `MOST_TOGETHER` shows that an engine's probabilities are wrong. A word and a longer
    word that begins with it, as "bird" and "birds", do not exclude each other: the token "bird" may
    be the beginning of "birds". For such words, the sum has the larger of two numbers: the
    probability of the short word, or that of all longer words together.

    >>> round(impossible_sum({"bird": -0.1, "tool": -0.2}), 4)  # exp(-.1) + exp(-.2)
    1.7236
    >>> impossible_sum({"bird": -0.1, "birds": -0.2}) is None
    True

    Args:
        words: word -> its log-probability at the blank, in nats.
    """
    if math.fsum(map(math.exp, words.values())) <= MOST_TOGETHER:  # nearly always
        return None
    # A stack of words that exclude each other, each with its probability or that of longer words.
    # In reverse order, the words that begin with a word stand directly before it: they are on top.
    exclusive: list[tuple[str, float]] = []
    for word in sorted(words, reverse=True):  # longer words come before their beginnings
        longer_probability = 0.0
        while exclusive and exclusive[-1][0].startswith(word):
            _, probability = exclusive.pop()
            longer_probability += probability
        exclusive.append((word, max(longer_probability, math.exp(words[word]))))
    total = math.fsum(probability for _, probability in exclusive)
    return total if total > MOST_TOGETHER else None


def is_below_first(log_prob: float | None, rank: int | None, listed: Sequence[float]) -> bool:
    """Returns whether a word has rank 1 although the list of top words has a more probable one.

    Such answers of an engine contradict each other.

    Args:
        log_prob: of a word of one token, in nats; None where it is not known.
        rank: of the word among all tokens; None where it is not known.
        listed: log-probabilities of the top words, highest first.
    """
    if log_prob is None or rank != 1 or not listed:
        return False
    return log_prob < listed[0] - BELOW_FIRST
