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
        forms: (2, verbs) numbers in the vocabulary of the singular and of the plural forms.
        digest: of these numbers, for keys.
    """

    forms: NDArray[np.int64]
    digest: str


class Distribution(ABC):
    """The probability of every word of a model after some words."""

    def __init__(self) -> None:
        # (digest of the verbs, right number) -> EW and MW
        self._agreement: dict[Any, tuple[float | None, ...]] = {}

    @property
    @abstractmethod
    def nats(self) -> NDArray[np.float64]:
        """(words,) log-probabilities."""

    def agreement(self, verbs: VerbNumbers, number: Number) -> tuple[float | None, ...]:
        """Returns EW and MW, see `Answer.agreement`; kept, since many contexts may share them.

        Args:
            verbs: the verbs.
            number: the right number, "singular" or "plural".
        """
        key = verbs.digest, number
        if key not in self._agreement:
            # (2, verbs): the right form of each verb, then the wrong one
            right_first = verbs.forms[::-1] if number == "plural" else verbs.forms
            values = values_of_distribution(self.nats, self.ascending, right_first)
            self._agreement[key] = values
        return self._agreement[key]

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
        terms = probabilities * np.where(probabilities > 0, self.nats, 0.0)  # 0 for p = 0
        return float(-terms.sum() / math.log(2))

    def top(self, k: int) -> NDArray[np.int64]:
        """Returns the numbers of the k most probable words, ties by number."""
        return self.order[:k]

    def nats_of(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the log-probabilities of the words with these numbers."""
        return self.nats[numbers]

    def rank(self, nats: float, number: int | None = None) -> int:
        """Returns 1 + the number of words that are more probable than a candidate.

        Args:
            nats: log-probability of the candidate, which may be several words.
            number: of the candidate, if it is a word of the vocabulary; only `BackoffDistribution`
                needs it.
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
    """Returns how many items of an ascending array are greater than a value."""
    return len(ascending) - int(np.searchsorted(ascending, value, side="right"))


class WordReading(NamedTuple):
    """What a model says of a text without blanks, for example "dog" or "dog,".

    Attributes:
        nats: log-probability of its words; 0 where it has none, None where the model gives none.
        n_words: words of the model in it; 0 for punctuation that the model does not have.
        state: what the model remembers after it.
        number: of its last word, if it is one of the vocabulary.
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
        notes: for words that were not read as they are, what happened -> the words, for example
            "not in the file, and counted as <unk>" -> {"merry-go-round": None}.
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
        """Returns the question unchanged, and updates the warning of words not read as they are.

        Its words are read here, so that the warning has all words also where the answers of a run
        are saved ones or are shared with other processes.
        """
        n_notes_before = self._count_notes()
        for text in self._texts(question):
            self.read(text, self.start)  # only for the notes that it makes
        if self._count_notes() > n_notes_before:
            problems = []
            for what, words in self.notes.items():
                subject = "words are" if len(words) > 1 else "word is"
                listed_words = first_few([repr(word) for word in words])
                problems.append(f"{len(words)} {subject} {what} ({listed_words})")
            self.warning = f"model {self.info.id}: " + "; ".join(problems)
        return question

    def _count_notes(self) -> int:
        """Returns the number of words in `notes`."""
        return sum(len(words) for words in self.notes.values())

    def _texts(self, question: Question | Sentence) -> list[str]:
        """Returns the texts without blanks that the model reads for a question.

        These are the words of a sentence, or those of a context and of the candidates.
        """
        if isinstance(question, Sentence):
            return [question.text[start:end] for start, end in _word_parts(question)]
        texts = [self.memory(question.query.context), *question.words]
        return [part for text in texts for part in text.split()]

    def note(self, what: str, word: str) -> None:
        """Keeps a word that is not read as it is, see `notes`."""
        self.notes.setdefault(what, {})[word] = None

    def key(self, encoded: Question | Sentence, top: int) -> str:
        """Returns a digest of all that the answer to a question depends on, with `top` words."""
        parts: tuple[Any, ...] = ()
        if isinstance(encoded, Sentence):
            parts = tuple(encoded)
        else:
            verbs_digest = self._verbs.digest if encoded.number and self._verbs else ""
            options = encoded.words, encoded.number, encoded.entropy, top
            parts = self.memory(encoded.query.context), *options, verbs_digest
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    _verbs: VerbNumbers | None = field(default=None, init=False)

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Sets the verbs of EW and MW from (singular, plural) forms, and returns how many count.

        A verb counts if it has two different forms in the vocabulary.
        """
        numbers_of_verbs: dict[tuple[int, int], None] = {}  # distinct, in order
        for singular_form, plural_form in pairs:
            singular = self.numbers.get(singular_form)
            plural = self.numbers.get(plural_form)
            if singular is not None and plural is not None and singular != plural:
                numbers_of_verbs[singular, plural] = None
        # (2, verbs), also without a verb
        forms = np.array(list(numbers_of_verbs), dtype=np.int64).reshape(-1, 2).T
        digest = hashlib.sha256(forms.tobytes()).hexdigest()
        self._verbs = VerbNumbers(forms, digest) if forms.size else None
        return forms.shape[1]

    def plan(self, encoded: Sequence[Any], batch_size: int | None = None) -> list[list[int]]:
        """Returns batches of `batch_size` questions in their order, since all take equally long."""
        return batches_in_order(len(encoded), batch_size or _BATCH)

    def at_layers(self, layers: Sequence[str | int]) -> NoReturn:
        """Raises `BadInput`: word counts have no layers."""
        problem = refusal(Case(given=["layers"], counts_words=True))
        raise BadInput(f"model {self.info.id}: {problem}")

    def with_options(self, options: LoadOptions) -> WordModel:
        """Returns the model with other options; nothing has to be loaded again."""
        return replace(self, options=options)

    def answer(self, batch: Sequence[Any], top: int) -> list[Answer | SentenceAnswer]:
        """Returns the answers to a batch, in its order, with lists of `top` words."""
        answers: list[Answer | SentenceAnswer] = []
        for question in batch:
            if isinstance(question, Sentence):
                answers.append(self._answer_sentence(question))
            else:
                answers.append(self._answer_question(question, top))
        return answers

    def _state_after(self, context: str) -> Any:
        """Returns what the model remembers after a context that begins a text."""
        state = self.start
        for word in context.split():
            state = self.read(word, state).state
        return state

    def _answer_question(self, question: Question, top: int) -> Answer:
        """Returns the answer to a question about a blank, with a list of `top` words."""
        state = self._state_after(self.memory(question.query.context))
        distribution = self.distribution(state)
        top_numbers = distribution.top(top)
        agreement = None
        if question.number and self._verbs:
            agreement = distribution.agreement(self._verbs, question.number)
        return Answer(
            words={word: self._score(word, state, distribution) for word in question.words},
            top_words=tuple(self.words[number] for number in top_numbers),
            top_log_probs=tuple(distribution.nats_of(top_numbers).tolist()),
            agreement=agreement,
            entropy=distribution.entropy if question.entropy else None,
        )

    def _score(self, candidate: str, state: Any, distribution: Distribution) -> WordScore:
        """Returns the score of a candidate, which may be several words, by the chain rule.

        Args:
            candidate: text, may have blanks.
            state: what the model remembers before it.
            distribution: the probability of every word there, for the rank.
        """
        nats = 0.0
        n_words = 0
        number = None  # of the candidate's only word
        for part in candidate.split():
            reading = self.read(part, state)
            if reading.nats is None:
                return WordScore(None, None, 0)
            nats += reading.nats
            n_words += reading.n_words
            number = reading.number if n_words == 1 else None
            state = reading.state
        if not n_words:  # punctuation that the model does not have
            return WordScore(None, None, 0)
        return WordScore(nats, distribution.rank(nats, number), n_words)

    def _answer_sentence(self, sentence: Sentence) -> SentenceAnswer:
        """Returns the log-probability of each word of a sentence.

        Where it is asked for, also the entropy before each word; None for a word that the model
        does not read.
        """
        spans = []
        entropies: list[float | None] = []
        state = self.start
        for start, end in _word_parts(sentence):
            reading = self.read(sentence.text[start:end], state)
            if sentence.entropy:
                bits = self.distribution(state).entropy if reading.n_words else None
                entropies.append(bits)
            spans.append(WordSpan(start, end, reading.nats, reading.n_words))
            state = reading.state
        return SentenceAnswer(tuple(spans), tuple(entropies))


def _word_parts(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Yields start and end, in characters, of each word of a sentence, or of each part of it.

    Words are separated by blanks, and divided where the sentence has a cut. For example, the text
    "a bird." with the cut 6 has (0, 1), (2, 6) and (6, 7).
    """
    for word in _WORD.finditer(sentence.text):
        cuts = [cut for cut in sentence.cuts if word.start() < cut < word.end()]
        edges = [word.start(), *cuts, word.end()]
        yield from pairwise(edges)
