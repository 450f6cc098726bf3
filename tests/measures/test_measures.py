"""What is measured, on rows small enough to calculate by hand, and on the data sets' own columns.

The arithmetic of each expected value is in a comment beside it.
"""

import math

import numpy as np
import pytest
from invented_runs import by_name, padded, predictions_of, rows_of
from scipy.stats import pearsonr, spearmanr

from lmdiag import diagnostics, stats
from lmdiag.measures import quartiles


def measured(task, rows, log_prob=None, top_words=None, rank=None, **options):
    """Measure -> its scores."""
    ranks = {} if rank is None else {"rank": rank}
    predictions = vars(predictions_of(rows, log_prob, top_words, **ranks))
    return by_name(diagnostics.get(task).score(rows, predictions, **options))


def values(scores, *names):
    """Measure -> values of its items; of all measures where none is named."""
    return {name: scores[name].values.tolist() for name in names or scores}


def by_level(scores):
    """Break-down -> level -> values."""
    return {
        by: {level: scores.at(by, level).values.tolist() for level in levels}
        for by, levels in scores.levels.items()
    }


def contrast_rows(sizes, **columns):
    """Rows of contrasts, each with one good row and a number of bad ones."""
    rows = [(name, i) for name, bad in sizes.items() for i in range(1 + bad)]
    return rows_of(*({"id": f"{c}{i}", "contrast": c, "good": i == 0} | columns for c, i in rows))


def test_three_items_of_cprag102():
    rows = rows_of(
        *(
            {"id": f"{item}-{condition}", "contrast": item, "condition": condition,
             "good": condition == "expected", "constraint": constraint}
            for item, constraint in (("1", "high"), ("2", "high"), ("3", "low"))
            for condition in ("expected", "within_category", "between_category")
        )
    )  # fmt: skip
    # item 1: .5 over .2 and .1; item 2: .015 over .01 and .001; item 3: .1 under .3, over .05
    p = [0.5, 0.2, 0.1, 0.015, 0.01, 0.001, 0.1, 0.3, 0.05]
    scores = measured("cprag102", rows, list(map(math.log, p)))
    assert values(scores) == {
        "sensitivity": [1, 1, 0],
        "sensitivity@0.01": [1, 0, 0],  # .015 - .01 is not more than .01
        "within_category_boost": [1, 0, 1],  # .2 - .1, .01 - .001, .3 - .05
    }
    assert by_level(scores["sensitivity@0.01"])["constraint"] == {"high": [1, 0], "low": [0]}


def test_three_items_of_role88():
    cloze = {"1-a": (0.4, 0.4), "1-b": (0.1, 0.5), "2-a": (0.3, 0.3), "2-b": (0.0, 0.6),
             "3-a": (0.2, 0.2), "3-b": (0.2, 0.7)}  # fmt: skip
    rows = rows_of(
        *(
            {
                "id": name, "contrast": name[0], "good": name[2] == "a",
                "condition": "appropriate" if name[2] == "a" else "reversed",
                "expected": ["served", "tipped"] if name[0] == "1" else ["seen"],
                "target_cloze": target, "expected_cloze": best,
            }
            for name, (target, best) in cloze.items()
        )
    )  # fmt: skip
    p = [0.3, 0.1, 0.02, 0.015, 0.001, 0.002]
    top = padded([["tipped"], ["given"], ["seen"], ["Seen"], ["a", "seen"], ["a", "b"]])
    scores = measured("role88", rows, list(map(math.log, p)), top)
    names = ("sensitivity", "sensitivity@0.01", "human_sensitivity", "human_sensitivity@0.01")
    assert values(scores, "accuracy@1", "accuracy@5", *names) == {
        "accuracy@1": [1, 0, 1, 0, 0, 0],  # "Seen" is not "seen"
        "accuracy@5": [1, 0, 1, 0, 1, 0],
        # differences .2, .005, -.001; human .3, .3, 0
        "sensitivity": [1, 1, 0],
        "sensitivity@0.01": [1, 0, 0],
        "human_sensitivity": [1, 1, 0],
        "human_sensitivity@0.01": [1, 1, 0],
    }
    assert scores["probability_difference"].values == pytest.approx([0.2, 0.005, -0.001])
    assert scores["cloze_difference"].values == pytest.approx([0.3, 0.3, 0.0])
    human = rows["target_cloze"]
    for name, r in (("spearman", spearmanr(p, human)), ("pearson", pearsonr(np.log(p), human))):
        assert stats.point(scores[name].values, name) == pytest.approx(r.statistic)
    # expected_cloze .2 .3 .4 .5 .6 .7: bounds at .325, .45, .575, bins closed on the right
    accuracy = scores["accuracy@1"]
    bins = {level: accuracy.at("cloze_quartile", level) for level in ("1", "2", "3", "4")}
    assert {level: part.items.tolist() for level, part in bins.items()} == {
        "1": ["2-a", "3-a"], "2": ["1-a"], "3": ["1-b"], "4": ["2-b", "3-b"],
    }  # fmt: skip
    assert set(measured("role88", rows)) == {*names[2:], "cloze_difference"}
    # a probability of zero has a rank, but no logarithm
    scores = measured("role88", rows, [-1.0, -math.inf, -2.0, -3.0, None, -4.0])
    assert scores["spearman"].items.tolist() == ["1-a", "1-b", "2-a", "2-b", "3-b"]
    assert scores["pearson"].items.tolist() == ["1-a", "2-a", "2-b", "3-b"]


