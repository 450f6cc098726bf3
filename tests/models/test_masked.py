"""Masked models: rows with masks, words of several pieces left to right within the word."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizer_files import wordpiece

from lmdiag.models import load
from lmdiag.types import BadInput, Query, Question
from models.toys import alone, ask, asked, bert

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

    def test_too_long(self) -> None:
        """[CLS], 60 words, two masks, the period and [SEP] are 65 tokens."""
        question = Question(Query("robin" + " a" * 59), ("birds",))
        with pytest.raises(BadInput, match=r"'robin a a.*…' takes 65 tokens.*toy reads at most 64"):
            MODEL.encode(question)


def test_the_distribution_of_one_mask_also_serves_longer_words() -> None:
    """log p(carpet) = log p(car | _ _) + log p(##pet | car _); the rank is by that of one mask."""
    (answer,) = ask(MODEL, Question(ROBIN, ("carpet", "penguin")), top=3)
    left, right = [CLS, *ids("a", "robin", "is", "a")], [*ids("."), SEP]
    car, pet = ids("car", "##pet")
    first = alone(NETWORK, [*left, MASK, MASK, *right], 5)[car]
    total = float(first + alone(NETWORK, [*left, car, MASK, *right], 6)[pet])
    blank = alone(NETWORK, [*left, MASK, *right], 5)
    others = [float(value) for token, value in enumerate(blank) if token != car]
    rank = 1 + sum(value > total for value in others)
    assert answer.words["carpet"] == (pytest.approx(total, abs=1e-5), rank, 2)
    assert answer.words["penguin"] == (None, None, 0)


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


def test_model_info(family_dir: Callable[[str], Path]) -> None:
    model = load(str(family_dir("roberta")))
    assert (model.info.kind, model.info.cased, model.info.bos) == ("masked", True, False)
    assert (model.info.attention, model.info.quantization) == ("sdpa", None)
    positions = model.reader.model.config.max_position_embeddings
    assert model.info.max_length == positions - 2  # RoBERTa's first is that after the padding's
