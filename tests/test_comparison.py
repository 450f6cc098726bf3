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
from runs import model_info, predictions_of

from lmdiag import results, stimuli
from lmdiag.comparison import Comparison, Pair, compare_pairs
from lmdiag.comparison import compare_runs as compare
from lmdiag.evaluation import evaluate
from lmdiag.measures import AGREEMENT_LAYOUT, Scores
from lmdiag.protocol import Predictions, Protocol
from lmdiag.results import Place
from lmdiag.stimuli import Stimuli
from lmdiag.types import BadInput

POLARITIES = ("affirmative", "negative")


@pytest.fixture(scope="module")
def rows(demo_dir: Path) -> dict[str, Stimuli]:
    tasks = ("cprag102", "role88", "neg136", "agreement")
    return {task: stimuli.load(str(demo_dir), task) for task in tasks}


def guesses(rows: Stimuli, seed: int, **more: Any) -> Predictions:
    """Random log-probabilities, and expected words on top of half of the lists."""
    rng = np.random.default_rng(seed)
    columns = rows.columns()
    hits = (words[:1] if rng.random() < 0.5 else [] for words in columns["expected"])
    tops = [[*hit, "-", "-"][:2] for hit in hits]
    return predictions_of(columns, np.log(rng.random(len(rows))).tolist(), tops, **more)


def run_of(rows: Stimuli, *predictions: Predictions, kind: Any = "masked", **changes: Any) -> Any:
    """A finished run, as far as it is compared: of one task, with k = 1, 2."""
    protocol = Protocol(**{"k": (1, 2)} | changes)
    return SimpleNamespace(
        path=Path("run"),
        stimuli={rows.task: rows},
        predictions={rows.task: {(part.perturbation, part.run): part for part in predictions}},
        results=SimpleNamespace(
            model=model_info(kind=kind, cased=True),
            protocol=protocol,
            signature=results.signature(protocol, rows.fingerprint),
            tasks={rows.task: dict.fromkeys(part.perturbation for part in predictions)},
        ),
    )


def two_runs(rows: dict[str, Stimuli]) -> tuple[Stimuli, Any, Any]:
    """The rows of ROLE-88, and the runs of two models on them."""
    role = rows["role88"]
    return role, *(run_of(role, guesses(role, seed)) for seed in (1, 2))


def by_measure(comparisons: list[Comparison]) -> dict[str, Comparison]:
    return {one.measure: one for one in comparisons}


def test_values_tests_and_adjustment(rows: dict[str, Stimuli]) -> None:
    role, a, b = two_runs(rows)
    compared = by_measure(compare(a, b, resamples=2000))
    assert list(compared) == [
        "accuracy@1", "accuracy@2", "sensitivity", "sensitivity@0.01",
        "probability_difference", "spearman", "pearson",
    ]  # fmt: skip
    columns = role.columns()
    wins = []
    for run in (a, b):
        p: dict[tuple[str, bool], float] = {}
        for i, value in enumerate(run.predictions["role88"]["none", 0].log_prob):
            p[columns["contrast"][i], columns["good"][i]] = value
        wins.append([p[c, True] > p[c, False] for c, good in p if good])
    only_a = sum(x and not y for x, y in zip(*wins, strict=True))
    only_b = sum(y and not x for x, y in zip(*wins, strict=True))
    one = compared["sensitivity"]
    assert (one.n, one.test) == (len(wins[0]), "mcnemar")
    assert (one.a, one.b) == (sum(wins[0]) / one.n, sum(wins[1]) / one.n)
    assert one.difference == pytest.approx((only_a - only_b) / one.n)
    assert one.p == pytest.approx(scipy.stats.binomtest(only_a, only_a + only_b).pvalue)
    assert one.ci_low <= one.difference <= one.ci_high
    assert compared["spearman"].test == compared["pearson"].test == "permutation"
    assert compared["probability_difference"].test == "sign-flip"
    tested = [each for each in compared.values() if not math.isnan(each.p)]
    smallest = min(tested, key=lambda each: each.p)
    assert smallest.p_adjusted == pytest.approx(min(1, smallest.p * len(tested)))
    assert all(each.p_adjusted >= each.p for each in tested)


def test_what_differs_in_no_item_has_no_test_and_does_not_count(rows: dict[str, Stimuli]) -> None:
    role = rows["role88"]
    first, second = guesses(role, 1), guesses(role, 2)
    run = run_of(role, first)
    for one in compare(run, run, resamples=200):
        assert (one.difference, one.test) == (0, "none")
        assert all(map(math.isnan, (one.ci_low, one.ci_high, one.p, one.p_adjusted)))
    same_words = run_of(role, replace(second, top_words=first.top_words))
    compared = by_measure(compare(run, same_words, resamples=500))
    untested = [name for name, one in compared.items() if one.test == "none"]
    assert untested == ["accuracy@1", "accuracy@2"]
    smallest = min((one for one in compared.values() if one.test != "none"), key=lambda one: one.p)
    assert smallest.p_adjusted == pytest.approx(min(1, 5 * smallest.p))  # of 7 measures


