"""What models of word counts share: words one after the other, and a distribution over words."""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from lmdiag.asking.rules import Case, refusal
from lmdiag.models.agreement import values_of_distribution
from lmdiag.models.model import Model, batches_in_order
from lmdiag.text import first_few
from lmdiag.types import (
    Answer,
    BadInput,
    Number,
    Question,
    Sentence,
    SentenceAnswer,
    WordScore,
    WordSpan,
)

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions

_WORD = re.compile(r"\S+")

_BATCH = 256
"""Questions in a batch: as many as are lost when a run is killed."""


class VerbNumbers(NamedTuple):
    """The verbs of EW and MW.

    Attributes:
        forms: (2, verbs) numbers of the singular and the plural forms.
        digest: of these.
    """

    forms: NDArray[np.int64]
    digest: str


class Distribution(ABC):
    """The probability of every word of a model after some words."""

    def __init__(self) -> None:
        self._agreement: dict[Any, tuple[float | None, ...]] = {}

    @property
    @abstractmethod
    def nats(self) -> NDArray[np.float64]:
        """(words,) log-probabilities."""

    def agreement(self, verbs: VerbNumbers, number: Number) -> tuple[float | None, ...]:
        """Returns EW and MW over verbs, see `Answer`; the same for all contexts of frequencies."""
        if (verbs.digest, number) not in self._agreement:
            right_first = verbs.forms[::-1] if number == "plural" else verbs.forms
            values = values_of_distribution(self.nats, self.ascending, right_first)
            self._agreement[verbs.digest, number] = values
        return self._agreement[verbs.digest, number]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The numbers of the words, the most probable first, ties by number."""
        return np.argsort(-self.nats, kind="stable")

    @cached_property
    def ascending(self) -> NDArray[np.float64]:
        """The log-probabilities in ascending order."""
        return self.nats[self.order[::-1]]

    @cached_property
    def entropy(self) -> float:
        """Bits: -sum p log2 p."""
        probabilities = np.exp(self.nats)
        terms = probabilities * np.where(probabilities > 0, self.nats, 0.0)
        return float(-terms.sum() / math.log(2))

    def top(self, k: int) -> NDArray[np.int64]:
        """Returns the numbers of the k most probable words, ties by number."""
        return self.order[:k]

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the log-probabilities of some words."""
        return self.nats[numbers]

    def rank(self, nats: float, number: int | None = None) -> int:
        """Returns 1 + the number of words that are more probable.

        Args:
            nats: log-probability of a word or of several.
            number: of the word, if it is one of the vocabulary.
        """
        return 1 + count_above(self.ascending, nats)


class ListedDistribution(Distribution):
    """A distribution that is a list of log-probabilities."""

    def __init__(self, nats: NDArray[np.float64]) -> None:
        super().__init__()
        self._nats = nats

    @property
    def nats(self) -> NDArray[np.float64]:
        return self._nats


def count_above(ascending: NDArray[np.float64], value: float) -> int:
    """Returns how many of some values in ascending order are greater than a value."""
    return len(ascending) - int(np.searchsorted(ascending, value, side="right"))


class WordReading(NamedTuple):
    """What a model says of what stands between two blanks.

    Attributes:
        nats: log-probability of its words; 0 where it has none, None where the model gives none.
        n_words: words of the model in it; 0 for punctuation that the model does not have.
        state: what the model remembers after it.
        number: of its word, if it is one of the vocabulary.
    """

    nats: float | None
    n_words: int
    state: Any
    number: int | None = None


