"""Each sentence against the numbers of the tests that it reports, for results of every kind.

`claims` reads a sentence as a reader does: what it says of each thing that it names. A sentence is
false where that differs from the record of the test, where "all" or "both" are not all, where the
largest is not the largest, and where layers, regions and predictors are called models.
"""

import math
import random
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from invented_runs import model_info
from pandas import DataFrame, concat

import lmdiag
from lmdiag.asking.protocol import Protocol
from lmdiag.report.analysis_findings import analysis_findings
from lmdiag.report.comparison_findings import findings_on_pair, findings_on_pairs
from lmdiag.report.fit_findings import fit_findings
from lmdiag.report.multiverse_findings import multiverse_findings
from lmdiag.report.reported_tests import ReportedTest
from lmdiag.report.run_findings import models_findings, run_findings
from lmdiag.results import Figure, Results
from lmdiag.results.results import DataInfo, Device, SettingResults, TaskData
from lmdiag.stats import holm
from lmdiag.studies.multiverse import Headline

_CLAIMS = {
    "no gain on held-out": "lower", "has no gain": "lower",
    "do not differ": "no test", "no test": "no test",
    "cannot be told from chance": "unclear", "No effect": "unclear",
    "No gain": "unclear", "No difference": "unclear", "higher": "higher",
    "lower": "lower", "predicts": "higher", "is above chance": "higher",
}  # fmt: skip
"""Words of a sentence -> what they claim, the first that a part of it has."""


def claim_of(part):
    """What a part of a sentence claims; "" for nothing."""
    return next((claim for words, claim in _CLAIMS.items() if words in part), "")


def claims(sentence, subjects):
    """Subject -> what a sentence says of it."""
    claimed = {}
    for part in re.split(r"; | and (?=(?:is )?(?:higher|lower))|(?<=\D)\. ", sentence):
        for subject in subjects:
            if re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", part):
                claimed[subject] = claim_of(part)
    return claimed


def truth(test):
    if not test.is_tested:
        return "no test"
    return test.direction if test.is_clear else "unclear"


def faults(sentences, tests, noun="models"):
    """What is false in sentences on tests of one kind, whose subjects are models or `noun`."""
    text = " ".join(sentences)
    found = []
    for sentence in sentences:
        for subject, claim in claims(sentence, [test.subject for test in tests]).items():
            (test,) = (test for test in tests if test.subject == subject)
            if claim and claim != truth(test):
                found.append(f"{subject}: said {claim}, is {truth(test)}")
    named = {x for sentence in sentences for x in claims(sentence, [t.subject for t in tests])}
    for test in tests:
        if sentences and not test.is_tested and test.value and test.subject not in named:
            found.append(f"{test.subject} has no test, which is not said")
    for counted in re.finditer(
        r"\b(both|all (\d+)|(?:any|either) of the (\d+)) (?:compared )?(\w+)", text
    ):
        n = int(counted[2] or counted[3] or 2)
        if n != len(tests) or n < 2 or not all(test.is_tested for test in tests):
            found.append(f"{counted[0]}: there are {len(tests)}")
        if counted[4] != noun:
            found.append(f"{counted[4]} are {noun}")
    if noun != "models" and re.search(r"\bmodels\b", text):
        found.append(f"models: these are {noun}")
    if largest := re.search(r"largest for ([^:]+):", text):
        best = max(tests, key=lambda test: test.value)
        is_alone = sum(test.value == best.value for test in tests) == 1
        if largest[1] != best.subject or not is_alone or best.value <= 0:
            found.append(f"largest is {best.subject}")
    if len(re.findall(r"each p", text)) and sum(test.is_clear for test in tests) < 2:
        found.append("each p: of one test")
    for words in ("depend on each other", "Rt ", "ahead"):
        if words in text:
            found.append(words)
    return found


# ---- conditions ---------------------------------------------------------------------------------


def items_of(name, differences, column="model"):
    """Items of one model or region, with these differences between two levels."""
    return DataFrame(
        {column: name, "item": item, "c": level, "rt": 300 + item + (level == "b") * difference}
        for item, difference in enumerate(differences)
        for level in "ab"
    )


