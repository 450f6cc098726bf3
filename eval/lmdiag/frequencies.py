"""Frequencies of words, by the package wordfreq where it is installed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lmdiag.text import shortened
from lmdiag.types import BadInput


def log_frequencies(texts: Iterable[str], language: str) -> NDArray[np.float64]:
    """Returns log2 of the proportion of each word in `wordfreq`, (n,); NaN for unknown words.

    A word that is one of 1024 words of the language in the mean has -10.

    Args:
        texts: the words.
        language: code of the language, e.g. "en".

    Raises:
        BadInput: the package is not installed, or does not have the language.

    Source: Speer (2022), rspeer/wordfreq, version 3.
    """
    words = list(texts)  # an iterator can be read once
    instead = ", or give a column log_frequency, or other columns by --controls"
    with wordfreq_errors(language, instead):
        from wordfreq import word_frequency

        share_of = {word: word_frequency(word, language) for word in dict.fromkeys(words)}
    # wordfreq gives 0 for a word that it does not know
    log_shares = {word: math.log2(share) if share else math.nan for word, share in share_of.items()}
    return np.array([log_shares[word] for word in words])


@contextmanager
def wordfreq_errors(language: str, instead: str = "") -> Iterator[None]:
    """Turns errors of a block that calls wordfreq into `BadInput` with a remedy.

    Args:
        language: code of the language that the block asks for, e.g. "en".
        instead: end of the message if wordfreq is not installed: what can be done without it.
    """
    try:
        yield
    except LookupError as error:
        raise BadInput(f"wordfreq: {shortened(error)}") from None
    except ImportError as error:  # jieba for Chinese, MeCab for Japanese and Korean
        if (error.name or "").partition(".")[0] == "wordfreq":
            remedy = "`pip install '.[words]'` in a clone of lmdiag"
            needs = "word frequencies need the package wordfreq"
            raise BadInput(f"{needs}: {remedy}{instead}") from None
        remedy = "`pip install 'wordfreq[cjk]'`"
        raise BadInput(f"wordfreq needs {error.name} for language {language}: {remedy}") from None
