"""Frequencies of words, by the package wordfreq where it is installed."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lmdiag.text import shortened
from lmdiag.types import BadInput


def log_frequencies(texts: Iterable[str], language: str) -> NDArray[np.float64]:
    """Returns log2 of the proportion of each word in `wordfreq`; NaN for unknown words.

    `BadInput` if it is not installed, or has no such language.

    Source: Speer (2022), rspeer/wordfreq, version 3.
    """
    try:
        from wordfreq import word_frequency
    except ImportError:
        raise BadInput(
            "word frequencies need the package wordfreq: `pip install '.[words]'` in a clone of "
            "lmdiag, or give a column log_frequency, or other columns by --controls"
        ) from None
    try:
        known = {text: word_frequency(text, language) for text in dict.fromkeys(texts)}
    except LookupError as error:
        raise BadInput(f"wordfreq: {shortened(error)}") from None
    except ImportError as error:  # jieba for Chinese, MeCab for Japanese and Korean
        remedy = "`pip install 'wordfreq[cjk]'`"
        raise BadInput(f"wordfreq needs {error.name} for language {language}: {remedy}") from None
    return np.array([math.log2(known[text]) if known[text] else math.nan for text in texts])
