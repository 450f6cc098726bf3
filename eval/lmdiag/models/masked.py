"""Questions to masked models: the sentence with one mask for each piece of the word.

A word of several pieces is scored left to right within the word (Kauf & Ivanova 2023): as many
masks as it has pieces, each piece read with those before it filled in and those after it masked.
One-piece words share one row, words of equally many pieces the rows of their common pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmdiag.models.rows import Encoded, Row, Step, check_length
from lmdiag.models.words import Pieces, Spelling
from lmdiag.schema import Query, Question


@dataclass(frozen=True, slots=True)
class MaskedBlank:
    """A blank within a sentence.

    Attributes:
        left: tokens before it, special ones included.
        right: tokens after it, special ones included.
        mask: id of the mask token.
    """

    left: Pieces
    right: Pieces
    mask: int

    def row(self, filled: Pieces, total: int) -> Row:
        """See `rows.Blank`: `total - len(filled)` masks follow the filled pieces."""
        masks = (self.mask,) * (total - len(filled))
        ids = self.left + filled + masks + self.right
        return Row(ids, (len(self.left) + len(filled),))


class MaskedAsker:
    """Asks a masked model.

    Args:
        spelling: the tokenizer.
        mask: id of the mask token.
        limit: longest input in tokens; None for no limit.
        model_id: for messages.
    """

    def __init__(self, spelling: Spelling, mask: int, limit: int | None, model_id: str) -> None:
        self._spelling = spelling
        self._mask = mask
        self._limit = limit
        self._model_id = model_id

    def blank(self, query: Query) -> MaskedBlank:
        """Returns the blank of a query in its sentence, special tokens around it."""
        left, right = self._spelling.around(query)
        opening, closing = self._spelling.opening, self._spelling.closing
        return MaskedBlank(opening + left, right + closing, self._mask)

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word at the blank of a query; None if it is unscorable."""
        return self._spelling.in_sentence(word, query)

    def encode(self, question: Question) -> Encoded:
        """Returns the rows of a question; the first has one mask and serves all one-piece words."""
        blank = self.blank(question.query)
        spelt = {word: self.spell(word, question.query) for word in question.words}
        reads: dict[tuple[int, Pieces], int] = {(1, ()): 0}
        for pieces in filter(None, spelt.values()):
            for n in range(len(pieces)):
                reads.setdefault((len(pieces), pieces[:n]), len(reads))
        rows = tuple(blank.row(filled, total) for total, filled in reads)
        check_length(rows, self._limit, question.query, self._model_id)
        return Encoded(question, rows, {word: _steps(spelt[word], reads) for word in spelt})


def _steps(pieces: Pieces | None, reads: dict[tuple[int, Pieces], int]) -> tuple[Step, ...] | None:
    if pieces is None:
        return None
    total = len(pieces)
    return tuple(Step(reads[total, pieces[:n]], piece) for n, piece in enumerate(pieces))
