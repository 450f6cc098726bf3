"""EW and MW on the whole distribution, against the literal definition in `verbs_by_definition`."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import wordpiece
from verbs_by_definition import literal

from lmdiag.models.agreement import agreement_values
from lmdiag.types import Query, Question
from models.toys import ask, asked, bert


def check(found, row, pairs, plural, tolerance):
    """Compares values with the definition's, in the layout's order; None where undefined."""
    forms = [(p, s) if plural else (s, p) for s, p in pairs]
    expected = literal(row.double().exp().tolist(), forms)
    for (name, right), value in zip(expected.items(), found, strict=True):
        assert (value is None) == math.isnan(right), name
        assert value is None or value == pytest.approx(right, abs=tolerance), name


@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 0.3, 2.0, 6.0, 12.0]),
    n_verbs=st.integers(0, 20),
)
@settings(max_examples=60)
def test_literal_definition(seed, spread, n_verbs):
    """Flat, peaked and tied distributions, few verbs and many, or none."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(11, 80, generator=generator, dtype=torch.float64)
    log_probs = logits.round(decimals=1).log_softmax(-1)  # rounded: some are equal
    pairs = torch.randperm(80, generator=generator)[: 2 * n_verbs].view(-1, 2).tolist()
    plural = [number % 3 != 1 for number in range(11)]  # more than are sorted at a time
    values = agreement_values(pairs, log_probs, plural)
    for found, row, label in zip(values, log_probs, plural, strict=True):
        check(found, row, pairs, label, 1e-9)


@pytest.mark.slow
def test_large_vocabulary():
    """Large enough for sums of float32 to differ, with ties, and more verbs than in the data."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(1, 20_000, generator=generator)
    log_probs = logits.bfloat16().float().log_softmax(-1)
    pairs = torch.randperm(20_000, generator=generator)[:1200].view(-1, 2).tolist()
    check(agreement_values(pairs, log_probs, [True])[0], log_probs[0], pairs, True, 1e-11)


def test_a_model_with_verbs():
    """Verbs of single tokens count, once each, for questions with a number.

    Their values: `tests/measures/test_agreement.py`.
    """
    tokenizer = wordpiece("the", "key", "is", "are", "laugh", "##s", "laughs", "run", ".", "it")
    model = asked(bert(len(tokenizer)), tokenizer, "masked")
    verbs = [("is", "are"), ("laughs", "laugh")]
    others = [("runs", "run"), ("sings", "sing"), ("Is", "are"), ("is", "are"), ("it", "it")]
    assert model.set_verbs([*verbs, *others]) == 2
    query = Query("the key", ".")
    plain, numbered = ask(model, Question(query, ("is",)), Question(query, ("is",), "singular"))
    assert plain.agreement is None
    assert numbered.agreement
