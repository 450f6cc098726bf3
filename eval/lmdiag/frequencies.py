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
    """Returns log2 of the proportion of each word in `wordfreq`; NaN for unknown words.

    `BadInput` if it is not installed, or has no such language.

    Source: Speer (2022), rspeer/wordfreq, version 3.
    """
    instead = ", or give a column log_frequency, or other columns by --controls"
    with wordfreq_errors(language, instead):
        from wordfreq import word_frequency

        known = {text: word_frequency(text, language) for text in dict.fromkeys(texts)}
    return np.array([math.log2(known[text]) if known[text] else math.nan for text in texts])


@contextmanager
def wordfreq_errors(language: str, instead: str = "") -> Iterator[None]:
    """Raises `BadInput` where wordfreq is not installed, or cannot read a language.

    `instead` is what else may be done without it.
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
