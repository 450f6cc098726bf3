"""EW and MW on the whole distribution, against the literal definition in `lmdiag.measures`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.measures import AGREEMENT_LAYOUT, CUTOFFS, ew_mw
from lmdiag.models import agreement, load
from lmdiag.models.agreement import BOTTOM_CUTOFFS, TOP_CUTOFFS, Verbs
from lmdiag.schema import Query, Question
from models.toys import asked, bert, wordpiece

ARE, IS, EXIST, EXISTS = range(4)
TOY = torch.tensor([[0.6, 0.05, 0.1, 0.25]], dtype=torch.float64).log()
PAIRS = [(IS, ARE), (EXISTS, EXIST)]
"""(singular, plural), as the data have them."""


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


class TestToy:
    """The example of the paper's text: the keys are .6, is .05, exist .1, exists .25."""

    def values(self, *, plural: bool = True) -> dict[str, float | None]:
        (found,) = Verbs.of(PAIRS).agreement(TOY, [plural])
        return dict(zip(AGREEMENT_LAYOUT, found, strict=True))

    def test_all_verbs(self) -> None:
        values = self.values()
        assert values["mw"] == pytest.approx(0.7, abs=1e-12)
        assert values["ew"] == pytest.approx(0.5, abs=1e-12)

    def test_singular(self) -> None:
        values = self.values(plural=False)
        assert values["mw"] == pytest.approx(0.3, abs=1e-12)
        assert values["ew"] == pytest.approx(0.5, abs=1e-12)

    def test_top(self) -> None:
        """Sorted: are .6, exists .85, exist .95, is 1.

        .5: nothing is kept before `are`, so that its values count: MW 1, EW 1, mass .6.
        .7: between are (MW 1, EW 1, mass .6) and exists (.6 / .85, 1/2, .85) at (.7 - .6) / .25.
        """
        values = self.values()
        assert (values["ew@top=0.5"], values["mw@top=0.5"]) == (1.0, 1.0)
        assert values["mass@top=0.5"] == pytest.approx(0.6)
        assert values["mw@top=0.7"] == pytest.approx(1 + 0.4 * (0.6 / 0.85 - 1))
        assert values["ew@top=0.7"] == pytest.approx(1 + 0.4 * (0.5 - 1))
        assert values["mass@top=0.7"] == pytest.approx(0.6 + 0.4 * 0.25)
        assert values["mw@top=1"] == values["mw"]

    def test_bottom(self) -> None:
        """Sorted: is .05, exist .15, exists .4, are 1; both forms of a verb must be kept.

        .5: before it exist/exists is kept (MW .1 / .35, EW 0), at it both (.7, 1/2), at .1 / .6.
        .1: neither is/are nor exist/exists is whole among is and exist: left out.
        """
        values = self.values()
        before = 0.1 / 0.35
        assert values["mw@bottom=0.5"] == pytest.approx(before + (0.7 - before) / 6)
        assert values["ew@bottom=0.5"] == pytest.approx(0.5 / 6)
        assert values["mw@bottom=0.1"] is None
        assert values["ew@bottom=0.1"] is None

    def test_as_likely_is_not_more_likely(self) -> None:
        even = torch.full((1, 4), 0.25, dtype=torch.float64).log()
        (found,) = Verbs.of(PAIRS).agreement(even, [True])
        assert found[0] == 0
        assert found[1] == pytest.approx(0.5)


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
    logits = spread * torch.randn(3, 80, generator=generator, dtype=torch.float64)
    log_probs = logits.round(decimals=1).log_softmax(-1)  # rounded: some are equal
    pairs = torch.randperm(80, generator=generator)[: 2 * n_verbs].view(-1, 2).tolist()
    plural = [True, False, True]
    for row, label, found in zip(
        log_probs, plural, Verbs.of(pairs).agreement(log_probs, plural), strict=True
    ):
        check(found, literal(row, pairs, label), 1e-9)


def test_no_verbs() -> None:
    (found,) = Verbs.of([]).agreement(TOY, [True])
    assert set(found) == {None}


def test_contexts_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, to bound the memory, as all at once."""
    log_probs = torch.randn(7, 50, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    pairs, plural = [(1, 2), (3, 4), (5, 6)], [True, False, True, True, False, False, True]
    whole = Verbs.of(pairs).agreement(log_probs, plural)
    monkeypatch.setattr(agreement, "_ELEMENTS", 100)  # two contexts at a time
    assert Verbs.of(pairs).agreement(log_probs, plural) == whole


class TestModel:
    TOKENIZER = wordpiece("the", "key", "is", "are", "laugh", "##s", "laughs", "run", ".", "it")

    def test_only_verbs_of_single_tokens(self) -> None:
        model = asked(bert(len(self.TOKENIZER)), self.TOKENIZER, "masked")
        pairs = [("is", "are"), ("laughs", "laugh"), ("runs", "run"), ("sings", "sing")]
        assert model.set_verbs(pairs) == 2

    def test_doubled_pairs_count_once(self) -> None:
        model = asked(bert(len(self.TOKENIZER)), self.TOKENIZER, "masked")
        assert model.set_verbs([("is", "are"), ("Is", "are"), ("is", "are")]) == 1

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
