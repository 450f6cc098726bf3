"""Two runs item by item: what is paired, what is tested, what is refused."""

import math
from collections import Counter
from dataclasses import replace
from io import StringIO
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from invented_runs import make_run, model_info, predictions_of
from rich.console import Console
from sentence_files import write_sentences

from lmdiag import results, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.measures import AGREEMENT_LAYOUT, Scores
from lmdiag.report.formats.terminal import print_section
from lmdiag.report.grid import CellText, Grid, GridRow, Heading
from lmdiag.report.output import Section
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import overview
from lmdiag.results import FigureKey
from lmdiag.studies import comparison
from lmdiag.studies.comparison import ScoredPair, compare_all, compare_pairs


@pytest.fixture(scope="module")
def rows(demo_dir):
    tasks = {"cprag102": None, "role88": None, "neg136": None, "agreement": 80}
    return {task: stimuli.load(str(demo_dir), task, limit=n) for task, n in tasks.items()}


@pytest.fixture(scope="module")
def role(rows):
    return rows["role88"]


@pytest.fixture(scope="module")
def runs(role):
    """Runs of three models on ROLE-88."""
    return [run_of(role, guesses(role, seed)) for seed in (1, 2, 3)]


def compare(*models, measures=("all",), **options):
    return comparison.compare_runs(*models, measures=measures, **options)


def guesses(rows, seed, **more):
    """Random log-probabilities, and expected words on top of half of the lists."""
    rng = np.random.default_rng(seed)
    columns = rows.columns()
    hits = (words[:1] if rng.random() < 0.5 else [] for words in columns["expected"])
    tops = [[*hit, "-", "-"][:2] for hit in hits]
    return predictions_of(columns, np.log(rng.random(len(rows))).tolist(), tops, **more)


class OneTask(results.Run):
    """A finished run of one task whose predictions are not in a file."""

    def __init__(self, run_results, rows, predictions):
        super().__init__(Path("nowhere/run"), run_results, {rows.task: rows})
        keys = [(part.perturbation, part.run) for part in predictions]
        self.__dict__["predictions"] = {rows.task: dict(zip(keys, predictions, strict=True))}


def run_of(rows, *predictions, kind="masked", **changes):
    """A finished run, as far as it is compared: of one task, with k = 1, 2."""
    protocol = Protocol(**{"k": (1, 2)} | changes)
    model = model_info(kind=kind, cased=True)
    facts_of_setting = results.results_of_setting(rows, "none", results.SettingResults({}), model)
    settings = dict.fromkeys(part.perturbation for part in predictions)
    signature = results.signature(protocol, rows.fingerprint)
    facts = {"signature": signature, "protocol": protocol, "tasks": {rows.task: settings}}
    return OneTask(replace(facts_of_setting, **facts), rows, predictions)


def by_measure(comparisons):
    return {comparison.measure: comparison for comparison in comparisons}


def test_values_tests_and_adjustment(role, runs):
    compared = by_measure(compare(*runs[:2]))
    assert list(compared)[:4] == ["accuracy@1", "accuracy@2", "sensitivity", "sensitivity@0.01"]
    keys = list(zip(role.columns()["contrast"], role.columns()["good"], strict=True))
    wins = []
    for run in runs[:2]:
        p = dict(zip(keys, run.predictions["role88"]["none", 0].log_prob, strict=True))
        wins.append(np.array([p[c, True] > p[c, False] for c, good in keys if good]))
    only_a, only_b = int((wins[0] & ~wins[1]).sum()), int((wins[1] & ~wins[0]).sum())
    x = compared["sensitivity"]
    assert (x.n, x.test, x.base, x.new) == (len(wins[0]), "mcnemar", wins[0].mean(), wins[1].mean())
    assert x.difference == pytest.approx((only_b - only_a) / x.n)
    score = (only_a - only_b) ** 2 / (only_a + only_b)
    assert x.p == pytest.approx(scipy.stats.chi2.sf(score, 1))
    assert x.ci_low <= x.difference <= x.ci_high
    assert compared["spearman"].test == compared["pearson"].test == "permutation"
    assert compared["probability_difference"].test == "sign-flip"
    tested = [x for x in compared.values() if not math.isnan(x.p)]
    smallest = min(tested, key=lambda x: x.p)
    assert smallest.p_adjusted == pytest.approx(min(1, smallest.p * len(tested)))
    assert all(x.p_adjusted >= x.p for x in tested)
    # the seed alone decides the draws
    assert by_measure(compare(*runs[:2])) == compared
    assert by_measure(compare(*runs[:2], seed=1)) != compared
    for name, x in by_measure(compare(*runs[1::-1])).items():
        assert x.difference == pytest.approx(-compared[name].difference)
        assert x.p == pytest.approx(compared[name].p)


