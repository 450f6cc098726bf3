"""Where words begin and end, in the items of a vocabulary.

A word is a run of letters, marks and digits; hyphens and apostrophes join such runs (`don't`,
`merry-go-round` are words, `dog'` and `-ish` are not). After a word, an item continues it if some
word could go on with it: it begins with a letter, digit or mark, is a joiner alone or a joiner
before a letter, or is a part of a character. All other items end the word: they begin with a space,
a new line or punctuation, start a word in a vocabulary that marks what continues (`##s`), or are
special tokens.

One item decides, as in Pimentel & Meister (2024): after `dog` a single `'` continues, although the
word is over if it turns out to be a quotation mark. So nothing is counted twice. WordPiece never
joins across a hyphen or an apostrophe: for it `don`, `'`, `t` are three words. In vocabularies that
mark ends (`bird</w>`) a word ends with its own last piece.

The words of whole sentences are what white space separates (`tool.` is one): they end at white
space and special tokens alone, see `Boundaries.whitespace_log_prob`.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from functools import cached_property
from typing import NamedTuple

import torch

from lmdiag.models.tokens.spelling import Pieces
from lmdiag.models.tokens.vocabulary import Vocabulary

_JOINERS = "-'’‐‑\u200c\u200d"
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


_NO_PREFIX = Prefix(None, False)


class Boundaries:
    """The boundaries of words in a vocabulary.

    Args:
        vocabulary: its items.
        size: their number, that of the model's softmax.

    Attributes:
        certain: whether a word's own pieces tell where it ends.
        continues: (vocabulary,) whether a word can go on with the item; the others end it.
    """

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        self._vocabulary = vocabulary
        self._surfaces = [vocabulary.item(token).surface for token in range(size)]
        self.continues = torch.tensor([self._continues(surface) for surface in self._surfaces])
        self._goes_on = bool(self.continues.any())
        self._starts = [  # where words have the mark of a word's start, and where they lack it
            torch.tensor([self.parse_prefix((t,), bare=bare) != _NO_PREFIX for t in range(size)])
            for bare in (False, True)
        ]
        self.certain = vocabulary.convention.marks_ends or not self._goes_on

    def parse_prefix(self, pieces: Pieces, *, bare: bool) -> Prefix:
        """Returns what pieces (at least one) are as the beginning of a word.

        Args:
            pieces: token ids.
            bare: whether words lack the mark of a word's start there, as at the beginning of a text
                in many vocabularies.
        """
        surfaces = [self._surfaces[piece] for piece in pieces]
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = decoder.decode(b"".join(surface or b"" for surface in surfaces))
        except UnicodeDecodeError:
            return _NO_PREFIX
        marks_ends = self._vocabulary.convention.marks_ends
        if not marks_ends and not bare:
            if not text.startswith(" "):
                return _NO_PREFIX
            text = text[1:]
        classes = _classes(text)
        if None in surfaces or not _BEGINNING.fullmatch(classes):
            return _NO_PREFIX
        has_end_mark = marks_ends and self._vocabulary.item(pieces[-1]).ends
        bytes_are_missing = bool(decoder.getstate()[0])
        is_whole = has_end_mark or not (marks_ends or bytes_are_missing)
        word = text if is_whole and _WORD.fullmatch(classes) else None
        return Prefix(word, self._goes_on and not has_end_mark)

    def may_follow(self, pieces: Pieces, *, bare: bool) -> torch.Tensor:
        """Returns which items may come next in a word: (vocabulary,) booleans."""
        return self.continues if pieces else self._starts[bare]

    def end_log_prob(self, log_probs: torch.Tensor) -> torch.Tensor:
        """Returns the log-probability that the next item does not continue a word.

        Both are in nats: (reads, vocabulary) to (reads,); 0 throughout if `certain`.
        """
        if self.certain:
            return torch.zeros_like(log_probs[:, 0])
        return _log_prob_without(self.continues, log_probs)

    def whitespace_log_prob(self, log_probs: torch.Tensor) -> torch.Tensor:
        """Returns the log-probability that white space, or the end of the text, comes next.

        Both are in nats: (reads, vocabulary) to (reads,).
        """
        return _log_prob_without(~self._whitespace, log_probs)

    @cached_property
    def _whitespace(self) -> torch.Tensor:
        """(vocabulary,) whether white space, or the end of the text, comes with an item.

        An item of a vocabulary without white space may follow it in a text. Punctuation touches
        what is before it, but for opening brackets and quotation marks.
        """
        return torch.tensor(
            [surface is None or self._follows_whitespace(surface) for surface in self._surfaces]
        )

    def _follows_whitespace(self, surface: bytes) -> bool:
        """Whether an item with this text in UTF-8 has white space before it."""
        if self._vocabulary.convention.encodes_whitespace:
            return surface.decode("utf-8", "ignore")[:1].isspace()
        character = surface.decode("utf-8", "replace").strip()[:1] or " "
        kind = unicodedata.category(character)
        starts_word = self._vocabulary.convention.marks_ends or surface.startswith(b" ")
        return starts_word and (kind[0] != "P" or kind in ("Ps", "Pi"))

    def _continues(self, surface: bytes | None) -> bool:
        """Whether a word can go on with an item; None is an item without a text."""
        if self._vocabulary.convention.marks_ends:  # what comes after a piece without the mark
            return bool(surface)
        text = (surface or b"").decode("utf-8", "replace")
        return bool(_CONTINUING.match(_classes(text[:2])))


def _log_prob_without(excluded: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
    """Returns the log-probability of all items but some: (reads,), at most 0."""
    excluded = excluded.to(log_probs.device)
    # summed over the items that are left: 1 - p of the others loses all digits where p is near 1
    return log_probs.masked_fill(excluded, -torch.inf).logsumexp(-1).clamp(max=0.0)


def _classes(text: str) -> str:
    """Returns w for each character of a word, - for a joiner, ? for a part of one, . otherwise."""
    return "".join(map(_class_of, text))


def _class_of(character: str) -> str:
    """Returns the class of a character, see `_classes`."""
    if character.isalnum() or unicodedata.category(character)[0] == "M":
        return "w"
    if character in _JOINERS:
        return "-"
    return "?" if character == "\ufffd" else "."
