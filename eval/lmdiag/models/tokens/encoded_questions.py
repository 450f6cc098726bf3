"""Questions about blanks as rows of token ids, and the distributions of these rows that are read.

The first distribution that a question reads is the one at its blank; further ones are there for
words of several pieces, each piece conditioned on the pieces before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from lmdiag.models.tokens.spelling import Pieces
from lmdiag.types import Answer, Query, Question, WordScore


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One input of a model.

    Attributes:
        ids: token ids; the decoder's, for an encoder-decoder.
        reads: ascending positions of `ids` whose output distribution is wanted.
        source: token ids for the encoder; empty for other models.
        wanted: for each read, the token whose log-probability is wanted; empty for all tokens.
    """

    ids: Pieces
    reads: tuple[int, ...]
    source: Pieces = ()
    wanted: Pieces = ()


class PartialWord(NamedTuple):
    """Pieces at a blank, after which a distribution is read.

    Attributes:
        pieces: the first pieces of a word.
        total: number of pieces of the whole word, for models that see it (masked); else 0.
    """

    pieces: Pieces
    total: int = 0


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank that can be filled piece by piece.

    Attributes:
        left: tokens before it, special ones included.
        right: tokens after it (masked models).
        mask: id of the mask token; None for models that continue a text.
        source: the encoder's tokens (encoder-decoders).
        lead: by how many tokens the answer of a masked model stands before the mask.
    """

    left: Pieces
    right: Pieces = ()
    mask: int | None = None
    source: Pieces = ()
    lead: int = 0

    @property
    def opens_text(self) -> bool:
        """Whether it can be read with nothing to its left: the model answers at the mask."""
        return self.mask is not None and not self.lead

    def partial_words(self, pieces: Pieces, *, end: bool = False) -> list[PartialWord]:
        """Returns the pieces before each piece of a word and, if `end`, the whole word, too.

        For example, for the pieces (5, 6) these are (), (5,) and, if `end`, (5, 6).
        """
        total = 0 if self.mask is None else len(pieces)
        n_partials = len(pieces) + 1 if end else len(pieces)
        return [PartialWord(pieces[:n], total) for n in range(n_partials)]

    def row(self, partial: PartialWord) -> TokenRow:
        """Returns the row that reads the distribution after the first pieces of a word.

        For a masked model, masks stand for the pieces that are left.
        """
        next_position = len(self.left) + len(partial.pieces)
        if self.mask is None:  # the last token gives the distribution of the next one
            return TokenRow(self.left + partial.pieces, (next_position - 1,), self.source)
        masks = (self.mask,) * (partial.total - len(partial.pieces))
        ids = self.left + partial.pieces + masks + self.right
        # the answer for the first mask is read at the mask, or `lead` tokens before it
        return TokenRow(ids, (next_position - self.lead,))

    def rows(self, words: Iterable[Pieces]) -> tuple[list[TokenRow], list[PartialWord]]:
        """Returns the rows that give the probabilities of words, as few as possible.

        A masked model needs a row per partial word; the one of the blank serves all words of one
        piece. A row that continues a text reads all partial words that it begins with.

        Args:
            words: pieces of each word.

        Returns:
            the rows, and the partial word of each read of theirs; the first is the blank itself.
        """
        if self.mask is not None:
            partials = [PartialWord((), total=1)]  # the blank itself, with one mask
            for pieces in words:
                partials += self.partial_words(pieces)
            distinct_partials = list(dict.fromkeys(partials))
            return [self.row(partial) for partial in distinct_partials], distinct_partials
        rows: list[TokenRow] = []
        read_partials: dict[PartialWord, None] = {}
        beginnings = {(), *(pieces[:-1] for pieces in words)}  # the last piece is only scored
        # the longest first: a row reads all partial words that it begins with
        for pieces in sorted(beginnings, key=lambda beginning: (-len(beginning), beginning)):
            unread = [p for p in self.partial_words(pieces, end=True) if p not in read_partials]
            if unread:  # else another row begins with these pieces
                read_partials |= dict.fromkeys(unread)
                positions = tuple(len(self.left) - 1 + len(partial.pieces) for partial in unread)
                rows.append(TokenRow(self.left + pieces, positions, self.source))
        return rows, list(read_partials)


@dataclass(frozen=True)
class EncodedQuestion:
    """A question as rows of token ids.

    Attributes:
        question: the question.
        query: its context as the model reads it, in its frame.
        blank: its blank, which makes further rows.
        words: candidate word -> its pieces; None for an unscorable word.
        rows: inputs, none if a causal model has no token before the blank; read 0, the first of
            the first row, is the distribution at the blank.
        partials: what each read follows, in the order of the reads.
        bare: whether a word at the blank lacks the mark of a word's start, as the first of a text
            does in many vocabularies.
    """

    question: Question
    query: Query
    blank: Blank
    words: Mapping[str, Pieces | None]
    rows: tuple[TokenRow, ...]
    partials: tuple[PartialWord, ...]
    bare: bool

    @property
    def text(self) -> str:
        """The context, for messages."""
        return self.question.query.context

    @property
    def is_after_space(self) -> bool:
        """Whether a space stands before a word at the blank, which ends the word before it."""
        text_before, _ = self.query.around("a")  # any word
        return text_before.endswith(" ")

    @property
    def key(self) -> tuple[Any, ...]:
        """What the answer depends on, apart from the model; its `repr` identifies it.

        Keys in journals of earlier runs are made of it: names and order of its parts must stay.
        """
        options = self.question.number, self.question.entropy
        return self.blank, self.partials, tuple(self.words.items()), self.bare, *options

    @cached_property
    def length(self) -> int:
        """Tokens of all rows together."""
        return sum(len(row.ids) + len(row.source) for row in self.rows)

    @cached_property
    def longest(self) -> int:
        """Tokens of its longest row."""
        return max((len(row.ids) + len(row.source) for row in self.rows), default=0)

    @property
    def unasked(self) -> Answer | None:
        """The answer if there are no rows to read: all words are unscorable. Otherwise None."""
        if self.rows:
            return None
        unscorable = WordScore(None, None, 0)
        return Answer(dict.fromkeys(self.words, unscorable), (), ())

    @cached_property
    def wanted(self) -> dict[PartialWord, tuple[int, ...]]:
        """Partial word -> the pieces of candidate words whose probability after it is needed.

        The probability of a word is the product of those of its pieces, each after the pieces
        before it; words that begin alike share a partial word. For example, the words (5, 6) and
        (5, 7) of a causal model have () -> (5,) and (5,) -> (6, 7).
        """
        pieces_after: dict[PartialWord, dict[int, None]] = {}  # distinct pieces, in order
        for word in filter(None, self.words.values()):  # an unscorable word has no pieces
            for partial, piece in zip(self.blank.partial_words(word), word, strict=True):
                pieces_after.setdefault(partial, {})[piece] = None
        return {partial: tuple(pieces) for partial, pieces in pieces_after.items()}
