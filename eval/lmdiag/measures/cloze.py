"""Measures of cloze norms: people's responses at a blank beside what a model expects there."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lmdiag import stats
from lmdiag.measures.registry import register
from lmdiag.measures.scores import (
    Floats,
    Scores,
    Statistic,
    Trials,
    build,
    floats,
    fold_word,
    is_tied,
    objects,
    positions,
    without_differences,
)
from lmdiag.text import plain_response
from lmdiag.types import SHARE_ROUNDING, Fold

_LENGTHS = (
    "not on one scale, since masked models spread the probability of whole words over lengths of "
    "one, two and three pieces"
)


_MASS_ROUNDING = 1e-4
"""Sums of probabilities exceed 1 by rounding, in float32."""

_SHARE_TIE = 1e-12
"""Shares of responses that differ by less are equal."""

_FEWEST_WORDS = 3
"""Words of an item that a correlation over its words needs."""


class ItemWords(NamedTuple):
    """The words of an item, and the model's list of words there.

    Attributes:
        item: its name.
        rows: positions of the spellings of each word, the most frequent first.
        shares: of the responses, (n words,).
        log_prob: in nats, (n words,); NaN where it is not known.
        top_shares: share of the responses of each word of the model's list; 0 for none.
    """

    item: str
    rows: Sequence[Sequence[int]]
    shares: Floats
    log_prob: Floats
    top_shares: Sequence[float]


@lru_cache(maxsize=1)  # all measures of the same rows need them, one after the other
def words_of_items(trials: Trials) -> Sequence[ItemWords]:
    """Returns the words of each item; spellings that the model reads as the same tokens are one.

    The words of the model's list are changed as responses are: without final punctuation, and
    without case where no response has a capital.
    """
    targets = trials.rows["target"]
    shares = floats(trials.rows["cloze"]).tolist()
    folds = response_folds(targets, trials.folds)
    absent = [None] * len(targets)
    top_words = trials.predictions.get("top_words") or absent
    top_log_probs = trials.predictions.get("top_log_probs") or absent
    items = []
    for item, where in positions(objects(trials.rows["item"])).items():
        rows = where.tolist()
        list_words = [plain_response(word) for word in top_words[rows[0]] or ()]
        words = [targets[row] for row in rows]
        log_probs = [
            *trials.log_prob[rows],
            *(top_log_probs[rows[0]] or [math.nan] * len(list_words)),
        ]
        word_numbers = same_words([*words, *list_words], log_probs, folds)
        spellings: dict[int, list[int]] = {}
        for row, number in zip(rows, word_numbers, strict=False):
            spellings.setdefault(number, []).append(row)
        share_of = {
            number: math.fsum(shares[row] for row in word_rows)
            for number, word_rows in spellings.items()
        }
        words_of_item = ItemWords(
            item,
            [*spellings.values()],
            np.array([*share_of.values()]),
            trials.log_prob[[word_rows[0] for word_rows in spellings.values()]],
            [share_of.get(number, 0.0) for number in word_numbers[len(rows) :]],
        )
        items.append(words_of_item)
    return items


def response_folds(targets: Sequence[str], folds: Collection[Fold]) -> list[Fold]:
    """Returns the differences that do not count between responses and a model's words.

    Beside those of the model it is letter case, where no response has a capital letter.
    """
    has_capitals = any(word != word.lower() for word in targets)
    return [*folds] if has_capitals or "case" in folds else ["case", *folds]


def same_words(
    words: Sequence[str], log_probs: Sequence[float], folds: Collection[Fold]
) -> list[int]:
    """Returns the number of each word, the same for spellings that are the same tokens.

    These differ by `folds` alone, or in case, accents, forms or white space alone and have the same
    log-probability.

    >>> same_words(["vu", "v\u00fc", "VU", "wu"], [-1.0, -1.0, -9.0, -1.0], ["case"])
    [0, 0, 0, 1]
    """
    firsts: dict[str, list[tuple[int, str, float]]] = {}
    numbers = list[int]()
    n_known = 0
    for word, log_prob in zip(words, log_probs, strict=True):
        folded = fold_word(word, folds)
        word_forms = firsts.setdefault(without_differences(word), [])
        matches = (n for n, text, nats in word_forms if text == folded or is_tied(nats, log_prob))
        number = next(matches, -1)
        if number < 0:
            number = n_known
            n_known += 1
            word_forms.append((number, folded, log_prob))
        numbers.append(number)
    return numbers


def item_measures(shares: Floats, log_prob: Floats, top_share: float) -> dict[str, float]:
    """Returns the measures of an item; NaN where undefined.

    mass: sum of p over the words that people gave. top_agrees: whether the model's most probable
    word is a most frequent response. cross_entropy: -sum q log2 p, bits. divergence: this minus the
    entropy of q. These are undefined where the shares do not add up to 1 (but for rounding), since
    words are missing, and all but top_agrees where p of a word is not known; mass, too, where it is
    above 1, as that of tokens that begin each other. spearman: of q and p over the words with a
    known p, at least three.

    Args:
        shares: of the responses of each word, q, (n,).
        log_prob: of each word in nats, (n,); NaN where it is not known.
        top_share: share of the responses of the model's most probable word; NaN where it has none.
    """
    q = shares[shares > 0]
    nats = log_prob[shares > 0]
    # without all responses, neither their entropy nor their most frequent word is known
    is_complete = abs(q.sum() - 1) <= SHARE_ROUNDING * len(q) + 1e-9
    is_known = is_complete and bool(np.isfinite(nats).all())
    has_top = is_complete and not math.isnan(top_share)
    mass = float(np.exp(nats).sum()) if is_known else math.nan
    cross_entropy = float(-(q * nats).sum() / math.log(2)) if is_known else math.nan
    pairs = np.column_stack([log_prob, shares])[~np.isnan(log_prob)]
    return {
        "mass": min(mass, 1.0) if mass < 1 + _MASS_ROUNDING else math.nan,
        "top_agrees": float(top_share >= q.max() - _SHARE_TIE) if has_top else math.nan,
        "cross_entropy": cross_entropy,
        "divergence": cross_entropy + float((q * np.log2(q)).sum()),
        "spearman": stats.point(pairs, "spearman") if len(pairs) >= _FEWEST_WORDS else math.nan,
    }


STATISTICS: Mapping[str, Statistic] = {
    "mass": "share", "top_agrees": "proportion", "cross_entropy": "mean", "divergence": "mean",
    "spearman": "mean_correlation",
}  # fmt: skip
"""Measure of an item -> how its values become a figure."""


def _scores(trials: Trials, *names: str) -> list[Scores]:
    """The values of measures for the items."""
    if not trials.has("log_prob"):
        return []
    items = words_of_items(trials)
    values_of_items = []
    for item in items:
        top_share = item.top_shares[0] if item.top_shares else math.nan
        values_of_items.append(item_measures(item.shares, item.log_prob, top_share))
    ids = objects([item.item for item in items])
    scores = []
    for name in names:
        values = floats([item_values[name] for item_values in values_of_items])
        scores.append(build(name, ids, values, STATISTICS[name], over="item"))
    return scores


@register(
    "cloze", mass="probability of human responses", divergence="KL divergence, bits",
    one_kind=_LENGTHS,
)  # fmt: skip
def mass_and_divergence(trials: Trials) -> list[Scores]:
    """Returns the probability of people's words, and the bits beyond their own entropy."""
    return _scores(trials, "mass", "divergence")


@register("cloze", cross_entropy="cross-entropy, bits", one_kind=_LENGTHS, shown_as="divergence")
def cross_entropy(trials: Trials) -> list[Scores]:
    """Returns the bits that a model needs for a response."""
    return _scores(trials, "cross_entropy")


@register("cloze", top_agrees="top word agrees", spearman="Spearman, log p and cloze")
def agreement_on_words(trials: Trials) -> list[Scores]:
    """Returns whether the top word is a most frequent response, and the correlation of an item."""
    return _scores(trials, "top_agrees", "spearman")


@register("cloze", spearman_pooled="Spearman, pooled over words", is_pooled=True)
def pooled(trials: Trials) -> list[Scores]:
    """Returns Spearman's correlation of q and p over the words of all items.

    A probability of zero has the lowest rank; a word whose p is not known is left out.
    """
    if not trials.has("log_prob"):
        return []
    items = words_of_items(trials)
    ids = trials.ids[[spellings[0] for item in items for spellings in item.rows]]
    values = [np.column_stack([item.log_prob, item.shares]) for item in items]
    return [build("spearman_pooled", ids, np.concatenate(values), "spearman")]
