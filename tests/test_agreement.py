"""TSE, EW, MW and both curves against a slow and literal calculation, the model included.

The calculation is transformers' own forward pass in float64, one context at a time, and the literal
`verbs_by_definition`, tested by hand. lmdiag runs in float64 here, too: in float32 two verbs
that are almost equally probable may change places, which is not an error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from families import FAMILIES
from verbs_by_definition import ew_mw

from lmdiag import api
from lmdiag.measures import AGREEMENT_LAYOUT, CUTOFFS
from lmdiag.stimuli import Stimuli, load, load_verbs

TEMPLATES = (
    "simple_agrmt_all",
    "sent_comp_all",
    "prep_anim_all",
    "subj_rel_all",
    "distractor_agreement_relational_noun",
)
CONTEXTS = 16
"""Distinct contexts of each template, for each of the two models."""


Pair = tuple[int, int]
"""Token ids of the right and the wrong form of a verb."""


@pytest.fixture(params=["bert", "gpt2"])
def folder(request: pytest.FixtureRequest, upstream: Path, tmp_path: Path) -> Path:
    """A small random model with a published vocabulary."""
    published, size = {"bert": ("bert-base-uncased", 30522), "gpt2": ("gpt2", 50257)}[request.param]
    source = upstream.parent / "tokenizers" / published
    if not source.is_dir():
        pytest.skip(f"no published tokenizer at {source}")

    return FAMILIES[request.param].make(tmp_path / request.param, published=(source, size))


@pytest.fixture(scope="module")
def stimuli(agreement_dir: Path) -> Stimuli:
    """The rows of the first contexts of five templates."""
    whole = load(str(agreement_dir), "agreement")
    columns = whole.columns()
    kept: dict[str, dict[tuple[str, str], None]] = {template: {} for template in TEMPLATES}
    keep = []
    contexts = zip(columns["template"], columns["context"], columns["right_context"], strict=True)
    for template, left, right in contexts:
        seen = kept.get(template)
        keep.append(seen is not None and ((left, right) in seen or len(seen) < CONTEXTS))
        if seen is not None and keep[-1]:
            seen[left, right] = None
    few = {name: list(itertools.compress(values, keep)) for name, values in columns.items()}
    return Stimuli.of(whole.task, few, whole.source, None)


class Literal:
    """A model asked one context at a time, in float64."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.masked = self.tokenizer.mask_token is not None
        auto = AutoModelForMaskedLM if self.masked else AutoModelForCausalLM
        self.model = auto.from_pretrained(folder, dtype=torch.float64).eval()

    def item(self, word: str) -> int | None:
        """The one token of a word at the blank, or None."""
        text = word if self.masked else f" {word}"
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return ids[0] if len(ids) == 1 and ids[0] != self.tokenizer.unk_token_id else None

    def distribution(self, left: str, right: str) -> list[float]:
        """The probabilities of all items at the blank."""
        import torch

        if self.masked:
            inputs = self.tokenizer(
                f"{left} {self.tokenizer.mask_token} {right}", return_tensors="pt"
            )
            place = inputs["input_ids"][0].tolist().index(self.tokenizer.mask_token_id)
        else:
            inputs = self.tokenizer(left[0].upper() + left[1:], return_tensors="pt")
            place = -1
        with torch.no_grad():
            return list(self.model(**inputs).logits[0, place].softmax(-1).tolist())


def literal(p: Sequence[float], verbs: Sequence[Pair]) -> dict[str, float | None]:
    """EW and MW of a context, over all verbs and at every cut-off."""
    words = {str(token): value for token, value in enumerate(p)}
    pairs = [(str(right), str(wrong)) for right, wrong in verbs]
    values = [*ew_mw(words, pairs)[:2]]
    for cutoff in CUTOFFS:
        values += ew_mw(words, pairs, cutoff)
    named = zip(AGREEMENT_LAYOUT, values, strict=True)
    return {name: None if math.isnan(value) else value for name, value in named}


@pytest.mark.slow
def test_all_scores_are_those_of_the_literal_calculation(folder: Path, stimuli: Stimuli) -> None:
    model, reference = api.load_model(str(folder), dtype="float64"), Literal(folder)
    measures = api.measure(model.predict(stimuli), stimuli)
    verbs = [tuple(map(reference.item, pair)) for pair in load_verbs(stimuli.source)]
    single = [verb for verb in verbs if None not in verb]
    assert len(single) > 500
    ids = {"singular": single, "plural": [(plural, singular) for singular, plural in single]}

    columns = stimuli.columns()
    right = columns["right_context"] if reference.masked else [""] * len(columns["id"])
    labels: dict[tuple[str, str], str] = {}
    templates: dict[str, dict[tuple[str, str], None]] = {}
    pairs: dict[str, dict[bool, tuple[str, tuple[str, str]]]] = {}
    rows = zip(
        columns["context"], right, columns["number"], columns["template"],
        columns["contrast"], columns["good"], columns["target"], strict=True,
    )  # fmt: skip
    for left, after, number, template, contrast, good, target in rows:
        labels.setdefault((left, after), number)
        templates.setdefault(template, {})[left, after] = None
        pairs.setdefault(contrast, {})[good] = (target, (left, after))
    p = {context: reference.distribution(*context) for context in labels}
    assert len(templates) == 5
    assert len(p) >= (CONTEXTS * 5 if reference.masked else 30)

    expected = {context: literal(p[context], ids[label]) for context, label in labels.items()}
    for name in next(iter(expected.values())):
        values = [value for one in expected.values() if (value := one[name]) is not None]
        if not values:
            assert name not in measures
            continue
        ours = measures[name]
        assert ours.n == len(values), name
        assert ours.value == pytest.approx(fmean(values), abs=1e-6), name
        for template, contexts in templates.items():
            some = [v for c in contexts if (v := expected[c][name]) is not None]
            if some:
                level = ours.by["template"][template]
                assert level.value == pytest.approx(fmean(some), abs=1e-6), name

    verdicts = []
    for pair in pairs.values():
        (good, context), (bad, _) = pair[True], pair[False]
        items = reference.item(good), reference.item(bad)
        if None not in items:
            verdicts.append(p[context][items[0]] > p[context][items[1]])
    assert measures["tse"].n == len(verdicts)
    assert measures["tse"].value == pytest.approx(fmean(verdicts), abs=1e-12)
