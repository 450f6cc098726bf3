"""Causal models: the context, what follows it, and what may stand before it."""

from __future__ import annotations

import pytest
from tokenizer_files import byte_level, sentencepiece

from lmdiag.types import BadInput, Query, Question
from models.toys import asked, gpt2

TOKENIZER = byte_level("Ġ b", "Ġb i", "Ġbi r", "Ġbir d", "Ġ t", "Ġt r", "Ġtr e", "Ġtre e", "Ġ a")
NETWORK = gpt2(len(TOKENIZER))
MODEL = asked(NETWORK, TOKENIZER, "causal")


def ids(*pieces: str) -> list[int]:
    return TOKENIZER.convert_tokens_to_ids(list(pieces))


class TestRows:
    def test_one_row_for_words_of_one_piece(self) -> None:
        (row,) = MODEL.encode(Question(Query("be a"), ("bird", "tree"))).rows
        assert list(row.ids) == ids("b", "e", "Ġa")
        assert row.reads == (2,)

    def test_what_is_right_of_the_blank_is_not_seen(self) -> None:
        one = MODEL.encode(Question(Query("be a", "on the tree."), ("bird",)))
        assert one.rows == MODEL.encode(Question(Query("be a"), ("bird",))).rows

    def test_words_share_their_first_pieces(self) -> None:
        """birds = bird s, birdsx = bird s x, tre = Ġtre: one row carries all three."""
        encoded = MODEL.encode(Question(Query("a"), ("bird", "birds", "birdsx", "tre")))
        (row,) = encoded.rows
        assert list(row.ids) == ids("a", "Ġbird", "s")
        assert row.reads == (0, 1, 2)
        bird, s, x = ids("Ġbird", "s", "x")
        assert [partial.pieces for partial in encoded.partials] == [(), (bird,), (bird, s)]
        assert encoded.words["birdsx"] == (bird, s, x)
        assert encoded.words["tre"] == (*ids("Ġtre"),)

    def test_end_tokens_never_follow_the_context(self) -> None:
        tokenizer = byte_level(end=True)
        model = asked(gpt2(len(tokenizer)), tokenizer, "causal")
        (row,) = model.encode(Question(Query("ab"), ("c",))).rows
        assert tokenizer.convert_ids_to_tokens(row.ids) == ["a", "b", "Ġ"]

    def test_too_long(self) -> None:
        with pytest.raises(BadInput, match=r"'xxxx.*…' takes 97 tokens .* model toy reads at most"):
            MODEL.encode(Question(Query("x" * 97), ("bird",)))


class TestBos:
    LLAMA = sentencepiece("▁the", "▁bird", bos=True)
    BARE = sentencepiece("▁the", "▁bird")

    def rows(self, tokenizer: object, bos: str, context: str = "the") -> list[list[str]]:
        network = gpt2(len(tokenizer))  # type: ignore[arg-type]
        model = asked(network, tokenizer, "causal", bos=bos)  # type: ignore[arg-type]
        encoded = model.encode(Question(Query(context), ("bird",)))
        assert model.info.bos == (encoded.rows[0].ids[0] == 1)
        return [tokenizer.convert_ids_to_tokens(row.ids) for row in encoded.rows]  # type: ignore[attr-defined]

    @pytest.mark.parametrize("bos", ["auto", "always", "never"])
    def test_before_a_context(self, bos: str) -> None:
        with_bos, without = ["<s>", "▁the"], ["▁the"]
        assert self.rows(self.LLAMA, bos) == [without if bos == "never" else with_bos]
        assert self.rows(self.BARE, bos) == [with_bos if bos == "always" else without]

    def test_empty_context(self) -> None:
        assert self.rows(self.LLAMA, "auto", "") == [["<s>"]]
        with pytest.raises(BadInput, match=r"model toy has nothing to read .* --bos always"):
            self.rows(self.BARE, "auto", "")

    def test_there_is_none(self) -> None:
        tokenizer = byte_level()
        tokenizer.bos_token = None
        with pytest.raises(BadInput, match="model toy: its tokenizer has no beginning-of-sequence"):
            asked(gpt2(len(tokenizer)), tokenizer, "causal", bos="always")