def drawn(rng):
    """Differences of a few or some items: equal, none, clear in either direction, or noise."""
    n = rng.choice([1, 2, 3, 5, 10, 20])
    kind = rng.choice(["equal", "none", "up", "down", "noise"])
    if kind in ("equal", "none"):
        return [2.0 * (kind == "equal")] * n
    mean = {"up": 5, "down": -5, "noise": 0}[kind]
    return [mean + rng.gauss(0, 2) for _ in range(n)]


def reported(analysis, column):
    """The tests of an analysis by the numbers of its table."""
    return [
        ReportedTest(str(row[column]).strip(), "", row["estimate"], row["p"], 1, row["n"])
        for row in analysis.effects.to_dict("records")
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("column", ["model", "region"])
def test_sentences_on_conditions_say_what_the_tests_say(column, seed):
    rng = random.Random(seed)
    names = {"model": ["bert", "gpt", "opt"], "region": [1, 2, 3]}[column][: 1 + seed % 3]
    table = concat([items_of(name, drawn(rng), column) for name in names])
    is_region = column == "region" and len(names) > 1
    analysis = lmdiag.analyse(table, response="rt", **({"region": "all"} if is_region else {}))
    said = analysis_findings(analysis)
    tests = reported(analysis, "suite" if is_region else "model")
    if len(names) > 1:
        assert faults(said, tests, f"{column}s") == []
        return
    (test,) = tests
    claim = claim_of(said[0]) if said else ""
    assert claim == (truth(test) if test.is_tested or test.value else "")
    assert faults(said, [test._replace(subject="(none)", value=0)]) == []


def test_an_interaction_is_followed_by_its_simple_effects_with_the_numbers_of_their_table():
    rng = random.Random(1)
    rows = [
        {"item": item, "a": a, "b": b, "rt": 300 + (20 * (a == "y") * (b == "v")) + rng.gauss(0, 2)}
        for item in range(12)
        for a in "xy"
        for b in "uv"
    ]
    analysis = lmdiag.analyse(DataFrame(rows), response="rt")
    interaction, simple, *_ = analysis_findings(analysis)
    row = analysis.effects.set_index("effect").loc["a:b"]
    size = f"the difference y − x is {row.estimate:.2f} higher where b is v than where it is u"
    assert interaction.startswith(f"There is an interaction of a and b in rt: {size} [")
    table = analysis.simple.set_index("level")
    assert table["n_tests"].tolist() == [3, 3, 3]
    assert table["p_holm"].tolist() == holm(table["p"].tolist())
    assert simple.startswith("RT where a is y, compared with x: ")
    assert f"{table.loc['v', 'estimate']:.2f} higher where b is v (p < .001)" in simple
    assert "not distinguishable where b is u (p = " in simple
    whole = [x for x in analysis.to_frame()["table"] if x == "simple"]
    assert len(whole) == len(analysis.to_json()["simple"]) == 3


def test_the_exact_p_stands_beside_a_t_test_of_few_items_that_it_contradicts():
    few = [1.0, 1.2, 1.1]
    (said,) = analysis_findings(lmdiag.analyse(items_of("m", few), response="rt"))
    assert said.endswith("p = .003, exact p = .250.")
    both = concat([items_of("m", few), items_of("n", [5 + i % 3 for i in range(10)])])
    (said,) = analysis_findings(lmdiag.analyse(both, response="rt"))
    assert "for both models: m (1.10; exact p = .250) and n (5.90), each p < .05" in said


# ---- comparisons and runs -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_sentences_on_a_comparison_say_what_the_adjusted_tests_say(seed):
    rng = random.Random(seed)
    tests = []
    for name in ("accuracy", "tse", "rank")[: 1 + seed % 3]:
        value = rng.choice([-0.2, 0.0, 0.1])
        p = rng.choice([0.001, 0.04, 0.05, 0.6]) if value else math.nan
        tests.append(ReportedTest(name, f"{value:+}", value, p, 3, 20))
    said = [*findings_on_pair("new", "base", tests)]
    assert said
    assert faults(said, tests, "figures") == []
    several = [*findings_on_pairs("base", {"one": tests, "other": [tests[0]]})]
    n_higher = sum(test.is_clear and test.value > 0 for test in tests)
    assert (f"one is higher in {n_higher}" in several[0]) == (n_higher > 0)
    assert "different in none" not in several[0]
    if not tests[0].is_tested:
        assert "other is the same in every item" in several[0]
    elif not tests[0].is_clear:
        assert "other is not distinguishable in any" in several[0]


def shares(*counts):
    """Runs with these numbers of right items of 20 on a diagnostic, None without a value."""
    runs = []
    for right in counts:
        value = None if right is None else right / 20
        figure = Figure(value, 20, chance=0.5, statistic="proportion")
        tasks = {"role88": {"none": SettingResults({"sensitivity": figure})}}
        empty = measured_results()
        runs.append(replace(empty, tasks=tasks))
    return runs


def measured_results():
    info = model_info()
    data = DataInfo("", None, "", {"role88": TaskData("", 20)})
    how = Protocol(tasks=("role88",)), {}, Device("", 0), {}, "", 0, {}
    return Results("", info, data, *how)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((20, 20, 10, 0, 12), "Of 5 layers, above chance are 2 on ROLE-88; below chance are 1"),
        ((10, 10, 10, 10, 10, 10), "Of 6 layers, none is above chance on ROLE-88."),
        ((20, None, None, 10, 10), "Of 5 layers, above chance are 1 on ROLE-88 (3 tested)."),
    ],
)
def test_layers_are_counted_as_layers_and_those_without_a_test_are_not(counts, said):
    (sentence,) = models_findings(shares(*counts), "layers")
    assert sentence.startswith(said)
    assert models_findings(shares(None, None, None, None, None), "layers") == []


