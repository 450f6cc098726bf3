"""EW and MW on the whole distribution, against the literal definition in `lmdiag.measures`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import wordpiece
from verbs_by_definition import ew_mw

from lmdiag.measures import AGREEMENT_LAYOUT, CUTOFFS
from lmdiag.models import load
from lmdiag.models.agreement import BOTTOM_CUTOFFS, TOP_CUTOFFS, agreement_values
from lmdiag.types import Query, Question
from models.toys import asked, bert


def literal(row: torch.Tensor, pairs: Sequence[tuple[int, int]], plural: bool) -> list[float]:
    """Returns the definition's values in the layout's order, NaN where undefined."""
    probabilities = {str(token): p for token, p in enumerate(row.double().exp().tolist())}
    forms = [(str(p), str(s)) if plural else (str(s), str(p)) for s, p in pairs]
    values = list(ew_mw(probabilities, forms)[:2])
    for cutoff in CUTOFFS:
        values += ew_mw(probabilities, forms, cutoff)
    return values


def check(found: Sequence[float | None], expected: Sequence[float], tolerance: float) -> None:
    for name, value, right in zip(AGREEMENT_LAYOUT, found, expected, strict=True):
        assert (value is None) == math.isnan(right), name
        if value is not None:
            assert value == pytest.approx(right, abs=tolerance), name


def test_layout_is_that_of_the_measures() -> None:
    expected = [
        *(("top", cutoff) for cutoff in TOP_CUTOFFS),
        *(("bottom", cutoff) for cutoff in BOTTOM_CUTOFFS),
    ]
    assert expected == [tuple(cutoff) for cutoff in CUTOFFS]


@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 0.3, 2.0, 6.0, 12.0]),
    n_verbs=st.integers(1, 20),
)
@settings(max_examples=60)
def test_literal_definition(seed: int, spread: float, n_verbs: int) -> None:
    """Flat, peaked and tied distributions, few verbs and many."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(11, 80, generator=generator, dtype=torch.float64)
    log_probs = logits.round(decimals=1).log_softmax(-1)  # rounded: some are equal
    pairs = torch.randperm(80, generator=generator)[: 2 * n_verbs].view(-1, 2).tolist()
    plural = [number % 3 != 1 for number in range(11)]  # more than are sorted at a time
    for row, label, found in zip(
        log_probs, plural, agreement_values(pairs, log_probs, plural), strict=True
    ):
        check(found, literal(row, pairs, label), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_large_vocabulary(ties: bool) -> None:
    """Large enough for sums of float32 to differ, and more verbs than in the data."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(1, 20_000, generator=generator)
    log_probs = (logits.bfloat16().float() if ties else logits).log_softmax(-1)
    pairs = torch.randperm(20_000, generator=generator)[:1200].view(-1, 2).tolist()
    (found,) = agreement_values(pairs, log_probs, [True])
    check(found, literal(log_probs[0], pairs, True), 1e-11)


def test_no_verbs() -> None:
    (found,) = agreement_values([], torch.zeros(1, 4).log_softmax(-1), [True])
    assert set(found) == {None}


class TestModel:
    TOKENIZER = wordpiece("the", "key", "is", "are", "laugh", "##s", "laughs", "run", ".", "it")

    def test_only_verbs_of_single_tokens(self) -> None:
        """Counted once each."""
        model = asked(bert(len(self.TOKENIZER)), self.TOKENIZER, "masked")
        pairs = [("is", "are"), ("laughs", "laugh"), ("runs", "run"), ("sings", "sing")]
        assert model.set_verbs([*pairs, ("Is", "are"), ("is", "are")]) == 2

    def test_answers(self) -> None:
        """Questions with a number have the values of their own distribution, others none."""
        model = asked(bert(len(self.TOKENIZER)), self.TOKENIZER, "masked")
        pairs = [("is", "are"), ("laughs", "laugh")]
        model.set_verbs(pairs)
        questions = [
            Question(Query("the key", "."), ("is",)),
            Question(Query("the key", "."), ("is", "are"), "singular"),
            Question(Query("the key the key", "."), ("is", "are"), "plural"),
        ]
        plain, singular, plural = model.answer([model.encode(q) for q in questions], 5)
        assert plain.agreement is None
        ids = [tuple(self.TOKENIZER.convert_tokens_to_ids(list(pair))) for pair in pairs]
        for question, answer in zip(questions[1:], (singular, plural), strict=True):
            row = model.reader.read(model.encode(question).rows)[0]
            expected = literal(row, ids, question.number == "plural")
            assert answer.agreement is not None
            check(answer.agreement, expected, 1e-6)

    @pytest.mark.parametrize("name", ["gpt2", "roberta"])
    def test_forms_have_their_blank(self, name: str, family_dir: Callable[[str], Path]) -> None:
        """A form is the token that it is after a space: Ġwants, not wants."""
        model = load(str(family_dir(name)))
        words = ("birds", "bird")
        question = Question(Query("The old dog"), words, "plural")
        assert model.set_verbs([words]) == 1
        (answer,) = model.answer([model.encode(question)], 5)
        singular, plural = (math.exp(answer.words[word].log_prob or 0.0) for word in words)
        assert answer.agreement is not None
        assert answer.agreement[1] == pytest.approx(plural / (plural + singular), abs=1e-6)
