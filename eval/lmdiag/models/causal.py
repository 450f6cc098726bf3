"""Questions to causal models: the context alone, and what follows it after one space.

The output at the context's last token is the distribution at the blank. A word of several pieces
is scored by the chain rule in a row that goes on with its pieces; the distribution at the blank is
read off such a row too, so that a context is asked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmdiag.models.rows import Encoded, Row, chain, check_length
from lmdiag.models.words import Pieces, Spelling
from lmdiag.schema import BadInput, Query, Question


@dataclass(frozen=True, slots=True)
class CausalBlank:
    """A blank that a text goes on with.

    Attributes:
        prompt: all tokens before it.
    """

    prompt: Pieces

    def row(self, filled: Pieces, total: int = 0) -> Row:
        """See `rows.Blank`; a causal model does not see how long the word is."""
        return Row(self.prompt + filled, (len(self.prompt) + len(filled) - 1,))


class CausalAsker:
    """Asks a causal model.

    Args:
        spelling: the tokenizer.
        opening: special tokens before the context, see `opening_tokens`.
        limit: longest input in tokens; None for no limit.
        model_id: for messages.
    """

    def __init__(
        self, spelling: Spelling, opening: Pieces, limit: int | None, model_id: str
    ) -> None:
        self._spelling = spelling
        self._opening = opening
        self._limit = limit
        self._model_id = model_id

    def blank(self, query: Query) -> CausalBlank:
        """Returns the blank after a query's context; what is right of it is not seen.

        Raises:
            BadInput: the context is empty and no special token stands before it.
        """
        prompt = self._opening + self._spelling.text(query.context)
        if not prompt:
            raise BadInput(
                f"model {self._model_id} has nothing to read before the blank of an empty context: "
                "--bos always puts its beginning-of-sequence token there"
            )
        return CausalBlank(prompt)

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word at the blank of a query; None if it is unscorable."""
        return self._spelling.after(word, query.context)

    def encode(self, question: Question) -> Encoded:
        """Returns the rows of a question: one, unless words of several pieces part ways."""
        prompt = self.blank(question.query).prompt
        spelt = {word: self.spell(word, question.query) for word in question.words}
        rows, words = chain(prompt, spelt)
        check_length(rows, self._limit, question.query, self._model_id)
        return Encoded(question, rows, words)


def opening_tokens(
    spelling: Spelling, bos: Literal["auto", "always", "never"], bos_id: int | None, model_id: str
) -> Pieces:
    """Returns the special tokens that stand before every context.

    Args:
        spelling: knows what the tokenizer puts before a text by default; what it would put after
            one never stands between context and blank.
        bos: auto keeps the default, always sees to it that the beginning-of-sequence token is
            there, never leaves all of them out.
        bos_id: of the beginning-of-sequence token; None where the tokenizer names none.
        model_id: for messages.

    Raises:
        BadInput: a token that the tokenizer does not have is asked for.
    """
    if bos == "never":
        return ()
    if bos == "auto" or (spelling.opening and bos_id in (None, *spelling.opening)):
        return spelling.opening
    if bos_id is None:
        raise BadInput(
            f"model {model_id}: its tokenizer has no beginning-of-sequence token: "
            "leave --bos always out"
        )
    return (bos_id, *spelling.opening)
