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

# These are matched with the classes of characters, see `_classes`.
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
        # what each item adds to a text, in UTF-8; None for a control token
        self._surfaces = [vocabulary.item(token).surface for token in range(size)]
        self.continues = torch.tensor([self._continues(surface) for surface in self._surfaces])
        # False of a vocabulary in which each word is one item
        self._has_longer_words = bool(self.continues.any())
        self._can_start = {  # bare -> (vocabulary,) whether a word can start with the item
            bare: torch.tensor(
                [self.parse_prefix((t,), bare=bare) != _NO_PREFIX for t in range(size)]
            )
            for bare in (False, True)
        }
        self.certain = vocabulary.convention.marks_ends or not self._has_longer_words

    def parse_prefix(self, pieces: Pieces, *, bare: bool) -> Prefix:
        """Returns the word that pieces (at least one) spell, and whether a longer one may follow.

        For example, the pieces of " dog-" spell no word, but " dog-like" begins with them.

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
        # the space is the mark of a word's start, and no character of the word
        marks_ends = self._vocabulary.convention.marks_ends
        has_start_mark = not marks_ends and not bare
        if has_start_mark:
            if not text.startswith(" "):
                return _NO_PREFIX
            text = text[1:]
        classes = _classes(text)
        # None is the surface of a control token, which is not a part of a word
        if None in surfaces or not _BEGINNING.fullmatch(classes):
            return _NO_PREFIX
        has_end_mark = marks_ends and self._vocabulary.item(pieces[-1]).ends
        lacks_end_mark = marks_ends and not has_end_mark
        ends_within_character = bool(decoder.getstate()[0])  # bytes that are not decoded yet
        # where ends are not marked, a word may end after any whole character
        may_end = has_end_mark or not (lacks_end_mark or ends_within_character)
        word = text if may_end and _WORD.fullmatch(classes) else None
        may_be_continued = self._has_longer_words and not has_end_mark
        return Prefix(word, may_be_continued)

    def may_follow(self, pieces: Pieces, *, bare: bool) -> torch.Tensor:
        """Returns which items may come next in a word: (vocabulary,) booleans.

        Args:
            pieces: the word's token ids so far; empty for the items that may start a word.
            bare: see `parse_prefix`.
        """
        return self.continues if pieces else self._can_start[bare]

    def end_log_prob(self, log_probs: torch.Tensor) -> torch.Tensor:
        """Returns the (reads,) log-probabilities that the next item does not continue a word.

        They are 0 throughout if `certain`, since the pieces themselves tell the end.

        Args:
            log_probs: (reads, vocabulary), nats.
        """
        if self.certain:
            return torch.zeros_like(log_probs[:, 0])
        return _log_prob_without(self.continues, log_probs)

    def whitespace_log_prob(self, log_probs: torch.Tensor) -> torch.Tensor:
        """Returns the (reads,) log-probabilities that white space or the text's end comes next.

        Args:
            log_probs: (reads, vocabulary), nats.
        """
        return _log_prob_without(~self._follows_whitespace, log_probs)

    @cached_property
    def _follows_whitespace(self) -> torch.Tensor:
        """(vocabulary,) whether white space stands before an item, or it ends the text."""
        return torch.tensor(
            # a surface of None is a control token, which ends the text
            [surface is None or self._is_after_whitespace(surface) for surface in self._surfaces]
        )

    def _is_after_whitespace(self, surface: bytes) -> bool:
        """Whether white space stands before the text of an item, or at its beginning.

        Where a vocabulary does not encode white space, this is the case for items that start a
        word, and of punctuation for opening brackets and quotation marks alone.
        """
        if self._vocabulary.convention.encodes_whitespace:
            return surface.decode("utf-8", "ignore")[:1].isspace()
        # " " for an item of white space alone, which is not punctuation
        first_character = surface.decode("utf-8", "replace").strip()[:1] or " "
        category = unicodedata.category(first_character)
        # of a vocabulary that marks ends, each item may start a word
        may_start_word = self._vocabulary.convention.marks_ends or surface.startswith(b" ")
        is_punctuation = category[0] == "P"
        is_opening = category in ("Ps", "Pi")
        return may_start_word and (is_opening or not is_punctuation)

    def _continues(self, surface: bytes | None) -> bool:
        """Whether an item can continue a word; its text in UTF-8 is None for a control token."""
        if self._vocabulary.convention.marks_ends:
            # a piece without an end mark is always continued, by any item that stands for text
            return bool(surface)
        text = (surface or b"").decode("utf-8", "replace")
        # the first two characters decide: "-like" continues a word, and "--" does not
        return bool(_CONTINUING.match(_classes(text[:2])))


def _log_prob_without(excluded: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
    """Returns the (reads,) log-probabilities of all items that are not excluded, at most 0.

    `excluded` is (vocabulary,) booleans, and `log_probs` are (reads, vocabulary).
    """
    excluded = excluded.to(log_probs.device)
    # summed over the items that are left: 1 - p of the others loses all digits where p is near 1
    return log_probs.masked_fill(excluded, -torch.inf).logsumexp(-1).clamp(max=0.0)


def _classes(text: str) -> str:
    """Returns the class of each character, for example "ww-w." for "do-t.".

    The classes are w for a character of a word, - for a joiner, ? for a part of a character, and .
    for all others.
    """
    return "".join(_class_of(character) for character in text)


def _class_of(character: str) -> str:
    """Returns the class of a character, which says whether it continues a word.

    "w" is a letter, a digit or a combining mark; "-" is a joiner, as in "do-it-yourself"; "?" is a
    part of a character, whose other bytes are in another token; "." is any other character.
    """
    # a combining mark (Unicode category M), e.g. the accent of "e\u0301", belongs to a letter
    is_combining_mark = unicodedata.category(character)[0] == "M"
    if character.isalnum() or is_combining_mark:
        return "w"
    if character in _JOINERS:
        return "-"
    is_part_of_character = character == "\ufffd"  # stands for bytes that are not decoded
    return "?" if is_part_of_character else "."