def test_differences_are_new_minus_base_in_every_test():
    """In each statistic, and in its interval.

    Of 10 items the base gets 2 right and the new model 9, all of the base's among them: 0.2, 0.9
    and +0.7. Means of 1 and 3 differ by +2 in each item but one. Medians: 1 and 3. Correlations of
    1 to 10 with falling and with rising numbers: -1 and 1.
    """
    items = np.array([str(i) for i in range(10)], dtype=object)
    falling = np.column_stack([np.arange(10.0), -np.arange(10.0)])
    rising = np.column_stack([np.arange(10.0), np.arange(10.0)])
    ones = np.full(10, 1.0)
    threes = np.append(np.full(9, 3.0), 4.0)
    values = {
        "proportion": (np.repeat([1.0, 0.0], [2, 8]), np.repeat([1.0, 0.0], [9, 1]), 0.7),
        "share": (ones / 10, threes / 10, 0.21),
        "mean": (ones, threes, 2.1),
        "median": (ones, threes, 2.0),
        "spearman": (falling, rising, 2.0),
        "pearson": (falling, rising, 2.0),
    }
    for statistic, (base, new, difference) in values.items():
        sides = [Scores("x", items, numbers, statistic) for numbers in (base, new)]
        for pair, sign in ((sides, 1), (sides[::-1], -1)):
            (x,) = compare_pairs([ScoredPair(FigureKey("t", "none", "x"), *pair)], seed=0)
            assert x.difference == pytest.approx(sign * difference)
            assert x.difference == pytest.approx(x.new - x.base)
            if not math.isnan(x.ci_low):
                assert min(sign * x.ci_low, sign * x.ci_high) > 0


def test_what_differs_in_no_item_has_no_test_and_does_not_count(role, runs):
    for x in compare(runs[0], runs[0]):
        assert (x.difference, x.test) == (0, "none")
        assert all(map(math.isnan, (x.p, x.p_adjusted)))
        assert math.isnan(x.ci_low) or (x.ci_low < 0 < x.ci_high and x.statistic == "proportion")
    same_words = replace(guesses(role, 2), top_words=guesses(role, 1).top_words)
    compared = compare(runs[0], run_of(role, same_words))
    assert [x.measure for x in compared if x.test == "none"] == ["accuracy@1", "accuracy@2"]
    tested = [x for x in compared if x.test != "none"]
    smallest = min(tested, key=lambda x: x.p)
    assert smallest.p_adjusted == pytest.approx(min(1, len(tested) * smallest.p))


def test_equal_numbers_by_construction_are_one_test():
    """A suite with one prediction, and agreement with single-token verbs alone."""

    def pair(name, a, b, setting="none"):
        items = np.array([str(i) for i in range(len(a))], dtype=object)
        sides = [Scores(name, items, np.array(values), "proportion") for values in (a, b)]
        return ScoredPair(FigureKey("t", setting, name), *sides)

    a, b, other = [1.0] * 7 + [0.0], [0.0] * 8, [1.0] * 6 + [0.0] * 2
    pairs = [
        pair("suite_accuracy", a, b),
        pair("prediction_accuracy", a, b),
        pair("sensitivity", other, b),
        pair("tse", other, b),
        # equal numbers, but not by construction, and another setting
        pair("accuracy@1", a, b),
        pair("prediction_accuracy", a, b, setting="shuf"),
    ]
    compared = compare_pairs(pairs, seed=0)
    assert [x.same_as for x in compared] == ["", "suite_accuracy", "", "sensitivity", "", ""]
    # z^2 = 7 three times and 6: of four distinct tests, the largest p is more than 3 times as large
    seven, six = scipy.stats.chi2.sf([7, 6], 1)
    assert [x.p for x in compared] == pytest.approx([seven, seven, six, six, seven, seven])
    assert [x.p_adjusted for x in compared] == pytest.approx([4 * seven] * 2 + [4 * seven] * 4)
    assert [x.n_tests for x in compared] == [4] * 6
    # items that only tse leaves out, or other values of the second model: another test
    for tse in (pair("tse", other[:7], b[:7]), pair("tse", other, a)):
        compared = compare_pairs([pairs[2], tse], seed=0)
        assert [x.same_as for x in compared] == ["", ""]


def test_polarities_of_neg136_are_compared_one_by_one(rows):
    neg = rows["neg136"]
    runs = [run_of(neg, guesses(neg, seed), k=(1,)) for seed in (1, 2)]
    polarities = ("affirmative", "negative")
    crossed = [f"{kind}/{x}" for kind in ("simp", "natural", "less_natural") for x in polarities]
    assert [x.level for x in comparison.compare_runs(*runs)] == ["simp", *crossed]
    levels = {}
    for x in compare(*runs):
        levels.setdefault(x.measure, []).append(x.level)
    assert levels == {
        "accuracy@1": ["simp", "nat"], "sensitivity": crossed, "sensitivity@0.01": crossed,
        "determiner_match@1": [*polarities],
    }  # fmt: skip


