"""Questions to encoder-decoders: the encoder reads the sentence, the decoder fills its blank.

T5 and its kin see a sentinel at the blank and answer with the sentinel and what belongs there: the
decoder is scored after the sentinel. BART sees a mask and writes the whole sentence again: the
decoder is scored after the text left of the blank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmdiag.models.rows import Encoded, Row, chain, check_length
from lmdiag.models.words import Pieces, Spelling
from lmdiag.schema import Query, Question

SENTINEL = "<extra_id_0>"
"""What stands at the first blank for the T5 family."""


@dataclass(frozen=True, slots=True)
class Seq2SeqBlank:
    """A blank that a decoder fills.

    Attributes:
        source: the encoder's tokens, with the sentinel or mask at the blank.
        prompt: the decoder's tokens before the blank.
    """

    source: Pieces
    prompt: Pieces

    def row(self, filled: Pieces, total: int = 0) -> Row:
        """See `rows.Blank`; a decoder does not see how long the word is."""
        return Row(self.prompt + filled, (len(self.prompt) + len(filled) - 1,), self.source)


class Seq2SeqAsker:
    """Asks an encoder-decoder.

    Args:
        spelling: the tokenizer.
        filler: id of what stands at the blank for the encoder.
        prompt: from the encoder's tokens left of the blank to the decoder's; see `prompt_for`.
        limit: longest input in tokens; None for no limit.
        model_id: for messages.
    """

    def __init__(
        self,
        spelling: Spelling,
        filler: int,
        prompt: Callable[[Pieces], Pieces],
        limit: int | None,
        model_id: str,
    ) -> None:
        self._spelling = spelling
        self._filler = filler
        self._prompt = prompt
        self._limit = limit
        self._model_id = model_id

    def blank(self, query: Query) -> Seq2SeqBlank:
        """Returns the blank of a query in its sentence, special tokens around it."""
        left, right = self._spelling.around(query)
        left, right = self._spelling.opening + left, right + self._spelling.closing
        return Seq2SeqBlank((*left, self._filler, *right), self._prompt(left))

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word at the blank of a query; None if it is unscorable."""
        return self._spelling.in_sentence(word, query)

    def encode(self, question: Question) -> Encoded:
        """Returns the rows of a question: one, unless words of several pieces part ways."""
        blank = self.blank(question.query)
        spelt = {word: self.spell(word, question.query) for word in question.words}
        rows, words = chain(blank.prompt, spelt, blank.source)
        check_length(rows, self._limit, question.query, self._model_id)
        return Encoded(question, rows, words)


def prompt_for(start: int, sentinel: int | None) -> Callable[[Pieces], Pieces]:
    """Returns how a decoder's input begins, given the encoder's tokens left of the blank.

    Args:
        start: the decoder's start token.
        sentinel: the token that announces the first blank; None where the decoder writes the
            sentence from its beginning.
    """
    if sentinel is not None:
        return lambda left: (start, sentinel)
    return lambda left: (start, *left)
