"""Two runs item by item: what is paired, what is tested, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from runs import predictions_of

from lmdiag import evaluation, results, stimuli
from lmdiag.comparison import Comparison, average, compare, parts
from lmdiag.measures import AGREEMENT_LAYOUT, Scores
from lmdiag.schema import BadInput, Predictions, Protocol
from lmdiag.stimuli import Stimuli

POLARITIES = ("affirmative", "negative")


def run_of(
    rows: dict[str, Stimuli],
    found: dict[str, list[Predictions]],
    *,
    kind: str = "masked",
    protocol: Protocol | None = None,
    **data: str,
) -> Any:
    """A finished run as `results.load_run` gives it."""
    protocol = protocol or Protocol(k=(1, 2))
    fingerprint = results.combine({task: each.fingerprint for task, each in rows.items()} | data)
    tasks = {task: {part.perturbation: {} for part in of} for task, of in found.items()}
    return SimpleNamespace(
        path=Path("run"),
        stimuli=rows,
        predictions={
            task: {(part.perturbation, part.run): part for part in of} for task, of in found.items()
        },
        results={
            "model": {"kind": kind, "cased": True},
            "signature": results.signature(protocol, fingerprint),
            "protocol": protocol.to_json(),
            "tasks": tasks,
        },
    )


@pytest.fixture(scope="module")
def role(demo_dir: Path) -> dict[str, Stimuli]:
    return {"role88": stimuli.load(str(demo_dir), "role88")}


def guesses(rows: Stimuli, seed: int, **more: Any) -> Predictions:
    rng = np.random.default_rng(seed)
    columns = rows.columns()
    hits = (words[:1] if rng.random() < 0.5 else [] for words in columns["expected"])
    tops = [[*hit, "-", "-"][:2] for hit in hits]
    return predictions_of(columns, np.log(rng.random(len(rows))).tolist(), tops, **more)


def by_measure(found: list[Comparison]) -> dict[str, Comparison]:
    return {one.measure: one for one in found}


def test_values_tests_and_adjustment(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    a, b = (run_of(role, {"role88": [guesses(rows, seed)]}) for seed in (1, 2))
    found = by_measure(compare(a, b, resamples=2000))
    assert list(found) == [
        "accuracy@1", "accuracy@2", "sensitivity", "sensitivity@0.01",
        "probability_difference", "spearman", "pearson",
    ]  # fmt: skip

    one = found["sensitivity"]
    wins = []
    for run in (a, b):
        p = dict(
            zip(
                run.predictions["role88"]["none", 0].id,
                run.predictions["role88"]["none", 0].log_prob,
                strict=True,
            )
        )
        good = {
            c: p[i]
            for i, c, g in zip(
                *(rows.columns()[n] for n in ("id", "contrast", "good")), strict=True
            )
            if g
        }
        bad = {
            c: p[i]
            for i, c, g in zip(
                *(rows.columns()[n] for n in ("id", "contrast", "good")), strict=True
            )
            if not g
        }
        wins.append([good[c] > bad[c] for c in good])
    only_a = sum(x and not y for x, y in zip(*wins, strict=True))
    only_b = sum(y and not x for x, y in zip(*wins, strict=True))
    assert (one.n, one.test) == (len(wins[0]), "mcnemar")
    assert (one.a, one.b) == (sum(wins[0]) / one.n, sum(wins[1]) / one.n)
    assert one.difference == pytest.approx((only_a - only_b) / one.n)
    assert one.p == pytest.approx(scipy.stats.binomtest(only_a, only_a + only_b).pvalue)
    assert one.ci_low <= one.difference <= one.ci_high
    assert found["spearman"].test == found["probability_difference"].test == "bootstrap"

    tested = [each for each in found.values() if not math.isnan(each.p)]
    smallest = min(tested, key=lambda each: each.p)
    assert smallest.p_adjusted == pytest.approx(min(1, smallest.p * len(tested)))
    assert all(each.p_adjusted >= each.p for each in tested)


def test_what_differs_in_no_item_has_no_interval_and_no_test(role: dict[str, Stimuli]) -> None:
    run = run_of(role, {"role88": [guesses(role["role88"], 1)]})
    for one in compare(run, run, resamples=200):
        assert (one.difference, one.test) == (0, "none")
        assert all(map(math.isnan, (one.ci_low, one.ci_high, one.p, one.p_adjusted)))


def test_what_differs_in_no_item_does_not_count_for_holm(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    first, second = guesses(rows, 1), guesses(rows, 2)
    same = replace(second, top_words=first.top_words)
    a, b = (run_of(role, {"role88": [part]}) for part in (first, same))
    found = by_measure(compare(a, b, resamples=500))
    assert [name for name, one in found.items() if one.test == "none"] == [
        "accuracy@1", "accuracy@2",
    ]  # fmt: skip
    smallest = min((one for one in found.values() if one.test != "none"), key=lambda one: one.p)
    assert smallest.p_adjusted == pytest.approx(min(1, 5 * smallest.p))  # of 7 measures


def test_neg136_is_compared_by_subset_and_polarity(demo_dir: Path) -> None:
    rows = {"neg136": stimuli.load(str(demo_dir), "neg136")}
    runs = [run_of(rows, {"neg136": [guesses(rows["neg136"], seed)]}) for seed in (1, 2)]
    found = compare(*runs, resamples=50)
    polarities = [f"{subset}/{polarity}" for subset in ("simp", "nat") for polarity in POLARITIES]
    wanted = {
        "accuracy@1": ("subset", ["simp", "nat"]),
        "accuracy@2": ("subset", ["simp", "nat"]),
        "sensitivity": ("subset/polarity", polarities),
        "sensitivity@0.01": ("subset/polarity", polarities),
        "determiner_match@1": ("polarity", list(POLARITIES)),
        "determiner_match@2": ("polarity", list(POLARITIES)),
    }
    for name, (by, levels) in wanted.items():
        those = [one for one in found if one.measure == name]
        assert [(one.by, one.level) for one in those] == [(by, level) for level in levels]
    assert {one.measure for one in found} == set(wanted)
    run = runs[0]
    scored = evaluation.evaluate(
        rows["neg136"], [run.predictions["neg136"]["none", 0]], Protocol(k=(1, 2)), cased=True
    )
    cell = scored["measures"]["sensitivity"]["by"]["subset/polarity"]["simp/negative"]
    (one,) = [o for o in found if (o.measure, o.level) == ("sensitivity", "simp/negative")]
    assert (one.a, one.n) == (cell["value"], cell["n"])


def test_several_runs_are_compared_with_the_first_as_one_family(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    a, b, c = (run_of(role, {"role88": [guesses(rows, seed)]}) for seed in (1, 2, 3))
    found = compare(a, b, c, resamples=500)
    alone = [compare(a, b, resamples=500), compare(a, c, resamples=500)]
    assert [one.second for one in found] == [1] * len(alone[0]) + [2] * len(alone[1])
    for one, same in zip(found, [*alone[0], *alone[1]], strict=True):
        assert replace(one, p_adjusted=0, second=1) == replace(same, p_adjusted=0)
    smallest = min(found, key=lambda one: one.p)
    tests = sum(one.test != "none" for one in found)
    assert smallest.p_adjusted == pytest.approx(min(1, smallest.p * tests))
    other = run_of(role, {"role88": [guesses(rows, 3)]}, protocol=Protocol(k=(1, 3)))
    other.path = Path("third")
    with pytest.raises(BadInput, match=r"run and third cannot be compared: .* differ in k"):
        compare(a, b, other)


def test_what_is_not_defined_is_not_compared(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    a, b = (run_of(role, {"role88": [guesses(rows, seed, perturbation="both")]}) for seed in (1, 2))
    assert set(by_measure(compare(a, b, resamples=50))) == {
        "accuracy@1", "accuracy@2", "spearman", "pearson",
    }  # fmt: skip


def test_the_seed_alone_decides_the_draws(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    a, b = (run_of(role, {"role88": [guesses(rows, seed)]}) for seed in (1, 2))
    once = by_measure(compare(a, b, resamples=300))
    assert by_measure(compare(a, b, resamples=300)) == once
    assert by_measure(compare(a, b, resamples=300, seed=1)) != once
    swapped = by_measure(compare(b, a, resamples=300))
    for name, one in once.items():
        assert swapped[name].difference == pytest.approx(-one.difference)
        assert one.test == "bootstrap" or swapped[name].p == pytest.approx(one.p)


def test_items_that_one_model_cannot_score_count_for_neither(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    first, second = guesses(rows, 1), guesses(rows, 2)
    second.log_prob[0] = None
    a, b = run_of(role, {"role88": [first]}), run_of(role, {"role88": [second]})
    found = by_measure(compare(a, b, resamples=200))
    contrasts = len(set(rows.columns()["contrast"]))
    assert found["sensitivity"].n == contrasts - 1
    assert found["accuracy@1"].n == len(rows)
    assert found["spearman"].n == len(rows) - 1


def test_shuffled_settings_are_compared_by_their_means(demo_dir: Path) -> None:
    rows = {"cprag102": stimuli.load(str(demo_dir), "cprag102")}

    def runs(seed: int) -> list[Predictions]:
        shuffled = [
            guesses(rows["cprag102"], seed + i, perturbation="shuf", run=i) for i in range(3)
        ]
        return [guesses(rows["cprag102"], seed), *shuffled]

    a, b = (run_of(rows, {"cprag102": runs(seed)}) for seed in (1, 50))
    found = [one for one in compare(a, b, resamples=200) if one.setting == "shuf"]
    assert {one.test for one in found} == {"bootstrap"}
    one = by_measure(found)["accuracy@1"]
    expected = rows["cprag102"].columns()["expected"]
    right = [
        tops[0] in words
        for part in runs(1)[1:]
        for words, tops in zip(expected, part.top_words, strict=True)
        if words and tops
    ]
    assert one.a == pytest.approx(sum(right) / len(right))
    assert one.n == sum(map(bool, expected))


def test_an_average_is_over_items_that_every_run_has() -> None:
    first = Scores("x", np.array(["a", "b"], dtype=object), np.array([1.0, 0.0]), "proportion")
    second = Scores("x", np.array(["b", "c"], dtype=object), np.array([1.0, 1.0]), "proportion")
    mean = average([first, second])
    assert (mean.items.tolist(), mean.values.tolist(), mean.statistic) == (["b"], [0.5], "share")


def test_contexts_of_other_sides_are_not_compared(demo_dir: Path) -> None:
    rows = {"agreement": stimuli.load(str(demo_dir), "agreement")}
    n = len(rows["agreement"])
    values = (0.5,) * len(AGREEMENT_LAYOUT)
    part = guesses(rows["agreement"], 1, agreement=[values] * n, n_tokens=[1] * n)
    masked, causal = (
        run_of(rows, {"agreement": [part]}, kind=kind) for kind in ("masked", "causal")
    )
    names = [one.measure for one in compare(masked, masked, resamples=20)]
    assert names == ["sensitivity", "sensitivity@0.01", "tse", "ew", "mw"]
    assert [one.measure for one in compare(masked, causal, resamples=20)] == names[:3]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"protocol": Protocol(k=(1, 10))}, r"differ in k \(1,2 and 1,10\);"),
        ({"protocol": Protocol(k=(1, 2), threshold=0.05)}, r"differ in t \(0.01 and 0.05\);"),
        (
            {"protocol": Protocol(k=(1, 2), unit="word", seed=3)},
            r"in unit \(token and word\); seed \(0 and 3\);",
        ),
        ({"protocol": Protocol(k=(1, 2), limit=3)}, r"differ in limit \(- and sample3\);"),
        ({"role88": "ffffffff"}, r"differ in data \(\w{8} and ffffffff\);"),
    ],
)
def test_runs_of_another_kind_are_refused(
    role: dict[str, Stimuli], other: dict[str, Any], message: str
) -> None:
    found = {"role88": [guesses(role["role88"], 1)]}
    with pytest.raises(BadInput, match=message):
        compare(run_of(role, found), run_of(role, found, **other))


def test_the_parts_of_a_signature() -> None:
    signature = "lmdiag:0.1|data:1a2b3c4d|k:1,5"
    assert parts(signature) == {"lmdiag": "0.1", "data": "1a2b3c4d", "k": "1,5"}


def test_undefined_stays_undefined_and_is_no_part_of_the_family(role: dict[str, Stimuli]) -> None:
    rows = role["role88"]
    constant = predictions_of(rows.columns(), [-1.0] * len(rows))
    a = run_of(role, {"role88": [guesses(rows, 1)]})
    b = run_of(role, {"role88": [constant]})
    found = by_measure(compare(a, b, resamples=50))
    assert math.isnan(found["spearman"].b)
    assert math.isnan(found["spearman"].p_adjusted)
    assert not math.isnan(found["sensitivity"].p_adjusted)
