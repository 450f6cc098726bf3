"""Questions about whole words: which beginnings of words are read in any case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from lmdiag.models.tokens.encoders import Blank, QuestionEncoder
from lmdiag.models.tokens.questions import Beginning, EncodedQuestion, beginnings, word_reads
from lmdiag.schema import Question


@dataclass(frozen=True)
class WholeWordQuestion(EncodedQuestion):
    """A question about whole words.

    Attributes:
        blank: makes further rows.
        read: what each row reads the continuation of, shorter beginnings first.
    """

    blank: Blank
    read: tuple[Beginning, ...]

    @cached_property
    def wanted(self) -> dict[Beginning, tuple[int, ...]]:
        """For each beginning, the items that candidates go on with."""
        tokens: dict[Beginning, dict[int, None]] = {}
        for piece in chain.from_iterable(filter(None, self.words.values())):
            tokens.setdefault(self.read[piece.read], {})[piece.token] = None
        return {beginning: tuple(some) for beginning, some in tokens.items()}


def encode_whole_words(
    question: Question, encoder: QuestionEncoder, *, lengths: Iterable[int], ends: bool
) -> WholeWordQuestion:
    """Returns the rows that every search begins with: the blank and the candidates' pieces.

    Args:
        question: the question.
        encoder: turns it into rows.
        lengths: for masked models, the numbers of pieces that words may have; else empty.
        ends: whether the distribution after a candidate's last piece is read, too.

    Raises:
        BadInput: see `QuestionEncoder.encode`.
    """
    masked = encoder.masked
    spelt = {word: encoder.spell(word, question.query) for word in question.words}
    roots = [Beginning((), total) for total in lengths] or [Beginning(())]
    needed = (beginnings(word, masked=masked, end=ends) for word in spelt.values() if word)
    read = sorted(
        dict.fromkeys((*roots, *chain.from_iterable(needed))),
        key=lambda beginning: len(beginning.filled),
    )
    words = word_reads(spelt, {b: number for number, b in enumerate(read)}, masked=masked)
    blank = encoder.blank(question.query)
    rows = tuple(blank.row(*beginning) for beginning in read)
    encoder.check_length(rows, question.query)
    return WholeWordQuestion(question, rows, words, blank, tuple(read))
