"""Where words begin and end, in vocabularies of every convention."""

from __future__ import annotations

import pytest
import torch
from tokenizer_files import byte_level, ending, sentencepiece, wordlevel, wordpiece
from transformers import PreTrainedTokenizerFast

from lmdiag.models.tokens import vocabulary
from lmdiag.models.tokens.boundaries import Boundaries, Prefix
from lmdiag.models.tokens.spelling import Spelling
from lmdiag.models.tokens.vocabulary import Convention, Vocabulary, VocabularyItem

BYTES = byte_level("Ġ b", "Ġb i", "' t", "- -", "Ġ Ġ")
SPACED = sentencepiece("▁ab", "b'", "'a", "b.", "▁-")
PIECES = wordpiece("a", "ab", "##b", "##'", "-", ".")
ENDED = ending("a</w>", "b</w>", "ab</w>", ".</w>")


def boundaries(tokenizer: PreTrainedTokenizerFast, spare: int = 0) -> Boundaries:
    """The boundaries of a vocabulary, with some ids beyond the tokenizer's."""
    return Boundaries(Vocabulary(tokenizer), len(tokenizer) + spare)


def names(tokenizer: PreTrainedTokenizerFast, which: torch.Tensor) -> set[str]:
    """The items of a vocabulary for which something is true."""
    return set(tokenizer.convert_ids_to_tokens(which.nonzero()[:, 0].tolist()))


def look(tokenizer: PreTrainedTokenizerFast, *pieces: str, bare: bool = False) -> Prefix:
    """What pieces, given by their names, are at a blank."""
    ids = tuple(tokenizer.convert_tokens_to_ids(list(pieces)))
    assert None not in ids
    return boundaries(tokenizer).look(ids, bare=bare)


class TestItems:
    """The three sets of items, listed by hand."""

    def test_sentencepiece(self) -> None:
        # The vocabulary is <unk> <s> </s>, the characters ' - . a b ▁, and the pieces, with what
        # they are merged from: ▁a ▁ab b' 'a b. ▁-
        found = boundaries(SPACED)
        assert names(SPACED, found.starts) == {"▁", "▁a", "▁ab"}
        assert names(SPACED, found.bare_starts) == {"a", "b", "b'"}  # as after a line break
        assert names(SPACED, found.continues) == {"a", "b", "'", "-", "b'", "'a", "b."}
        assert not found.certain

    def test_wordpiece(self) -> None:
        found = boundaries(PIECES, spare=2)
        assert names(PIECES, found.starts[: len(PIECES)]) == {"a", "ab"}
        assert not Spelling(PIECES).is_bare("")  # a first word has no other mark than the rest
        assert names(PIECES, found.continues[: len(PIECES)]) == {"##b", "##'"}
        assert not found.continues[len(PIECES) :].any()  # ids without a token end a word
        assert not found.starts[len(PIECES) :].any()

    def test_byte_level(self) -> None:
        found = boundaries(BYTES)
        assert names(BYTES, found.starts) == {"Ġ", "Ġb", "Ġbi"}
        going_on = names(BYTES, found.continues)
        assert {"b", "7", "'", "-", "'t"} <= going_on
        assert not {"Ġb", "Ġ", "ĠĠ", "--", ".", "Ċ", "<|end|>"} & going_on
        assert going_on >= {"Ã", "©", "â"}  # parts of characters, which may be letters
        bare = names(BYTES, found.bare_starts)  # no blank before a text's first word
        assert {"b", "7"} <= bare
        assert not {"Ġb", "Ġ", "'t", "."} & bare

    def test_marked_ends(self) -> None:
        found = boundaries(ENDED)
        assert names(ENDED, found.starts) == {"a", "b", "a</w>", "b</w>", "ab</w>"}
        assert names(ENDED, found.continues) >= {"a", "b", "a</w>", "b</w>", "ab</w>"}
        assert found.certain


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

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Continued | None:
        return cls() if any(name.endswith("@@") for name in tokenizer.get_vocab()) else None

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
    assert boundaries(tokenizer).certain


class TestEnd:
    def test_mass_of_the_items_that_end_a_word(self) -> None:
        # Six items, two of which (##b ##') continue: with logits of 0 the others have 9/11.
        log_probs = torch.zeros(3, len(PIECES)).log_softmax(-1)
        expected = torch.tensor(9 / 11).log().expand(3)
        torch.testing.assert_close(boundaries(PIECES).end(log_probs), expected)

    def test_no_mass(self) -> None:
        found = boundaries(PIECES)
        log_probs = torch.zeros(1, len(PIECES)).masked_fill(~found.continues, -torch.inf)
        assert found.end(log_probs.log_softmax(-1)).tolist() == [-torch.inf]
