"""Frequencies of words by wordfreq."""

import math

from wordfreq import word_frequency

from lmdiag.frequencies import log_frequencies


def test_frequencies_are_those_of_wordfreq_also_of_words_that_can_be_read_once():
    words = ["the", "zzqx", "the"]
    common = math.log2(word_frequency("the", "en"))
    for texts in (words, iter(words)):
        values = log_frequencies(texts, "en").tolist()
        assert values[0] == values[2] == common
        assert math.isnan(values[1])
