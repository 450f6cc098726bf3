"""The items of a vocabulary: how they are shown, which start a word, which stand for no text.

A vocabulary marks one side of a word's boundary: WordPiece marks what continues a word (`##s`),
byte-level BPE and SentencePiece what starts one (`Ġbird`, `▁bird`), older BPE what ends one
(`bird</w>`). To support another convention, add a class and its name to `CONVENTIONS`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CONTINUES = "##"
"""Shown before an item that would continue the word before the blank."""

_SPACE = "▁"
"""Shown before an item that puts a space where a word at the blank has none."""

_LONE_SPACE = "␣"
"""Stands for each space of an item of spaces alone."""

_MARKUP = re.compile(r"<.*>|\[.*\]", re.DOTALL)
"""Names of control tokens such as <|im_start|>, <think> and [INST]."""


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

    @classmethod
    def spaced(cls, display: str, text: str, starts: bool) -> VocabularyItem:
        """Returns an item whose surface has a space before its text if it starts a word.

        Args:
            display: how it is shown.
            text: what it adds to a text, with or without the space.
            starts: whether it starts a word.
        """
        space = " " if starts and not text[:1].isspace() else ""
        return cls(display, starts, (space + text).encode())


class Convention(ABC):
    """How the items of one vocabulary are written.

    Attributes:
        applies: whether the tokenizer follows the convention.
        marks_ends: whether the last piece of a word is marked, and not the first.
        encodes_whitespace: whether "bird ." and "bird." differ, since white space is in items.
    """

    applies = True
    marks_ends = False
    encodes_whitespace = False

    @abstractmethod
    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None: ...

    @abstractmethod
    def read(self, name: str) -> VocabularyItem:
        """Returns the item with this name in the vocabulary."""

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        """Returns the item of a word that was added to the vocabulary, after its training.

        Args:
            name: the word.
            strips: whether the space before it belongs to it, so that it starts a word.
        """
        return VocabularyItem.spaced(name, name, starts=strips or name[:1].isspace())


class ByteLevel(Convention):
    """GPT-2: each byte is written as one visible character, a space as `Ġ`."""

    encodes_whitespace = True

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.applies = "ByteLevel(" in repr(tokenizer.backend_tokenizer.decoder)
        # Bytes visible in Latin-1 stand for themselves, the others for U+0100 and following.
        visible_codes = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        hidden_codes = [code for code in range(0x100) if code not in visible_codes]
        self._byte_of = {chr(code): code for code in visible_codes}
        self._byte_of |= {chr(0x100 + index): code for index, code in enumerate(hidden_codes)}

    def read(self, name: str) -> VocabularyItem:
        """Returns the item with this name; for example, `Ġbird` starts a word."""
        is_bytes = set(name) <= self._byte_of.keys()  # each character stands for a byte
        surface = bytes(self._byte_of[c] for c in name) if is_bytes else name.encode()
        text = re.sub("^Ġ", " ", name)
        if is_bytes:
            with suppress(UnicodeDecodeError):  # a part of a character is shown by its name
                text = surface.decode()
        return VocabularyItem(text, starts=text[:1].isspace(), surface=surface)


class WordPiece(Convention):
    """BERT: `##s` continues a word."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        model = tokenizer.backend_tokenizer.model
        self._prefix = getattr(model, "continuing_subword_prefix", None) or ""
        self.applies = bool(self._prefix)

    def read(self, name: str) -> VocabularyItem:
        """Returns the item with this name; without the prefix `##` it starts a word."""
        text = name.removeprefix(self._prefix)
        return VocabularyItem.spaced(text, text, starts=text == name)

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        """Returns the item of an added word, which always starts a word."""
        return VocabularyItem.spaced(name, name, starts=True)


class EndOfWord(Convention):
    """GPT-1: `bird</w>` ends a word, `bird` is continued."""

    marks_ends = True

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        model = tokenizer.backend_tokenizer.model
        self._suffix = getattr(model, "end_of_word_suffix", None) or ""
        self.applies = bool(self._suffix)

    def read(self, name: str) -> VocabularyItem:
        """Returns the item with this name; `bird` without `</w>` is shown as `bird##`."""
        text = name.removesuffix(self._suffix)
        ends = text != name
        display = text if ends else text + CONTINUES
        # nothing marks the first piece of a word, so that each item may start one
        return VocabularyItem(display, starts=True, surface=text.encode(), ends=ends)

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        """Returns the item of an added word, which is shown by its name."""
        return self.read(name)._replace(text=name)


