"""The sentences with which pages begin: each says what its tests say."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import lmdiag
from lmdiag.report.analysis_findings import analysis_findings
from lmdiag.report.cloze_findings import cloze_findings
from lmdiag.report.comparison_findings import findings_on_pair, findings_on_pairs
from lmdiag.report.fit_findings import fit_findings
from lmdiag.report.multiverse_findings import multiverse_findings
from lmdiag.report.reported_tests import ReportedTest
from lmdiag.report.run_findings import models_findings, prediction_findings, run_findings
from lmdiag.results import Figure, Results
from lmdiag.results.results import SettingResults, read_record
from lmdiag.studies.multiverse import Headline

SAVED = Path(__file__).parents[1] / "data" / "results.json"
THIRD = 1 / 3


def share(right, n, chance=0.5, **by):
    """The figure of `right` of n items; its sign follows from the exact binomial test."""
    return Figure(right / n, n, chance=chance, statistic="proportion", by=by)


def simp(affirmative, negative):
    levels = {"simp/affirmative": share(affirmative, 18), "simp/negative": share(negative, 18)}
    return share(40, 68, **{"subset/polarity": levels})


def found(model="org/model", n_rows=136, subject="", **sensitivities):
    """What is found of a model with these sensitivities, task -> figure."""
    return run_findings(results_with(model, n_rows, **sensitivities), subject)


def results_with(model="org/model", n_rows=136, **sensitivities):
    """The results of a model with these sensitivities, task -> figure."""
    saved = read_record(Results, SAVED)
    facts = saved.data.tasks["neg136"]
    tasks = {
        name: {"none": SettingResults({"sensitivity": figure} if figure else {}, [], "")}
        for name, figure in sensitivities.items()
    }
    data = replace(saved.data, tasks={name: replace(facts, n=n_rows) for name in tasks})
    model = replace(saved.model, id=model, name="model")
    return replace(saved, model=model, data=data, tasks=tasks)


@pytest.mark.parametrize(
    ("affirmative", "negative", "said"),
    [
        # BERT base and large: 18 and 0 of 18
        (17, 1, "94.4% of affirmative and 5.6% of negated sentences (chance 50%), as the published "
         "BERT base and BERT large do."),
        # 13 of 18: p = .096
        (17, 13, "94.4% of affirmative and 72.2% of negated sentences (chance 50%; 72.2% cannot be "
         "told from it)."),
        (18, 18, "100% of affirmative and 100% of negated sentences (chance 50%)."),
        (9, 9, "50% of affirmative and 50% of negated sentences (chance 50%; none can be told from "
         "it)."),
    ],
)  # fmt: skip
def test_a_diagnostic_with_several_figures_has_a_sentence(affirmative, negative, said):
    start = "model prefers the true completion in"
    assert found(neg136=simp(affirmative, negative)) == [f"{start} {said}"]


def test_diagnostics_with_one_figure_share_a_sentence():
    assert found(cprag102=share(30, 34, THIRD), role88=share(20, 44), neg136=simp(18, 0)) == [
        "model prefers the word that people expect on CPRAG-102 (88.2%, chance 33.3%) and cannot "
        "be told from chance on ROLE-88 (45.5%, chance 50.0%).",
        "It prefers the true completion in 100% of affirmative and 0% of negated sentences (chance "
        "50%), as the published BERT base and BERT large do.",
    ]
    below = "model prefers another word to the one that people expect on CPRAG-102"
    assert found(cprag102=share(3, 34, THIRD)) == [f"{below} (8.8%, chance 33.3%)."]


def test_ties_are_no_preference():
    def tied(right, n, n_tied):
        return replace(share(right, n), n_tied=n_tied)

    assert found(role88=tied(0, 16, 16), cprag102=share(30, 34, THIRD))[1:] == [
        "It has no preference in any of the 16 contrasts on ROLE-88: two rows share the highest "
        "probability (tied)."
    ]
    (said,) = found(role88=tied(8, 16, 8))
    assert said.endswith("on ROLE-88 (50.0%, chance 50.0%, 8 of 16 tied).")
    assert said.startswith("model gives verbs more probability")
    levels = {"simp/affirmative": tied(18, 18, 0), "simp/negative": tied(0, 18, 18)}
    assert found(n_rows=20, neg136=share(40, 68, **{"subset/polarity": levels})) == [
        "model prefers the true completion in 100% of affirmative sentences (chance 50%).",
        "It has no preference in any of the 18 contrasts in negated sentences: two rows share the "
        "highest probability (tied).",
    ]
    # in one of two ways of asking there is no test
    high = share(40, 44)
    assert multiverse_findings(ways({"role88": high}, {"role88": tied(0, 44, 44)})) == []


def test_published_models_are_named_on_their_rows_alone_and_not_beside_themselves():
    (of_others,) = found(n_rows=20, neg136=simp(18, 0))
    assert "published" not in of_others
    (itself,) = found("google-bert/bert-base-uncased", neg136=simp(18, 0))
    assert itself.endswith(", as the published BERT large does.")


def test_figures_without_a_value_are_passed_over():
    undefined = replace(share(0, 18), value=None)
    levels = {"subset/polarity": {"simp/affirmative": share(18, 18), "simp/negative": undefined}}
    (said,) = found(neg136=share(40, 68, **levels))
    assert "in 100% of affirmative sentences (chance 50%), as" in said
    assert "negated" not in said
    assert found(cprag102=undefined) == found(cprag102=None) == found() == []


def test_many_models_are_counted_above_and_below_chance():
    high, low, none = share(40, 44), share(4, 44), share(22, 44)
    runs = [results_with(role88=high, neg136=simp(18, 0)), results_with(role88=none)]
    assert models_findings([*runs, results_with(role88=low)]) == [
        "Of 3 models, above chance are 1 on ROLE-88, 1 in affirmative sentences (1 tested) and "
        "none in negated sentences (1 tested); below chance are 1 on ROLE-88 and 1 in negated "
        "sentences (1 tested)."
    ]
    assert models_findings([results_with(role88=high)] * 6) == [
        "Of 6 models, above chance are 6 on ROLE-88."
    ]
    assert models_findings([results_with(role88=replace(high, value=None))] * 6) == []


def test_scores_of_predictions_have_no_model_to_name():
    (said,) = found(subject="The model", cprag102=share(3, 34, THIRD))
    assert said.startswith("The model prefers another word")


def test_suites_have_the_share_of_their_predictions_that_hold_and_no_chance():
    def said(figure):
        measures = {"suite_accuracy": figure} if figure else {}
        tasks = {"suites": {"none": SettingResults(measures, [], "")}}
        return prediction_findings(replace(results_with(), tasks=tasks))

    share = Figure(0.75, 24, 0.551, 0.88, statistic="proportion")
    assert said(share) == [
        "On average over 24 items, 75.0% of the predictions hold for model [55.1, 88.0]."
    ]
    assert said(Figure(1.0, 1, statistic="share")) == [
        "On average over 1 item, 100.0% of the predictions hold for model."
    ]
    assert said(replace(share, value=None)) == said(None) == []


# ---- conditions ---------------------------------------------------------------------------------


def design(effect=0.0, interaction=0.0, *, levels=("amb", "unamb"), n=24, seed=0, model=None):
    """A table of items by two conditions, with an effect of the first one in bits."""
    rng = np.random.default_rng(seed)
    names = ["item", "ambiguity", "length"]
    index = pd.MultiIndex.from_product([range(n), levels, ["long", "short"]], names=names)
    table = index.to_frame(index=False)
    is_first = table["ambiguity"] == levels[0]
    is_both = is_first & (table["length"] == "long")
    noise = rng.normal(0, 0.5, len(table))
    table["surprisal"] = 10 + effect * is_first + interaction * is_both + noise
    return table if model is None else table.assign(model=model)


def test_a_clear_effect_has_its_size_interval_and_test():
    analysis = lmdiag.analyse(design(3.0))
    row = analysis.effects.set_index("effect").loc["ambiguity"]
    (said,) = analysis_findings(analysis)
    assert said == (
        f"Surprisal is {-row.estimate:.2f} bits lower where ambiguity is unamb than where it is "
        f"amb [{-row.ci_high:.2f}, {-row.ci_low:.2f}], t(23) = −{-row.t:.2f}, p < .001."
    )


def test_an_interaction_comes_first_and_no_effect_is_said_with_the_smallest_p():
    both, simple, ambiguity = analysis_findings(lmdiag.analyse(design(3.0, 2.0)))
    assert both.startswith("There is an interaction of ambiguity and length in surprisal: ")
    assert simple.startswith("Surprisal where ambiguity is unamb, compared with amb: ")
    assert ambiguity.startswith("Surprisal is ")
    analysis = lmdiag.analyse(design(seed=1))
    assert analysis.effects["p"].min() > 0.05, "the seed has no effect by chance"
    (none,) = analysis_findings(analysis)
    assert none == (
        "No effect of ambiguity and length on surprisal can be told from chance (smallest p = "
        f"{analysis.effects['p'].min():.3f}).".replace("0.", ".")
    )


def test_pairs_of_several_levels_follow_the_adjusted_p():
    table = design(3.0, levels=("amb", "other", "unamb"))
    analysis = lmdiag.analyse(table, conditions=["ambiguity"])
    pairs = analysis_findings(analysis)
    assert len(pairs) == 2
    assert all("(Holm)" in pair and "than where it is amb [" in pair for pair in pairs)


def test_of_several_models_the_sentence_says_for_which_an_effect_is_clear():
    strong = design(3.0, model="strong")
    where = "Surprisal is lower where ambiguity is unamb than where it is amb for"
    for weak, said in (
        (
            design(2.0, seed=2, model="weak"),
            f"{where} both models: strong ({{}} bits) and weak ({{}} bits), each p < .05.",
        ),
        (
            design(seed=1, model="weak"),
            f"{where} strong ({{}} bits), p < .05; for weak ({{}} bits) this cannot be told from "
            "chance.",
        ),
    ):
        analysis = lmdiag.analyse(pd.concat([strong, weak]))
        first, *_ = analysis_findings(analysis)
        effects = analysis.effects
        sizes = effects.loc[effects["effect"] == "ambiguity", "estimate"]
        assert first == said.format(*(f"{size:.2f}".replace("-", "−") for size in sizes))
    of_none = pd.concat([design(seed=1, model="a"), design(seed=1, model="b")])
    assert analysis_findings(lmdiag.analyse(of_none)) == [
        "No effect of ambiguity and length on surprisal can be told from chance in any of the 2 "
        "models."
    ]


# ---- two models ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ([("accuracy", 0.3, 0.01), ("tse", -0.1, 0.04), ("mw", 0.1, 0.4)],
         ["new is higher than base in accuracy (+0.3) and lower than base in tse (-0.1) (adjusted "
          "p < .05).", "The difference in mw cannot be told from chance."]),
        ([("accuracy", 0.3, 0.05), ("tse", -0.1, 0.3)],
         ["No difference between new and base can be told from chance in any of the 2 compared "
          "figures."]),
        ([("accuracy", 0.3, 0.05), ("tse", 0.0, math.nan), ("mw", -0.1, math.nan)],
         ["No difference between new and base can be told from chance in accuracy.",
          "In tse, they do not differ in any item.", "mw: -0.1, no test."]),
        ([("accuracy", 0.3, 0.2)],
         ["No difference between new and base can be told from chance in accuracy."]),
        ([("accuracy", 0.0, math.nan), ("tse", 0.0, math.nan)],
         ["In the 2 compared figures, new and base do not differ in any item."]),
        ([(name, 0.1, p) for name, p in zip("abcd", (0.04, 0.03, 0.02, 0.01), strict=True)],
         ["new is higher than base in d (+0.1), c (+0.1), b (+0.1) and 1 more (adjusted p < "
          ".05)."]),
        ([], []),
    ],
)  # fmt: skip
def test_a_difference_is_claimed_where_its_adjusted_p_rejects(differences, said):
    rows = [ReportedTest(label, f"{value:+}", value, p) for label, value, p in differences]
    assert [*findings_on_pair("new", "base", rows)] == said


def test_a_sentence_begins_with_a_capital_but_for_the_name_of_a_model():
    higher = [ReportedTest("accuracy", "+0.3", 0.3, 0.01)]
    (said,) = findings_on_pair("layer 30", "layer 0", higher)
    assert said == "Layer 30 is higher than layer 0 in accuracy (+0.3) (adjusted p < .05)."
    (same,) = findings_on_pair("step 16", "step 0", [ReportedTest("tse", "0.0", 0, math.nan)])
    assert same == "In tse, step 16 and step 0 do not differ in any item."
    (named,) = findings_on_pair("layer30-lm", "gpt2", higher)
    assert named.startswith("layer30-lm is higher than gpt2")


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ({"b": [0.2, -0.1], "c": [0.3, 0.1]},
         "b is higher in 1 and lower in 1 and c is higher in 2"),
        ({"b": [-0.2, -0.1], "c": []}, "b is lower in 2 and c is not distinguishable in any"),
    ],
)  # fmt: skip
def test_of_several_models_the_clear_differences_are_counted(pairs, said):
    """Two figures of each model; those that are not named here have no clear difference."""
    differences = {
        name: [
            *(ReportedTest("accuracy", "", value, 0.01) for value in clear),
            *[ReportedTest("tse", "", 0.1, math.nan)] * (2 - len(clear)),
        ]
        for name, clear in pairs.items()
    }
    (sentence,) = findings_on_pairs("a", differences)
    assert sentence == f"Against a, of the 2 compared figures {said} (adjusted p < .05)."
    assert [*findings_on_pairs("a", {"b": [], "c": []})] == []


# ---- cloze norms --------------------------------------------------------------------------------


def cloze(comparisons=(), **models):
    """Cloze norms with these figures: model -> measure -> (value, n, low, high)."""
    columns = ["model", "measure", "value", "n", "ci_low", "ci_high"]
    rows = [(model, name, *figure) for model, figures in models.items() for name, figure in figures]
    figures = pd.DataFrame(rows, columns=columns)
    return SimpleNamespace(figures=figures, models=[*models], comparisons=comparisons)


def test_cloze_norms_have_the_agreement_of_first_words_and_the_mass_of_responses():
    agrees = ("top_agrees", (0.25, 12, 0.089, 0.532))
    mass = ("mass", (0.194, 12, 0.039, 0.349))
    assert cloze_findings(cloze(gpt2=[agrees, mass])) == [
        "The top word of gpt2 is people's most frequent response in 3 of 12 items "
        "(25.0% [8.9, 53.2]), and gpt2 gives all human responses together a probability of "
        "19.4% [3.9, 34.9]."
    ]
    without_interval = ("mass", (0.2, 5, math.nan, math.nan))
    undefined = ("top_agrees", (math.nan, 0, math.nan, math.nan))
    assert cloze_findings(cloze(gpt2=[undefined, without_interval])) == [
        "gpt2 gives all human responses together a probability of 20.0%."
    ]
    assert cloze_findings(cloze(gpt2=[undefined])) == []


def test_differences_of_cloze_norms_follow_their_adjusted_tests():
    one = [("mass", (0.2, 9, 0.1, 0.3))]
    compared = [
        SimpleNamespace(
            measure=name, number=1, difference=value, statistic=how, p_adjusted=p, n=9, n_tests=2
        )
        for name, value, how, p in (
            ("divergence", 3.5, "mean", 0.01), ("top_agrees", 0.1, "proportion", 0.3),
        )
    ]  # fmt: skip
    *_, higher, rest = cloze_findings(cloze(compared, small=one, large=one))
    assert higher == "large is higher than small in KL divergence (+3.500 bits) (adjusted p < .05)."
    assert rest == "The difference in top word agrees cannot be told from chance."


# ---- ways of asking -----------------------------------------------------------------------------


def ways(*asked, tasks=("cprag102", "role88")):
    """A model that was asked in several ways, each with the sensitivity of these tasks."""
    headlines = [Headline(task, "none", "sensitivity", "", "", "sensitivity") for task in tasks]
    return SimpleNamespace(
        models=["demo"], numbers_of=lambda _: range(len(asked)), figures=headlines, forms={},
        runs=[SimpleNamespace(results=results_with(**way)) for way in asked],
    )  # fmt: skip


def test_ways_of_asking_say_which_figures_change_sides_of_chance():
    high, low, none = share(40, 44), share(4, 44), share(20, 44)
    both = {"cprag102": high, "role88": high}
    start = "In all 2 ways of asking, demo"
    assert multiverse_findings(ways(both, both)) == [
        f"{start} is above chance in CPRAG-102 sensitivity and ROLE-88 sensitivity."
    ]
    assert multiverse_findings(ways(both, both | {"role88": none})) == [
        f"{start} is above chance in CPRAG-102 sensitivity; the result in ROLE-88 sensitivity "
        "depends on the way of asking."
    ]
    sides = {"cprag102": none, "role88": low}
    assert multiverse_findings(ways(sides, sides)) == [
        f"{start} is below chance in ROLE-88 sensitivity and cannot be told from chance in "
        "CPRAG-102 sensitivity."
    ]
    alone = ways({"role88": high}, {"role88": low}, tasks=("role88",))
    assert multiverse_findings(alone) == [
        "For demo, asked in 2 ways, the result in sensitivity depends on the way of asking."
    ]


def test_of_many_figures_of_ways_of_asking_a_few_are_named():
    levels = {f"simp/{name}": share(18, 18) for name in "abcde"}
    way = {"neg136": share(40, 68, **{"subset/polarity": levels})}
    asked = ways(way, way, tasks=())
    asked.figures = [
        Headline("neg136", "none", "sensitivity", "subset/polarity", level, level[-1])
        for level in levels
    ]
    assert multiverse_findings(asked) == [
        "In all 2 ways of asking, demo is above chance in a, b, c and 2 more."
    ]


def test_one_way_of_asking_or_no_chance_level_says_nothing():
    high, without = share(40, 44), share(40, 44, None)
    assert multiverse_findings(ways({"role88": high})) == []
    assert multiverse_findings(ways({"role88": without}, {"role88": without})) == []
    undefined = replace(high, value=None)
    assert multiverse_findings(ways({"role88": undefined}, {"role88": undefined})) == []


# ---- human measures -----------------------------------------------------------------------------


def words(effect, seed=0):
    """Reading times that depend on the surprisals `bits` and not on `noise`."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"text": 1, "position": range(1, 121), "word": "w"})
    table["len"] = rng.integers(1, 12, 120).astype(float)
    table["bits"] = rng.exponential(4, 120)
    table["noise"] = rng.exponential(4, 120)
    table["rt"] = 300 + effect * table["bits"] + rng.normal(0, 10, 120)
    return table


