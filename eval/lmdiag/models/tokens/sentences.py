"""From whole sentences to rows of token ids that read the probability of every token.

Words are what blanks separate, so that punctuation belongs to the word it touches. A token belongs
to the word in which its first character that is not a blank lies; a token of blanks alone belongs
to the word after it.

**Causal models** read the text once: the output at each token is the distribution of the next one.
**Masked models** read it once per token (pseudo-log-likelihood): the token is masked, and with it
the later tokens of its word (Kauf & Ivanova 2023), or the token alone (Salazar et al. 2020).

A text longer than the model's input is read in windows that overlap by half. A causal model reads
all tokens of the first window and the second half of each later one. A masked model reads a token
in the window that has most context on the token's shorter side. What the tokenizer puts before and
after a text stands around every window.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from lmdiag.models.tokens.questions import TokenRow
from lmdiag.models.tokens.spelling import Pieces, SpelledText, Spelling
from lmdiag.protocol import Pll
from lmdiag.types import BadInput, Sentence

_WORD = re.compile(r"\S+")


class TokenSpan(NamedTuple):
    """A word of a sentence, or a part of it, with its tokens.

    Attributes:
        start, end: its position in the text, in characters.
        first, last: number of its first token, and of the one after its last.
        spelled: whether the tokenizer can represent it.
        opens: whether it begins a word, and not only a region within one.
    """

    start: int
    end: int
    first: int
    last: int
    spelled: bool
    opens: bool


class Window(NamedTuple):
    """Tokens of a text that a model reads together: from `start` up to, but not including, `end`.

    Attributes:
        start, end: numbers of tokens.
        scored: numbers of the tokens whose probability is read here.
    """

    start: int
    end: int
    scored: range


@dataclass(frozen=True, slots=True)
class EncodedSentence:
    """A sentence as token ids. Its rows are made when they are read: a masked model has many.

    Attributes:
        sentence: the sentence.
        ids: its tokens, without special ones.
        spans: its words in order, with their tokens.
        encoder: makes the rows.
    """

    sentence: Sentence
    ids: Pieces
    spans: tuple[TokenSpan, ...]
    encoder: SentenceEncoder

    @property
    def text(self) -> str:
        """The sentence, for messages."""
        return self.sentence.text

    @property
    def key(self) -> tuple[Any, ...]:
        """What the answer depends on, apart from the model; its `repr` identifies it."""
        by = self.encoder
        return self.ids, self.spans, by.opening, by.closing, by.mask, by.pll, by.reads_end

    @property
    def rows(self) -> list[TokenRow]:
        """Inputs of the model, the reads of all rows in the order of `scored`."""
        mask = self.encoder.mask
        make = self.encoder.causal_rows if mask is None else partial(self.encoder.masked_rows, mask)
        return list(make(self))

    @property
    def scored(self) -> range:
        """Numbers of the tokens that have a probability: not the first if nothing precedes it."""
        has_first = bool(self.encoder.opening) or self.encoder.mask is not None
        return range(0 if has_first else 1, len(self.ids))

    @property
    def longest(self) -> int:
        """Tokens of its longest row."""
        whole = len(self.ids) + self.encoder.n_special
        return whole if self.encoder.limit is None else min(whole, self.encoder.limit)

    @property
    def length(self) -> int:
        """Tokens of all rows together, nearly."""
        masked, n_tokens = self.encoder.mask is not None, len(self.ids)
        return self.longest * (n_tokens if masked else len(self.encoder.windows(n_tokens)))


@dataclass(frozen=True)
class SentenceEncoder:
    """Turns sentences into rows.

    Attributes:
        spelling: the tokenizer.
        limit: longest input in tokens; None for no limit.
        model_id: for messages.
        opening, closing: special tokens before and after a text.
        mask: id of the mask token; None for a causal model.
        pll: "within-word" masks the later tokens of a word, too; "original" a token alone.
        reads_end: whether the distribution after the last token is read, too (causal models).
    """

    spelling: Spelling
    limit: int | None
    model_id: str
    opening: Pieces
    closing: Pieces = ()
    mask: int | None = None
    pll: Pll = "within-word"
    reads_end: bool = False

    @property
    def n_special(self) -> int:
        """Special tokens of each row."""
        return len(self.opening) + len(self.closing)

    def encode(self, sentence: Sentence) -> EncodedSentence:
        """Returns a sentence as token ids.

        Raises:
            BadInput: the text has no words, or the model reads too few tokens for any text.
        """
        if not sentence.text.strip():
            raise BadInput(f"the sentence {sentence.text!r} has no words: leave it out")
        if self.limit is not None and self.limit < self.n_special + 2:
            raise BadInput(f"model {self.model_id} reads {self.limit} tokens at most: too few")
        spelled = self.spelling.spell(sentence.text)
        return EncodedSentence(sentence, spelled.ids, tuple(word_spans(sentence, spelled)), self)

    def windows(self, n_tokens: int) -> list[Window]:
        """Returns the windows in which a text of some tokens is read."""
        size = n_tokens if self.limit is None else self.limit - self.n_special
        stride = max(1, size // 2)
        starts = range(0, max(n_tokens - size, 0) + stride, stride) if n_tokens > size else [0]
        ends = [min(start + size, n_tokens) for start in starts]
        bounds = [0, *self._bounds(starts, ends), n_tokens]
        return [
            Window(start, end, range(*bounds[number : number + 2]))
            for number, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]

    def _bounds(self, starts: Sequence[int], ends: Sequence[int]) -> list[int]:
        """Returns the first token that each window but the first one scores."""
        if self.mask is None:
            return list(ends[:-1])
        # Between windows [s, e) and [t, f): token i has min(i - s, e - 1 - i) tokens on its shorter
        # side in the first, and min(i - t, f - 1 - i) in the second.
        bounds = []
        for (s, t), (e, f) in zip(pairwise(starts), pairwise(ends), strict=True):
            token = t
            while token < e and min(token - s, e - 1 - token) >= min(token - t, f - 1 - token):
                token += 1
            bounds.append(token)
        return bounds

    def causal_rows(self, encoded: EncodedSentence) -> Iterator[TokenRow]:
        """Yields one row per window; the last token is in it only if what follows it is read."""
        n_tokens, before = len(encoded.ids), len(self.opening)
        for window in self.windows(n_tokens):
            scored = range(max(window.scored.start, encoded.scored.start), window.scored.stop)
            is_last = window.end == n_tokens and self.reads_end
            reads = [before + token - window.start - 1 for token in scored]
            reads += [before + n_tokens - window.start - 1] if is_last else []
            if reads:
                ids = self.opening + encoded.ids[window.start : window.end]
                yield TokenRow(ids[: reads[-1] + 1], tuple(reads))

    def masked_rows(self, mask: int, encoded: EncodedSentence) -> Iterator[TokenRow]:
        """Yields a row per token, in which it is masked."""
        ends: list[int] = []  # for each token, the number of the token after its word
        end = len(encoded.ids)
        for span in reversed(encoded.spans):
            ends = [end] * (span.last - span.first) + ends
            end = span.first if span.opens else end
        for window in self.windows(len(encoded.ids)):
            for token in window.scored:
                last = min(ends[token], window.end) if self.pll == "within-word" else token + 1
                masks = (mask,) * (last - token)
                inside = encoded.ids[window.start : token] + masks + encoded.ids[last : window.end]
                ids = self.opening + inside + self.closing
                yield TokenRow(ids, (len(self.opening) + token - window.start,))


def word_spans(sentence: Sentence, spelled: SpelledText) -> Iterator[TokenSpan]:
    """Yields the words of a sentence, cut where regions begin, with their tokens."""
    parts = [part for word in _WORD.finditer(sentence.text) for part in _cut(word, sentence.cuts)]
    ends = [end for _, end, _ in parts]
    # The owner of a place is the first part that ends after it.
    places = (min(bisect_right(ends, start), len(parts) - 1) for start in spelled.starts)
    owners = list(accumulate(places, max))
    missing = {bisect_right(ends, place) for place in spelled.missing}
    missing |= {owners[token] for token in spelled.controls}
    for number, (start, end, opens) in enumerate(parts):
        first, last = bisect_left(owners, number), bisect_right(owners, number)
        yield TokenSpan(start, end, first, last, number not in missing, opens)


def _cut(word: re.Match[str], cuts: Sequence[int]) -> list[tuple[int, int, bool]]:
    """The parts of a word between the cuts: start, end, and whether it is the first one."""
    inside = [cut for cut in cuts if word.start() < cut < word.end()]
    bounds = [word.start(), *inside, word.end()]
    return [(start, end, start == word.start()) for start, end in pairwise(bounds)]
