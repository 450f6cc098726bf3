"""How vocabularies write their items: one class per word-boundary convention.

A vocabulary marks one side of a word's boundary: WordPiece marks what continues a word (`##s`),
byte-level BPE and SentencePiece what starts one (`Ġbird`, `▁bird`), older BPE what ends one
(`bird</w>`). To support another convention, add a class and its name to `CONVENTIONS`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CONTINUES = "##"
"""Shown before an item that would continue the word before the blank."""


class VocabularyItem(NamedTuple):
    """An item of a vocabulary.

    Attributes:
        text: how it is shown: its characters without marks and without the space before it.
        starts: whether a word starts with it in running text.
        surface: what it adds to a text in UTF-8, possibly a part of a character, with a space in
            front where it starts a word (unless the vocabulary marks ends); None for an item that
            stands for no text ([SEP], or an id beyond the tokenizer's).
        ends: whether it has the mark of a word's end.
    """

    text: str
    starts: bool
    surface: bytes | None
    ends: bool = False


class Convention(ABC):
    """How the items of one vocabulary are written.

    Attributes:
        marks_ends: whether the last piece of a word is marked, and not the first.
        writes_blanks: whether white space is a part of items, so that "bird ." and "bird." differ.
    """

    marks_ends = False
    writes_blanks = False

    @classmethod
    @abstractmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Convention | None:
        """Returns the convention if the tokenizer follows it, else None."""

    @abstractmethod
    def read(self, name: str) -> VocabularyItem:
        """Returns the item with this name in the vocabulary."""

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        """Returns an added word; `strips`: it takes the space before it."""
        starts = strips or name[:1].isspace()
        return VocabularyItem(name, starts, _spaced(name, starts))


class ByteLevel(Convention):
    """GPT-2: each byte is written as one visible character, a space as `Ġ`."""

    writes_blanks = True

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> ByteLevel | None:
        is_byte_level = "ByteLevel(" in repr(tokenizer.backend_tokenizer.decoder)
        return cls() if is_byte_level else None

    def __init__(self) -> None:
        # Bytes visible in Latin-1 stand for themselves, the others for U+0100 and following.
        visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        hidden = [code for code in range(0x100) if code not in visible]
        self._bytes = {chr(code): code for code in visible}
        self._bytes |= {chr(0x100 + index): code for index, code in enumerate(hidden)}

    def read(self, name: str) -> VocabularyItem:
        in_bytes = set(name) <= self._bytes.keys()
        surface = bytes(self._bytes[c] for c in name) if in_bytes else name.encode()
        text = re.sub("^Ġ", " ", name)
        if in_bytes:
            with suppress(UnicodeDecodeError):  # a part of a character is shown by its name
                text = surface.decode()
        return VocabularyItem(text, text[:1].isspace(), surface)


class WordPiece(Convention):
    """BERT: `##s` continues a word."""

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> WordPiece | None:
        prefix = getattr(tokenizer.backend_tokenizer.model, "continuing_subword_prefix", None)
        return cls(prefix) if prefix else None

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def read(self, name: str) -> VocabularyItem:
        text = name.removeprefix(self._prefix)
        starts = text == name
        return VocabularyItem(text, starts, _spaced(text, starts))

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        return VocabularyItem(name, True, _spaced(name, True))


class EndOfWord(Convention):
    """GPT-1: `bird</w>` ends a word, `bird` is continued."""

    marks_ends = True

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> EndOfWord | None:
        suffix = getattr(tokenizer.backend_tokenizer.model, "end_of_word_suffix", None)
        return cls(suffix) if suffix else None

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def read(self, name: str) -> VocabularyItem:
        text = name.removesuffix(self._suffix)
        ends = text != name
        return VocabularyItem(text if ends else text + CONTINUES, True, text.encode(), ends)

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        return self.read(name)._replace(text=name)


class SentencePiece(Convention):
    """Llama, T5: `▁bird` starts a word, `<0x41>` is a byte; without the mark, every item does."""

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> SentencePiece:
        backend = tokenizer.backend_tokenizer
        steps = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
        return cls("▁" if any("▁" in repr(step) for step in steps) else "")

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self.writes_blanks = bool(mark)

    def read(self, name: str) -> VocabularyItem:
        if byte := re.fullmatch(r"<0x([0-9A-F]{2})>", name):
            code = int(byte[1], 16)
            return VocabularyItem(chr(code) if code < 0x80 else name, False, bytes([code]))
        text = name.replace(self._mark or " ", " ")
        starts = not self._mark or text.startswith(" ")
        return VocabularyItem(text, starts, _spaced(text, starts))

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        text = name.replace(self._mark or " ", " ")
        starts = strips or not self._mark or text.startswith(" ")
        return VocabularyItem(name, starts, _spaced(text, starts))


CONVENTIONS: tuple[type[Convention], ...] = (ByteLevel, WordPiece, EndOfWord, SentencePiece)
"""In the order in which a tokenizer is tried; SentencePiece is for all others."""


def convention_of(tokenizer: PreTrainedTokenizerFast) -> Convention:
    """Returns the convention of a tokenizer: the first of `CONVENTIONS` that it follows."""
    return next(known for kind in CONVENTIONS if (known := kind.of(tokenizer)) is not None)


def _spaced(text: str, starts: bool) -> bytes:
    return (f" {text}" if starts and not text[:1].isspace() else text).encode()