def fitted(table, *columns):
    fit = lmdiag.fit(table, surprisal=columns, response="rt", formula="rt ~ surprisal + len")
    return fit, fit_findings(fit)


def test_a_fit_has_its_test():
    fit, (said,) = fitted(words(5.0), "bits")
    statistic = f"F(1, 117) = {fit.models[0].statistic:.2f}, p < .001"
    slope = f"{fit.models[0].per_bit:.2f} ms per bit"
    assert said == f"Surprisal of bits predicts rt beyond the baseline: {statistic}; {slope}."
    fit, (said,) = fitted(words(0.0), "noise")
    assert fit.models[0].p > 0.05, "the seed has no effect by chance"
    what = "No gain of surprisal of noise for rt beyond the baseline"
    assert said.startswith(f"{what} can be told from chance: F(1, 117)")


def test_of_several_fits_the_models_with_a_clear_one_are_named():
    _, said = fitted(words(5.0), "bits", "noise")
    assert said[0] == "Surprisal predicts rt beyond the baseline for bits, p < .05."
    assert said[2].startswith("The gain in log-likelihood of surprisal is largest for bits: ")
    _, none = fitted(words(0.0), "bits", "noise")
    what = "No gain of surprisal for rt beyond the baseline"
    assert none == [f"{what} can be told from chance for either of the 2 models."]