@dataclass(eq=False)
class WordModel(Model):
    """A model whose vocabulary are words.

    Attributes:
        words: its vocabulary.
        notes: what happened to words -> the words, of those that were not read as they are.
    """

    words: Sequence[str]
    notes: dict[str, dict[str, None]] = field(default_factory=dict, init=False)

    @property
    def device(self) -> str:
        return "cpu"

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Word -> its number in a distribution."""
        return {word: number for number, word in enumerate(self.words)}

    @property
    @abstractmethod
    def start(self) -> Any:
        """What the model remembers at the beginning of a text."""

    @abstractmethod
    def read(self, text: str, state: Any) -> WordReading:
        """Returns what the model says of a text without blanks after what it remembers."""

    @abstractmethod
    def distribution(self, state: Any) -> Distribution:
        """Returns the probability of every word after what the model remembers."""

    @abstractmethod
    def memory(self, context: str) -> str:
        """Returns the part of a context that an answer depends on."""

    def encode(self, question: Question | Sentence) -> Question | Sentence:
        # read here, so that the notes have all words also where a run is resumed or shared
        n_notes = sum(map(len, self.notes.values()))
        for text in self._texts(question):
            self.read(text, self.start)
        if sum(map(len, self.notes.values())) > n_notes:
            self.warning = f"model {self.info.id}: " + "; ".join(
                f"{len(words)} {'words are' if len(words) > 1 else 'word is'} {what} "
                f"({first_few([repr(word) for word in words])})"
                for what, words in self.notes.items()
            )
        return question

    def _texts(self, question: Question | Sentence) -> list[str]:
        """The parts of a question without blanks that are read."""
        if isinstance(question, Sentence):
            return [question.text[start:end] for start, end in _parts(question)]
        texts = [self.memory(question.query.context), *question.words]
        return [part for text in texts for part in text.split()]

    def note(self, what: str, word: str) -> None:
        """Keeps a word that is not read as it is, for the warning of a run."""
        self.notes.setdefault(what, {})[word] = None

    def key(self, encoded: Question | Sentence, top: int) -> str:
        parts: tuple[Any, ...] = tuple(encoded) if isinstance(encoded, Sentence) else ()
        if isinstance(encoded, Question):
            verbs = self._verbs.digest if encoded.number and self._verbs else ""
            options = encoded.words, encoded.number, encoded.entropy, top
            parts = self.memory(encoded.query.context), *options, verbs
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    _verbs: VerbNumbers | None = field(default=None, init=False)

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        numbers = [tuple(map(self.numbers.get, forms)) for forms in pairs]
        both_known = [(a, b) for a, b in numbers if a is not None and b is not None and a != b]
        forms = np.array([*dict.fromkeys(both_known)], dtype=np.int64).reshape(-1, 2).T
        digest = hashlib.sha256(forms.tobytes()).hexdigest()
        self._verbs = VerbNumbers(forms, digest) if forms.size else None
        return forms.shape[1]

    def plan(self, encoded: Sequence[Any], batch_size: int | None = None) -> list[list[int]]:
        return batches_in_order(len(encoded), batch_size or _BATCH)

    def at_layers(self, layers: Sequence[str | int]) -> NoReturn:
        problem = refusal(Case(given=["layers"], counts_words=True))
        raise BadInput(f"model {self.info.id}: {problem}")

    def with_options(self, options: LoadOptions) -> WordModel:
        return replace(self, options=options)

    def answer(self, batch: Sequence[Any], top: int) -> list[Answer | SentenceAnswer]:
        return [
            self._sentence(part) if isinstance(part, Sentence) else self._blank(part, top)
            for part in batch
        ]

    def _after(self, context: str) -> Any:
        """Returns what the model remembers after a context."""
        state = self.start
        for word in context.split():
            state = self.read(word, state).state
        return state

    def _blank(self, question: Question, top: int) -> Answer:
        """Returns the answer to a question about a blank."""
        state = self._after(self.memory(question.query.context))
        distribution = self.distribution(state)
        listed = distribution.top(top)
        agreement = None
        if question.number and self._verbs:
            agreement = distribution.agreement(self._verbs, question.number)
        return Answer(
            {word: self._score(word, state, distribution) for word in question.words},
            tuple(self.words[number] for number in listed),
            tuple(distribution.of(listed).tolist()),
            agreement,
            distribution.entropy if question.entropy else None,
        )

    def _score(self, word: str, state: Any, distribution: Distribution) -> WordScore:
        """The score of a word, or of several with blanks between them by the chain rule."""
        nats = 0.0
        n_words = 0
        number = None
        for part in word.split():
            reading = self.read(part, state)
            if reading.nats is None:
                return WordScore(None, None, 0)
            nats += reading.nats
            n_words += reading.n_words
            number = reading.number if n_words == 1 else None
            state = reading.state
        if not n_words:
            return WordScore(None, None, 0)
        return WordScore(nats, distribution.rank(nats, number), n_words)

    def _sentence(self, sentence: Sentence) -> SentenceAnswer:
        """Returns the log-probability of each word of a sentence, and the entropies."""
        spans = []
        entropies: list[float | None] = []
        state = self.start
        for start, end in _parts(sentence):
            reading = self.read(sentence.text[start:end], state)
            if sentence.entropy:
                bits = self.distribution(state).entropy if reading.n_words else None
                entropies.append(bits)
            spans.append(WordSpan(start, end, reading.nats, reading.n_words))
            state = reading.state
        return SentenceAnswer(tuple(spans), tuple(entropies))


def _parts(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Yields where the words of a sentence begin and end, divided where it is cut."""
    for word in _WORD.finditer(sentence.text):
        cuts = [cut for cut in sentence.cuts if word.start() < cut < word.end()]
        edges = [word.start(), *cuts, word.end()]
        yield from pairwise(edges)