def pair(
    name: str, a: list[float], b: list[float], statistic: Any = "mean", setting: str = "none"
) -> Pair:
    """Two models' values of the same items."""
    items = np.array([str(i) for i in range(len(a))], dtype=object)
    sides = [Scores(name, items, np.array(values), statistic) for values in (a, b)]
    return Pair(Place("t", setting, name), *sides)


@pytest.mark.parametrize(
    ("n", "p"),
    # all differences have one sign: of 2^n patterns of signs, two are as far from 0
    [(2, 2 / 4), (7, 2 / 128), (8, 2 / 256), (16, 2 / 2**16)],
)
def test_few_items_have_an_exact_p_and_no_interval(n: int, p: float) -> None:
    a = [0.5 + 0.01 * i for i in range(n)]
    (one,) = compare_pairs([pair("x", a, [0.0] * n)], seed=0, resamples=200)
    assert (one.test, one.n) == ("sign-flip", n)
    assert one.p == pytest.approx(p)
    assert math.isnan(one.ci_low) == math.isnan(one.ci_high) == (n < 8)


def test_equal_numbers_by_construction_are_one_test() -> None:
    """A suite with one prediction, and agreement with single-token verbs alone."""
    a, b, other = [1.0] * 7 + [0.0], [0.0] * 8, [1.0] * 6 + [0.0] * 2
    proportion: Any = {"statistic": "proportion"}
    pairs = [
        pair("suite_accuracy", a, b, **proportion),
        pair("prediction_accuracy", a, b, **proportion),
        pair("sensitivity", other, b, **proportion),
        pair("tse", other, b, **proportion),
        # equal numbers, but not by construction, and another setting
        pair("accuracy@1", a, b, **proportion),
        pair("prediction_accuracy", a, b, setting="shuf", **proportion),
    ]
    compared = compare_pairs(pairs, seed=0, resamples=50)
    assert [one.same_as for one in compared] == ["", "suite_accuracy", "", "sensitivity", "", ""]
    # p = 2 / 2^7 three times and 2 / 2^6: four distinct tests, so .015625 * 4 = .0625
    assert [one.p for one in compared] == [2 / 128, 2 / 128, 2 / 64, 2 / 64, 2 / 128, 2 / 128]
    assert [one.p_adjusted for one in compared] == [0.0625] * 6
    # items that only tse leaves out: another test
    less = [pairs[2], pair("tse", other[:7], b[:7], **proportion)]
    assert [one.same_as for one in compare_pairs(less, seed=0, resamples=50)] == ["", ""]


def test_tasks_and_measures_choose_the_family(rows: dict[str, Stimuli]) -> None:
    _, a, b = two_runs(rows)
    alone = compare(a, b, resamples=50, measures=["sensitivity"])
    assert [(one.measure, one.p_adjusted) for one in alone] == [("sensitivity", alone[0].p)]
    names = [one.measure for one in compare(a, b, resamples=50, measures=["pearson", "accuracy"])]
    assert names == ["accuracy@1", "accuracy@2", "pearson"]
    assert len(compare(a, b, resamples=50, tasks=["role88"])) == 7
    with pytest.raises(BadInput, match=r"no measure sensitivty .did you mean 'sensitivity'"):
        compare(a, b, measures=["sensitivty"])
    with pytest.raises(BadInput, match=r"no task role8 .did you mean 'role88'.*choose from role88"):
        compare(a, b, tasks=["role8"])


def test_neg136_is_compared_by_subset_and_polarity(rows: dict[str, Stimuli]) -> None:
    neg = rows["neg136"]
    runs = [run_of(neg, guesses(neg, seed)) for seed in (1, 2)]
    compared = compare(*runs, resamples=50)
    levels: dict[str, list[tuple[str, str]]] = {}
    for one in compared:
        levels.setdefault(one.measure, []).append((one.by, one.level))
    subsets = [("subset", "simp"), ("subset", "nat")]
    crossed = [("subset/polarity", f"{s}/{p}") for s in ("simp", "nat") for p in POLARITIES]
    polarity = [("polarity", level) for level in POLARITIES]
    assert levels == {
        "accuracy@1": subsets, "accuracy@2": subsets,
        "sensitivity": crossed, "sensitivity@0.01": crossed,
        "determiner_match@1": polarity, "determiner_match@2": polarity,
    }  # fmt: skip
    measured = evaluate(neg, [guesses(neg, 1)], Protocol(k=(1, 2)), cased=True).measures
    figure = measured["sensitivity"].by["subset/polarity"]["simp/negative"]
    (one,) = [o for o in compared if (o.measure, o.level) == ("sensitivity", "simp/negative")]
    assert (one.a, one.n) == (figure.value, figure.n)


