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


def _parts_of_words(sentence: Sentence) -> list[_Part]:
    """Returns the words of a sentence, which white space separates, divided at its cuts.

    For example, the text "a bird." with the cut 6 has the parts "a", "bird" and ".".
    """
    parts = []
    for word in _WORD.finditer(sentence.text):
        cuts = [cut for cut in sentence.cuts if word.start() < cut < word.end()]
        for start, end in pairwise([word.start(), *cuts, word.end()]):
            parts.append(_Part(start, end, opens=start == word.start()))
    return parts


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
        """What the answer depends on, apart from the model; its `repr` identifies it.

        Keys in journals of earlier runs are made of it: names and order of its parts must stay.
        """
        encoder = self.encoder
        settings = (
            encoder.opening, encoder.closing, encoder.mask, encoder.lead, encoder.pll,
            encoder.reads_end,
        )  # fmt: skip
        return self.ids, self.spans, *settings, self.sentence.entropy

    @property
    def rows(self) -> list[TokenRow]:
        """Inputs of the model, the reads of all rows in the order of `scored`."""
        return list(self.encoder.rows(self))

    @property
    def scored(self) -> range:
        """Numbers of the tokens that have a probability: not the first if nothing precedes it.

        A masked model that answers at the mask needs nothing before it.
        """
        answers_at_mask = self.encoder.mask is not None and not self.encoder.lead
        scores_first = bool(self.encoder.opening) or answers_at_mask
        return range(0 if scores_first else 1, len(self.ids))

    @property
    def n_reads(self) -> int:
        """Number of distributions that its rows read: at each scored token, perhaps at the end."""
        return len(self.scored) + self.encoder.reads_end

    @property
    def longest(self) -> int:
        """Tokens of its longest row: of the whole sentence, or of a window as long as the limit."""
        n_tokens = len(self.ids) + self.encoder.n_special
        return n_tokens if self.encoder.limit is None else min(n_tokens, self.encoder.limit)

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
        # a window must have room for two tokens: one that is scored, and one before it
        if self.limit is not None and self.limit < self.n_special + 2:
            name = self.spelling.model_id
            raise BadInput(f"model {name} reads {self.limit} tokens at most: too few")
        parts = _parts_of_words(sentence)
        spelled = self.spelling.spell(sentence.text)
        part_of_token = _parts_of_tokens(spelled, parts)  # ascending
        ends = [part.end for part in parts]
        # the parts with a character that no token covers, or with a token that stands for no text
        unspelled_parts = {bisect_right(ends, position) for position in spelled.uncovered}
        unspelled_parts |= {part_of_token[token] for token in spelled.controls}
        spans = []
        for number, part in enumerate(parts):  # the tokens of a part stand side by side
            first = bisect_left(part_of_token, number)
            last = bisect_right(part_of_token, number)
            is_spelled = number not in unspelled_parts
            spans.append(TokenSpan(part.start, part.end, first, last, is_spelled, part.opens))
        return EncodedSentence(sentence, spelled.ids, tuple(spans), self)

    def windows(self, n_tokens: int) -> list[Window]:
        """Returns the windows in which a text of some tokens is read: one if it fits.

        Otherwise a window begins at every half of the longest input, so that each token but the
        first ones has half a window before it (a masked model: around it, as far as possible).
        """
        size = n_tokens if self.limit is None else self.limit - self.n_special
        stride = max(1, size // 2)
        starts: Sequence[int] = [0]
        if n_tokens > size:
            # as many as are needed for a window that reaches the end of the text
            starts = range(0, n_tokens - size + stride, stride)
        ends = [min(start + size, n_tokens) for start in starts]
        # numbers of the tokens from which on the next window is read, not this one
        bounds = ends[:-1]
        if self.mask is not None:
            # Token i has e - 1 - i tokens to its right in the window that ends before e, and i - t
            # to its left in the next one, which starts at t: it is read where it has more.
            pairs = zip(starts[1:], ends[:-1], strict=True)
            bounds = [(t + e + 1) // 2 for t, e in pairs]
        columns = zip(starts, ends, [0, *bounds], [*bounds, n_tokens], strict=True)
        return [Window(*column) for column in columns]

    def rows(self, encoded: EncodedSentence) -> Iterator[TokenRow]:
        """Yields one row per window of a causal model, and one per token of a masked one.

        A masked model reads a token with a mask in its place and, with `pll` "within-word", in the
        place of all later tokens of its word.
        """
        n_opening = len(self.opening)
        word_ends = _word_ends(encoded)
        for window in self.windows(len(encoded.ids)):
            if self.mask is None:
                row = self._causal_row(encoded, window)
                if row is not None:
                    yield row
                continue
            start, end, first, last = window
            for token in range(max(first, encoded.scored.start), last):
                masked_end = token + 1
                if self.pll == "within-word":
                    masked_end = min(word_ends[token], end)
                masks = (self.mask,) * (masked_end - token)
                masked_ids = encoded.ids[start:token] + masks + encoded.ids[masked_end:end]
                ids = self.opening + masked_ids + self.closing
                position = n_opening + token - start  # of the first mask in the row
                wanted = encoded.ids[token : token + 1]
                yield TokenRow(ids, (position - self.lead,), wanted=wanted)

    def _causal_row(self, encoded: EncodedSentence, window: Window) -> TokenRow | None:
        """Returns the row of a window for a causal model; None if no token is scored in it.

        The row ends at its last read, which is before the last scored token: this token is in the
        row only if the distribution after it is read, too.
        """
        start, end, first, last = window
        n_tokens = len(encoded.ids)
        tokens = [*range(max(first, encoded.scored.start), last)]
        wanted = encoded.ids[tokens[0] : last] if tokens else ()
        if end == n_tokens and self.reads_end:
            tokens.append(n_tokens)
            wanted = (*wanted, 0)  # any id: no token follows
        if not tokens:
            return None
        # the probability of a token is read at the token before it
        reads = tuple(len(self.opening) + token - start - 1 for token in tokens)
        ids = self.opening + encoded.ids[start:end]
        return TokenRow(ids[: reads[-1] + 1], reads, wanted=wanted)


def _word_ends(encoded: EncodedSentence) -> list[int]:
    """Returns for each token of a sentence the number of the token after its word.

    For example, a word of two tokens and a word of one have [2, 2, 3]. All parts of a word that is
    cut end with the word.
    """
    word_end = len(encoded.ids)
    word_ends = [word_end] * len(encoded.ids)
    for span in reversed(encoded.spans):
        word_ends[span.first : span.last] = [word_end] * (span.last - span.first)
        if span.opens:
            word_end = span.first
    return word_ends


def _parts_of_tokens(spelled: SpelledText, parts: Sequence[_Part]) -> list[int]:
    """Returns for each token the number of the part of a word that it belongs to, ascending.

    That is the first part that ends after the token's start; spaces at the end of a text belong to
    the last part. A word may begin within a token of the word before it. The tokens in its first
    part then belong to the word before, since no sum of tokens is the probability of this word
    alone. For example, if the tokens of "to be" are "to b" and "e", both belong to "to".

    Args:
        spelled: the tokens of a sentence, with their spans in characters.
        parts: the words of the sentence, or parts of them.
    """
    ends = [part.end for part in parts]
    part_of_token: list[int] = []
    number = 0
    covered_end = 0  # end of the tokens so far, in characters
    for start, end in spelled.spans:
        next_number = min(bisect_right(ends, start), len(parts) - 1)
        next_part = parts[next_number]
        begins_in_token = next_part.opens and next_part.start < covered_end
        # the spans of some tokenizers step back; the numbers of parts never do
        if next_number > number and not begins_in_token:
            number = next_number
        part_of_token.append(number)
        covered_end = max(covered_end, end)
    return part_of_token


Encoded = EncodedQuestion | EncodedSentence
"""What a model is asked, as rows of token ids."""
