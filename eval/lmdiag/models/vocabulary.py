"""How the items of a vocabulary are shown, and which of them start a word at a blank.

Vocabularies mark one side of a word's boundary: WordPiece marks what continues a word (`##s`),
byte-level pairs and SentencePiece what starts one (`Ġbird`, `▁bird`), older byte pairs what ends
one (`bird</w>`). Shown, all look the same: `bird` starts a word, `##bird` continues the one before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.models.controls import Controls

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CONTINUES = "##"
"""Shown before an item that would continue the word before the blank."""


class Item(NamedTuple):
    """An item of the vocabulary, as text.

    Attributes:
        text: its characters without marks and without the space before it; its name in the
            vocabulary where that leaves nothing to be seen, or for bytes that are no text.
        starts: whether a word starts with it in running text.
        special: whether it stands for no text at all ([SEP], or an id beyond the tokenizer's).
    """

    text: str
    starts: bool
    special: bool = False


class Vocabulary:
    """The items over which a model's softmax runs.

    Models may have more of them than the tokenizer has tokens.

    Args:
        tokenizer: the model's.

    Attributes:
        controls: those that stand for no text, in texts.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.controls = Controls(tokenizer)
        self._tokenizer = tokenizer
        self._added = tokenizer.added_tokens_decoder
        self._special = frozenset(tokenizer.all_special_ids)
        model = tokenizer.backend_tokenizer.model
        self._continuing: str = getattr(model, "continuing_subword_prefix", None) or ""
        self._ending: str = getattr(model, "end_of_word_suffix", None) or ""
        self._bytes = _bytes_of_characters() if _is_byte_level(tokenizer) else None
        self._mark = "" if self._bytes or self._continuing or self._ending else _mark(tokenizer)
        self._marks_opening = self._starts_marked()
        self._items: dict[int, Item] = {}

    def show(self, token: int, *, opening: bool = False) -> str:
        """Returns an item as it is shown in a list of answers.

        Args:
            token: its id.
            opening: whether the blank opens the text, so that there is no word to continue.
        """
        item = self.item(token)
        if item.special or item.starts or (opening and not self._marks_opening):
            return item.text
        return CONTINUES + item.text

    def item(self, token: int) -> Item:
        """Returns an item as text."""
        if token not in self._items:
            self._items[token] = self._read(token)
        return self._items[token]

    @property
    def opens_marked(self) -> bool:
        """Whether a text's first word has the mark of a word's start too."""
        return self._marks_opening

    @property
    def marks_ends(self) -> bool:
        """Whether the last piece of a word is marked, and not the first (`bird</w>`)."""
        return bool(self._ending)

    def ends(self, token: int) -> bool:
        """Whether an item has the mark of a word's end; False where ends are not marked."""
        name: str | None = self._tokenizer.backend_tokenizer.id_to_token(token)
        return bool(self._ending) and name is not None and name.endswith(self._ending)

    def surface(self, token: int) -> bytes | None:
        """Returns what an item adds to a text, in UTF-8, a space in front where it starts a word.

        The space is there whatever the vocabulary's mark (`bird` of WordPiece gives b" bird"), but
        for vocabularies that mark ends. The bytes may be a part of a character. None for an item
        that stands for no text.
        """
        name: str | None = self._tokenizer.backend_tokenizer.id_to_token(token)
        added = self._added.get(token)
        if name is None or token in self._special or (added is not None and added.special):
            return None
        if self._ending:
            return name.removesuffix(self._ending).encode()
        if added is None:
            if self._bytes is not None and set(name) <= self._bytes.keys():
                return bytes(self._bytes[character] for character in name)
            if self._continuing and name.startswith(self._continuing):
                return name.removeprefix(self._continuing).encode()
            if byte := re.fullmatch(r"<0x([0-9A-F]{2})>", name):
                return bytes.fromhex(byte[1])
        starts = self._starts(name, added is not None and added.lstrip)
        text = name.replace(self._mark or " ", " ")
        return (f" {text}" if starts and not text[:1].isspace() else text).encode()

    def _read(self, token: int) -> Item:
        name: str | None = self._tokenizer.backend_tokenizer.id_to_token(token)
        if name is None:
            return Item(f"[id {token}]", starts=True, special=True)
        added = self._added.get(token)
        if token in self._special or (added is not None and added.special):
            return Item(name, starts=True, special=True)
        if added is not None:
            return _visible(name, name, self._starts(name, added.lstrip))
        text, starts = self._unmark(name)
        return _visible(text, name, starts)

    def _unmark(self, name: str) -> tuple[str, bool]:
        """Returns text and start of an item of the model itself (not an added token)."""
        if self._bytes is not None:
            text = _decode(name, self._bytes)
            return text, text[:1].isspace()
        if self._continuing:
            return name.removeprefix(self._continuing), not name.startswith(self._continuing)
        if self._ending:
            whole = name.endswith(self._ending)
            return name.removesuffix(self._ending) + ("" if whole else CONTINUES), True
        if byte := re.fullmatch(r"<0x([0-9A-F]{2})>", name):
            code = int(byte[1], 16)
            return chr(code) if code < 0x80 else name, False
        return name.replace(self._mark or " ", " "), self._starts(name, False)

    def _starts(self, name: str, strips: bool) -> bool:
        """Whether a name without further marks starts a word."""
        if self._bytes is not None:
            return strips or name[:1].isspace()
        return strips or not self._mark or name.startswith((self._mark, " "))

    def _starts_marked(self) -> bool:
        """Whether the first piece of a text has the mark of a word's start."""
        pieces = self._tokenizer.backend_tokenizer.encode("a", add_special_tokens=False).ids
        return not pieces or self._read(pieces[0]).starts


def _visible(text: str, name: str, starts: bool) -> Item:
    """Makes an item; where its text has nothing to be seen, its name stands for it."""
    stripped = text.strip()
    if stripped and stripped.isprintable():
        return Item(stripped, starts)
    return Item(name.replace(" ", "▁").replace("\n", "\\n").replace("\t", "\\t"), True)


def _decode(name: str, bytes_of: dict[str, int]) -> str:
    """Returns the text of a byte-level item; its own name, less the space, where it is none."""
    try:
        return bytes(bytes_of[character] for character in name).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return " " + name[1:] if name.startswith("Ġ") else name


def _bytes_of_characters() -> dict[str, int]:
    """Returns the visible character by which byte-level vocabularies write each of the 256 bytes.

    Bytes that are visible in Latin-1 stand for themselves, the others for U+0100 and following.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [code for code in range(0x100) if code not in visible]
    table = {chr(code): code for code in visible}
    return table | {chr(0x100 + index): code for index, code in enumerate(others)}


def _is_byte_level(tokenizer: PreTrainedTokenizerFast) -> bool:
    return "ByteLevel(" in repr(tokenizer.backend_tokenizer.decoder)


def _mark(tokenizer: PreTrainedTokenizerFast) -> str:
    """Returns SentencePiece's mark of a word's start if the tokenizer uses it, else ""."""
    backend = tokenizer.backend_tokenizer
    steps = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
    return "▁" if any("▁" in repr(step) for step in steps) else ""