def test_several_runs_are_compared_with_the_first_as_one_family(rows: dict[str, Stimuli]) -> None:
    role = rows["role88"]
    a, b, c = (run_of(role, guesses(role, seed)) for seed in (1, 2, 3))
    compared = compare(a, b, c, resamples=500)
    alone = [compare(a, b, resamples=500), compare(a, c, resamples=500)]
    assert [one.second for one in compared] == [1] * len(alone[0]) + [2] * len(alone[1])
    for one, same in zip(compared, [*alone[0], *alone[1]], strict=True):
        assert replace(one, p_adjusted=0, second=1) == replace(same, p_adjusted=0)
    smallest = min(compared, key=lambda one: one.p)
    tests = sum(one.test != "none" for one in compared)
    assert smallest.p_adjusted == pytest.approx(min(1, smallest.p * tests))
    other = run_of(role, guesses(role, 3), k=(1, 3))
    other.path = Path("third")
    with pytest.raises(BadInput, match=r"run and third cannot be compared: .* differ in k"):
        compare(a, b, other)


def test_the_seed_alone_decides_the_draws(rows: dict[str, Stimuli]) -> None:
    _, a, b = two_runs(rows)
    once = by_measure(compare(a, b, resamples=300))
    assert by_measure(compare(a, b, resamples=300)) == once
    assert by_measure(compare(a, b, resamples=300, seed=1)) != once
    swapped = by_measure(compare(b, a, resamples=300))
    for name, one in once.items():
        assert swapped[name].difference == pytest.approx(-one.difference)
        assert swapped[name].p == pytest.approx(one.p)


def test_what_is_undefined_on_one_side(rows: dict[str, Stimuli]) -> None:
    """Items that one model cannot score count for neither."""
    role = rows["role88"]
    second = guesses(role, 2)
    second.log_prob[0] = None
    compared = by_measure(
        compare(run_of(role, guesses(role, 1)), run_of(role, second), resamples=9)
    )
    assert compared["sensitivity"].n == len(set(role.columns()["contrast"])) - 1
    assert compared["accuracy@1"].n == len(role)
    assert compared["spearman"].n == len(role) - 1
    a, b = (run_of(role, guesses(role, seed, perturbation="both")) for seed in (1, 2))
    assert list(by_measure(compare(a, b, resamples=50))) == [
        "accuracy@1", "accuracy@2", "spearman", "pearson",
    ]  # fmt: skip
    constant = run_of(role, predictions_of(role.columns(), [-1.0] * len(role)))
    compared = by_measure(compare(run_of(role, guesses(role, 1)), constant, resamples=50))
    assert math.isnan(compared["spearman"].b)
    assert math.isnan(compared["spearman"].p_adjusted)
    assert not math.isnan(compared["sensitivity"].p_adjusted)


def test_shuffled_settings_are_compared_by_their_means(rows: dict[str, Stimuli]) -> None:
    cprag = rows["cprag102"]
    shuffled = [
        [guesses(cprag, seed + i, perturbation="shuf", run=i) for i in range(3)] for seed in (1, 50)
    ]
    runs = [run_of(cprag, guesses(cprag, 0), *parts) for parts in shuffled]
    compared = [one for one in compare(*runs, resamples=200) if one.setting == "shuf"]
    assert {one.test for one in compared} == {"sign-flip"}
    expected = cprag.columns()["expected"]
    right = [
        top[0] in words
        for part in shuffled[0]
        for words, top in zip(expected, part.top_words, strict=True)
        if words and top
    ]
    one = by_measure(compared)["accuracy@1"]
    assert one.a == pytest.approx(sum(right) / len(right))
    assert one.n == sum(map(bool, expected))


def test_ew_and_mw_of_one_side_and_of_both_are_not_compared(rows: dict[str, Stimuli]) -> None:
    agreement = rows["agreement"]
    n = len(agreement)
    values = (0.5,) * len(AGREEMENT_LAYOUT)
    part = guesses(agreement, 1, agreement=[values] * n, n_tokens=[1] * n)
    masked, causal = (run_of(agreement, part, kind=kind) for kind in ("masked", "causal"))
    names = [one.measure for one in compare(masked, masked, resamples=20)]
    assert names == ["sensitivity", "sensitivity@0.01", "tse", "ew", "mw"]
    assert [one.measure for one in compare(masked, causal, resamples=20)] == names[:3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": (1, 10)}, r"differ in k \(1,2 and 1,10\);"),
        ({"unit": "word", "seed": 3}, r"in unit \(token and word\); seed \(0 and 3\);"),
        ({"data": "ffffffff"}, r"differ in data \(\w{8} and ffffffff\);"),
    ],
)
def test_runs_of_another_kind_are_refused(
    rows: dict[str, Stimuli], changes: dict[str, Any], message: str
) -> None:
    role, data = rows["role88"], changes.pop("data", None)
    other = run_of(replace(role, fingerprint=data) if data else role, guesses(role, 1), **changes)
    with pytest.raises(BadInput, match=message):
        compare(run_of(role, guesses(role, 1)), other)
