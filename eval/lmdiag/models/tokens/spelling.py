"""How a word stands at a blank: its pieces, and the pieces of the text around it.

Pieces depend on their neighbours: a leading space belongs to the piece in most vocabularies, case
and accents may be folded, a quotation mark may be a piece of its own. So the tokenizer is always
given the sentence with the word in it, and the pieces that lie on the word's characters are taken
from what it returns. The text around the blank is taken from such a sentence with a plain word at
the blank, so that the mask does not change how its neighbours are split.

A piece may cover characters on both sides of the boundary between word and text (vocabularies that
contain phrases, or abbreviations with their period). Then the boundary is kept: the text is split
as it is without the word, and the word as it is after the first of `_CARRIERS` that leaves the
boundary alone. So a word's probability is always a product of the conditional probabilities of its
own pieces after the text's own pieces, and different words exclude each other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.models.tokens.vocabulary import control_ids
from lmdiag.types import BadInput, Fold, Query

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Pieces = tuple[int, ...]
"""Token ids of a stretch of text, in order."""

_PLAIN_WORDS = ("word", "thing", "a", "it")
"""Put at the blank to see how the text around it is split: the first that leaves it alone."""

_ANY_WORDS = ("a", "1", "的")
"""Words of which any vocabulary has one."""

_CARRIERS = ("the", "a", "word", ",", ".", "1")
"""What stands before a word whose own context does not leave the boundary alone."""

_JOINED_CARRIERS = ("-", '"', "，", "。", "的", "1")
"""The same where no space stands before a word."""

_UNSPACED = "的"
"""A word before and after which spaces stand as the text around a blank has them."""

_FOLDED: Mapping[Fold, tuple[str, str]] = {
    "case": ("A", "a"), "accents": ("é", "e"), "forms": ("ﬁ", "fi"),
}  # fmt: skip
"""Difference between words -> two texts that are the same tokens where it is ignored."""


class _SplitText(NamedTuple):
    """The pieces of a text before a word, of the word, and of the text after it."""

    before: Pieces
    word: Pieces
    after: Pieces


class SpelledText(NamedTuple):
    """A text as tokens, without special ones.

    Attributes:
        ids: of the tokens.
        spans: start and end of each token, without the blanks before it; of a token of blanks
            alone, the position after it, twice.
        controls: numbers of the tokens that stand for no text of their own: control tokens and the
            unknown token.
        uncovered: positions of visible characters that no token covers.
    """

    ids: Pieces
    spans: list[tuple[int, int]]
    controls: list[int]
    uncovered: list[int]


class Spelling:
    """A tokenizer's pieces of words and texts around a blank.

    Attributes:
        model_id: for messages.
        opening: special tokens that the tokenizer puts before a text.
        closing: special tokens that it puts after a text.
        bos, eos: its beginning-of-sequence and end-of-sequence tokens; None if it has none.
        ends_sentences: whether a period ends a sentence whose blank is its last word.

    Args:
        tokenizer: the tokenizer.
        model_id: for messages.
        final_period: for `ends_sentences`.

    Raises:
        BadInput: the pieces of a text cannot be told from special tokens.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, model_id: str = "", *, final_period: bool = True
    ) -> None:
        self.model_id = model_id
        self.ends_sentences = final_period
        self.bos: int | None = tokenizer.bos_token_id
        self.eos: int | None = tokenizer.eos_token_id
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_padding()
        self._backend.no_truncation()
        self._controls = control_ids(tokenizer)
        for text in _CARRIERS:
            bare, full = (
                self._backend.encode(text, add_special_tokens=with_special).ids
                for with_special in (False, True)
            )
            for start in range(len(full) - len(bare) + 1 if bare else 0):
                if full[start : start + len(bare)] == bare:
                    self.opening: Pieces = tuple(full[:start])
                    self.closing: Pieces = tuple(full[start + len(bare) :])
                    return
        raise BadInput(
            f"model {model_id}: the tokenizer drops plain English words, or splits them otherwise "
            "when it adds special tokens: lmdiag cannot tell which pieces belong to a text"
        )

    def text(self, text: str) -> Pieces:
        """Returns the pieces of a text by itself, without special tokens."""
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def is_control(self, token: int) -> bool:
        """Returns whether a token stands for no text of its own, as the unknown token."""
        return token in self._controls

    def name(self, token: int | None) -> str:
        """Returns the name of a token in the vocabulary; "" if it has none."""
        return "" if token is None or token < 0 else self._backend.id_to_token(token) or ""

    def spell(self, text: str) -> SpelledText:
        """Returns a text by itself as tokens, without special ones."""
        encoding = self._backend.encode(text, add_special_tokens=False)
        spans = []
        is_covered = bytearray(len(text))
        for left, right in encoding.offsets:
            is_covered[left:right] = b"1" * (right - left)
            while left < right and text[left].isspace():
                left += 1
            spans.append((left, right))
        pairs = enumerate(zip(text, is_covered, strict=True))
        uncovered = [n for n, (mark, covered) in pairs if not covered and not _invisible(mark)]
        controls = [number for number, id in enumerate(encoding.ids) if id in self._controls]
        return SpelledText(tuple(encoding.ids), spans, controls, uncovered)

    def around(self, query: Query) -> tuple[Pieces, Pieces]:
        """Returns the pieces left and right of the blank in a sentence, without special tokens."""
        before, after = query.around(_UNSPACED, self._end)
        for word in _PLAIN_WORDS:
            if (split := self._split(before, word, after)) is not None:
                return split.before, split.after
        return self.text(query.context), self.text(after.lstrip())

    def in_sentence(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word at the blank of a sentence; None if it is unscorable."""
        before, after = query.around(word, self._end)
        return self._pieces(word, before, after, "")

    def after(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word that follows a context; None if it is unscorable.

        Nothing follows the word: causal models do not see what does.
        """
        before, _ = query.around(word)
        return self._pieces(word, before, "")

    def is_bare(self, query: Query) -> bool:
        """Returns whether a word at the blank lacks the mark of a word's start.

        A word without a space before it, at the beginning of a text or of a line, after an opening
        quotation mark, a hyphen or a script without spaces, has other pieces than after a space in
        many vocabularies.
        """
        words = [word for word in _ANY_WORDS if not query.around(word)[0].endswith(" ")]
        pairs = ((self.after(word, query), self.after(word, Query("a"))) for word in words)
        return next((bare != marked for bare, marked in pairs if bare and marked), False)

    @property
    def _end(self) -> str:
        """What ends a sentence whose blank is its last word."""
        return "." if self.ends_sentences else ""

    def _pieces(self, word: str, before: str, *afters: str) -> Pieces | None:
        """Returns the word's pieces in the first of the texts that leaves its boundaries alone."""
        carriers = [*_JOINED_CARRIERS]
        if not before or before[-1].isspace():
            carriers = [f"{carrier} " for carrier in _CARRIERS]
        texts = [(before, after) for after in afters] + [(carrier, "") for carrier in carriers]
        for left, right in texts:
            if (split := self._split(left, word, right)) is not None:
                is_scorable = split.word and self._controls.isdisjoint(split.word)
                return split.word if is_scorable else None
        return None

    def _split(self, before: str, word: str, after: str) -> _SplitText | None:
        """Returns the pieces before, in and after a word; None where one crosses its boundary.

        The space before a word belongs to the word. The word has no pieces if some of its
        characters have none: vocabularies without an unknown token drop what they lack.
        """
        sentence = before + word + after
        encoding = self._backend.encode(sentence, add_special_tokens=False)
        start = len(before.rstrip(" "))  # most vocabularies have the space in the word's piece
        end = len(before) + len(word)
        spans = encoding.offsets
        ids = tuple(encoding.ids)
        first = next((i for i, (_, right) in enumerate(spans) if right > start or not before), 0)
        last = next((i for i in range(first, len(ids)) if spans[i][0] >= end), len(ids))
        word_spans = spans[first:last]
        if any(left < start or right > end for left, right in word_spans):
            return None
        has_all_characters = all(
            any(left <= index < right for left, right in word_spans) or _invisible(sentence[index])
            for index in range(len(before), end)
        )
        return _SplitText(ids[:first], ids[first:last] if has_all_characters else (), ids[last:])


def folds_of(tokenizer: PreTrainedTokenizerFast) -> tuple[Fold, ...]:
    """Returns which differences between words the tokenizer ignores."""
    return tuple(fold for fold, pair in _FOLDED.items() if _reads_alike(tokenizer, *pair))


def _reads_alike(tokenizer: PreTrainedTokenizerFast, text: str, plain: str) -> bool:
    """Whether two texts are the same tokens; two unknown ones count as different."""
    backend = tokenizer.backend_tokenizer
    normalize = backend.normalizer.normalize_str if backend.normalizer is not None else str
    if normalize(text) == normalize(plain):
        return True
    ids = backend.encode(text, add_special_tokens=False).ids
    plain_ids = backend.encode(plain, add_special_tokens=False).ids
    return bool(ids and ids == plain_ids and tokenizer.unk_token_id not in ids)


def split_scripts(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str]) -> list[set[str]]:
    """Returns the scripts of each text of which a character is several tokens.

    A script is called as Unicode calls its characters, e.g. "CYRILLIC".
    """
    scripts = []
    for text in texts:
        spans = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets
        shared = [text[start] for (_, end), (start, _) in pairwise(spans) if start < end]
        scripts.append({unicodedata.name(character, "UNNAMED").split()[0] for character in shared})
    return scripts


def _invisible(character: str) -> bool:
    """Whether a tokenizer may drop the character without losing a part of the word.

    Marks, and vowels and finals of decomposed Korean syllables, are one character with the letter
    before them after a normalizer, which is at the place of the letter alone.
    """
    is_mark = unicodedata.category(character)[0] in "MC" or "\u1160" <= character <= "\u11ff"
    return character.isspace() or is_mark