class SentencePiece(Convention):
    """Llama, T5: `▁bird` starts a word, `<0x41>` is a byte; without the mark, every item does."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        backend = tokenizer.backend_tokenizer
        steps = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
        self.encodes_whitespace = any("▁" in repr(step) for step in steps)
        self._mark = "▁" if self.encodes_whitespace else ""

    def read(self, name: str) -> VocabularyItem:
        """Returns the item with this name; `<0xE9>`, a byte beyond ASCII, is shown by its name."""
        byte = re.fullmatch(r"<0x([0-9A-F]{2})>", name)
        if byte:
            code = int(byte[1], 16)
            display = chr(code) if code < 0x80 else name
            return VocabularyItem(display, starts=False, surface=bytes([code]))
        text = self._with_spaces(name)
        # a tokenizer without the mark does not encode spaces: each of its items may start a word
        starts = not self._mark or text.startswith(" ")
        return VocabularyItem.spaced(text, text, starts)

    def read_added(self, name: str, *, strips: bool) -> VocabularyItem:
        """Returns the item of an added word; `strips`: the space before it belongs to it."""
        text = self._with_spaces(name)
        # a tokenizer without the mark does not encode spaces: each of its items may start a word
        starts = strips or not self._mark or text.startswith(" ")
        return VocabularyItem.spaced(name, text, starts)

    def _with_spaces(self, name: str) -> str:
        """Returns the name of an item with spaces in place of their mark."""
        return name.replace(self._mark, " ") if self._mark else name


CONVENTIONS: tuple[type[Convention], ...] = (ByteLevel, WordPiece, EndOfWord, SentencePiece)
"""In the order in which a tokenizer is tried; SentencePiece is for all others."""


class Vocabulary:
    """The items over which a model's softmax runs; there may be more than the tokenizer has.

    Args:
        tokenizer: the model's.

    Attributes:
        convention: how they are written.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._name_of = tokenizer.backend_tokenizer.id_to_token
        self._added = tokenizer.added_tokens_decoder
        self._controls = control_ids(tokenizer)
        conventions = (convention(tokenizer) for convention in CONVENTIONS)
        self.convention = next(convention for convention in conventions if convention.applies)
        self._items: dict[int, VocabularyItem] = {}

    def show(self, token: int, *, bare: bool = False) -> str:
        """Returns an item as it is shown in a list of answers.

        In running text, "bird" starts a word and "##s" continues one. At a blank without a space in
        front, as at the beginning of a text or in a script without spaces, words are bare: they
        are items without a space in front, and shown as they are, "bird". An item with a space in
        front would be another text there, and is shown with it, as "▁bird".

        Args:
            token: its id.
            bare: whether the words at the blank are bare.
        """
        item = self.item(token)
        if bare:
            has_space = (item.surface or b"").startswith(b" ")
            shows_space = item.text.startswith((_SPACE, _LONE_SPACE))
            return _SPACE + item.text if has_space and not shows_space else item.text
        continues_word = item.surface is not None and not item.starts
        return CONTINUES + item.text if continues_word else item.text

    def item(self, token: int) -> VocabularyItem:
        """Returns an item by its id; each is decoded once."""
        if token not in self._items:
            self._items[token] = self._decode(token)
        return self._items[token]

    def _decode(self, token: int) -> VocabularyItem:
        """Returns an item by its id, with a text that can be seen.

        White space and control characters are shown by signs or by the name in the vocabulary.
        """
        name: str | None = self._name_of(token)
        if name is None:  # the model's softmax is larger than the vocabulary
            return VocabularyItem(f"[id {token}]", starts=True, surface=None)
        if token in self._controls:
            return VocabularyItem(name, starts=True, surface=None)
        if added := self._added.get(token):
            item = self.convention.read_added(name, strips=added.lstrip)
        else:
            item = self.convention.read(name)
        text = item.text.strip()
        if text and text.isprintable():
            return item._replace(text=text)
        surface = item.surface or b""
        # `show` must not put "##" before a sign that stands for an item, hence starts=True
        if surface and not surface.strip(b" "):  # spaces alone
            return item._replace(text=_LONE_SPACE * len(surface), starts=True)
        # Nothing of the text can be seen: the name of the item stands for it.
        name = name.replace(" ", _SPACE).replace("\n", "\\n").replace("\t", "\\t")
        return item._replace(text=name, starts=True)


def control_ids(tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    """Returns the ids of all control tokens, which stand for no text.

    These are the special tokens and the added tokens that are marked as special or named like one
    (some tokenizers add the tokens of their chat template as ordinary ones). Other added tokens are
    words.
    """
    ids = set(tokenizer.all_special_ids)
    for id, token in tokenizer.added_tokens_decoder.items():
        if token.special or _MARKUP.fullmatch(token.content.strip()):
            ids.add(id)
    return frozenset(ids)


def control_names(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> list[list[str]]:
    """Returns the names of the control tokens in each text, in order of first appearance.

    A tokenizer reads the name (`[MASK]`, `<|endoftext|>`) as the token itself. The unknown token
    counts only if the text contains its name: it also stands for characters that the vocabulary
    lacks.
    """
    controls = control_ids(tokenizer)
    unknown = tokenizer.unk_token_id
    unknown_name = str(tokenizer.unk_token)
    encodings = tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
    names_of_texts = []
    for text, encoding in zip(texts, encodings, strict=True):
        names: dict[str, None] = {}  # distinct, in order
        for id, name in zip(encoding.ids, encoding.tokens, strict=True):
            if id == unknown and id in controls:
                # an unknown piece has its own characters as a name
                if unknown_name in text:
                    names[unknown_name] = None
            elif id in controls:
                names[name] = None
        names_of_texts.append(list(names))
    return names_of_texts