def test_the_sentence_of_a_single_layer_has_its_number():
    (run,) = shares(20)
    layered = replace(run, protocol=replace(run.protocol, layer=3))
    (said,) = run_findings(layered)
    assert said.startswith("model, layer 3 gives verbs more probability")


def test_models_that_do_the_same_in_all_ways_of_asking_share_a_sentence():
    ways = {"a": shares(20, 19), "b": shares(20, 20), "c": shares(20, 10), "d": shares(19, 20, 20)}
    runs = [run for of_model in ways.values() for run in of_model]
    numbers = {"a": [0, 1], "b": [2, 3], "c": [4, 5], "d": [6, 7, 8]}
    multiverse = SimpleNamespace(
        models=["a", "b", "c"], numbers_of=numbers.get,
        runs=[SimpleNamespace(results=run) for run in runs], forms={},
        figures=[Headline("role88", "none", "sensitivity", "", "", "sensitivity")],
    )  # fmt: skip
    assert multiverse_findings(multiverse) == [
        "In all 2 ways of asking, a and b are above chance in sensitivity.",
        "For c, asked in 2 ways, the result in sensitivity depends on the way of asking.",
    ]
    multiverse.models = ["a", "d"]
    assert multiverse_findings(multiverse) == [
        "In all ways of asking (2 of a and 3 of d), a and d are above chance in sensitivity."
    ]


# ---- human measures -----------------------------------------------------------------------------


def words(rng, effects):
    """Words with reading times and surprisals of some models, with these effects on the times."""
    n = 60
    table = DataFrame({"position": range(n), "word": "w", "x": [i % 7 for i in range(n)]})
    rt = [300 + rng.gauss(0, 10) for _ in range(n)]
    for number, effect in enumerate(effects, start=1):
        table[f"s{number}"] = [rng.gauss(5, 2) for _ in range(n)]
        rt = [time + effect * bits for time, bits in zip(rt, table[f"s{number}"], strict=True)]
    return table.assign(rt=rt)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("folds", [None, 10])
