"""How words stand at a blank, in every convention, on vocabularies small enough to read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from lmdiag.models.tokens.spelling import Spelling, is_cased
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.schema import BadInput, Query
from models.toys import byte_level, names, sentencepiece, wordpiece

BERT = wordpiece(
    "a", "the", "robin", "is", "bird", "##s", "##ing", "don", "’", "t", ".", ",", "it", "naive"
)  # fmt: skip
GPT2 = byte_level("Ġ t", "Ġt h", "Ġth e", "Ġ b", "Ġb i", "Ġbi r", "Ġbir d", "b i", "bi r", "bir d")
LLAMA = sentencepiece("▁the", "▁bird", "bird", "s", "word", "a", "it")


class TestWord:
    """Pieces of a candidate."""

    @pytest.mark.parametrize(
        ("word", "pieces"),
        [
            ("bird", ["bird"]),
            ("Birds", ["bird", "##s"]),
            ("naïve", ["naive"]),  # accents folded, as the tokenizer does
            ("don’t", ["don", "’", "t"]),  # punctuation splits a word into pieces
            ("penguin", None),  # [UNK]
            ("birdx", None),
            ("[MASK]", None),  # no word at all
            ("", None),
        ],
    )
    def test_wordpiece(self, word: str, pieces: list[str] | None) -> None:
        spelling = Spelling(BERT)
        assert names(BERT, spelling.in_sentence(word, Query("a robin is a"))) == pieces
        assert names(BERT, spelling.in_sentence(word, Query("", "is the robin."))) == pieces

    @pytest.mark.parametrize(
        ("context", "word", "pieces"),
        [
            ("the", "bird", ["Ġbird"]),
            ("the", "bat", ["Ġb", "a", "t"]),
            ("", "bird", ["bird"]),  # opens the text: no blank before it
            ("the“", "bird", ["Ġbird"]),
            ("the", "é", ["Ġ", "Ã", "©"]),  # two bytes, none unknown
        ],
    )
    def test_byte_level(self, context: str, word: str, pieces: list[str]) -> None:
        assert names(GPT2, Spelling(GPT2).after(word, context)) == pieces

    @pytest.mark.parametrize(
        ("context", "word", "pieces"),
        [
            ("the", "bird", ["▁bird"]),
            ("the", "birds", ["▁bird", "s"]),
            ("the", "sit", ["▁", "s", "it"]),  # the lone blank is the word's
            ("", "bird", ["▁bird"]),
            ("", "sit", ["▁", "s", "it"]),
            ("the", "bixd", None),
        ],
    )
    def test_sentencepiece(self, context: str, word: str, pieces: list[str] | None) -> None:
        assert names(LLAMA, Spelling(LLAMA).after(word, context)) == pieces

    def test_dropped_characters_are_unscorable(self) -> None:
        """A byte-pair vocabulary without unknown token loses what it lacks: no pieces, no score."""
        tokenizer = sentencepiece("▁the", "▁bird", drop=True)
        assert names(tokenizer, Spelling(tokenizer).after("birxd", "the")) is None
        assert names(tokenizer, Spelling(tokenizer).after("x", "the")) is None
        assert names(tokenizer, Spelling(tokenizer).after("bird", "the")) == ["▁bird"]

    @given(st.text("abirdst ", min_size=1, max_size=8).map(lambda w: w.strip() or "a"))
    @settings(max_examples=60)
    def test_pieces_spell_the_word(self, word: str) -> None:
        """Text and pieces put together decode to the sentence, whatever the word."""
        spelling = Spelling(GPT2)
        pieces = spelling.after(word, "the bird")
        assert pieces is not None
        assert GPT2.decode([*spelling.text("the bird"), *pieces]) == f"the bird {word}"


class TestBoundary:
    """Vocabularies whose pieces cross the boundary between word and text."""

    PHRASES = sentencepiece("▁new", "▁new▁york", "▁york", "▁the", "▁etc", "▁etc.", split=False)

    def test_premise(self) -> None:
        whole = self.PHRASES.encode("the new york", add_special_tokens=False)
        assert names(self.PHRASES, whole) == ["▁the", "▁new▁york"]

    def test_left(self) -> None:
        """The context keeps its own pieces, and the word those it has elsewhere after a space."""
        spelling = Spelling(self.PHRASES)
        assert names(self.PHRASES, spelling.text("the new")) == ["▁the", "▁new"]
        assert names(self.PHRASES, spelling.after("york", "the new")) == ["▁york"]

    def test_right(self) -> None:
        spelling = Spelling(self.PHRASES)
        assert names(self.PHRASES, spelling.in_sentence("etc", Query("the"))) == ["▁etc"]

    def test_words_exclude_each_other(self) -> None:
        """Different words have different pieces, so that no mass is counted twice."""
        spelling = Spelling(self.PHRASES)
        pieces = {word: spelling.after(word, "the new") for word in ("york", "new", "the", "etc")}
        assert len(set(pieces.values())) == len(pieces)


class TestAround:
    """Pieces of the text on both sides of a blank."""

    @pytest.mark.parametrize(
        ("query", "left", "right"),
        [
            (Query("a robin is a"), ["a", "robin", "is", "a"], ["."]),
            (Query("the", "is a bird."), ["the"], ["is", "a", "bird", "."]),
            (Query("", "is a bird"), [], ["is", "a", "bird"]),
            (Query("the", ", the bird"), ["the"], [",", "the", "bird"]),
        ],
    )
    def test_wordpiece(self, query: Query, left: list[str], right: list[str]) -> None:
        found = Spelling(BERT).around(query)
        assert [names(BERT, side) for side in found] == [left, right]

    def test_no_blank_is_doubled_or_lost(self) -> None:
        """No lone `Ġ` before the blank, the blank of what follows kept, none before a period."""
        spelling = Spelling(GPT2)
        left, right = spelling.around(Query("the", "the bird."))
        assert names(GPT2, left) == ["t", "h", "e"]
        assert names(GPT2, right) == ["Ġthe", "Ġbird", "."]
        assert names(GPT2, spelling.around(Query("the"))[1]) == ["."]

    @pytest.mark.parametrize("right", ["’s", "'s bird", ".", "…", "’ll the"])
    def test_glued(self, right: str) -> None:
        """Marks and clitics follow the word directly: their first piece has no blank."""
        first = names(GPT2, Spelling(GPT2).around(Query("the", right))[1])[0]  # type: ignore[index]
        assert not first.startswith("Ġ")

    def test_quotes_are_not_clitics(self) -> None:
        first = names(GPT2, Spelling(GPT2).around(Query("the", "'so' the"))[1])[0]  # type: ignore[index]
        assert first.startswith("Ġ")


class TestTemplate:
    def test_both_sides(self) -> None:
        spelling = Spelling(BERT)
        assert (spelling.opening, spelling.closing) == ((2,), (3,))

    def test_bos(self) -> None:
        tokenizer = sentencepiece("▁the", bos=True)
        assert Spelling(tokenizer).opening == (1,)

    def test_end(self) -> None:
        spelling = Spelling(byte_level(end=True))
        assert (spelling.opening, spelling.closing) == ((), (0,))

    def test_none(self) -> None:
        assert (Spelling(GPT2).opening, Spelling(GPT2).closing) == ((), ())

    def test_nothing_spelt(self) -> None:
        cyrillic = Tokenizer(models.BPE({"ж": 0, "у": 1, "к": 2}, []))
        with pytest.raises(BadInput, match="drops plain English words"):
            Spelling(PreTrainedTokenizerFast(tokenizer_object=cyrillic))

    def test_truncation_of_the_file_is_off(self) -> None:
        """A tokenizer saved with truncation would silently cut contexts."""
        tokenizer = byte_level()
        tokenizer.backend_tokenizer.enable_truncation(2)
        assert len(Spelling(tokenizer).text("a long text")) == 11


@pytest.mark.parametrize(
    ("tokenizer", "cased"),
    [
        (wordpiece("a", "A"), False),
        (wordpiece("a", "A", lower=False), True),
        (wordpiece("x", lower=False), True),  # both unknown: still cased
        (GPT2, True),
        (LLAMA, True),
    ],
)
def test_is_cased(tokenizer: object, cased: bool) -> None:
    assert is_cased(tokenizer) is cased  # type: ignore[arg-type]


class TestShow:
    """Items as they stand in a list of answers."""

    @staticmethod
    def shown(tokenizer: object, *, opening: bool = False) -> dict[str, str]:
        vocabulary = Vocabulary(tokenizer)  # type: ignore[arg-type]
        entries = tokenizer.get_vocab()  # type: ignore[attr-defined]
        return {name: vocabulary.show(token, opening=opening) for name, token in entries.items()}

    def test_wordpiece(self) -> None:
        shown = self.shown(BERT)
        expected = {"bird": "bird", "##s": "##s", ".": ".", "[MASK]": "[MASK]", "[UNK]": "[UNK]"}
        assert {name: shown[name] for name in expected} == expected

    def test_byte_level(self) -> None:
        shown = self.shown(GPT2)
        expected = {
            "Ġbird": "bird", "bird": "##bird", ".": "##.", "<|end|>": "<|end|>",
            "Ġ": "Ġ",  # nothing to be seen: its name
            "Ċ": "Ċ", "Ã": "##Ã",  # half a character: its name
        }  # fmt: skip
        assert {name: shown[name] for name in expected} == expected

    def test_bytes_make_text(self) -> None:
        shown = self.shown(byte_level("Ã ©", "Ġ Ã©"))
        assert shown["Ã©"] == "##é"
        assert shown["ĠÃ©"] == "é"

    def test_opening(self) -> None:
        """Where the blank opens the text there is no word to continue."""
        assert self.shown(GPT2, opening=True)["bird"] == "bird"
        assert self.shown(LLAMA, opening=True)["bird"] == "##bird"  # would have a ▁ there, too
        assert self.shown(BERT, opening=True)["##s"] == "##s"

    def test_sentencepiece(self) -> None:
        shown = self.shown(LLAMA)
        expected = {"▁bird": "bird", "bird": "##bird", "▁": "▁", "</s>": "</s>"}
        assert {name: shown[name] for name in expected} == expected

    def test_byte_fallback(self) -> None:
        shown = self.shown(sentencepiece("▁the", "<0x41>", "<0xE2>", "<0x0A>"))
        assert (shown["<0x41>"], shown["<0xE2>"]) == ("##A", "##<0xE2>")
        assert shown["<0x0A>"] == "<0x0A>"

    def test_added_words(self) -> None:
        tokenizer = byte_level("Ġ b")
        tokenizer.add_tokens([" zebra", "gnu"])
        shown = self.shown(tokenizer)
        assert (shown[" zebra"], shown["gnu"]) == ("zebra", "##gnu")

    def test_beyond_the_tokenizer(self) -> None:
        assert Vocabulary(GPT2).show(50_300) == "[id 50300]"
