"""What the words before a word tell of it, by an n-gram model: `ngram:FILE`.

The numbers are those of the package kenlm (Heafield 2011), which reads the file.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lmdiag.files.reading import user_path
from lmdiag.models.word_counts.ngram_files import read_ngram_file
from lmdiag.models.word_counts.word_model import Distribution, WordModel, WordReading
from lmdiag.text import shortened
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions

_LN_10 = math.log(10)

_KEPT = 64
"""Distributions that are kept."""


@dataclass(eq=False)
class NgramModel(WordModel):
    """An n-gram model. What it remembers is a `kenlm.State`: the last words that tell something.

    Attributes:
        ngrams: the `kenlm.Model`.
        has_unknown: whether the file has a probability of unknown words.
    """

    ngrams: Any
    has_unknown: bool
    _words_of: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    _distributions: dict[Any, Distribution] = field(default_factory=dict, init=False)

    @classmethod
    def load(cls, model_id: str, source: str, options: LoadOptions) -> Self:
        """Loads a file in the ARPA format, also compressed (.gz), or KenLM's binary.

        Raises:
            BadInput: kenlm is not installed, or the file is damaged.
        """
        try:
            import kenlm
        except ImportError:
            raise BadInput(
                "n-gram models need the package kenlm, which is compiled when it is installed: "
                "`pip install '.[ngrams]'` in a clone of lmdiag"
            ) from None
        path = Path(user_path(source))
        try:
            file = read_ngram_file(path)
        except OSError as error:
            problem = error.strerror or shortened(error)
            raise BadInput(f"model {model_id} cannot be read: {problem}") from None
        except (ValueError, EOFError, zlib.error) as error:
            raise BadInput(
                f"model {model_id} is not a usable file of n-grams: {shortened(error)}"
            ) from None
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        config.load_method = kenlm.LoadMethod.LAZY  # a binary is mapped
        try:
            ngrams = kenlm.Model(str(path), config)
        except (OSError, RuntimeError) as error:
            raise BadInput(
                f"model {model_id} is not a usable file of n-grams: {_reason(error)}"
            ) from None
        info = ModelInfo(
            id=model_id,
            revision=None,
            commit=file.digest,
            kind="causal",
            architecture=f"{ngrams.order}-gram model",
            dtype="float32",
            tokenizer="words of the file",
            cased=True,
            vocab_size=len(file.words),
            n_parameters=0,
            max_length=None,
            bos=True,
            sentence_bos=True,
            folds=(),
        )
        return cls(info, options, None, file.words, ngrams, file.has_unknown)

    @cached_property
    def start(self) -> Any:
        state = _new_state()
        self.ngrams.BeginSentenceWrite(state)
        return state

    def memory(self, context: str) -> str:
        return context

    def distribution(self, state: Any) -> Distribution:
        if state not in self._distributions:
            if len(self._distributions) >= _KEPT:
                self._distributions.clear()
            score = self.ngrams.BaseScore
            after = _new_state()
            log10 = [score(state, word, after) for word in self.words]
            self._distributions[state] = Distribution(np.array(log10) * _LN_10)
        return self._distributions[state]

    def read(self, text: str, state: Any) -> WordReading:
        """Returns the log-probability of the words of a text without blanks, by the chain rule."""
        if text not in self._words_of:
            self._words_of[text] = tuple(self._divided(text))
        words = self._words_of[text]
        log10 = 0.0
        for word in words:
            after = _new_state()
            log10 += self.ngrams.BaseScore(state, word, after)
            state = after
        if not self.has_unknown and any(word not in self.numbers for word in words):
            return WordReading(None, 0, state)
        return WordReading(log10 * _LN_10, len(words), state)

    def _divided(self, text: str) -> Iterator[str]:
        """Yields the words of the vocabulary in a text without blanks.

        That is the text itself if it is in the vocabulary, else the punctuation at its edges that
        is there, and what stands between.
        """
        if known := self._known(text):
            yield known
            return
        marks = [unicodedata.category(char)[0] == "P" for char in text]
        if all(marks):
            yield from self._marks(text)
            return
        first = marks.index(False)
        last = len(text) - marks[::-1].index(False)
        yield from self._marks(text[:first])
        core = text[first:last]
        known = self._known(core)
        if not known:
            what = "counted as <unk>" if self.has_unknown else "without a probability"
            self.note(f"not in the file, and {what}", core)
        yield known or "<unk>"
        yield from self._marks(text[last:])

    def _marks(self, text: str) -> Iterator[str]:
        """Yields the punctuation marks that the vocabulary has."""
        for mark in text:
            if mark in self.numbers:
                yield mark
            else:
                self.note("punctuation that is not in the file, and left out", mark)

    def _known(self, word: str) -> str:
        """The word as the vocabulary has it: as it is, else in lower case; "" if it does not."""
        if word in self.numbers:
            return word
        lower = word.lower()
        if lower not in self.numbers:
            return ""
        self.note("only in lower case in the file, and read so", word)
        return lower


def _reason(error: Exception) -> str:
    """The first sentence of an error of kenlm, without its file, its source and its conditions."""
    text = re.sub(
        r"^Cannot read model '.*?' \(|( Byte: \d+)?\)?$", "", " ".join(str(error).split())
    )
    text = re.sub(r"^.*? threw \w+( because `.*?')?\. ?", "", text)
    if found := re.search(r"order (\d+) .* compiled to support up to (\d+)", text):
        order, most = found.groups()
        remedy = f"compile it again with MAX_ORDER={order} in the environment of pip"
        return f"it has n-grams of {order} words, and kenlm was built for {most}: {remedy}"
    return shortened(text.partition(". ")[0])


def _new_state() -> Any:
    import kenlm

    return kenlm.State()
