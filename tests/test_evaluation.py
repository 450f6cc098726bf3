"""From predictions to the figures of results.json."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from runs import perfect, predictions_of, rows_of, uniform

from lmdiag import measures, stats, stimuli
from lmdiag.evaluation import evaluate, not_computed
from lmdiag.protocol import Predictions, Protocol
from lmdiag.results import Measure, SettingResults
from lmdiag.types import BadInput

ETTINGER = ("cprag102", "role88", "neg136")
SUBSETS = ("simp", "nat")


def two_contrasts() -> dict[str, list[Any]]:
    return rows_of(
        *(
            {
                "id": f"{c}{i}", "contrast": c, "good": i == 0, "target": f"word{c}{i}",
                "expected": ["yes"] if i == 0 else [], "constraint": "high" if c == "a" else "low",
                "sentence_1": "A b.", "sentence_2": "A",
            }
            for c in "abcd"
            for i in range(2)
        )
    )  # fmt: skip


def summarised(
    *runs: Predictions, task: str = "cprag102", cased: bool = True
) -> dict[str, Measure]:
    return setting(*runs, task=task, cased=cased).measures


def setting(*runs: Predictions, task: str = "cprag102", cased: bool = True) -> SettingResults:
    rows = stimuli.Stimuli.of(task, two_contrasts(), "tests", None)
    return evaluate(rows, runs, Protocol(), cased)


# ---- the diagnostics -----------------------------------------------------------------------------


def crossed(levels: tuple[str, str], *n: int) -> dict[str, int]:
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
            "subset": {"simp": 36, "nat": 32}, "subset/polarity": crossed(SUBSETS, 18, 18, 16, 16),
            "natural": {"natural": 16, "less_natural": 16},
            "natural/polarity": crossed(("natural", "less_natural"), 8, 8, 8, 8),
        }),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("make", "value"), [(perfect, 1.0), (uniform, 0.0)])
def test_perfect_predictions_give_100_everywhere_and_uniform_ones_0(
    data_dir: Path, task: str, measure: str, n: int, levels: Any, make: Any, value: float
) -> None:
    rows = stimuli.load(str(data_dir), task)
    results = evaluate(rows, [make(rows.columns())], Protocol(), cased=True)
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
    for one in (whole, other):
        for figure in (one, *(each for of in one.by.values() for each in of.values())):
            bounds = stats.wilson(value * (figure.n or 0), figure.n or 0)
            assert (figure.value, figure.ci_low, figure.ci_high) == (value, *bounds)


@pytest.mark.parametrize("task", [*ETTINGER, "agreement"])
def test_every_figure_has_its_chance_level(demo_dir: Path, task: str) -> None:
    chance = 1 / 3 if task == "cprag102" else 1 / 2
    rows = stimuli.load(str(demo_dir), task)
    n = len(rows)
    more: dict[str, Any] = {"n_tokens": [1] * n}
    if task == "agreement":
        more["agreement"] = [(0.5,) * len(measures.AGREEMENT_LAYOUT)] * n
    run = predictions_of(rows.columns(), [-1.0] * n, [["a"] * 5] * n, **more)
    results = evaluate(rows, [run], Protocol(), cased=True)
    for place, figure in results.figures(task, "none"):
        name = place.measure
        guessed = name in ("sensitivity", "human_sensitivity", "tse")
        guessed |= name.startswith(("ew", "mw"))
        assert figure.chance == (pytest.approx(chance) if guessed else None), place


def test_human_figures_are_not_shown_beside_perturbed_contexts(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "role88")
    run = uniform(rows.columns())
    perturbed = predictions_of(rows.columns(), run.log_prob, run.top_words, perturbation="obj")
    plain, other = (evaluate(rows, [each], Protocol(), True).measures for each in (run, perturbed))
    assert set(plain) - set(other) == {
        "human_sensitivity", "human_sensitivity@0.01", "cloze_difference",
    }  # fmt: skip


def test_both_nouns_replaced_leave_nothing_to_compare(demo_dir: Path) -> None:
    rows = stimuli.load(str(demo_dir), "role88")
    for name, is_defined in (("both", False), ("obj", True)):
        run = predictions_of(rows.columns(), [-1.0] * len(rows), perturbation=name)
        measured = evaluate(rows, [run], Protocol(), cased=True).measures
        for measure in ("sensitivity", "sensitivity@0.01", "probability_difference"):
            one = measured[measure]
            assert (one.value is not None, bool(one.n)) == (is_defined, is_defined)
            assert (one.not_defined or "").endswith("nothing to compare") != is_defined
        assert measured["spearman"].n == len(rows)  # rows are still rows


# ---- shuffled settings ---------------------------------------------------------------------------


def test_shuffled_runs_become_their_mean_and_population_deviation() -> None:
    # of four contrasts 4, 2 and 3 are right; of the one with high constraint 1, 0 and 1
    right = [(1, 1, 1, 1), (0, 1, 1, 0), (1, 1, 1, 0)]
    runs = [
        predictions_of(
            two_contrasts(), [-1.0 if good else -3.0 for won in wins for good in (won, not won)],
            perturbation="shuf", run=i,
        )
        for i, wins in enumerate(right)
    ]  # fmt: skip
    measured = summarised(*runs)
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


# ---- what is missing -----------------------------------------------------------------------------


def test_unscorable_words_are_named_once_and_count_for_nothing() -> None:
    logs = [-1.0, None, -1.0, -2.0, -1.0, -2.0, None, -2.0]
    runs = [predictions_of(two_contrasts(), logs, perturbation="shuf", run=i) for i in range(2)]
    results = setting(*runs)
    assert [(each.id, each.word) for each in results.unscorable] == [
        ("a1", "worda1"), ("d0", "wordd0"),
    ]  # fmt: skip
    assert results.measures["sensitivity"].n == 2
    without = setting(predictions_of(two_contrasts(), top_words=[["yes"]] * 8))
    assert (without.unscorable, [*without.measures]) == ([], ["accuracy@1"])


def test_predictions_of_other_rows_are_refused() -> None:
    backwards = predictions_of({"id": two_contrasts()["id"][::-1]}, [-1.0] * 8)
    with pytest.raises(BadInput, match="not in the order of its rows"):
        setting(backwards)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (
            {"top_words": ["a", "b"]},
            ["all measures of probabilities", "accuracy", "tse", "ew and mw"],
        ),
        ({"log_prob": -1.0, "n_tokens": 1}, ["all measures of the top words", "ew and mw"]),
    ],
)
def test_what_cannot_be_computed_is_named(
    demo_dir: Path, given: dict[str, Any], missing: list[str]
) -> None:
    rows = stimuli.load(str(demo_dir), "agreement")
    run = predictions_of(
        rows.columns(), **{name: [value] * len(rows) for name, value in given.items()}
    )
    assert [line.split(":")[0] for line in not_computed(rows, run, Protocol())] == missing