def test_three_items_of_neg136():
    forms = {"TA": ("is an", "insect"), "FA": ("is an", "axe"), "TN": ("is not a", "tool"),
             "FN": ("is not an", "insect")}  # fmt: skip
    rows = rows_of(
        *(
            {
                "id": f"{item}-{condition}", "condition": condition, "target": target,
                "contrast": f"{item}-{'affirmative' if condition[1] == 'A' else 'negative'}",
                "polarity": "affirmative" if condition[1] == "A" else "negative",
                "good": condition[0] == "T", "expected": ["insect"] if condition == "TA" else [],
                "subset": subset, "natural": natural, "context": f"A wasp {verb}",
            }
            for subset, item, natural in (("simp", "1", None), ("nat", "2", True),
                                          ("nat", "3", False))
            for condition, (verb, target) in forms.items()
        )
    )  # fmt: skip
    # rows are TA, FA, TN, FN of each item; true ones win where the first is higher
    p = [0.6, 0.1, 0.2, 0.5, 0.3, 0.295, 0.4, 0.1, 0.2, 0.1, 0.1, 0.2]
    insect = ["insect", "##t", "bee"]
    top = padded([insect, insect, ["bee"], ["Animal", "8", "hour", "[UNK]", "ox"]] + [[]] * 8)
    scores = measured("neg136", rows, list(map(math.log, p)), top, k=(1, 5, 20))
    sensitivity = scores["sensitivity"]
    assert sensitivity.items.tolist()[:3] == ["1-affirmative", "1-negative", "2-affirmative"]
    assert sensitivity.values.tolist() == [1, 0, 1, 1, 1, 0]
    assert scores["sensitivity@0.01"].values.tolist() == [1, 0, 0, 1, 1, 0]  # .3 - .295: too little
    by = by_level(sensitivity)
    assert set(by) == {"subset", "subset/polarity", "natural", "natural/polarity"}
    assert by["natural"] == {"natural": [1, 1], "less_natural": [1, 0]}
    assert by["subset/polarity"] == {
        "simp/affirmative": [1], "simp/negative": [0],
        "nat/affirmative": [1, 1], "nat/negative": [1, 0],
    }  # fmt: skip
    # a context of SIMP counts once; "is an": insect fits, ##t and bee do not; "is not a": bee fits;
    # "is not an": by spelling Animal and ox fit, while 8, hour and [UNK] do not
    assert scores["determiner_match@1"].items.tolist() == ["1-TA", "1-TN", "1-FN"]
    assert scores["determiner_match@1"].values.tolist() == [1, 1, 1]
    assert scores["determiner_match@5"].values == pytest.approx([1 / 5, 1 / 5, 2 / 5])
    assert "determiner_match@20" not in scores  # lists have ten words


