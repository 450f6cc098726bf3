"""From predictions to the figures of results.json."""

import json
import math

import pytest
from invented_runs import perfect, predictions_of, rows_of, uniform

from lmdiag import stats, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.results.evaluation import evaluate
from lmdiag.types import BadInput

# four contrasts of CPRAG-102, a with high constraint
CONTRASTS = rows_of(
    *(
        {"id": f"{c}{i}", "contrast": c, "good": i == 0, "target": f"word{c}{i}",
         "expected": ["yes"] if i == 0 else [], "constraint": "high" if c == "a" else "low",
         "sentence_1": "A b.", "sentence_2": "A"}
        for c in "abcd"
        for i in range(2)
    )
)  # fmt: skip
CPRAG = stimuli.Stimuli("cprag102", CONTRASTS, "tests", None)


def crossed(levels, *n):
    """Both polarities of each level -> number of contrasts."""
    names = [f"{a}/{b}" for a in levels for b in ("affirmative", "negative")]
    return dict(zip(names, n, strict=True))


@pytest.mark.parametrize(
    ("task", "measure", "n", "levels"),
    [
        ("cprag102", "accuracy@1", 34, {"constraint": {"high": 18, "low": 16}}),
        ("cprag102", "sensitivity", 34, {"constraint": {"high": 18, "low": 16}}),
        ("role88", "accuracy@1", 88, {"cloze_quartile": {"1": 25, "2": 23, "3": 23, "4": 17}}),
        ("role88", "sensitivity", 44, {}),
        ("neg136", "accuracy@1", 34, {
            "subset": {"simp": 18, "nat": 16},
            "subset/polarity": {"simp/affirmative": 18, "nat/affirmative": 16},
            "natural": {"natural": 8, "less_natural": 8},
            "natural/polarity": {"natural/affirmative": 8, "less_natural/affirmative": 8},
        }),
        ("neg136", "sensitivity", 68, {
            "subset": {"simp": 36, "nat": 32},
            "subset/polarity": crossed(("simp", "nat"), 18, 18, 16, 16),
            "natural": {"natural": 16, "less_natural": 16},
            "natural/polarity": crossed(("natural", "less_natural"), 8, 8, 8, 8),
        }),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("make", "value"), [(perfect, 1.0), (uniform, 0.0)])
def test_perfect_predictions_give_100_everywhere_and_uniform_ones_0(
    data_dir, task, measure, n, levels, make, value
):
    rows = stimuli.load(str(data_dir), task)
    results = evaluate(rows, [make(rows.columns())], Protocol())
    json.dumps(results.to_json(), allow_nan=False)
    if make is uniform and task == "role88":  # undefined, not zero
        assert (results.measures["spearman"].value, results.measures["spearman"].n) == (None, 88)
    assert results.unscorable == []
    whole = results.measures[measure]
    assert whole.n == n
    # as lists: the order of the levels is that of the papers
    assert {by: [(x, f.n) for x, f in of.items()] for by, of in whole.by.items()} == {
        by: list(of.items()) for by, of in levels.items()
    }
    other = results.measures[measure.replace("@1", "@5").replace("ity", "ity@0.01")]
    for part in (whole, other):
        for figure in (part, *(level for of in part.by.values() for level in of.values())):
            bounds = stats.wilson(value * (figure.n or 0), figure.n or 0)
            assert (figure.value, figure.ci_low, figure.ci_high) == (value, *bounds)


def test_perturbed_contexts_have_no_human_figures(demo_dir):
    rows = stimuli.load(str(demo_dir), "role88")
    names = []
    for setting in ("none", "both"):
        run = predictions_of(rows.columns(), [-1.0] * len(rows), perturbation=setting)
        measures = evaluate(rows, [run], Protocol()).measures
        names.append({*measures})
    assert names[0] - names[1] == {
        "human_sensitivity", "human_sensitivity@0.01", "cloze_difference"
    }  # fmt: skip
    # both nouns were replaced: the two contexts of a contrast are the same
    assert str(measures["sensitivity"].not_defined).endswith("nothing to compare")


def test_shuffled_runs_become_their_mean_and_population_deviation():
    # of four contrasts 4, 2 and 3 are right; of the one with high constraint 1, 0 and 1
    right = [(1, 1, 1, 1), (0, 1, 1, 0), (1, 1, 1, 0)]
    logs = [[-1.0 if good else -3.0 for won in wins for good in (won, not won)] for wins in right]
    runs = [predictions_of(CONTRASTS, x, perturbation="shuf", run=i) for i, x in enumerate(logs)]
    measured = evaluate(CPRAG, runs, Protocol()).measures
    sensitivity = measured["sensitivity"]
    assert sensitivity.value == pytest.approx((1 + 0.5 + 0.75) / 3)
    # deviations from .75: .25, -.25, 0; mean square .125 / 3
    assert sensitivity.sd == pytest.approx(math.sqrt(0.125 / 3))
    assert (sensitivity.n, sensitivity.runs, sensitivity.chance) == (4, 3, 0.5)
    assert measured["sensitivity@0.01"].chance is None
    lows = [stats.wilson(k, 4)[0] for k in (4, 2, 3)]
    assert sensitivity.ci_low == pytest.approx(sum(lows) / 3)
    high = sensitivity.by["constraint"]["high"]
    assert (high.value, high.n, high.runs) == (pytest.approx(2 / 3), 1, 3)


def test_unscorable_words_are_named_once_and_count_for_nothing():
    logs = [-1.0, None, -1.0, -2.0, -1.0, -2.0, None, -2.0]
    of_runs = [logs, [*logs[:2], None, *logs[3:]]]
    runs = [predictions_of(CONTRASTS, x, perturbation="shuf", run=i) for i, x in enumerate(of_runs)]
    results = evaluate(CPRAG, runs, Protocol())
    named = [(word.id, word.word) for word in results.unscorable]
    assert named == [("a1", "worda1"), ("b0", "wordb0"), ("d0", "wordd0")]
    assert results.measures["sensitivity"].n == 1  # of the run with fewer
    words = predictions_of(CONTRASTS, top_words=[["yes"]] * 8)
    without = evaluate(CPRAG, [words], Protocol())
    assert (without.unscorable, [*without.measures]) == ([], ["accuracy@1"])
    backwards = predictions_of({"id": CONTRASTS["id"][::-1]}, [-1.0] * 8)
    with pytest.raises(BadInput, match="not in the order of its rows"):
        evaluate(CPRAG, [backwards], Protocol())


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (
            {"top_words": ["a", "b"]},
            ["all measures of probabilities", "tse", "ew and mw"],
        ),
        ({"log_prob": -1.0, "n_tokens": 1}, ["all measures of the top words", "ew and mw"]),
    ],
)
def test_what_cannot_be_computed_is_named(demo_dir, given, missing):
    rows = stimuli.load(str(demo_dir), "agreement")
    columns = {name: [value] * len(rows) for name, value in given.items()}
    results = evaluate(rows, [predictions_of(rows.columns(), **columns)], Protocol())
    assert [line.split(":")[0] for line in results.not_computed] == missing