def test_a_loss_in_one_polarity_is_no_gain_in_the_other(rows):
    """Three items of each kind are right: negative ones before, affirmative ones after."""
    neg = rows["neg136"]
    columns = neg.columns()
    runs = []
    for right_polarity in ("negative", "affirmative"):
        log_probs = []
        seen = Counter()
        facts = zip(*(columns[x] for x in ("natural", "polarity", "good")), strict=True)
        for natural, polarity, good in facts:
            seen[natural, polarity, good] += 1
            is_right = polarity == right_polarity and seen[natural, polarity, good] <= 3
            log_probs.append(-1.0 if good == is_right else -2.0)
        runs.append(run_of(neg, predictions_of(columns, log_probs, [["-", "-"]] * len(neg))))
    lost = comparison.Comparisons(comparison.compare_runs(*runs), runs).losses(5)
    assert [line.partition(" (model")[0] for line in lost] == [
        "sensitivity of neg136 (simple, negative): 16.7 to 0.0",
        "sensitivity of neg136 (natural, negative): 75.0 to 0.0",
        "sensitivity of neg136 (less natural, negative): 75.0 to 0.0",
    ]


def test_several_runs_are_compared_with_the_first_as_one_family(runs):
    compared = compare(*runs)
    pairs = [compare(runs[0], run) for run in runs[1:]]
    alone = [replace(x, number=number) for number in (1, 2) for x in pairs[number - 1]]
    first, other = (
        [replace(x, p_adjusted=0, n_tests=0) for x in rows] for rows in (compared, alone)
    )
    assert first == other
    smallest, tests = min(x.p for x in compared), sum(x.test != "none" for x in compared)
    assert min(x.p_adjusted for x in compared) == pytest.approx(min(1, smallest * tests))


def test_items_that_one_model_cannot_score_count_for_neither(role, runs):
    second = guesses(role, 2)
    second.log_prob[0] = None
    compared = by_measure(compare(runs[0], run_of(role, second)))
    assert compared["sensitivity"].n == len(set(role.columns()["contrast"])) - 1
    assert compared["accuracy@1"].n == len(role)
    assert compared["spearman"].n == len(role) - 1
    constant = run_of(role, predictions_of(role.columns(), [-1.0] * len(role)))
    compared = by_measure(compare(runs[0], constant))
    assert math.isnan(compared["spearman"].new)
    assert math.isnan(compared["spearman"].p_adjusted)


