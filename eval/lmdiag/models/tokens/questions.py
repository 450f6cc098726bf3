"""Questions as rows of token ids, and the distributions of these rows that their words need.

The first distribution that a question reads is the one at its blank; further ones are there for
words of several pieces, each piece conditioned on the pieces before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from lmdiag.models.tokens.spelling import Pieces
from lmdiag.types import Question


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One input of a model.

    Attributes:
        ids: token ids; the decoder's, for an encoder-decoder.
        reads: ascending positions of `ids` whose output distribution is wanted.
        source: token ids for the encoder; empty for other models.
    """

    ids: Pieces
    reads: tuple[int, ...]
    source: Pieces = ()


class PieceRead(NamedTuple):
    """Where the probability of a piece is read: number of the distribution, id of the piece."""

    read: int
    token: int


class Beginning(NamedTuple):
    """Pieces at a blank, after which a distribution is read.

    Attributes:
        filled: the pieces.
        total: number of pieces of the whole word, for models that see it (masked); else 0.
    """

    filled: Pieces
    total: int = 0


Spelt = Mapping[str, Pieces | None]
"""Candidate word -> its pieces; None for an unscorable word."""


@dataclass(frozen=True)
class EncodedQuestion:
    """A question as rows of token ids.

    Attributes:
        question: the question.
        rows: inputs; read 0, the first of the first row, is the distribution at the blank.
        words: candidate word -> where its pieces are read; None for an unscorable word.
        bare: whether a word at the blank lacks the mark of a word's start, as the first of a text
            does in many vocabularies.
    """

    question: Question
    rows: tuple[TokenRow, ...]
    words: Mapping[str, tuple[PieceRead, ...] | None]
    bare: bool

    @property
    def text(self) -> str:
        """The context, for messages."""
        return self.question.query.context

    @property
    def key(self) -> tuple[Any, ...]:
        """What the answer depends on, apart from the model; its `repr` identifies it."""
        rows = tuple((row.ids, row.reads, row.source) for row in self.rows)
        return rows, (*self.words.items(),), self.bare, self.question.number

    @cached_property
    def length(self) -> int:
        """Tokens of all rows together."""
        return sum(len(row.ids) + len(row.source) for row in self.rows)

    @cached_property
    def longest(self) -> int:
        """Tokens of its longest row."""
        return max(len(row.ids) + len(row.source) for row in self.rows)

    @cached_property
    def n_reads(self) -> int:
        """Number of distributions that the question reads."""
        return sum(len(row.reads) for row in self.rows)


def beginnings(pieces: Pieces, *, masked: bool, end: bool = False) -> list[Beginning]:
    """Returns what stands before each piece of a word and, if `end`, after the last one."""
    total = len(pieces) if masked else 0
    return [Beginning(pieces[:n], total) for n in range(len(pieces) + end)]


def word_reads(
    spelt: Spelt, reads: Mapping[Beginning, int], *, masked: bool
) -> dict[str, tuple[PieceRead, ...] | None]:
    """Returns where the pieces of each word are read, given the read of each beginning."""
    return {
        word: None
        if pieces is None
        else tuple(
            PieceRead(reads[beginning], piece)
            for beginning, piece in zip(beginnings(pieces, masked=masked), pieces, strict=True)
        )
        for word, pieces in spelt.items()
    }
