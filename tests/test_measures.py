"""What is measured, on rows small enough to calculate by hand, and on the data sets' own columns.

The arithmetic of each expected value is in a comment beside it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import by_name, padded, predictions_of, rows_of, uniform
from scipy.stats import pearsonr, rankdata, spearmanr

from lmdiag import diagnostics, stimuli
from lmdiag.measures import Scores, quartiles
from lmdiag.protocol import Predictions

Rows = dict[str, list[Any]]


def measured(task: str, rows: Rows, predictions: Predictions, **options: Any) -> dict[str, Scores]:
    """Measure -> its scores."""
    return by_name(diagnostics.get(task).score(rows, vars(predictions), **options))


def values(scores: dict[str, Scores], *names: str) -> list[list[float]]:
    return [scores[name].values.tolist() for name in names]


def by_level(scores: Scores) -> dict[str, dict[str, list[float]]]:
    """Break-down -> level -> values."""
    return {
        by: {level: part.values.tolist() for level, part in parts.items()}
        for by, parts in scores.by.items()
    }


def contrast_rows(sizes: dict[str, int], **columns: Any) -> Rows:
    """Rows of contrasts, each with one good row and a number of bad ones."""
    return rows_of(
        *(
            {"id": f"{name}{i}", "contrast": name, "good": i == 0} | columns
            for name, bad in sizes.items()
            for i in range(1 + bad)
        )
    )


# ---- three items of each diagnostic, by hand -----------------------------------------------------


def cprag() -> Rows:
    """Three contexts, two of high constraint."""
    return rows_of(
        *(
            {
                "id": f"{item}-{condition}", "contrast": item, "condition": condition,
                "good": condition == "expected", "constraint": constraint,
                "expected": ["fork"] if condition == "expected" else [],
            }
            for item, constraint in (("1", "high"), ("2", "high"), ("3", "low"))
            for condition in ("expected", "within_category", "between_category")
        )
    )  # fmt: skip


def test_three_items_of_cprag102() -> None:
    # item 1: .5 over .2 and .1; item 2: .015 over .01 and .001; item 3: .1 under .3, over .05
    p = [0.5, 0.2, 0.1, 0.015, 0.01, 0.001, 0.1, 0.3, 0.05]
    # fork: first, third, absent
    top = padded([["fork"]] * 3 + [["knife", "##fork", "fork"]] * 3 + [["knife"]] * 3)
    rows = cprag()
    scores = measured("cprag102", rows, predictions_of(rows, list(map(math.log, p)), top), k=(1, 3))
    assert {name: one.values.tolist() for name, one in scores.items()} == {
        "accuracy@1": [1, 0, 0],
        "accuracy@3": [1, 1, 0],
        "sensitivity": [1, 1, 0],
        "sensitivity@0.01": [1, 0, 0],  # .015 - .01 is not more than .01
        "within_category_boost": [1, 0, 1],  # .2 - .1, .01 - .001, .3 - .05
    }
    high = scores["sensitivity@0.01"].by["constraint"]["high"]
    assert (high.items.tolist(), high.values.tolist()) == (["1", "2"], [1, 0])


def role() -> Rows:
    """Three pairs of contexts with human cloze probabilities."""
    cloze = {"1-a": (0.4, 0.4), "1-b": (0.1, 0.5), "2-a": (0.3, 0.3), "2-b": (0.0, 0.6),
             "3-a": (0.2, 0.2), "3-b": (0.2, 0.7)}  # fmt: skip
    return rows_of(
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


def test_three_items_of_role88() -> None:
    p = [0.3, 0.1, 0.02, 0.015, 0.001, 0.002]
    top = padded([["tipped"], ["given"], ["seen"], ["Seen"], ["a", "seen"], ["a", "b"]])
    rows = role()
    scores = measured("role88", rows, predictions_of(rows, list(map(math.log, p)), top))
    assert values(scores, "accuracy@1", "accuracy@5") == [
        [1, 0, 1, 0, 0, 0],  # "Seen" is not "seen"
        [1, 0, 1, 0, 1, 0],
    ]
    # differences .2, .005, -.001; human .3, .3, 0
    assert values(scores, "sensitivity", "sensitivity@0.01") == [[1, 1, 0], [1, 0, 0]]
    assert values(scores, "human_sensitivity", "human_sensitivity@0.01") == [[1, 1, 0]] * 2
    assert scores["probability_difference"].values == pytest.approx([0.2, 0.005, -0.001])
    assert scores["cloze_difference"].values == pytest.approx([0.3, 0.3, 0.0])
    cloze = rows["target_cloze"]
    ours = [
        np.corrcoef(rankdata(scores["spearman"].values, axis=0).T)[0, 1],
        np.corrcoef(scores["pearson"].values.T)[0, 1],
    ]
    assert ours == pytest.approx([spearmanr(p, cloze).statistic, pearsonr(np.log(p), cloze)[0]])
    # expected_cloze .2 .3 .4 .5 .6 .7: bounds at .325, .45, .575, bins closed on the right
    bins = scores["accuracy@1"].by["cloze_quartile"]
    assert {level: part.items.tolist() for level, part in bins.items()} == {
        "1": ["2-a", "3-a"], "2": ["1-a"], "3": ["1-b"], "4": ["2-b", "3-b"],
    }  # fmt: skip


def neg_row(subset: str, item: str, condition: str, natural: bool | None) -> dict[str, Any]:
    polarity = "affirmative" if condition[1] == "A" else "negative"
    return {
        "id": f"{item}-{condition}", "contrast": f"{item}-{polarity}", "condition": condition,
        "good": condition[0] == "T", "expected": ["insect"] if condition == "TA" else [],
        "subset": subset, "polarity": polarity, "natural": natural,
    }  # fmt: skip


def test_three_items_of_neg136() -> None:
    forms = {"TA": ("is an", "insect"), "FA": ("is a", "tool"), "TN": ("is not a", "tool"),
             "FN": ("is not an", "insect")}  # fmt: skip
    rows = rows_of(
        *(
            neg_row("simp", "1", condition, None) | {"context": f"A wasp {verb}", "target": target}
            for condition, (verb, target) in forms.items()
        ),
        *(
            neg_row("nat", item, condition, natural)
            for item, natural in (("2", True), ("3", False))
            for condition in forms
        ),
    )
    # rows are TA, FA, TN, FN of each item; true ones win where the first is higher
    p = [0.6, 0.1, 0.2, 0.5, 0.3, 0.295, 0.4, 0.1, 0.2, 0.1, 0.1, 0.2]
    top = [["insect", "##t", "bee"], ["bee"], ["bee"], ["Animal", "8", "hour", "[UNK]", "ox"]]
    predictions = predictions_of(rows, list(map(math.log, p)), padded(top + [[]] * 8))
    scores = measured("neg136", rows, predictions)
    sensitivity = scores["sensitivity"]
    assert sensitivity.items.tolist() == [
        f"{i}-{p}" for i in "123" for p in ("affirmative", "negative")
    ]
    assert sensitivity.values.tolist() == [1, 0, 1, 1, 1, 0]
    # .3 - .295 is too little
    assert values(scores, "sensitivity@0.01") == [[1, 0, 0, 1, 1, 0]]
    assert by_level(sensitivity) == {
        "subset": {"simp": [1, 0], "nat": [1, 1, 1, 0]},
        "subset/polarity": {
            "simp/affirmative": [1], "simp/negative": [0],
            "nat/affirmative": [1, 1], "nat/negative": [1, 0],
        },
        "natural": {"natural": [1, 1], "less_natural": [1, 0]},
        "natural/polarity": {
            "natural/affirmative": [1], "natural/negative": [1],
            "less_natural/affirmative": [1], "less_natural/negative": [0],
        },
    }  # fmt: skip
    # "is an": insect fits, ##t and bee do not; "is a": bee fits; "is not a" too;
    # "is not an": by spelling Animal and ox fit, while 8, hour and [UNK] do not
    assert scores["determiner_match@1"].values.tolist() == [1, 1, 1, 1]
    assert scores["determiner_match@5"].values == pytest.approx([1 / 5, 1 / 5, 1 / 5, 2 / 5])


def test_a_context_that_rows_share_counts_once_for_the_determiner() -> None:
    shared = [
        neg_row("simp", "1", each, None) | {"context": "A wasp is a"} for each in ("TA", "FA")
    ]
    rows = rows_of(*shared)
    scores = measured("neg136", rows, predictions_of(rows, top_words=[["bee"], ["ant"]]))
    assert scores["determiner_match@1"].items.tolist() == ["1-TA"]


@pytest.mark.parametrize(
    ("tops", "cased", "expected"),
    [
        # words are compared whole
        ([["Bird"]], True, {"accuracy@1": [0]}),
        ([["Bird"]], False, {"accuracy@1": [1]}),
        ([["##bird"], ["seal"]], False, {"accuracy@1": [0, 0]}),
        ([["birds", "bir"], ["seal", "bird"]], True, {"accuracy@1": [0, 0], "accuracy@2": [0, 1]}),
        # a row without a list is left out and not wrong
        ([["bird"], None], True, {"accuracy@1": [1]}),
        # whether "bird" is among the first two of "fish" is not known from a list of one word
        ([["fish"], ["fish", "bird"]], True, {"accuracy@1": [0, 0]}),
    ],
)
def test_accuracy(
    tops: list[list[str] | None], cased: bool, expected: dict[str, list[int]]
) -> None:
    rows = contrast_rows({str(i): 0 for i in range(len(tops))}, expected=["bird"])
    scores = measured("own", rows, predictions_of(rows, top_words=tops), k=(1, 2, 5), cased=cased)
    assert {name: one.values.tolist() for name, one in scores.items()} == expected
    assert scores["accuracy@1"].left_out == (("10",) if None in tops else ())


# ---- contrasts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_probs", "threshold", "wins"),
    [
        ((-1.0, -1.0), 0.01, (0, 0)),  # a tie is not a preference
        # 1/2 - 1/4 is exactly 1/4, and exp(log(2 ** -n)) is exact for these
        ((math.log(0.5), math.log(0.25)), 0.25, (1, 0)),
        ((math.log(0.5), math.log(0.25)), 0.249, (1, 1)),
        ((-1000.0, -1001.0), 0.01, (1, 0)),  # probabilities too small for a float still differ
        ((-1.0, -2.0, -0.5), 0.01, (0, 0)),  # every bad row counts
    ],
)
def test_one_contrast(
    log_probs: tuple[float, ...], threshold: float, wins: tuple[int, int]
) -> None:
    rows = contrast_rows({"1": len(log_probs) - 1})
    scores = measured("own", rows, predictions_of(rows, log_probs), threshold=threshold)
    assert values(scores, "sensitivity", f"sensitivity@{threshold}") == [[win] for win in wins]


def test_contrasts_that_cannot_be_scored_are_left_out_and_named() -> None:
    rows = contrast_rows({"a": 1, "b": 1, "c": 0, "d": 1})
    for column in rows.values():
        del column[5]  # the good row of d
    scores = measured("own", rows, predictions_of(rows, [-1.0, -2.0, -1.0, None, -1.0, -1.0]))
    assert scores["sensitivity"].items.tolist() == ["a"]
    assert scores["sensitivity"].left_out == ("b", "c", "d")


def test_two_good_rows_are_an_error() -> None:
    rows = contrast_rows({"x": 1}) | {"good": [True, True]}
    with pytest.raises(ValueError, match="'x' has several good rows"):
        measured("own", rows, predictions_of(rows, [-1.0, -2.0]))


@given(st.data(), st.integers(1, 8))
def test_sensitivity_is_what_the_words_say(data: st.DataObject, n: int) -> None:
    """Against a literal loop, and whatever the order of the rows."""
    log_probs = st.one_of(st.none(), st.floats(-40, 0), st.just(-math.inf))
    sizes = [data.draw(st.integers(1, 3)) for _ in range(n)]
    rows = [
        {"id": f"{c}-{i}", "contrast": str(c), "good": i == 0}
        for c, size in enumerate(sizes)
        for i in range(1 + size)
    ]
    value = {row["id"]: data.draw(log_probs) for row in rows}
    shuffled = rows_of(*data.draw(st.permutations(rows)))
    scores = measured("own", shuffled, predictions_of(shuffled, [value[i] for i in shuffled["id"]]))
    for name, margin in (("sensitivity", None), ("sensitivity@0.01", 0.01)):
        literal = {}
        for c, size in enumerate(sizes):
            good, *bad = (value[f"{c}-{i}"] for i in range(1 + size))
            if good is None or None in bad:
                continue
            wins = [
                good > b if margin is None else math.exp(good) - math.exp(b) > margin for b in bad
            ]
            literal[str(c)] = float(all(wins))
        one = scores.get(name)
        assert (dict(zip(one.items, one.values, strict=True)) if one else {}) == literal


def test_a_probability_of_zero_has_no_pearson_but_a_rank() -> None:
    rows = role()
    predictions = predictions_of(rows, [-1.0, -math.inf, -2.0, -3.0, None, -4.0])
    scores = measured("role88", rows, predictions)
    assert scores["spearman"].items.tolist() == ["1-a", "1-b", "2-a", "2-b", "3-b"]
    assert scores["pearson"].items.tolist() == ["1-a", "2-a", "2-b", "3-b"]


def test_chance_is_one_over_the_rows_that_are_compared() -> None:
    rows = contrast_rows({"a": 1, "b": 2, "c": 2})
    rows["part"] = rows["contrast"]
    scores = measured("own", rows, predictions_of(rows, [-1.0] * 7 + [None]))
    chance = scores["sensitivity"].chance
    assert chance is not None
    assert chance.tolist() == [1 / 2, 1 / 3]  # c has an unscorable row
    part = scores["sensitivity"].by["part"]["b"].chance
    assert part is not None
    assert part.tolist() == [1 / 3]
    assert scores["sensitivity@0.01"].chance is None


def test_rows_that_ask_the_same_are_not_a_comparison() -> None:
    rows = contrast_rows({"a": 1, "b": 1}, context="The", target="cat")
    rows["right_context"] = ["", "", "", "slept."]
    predictions = predictions_of(rows, [-1.0, -1.0, -1.0, -2.0])
    one = measured("own", rows, predictions)["sensitivity"]
    assert (one.items.tolist(), one.left_out, one.not_defined) == (["b"], ("a",), "")
    # a causal model sees the left side alone, and has nothing to compare in either contrast
    scores = measured("own", rows, predictions, left_only=True)
    assert set(scores) == {"sensitivity", "sensitivity@0.01", "surprisal"}
    for one in (scores["sensitivity"], scores["sensitivity@0.01"]):
        assert not len(one.items)
        assert "same context and the same target" in one.not_defined


# ---- break-downs ---------------------------------------------------------------------------------


def test_a_users_own_rows_are_broken_down_by_what_they_have() -> None:
    rows = rows_of(
        *(
            {
                "id": f"{i}{good}", "contrast": str(i), "good": good,
                "condition": "good" if good else "bad",  # the good row of a contrast decides
                "length": "long" if i % 2 else "short", "passive": i < 2,
                "voice": "active" if good else "passive",  # differs within each contrast: no level
                "note": f"text {i}", "weight": i, "lexical": "one",  # too many levels, too few
            }
            for i in range(13)
            for good in (True, False)
        )
    )  # fmt: skip
    by = by_level(measured("own", rows, predictions_of(rows, [-1.0, -2.0] * 13))["sensitivity"])
    assert {name: {x: len(part) for x, part in of.items()} for name, of in by.items()} == {
        "length": {"short": 7, "long": 6},
        "passive": {"true": 2, "false": 11},
        "condition": {"good": 13},
    }


def test_missing_values_are_in_no_level() -> None:
    rows = rows_of(*({"id": f"{i}", "voice": v} for i, v in enumerate(["a", "", None, "b"])))
    rows["dose"] = [1.0, math.nan, 2.0, None]
    assert diagnostics.get("own").levels(rows) == {
        "voice": ["a", None, None, "b"],
        "dose": ["1.0", None, "2.0", None],
    }


def test_columns_of_a_diagnostic_are_not_guessed_at(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "role88", limit=6).columns()  # few objects, few subjects
    assert set(diagnostics.get("role88").levels(rows)) == set()
    assert {"object", "subject"} <= set(diagnostics.get("own").levels(rows))


@pytest.mark.parametrize(
    ("given_levels", "ordered"),
    [(["10", "2", "-1", "0.5"], ["-1", "0.5", "2", "10"]), (["late", "10", "2"],) * 2],
)
def test_levels_that_are_numbers_are_sorted(given_levels: list[str], ordered: list[str]) -> None:
    assert diagnostics.get("own").levels_in_order("dose", given_levels) == ordered


def test_quartiles_are_closed_on_the_right() -> None:
    # of 1 to 5 the percentiles are 2, 3 and 4, and each belongs to the bin below it
    assert quartiles([1, 2, 3, 4, 5, None]) == ["1", "1", "2", "3", "4", None]
    assert quartiles([None]) == [None]


# ---- rows that are not compared ------------------------------------------------------------------


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
        # accuracy needs no contrasts
        ({"top_words": [["x"]] * 4}, {"accuracy@1": ([1, 0], ())}),
    ],
)  # fmt: skip
def test_words_that_are_not_compared(
    predictions: dict[str, Any], expected: dict[str, tuple[list[float], tuple[str, ...]]]
) -> None:
    rows = rows_of(*({"id": str(i), "voice": "ab"[i > 1]} for i in range(4)))
    rows["expected"] = [["x"], [], ["y"], []] if "top_words" in predictions else [[]] * 4
    scores = measured("own", rows, predictions_of(rows, **predictions), k=(1,))
    assert set(scores) == set(expected)
    for name, (numbers, left_out) in expected.items():
        assert scores[name].values.tolist() == pytest.approx(numbers)
        assert scores[name].left_out == left_out
        assert set(scores[name].by["voice"]) == {"a", "b"}
        statistic = {"rank": "median", "surprisal": "mean"}.get(name, "proportion")
        assert scores[name].statistic == statistic


# ---- the published rows --------------------------------------------------------------------------


def test_human_figures_and_quartiles_of_role88_are_those_of_the_paper(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "role88").columns()
    scores = measured("role88", rows, uniform(rows))
    assert values(scores, "human_sensitivity", "human_sensitivity@0.01") == [[1] * 44] * 2
    assert round(scores["cloze_difference"].values.mean(), 4) == 0.2333  # .233 in section 5.2
    bins = by_level(scores["accuracy@1"])["cloze_quartile"]
    assert {x: len(part) for x, part in bins.items()} == {"1": 25, "2": 23, "3": 23, "4": 17}
    # the labels of table 8 are the largest value of each bin
    cloze: dict[str | None, float] = {}
    for level, value in zip(quartiles(rows["expected_cloze"]), rows["expected_cloze"], strict=True):
        cloze[level] = max(value, cloze.get(level, 0.0))
    rounded = {x: round(v, 2) for x, v in cloze.items()}
    assert rounded == {"1": 0.17, "2": 0.23, "3": 0.33, "4": 0.77}
