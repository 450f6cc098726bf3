"""TSE, EW, MW and both curves against a slow and literal calculation, the model included.

The calculation is transformers' own forward pass in float64, one context at a time, and the literal
`verbs_by_definition`, tested by hand. lmdiag runs in float64 here, too: in float32 two verbs
that are almost equally probable may change places, which is not an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from statistics import fmean

import pytest
from reference import Reference
from verbs_by_definition import ew_mw

from lmdiag import api
from lmdiag.measures import AGREEMENT_LAYOUT, CUTOFFS
from lmdiag.models.demo import DEMO_NAMES, demo_folder
from lmdiag.stimuli import Stimuli, load, load_verbs

Pair = tuple[int, int]
"""Token ids of the right and the wrong form of a verb."""


def literal(p: Sequence[float], verbs: Sequence[Pair]) -> dict[str, float | None]:
    """EW and MW of a context, over all verbs and at every cut-off."""
    words = {str(token): value for token, value in enumerate(p)}
    pairs = [(str(right), str(wrong)) for right, wrong in verbs]
    values = [*ew_mw(words, pairs)[:2]]
    for cutoff in CUTOFFS:
        values += ew_mw(words, pairs, cutoff)
    named = zip(AGREEMENT_LAYOUT, values, strict=True)
    return {name: None if math.isnan(value) else value for name, value in named}


@pytest.mark.parametrize("name", DEMO_NAMES)
def test_all_scores_are_those_of_the_literal_calculation(name: str, demo_dir: Path) -> None:
    model = api.load_model(f"demo:{name}", dtype="float64")
    whole = load(str(demo_dir), "agreement")
    columns = whole.columns()
    some = {*sorted({*columns["contrast"]})[::7]}  # both sentences of every seventh pair
    keep = [contrast in some for contrast in columns["contrast"]]
    columns = {column: [*compress(values, keep)] for column, values in columns.items()}
    stimuli = Stimuli.of(whole.task, columns, whole.source, None)
    measures = api.measure(model.predict(stimuli), stimuli)
    convention = {"masked": "wordpiece", "causal": "byte-level"}[name]
    reference = Reference(demo_folder(name), name, convention)

    def item(word: str) -> int | None:
        pieces = reference.spell(word)
        return pieces[0] if pieces and len(pieces) == 1 else None

    verbs = [tuple(map(item, pair)) for pair in load_verbs(stimuli.source)]
    single = [verb for verb in verbs if None not in verb]
    assert len(single) > 20
    ids = {"singular": single, "plural": [(plural, singular) for singular, plural in single]}

    right = columns["right_context"] if name == "masked" else [""] * len(columns["id"])
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
    p = {}
    for left, after in labels:
        absent = next(
            word for word in ("is", "was", "robin") if word not in f"{left} {after}".split()
        )
        p[left, after] = reference.blank(left[0].upper() + left[1:], after, absent).exp()

    expected = {c: literal(p[c].tolist(), ids[label]) for c, label in labels.items()}  # type: ignore[arg-type]
    for name in next(iter(expected.values())):
        values = [value for scores in expected.values() if (value := scores[name]) is not None]
        if not values:
            assert name not in measures
            continue
        assert measures[name].n == len(values), name
        assert measures[name].value == pytest.approx(fmean(values), abs=1e-5), name
        for template, contexts in templates.items():
            values = [v for c in contexts if (v := expected[c][name]) is not None]
            if values:
                level = measures[name].by["template"][template]
                assert level.value == pytest.approx(fmean(values), abs=1e-5), name

    verdicts = []
    for pair in pairs.values():
        (good, context), (bad, _) = pair[True], pair[False]
        items = item(good), item(bad)
        if None not in items:
            verdicts.append(bool(p[context][items[0]] > p[context][items[1]]))
    assert measures["tse"].n == len(verdicts)
    assert measures["tse"].value == pytest.approx(fmean(verdicts), abs=1e-12)
