"""Models that read long inputs differently: no number depends on what else is asked, or was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from families import FAMILIES
from reference import Reference
from transformers import AutoConfig, AutoModelForMaskedLM

from lmdiag.models import load
from lmdiag.models.forward.batches import plan_batches
from lmdiag.models.forward.lengths import short_limit, split
from lmdiag.models.tokens.questions import EncodedQuestion, TokenRow
from lmdiag.types import Query, Question
from models.comparison import QUESTIONS, ask

TOLERANCE = 1e-5

LONG = Query("In the evening Zoë walks her old dog near the river, and the cat sleeps! The doctor")

LIMITS = {"phi3-longrope": 16, "big_bird": 14}
"""Tokens of the longest short input, see `families`."""


@pytest.mark.parametrize("name", [*LIMITS, "gpt2", "llama", "bert", "t5"])
def test_limit(name: str, family_dir: Callable[[str], Path]) -> None:
    """The questions of `test_families` are on both sides of it."""
    model = load(str(family_dir(name)))
    limit = LIMITS.get(name)
    assert model.reader.short_limit == limit
    sizes = [max(len(row.ids) for row in model.encode(each).rows) for each in QUESTIONS]
    assert limit is None or min(sizes) <= limit < max(sizes)


def test_a_word_across_the_limit(family_dir: Callable[[str], Path]) -> None:
    """The first pieces are read as a short text, the others as a long one, in both units."""
    name = "phi3-longrope"
    reference = Reference(family_dir(name), "causal", FAMILIES[name].convention)
    model = load(str(family_dir(name)))
    crossing = 0
    for end in range(2, len(LONG.context)):
        question = Question(Query(LONG.context[:end].rstrip()), ("penguin",))
        (row,) = model.encode(question).rows
        if not row.reads[0] < LIMITS[name] <= row.reads[-1]:
            continue
        crossing += 1
        (answer,) = ask(model, [question])
        right = reference.score(*question.query, "penguin")
        assert right is not None
        assert answer.words["penguin"].log_prob == pytest.approx(right.log_prob, abs=TOLERANCE)
    assert crossing


def test_split() -> None:
    row = TokenRow((1, 2, 3, 4, 5, 6), (1, 2, 3, 5))
    assert list(split(row, 6)) == [row]
    assert list(split(row, 3)) == [
        TokenRow((1, 2, 3), (1, 2)),
        TokenRow((1, 2, 3, 4, 5, 6), (3, 5)),
    ]
    assert list(split(TokenRow((1, 2, 3, 4), (3,)), 3)) == [TokenRow((1, 2, 3, 4), (3,))]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_batches_keep_the_sides_apart(packed: bool, causal: bool) -> None:
    lengths = [3, 9, 4, 12, 2, 10, 8]
    encoded = [
        EncodedQuestion(Question(Query(str(n)), ()), (TokenRow(tuple(range(n)), (0,)),), {}, False)
        for n in lengths
    ]
    dealt = plan_batches(
        encoded, budget=10_000, count=None, packed=packed, causal=causal, short_limit=8
    )
    assert sorted(map(sorted, dealt)) == [[0, 2, 4, 6], [1, 3, 5]]


def test_limits_that_are_never_reached() -> None:
    """A model that reads no longer inputs than short ones has no limit."""
    config = AutoConfig.for_model("big_bird", attention_type="block_sparse")
    config.update({"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2})
    config.update({"vocab_size": 20, "intermediate_size": 16, "max_position_embeddings": 704})
    assert short_limit(AutoModelForMaskedLM.from_config(config)) is None
    config.max_position_embeddings = 705
    model = AutoModelForMaskedLM.from_config(config)
    assert short_limit(model) == 704
