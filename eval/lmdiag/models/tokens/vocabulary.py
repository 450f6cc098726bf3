"""The items of a model's vocabulary: how they are shown, and which of them start a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.models.tokens.conventions import CONTINUES, VocabularyItem, convention_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Vocabulary:
    """The items over which a model's softmax runs; there may be more than the tokenizer has.

    Args:
        tokenizer: the model's.

    Attributes:
        marks_ends: whether the last piece of a word is marked, and not the first (`bird</w>`).
        writes_blanks: whether white space is a part of items.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._name = tokenizer.backend_tokenizer.id_to_token
        self._added = tokenizer.added_tokens_decoder
        self._special = frozenset(tokenizer.all_special_ids)
        self._convention = convention_of(tokenizer)
        self._items: dict[int, VocabularyItem] = {}
        self.marks_ends = self._convention.marks_ends
        self.writes_blanks = self._convention.writes_blanks

    def show(self, token: int, *, bare: bool = False) -> str:
        """Returns an item as it is shown in a list of answers.

        Args:
            token: its id.
            bare: whether words lack the mark of a word's start there.
        """
        item = self.item(token)
        whole = item.surface is None or item.starts or bare
        return item.text if whole else CONTINUES + item.text

    def item(self, token: int) -> VocabularyItem:
        """Returns an item by its id; each is decoded once."""
        if token not in self._items:
            self._items[token] = self._decode(token)
        return self._items[token]

    def _decode(self, token: int) -> VocabularyItem:
        name: str | None = self._name(token)
        if name is None:
            return VocabularyItem(f"[id {token}]", True, None)
        added = self._added.get(token)
        if token in self._special or (added is not None and added.special):
            return VocabularyItem(name, True, None)
        if added is None:
            item = self._convention.read(name)
        else:
            item = self._convention.read_added(name, strips=added.lstrip)
        text = item.text.strip()
        if text and text.isprintable():
            return item._replace(text=text)
        # Nothing of the text can be seen: the name of the item stands for it.
        name = name.replace(" ", "▁").replace("\n", "\\n").replace("\t", "\\t")
        return item._replace(text=name, starts=True)