def test_contrasts_that_are_tied_in_one_of_the_models_are_not_compared(role, runs):
    """A layer whose contrasts are all tied is not worse than one that guesses."""
    constant = predictions_of(role.columns(), [-1.0] * len(role))
    compared = by_measure(compare(runs[0], run_of(role, constant)))
    n = len(set(role.columns()["contrast"]))
    for name in ("sensitivity", "sensitivity@0.01"):
        x = compared[name]
        assert (x.n, x.n_tied, x.test) == (0, n, "none")
        assert all(math.isnan(value) for value in (x.base, x.new, x.difference, x.p, x.ci_low))
    # of a half that is tied, the other half is compared, as if there were no more items
    half = guesses(role, 2)
    tied = sorted(set(role.columns()["contrast"]))[: n // 2]
    rows = [i for i, name in enumerate(role.columns()["contrast"]) if name in tied]
    for i in rows:
        half.log_prob[i] = -1.0 + 5e-7 * (i % 2)
    x = by_measure(compare(runs[0], run_of(role, half)))["sensitivity"]
    for i in rows:
        half.log_prob[i] = None
    unscored = by_measure(compare(runs[0], run_of(role, half)))["sensitivity"]
    assert (x.n, x.n_tied, unscored.n_tied) == (n - n // 2, n // 2, 0)
    assert replace(x, n_tied=0, n_tests=0, p_adjusted=0) == replace(
        unscored, n_tests=0, p_adjusted=0
    )
    several = [run_of(role, constant), *runs[:2]]
    key = FigureKey("role88", "none", "sensitivity")
    assert {*compare_all(several, [key])[key]} == {(1, 2), (2, 1)}


def test_shuffled_settings_are_compared_by_their_means(rows):
    cprag = rows["cprag102"]
    shuffled = [
        [guesses(cprag, seed + i, perturbation="shuf", run=i) for i in range(3)] for seed in (1, 50)
    ]
    runs = [run_of(cprag, guesses(cprag, 0), *parts) for parts in shuffled]
    compared = [x for x in compare(*runs) if x.setting == "shuf"]
    assert {x.test for x in compared} == {"sign-flip"}
    expected = cprag.columns()["expected"]
    tops = [zip(expected, part.top_words, strict=True) for part in shuffled[0]]
    right = [top[0] in words for part in tops for words, top in part if words and top]
    x = by_measure(compared)["accuracy@1"]
    assert (x.base, x.n) == (pytest.approx(sum(right) / len(right)), sum(map(bool, expected)))


def test_every_two_runs_are_compared_as_alone(rows):
    """But for EW and MW of a masked and a causal model, which read different contexts."""
    agreement, rng = rows["agreement"], np.random.default_rng(0)
    n = len(agreement)
    runs = []
    for seed, kind in enumerate(("masked", "causal", "masked", "causal")):
        more = {"agreement": rng.random((n, len(AGREEMENT_LAYOUT))).tolist(), "n_tokens": [1] * n}
        runs.append(run_of(agreement, guesses(agreement, seed, **more), kind=kind))
    compared = compare_all(runs, [FigureKey("agreement", "none", x) for x in ("sensitivity", "ew")])
    for place, pairs in compared.items():
        others = {(i, j) for i, j in permutations(range(4), 2) if (i + j) % 2}
        assert pairs.keys() & others == (others if place.measure == "sensitivity" else set())
        for (i, j), result in pairs.items():
            (x,) = compare(runs[i], runs[j], measures=[place.measure])
            assert result == pytest.approx((x.difference, x.ci_low, x.ci_high, x.p))


def test_runs_that_share_few_items_are_compared_in_these(role, runs):
    """The pairs of a run that scored a half of the items have these, other pairs have all."""
    half = guesses(role, 4)
    contrasts = sorted(set(role.columns()["contrast"]))
    for row, contrast in enumerate(role.columns()["contrast"]):
        if contrast in contrasts[::2]:
            half.log_prob[row] = None
    several = [*runs, run_of(role, half)]
    key = FigureKey("role88", "none", "probability_difference")
    outcomes = compare_all(several, [key])[key]
    assert outcomes.keys() == {*permutations(range(4), 2)}
    for (i, j), outcome in outcomes.items():
        (x,) = compare(several[i], several[j], measures=[key.measure])
        assert x.n == (len(contrasts) // 2 if 3 in (i, j) else len(contrasts))
        assert outcome == pytest.approx((x.difference, x.ci_low, x.ci_high, x.p))


def test_measures_that_are_not_of_both_kinds_of_models_are_named(tmp_path):
    data = write_sentences(tmp_path / "texts.csv")
    kinds = {"masked": {}, "causal": {"kind": "causal", "bos": True}}
    folders = [make_run(tmp_path / id, data, id=id, **how) for id, how in kinds.items()]
    runs = [results.load_run(folder) for folder in folders]
    (line,) = comparison.not_compared(runs)
    assert line.startswith("mean surprisal per word and SLOR, bits per word, language en of masked")
    assert comparison.not_compared([runs[0]] * 2) == []


@pytest.mark.parametrize("elicitation", ["probability", "choice"])
def test_what_is_shown_first_is_what_is_tested(demo_dir, tmp_path, elicitation):
    """The headline figures of three diagnostics, under the names of the overview."""
    tasks = ("cprag102", "role88", "neg136")
    how = {"protocol": Protocol(tasks=tasks, elicitation=elicitation), "kind": "causal"}
    folders = [make_run(tmp_path / id, demo_dir, id=id, seed=i, **how) for i, id in enumerate("ab")]
    runs = [results.load_run(folder) for folder in folders]
    compared = comparison.compare_runs(*runs)
    (grid,) = overview(ReportFigures.of([run.results for run in runs])).tables
    shown = [row.labels[0] for row in grid.rows if not row.is_heading]
    assert [x.label for x in compared] == shown
    assert {"sensitivity, natural affirmative", "position bias"} - {*shown} == (
        set() if elicitation == "choice" else {"position bias"}
    )
    assert {x.n_tests for x in compared} == {sum(x.test != "none" for x in compared)}
    every = comparison.compare_runs(*runs, measures=["all"])
    assert len(every) > len(compared) or elicitation == "choice"


def test_many_rows_are_printed_in_part():
    console = Console(file=(file := StringIO()), width=200)
    has_all = "--format csv, or to_frame() in Python, has all"
    row = GridRow(("a row",), 0, (CellText("1"),))
    print_section(Section("", [Grid("Many", ("",), (Heading("n"),), (row,) * 501)]), console)
    assert file.getvalue().count("a row") == 500
    assert f"Many: the first 500 of 501 rows; {has_all}" in file.getvalue()
