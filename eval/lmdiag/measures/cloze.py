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
    build_scores,
    float_array,
    fold_word,
    is_tied,
    object_array,
    positions_by_label,
    without_differences,
)
from lmdiag.text import plain_response
from lmdiag.types import SHARE_ROUNDING, Fold

_NOT_ON_ONE_SCALE = (
    "not on one scale, since masked models spread the probability of whole words over lengths of "
    "one, two and three pieces"
)
"""Why these measures are not compared between masked and causal models."""

_MASS_ROUNDING = 1e-4
"""Sums of probabilities exceed 1 by rounding, in float32."""

_SHARE_TIE = 1e-12
"""Shares of responses that differ by less are equal."""

_FEWEST_WORDS = 3
"""Words of an item that a correlation over its words needs."""

STATISTICS: Mapping[str, Statistic] = {
    "mass": "share", "top_agrees": "proportion", "cross_entropy": "mean", "divergence": "mean",
    "spearman": "mean_correlation",
}  # fmt: skip
"""Measure of an item -> how its values become a figure."""


class ItemWords(NamedTuple):
    """The words of an item, and the model's list of words there.

    Attributes:
        item: its name.
        rows: positions of the rows of each word, one per spelling, the most frequent first.
        shares: share of the responses that are each word, (n words,).
        log_prob: of each word in nats, (n words,); NaN where it is not known.
        top_shares: share of the responses that are each word of the model's list; 0 for a word that
            nobody gave.
    """

    item: str
    rows: Sequence[Sequence[int]]
    shares: Floats
    log_prob: Floats
    top_shares: Sequence[float]


@lru_cache(maxsize=1)  # all measures of the same rows need them, one after the other
def words_of_items(trials: Trials) -> Sequence[ItemWords]:
    """Returns the words that people gave for each item, with their shares and log-probabilities.

    Spellings that the model reads as the same tokens are one word. For example, the responses "Cat"
    (share .2), "cat" (.5) and "dog" (.3) are two words for a model without case: the rows are [[0,
    1], [2]] and the shares [.7, .3].

    The words of the model's list are changed in the same way as responses: they lose final
    punctuation, and letter case does not count where no response has a capital.

    Args:
        trials: rows with the columns item, target (a response) and cloze (its share), and what a
            model predicted for them.
    """
    responses = trials.rows["target"]
    shares = float_array(trials.rows["cloze"]).tolist()
    folds = response_folds(responses, trials.folds)
    no_lists = [None] * len(responses)
    top_words = trials.predictions.get("top_words") or no_lists
    top_log_probs = trials.predictions.get("top_log_probs") or no_lists
    items = []
    for item, row_positions in positions_by_label(object_array(trials.rows["item"])).items():
        rows = row_positions.tolist()
        # all rows of an item have the same blank, and so the same list
        listed_words = [plain_response(word) for word in top_words[rows[0]] or ()]
        listed_log_probs = top_log_probs[rows[0]] or [math.nan] * len(listed_words)
        words = [*(responses[row] for row in rows), *listed_words]
        log_probs = [*trials.log_prob[rows], *listed_log_probs]
        # the responses and the listed words are numbered together, to find the share of a listed
        # word among the responses
        word_numbers = number_words(words, log_probs, folds)
        numbers_of_responses = word_numbers[: len(rows)]
        numbers_of_list = word_numbers[len(rows) :]
        rows_of_word: dict[int, list[int]] = {}
        for row, number in zip(rows, numbers_of_responses, strict=True):
            rows_of_word.setdefault(number, []).append(row)
        share_of_word = {
            number: math.fsum(shares[row] for row in word_rows)
            for number, word_rows in rows_of_word.items()
        }
        first_rows = [word_rows[0] for word_rows in rows_of_word.values()]
        items.append(
            ItemWords(
                item=item,
                rows=[*rows_of_word.values()],
                shares=np.array([*share_of_word.values()]),
                log_prob=trials.log_prob[first_rows],
                top_shares=[share_of_word.get(number, 0.0) for number in numbers_of_list],
            )
        )
    return items


def response_folds(responses: Sequence[str], folds: Collection[Fold]) -> list[Fold]:
    """Returns the differences that do not count between people's responses and a model's words.

    These are `folds`, the differences that the model does not see, e.g. "accents"; and also "case"
    where no response has a capital letter: people then typed in small letters only.

    >>> response_folds(["cat", "dog"], ["accents"]), response_folds(["Cat", "dog"], ["accents"])
    (['case', 'accents'], ['accents'])
    """
    has_capitals = any(word != word.lower() for word in responses)
    if has_capitals or "case" in folds:
        return [*folds]
    return ["case", *folds]


def number_words(
    words: Sequence[str], log_probs: Sequence[float], folds: Collection[Fold]
) -> list[int]:
    """Returns a number for each word, the same one for spellings that are the same tokens.

    Spellings are the same tokens if they differ by `folds` alone; or if they differ in case,
    accents, forms or white space alone and have the same log-probability.

    >>> number_words(["vu", "v\u00fc", "VU", "wu"], [-1.0, -1.0, -9.0, -1.0], ["case"])
    [0, 0, 0, 1]
    """
    # plain spelling -> number, folded spelling and log-probability of each word that has it
    words_of_spelling: dict[str, list[tuple[int, str, float]]] = {}
    numbers = list[int]()
    n_words = 0
    for word, log_prob in zip(words, log_probs, strict=True):
        folded_word = fold_word(word, folds)
        earlier_words = words_of_spelling.setdefault(without_differences(word), [])
        for number, earlier_word, earlier_log_prob in earlier_words:
            if earlier_word == folded_word or is_tied(earlier_log_prob, log_prob):
                numbers.append(number)
                break
        else:
            earlier_words.append((n_words, folded_word, log_prob))
            numbers.append(n_words)
            n_words += 1
    return numbers


