"""Rows: what a model is given, and at which positions its distribution is read.

Every question becomes rows. The first distribution that a question reads is the one at its blank;
further ones are there for words of several pieces, each conditioned on the pieces before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from lmdiag.models.words import Pieces
from lmdiag.schema import BadInput, Query, Question


@dataclass(frozen=True, slots=True)
class Row:
    """One input of a model.

    Attributes:
        ids: token ids; the decoder's, for an encoder-decoder.
        reads: ascending positions of `ids` whose output distribution is wanted.
        source: token ids for the encoder; empty for other models.
    """

    ids: Pieces
    reads: tuple[int, ...]
    source: Pieces = ()


class Step(NamedTuple):
    """A piece of a word, in its place.

    Attributes:
        read: which of the question's distributions, counted through its rows, it is looked up in.
        token: its id.
    """

    read: int
    token: int


@dataclass(frozen=True)
class Encoded:
    """A question as the model is asked it.

    Attributes:
        question: the question.
        rows: inputs; read 0, the first of the first row, is the distribution at the blank.
        words: candidate word -> its pieces; None for an unscorable word.
    """

    question: Question
    rows: tuple[Row, ...]
    words: Mapping[str, tuple[Step, ...] | None]

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
        """Distributions that the question reads."""
        return sum(len(row.reads) for row in self.rows)


class Blank(Protocol):
    """A blank that can be filled piece by piece."""

    def row(self, filled: Pieces, total: int) -> Row:
        """Returns the row that reads the distribution of the piece after `filled`.

        Args:
            filled: pieces that stand at the blank already.
            total: pieces of the whole word, where the model sees how many there are (masked).
        """
        ...


class Asker(Protocol):
    """Turns questions into rows, one way for each kind of model."""

    def blank(self, query: Query) -> Blank:
        """Returns the blank of a query."""
        ...

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word at the blank of a query; None if it is unscorable."""
        ...

    def encode(self, question: Question) -> Encoded:
        """Returns the rows of a question. Raises `BadInput` where the context cannot be asked."""
        ...


def chain(
    prompt: Pieces, words: Mapping[str, Pieces | None], source: Pieces = ()
) -> tuple[tuple[Row, ...], dict[str, tuple[Step, ...] | None]]:
    """Puts words of several pieces into rows that continue a prompt, each prefix read once.

    Args:
        prompt: tokens before the blank; the last one's output is the distribution at the blank.
        words: word -> its pieces; None for an unscorable word.
        source: the encoder's tokens, if any.

    Returns:
        The rows, and for each word the distributions that its pieces are read from.
    """
    reads: dict[Pieces, int] = {}
    rows = []
    for filled in _longest(pieces[:-1] for pieces in words.values() if pieces):
        new = [n for n in range(len(filled) + 1) if filled[:n] not in reads]
        reads |= {filled[:n]: len(reads) + index for index, n in enumerate(new)}
        rows.append(Row(prompt + filled, tuple(len(prompt) - 1 + n for n in new), source))
    return tuple(rows), {word: steps(pieces, reads) for word, pieces in words.items()}


def _longest(prefixes: Iterable[Pieces]) -> list[Pieces]:
    """Returns the prefixes that no other one begins with, longest first; an empty one if none."""
    longest: list[Pieces] = []
    for prefix in sorted({(), *prefixes}, key=lambda prefix: (-len(prefix), prefix)):
        if not any(other[: len(prefix)] == prefix for other in longest):
            longest.append(prefix)
    return longest


def steps(pieces: Pieces | None, reads: Mapping[Pieces, int]) -> tuple[Step, ...] | None:
    """Returns where each piece of a word is read, given filled prefix -> read."""
    if pieces is None:
        return None
    return tuple(Step(reads[pieces[:n]], piece) for n, piece in enumerate(pieces))


def check_length(rows: Sequence[Row], limit: int | None, query: Query, model_id: str) -> None:
    """Raises `BadInput` if one of a query's rows is longer than the model can read."""
    longest = max(max(len(row.ids), len(row.source)) for row in rows)
    if limit is not None and longest > limit:
        raise BadInput(
            f"the context {shorten(query.context)!r} takes {longest} tokens with its longest "
            f"candidate, and model {model_id} reads at most {limit}: shorten it or leave it out"
        )


def shorten(text: str, width: int = 60) -> str:
    """Returns the text, or its first characters and an ellipsis if it is longer than `width`."""
    return text if len(text) <= width else text[: width - 1] + "…"
