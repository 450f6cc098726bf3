"""From whole sentences to rows of token ids that read the probability of every token.

`docs/specification.md` ("Whole sentences") says what a word is, which token belongs to which word,
what is masked, and which windows of a text that is longer than the model's input are read. A causal
model reads a window once, a masked model once per token.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from lmdiag.asking.protocol import Pll
from lmdiag.models.tokens.encoded_questions import EncodedQuestion, TokenRow
from lmdiag.models.tokens.spelling import Pieces, SpelledText, Spelling
from lmdiag.types import BadInput, Sentence

_WORD = re.compile(r"\S+")


class _Part(NamedTuple):
    """A word of a sentence, or a part of it, in characters; `opens`: it begins the word."""

    start: int
    end: int
    opens: bool


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
        encoder = self.encoder
        settings = (
            encoder.opening, encoder.closing, encoder.mask, encoder.lead, encoder.pll,
            encoder.reads_end,
        )  # fmt: skip
        return self.ids, self.spans, *settings, self.sentence.entropy

    @property
    def rows(self) -> list[TokenRow]:
        """Inputs of the model, the reads of all rows in the order of `scored`."""
        return [*self.encoder.rows(self)]

    @property
    def scored(self) -> range:
        """Numbers of the tokens that have a probability: not the first if nothing precedes it."""
        reads_itself = self.encoder.mask is not None and not self.encoder.lead
        has_first = bool(self.encoder.opening) or reads_itself
        return range(0 if has_first else 1, len(self.ids))

    @property
    def n_reads(self) -> int:
        """Distributions that its rows read."""
        return len(self.scored) + self.encoder.reads_end

    @property
    def longest(self) -> int:
        """Tokens of its longest row."""
        whole = len(self.ids) + self.encoder.n_special
        return whole if self.encoder.limit is None else min(whole, self.encoder.limit)

    @property
    def length(self) -> int:
        """Tokens of all rows together, as if each row were as long as the longest.

        A masked model has a row per token, a causal one a row per window.
        """
        n_rows = len(self.ids)
        if self.encoder.mask is None:
            n_rows = len(self.encoder.windows(len(self.ids)))
        return self.longest * n_rows


class Window(NamedTuple):
    """A part of a long text that is read at once; numbers of tokens.

    Attributes:
        start, end: of its first token, and of the one after its last.
        first, last: the same of the tokens whose probability is read there.
    """

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True)
class SentenceEncoder:
    """Turns sentences into rows.

    Attributes:
        spelling: the tokenizer.
        limit: longest input in tokens; None for no limit.
        opening, closing: special tokens before and after a text.
        mask: id of the mask token; None for a causal model.
        lead: by how many tokens the answers of a masked model stand before the mask.
        pll: "within-word" masks the later tokens of a word, too; "original" a token alone.
        reads_end: whether the distribution after the last token is read, too (causal models).
    """

    spelling: Spelling
    limit: int | None
    opening: Pieces
    closing: Pieces = ()
    mask: int | None = None
    lead: int = 0
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
            name = self.spelling.model_id
            raise BadInput(f"model {name} reads {self.limit} tokens at most: too few")
        parts = list[_Part]()  # the words, cut where regions begin
        for word in _WORD.finditer(sentence.text):
            cuts = [cut for cut in sentence.cuts if word.start() < cut < word.end()]
            bounds = pairwise([word.start(), *cuts, word.end()])  # words are cut at regions
            parts += [_Part(start, end, start == word.start()) for start, end in bounds]
        spelled = self.spelling.spell(sentence.text)
        owners = _owners(spelled, parts)
        ends = [part.end for part in parts]
        missing = {bisect_right(ends, position) for position in spelled.uncovered}
        missing |= {owners[token] for token in spelled.controls}
        spans = []
        for number, part in enumerate(parts):
            first, last = bisect_left(owners, number), bisect_right(owners, number)
            is_spelled = number not in missing
            spans.append(TokenSpan(part.start, part.end, first, last, is_spelled, part.opens))
        return EncodedSentence(sentence, spelled.ids, tuple(spans), self)

    def windows(self, n_tokens: int) -> list[Window]:
        """Returns the windows in which a text of some tokens is read: one if it fits."""
        size = n_tokens if self.limit is None else self.limit - self.n_special
        stride = max(1, size // 2)
        starts = range(0, max(n_tokens - size, 0) + stride, stride) if n_tokens > size else [0]
        ends = [min(start + size, n_tokens) for start in starts]
        bounds = ends[:-1]
        if self.mask is not None:
            # Token i has e - 1 - i tokens to its right in the window that ends before e, and i - t
            # to its left in the next one, which starts at t: it is read where it has more.
            pairs = zip(starts[1:], ends[:-1], strict=True)
            bounds = [(t + e + 1) // 2 for t, e in pairs]
        columns = zip(starts, ends, [0, *bounds], [*bounds, n_tokens], strict=True)
        return [Window(*column) for column in columns]

    def rows(self, encoded: EncodedSentence) -> Iterator[TokenRow]:
        """Yields one row per window of a causal model, and one per token of a masked one."""
        n_opening = len(self.opening)
        n_tokens = len(encoded.ids)
        word_end_of_token = [
            n_tokens
        ] * n_tokens  # for each token, the number of the token after its word
        word_end = n_tokens
        for span in reversed(encoded.spans):
            word_end_of_token[span.first : span.last] = [word_end] * (span.last - span.first)
            word_end = span.first if span.opens else word_end
        for start, end, first, last in self.windows(n_tokens):
            if self.mask is None:  # the last token is in a row only if what follows it is read
                tokens = [*range(max(first, encoded.scored.start), last)]
                wanted = encoded.ids[tokens[0] : last] if tokens else ()
                if end == n_tokens and self.reads_end:
                    tokens.append(n_tokens)
                    wanted = (*wanted, 0)  # for none
                reads = tuple(n_opening + token - start - 1 for token in tokens)
                ids = self.opening + encoded.ids[start:end]
                if reads:
                    yield TokenRow(ids[: reads[-1] + 1], reads, wanted=wanted)
                continue
            for token in range(max(first, encoded.scored.start), last):
                word_end = (
                    min(word_end_of_token[token], end) if self.pll == "within-word" else token + 1
                )
                masks = (self.mask,) * (word_end - token)
                masked_ids = encoded.ids[start:token] + masks + encoded.ids[word_end:end]
                ids = self.opening + masked_ids + self.closing
                wanted = encoded.ids[token : token + 1]
                yield TokenRow(ids, (n_opening + token - start - self.lead,), wanted=wanted)


def _owners(spelled: SpelledText, parts: Sequence[_Part]) -> list[int]:
    """Returns of each token the number of the part that it belongs to.

    That is the first part that ends after the token's start; blanks at the end of a text belong to
    the last part. Offsets of some tokenizers step back: parts never do. Of a word that begins in a
    token of a word before it, all tokens belong to that word: no sum of them is the word alone.
    """
    ends = [part.end for part in parts]
    owners = list[int]()
    owner = 0
    reach = 0  # end of the tokens so far
    for start, end in spelled.spans:
        number = min(bisect_right(ends, start), len(parts) - 1)
        if number > owner and not (parts[number].opens and parts[number].start < reach):
            owner = number
        owners.append(owner)
        reach = max(reach, end)
    return owners


Encoded = EncodedQuestion | EncodedSentence
"""What a model is asked, as rows of token ids."""