def item_measures(shares: Floats, log_prob: Floats, top_share: float) -> dict[str, float]:
    """Returns the measures of an item by name; NaN where undefined.

    mass: sum of p over the words that people gave. top_agrees: whether the model's most probable
    word is a most frequent response. cross_entropy: -sum q log2 p, bits. divergence: this minus the
    entropy of q. spearman: of q and p over the words with a known p, at least three. For example,
    two words with q = p = 1/2 have a mass of 1, a cross-entropy of 1 and a divergence of 0.

    If the shares do not add up to 1 (but for rounding), words are missing, and only spearman is
    defined. If p of a word is not known, only top_agrees and spearman are defined. mass is also
    undefined if it is above 1: tokens that begin each other do not exclude each other.

    Args:
        shares: q, the share of people who gave each word, (n,).
        log_prob: log p of each word in nats, (n,); NaN where it is not known.
        top_share: q of the model's most probable word; NaN where the model has no list of words.
    """
    is_given = shares > 0
    q = shares[is_given]
    nats = log_prob[is_given]
    measures = dict.fromkeys(STATISTICS, math.nan)
    # Without all responses, neither their entropy nor their most frequent word is known. Each share
    # may have been rounded in the file.
    is_complete = abs(q.sum() - 1) <= SHARE_ROUNDING * len(q) + 1e-9
    if is_complete and not math.isnan(top_share):
        measures["top_agrees"] = float(top_share >= q.max() - _SHARE_TIE)
    if is_complete and np.isfinite(nats).all():
        mass = float(np.exp(nats).sum())
        # slightly above 1 is rounding, and more is undefined
        if mass < 1 + _MASS_ROUNDING:
            measures["mass"] = min(mass, 1.0)
        cross_entropy = float(-(q * nats).sum() / math.log(2))
        entropy = -float((q * np.log2(q)).sum())
        measures["cross_entropy"] = cross_entropy
        measures["divergence"] = cross_entropy - entropy
    has_log_prob = ~np.isnan(log_prob)
    if has_log_prob.sum() >= _FEWEST_WORDS:
        pairs = np.column_stack([log_prob, shares])[has_log_prob]
        measures["spearman"] = stats.point(pairs, "spearman")
    return measures


def _scores_over_items(trials: Trials, *names: str) -> list[Scores]:
    """Returns the scores of some measures of `item_measures` over items; [] without predictions."""
    if not trials.has("log_prob"):
        return []
    items = words_of_items(trials)
    measures_of_items = []
    for item in items:
        # of the model's most probable word, the first one of its list
        top_share = item.top_shares[0] if item.top_shares else math.nan
        measures_of_items.append(item_measures(item.shares, item.log_prob, top_share))
    ids = object_array([item.item for item in items])
    scores = []
    for name in names:
        values = float_array([measures[name] for measures in measures_of_items])
        scores.append(build_scores(name, ids, values, STATISTICS[name], over="item"))
    return scores


@register(
    "cloze", mass="probability of human responses", divergence="KL divergence, bits",
    one_kind=_NOT_ON_ONE_SCALE,
)  # fmt: skip
def mass_and_divergence(trials: Trials) -> list[Scores]:
    """Returns mass and divergence over items, see `item_measures`.

    They are the probability of all words that people gave, and the bits that the model needs for a
    response beyond the entropy of the responses.
    """
    return _scores_over_items(trials, "mass", "divergence")


@register(
    "cloze", cross_entropy="cross-entropy, bits", one_kind=_NOT_ON_ONE_SCALE, shown_as="divergence"
)
def cross_entropy(trials: Trials) -> list[Scores]:
    """Returns the bits that a model needs for a response, over items; see `item_measures`."""
    return _scores_over_items(trials, "cross_entropy")


@register("cloze", top_agrees="top word agrees", spearman="Spearman, log p and cloze")
def agreement_on_words(trials: Trials) -> list[Scores]:
    """Returns top_agrees and spearman over items, see `item_measures`.

    They are whether the model's top word is a most frequent response, and the correlation of
    probabilities with shares of people over the words of an item.
    """
    return _scores_over_items(trials, "top_agrees", "spearman")


@register("cloze", spearman_pooled="Spearman, pooled over words", is_pooled=True)
def pooled(trials: Trials) -> list[Scores]:
    """Returns Spearman's correlation of people's shares and p over the words of all items.

    A probability of zero has the lowest rank; a word whose p is not known is left out.
    """
    if not trials.has("log_prob"):
        return []
    items = words_of_items(trials)
    # each word is named by the row of its first spelling
    first_rows = [spellings[0] for item in items for spellings in item.rows]
    values = [np.column_stack([item.log_prob, item.shares]) for item in items]
    ids = trials.ids[first_rows]
    return [build_scores("spearman_pooled", ids, np.concatenate(values), "spearman")]
