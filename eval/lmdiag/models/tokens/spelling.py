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
from collections.abc import Iterable, Mapping, Sequence
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
        # The pieces of a plain text without special tokens (`bare`) are searched in those with them
        # (`full`): opening and closing are what stands around them.
        for text in _CARRIERS:
            bare = self._backend.encode(text, add_special_tokens=False).ids
            full = self._backend.encode(text, add_special_tokens=True).ids
            if not bare:  # the tokenizer drops the text: the next one is tried
                continue
            for start in range(len(full) - len(bare) + 1):
                end = start + len(bare)
                if full[start:end] == bare:
                    self.opening: Pieces = tuple(full[:start])
                    self.closing: Pieces = tuple(full[end:])
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
        if token is None or token < 0:
            return ""
        return self._backend.id_to_token(token) or ""

    def spell(self, text: str) -> SpelledText:
        """Returns a text by itself as tokens, without special ones.

        The result also has where each token stands in the text, without the blanks before it, which
        tokens are control tokens, and which characters no token covers.
        """
        encoding = self._backend.encode(text, add_special_tokens=False)
        spans = []
        is_covered = bytearray(len(text))  # 0 for a character that no token covers
        for start, end in encoding.offsets:
            is_covered[start:end] = b"1" * (end - start)
            while start < end and text[start].isspace():
                start += 1
            spans.append((start, end))
        uncovered = []
        for position, (character, covered) in enumerate(zip(text, is_covered, strict=True)):
            if not covered and not _may_be_dropped(character):
                uncovered.append(position)
        controls = [number for number, id in enumerate(encoding.ids) if id in self._controls]
        return SpelledText(tuple(encoding.ids), spans, controls, uncovered)

    def around(self, query: Query) -> tuple[Pieces, Pieces]:
        """Returns the pieces left and right of the blank in a sentence, without special tokens.

        The sentence is split with a plain word at the blank, since the neighbours of a mask may be
        split in another way.
        """
        before, after = query.around(_UNSPACED, self._sentence_end)
        for word in _PLAIN_WORDS:
            split = self._split(before, word, after)
            if split is not None:
                return split.before, split.after
        # every plain word shares a piece with its neighbours: each side is split by itself, the
        # right one without the space that stands after the blank
        return self.text(query.context), self.text(after.lstrip())

    def in_sentence(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word at the blank of a sentence; None if it is unscorable."""
        before, after = query.around(word, self._sentence_end)
        # if a piece has characters of the word and of `after`, the word is split without `after`
        return self._pieces(word, before, (after, ""))

    def after(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word that follows a context; None if it is unscorable.

        Nothing follows the word: causal models do not see what does.
        """
        before, _ = query.around(word)
        return self._pieces(word, before, ("",))

    def is_bare(self, query: Query) -> bool:
        """Returns whether a word at the blank lacks the mark of a word's start.

        A word without a space before it, at the beginning of a text or of a line, after an opening
        quotation mark, a hyphen or a script without spaces, has other pieces than after a space in
        many vocabularies.
        """
        for word in _ANY_WORDS:
            text_before, _ = query.around(word)
            if text_before.endswith(" "):  # a word after a space has the mark
                continue
            pieces_at_blank = self.after(word, query)
            pieces_after_space = self.after(word, Query("a"))
            if pieces_at_blank and pieces_after_space:
                return pieces_at_blank != pieces_after_space
        return False  # a space stands before each word, or none can be compared

    @property
    def _sentence_end(self) -> str:
        """What ends a sentence whose blank is its last word."""
        return "." if self.ends_sentences else ""

    def _pieces(self, word: str, before: str, afters: Sequence[str]) -> Pieces | None:
        """Returns the pieces of a word, from the first text that leaves its boundaries alone.

        None if the word is unscorable: it has no pieces, or an unknown or control token.

        Args:
            word: the word.
            before: text before it, with the space that belongs there.
            afters: texts after it that are tried, before other texts are put before the word.
        """
        carriers = list(_JOINED_CARRIERS)
        if not before or before[-1].isspace():
            carriers = [f"{carrier} " for carrier in _CARRIERS]
        texts_around = [(before, after) for after in afters]
        texts_around += [(carrier, "") for carrier in carriers]
        for left, right in texts_around:
            split = self._split(left, word, right)
            if split is not None:
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
        spans = encoding.offsets  # start and end of each piece, in characters
        ids = tuple(encoding.ids)
        first = 0  # number of the word's first piece
        if before:
            first = next((number for number, (_, right) in enumerate(spans) if right > start), 0)
        last = first  # number of the piece after its last one
        while last < len(ids) and spans[last][0] < end:
            last += 1
        word_spans = spans[first:last]
        if any(left < start or right > end for left, right in word_spans):
            return None  # a piece has characters of the word and of the text around it
        word_pieces = ids[first:last]
        for position in range(len(before), end):
            is_covered = any(left <= position < right for left, right in word_spans)
            if not is_covered and not _may_be_dropped(sentence[position]):
                word_pieces = ()
                break
        return _SplitText(ids[:first], word_pieces, ids[last:])


def folds_of(tokenizer: PreTrainedTokenizerFast) -> tuple[Fold, ...]:
    """Returns which differences between words the tokenizer ignores, for example ("case",)."""
    return tuple(
        fold for fold, (text, plain) in _FOLDED.items() if _reads_alike(tokenizer, text, plain)
    )


def _reads_alike(tokenizer: PreTrainedTokenizerFast, text: str, plain: str) -> bool:
    """Whether two texts are the same tokens; two unknown ones count as different."""
    backend = tokenizer.backend_tokenizer
    # `str` leaves a text as it is, as a tokenizer without a normalizer does
    normalize = backend.normalizer.normalize_str if backend.normalizer is not None else str
    if normalize(text) == normalize(plain):
        return True
    ids = backend.encode(text, add_special_tokens=False).ids
    plain_ids = backend.encode(plain, add_special_tokens=False).ids
    return bool(ids and ids == plain_ids and tokenizer.unk_token_id not in ids)


def split_scripts(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str]) -> list[set[str]]:
    """Returns for each text the scripts in which a character is divided into several tokens.

    A script is the first word of the name of a character in Unicode, e.g. "CYRILLIC".
    """
    scripts_of_texts = []
    for text in texts:
        spans = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets
        scripts = set()
        for (_, end), (next_start, _) in pairwise(spans):
            if next_start < end:  # both tokens have a part of this character
                name = unicodedata.name(text[next_start], "UNNAMED")
                scripts.add(name.split()[0])
        scripts_of_texts.append(scripts)
    return scripts_of_texts


def _may_be_dropped(character: str) -> bool:
    """Whether a word is complete if no token covers this character of it.

    This holds for white space and control characters, and for marks (accents) and the vowels and
    finals of decomposed Korean syllables: a normalizer may join these with the letter before them,
    and then their token covers the letter alone.
    """
    is_mark_or_control = unicodedata.category(character)[0] in "MC"
    is_korean_vowel_or_final = "\u1160" <= character <= "\u11ff"
    return character.isspace() or is_mark_or_control or is_korean_vowel_or_final
