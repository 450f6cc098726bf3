"""Measures of single rows: surprisal, rank, and SLOR of a sentence."""

from __future__ import annotations

import math

import numpy as np

from lmdiag.frequencies import log_frequencies
from lmdiag.measures.regions import critical_region, part_bits
from lmdiag.measures.registry import register
from lmdiag.measures.scores import (
    Floats,
    Scores,
    Trials,
    build,
    floats,
)
from lmdiag.types import BadInput

PSEUDO = "the pseudo-log-likelihood of a masked model is not the probability of a sentence"
"""Why a figure of sentences is not compared between masked and causal models."""


@register("custom", surprisal="mean surprisal, bits")
def surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the target, -log2 p, in bits: a mean over rows.

    A word with a probability of zero is left out.

    Source: Hale (2001); Levy (2008).
    """
    if not trials.has("log_prob"):
        return []
    return [build("surprisal", trials.ids, _bits(trials), "mean", trials.levels)]


@register("sentences", surprisal_per_word="mean surprisal per word, bits", one_kind=PSEUDO)
def surprisal_per_word(trials: Trials) -> list[Scores]:
    """Returns the surprisal of a sentence per word, in bits: a mean over rows.

    Words without a probability count for neither. Of predictions that do not tell words apart, all
    words of the sentence count.
    """
    if not trials.has("log_prob"):
        return []
    bits = _bits(trials) / np.array([len(words) or math.nan for words in _scored_words(trials)])
    return [build("surprisal_per_word", trials.ids, bits, "mean", trials.levels)]


@register(
    "sentences", critical_surprisal="mean surprisal of the critical word, bits", one_kind=PSEUDO
)
def critical_surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the critical word of each sentence, in bits: a mean over rows.

    Only where sentences have a region `critical` (`--critical`); a row where it has no probability
    is left out.
    """
    regions = trials.rows.get("regions", ())
    if not trials.has("words") or not all(map(critical_region, regions)) or not len(regions):
        return []
    pairs = zip(regions, trials.predictions["words"], strict=True)
    spans = [(critical_region(row_regions), words) for row_regions, words in pairs]
    bits = [part_bits(words, span["start"], span["end"]) for span, words in spans]
    values = np.where(np.isinf(bits), np.nan, bits)
    return [build("critical_surprisal", trials.ids, values, "mean", trials.levels)]


@register("sentences", slor="SLOR, bits per word", one_kind=PSEUDO)
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
        log_frequency_of = dict(zip(words, log_frequencies(words, language).tolist(), strict=True))
    except BadInput:
        return []
    unigram = np.array([math.fsum(log_frequency_of[word] for word in words) for words in sentences])
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


@register("custom", rank="median rank")
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