def test_sentences_on_a_fit_say_what_the_tests_say(folds, seed):
    rng = random.Random(seed)
    effects = [rng.choice([0, 0, 1.2, 3]) for _ in range(1 + seed % 4)]
    names = [f"s{number}" for number in range(1, len(effects) + 1)]
    how = {"response": "rt", "controls": ["x"], "lags": 0, "folds": folds}
    fit = lmdiag.fit(words(rng, effects), surprisal=names, **how)
    tests = [ReportedTest(m.name, "", m.per_word, m.p, n=m.n) for m in fit.models]
    assert faults(fit_findings(fit), tests) == []


def test_a_gain_below_zero_is_no_gain_and_predicts_nothing():
    table = words(random.Random(0), [0.0])
    fit = lmdiag.fit(table, surprisal="s1", response="rt", controls=["x"], lags=0)
    lost = replace(fit, models=[replace(fit.models[0], per_word=-0.01, p=0.04)])
    (said,) = fit_findings(lost)
    assert said.startswith(
        "Surprisal of s1 has no gain for rt on held-out words (−0.01000 per word)"
    )


def test_each_predictor_has_a_sentence_by_its_own_test():
    table = words(random.Random(3), [3.0, 0.0]).assign(entropy=lambda x: x["s2"])
    how = {"response": "rt", "controls": ["x"], "lags": 0, "predictors": ["surprisal", "entropy"]}
    fit = lmdiag.fit(table.rename(columns={"s1": "surprisal"}), **how)
    surprisal, entropy = fit_findings(fit)
    assert surprisal.startswith("Surprisal predicts rt beyond the baseline with entropy: F(1, 56)")
    assert entropy.startswith("No gain of entropy for rt beyond the baseline with surprisal can")


# ---- sentences that were false ------------------------------------------------------------------

A, B = (ReportedTest(name, "3.00", 3.0, 0.001, n=10) for name in "AB")
C = ReportedTest("C", "2.00", 2.0, math.nan, n=10)
NOISE = ReportedTest("B", "0.10", 0.1, 0.6, n=10)
REGIONS = [A._replace(subject=f"region {number}") for number in (1, 2, 3)]
LAYERS = [NOISE._replace(subject=f"layer {number}") for number in range(6)]
GAINS = [
    ReportedTest("s1", "0.029", 0.029, 0.01), ReportedTest("s2", "-0.026", -0.026, 0.02),
    ReportedTest("s3", "0.003", 0.003, 0.3),
]  # fmt: skip
IS_HIGHER = "Surprisal is higher where cond is b than where it is a for"
FALSE = [
    ([f"{IS_HIGHER} both models: A (3.00 bits) and B (3.00 bits), each p < .05."], [A, B, C]),
    ([f"{IS_HIGHER} all 1 models: A (3.00 bits), p < .05."], [A, C]),
    (["No effect of cond on surprisal can be told from chance in any of the 2 models."],
     [C, NOISE]),
    ([f"{IS_HIGHER} all 3 models: region 1, region 2 and region 3, each p < .05."], REGIONS,
     "regions"),
    (["Of 6 models, above chance are 0 on rows."], LAYERS, "layers"),
    (["The gain in log-likelihood is largest for s2: −0.026 per word."], GAINS),
    (["Surprisal predicts rt beyond the baseline for s1 (each p < .05)."], GAINS[:1]),
    (["Surprisal of s2 predicts rt beyond the baseline: F(3, 46) = 3.50, p = .020."], GAINS),
    (["No gain of surprisal for rt can be told from chance for any of the 3 models."], GAINS[:1],
     "predictors"),
    (["The effects of a and b on rt depend on each other: 18.76."], [A]),
    (["Rt is 20.33 higher where a is y than where it is x."], [A]),
    (["B is ahead of A in 12 of 12 ways of asking in mean surprisal."], [A, B]),
]  # fmt: skip


@pytest.mark.parametrize("false", FALSE, ids=[x[0][0][:40] for x in FALSE])
def test_sentences_that_were_said_until_0_2_are_found_to_be_false(false):
    assert faults(*false)
