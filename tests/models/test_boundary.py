"""Where words begin and end, in vocabularies of every convention."""

from __future__ import annotations

import pytest
from tokenizer_files import byte_level, ending, sentencepiece, wordlevel
from transformers import PreTrainedTokenizerFast

from lmdiag.models.tokens import vocabulary
from lmdiag.models.tokens.boundaries import Boundaries, Prefix
from lmdiag.models.tokens.vocabulary import Convention, Vocabulary, VocabularyItem

BYTES = byte_level("Ġ b", "Ġb i", "' t", "- -", "Ġ Ġ")
SPACED = sentencepiece("▁ab", "b'", "'a", "b.", "▁-")
ENDED = ending("a</w>", "b</w>", "ab</w>", ".</w>")


def look(tokenizer: PreTrainedTokenizerFast, *pieces: str, bare: bool = False) -> Prefix:
    """What pieces, given by their names, are at a blank."""
    ids = tuple(tokenizer.convert_tokens_to_ids(list(pieces)))
    assert None not in ids
    return Boundaries(Vocabulary(tokenizer), len(tokenizer)).look(ids, bare=bare)


class TestWords:
    @pytest.mark.parametrize(
        ("tokenizer", "pieces", "word", "goes_on"),
        [
            (SPACED, "▁", None, True),
            (SPACED, "▁ab", "ab", True),
            (SPACED, "▁ab b'", None, True),
            (SPACED, "▁ab b' a", "abb'a", True),
            (SPACED, "▁ab - a", "ab-a", True),
            (SPACED, "▁ab -", None, True),
            (SPACED, "▁ab - -", None, False),
            (SPACED, "▁ab ' -", None, False),
            (SPACED, "▁ab b.", None, False),
            (SPACED, "▁ab ▁ab", None, False),
            (SPACED, "▁ ▁ab", None, False),
            (SPACED, "▁- a", None, False),
            (SPACED, "a", None, False),
            (SPACED, "▁ab </s>", None, False),
            (BYTES, "Ġb Ã", None, True),  # the first half of é
            (BYTES, "Ġb Ã ©", "bé", True),
            (BYTES, "Ġb ©", None, False),  # a second half without a first
            (BYTES, "Ġb â Ģ", None, True),
            (BYTES, "Ġb â Ģ Ļ", None, True),  # ’
            (BYTES, "Ġb â Ģ Ļ s", "b’s", True),
            (BYTES, "Ġb â Ģ Ŀ", None, False),  # ”
            (BYTES, "Ġb 't", "b't", True),
            (BYTES, "Ġ 7", "7", True),
            (BYTES, "b", None, False),
            (ENDED, "b", None, True),
            (ENDED, "b a ab</w>", "baab", False),
            (ENDED, "b .</w>", None, False),
        ],
    )
    def test_after_a_word(
        self, tokenizer: PreTrainedTokenizerFast, pieces: str, word: str | None, goes_on: bool
    ) -> None:
        assert look(tokenizer, *pieces.split()) == Prefix(word, goes_on)

    def test_words_without_a_mark(self) -> None:
        assert look(BYTES, "b", "i", bare=True) == Prefix("bi", True)
        assert look(BYTES, "Ġb", bare=True) == Prefix(None, False)
        assert look(SPACED, "a", bare=True) == Prefix("a", True)
        assert look(SPACED, "▁ab", bare=True) == Prefix(None, False)

    def test_combining_marks_are_letters(self) -> None:
        tokenizer = sentencepiece("▁e\u0301", "\u0301")
        assert look(tokenizer, "▁e", "\u0301").word == "e\u0301"


class Continued(Convention):
    """subword-nmt's convention: `bi@@ rd` is one word."""

    marks_ends = True

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.applies = any(name.endswith("@@") for name in tokenizer.get_vocab())

    def read(self, name: str) -> VocabularyItem:
        text = name.removesuffix("@@")
        return VocabularyItem(text, True, text.encode(), ends=text == name)


def test_another_convention_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "CONVENTIONS", (Continued, *vocabulary.CONVENTIONS))
    tokenizer = wordlevel("bi@@", "rd", "tree", ".")
    assert look(tokenizer, "bi@@") == Prefix(None, True)
    assert look(tokenizer, "bi@@", "rd") == Prefix("bird", False)
    assert look(tokenizer, "tree", "rd").open is False
    assert Vocabulary(tokenizer).show(tokenizer.convert_tokens_to_ids("bi@@")) == "bi"
    assert Boundaries(Vocabulary(tokenizer), len(tokenizer)).certain
