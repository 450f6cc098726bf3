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
    """What an n-gram model remembers of the words before.

    Attributes:
        state: `kenlm.State`: of the last words, as many as change probabilities.
        last: number of the last word, see `Followers`.
    """

    state: Any
    last: int


class BackoffDistribution(Distribution):
    """The probability of every word after some words, most of which have not been seen there.

    Words that have not been seen there have their probability without a context, times a factor.
    So only `nats`, which EW and MW need, takes a step for each word.

    Attributes:
        unigrams: the distribution without a context.
        back_off: log of the factor.
        followers: (n,) numbers of the words that may have been seen there, ascending.
        follower_nats: (n,) their log-probabilities.
    """

    def __init__(
        self,
        unigrams: UnigramDistribution,
        back_off: float,
        followers: NDArray[np.int64],
        follower_nats: NDArray[np.float64],
    ) -> None:
        super().__init__()
        self.unigrams = unigrams
        self.back_off = back_off
        self.followers = followers
        self.follower_nats = follower_nats

    @cached_property
    def nats(self) -> NDArray[np.float64]:
        """(words,) log-probabilities."""
        nats = self.unigrams.nats + self.back_off
        nats[self.followers] = self.follower_nats
        return nats

    @cached_property
    def entropy(self) -> float:
        """Bits: -sum p log2 p, without a step for each word."""
        # Followers have probabilities p of their own. Any other word has f q: the factor f times q,
        # its probability without a context. Its summand, f q ln(f q) = f (q ln f + q ln q),
        # follows from the sums of q and of q ln q over all words, less those over followers.
        nats = self.unigrams.nats[self.followers]
        sum_q = self.unigrams.mass - float(np.exp(nats).sum())
        sum_q_ln_q = self.unigrams.negative_entropy - float((np.exp(nats) * nats).sum())
        terms_of_others = math.exp(self.back_off) * (self.back_off * sum_q + sum_q_ln_q)
        terms_of_followers = float((np.exp(self.follower_nats) * self.follower_nats).sum())
        return -(terms_of_others + terms_of_followers) / math.log(2)

    def top(self, k: int) -> NDArray[np.int64]:
        """Returns the numbers of the k most probable words, ties by number."""
        # the k most probable words that are not followers are among these
        most_probable_unigrams = self.unigrams.order[: k + len(self.followers)]
        candidates = np.union1d(most_probable_unigrams, self.followers)  # ascending
        order = np.argsort(-self.nats_of(candidates), kind="stable")  # ties by number
        return candidates[order][:k]

    def nats_of(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the log-probabilities of the words with these numbers, followers or not."""
        backed_off = self.unigrams.nats[numbers] + self.back_off
        if not len(self.followers):
            return backed_off
        index = np.searchsorted(self.followers, numbers).clip(max=len(self.followers) - 1)
        is_follower = self.followers[index] == numbers
        return np.where(is_follower, self.follower_nats[index], backed_off)

    def rank(self, nats: float, number: int | None = None) -> int:
        """Returns 1 + the number of words that are more probable than a candidate.

        Words that are not followers are counted in the distribution without a context.

        Args:
            nats: log-probability of the candidate, which may be several words.
            number: of the candidate, if it is a word of the vocabulary.
        """
        # `nats` is compared with followers, `unigram_nats` with all other words: it is what such a
        # word has without a context if it has `nats` here
        unigram_nats = nats - self.back_off
        if number is not None:
            # A word of the vocabulary is compared by the very numbers that the list of top words is
            # sorted by. `nats` may differ from them by rounding, and then words that are tied with
            # it would count as more probable.
            nats = float(self.nats_of(np.array([number]))[0])
            is_follower = number in self.followers
            unigram_nats = nats - self.back_off
            if not is_follower:
                unigram_nats = float(self.unigrams.nats[number])
        n_above = count_above(self.unigrams.ascending, unigram_nats)
        # less the followers among them, which have other probabilities here
        n_above -= int((self.unigrams.nats[self.followers] > unigram_nats).sum())
        n_followers_above = int((self.follower_nats > nats).sum())
        return 1 + n_above + n_followers_above


class UnigramDistribution(ListedDistribution):
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
    _words_of_text: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    _distributions: dict[Memory, Distribution] = field(default_factory=dict, init=False)

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
        # our own checks of the file, and its words
        path = Path(user_path(source))
        try:
            file = read_ngram_file(path)  # checks what kenlm does not check
        except OSError as error:
            problem = error.strerror or shortened(error)
            raise BadInput(f"model {model_id} cannot be read: {problem}") from None
        except (ValueError, EOFError, zlib.error) as error:
            raise BadInput(
                f"model {model_id} is not a usable file of n-grams: {shortened(error)}"
            ) from None
        # kenlm reads the file; it prints nothing meanwhile
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
        return cls(
            info, options, warning=None, words=file.words, path=path, ngrams=ngrams,
            has_unknown=file.has_unknown,
        )  # fmt: skip

    @cached_property
    def start(self) -> Memory:
        """The memory at the beginning of a text, after `<s>`."""
        state = _new_state()
        self.ngrams.BeginSentenceWrite(state)
        return Memory(state, Followers.begin(len(self.words)))

    def memory(self, context: str) -> str:
        """Returns the part of a context that an answer may depend on: all of it."""
        return context

    def distribution(self, state: Memory) -> Distribution:
        """Returns the probability of every word after what the model remembers.

        Distributions are kept until they have more than `_MOST_KEPT` numbers.
        """
        if state not in self._distributions:
            most_distributions = max(1, _MOST_KEPT // len(self.words))
            if len(self._distributions) >= most_distributions:
                self._distributions.clear()
            self._distributions[state] = self._compute_distribution(state)
        return self._distributions[state]

    def _compute_distribution(self, memory: Memory) -> Distribution:
        """Returns the probability of every word after what the model remembers.

        Only words that follow the last word in some n-gram are asked of kenlm, and one other word,
        which gives the factor of all others. A KenLM binary does not list its n-grams: then every
        word is asked.
        """
        if self._followers is None:
            return ListedDistribution(self._nats(memory.state, self.words))
        followers = self._followers.of(memory.last)
        follower_nats = self._nats(memory.state, [self.words[number] for number in followers])
        # the first word that is not a follower: numbers of followers are ascending and distinct
        gaps = np.flatnonzero(followers != np.arange(len(followers)))
        other_word = int(gaps[0]) if len(gaps) else len(followers)
        if other_word == len(self.words):  # all words are followers
            return ListedDistribution(follower_nats)
        [nats] = self._nats(memory.state, [self.words[other_word]])
        back_off = float(nats - self._unigrams.nats[other_word])
        return BackoffDistribution(self._unigrams, back_off, followers, follower_nats)

    def _nats(self, state: Any, words: Sequence[str]) -> NDArray[np.float64]:
        """Returns the (words,) log-probability of each word after a `kenlm.State`."""
        score = self.ngrams.BaseScore
        unused_state = _new_state()  # kenlm writes the state after each word into it
        log10 = np.array([score(state, word, unused_state) for word in words])
        if len(log10) and log10.max() > _ROUNDING:
            self._refuse_above_1(words[int(log10.argmax())])
        return log10 * _LN_10

    def _refuse_above_1(self, word: str) -> NoReturn:
        """Raises the error of a word with a probability above 1.

        Back-offs of a damaged file can make such a probability: neither kenlm nor
        `read_ngram_file` checks them.
        """
        raise BadInput(
            f"model {self.info.id} is not a usable file of n-grams: the probability of "
            f"{visible(word)!r} after some words is above 1"
        )

    @cached_property
    def _unigrams(self) -> UnigramDistribution:
        """The distribution without a context."""
        state = _new_state()
        self.ngrams.NullContextWrite(state)
        return UnigramDistribution(self._nats(state, self.words))

    @cached_property
    def _followers(self) -> Followers | None:
        """The words that follow each word in n-grams of the file; None of a KenLM binary."""
        return read_followers(self.path, self.words)

    def read(self, text: str, state: Memory) -> WordReading:
        """Returns the log-probability of the words of a text without blanks, by the chain rule.

        For example, "dog," may be the words "dog" and ",". The log-probability is None if a word is
        not in a file that has no probability of unknown words.
        """
        if text not in self._words_of_text:
            self._words_of_text[text] = tuple(self._divide(text))
        words = self._words_of_text[text]
        log10 = 0.0
        number = None
        for word in words:
            state_after = _new_state()
            score = self.ngrams.BaseScore(state.state, word, state_after)
            if score > _ROUNDING:
                self._refuse_above_1(word)
            log10 += score
            number = self.numbers.get(word)
            # a word that is not in the vocabulary has the followers of unknown words
            last = Followers.unknown(len(self.words)) if number is None else number
            state = Memory(state_after, last)
        if not self.has_unknown and any(word not in self.numbers for word in words):
            return WordReading(None, n_words=0, state=state)
        return WordReading(log10 * _LN_10, len(words), state, number)

    def _divide(self, text: str) -> Iterator[str]:
        """Yields the words of the vocabulary in a text without blanks.

        That is the text itself if it is in the vocabulary. Otherwise these are the punctuation
        marks at its edges that are in the vocabulary, and the word between them; "<unk>" stands for
        a word that is not in the vocabulary.
        """
        if form := self._vocabulary_form(text):
            yield form
            return
        is_punctuation = [unicodedata.category(character)[0] == "P" for character in text]
        if all(is_punctuation):
            yield from self._marks(text)
            return
        # what stands between the first and the last character that is not punctuation
        start = is_punctuation.index(False)
        end = len(text) - is_punctuation[::-1].index(False)
        yield from self._marks(text[:start])
        word = text[start:end]
        form = self._vocabulary_form(word)
        if not form:
            treatment = "counted as <unk>" if self.has_unknown else "without a probability"
            self.note(f"not in the file, and {treatment}", word)
        yield form or "<unk>"
        yield from self._marks(text[end:])

    def _marks(self, punctuation: str) -> Iterator[str]:
        """Yields the marks of some punctuation that the vocabulary has, and notes the others."""
        for mark in punctuation:
            if mark in self.numbers:
                yield mark
            else:
                self.note("punctuation that is not in the file, and left out", mark)

    def _vocabulary_form(self, word: str) -> str:
        """Returns the word as the vocabulary has it: as it is, else in lower case, else ""."""
        if word in self.numbers:
            return word
        lower = word.lower()
        if lower not in self.numbers:
            return ""
        self.note("only in lower case in the file, and read so", word)
        return lower


def _reason(error: Exception) -> str:
    """Returns what an error of kenlm says is wrong with a file, in a few words.

    Its message is like "Cannot read model 'FILE' (lm/model.cc:70 in CLASS threw FormatLoadException
    because `CONDITION'. REASON. Byte: 12)"; only the first sentence of REASON is returned. If the
    n-grams are longer than kenlm was built for, the text says how to build it instead.
    """
    text = " ".join(str(error).split())
    text = re.sub(r"^Cannot read model '.*?' \(|( Byte: \d+)?\)?$", "", text)
    text = re.sub(r"^.*? threw \w+( because `.*?')?\. ?", "", text)
    orders = re.search(r"order (\d+) .* compiled to support up to (\d+)", text)
    if orders:
        order, highest = orders.groups()
        remedy = f"compile it again with MAX_ORDER={order} in the environment of pip"
        return f"it has n-grams of {order} words, and kenlm was built for {highest}: {remedy}"
    return shortened(text.partition(". ")[0])


def _new_state() -> Any:
    """Returns an empty state of kenlm; the package is imported when it is needed."""
    import kenlm

    return kenlm.State()