@pytest.mark.parametrize(
    ("tops", "folds", "expected"),
    [
        # words are compared whole
        ([["Bird"]], (), {"accuracy@1": [0]}),
        ([["Bird"]], ("case",), {"accuracy@1": [1]}),
        ([["Bïrd"]], ("case",), {"accuracy@1": [0]}),
        ([["Bïrd"]], ("case", "accents"), {"accuracy@1": [1]}),
        ([["ｂird"]], ("forms",), {"accuracy@1": [1]}),
        ([["birds", "bir"], ["seal", "bird"]], (), {"accuracy@1": [0, 0], "accuracy@2": [0, 1]}),
        # a row without a list is left out and not wrong
        ([["bird"], None], (), {"accuracy@1": [1]}),
        # whether "bird" is among the first two of "fish" is not known from a list of one word
        ([["fish"], ["fish", "bird"]], (), {"accuracy@1": [0, 0]}),
    ],
)
def test_accuracy(tops, folds, expected):
    rows = contrast_rows({str(i): 0 for i in range(len(tops))}, expected=["bird"])
    scores = measured("own", rows, top_words=tops, k=(1, 2, 5), folds=folds)
    assert values(scores) == expected
    assert scores["accuracy@1"].left_out == (("10",) if None in tops else ())


@pytest.mark.parametrize(
    ("log_probs", "threshold", "wins"),
    [
        ((-1.0, -1.0), 0.01, (0, 0)),  # a tie is not a preference
        # 1/2 - 1/4 is exactly 1/4, and exp(log(2 ** -n)) is exact for these
        ((math.log(0.5), math.log(0.25)), 0.25, (1, 0)),
        ((math.log(0.5), math.log(0.25)), 0.249, (1, 1)),
        ((math.log(0.39), math.log(0.38)), 0.01, (1, 0)),  # in floats .010000000000000009
        ((-1000.0, -1001.0), 0.01, (1, 0)),  # probabilities too small for a float still differ
        ((-1.0, -2.0, -0.5), 0.01, (0, 0)),  # every bad row counts
    ],
)
def test_one_contrast(log_probs, threshold, wins):
    rows = contrast_rows({"1": len(log_probs) - 1})
    for order in (1, -1):  # of the rows
        ordered = {name: column[::order] for name, column in rows.items()}
        scores = measured("own", ordered, log_probs[::order], threshold=threshold)
        found = scores["sensitivity"].values, scores[f"sensitivity@{threshold}"].values
        assert found == wins


def test_contrasts_that_cannot_be_scored_are_left_out_and_named():
    rows = contrast_rows({"a": 1, "b": 1, "c": 0, "d": 1})
    for column in rows.values():
        del column[5]  # the good row of d
    scores = measured("own", rows, [-1.0, -2.0, -1.0, None, -1.0, -1.0])
    assert scores["sensitivity"].items.tolist() == ["a"]
    assert scores["sensitivity"].left_out == ("b", "c", "d")
    with pytest.raises(ValueError, match="'x' has several good rows"):
        measured("own", contrast_rows({"x": 1}) | {"good": [True, True]}, [-1.0, -2.0])


def test_chance_is_one_over_the_rows_that_are_compared():
    rows = contrast_rows({"a": 1, "b": 2, "c": 2})
    rows["part"] = rows["contrast"]
    scores = measured("own", rows, [-1.0] * 7 + [None])  # c has an unscorable row
    assert scores["sensitivity"].chance.tolist() == [1 / 2, 1 / 3]
    assert scores["sensitivity"].at("part", "b").chance.tolist() == [1 / 3]
    assert scores["sensitivity@0.01"].chance is None


@pytest.mark.parametrize(
    ("log_probs", "is_tied", "value"),
    [
        ([-1.0, -1.0], True, 0),
        ([-1.0, -1.0 - 5e-7], True, 0),  # higher by the rounding of a machine
        ([-1.0, -1.00001], False, 1),
        ([-2.0, -1.0, -1.0], True, 0),  # between bad rows, none of which is preferred either
        ([-1.0, -2.0, -2.0], False, 1),  # below the highest
        ([-2.0, -1.0, -2.0], False, 0),
        ([-math.inf, -math.inf], True, 0),
    ],
)
def test_a_contrast_whose_highest_probability_two_rows_share_is_tied(log_probs, is_tied, value):
    scores = measured("custom", contrast_rows({"a": len(log_probs) - 1}), log_probs)
    assert scores["sensitivity"].values.tolist() == [value]
    for name in ("sensitivity", "sensitivity@0.01"):
        assert scores[name].tied.tolist() == [is_tied]


