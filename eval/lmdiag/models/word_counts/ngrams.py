"""What the words before a word tell of it, by an n-gram model: `ngram:FILE`.

The numbers are those of the package kenlm (Heafield 2011), which reads the file.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from lmdiag.files.reading import user_path
from lmdiag.models.word_counts.ngram_files import Followers, read_followers, read_ngram_file
from lmdiag.models.word_counts.word_model import (
    Distribution,
    ListedDistribution,
    WordModel,
    WordReading,
    count_above,
)
from lmdiag.text import shortened, visible
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions

_LN_10 = math.log(10)

_ROUNDING = 1e-3
"""A log10 probability above it is not one, but for rounding in the file."""

_MOST_KEPT = 2**22
"""Log-probabilities that are kept, of one or several distributions."""


class Memory(NamedTuple):
    """What an n-gram model remembers.

    Attributes:
        state: `kenlm.State`, the last words that tell something.
        last: number of the last word, see `Followers`.
    """

    state: Any
    last: int


class BackoffDistribution(Distribution):
    """The probability of every word after some words, most of which have not been seen there.

    Those have the probability that they have without a context, times a factor. So only `nats`,
    which EW and MW need, takes a step for each word.

    Attributes:
        alone: the distribution without a context.
        back_off: log of the factor.
        followers: (n,) numbers of the words that may have been seen there, ascending.
        scores: (n,) their log-probabilities.
    """

    def __init__(
        self,
        alone: Alone,
        back_off: float,
        followers: NDArray[np.int64],
        scores: NDArray[np.float64],
    ) -> None:
        super().__init__()
        self.alone = alone
        self.back_off = back_off
        self.followers = followers
        self.scores = scores

    @cached_property
    def nats(self) -> NDArray[np.float64]:
        nats = self.alone.nats + self.back_off
        nats[self.followers] = self.scores
        return nats

    @cached_property
    def entropy(self) -> float:
        # Followers have probabilities p of their own. Any other word has f q: the factor f times q,
        # its probability without a context. Its summand, f q ln(f q) = f (q ln f + q ln q),
        # follows from the sums of q and of q ln q over all words, less those over followers.
        nats = self.alone.nats[self.followers]
        others = self.alone.mass - float(np.exp(nats).sum())
        negative = self.alone.negative_entropy - float((np.exp(nats) * nats).sum())
        of_others = math.exp(self.back_off) * (self.back_off * others + negative)
        of_followers = float((np.exp(self.scores) * self.scores).sum())
        return -(of_others + of_followers) / math.log(2)

    def top(self, k: int) -> NDArray[np.int64]:
        first = self.alone.order[: k + len(self.followers)]
        candidates = np.union1d(first, self.followers)
        return candidates[np.argsort(-self.of(candidates), kind="stable")][:k]

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        backed_off = self.alone.nats[numbers] + self.back_off
        if not len(self.followers):
            return backed_off
        places = np.searchsorted(self.followers, numbers).clip(max=len(self.followers) - 1)
        is_follower = self.followers[places] == numbers
        return np.where(is_follower, self.scores[places], backed_off)

    def rank(self, nats: float, number: int | None = None) -> int:
        alone = nats - self.back_off
        if number is not None:  # as it stands in the list, also of words that are tied with it
            nats = float(self.of(np.array([number]))[0])
            is_seen = number in self.followers
            alone = nats - self.back_off if is_seen else float(self.alone.nats[number])
        above = count_above(self.alone.ascending, alone)
        above -= int((self.alone.nats[self.followers] > alone).sum())
        return 1 + above + int((self.scores > nats).sum())


class Alone(ListedDistribution):
    """The distribution of an n-gram model without a context."""

    @cached_property
    def mass(self) -> float:
        """The sum of the probabilities."""
        return float(np.exp(self.nats).sum())

    @cached_property
    def negative_entropy(self) -> float:
        """The sum of p ln p."""
        return float((np.exp(self.nats) * self.nats).sum())


@dataclass(eq=False)
class NgramModel(WordModel):
    """An n-gram model.

    Attributes:
        path: of the file.
        ngrams: the `kenlm.Model`.
        has_unknown: whether the file has a probability of unknown words.
    """

    path: Path
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
        except UnicodeDecodeError:  # of a message of kenlm, which cites the file
            raise BadInput(
                f"model {model_id} is not a usable file of n-grams: it is not UTF-8"
            ) from None
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
        return cls(info, options, None, file.words, path, ngrams, file.has_unknown)

    @cached_property
    def start(self) -> Memory:
        state = _new_state()
        self.ngrams.BeginSentenceWrite(state)
        return Memory(state, Followers.begin(len(self.words)))

    def memory(self, context: str) -> str:
        return context

    def distribution(self, state: Memory) -> Distribution:
        if state not in self._distributions:
            if len(self._distributions) >= max(1, _MOST_KEPT // len(self.words)):
                self._distributions.clear()
            self._distributions[state] = self._computed(state)
        return self._distributions[state]

    def _computed(self, memory: Memory) -> Distribution:
        """The distribution after some words; a KenLM binary does not list its n-grams: by word."""
        if self._followers is None:
            return ListedDistribution(self._nats(memory.state, self.words))
        followers = self._followers.of(memory.last)
        scores = self._nats(memory.state, [self.words[number] for number in followers])
        others = np.flatnonzero(followers != np.arange(len(followers)))
        # the first word that is not a follower
        other = int(others[0]) if len(others) else len(followers)
        if other == len(self.words):
            return ListedDistribution(scores)
        [nats] = self._nats(memory.state, [self.words[other]])
        back_off = float(nats - self._alone.nats[other])
        return BackoffDistribution(self._alone, back_off, followers, scores)

    def _nats(self, state: Any, words: Sequence[str]) -> NDArray[np.float64]:
        """The log-probability of each of some words after a `kenlm.State`."""
        score = self.ngrams.BaseScore
        after = _new_state()
        log10 = np.array([score(state, word, after) for word in words])
        if len(log10) and log10.max() > _ROUNDING:
            self._refuse(words[int(log10.argmax())])
        return log10 * _LN_10

    def _refuse(self, word: str) -> NoReturn:
        """Raises the error of a probability above 1, as of back-offs that nothing checks."""
        raise BadInput(
            f"model {self.info.id} is not a usable file of n-grams: the probability of "
            f"{visible(word)!r} after some words is above 1"
        )

    @cached_property
    def _alone(self) -> Alone:
        state = _new_state()
        self.ngrams.NullContextWrite(state)
        return Alone(self._nats(state, self.words))

    @cached_property
    def _followers(self) -> Followers | None:
        return read_followers(self.path, self.words)

    def read(self, text: str, state: Any) -> WordReading:
        """Returns the log-probability of the words of a text without blanks, by the chain rule."""
        if text not in self._words_of:
            self._words_of[text] = tuple(self._divided(text))
        words = self._words_of[text]
        log10 = 0.0
        number = None
        for word in words:
            after = _new_state()
            score = self.ngrams.BaseScore(state.state, word, after)
            if score > _ROUNDING:
                self._refuse(word)
            log10 += score
            number = self.numbers.get(word)
            last = Followers.unknown(len(self.words)) if number is None else number
            state = Memory(after, last)
        if not self.has_unknown and any(word not in self.numbers for word in words):
            return WordReading(None, 0, state)
        return WordReading(log10 * _LN_10, len(words), state, number)

    def _divided(self, text: str) -> Iterator[str]:
        """Yields the words of the vocabulary in a text without blanks.

        That is the text itself if it is in the vocabulary, else the punctuation at its edges that
        is there, and what stands between.
        """
        if form := self._vocabulary_form(text):
            yield form
            return
        marks = [unicodedata.category(char)[0] == "P" for char in text]
        if all(marks):
            yield from self._marks(text)
            return
        first = marks.index(False)
        last = len(text) - marks[::-1].index(False)
        yield from self._marks(text[:first])
        core = text[first:last]
        form = self._vocabulary_form(core)
        if not form:
            what = "counted as <unk>" if self.has_unknown else "without a probability"
            self.note(f"not in the file, and {what}", core)
        yield form or "<unk>"
        yield from self._marks(text[last:])

    def _marks(self, text: str) -> Iterator[str]:
        """Yields the punctuation marks that the vocabulary has."""
        for mark in text:
            if mark in self.numbers:
                yield mark
            else:
                self.note("punctuation that is not in the file, and left out", mark)

    def _vocabulary_form(self, word: str) -> str:
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
        order, highest = found.groups()
        remedy = f"compile it again with MAX_ORDER={order} in the environment of pip"
        return f"it has n-grams of {order} words, and kenlm was built for {highest}: {remedy}"
    return shortened(text.partition(". ")[0])


def _new_state() -> Any:
    """Returns an empty state of kenlm; the package is imported when it is needed."""
    import kenlm

    return kenlm.State()
