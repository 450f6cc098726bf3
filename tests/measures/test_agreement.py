"""TSE, EW, MW and both curves against a slow and literal calculation, the model included.

The calculation is transformers' own forward pass in float64, one context at a time, and the literal
`verbs_by_definition`, tested by hand. lmdiag runs in float64 here, too: in float32 two verbs
that are almost equally probable may change places, which is not an error.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from reference import CLOSE, Reference
from verbs_by_definition import literal

from lmdiag import api
from lmdiag.models.demo import DEMO_NAMES, demo_folder
from lmdiag.stimuli import load, load_verbs


@pytest.mark.parametrize("name", DEMO_NAMES)
def test_all_scores_are_those_of_the_literal_calculation(name: str, demo_dir: Path) -> None:
    model = api.load_model(f"demo:{name}", dtype="float64")
    stimuli = load(str(demo_dir), "agreement", limit=60)
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

    rows = stimuli.table.to_pandas()
    if name == "causal":
        rows["right_context"] = ""
    rows["asked"] = rows["context"] + " _ " + rows["right_context"]
    p, expected = {}, {}
    for row in rows.drop_duplicates("asked").itertuples():  # the label is that of the first pair
        words = row.asked.split()
        absent = next(word for word in ("is", "was", "robin") if word not in words)
        left = row.context[0].upper() + row.context[1:]
        p[row.asked] = reference.blank(left, row.right_context, absent).exp()
        expected[row.asked] = literal(p[row.asked].tolist(), ids[row.number])  # type: ignore[arg-type]

    scores = pd.DataFrame.from_dict(expected, orient="index")
    for name in scores:
        values = scores[name].dropna()
        if values.empty:
            assert name not in measures
            continue
        assert measures[name].n == len(values), name
        assert measures[name].value == pytest.approx(values.mean(), abs=CLOSE), name
        for template, asked in rows.groupby("template")["asked"]:
            values = scores.loc[asked.unique(), name].dropna()
            if len(values):
                level = measures[name].by["template"][template]
                assert level.value == pytest.approx(values.mean(), abs=CLOSE), name

    verdicts = []
    for _, pair in rows.sort_values("good", ascending=False).groupby("contrast"):
        good, bad = map(item, pair["target"])
        if good is not None and bad is not None:
            probabilities = p[pair["asked"].iloc[0]]
            verdicts.append(bool(probabilities[good] > probabilities[bad]))
    assert measures["tse"].n == len(verdicts)
    assert measures["tse"].value == pytest.approx(sum(verdicts) / len(verdicts), abs=1e-12)
