"""Measures of single rows: surprisal, rank, and SLOR of a sentence."""

from __future__ import annotations

import math

import numpy as np

from lmdiag.frequencies import log_frequencies
from lmdiag.measures.regions import critical_region, part_bits
from lmdiag.measures.registry import register
from lmdiag.measures.scores import Floats, Scores, Trials, build_scores, float_array
from lmdiag.types import BadInput

PSEUDO = "the pseudo-log-likelihood of a masked model is not the probability of a sentence"
"""Why a figure of sentences is not compared between masked and causal models.

Measures are registered with this reason as `one_kind`; messages quote it.
"""


@register("custom", surprisal="mean surprisal, bits")
def surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the target, -log2 p, in bits: a mean over rows.

    A word with a probability of zero is left out.

    Source: Hale (2001); Levy (2008).
    """
    if not trials.has("log_prob"):
        return []
    return [build_scores("surprisal", trials.ids, _row_bits(trials), "mean", trials.levels)]


@register("sentences", surprisal_per_word="mean surprisal per word, bits", one_kind=PSEUDO)
def surprisal_per_word(trials: Trials) -> list[Scores]:
    """Returns the surprisal of a sentence per word, in bits: a mean over rows.

    For example, 4 for a sentence of 20 bits and 5 words. Words without a probability do not count,
    since the surprisal of the sentence is the sum over the others. If predictions do not have the
    probabilities of words, all words count.
    """
    if not trials.has("log_prob"):
        return []
    n_words = np.array([len(words) or math.nan for words in _scored_words(trials)])
    bits_per_word = _row_bits(trials) / n_words
    return [build_scores("surprisal_per_word", trials.ids, bits_per_word, "mean", trials.levels)]


@register(
    "sentences", critical_surprisal="mean surprisal of the critical word, bits", one_kind=PSEUDO
)
def critical_surprisal(trials: Trials) -> list[Scores]:
    """Returns the surprisal of the critical word of each sentence, in bits: a mean over rows.

    Only where each sentence has a region `critical` (`--critical`), else []; a row where it has no
    probability is left out.
    """
    regions = trials.rows.get("regions", ())
    critical_regions = [critical_region(regions_of_row) for regions_of_row in regions]
    # the region of a sentence without a critical word is {}
    if not trials.has("words") or not critical_regions or not all(critical_regions):
        return []
    bits = [
        part_bits(words, region["start"], region["end"])
        for words, region in zip(trials.predictions["words"], critical_regions, strict=True)
    ]
    values = np.where(np.isinf(bits), np.nan, bits)
    return [build_scores("critical_surprisal", trials.ids, values, "mean", trials.levels)]


@register("sentences", slor="SLOR, bits per word", one_kind=PSEUDO)
def slor(trials: Trials) -> list[Scores]:
    """Returns SLOR of a sentence, in bits per word: a mean over rows.

    SLOR is (log2 p of the sentence - sum of the log2 frequencies of its words) / number of words:
    how much more probable the words are in this order than by their frequencies. For example, a
    sentence of 4 words with a log2 p of -20 whose words have log2 frequencies of -32 in sum has a
    SLOR of 3.

    The frequencies are those of `wordfreq`, in the language of the column `language`, otherwise in
    English; [] is returned without the package, and for rows in several languages. A sentence with
    a word that wordfreq does not know is left out. A word without a probability does not count in
    the sum and the number of words.

    Source: Pauls and Klein (2012); Lau, Clark and Lappin (2017), by words.
    """
    languages = {*trials.rows.get("language", ("en",))}
    if not trials.has("log_prob") or len(languages) != 1:
        return []
    language = str(languages.pop())
    sentences = _scored_words(trials)
    distinct_words = sorted({word for words in sentences for word in words})
    try:
        # NaN for a word that wordfreq does not know, so that its sentences have no SLOR either
        log2_frequencies = log_frequencies(distinct_words, language).tolist()
    except BadInput:  # wordfreq is not installed, or does not have the language
        return []
    log2_frequency_of = dict(zip(distinct_words, log2_frequencies, strict=True))
    unigram_log2_prob = np.array(
        [math.fsum(log2_frequency_of[word] for word in words) for words in sentences]
    )
    n_words = np.array([len(words) or math.nan for words in sentences])  # nothing is divided by 0
    sentence_log2_prob = -_row_bits(trials)
    values = (sentence_log2_prob - unigram_log2_prob) / n_words
    return [build_scores(f"slor@language={language}", trials.ids, values, "mean", trials.levels)]


def _scored_words(trials: Trials) -> list[list[str]]:
    """Returns the words of each sentence that have a probability, as texts.

    These are all words where predictions do not have the probabilities of words (`words`).
    """
    sentences = trials.rows["sentence"]
    if not trials.has("words"):
        return [sentence.split() for sentence in sentences]
    return [
        [sentence[word.start : word.end] for word in words or () if word.log_prob is not None]
        for sentence, words in zip(sentences, trials.predictions["words"], strict=True)
    ]


def _row_bits(trials: Trials) -> Floats:
    """Returns the surprisal of each row in bits; NaN for a probability of zero."""
    return np.where(np.isinf(trials.log_prob), np.nan, -trials.log_prob / math.log(2))


@register("custom", rank="median rank")
def rank(trials: Trials) -> list[Scores]:
    """Returns the rank of the target among all words: a median over rows.

    Only where the rank of every word with a probability is known: unknown ranks are the worst ones,
    and the median without them would be too low.
    """
    if not trials.has("rank") or not trials.has("log_prob"):
        return []
    ranks = float_array(trials.predictions["rank"])
    has_unknown_rank = np.isnan(ranks) & ~np.isnan(trials.log_prob)
    if has_unknown_rank.any():
        return []
    return [build_scores("rank", trials.ids, ranks, "median", trials.levels)]
