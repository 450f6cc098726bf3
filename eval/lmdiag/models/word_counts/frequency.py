"""How frequent a word is in a language, whatever the context: `frequency:LANGUAGE`.

Source: Speer (2022), rspeer/wordfreq, version 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lmdiag.frequencies import wordfreq_errors
from lmdiag.models.word_counts.word_model import (
    Distribution,
    ListedDistribution,
    WordModel,
    WordReading,
)
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions

_FLOOR = 1e-9
"""Proportion of a word that wordfreq does not know; its rarest have 1e-8."""


@dataclass(eq=False)
class FrequencyModel(WordModel):
    """The frequencies of wordfreq as probabilities, the same after every context.

    Attributes:
        language: code of the language.
        proportions: frequency of each of `words`, as a share of all words.
    """

    language: str
    proportions: list[float]
    _readings: dict[str, WordReading] = field(default_factory=dict, init=False)

    @classmethod
    def load(cls, model_id: str, language: str, options: LoadOptions) -> Self:
        """Loads the frequencies of a language; `BadInput` if wordfreq does not have it."""
        from importlib.metadata import version

        with wordfreq_errors(language):
            from wordfreq import available_languages, get_frequency_dict, tokenize

            languages = sorted(available_languages("best"))
            if language not in languages:  # wordfreq would take a similar one
                names = ", ".join(languages)
                raise BadInput(f"wordfreq has no language {language!r}: choose from {names}")

            tokenize("0", language)  # needs further packages for some languages
            proportion_of_word = get_frequency_dict(language, "best")
        release = version("wordfreq")
        info = ModelInfo(
            id=model_id,
            revision=None,
            commit=release,
            kind="causal",
            architecture=f"wordfreq {release}",
            dtype="float64",
            tokenizer="words of wordfreq",
            cased=False,
            vocab_size=len(proportion_of_word),
            n_parameters=0,
            max_length=None,
            sentence_bos=True,
            folds=("case", "forms"),
        )
        # few values are distinct
        rounded_value = {value: _rounded(value) for value in set(proportion_of_word.values())}
        proportions = [rounded_value[value] for value in proportion_of_word.values()]
        words = list(proportion_of_word)
        return cls(
            info, options, warning=None, words=words, language=language, proportions=proportions
        )

    @property
    def start(self) -> None:
        """None: frequencies have no state."""
        return None

    def memory(self, context: str) -> str:
        """Returns "", since an answer depends on no part of a context."""
        return ""

    @cached_property
    def _distribution(self) -> Distribution:
        """The only distribution of the model."""
        return ListedDistribution(np.log(self.proportions))

    def distribution(self, state: Any) -> Distribution:
        """Returns the probability of every word, the same after every context."""
        return self._distribution

    def read(self, text: str, state: Any) -> WordReading:
        """Returns the log of a word's frequency, see `WordModel.read`; looked up once per word."""
        if text not in self._readings:
            self._readings[text] = self._look_up(text)
        return self._readings[text]

    def _look_up(self, text: str) -> WordReading:
        """Returns the log of wordfreq's frequency of a text without blanks.

        In languages without spaces between words, wordfreq divides it, and the logs of the words'
        frequencies are added up. Punctuation has no words.
        """
        from wordfreq import tokenize, word_frequency

        tokens = tokenize(text, self.language)
        if not tokens:  # punctuation
            return WordReading(0.0, n_words=0, state=None)
        # in these languages `tokenize` divides a text into words; in others a text is one word
        is_divided = self.language.partition("-")[0] in ("zh", "ja", "ko")
        words = tokens if is_divided else [text]
        nats = 0.0
        for word in words:
            proportion = word_frequency(word, self.language)
            if not proportion:
                self.note(f"not in wordfreq, and counted as {_FLOOR:g}", word)
            nats += math.log(max(proportion, _FLOOR))
        return WordReading(nats, len(words), state=None)


def _rounded(proportion: float) -> float:
    """Returns a proportion rounded to three digits, as `wordfreq.word_frequency` gives it.

    >>> _rounded(0.00012345)
    0.000123
    """
    # as many decimal places as zeros stand after the point, and three more
    return round(proportion, math.floor(-math.log10(proportion)) + 3)
