"""Masked models: rows with masks, words of several pieces left to right within the word."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import wordpiece

from lmdiag.models import load
from lmdiag.schema import BadInput, Query, Question
from models.toys import alone, asked, bert

TOKENIZER = wordpiece(
    "a", "the", "robin", "is", "bird", "tree", "##s", "##ing", "car", "##pet", "##man", ".", "near"
)
NETWORK = bert(len(TOKENIZER))
MODEL = asked(NETWORK, TOKENIZER, "masked")
CLS, SEP, MASK = 2, 3, 4
ROBIN = Query("a robin is a")


def ids(*pieces: str) -> list[int]:
    return TOKENIZER.convert_tokens_to_ids(list(pieces))


class TestRows:
    def test_one_row_for_words_of_one_piece(self) -> None:
        encoded = MODEL.encode(Question(ROBIN, ("bird", "tree", "car")))
        (row,) = encoded.rows
        assert list(row.ids) == [CLS, *ids("a", "robin", "is", "a"), MASK, *ids("."), SEP]
        assert row.reads == (5,)

    def test_as_many_masks_as_pieces(self) -> None:
        """carpet and carman are car + 1 piece: they share `[MASK] [MASK]` and `car [MASK]`."""
        encoded = MODEL.encode(Question(ROBIN, ("carpet", "carman", "birds")))
        left, right = [CLS, *ids("a", "robin", "is", "a")], [*ids("."), SEP]
        assert [list(row.ids) for row in encoded.rows] == [
            [*left, MASK, *right],
            [*left, MASK, MASK, *right],
            [*left, *ids("car"), MASK, *right],
            [*left, *ids("bird"), MASK, *right],
        ]
        assert [row.reads for row in encoded.rows] == [(5,), (5,), (6,), (6,)]
        assert encoded.length == 8 + 3 * 9

    def test_right_context(self) -> None:
        (row,) = MODEL.encode(Question(Query("the tree", "near the robin."), ("is",))).rows
        right = ids("near", "the", "robin", ".")
        assert list(row.ids) == [CLS, *ids("the", "tree"), MASK, *right, SEP]

    def test_too_long(self) -> None:
        """[CLS], 60 words, two masks, the period and [SEP] are 65 tokens."""
        question = Question(Query("robin" + " a" * 59), ("birds",))
        with pytest.raises(BadInput, match=r"'robin a a.*…' takes 65 tokens.*toy reads at most 64"):
            MODEL.encode(question)


class TestNumbers:
    """Against the whole model on one row, in float64."""

    def test_one_piece(self) -> None:
        (answer,) = MODEL.answer([MODEL.encode(Question(ROBIN, ("bird", "tree")))], 3)
        row = [CLS, *ids("a", "robin", "is", "a"), MASK, *ids("."), SEP]
        exact = alone(NETWORK, row, 5)
        for word in ("bird", "tree"):
            (token,) = ids(word)
            score = answer.words[word]
            assert score.log_prob == pytest.approx(float(exact[token]), abs=1e-5)
            assert score.rank == 1 + sum(value > exact[token] for value in exact)
            assert score.n_tokens == 1
        best = exact.topk(3)
        assert list(answer.top_words) == TOKENIZER.convert_ids_to_tokens(best.indices.tolist())
        assert answer.top_log_probs == pytest.approx(best.values.tolist(), abs=1e-5)

    def test_several_pieces(self) -> None:
        """log p(carpet) = log p(car | _ _) + log p(##pet | car _)."""
        (answer,) = MODEL.answer([MODEL.encode(Question(ROBIN, ("carpet",)))], 3)
        left, right = [CLS, *ids("a", "robin", "is", "a")], [*ids("."), SEP]
        car, pet = ids("car", "##pet")
        first = alone(NETWORK, [*left, MASK, MASK, *right], 5)[car]
        second = alone(NETWORK, [*left, car, MASK, *right], 6)[pet]
        score = answer.words["carpet"]
        assert score.log_prob == pytest.approx(float(first + second), abs=1e-5)
        assert score.n_tokens == 2

    def test_rank_does_not_count_the_own_first_piece(self) -> None:
        (answer,) = MODEL.answer([MODEL.encode(Question(ROBIN, ("carpet",)))], 3)
        exact = alone(NETWORK, [CLS, *ids("a", "robin", "is", "a"), MASK, *ids("."), SEP], 5)
        total = answer.words["carpet"].log_prob
        others = [float(value) for token, value in enumerate(exact) if token != ids("car")[0]]
        assert answer.words["carpet"].rank == 1 + sum(value > total for value in others)

    def test_unknown_words_are_unscorable(self) -> None:
        (answer,) = MODEL.answer([MODEL.encode(Question(ROBIN, ("penguin", "bird")))], 3)
        assert answer.words["penguin"] == (None, None, 0)
        assert answer.words["bird"].log_prob is not None

    def test_only_unknown_words(self) -> None:
        (answer,) = MODEL.answer([MODEL.encode(Question(ROBIN, ("penguin",)))], 3)
        assert answer.words == {"penguin": (None, None, 0)}
        assert len(answer.top_words) == 3

    def test_no_words(self) -> None:
        (answer,) = MODEL.answer([MODEL.encode(Question(ROBIN, ()))], 3)
        assert answer.words == {}


def some_questions(count: int) -> list[Question]:
    """Returns questions of unlike lengths, with words of one and of several pieces."""
    rng = random.Random(0)
    text = "The old woman who lived near the sea kept three cats and a dog in the garden"
    rights = ("", "near the park.", ", and the cat sleeps!")
    return [
        Question(
            Query(" ".join(text.split()[: rng.randint(1, 17)]), rng.choice(rights)),
            tuple(rng.sample(["bird", "tree", "wrench", "sparrows", "naïve", "penguin"], 3)),
        )
        for _ in range(count)
    ]


WORDS = st.lists(st.sampled_from(["a", "the", "robin", "is", "bird", "near"]), max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=5))
@settings(max_examples=25)
def test_distributions_sum_to_one(contexts: list[list[str]]) -> None:
    """All items together have probability 1, the empty context included."""
    questions = [Question(Query(" ".join(words)), ("carpet",)) for words in contexts]
    answers = MODEL.answer([MODEL.encode(question) for question in questions], len(TOKENIZER))
    for answer in answers:
        assert torch.tensor(answer.top_log_probs).exp().sum() == pytest.approx(1, abs=1e-5)
        assert list(answer.top_log_probs) == sorted(answer.top_log_probs, reverse=True)


def test_model_info(family_dir: Callable[[str], Path]) -> None:
    model = load(str(family_dir("roberta")))
    assert (model.info.kind, model.info.cased, model.info.bos) == ("masked", True, False)
    assert (model.info.attention, model.info.quantization) == ("sdpa", None)
    positions = model.reader.model.config.max_position_embeddings
    assert model.info.max_length == positions - 2  # RoBERTa's first is that after the padding's
