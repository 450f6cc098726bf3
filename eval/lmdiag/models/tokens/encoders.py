"""From questions to rows of token ids, one encoder per kind of model.

`docs/specification.md` ("Log-probability of a word") says how words of several pieces are scored:
masked models read a row with masks for each piece, models that continue a text one row that
continues with the pieces; the distribution at the blank is read in such a row, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lmdiag.models.tokens.framing import SLOT, Framing
from lmdiag.models.tokens.questions import Blank, EncodedQuestion, PartialWord, TokenRow
from lmdiag.models.tokens.spelling import Pieces, Spelling
from lmdiag.text import truncated
from lmdiag.types import BadInput, Query, Question

LayOut = Callable[[Blank, Sequence[Pieces]], tuple[list[TokenRow], list[PartialWord]]]
"""Given a blank and the pieces of words, returns rows and what each of their reads follows."""

SENTINEL = "<extra_id_0>"
"""What stands at the first blank for the T5 family."""


@dataclass(frozen=True)
class QuestionEncoder(ABC):
    """Turns questions into rows.

    Attributes:
        spelling: the tokenizer.
        limit: longest input in tokens; None for no limit.
        framing: how a query is changed before it is read.
        masked: whether the model sees how many pieces a word has.
    """

    spelling: Spelling
    limit: int | None
    framing: Framing
    masked: ClassVar[bool] = False

    @abstractmethod
    def blank(self, query: Query) -> Blank:
        """Returns the blank of a framed query. Raises `BadInput` if no token stands before it."""

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word in a framed query; None if it is unscorable."""
        return self.spelling.in_sentence(word, query)

    def encode(self, question: Question, lay_out: LayOut = Blank.rows) -> EncodedQuestion:
        """Returns a question as rows.

        Args:
            question: the question.
            lay_out: makes the rows of a blank and of the pieces of candidate words.

        Raises:
            BadInput: a row is longer than the model reads, or no token stands before the blank.
        """
        query = self.framing.apply(question.query)
        blank = self.blank(query)
        words = {word: self.spell(word, query) for word in question.words}
        rows, partials = lay_out(blank, [pieces for pieces in words.values() if pieces])
        self.check_length(rows, question.query)
        bare = self.spelling.is_bare(query.context)
        return EncodedQuestion(question, query, blank, words, tuple(rows), tuple(partials), bare)

    def check_length(self, rows: Iterable[TokenRow], query: Query) -> None:
        """Raises `BadInput` if one of a query's rows is longer than the model can read."""
        longest = max(max(len(row.ids), len(row.source)) for row in rows)
        if self.limit is not None and longest > self.limit:
            context = truncated(query.context)
            prompt = "its prompt and " if self.framing.prompt != SLOT else ""
            raise BadInput(
                f"the context {context!r} takes {longest} tokens with {prompt}its longest "
                f"candidate, and model {self.spelling.model_id} reads at most {self.limit}: "
                "shorten it or leave it out"
            )


@dataclass(frozen=True)
class MaskedEncoder(QuestionEncoder):
    """Questions to a masked model; `mask` is the id of its mask token."""

    mask: int
    masked = True

    def blank(self, query: Query) -> Blank:
        """The blank of a query in its sentence, special tokens around it."""
        left, right = self.spelling.around(query)
        opening, closing = self.spelling.opening, self.spelling.closing
        return Blank(opening + left, right + closing, self.mask)


@dataclass(frozen=True)
class CausalEncoder(QuestionEncoder):
    """Questions to a causal model: `opening` (special tokens), the context, a space, the word.

    After a script without spaces no space stands before the word.
    """

    opening: Pieces

    def blank(self, query: Query) -> Blank:
        """The blank after a query's context; what is right of it is not read."""
        left = self.opening + self.spelling.text(query.context)
        if not left:
            raise BadInput(
                f"model {self.spelling.model_id} has nothing to read before the blank of an empty "
                "context: --bos always puts its beginning-of-sequence token there"
            )
        return Blank(left)

    def spell(self, word: str, query: Query) -> Pieces | None:
        return self.spelling.after(word, query.context, joined=self.framing.is_joined)


@dataclass(frozen=True)
class Seq2SeqEncoder(QuestionEncoder):
    """Questions to an encoder-decoder: the encoder reads the sentence, the decoder fills its blank.

    The T5 family reads a sentinel at the blank and answers with the sentinel and what belongs
    there: the decoder is scored after the sentinel. BART reads a mask and writes the whole sentence
    again: the decoder is scored after the text left of the blank.

    Attributes:
        filler: id of the sentinel or mask that stands at the blank.
        start: the decoder's start token.
        repeats_filler: T5's way, not BART's.
    """

    filler: int
    start: int
    repeats_filler: bool

    def blank(self, query: Query) -> Blank:
        """The blank of a query in its sentence, special tokens around it."""
        left, right = self.spelling.around(query)
        left, right = self.spelling.opening + left, right + self.spelling.closing
        announced = (self.filler,) if self.repeats_filler else left
        return Blank((self.start, *announced), source=(*left, self.filler, *right))
