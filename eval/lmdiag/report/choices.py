"""A row of the data with the answer of the model: a word at a blank, or a whole sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.report import numbers
from lmdiag.types import WordSpan

if TYPE_CHECKING:
    from lmdiag.measures import Columns
    from lmdiag.protocol import Predictions


class TopWord(NamedTuple):
    """An entry of a top-k list: its probability, None where unknown; whether it is expected."""

    word: str
    probability: float | None
    expected: bool

    def __str__(self) -> str:
        return self.word


class Part(NamedTuple):
    """A word of a sentence, or a region of it.

    Attributes:
        start: its position in the sentence, in characters.
        text: its own; "" for an empty region.
        bits: its surprisal; None without a probability and for an empty region.
        name: number and name of a region; "" for a word.
    """

    start: int
    text: str
    bits: float | None
    name: str = ""

    def __str__(self) -> str:
        return f"{self.text} {numbers.bits(self.bits)}"

    @property
    def shade(self) -> int:
        """How dark it is shown, from 0 to 8: a step for every 2 bits of a word, 4 of a region."""
        step = 4 if self.name else 2
        return int(min(max(self.bits or 0, 0) / step, 8))


class Choice(NamedTuple):
    """A row of the data with the answer of the model.

    Attributes:
        id, context, right_context, target, good, expected: columns of the row; `good`
            is None where rows are not compared. Of a sentence, `context` is all and `target` "".
        log_prob: of the target or sentence, in nats; None where unscorable or unknown.
        rank: of the target; None where unknown.
        words, word_log_probs: the most probable words at the blank, and what is known of them.
        cased: whether words are compared with `expected` exactly.
        spans: the words of a sentence; None where the row has a blank, empty where not known.
        n_tokens: of the words of a sentence that have a probability.
        regions: of a sentence of a suite, see `docs/specification.md`.
        condition: of a sentence.
    """

    id: str
    context: str
    right_context: str
    target: str
    good: bool | None
    expected: Sequence[str]
    log_prob: float | None
    rank: int | None
    words: Sequence[str] | None
    word_log_probs: Sequence[float] | None
    cased: bool
    spans: Sequence[WordSpan] | None = None
    n_tokens: int | None = None
    regions: Sequence[Mapping[str, Any]] = ()
    condition: str = ""

    @property
    def is_sentence(self) -> bool:
        """Whether the row is a sentence, and not a word at a blank."""
        return self.spans is not None

    @property
    def top(self) -> tuple[TopWord, ...]:
        """The most probable words."""
        fold = str if self.cased else str.casefold
        expected = {fold(word) for word in self.expected}
        words = self.words or ()
        log_probs: Sequence[float | None] = self.word_log_probs or [None] * len(words)
        return tuple(
            TopWord(word, None if p is None else math.exp(p), fold(word) in expected)
            for word, p in zip(words, log_probs, strict=True)
        )

    @property
    def probability(self) -> float | None:
        """Of the target; None where unscorable or unknown."""
        return None if self.log_prob is None else math.exp(self.log_prob)

    @property
    def bits(self) -> float | None:
        """Surprisal of the target or sentence; None where unscorable or unknown."""
        return None if self.log_prob is None else -self.log_prob / math.log(2)

    @property
    def value(self) -> float | None:
        """What rows are compared by: the probability, or the log-probability of a sentence in bits.

        None where unscorable or unknown.
        """
        if not self.is_sentence:
            return self.probability
        return None if self.bits is None else -self.bits

    @property
    def parts(self) -> list[Part]:
        """The words of the sentence, or its regions."""
        if not self.regions:
            return [_part(self.context, span.start, span.end, [span]) for span in self.spans or ()]
        return [
            _part(self.context, start, end, inside, f"{region['number']} {region['name']}".rstrip())
            for region in self.regions
            for start, end in [(region["start"], region["end"])]
            for inside in [[span for span in self.spans or () if start <= span.start < end]]
        ]

    @property
    def said(self) -> Sequence[TopWord | Part]:
        """The most probable words at the blank, or the parts of the sentence."""
        return self.parts if self.is_sentence else self.top

    @property
    def place(self) -> int | None:
        """Place of the first expected word in the top list, from 1; None where there is none."""
        return next((i for i, entry in enumerate(self.top, start=1) if entry.expected), None)

    @property
    def sentence(self) -> str:
        """The context with its blank, or the whole sentence."""
        if self.is_sentence:
            return self.context
        return f"{self.context} ____ {self.right_context}".rstrip()


def _part(sentence: str, start: int, end: int, spans: Sequence[WordSpan], name: str = "") -> Part:
    """The part of a sentence with its surprisal; spans without a probability are left out of it."""
    known = [span.log_prob for span in spans if span.log_prob is not None]
    is_known = known and all(span.n_tokens for span in spans)
    bits = -math.fsum(known) / math.log(2) if is_known else None
    return Part(start, sentence[start:end], bits, name)


def blank_choices(rows: Columns, said: Predictions, cased: bool) -> Iterator[Choice]:
    """Yields the rows that have a blank, with the answers at it."""
    n = len(rows["id"])
    columns = (rows[name] for name in ("id", "context", "right_context", "target"))
    answers = (said.log_prob, said.rank, said.top_words, said.top_log_probs)
    good = rows.get("good", [None] * n)
    return map(Choice, *columns, good, rows["expected"], *answers, [cased] * n)


def sentence_choices(rows: Columns, said: Predictions, cased: bool) -> Iterator[Choice]:
    """Yields the rows that are sentences, with the surprisals of their words."""
    nothing = [None] * len(rows["id"])
    words = zip(
        rows["id"], rows["sentence"], rows.get("good", nothing), said.log_prob,
        said.words or nothing, said.n_tokens, rows.get("regions", nothing), rows["condition"],
        strict=True,
    )  # fmt: skip
    for name, sentence, good, log_prob, spans, n_tokens, regions, condition in words:
        yield Choice(
            name, sentence, "", "", good, (), log_prob, None, None, None, cased,
            spans or (), n_tokens, regions or (), condition or "",
        )  # fmt: skip