def test_rows_that_ask_the_same_are_not_a_comparison():
    rows = contrast_rows({"a": 1, "b": 1}, context="The", target="cat")
    rows["right_context"] = ["", "", "", "slept."]
    log_probs = [-1.0, -1.0, -1.0, -2.0]
    one = measured("own", rows, log_probs)["sensitivity"]
    assert (one.items.tolist(), one.left_out, one.not_defined) == (["b"], ("a",), "")
    # a causal model sees the left side alone, and has nothing to compare in either contrast
    scores = measured("own", rows, log_probs, left_only=True)
    assert set(scores) == {"sensitivity", "sensitivity@0.01", "surprisal"}
    assert not len(scores["sensitivity"].items)
    assert "same context and the same target" in scores["sensitivity"].not_defined


def test_a_users_own_rows_are_broken_down_by_what_they_have():
    rows = rows_of(
        *(
            {
                "id": f"{i}{good}", "contrast": str(i), "good": good,
                "condition": "good" if good else "bad",  # the good row of a contrast decides
                "length": "long" if i % 2 else "short", "passive": i < 2,
                "voice": "active" if good else "passive",  # differs within each contrast: no level
                "note": f"text {i}", "lexical": "one",  # too many levels, too few
            }
            for i in range(13)
            for good in (True, False)
        )
    )  # fmt: skip
    by = by_level(measured("own", rows, [-1.0, -2.0] * 13)["sensitivity"])
    assert {name: {x: len(part) for x, part in of.items()} for name, of in by.items()} == {
        "length": {"short": 7, "long": 6},
        "passive": {"true": 2, "false": 11},
        "condition": {"good": 13},
    }
    # missing values are in no level
    rows = rows_of(*({"id": f"{i}", "voice": v} for i, v in enumerate(["a", "", None, "b"])))
    rows["dose"] = [1.0, math.nan, 2.0, None]
    own = diagnostics.get("own")
    voice_and_dose = {"voice": ["a", None, None, "b"], "dose": ["1.0", None, "2.0", None]}
    assert own.levels(rows) == voice_and_dose
    # levels that are numbers are sorted
    assert own.levels_in_order("dose", ["10", "2", "-1", "0.5"]) == ["-1", "0.5", "2", "10"]
    # of 1 to 5 the percentiles are 2, 3 and 4, and each belongs to the bin below it
    assert quartiles([1, 2, 3, 4, 5, None]) == ["1", "1", "2", "3", "4", None]
    assert quartiles([None]) == [None]


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        # -log2 of a half, an eighth, a quarter; an unscorable word is left out
        ({"log_prob": [*map(math.log, (0.5, 0.125, 0.25)), None], "rank": [1, 9, 2, None]},
         {"surprisal": ([1, 3, 2], ("3",)), "rank": ([1, 9, 2], ("3",))}),
        # a median over the known ranks alone would be too low
        ({"log_prob": [0.0] * 4, "rank": [1, 2, None, None]}, {"surprisal": ([0, 0, 0, 0], ())}),
        # an infinite surprisal is left out
        ({"log_prob": [-math.inf, 0.0, 0.0, 0.0]}, {"surprisal": ([0, 0, 0], ("0",))}),
        ({"top_words": [["x"]] * 4}, {"accuracy@1": ([1, 0], ())}),  # needs no contrasts
    ],
)  # fmt: skip
def test_words_that_are_not_compared(predictions, expected):
    rows = rows_of(*({"id": str(i), "voice": "ab"[i > 1]} for i in range(4)))
    rows["expected"] = [["x"], [], ["y"], []] if "top_words" in predictions else [[]] * 4
    scores = measured("own", rows, **predictions, k=(1,))
    assert set(scores) == set(expected)
    for name, (numbers, left_out) in expected.items():
        assert scores[name].values.tolist() == pytest.approx(numbers)
        assert scores[name].left_out == left_out
        assert set(scores[name].levels["voice"]) == {"a", "b"}
        statistic = {"rank": "median", "surprisal": "mean"}.get(name, "proportion")
        assert scores[name].statistic == statistic
