"""Where words begin and end, in the items of a vocabulary.

A word is a run of letters, marks and digits; hyphens and apostrophes join such runs (`don't`,
`merry-go-round` are words, `dog'` and `-ish` are not). Whatever marks a vocabulary uses, an item is
one of two things after a word: it continues it, or it ends it.

- It continues it if some word could go on with it: it begins with a letter, digit or mark, is a
  joiner alone or a joiner before a letter, or is a part of a character.
- It ends it otherwise: it begins with a space, a new line or punctuation, it starts a word in a
  vocabulary that marks what continues (`##s`), or it is a special token such as the end of text.

One item decides, as in Pimentel & Meister (2024): after `dog` a single `'` continues, although the
word is over if it turns out to be a quotation mark. So nothing is counted twice, and what is lost
is lost for no other word's gain. WordPiece never joins across a hyphen or an apostrophe, so its
words are its own: `don`, `'`, `t` are three. Vocabularies that mark ends (`bird</w>`) have a word
end with its own last piece.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.models.vocabulary import Vocabulary
from lmdiag.models.words import Pieces

if TYPE_CHECKING:
    import torch

JOINERS = "-'’‐‑\u200c\u200d"
"""Hyphens, apostrophes, and the joiners of scripts that shape their letters."""

_WORD = re.compile(r"w+(?:-w+)*")
_BEGINNING = re.compile(r"(?:w+(?:-w+)*-?)?")
_CONTINUING = re.compile(r"w|-(?:w|\?|$)|\?")


class Prefix(NamedTuple):
    """Pieces at a blank, as the beginning of a word.

    Attributes:
        word: the word that they spell; None if they spell none.
        open: whether a longer word may begin with them.
    """

    word: str | None
    open: bool


class Boundaries:
    """The boundaries of words in a vocabulary.

    Args:
        vocabulary: its items.
        size: their number, that of the model's softmax.

    Attributes:
        certain: whether a word's own pieces tell where it ends, so that nothing after it does.
        starts: (vocabulary,) whether a word can begin with the item after a text.
        opens: (vocabulary,) the same at the beginning of a text.
        continues: (vocabulary,) whether a word can go on with the item; the others end it.
    """

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        import torch

        self._vocabulary = vocabulary
        self._surfaces = [vocabulary.surface(token) for token in range(size)]
        self.continues = torch.tensor([self._continues(surface) for surface in self._surfaces])
        self._goes_on = bool(self.continues.any())
        self.starts = self._beginning(opening=False)
        self.opens = self._beginning(opening=True)
        self.certain = vocabulary.marks_ends or not self._goes_on

    def look(self, pieces: Pieces, *, opening: bool) -> Prefix:
        """Returns what pieces are as the beginning of a word.

        Args:
            pieces: at least one.
            opening: whether they stand at the beginning of a text.
        """
        text, unfinished = self._text(pieces, opening)
        kinds = None if text is None else _kinds(text)
        if kinds is None or not _BEGINNING.fullmatch(kinds):
            return Prefix(None, False)
        ended = self._vocabulary.marks_ends and self._vocabulary.ends(pieces[-1])
        whole = ended or not (self._vocabulary.marks_ends or unfinished)
        word = text if whole and _WORD.fullmatch(kinds) else None
        return Prefix(word, self._goes_on and not ended)

    def may_follow(self, pieces: Pieces, *, opening: bool) -> torch.Tensor:
        """Returns which items may come next in a word: (vocabulary,) booleans; see `look`."""
        if pieces:
            return self.continues
        return self.opens if opening else self.starts

    def end(self, log_probs: torch.Tensor) -> torch.Tensor:
        """Returns the log-probability that the next item is no continuation of a word.

        Args:
            log_probs: (reads, vocabulary), nats.

        Returns:
            (reads,) nats, at most 0; 0 throughout where the pieces tell.
        """
        import torch

        if self.certain:
            return torch.zeros_like(log_probs[:, 0])
        continues = self.continues.to(log_probs.device)
        return log_probs.masked_fill(continues, -torch.inf).logsumexp(-1).clamp(max=0.0)

    def _text(self, pieces: Pieces, opening: bool) -> tuple[str | None, bool]:
        """Returns the text of pieces without the space before it, and whether bytes are missing.

        The text is None where the pieces are none, or do not follow after exactly one space.
        """
        surfaces = [self._surfaces[piece] for piece in pieces]
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = decoder.decode(b"".join(surface for surface in surfaces if surface is not None))
        except UnicodeDecodeError:
            return None, False
        spaced = not self._vocabulary.marks_ends
        if spaced and not (opening and not self._vocabulary.opens_marked):
            if not text.startswith(" "):
                return None, False
            text = text[1:]
        return (None if None in surfaces else text), bool(decoder.getstate()[0])

    def _beginning(self, *, opening: bool) -> torch.Tensor:
        import torch

        found = [self.look((token,), opening=opening) for token in range(len(self._surfaces))]
        return torch.tensor([prefix.open or prefix.word is not None for prefix in found])

    def _continues(self, surface: bytes | None) -> bool:
        if not surface:
            return False
        if self._vocabulary.marks_ends:  # what comes after a piece without the mark
            return True
        return bool(_CONTINUING.match(_kinds(surface.decode("utf-8", "replace")[:2])))


def _kinds(text: str) -> str:
    """Returns w for each character of a word, - for a joiner, ? for a part of one, . otherwise."""
    return "".join(
        "w" if character.isalnum() or unicodedata.category(character)[0] == "M"
        else "-" if character in JOINERS
        else "?" if character == "\ufffd"
        else "."
        for character in text
    )  # fmt: skip
