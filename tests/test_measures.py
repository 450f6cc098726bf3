"""What is measured, on rows small enough to work out by hand, and on the data sets' own columns.

The arithmetic of each expected value stands in a comment beside it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from scored import by_name, padded, perfect, predictions_of, rows_of, uniform

from lmdiag import stimuli
from lmdiag.measures import score
from lmdiag.measures.accuracy import fits
from lmdiag.measures.contrasts import Contrasts
from lmdiag.measures.levels import CORE, DIAGNOSTICS, in_order, quartiles, row_levels
from lmdiag.measures.scores import label
from lmdiag.schema import DIAGNOSTIC_COLUMNS


def measured(
    task: str, rows: dict[str, list[Any]], predictions: Any, **knobs: Any
) -> dict[str, Any]:
    """Measure -> its value, or the values of its items' levels."""
    return by_name(score(task, rows, vars(predictions), **knobs))


def mean(scores: Any) -> float:
    return float(scores.values.mean())


# ---- three items of each set, by hand -----------------------------------------------------------

LOG = math.log


@pytest.fixture
def cprag() -> dict[str, list[Any]]:
    """Three contexts, two of high constraint."""
    rows = []
    for item, constraint in (("1", "high"), ("2", "high"), ("3", "low")):
        for condition in ("expected", "within_category", "between_category"):
            good = condition == "expected"
            rows.append(
                {
                    "id": f"{item}-{condition}",
                    "contrast": item,
                    "condition": condition,
                    "good": good,
                    "expected": ["fork"] if good else [],
                    "constraint": constraint,
                }
            )
    return rows_of(*rows)


def test_three_items_of_cprag102(cprag: dict[str, list[Any]]) -> None:
    # item 1: .5 over .2 and .1; item 2: .015 over .01 and .001; item 3: .1 under .3, over .05
    p = [0.5, 0.2, 0.1, 0.015, 0.01, 0.001, 0.1, 0.3, 0.05]
    # fork: first, third, absent
    top = padded([["fork"]] * 3 + [["knife", "##fork", "fork"]] * 3 + [["knife"]] * 3)
    found = measured("cprag102", cprag, predictions_of(cprag, list(map(LOG, p)), top), k=(1, 3))

    assert found["accuracy@1"].values.tolist() == [1, 0, 0]
    assert found["accuracy@3"].values.tolist() == [1, 1, 0]
    assert found["sensitivity"].values.tolist() == [1, 1, 0]
    assert found["sensitivity@0.01"].values.tolist() == [1, 0, 0]  # .015 - .01 is not more than .01
    # within - between: .2 - .1, .01 - .001, .3 - .05
    assert found["within_category_boost"].values.tolist() == [1, 0, 1]
    high = found["sensitivity@0.01"].by["constraint"]["high"]
    assert (high.items.tolist(), high.values.tolist()) == (["1", "2"], [1, 0])
    assert set(found) == {
        "accuracy@1", "accuracy@3", "sensitivity", "sensitivity@0.01", "within_category_boost",
    }  # fmt: skip


@pytest.fixture
def role() -> dict[str, list[Any]]:
    """Three pairs of contexts with people's cloze probabilities."""
    cloze = {"1-a": 0.4, "1-b": 0.1, "2-a": 0.3, "2-b": 0.0, "3-a": 0.2, "3-b": 0.2}
    best = {"1-a": 0.4, "1-b": 0.5, "2-a": 0.3, "2-b": 0.6, "3-a": 0.2, "3-b": 0.7}
    return rows_of(
        *(
            {
                "id": name,
                "contrast": name[0],
                "condition": "appropriate" if name[2] == "a" else "reversed",
                "good": name[2] == "a",
                "expected": ["served", "tipped"] if name[0] == "1" else ["seen"],
                "target_cloze": value,
                "expected_cloze": best[name],
                "object": "customer",
            }
            for name, value in cloze.items()
        )
    )


def test_three_items_of_role88(role: dict[str, list[Any]]) -> None:
    p = [0.3, 0.1, 0.02, 0.015, 0.001, 0.002]
    top = padded([["tipped"], ["given"], ["seen"], ["Seen"], ["a", "seen"], ["a", "b"]])
    found = measured("role88", role, predictions_of(role, list(map(LOG, p)), top))

    assert found["accuracy@1"].values.tolist() == [1, 0, 1, 0, 0, 0]  # "Seen" is not "seen"
    assert found["accuracy@5"].values.tolist() == [1, 0, 1, 0, 1, 0]
    assert found["sensitivity"].values.tolist() == [1, 1, 0]
    assert found["sensitivity@0.01"].values.tolist() == [1, 0, 0]  # differences .2, .005, -.001
    assert mean(found["probability_difference"]) == pytest.approx((0.2 + 0.005 - 0.001) / 3)
    assert mean(found["cloze_difference"]) == pytest.approx((0.3 + 0.3 + 0.0) / 3)
    # people: .4 > .1, .3 > 0, .2 = .2
    assert found["human_sensitivity"].values.tolist() == [1, 1, 0]
    assert found["human_sensitivity@0.01"].values.tolist() == [1, 1, 0]
    cloze = role["target_cloze"]
    by_scipy = spearmanr(p, cloze).statistic, pearsonr(np.log(p), cloze).statistic
    ours = [np.corrcoef(ranks(found["spearman"].values).T)[0, 1]]
    ours += [np.corrcoef(found["pearson"].values.T)[0, 1]]
    assert ours == pytest.approx(by_scipy)
    # expected_cloze .2 .3 .4 .5 .6 .7: bounds at .325, .45, .575, bins closed on the right
    quartile = found["accuracy@1"].by["cloze_quartile"]
    assert {level: part.items.tolist() for level, part in quartile.items()} == {
        "1": ["2-a", "3-a"],
        "2": ["1-a"],
        "3": ["1-b"],
        "4": ["2-b", "3-b"],
    }


def ranks(values: Any) -> Any:
    from scipy.stats import rankdata

    return rankdata(values, axis=0)


@pytest.fixture
def neg() -> dict[str, list[Any]]:
    """One simple item in four forms, and one natural item of each kind."""
    simple = {
        "TA": ("is an", "insect"),
        "FA": ("is a", "tool"),
        "TN": ("is not a", "tool"),
        "FN": ("is not an", "insect"),
    }
    rows: list[dict[str, Any]] = []
    for condition, (verb, target) in simple.items():
        rows.append(
            form("simp", "1", condition, natural=None)
            | {"context": f"A wasp {verb}", "target": target}
        )
    for item, natural in (("2", True), ("3", False)):
        rows += [form("nat", item, condition, natural) for condition in simple]
    return rows_of(*rows)


def form(subset: str, item: str, condition: str, natural: bool | None) -> dict[str, Any]:
    polarity = "affirmative" if condition[1] == "A" else "negative"
    return {
        "id": f"{item}-{condition}",
        "contrast": f"{item}-{polarity}",
        "condition": condition,
        "good": condition[0] == "T",
        "expected": ["insect"] if condition == "TA" else [],
        "subset": subset,
        "polarity": polarity,
        "natural": natural,
    }


def test_three_items_of_neg136(neg: dict[str, list[Any]]) -> None:
    # rows are TA, FA, TN, FN of each item; true statements win where the first of a pair is higher
    p = [0.6, 0.1, 0.2, 0.5, 0.3, 0.295, 0.4, 0.1, 0.2, 0.1, 0.1, 0.2]
    simple = [["insect", "##t", "bee"], ["bee"], ["bee"], ["Animal", "8", "hour", "[UNK]", "ox"]]
    top = padded(simple + [[]] * 8)
    found = measured("neg136", neg, predictions_of(neg, list(map(LOG, p)), top))

    sensitivity = found["sensitivity"]
    assert sensitivity.items.tolist() == [
        f"{item}-{polarity}" for item in "123" for polarity in ("affirmative", "negative")
    ]
    assert sensitivity.values.tolist() == [1, 0, 1, 1, 1, 0]
    assert found["sensitivity@0.01"].values.tolist() == [
        1,
        0,
        0,
        1,
        1,
        0,
    ]  # .3 - .295 is too little
    levels = {
        column: {level: part.values.tolist() for level, part in parts.items()}
        for column, parts in sensitivity.by.items()
    }
    assert levels == {
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
    assert found["determiner_match@1"].values.tolist() == [1, 1, 1, 1]
    assert found["determiner_match@5"].values.tolist() == pytest.approx(
        [1 / 5, 1 / 5, 1 / 5, 2 / 5]
    )


def test_a_context_that_rows_share_counts_once_for_the_determiner() -> None:
    shared = [
        form("simp", "1", condition, None) | {"context": "A wasp is a"}
        for condition in ("TA", "FA")
    ]
    rows = rows_of(*shared)
    found = measured("neg136", rows, predictions_of(rows, top_words=[["bee"], ["ant"]]))
    assert found["determiner_match@1"].items.tolist() == ["1-TA"]


# ---- accuracy -----------------------------------------------------------------------------------


def one_row(expected: list[str]) -> dict[str, list[Any]]:
    return rows_of({"id": "1", "contrast": "1", "good": True, "expected": expected})


@pytest.mark.parametrize(
    ("top", "cased", "hit"),
    [
        (["Bird"], True, 0),
        (["Bird"], False, 1),
        (["##bird"], False, 0),
        (["birds", "bir"], False, 0),
        (["seal", "bird"], True, 0),
    ],
)
def test_words_are_compared_whole(top: list[str], cased: bool, hit: int) -> None:
    rows = one_row(["bird"])
    found = measured("own", rows, predictions_of(rows, top_words=[top]), k=(1,), cased=cased)
    assert found["accuracy@1"].values.tolist() == [hit]


def test_a_row_without_a_list_is_left_out_and_not_wrong() -> None:
    rows = rows_of(*({"id": i, "contrast": i, "good": True, "expected": ["bird"]} for i in "12"))
    found = measured("own", rows, predictions_of(rows, top_words=[["bird"], None]))
    assert found["accuracy@1"].items.tolist() == ["1"]
    assert found["accuracy@1"].left_out == ("2",)


def test_accuracy_beyond_the_shortest_list_is_left_out() -> None:
    # whether "bird" is among the first two of "fish" cannot be said from a list of one word
    rows = rows_of(*({"id": i, "contrast": i, "good": True, "expected": ["bird"]} for i in "12"))
    tops = [["fish"], ["fish", "bird"]]
    names = set(measured("own", rows, predictions_of(rows, top_words=tops), k=(1, 2, 5)))
    assert names == {"accuracy@1"}
    tops[0].append("bird")
    found = measured("own", rows, predictions_of(rows, top_words=tops), k=(1, 2, 5))
    assert set(found) == {"accuracy@1", "accuracy@2"}
    assert found["accuracy@2"].values.tolist() == [1, 1]


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=5, max_size=6), min_size=1, max_size=12)
)
def test_accuracy_never_falls_with_k(tops: list[list[str]]) -> None:
    rows = rows_of(
        *(
            {"id": str(i), "contrast": str(i), "good": True, "expected": ["a", "b"]}
            for i in range(len(tops))
        )
    )
    found = measured("own", rows, predictions_of(rows, top_words=tops), k=(1, 2, 5))
    literal = {k: [float(bool({"a", "b"} & set(top[:k]))) for top in tops] for k in (1, 2, 5)}
    assert {k: found[f"accuracy@{k}"].values.tolist() for k in (1, 2, 5)} == literal
    assert (found["accuracy@1"].values <= found["accuracy@5"].values).all()


@pytest.mark.parametrize(
    ("word", "determiner", "fit"),
    [("insect", "an", True), ("bird", "an", False), ("bird", "a", True), ("Ant", "a", False),
     ("hour", "an", False), ("unit", "a", False), ("élan", "a", True), ("", "a", False),
     ("##s", "a", False), (".", "a", False), ("[MASK]", "a", False), ("8", "an", False)],
)  # fmt: skip
def test_the_determiner_goes_by_spelling(word: str, determiner: str, fit: bool) -> None:
    assert fits(word, determiner) is fit


# ---- contrasts ----------------------------------------------------------------------------------


def pair(good: float | None, *bad: float | None) -> Any:
    """Measures of one contrast with these log-probabilities."""
    rows = rows_of(*({"id": str(i), "contrast": "1", "good": i == 0} for i in range(1 + len(bad))))
    return measured("own", rows, predictions_of(rows, [good, *bad]))


def test_a_tie_is_no_preference() -> None:
    assert pair(-1.0, -1.0)["sensitivity"].values.tolist() == [0]


def test_exactly_the_threshold_is_not_more_than_it() -> None:
    # 2 ** -6 - 2 ** -7 is exactly 2 ** -7, and exp(log(2 ** -n)) is exact for these
    rows = rows_of(*({"id": str(i), "contrast": "1", "good": i == 0} for i in range(2)))
    predictions = predictions_of(rows, [LOG(0.5), LOG(0.25)])
    assert measured("own", rows, predictions, threshold=0.25)[
        "sensitivity@0.25"
    ].values.tolist() == [0]
    assert measured("own", rows, predictions, threshold=0.249)[
        "sensitivity@0.249"
    ].values.tolist() == [1]


def test_probabilities_too_small_for_a_float_still_differ() -> None:
    assert pair(-1000.0, -1001.0)["sensitivity"].values.tolist() == [1]
    assert pair(-1000.0, -1001.0)["sensitivity@0.01"].values.tolist() == [0]


def test_every_bad_row_counts() -> None:
    assert pair(-1.0, -2.0, -0.5)["sensitivity"].values.tolist() == [0]


@pytest.mark.parametrize("values", [(None, -1.0), (-1.0, None, -2.0), (-1.0, -2.0, None)])
def test_a_contrast_with_an_unscorable_row_is_left_out(values: tuple[float | None, ...]) -> None:
    assert "sensitivity" not in pair(*values)


def test_what_is_left_out_is_named() -> None:
    rows = rows_of(
        *({"id": f"{c}{i}", "contrast": c, "good": i == 0} for c in "ab" for i in range(2))
    )
    found = measured("own", rows, predictions_of(rows, [-1.0, -2.0, -1.0, None]))
    assert found["sensitivity"].items.tolist() == ["a"]
    assert found["sensitivity"].left_out == ("b",)


def test_a_contrast_that_was_cut_short_is_left_out() -> None:
    rows = rows_of(
        {"id": "1", "contrast": "a", "good": True},
        {"id": "2", "contrast": "a", "good": False},
        {"id": "3", "contrast": "b", "good": True},
        {"id": "4", "contrast": "c", "good": False},
    )
    found = measured("own", rows, predictions_of(rows, [-1.0, -2.0, -1.0, -1.0]))
    assert found["sensitivity"].items.tolist() == ["a"]


def test_two_good_rows_are_an_error() -> None:
    rows = rows_of(
        {"id": "1", "contrast": "x", "good": True}, {"id": "2", "contrast": "x", "good": True}
    )
    with pytest.raises(ValueError, match="'x' has several good rows"):
        score("own", rows, vars(predictions_of(rows, [-1.0, -2.0])))


log_probs = st.one_of(st.none(), st.floats(-40, 0), st.just(-math.inf))


@given(st.data(), st.integers(1, 8))
def test_sensitivity_is_what_the_words_say(data: st.DataObject, n: int) -> None:
    """Against a literal loop, and whatever the order of the rows."""
    sizes = [data.draw(st.integers(1, 3)) for _ in range(n)]
    rows = [
        {"id": f"{c}-{i}", "contrast": str(c), "good": i == 0}
        for c, size in enumerate(sizes)
        for i in range(1 + size)
    ]
    value = {row["id"]: data.draw(log_probs) for row in rows}
    shuffled = rows_of(*data.draw(st.permutations(rows)))
    found = measured("own", shuffled, predictions_of(shuffled, [value[i] for i in shuffled["id"]]))

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
        scores = found.get(name)
        ours = dict(zip(scores.items, scores.values, strict=True)) if scores else {}
        assert ours == literal


def test_no_log_probabilities_no_sensitivity() -> None:
    rows = one_row(["bird"])
    assert set(measured("own", rows, predictions_of(rows, top_words=[["bird"]]))) == {"accuracy@1"}


def test_a_probability_of_zero_has_no_pearson_but_a_rank(role: dict[str, list[Any]]) -> None:
    found = measured(
        "role88", role, predictions_of(role, [-1.0, -math.inf, -2.0, -3.0, None, -4.0])
    )
    assert found["spearman"].items.tolist() == ["1-a", "1-b", "2-a", "2-b", "3-b"]
    assert found["pearson"].items.tolist() == ["1-a", "2-a", "2-b", "3-b"]


# ---- chance, and comparisons that are none ------------------------------------------------------


def test_chance_is_one_over_the_rows_that_are_compared() -> None:
    sizes = {"a": 1, "b": 2, "c": 2}  # contrast -> its bad rows
    rows = rows_of(
        *(
            {"id": f"{name}{i}", "contrast": name, "good": i == 0, "part": name}
            for name, bad in sizes.items()
            for i in range(1 + bad)
        )
    )
    found = measured("own", rows, predictions_of(rows, [-1.0] * 7 + [None]))
    assert found["sensitivity"].chance.tolist() == [1 / 2, 1 / 3]  # c has an unscorable row
    assert found["sensitivity"].by["part"]["b"].chance.tolist() == [1 / 3]
    assert found["sensitivity@0.01"].chance is None


def test_rows_that_ask_the_same_are_not_a_comparison() -> None:
    same = {"context": "The", "target": "cat"}
    rows = rows_of(
        {"id": "1", "contrast": "a", "good": True, **same},
        {"id": "2", "contrast": "a", "good": False, **same},
        {"id": "3", "contrast": "b", "good": True, **same},
        {"id": "4", "contrast": "b", "good": False, **same, "right_context": "slept."},
    )
    predictions = vars(predictions_of(rows, [-1.0, -1.0, -1.0, -2.0]))
    found = by_name(score("own", rows, predictions))["sensitivity"]
    assert (found.items.tolist(), found.left_out, found.not_defined) == (["b"], ("a",), "")
    # a causal model sees the left side alone, and has nothing to compare in either contrast
    (found, above) = score("own", rows, predictions, left_only=True)
    assert (len(found.items), len(above.items)) == (0, 0)
    assert "same context and the same target" in found.not_defined


# ---- break-downs --------------------------------------------------------------------------------


def test_a_diagnostic_of_ones_own_is_broken_down_by_what_it_has() -> None:
    rows = rows_of(
        *(
            {
                "id": f"{i}{good}", "contrast": str(i), "good": good,
                "condition": "good" if good else "bad",
                "length": "long" if i % 2 else "short", "passive": i < 2,
                "note": f"text {i}", "weight": i, "lexical": "one",
            }
            for i in range(13)
            for good in (True, False)
        )
    )  # fmt: skip
    by = measured("own", rows, predictions_of(rows, [-1.0, -2.0] * 13))["sensitivity"].by
    sizes = {
        name: {level: len(part.items) for level, part in parts.items()}
        for name, parts in by.items()
    }
    assert sizes == {
        "length": {"short": 7, "long": 6},
        "passive": {"true": 2, "false": 11},
        "condition": {"good": 13},
    }


SPECIAL = (
    "sentence_1", "sentence_2", "constraint", "explanation", "expected_cloze", "target_cloze",
    "target_cloze_strict", "expected_responses", "object", "subject", "subset", "polarity",
    "natural", "source", "template", "number",
)  # fmt: skip


@pytest.mark.parametrize("levels", [("a", "b"), (1, 2), (True, False), (0.5, 1.5)])
def test_no_name_of_a_column_of_ones_own_means_anything(levels: tuple[Any, Any]) -> None:
    rows = rows_of(
        *(
            {"id": f"{i}{good}", "contrast": str(i), "good": good, "expected": ["yes"]}
            | dict.fromkeys(SPECIAL, levels[i])
            for i in range(2)
            for good in (True, False)
        )
    )
    for task in ("own", "neg136.csv"):
        found = measured(task, rows, predictions_of(rows, [-1.0, -2.0] * 2, [["yes"]] * 4))
        assert set(found) == {"accuracy@1", "sensitivity", "sensitivity@0.01"}
        for measure, n in (("sensitivity", 1), ("accuracy@1", 2)):
            by = found[measure].by
            assert {name: [len(part.items) for part in by[name].values()] for name in by} == (
                {name: [n, n] for name in SPECIAL}
            )
            assert set(by["number"]) == {str(level).lower() for level in levels}


def test_levels_that_are_numbers_stand_in_their_order() -> None:
    assert in_order(["10", "2", "-1", "0.5"]) == ["-1", "0.5", "2", "10"]
    assert in_order(["late", "10", "2"]) == ["late", "10", "2"]
    assert in_order(["blimp", "simple"]) == ["simple", "blimp"]


def test_missing_values_are_in_no_level() -> None:
    rows = rows_of(
        *({"id": f"{i}", "voice": voice} for i, voice in enumerate(["a", "", None, "b"]))
    )
    rows["dose"] = [1.0, math.nan, 2.0, None]
    assert row_levels("own", rows) == {
        "voice": ["a", None, None, "b"],
        "dose": ["1.0", None, "2.0", None],
    }


# ---- rows that are not compared -----------------------------------------------------------------


def uncompared() -> dict[str, list[Any]]:
    return rows_of(*({"id": str(i), "voice": "ab"[i > 1]} for i in range(4)))


def test_words_that_are_not_compared_have_surprisal_and_rank() -> None:
    rows = uncompared()
    said = predictions_of(rows, [LOG(0.5), LOG(0.125), LOG(0.25), None], rank=[1, 9, 2, None])
    found = measured("own", rows, said)
    assert set(found) == {"surprisal", "rank"}
    # -log2 of a half, an eighth, a quarter
    assert found["surprisal"].values.tolist() == pytest.approx([1, 3, 2])
    assert found["surprisal"].left_out == ("3",)
    assert found["surprisal"].by["voice"]["a"].values.tolist() == pytest.approx([1, 3])
    assert (found["rank"].values.tolist(), found["rank"].statistic) == ([1, 9, 2], "median")


def test_a_median_over_known_ranks_alone_would_lie() -> None:
    rows = uncompared()
    said = predictions_of(rows, [-1.0, -2.0, -9.0, -9.0], rank=[1, 2, None, None])
    assert set(measured("own", rows, said)) == {"surprisal"}


def test_an_infinite_surprisal_is_left_out() -> None:
    rows = uncompared()
    found = measured("own", rows, predictions_of(rows, [-math.inf, 0.0, 0.0, 0.0]))
    assert found["surprisal"].left_out == ("0",)


def test_accuracy_needs_no_contrasts() -> None:
    rows = uncompared() | {"expected": [["x"], [], ["y"], []]}
    found = measured("own", rows, predictions_of(rows, top_words=[["x"]] * 4), k=(1,))
    assert found["accuracy@1"].values.tolist() == [1, 0]


def test_a_level_that_differs_within_a_contrast_is_none() -> None:
    rows = rows_of(
        {"id": "1", "contrast": "a", "good": True, "voice": "active"},
        {"id": "2", "contrast": "a", "good": False, "voice": "passive"},
    )
    assert "voice" not in Contrasts.of(rows, row_levels("own", rows)).levels


def test_quartiles_are_closed_on_the_right() -> None:
    # of 1 to 5 the percentiles are 2, 3 and 4, and each belongs to the bin below it
    assert quartiles([1, 2, 3, 4, 5, None]) == ["1", "1", "2", "3", "4", None]
    assert quartiles([None]) == [None]


@pytest.mark.parametrize(
    ("number", "text"), [(0.01, "0.01"), (0, "0"), (1.0, "1"), (1e-5, "1e-05")]
)
def test_names_of_thresholds(number: float, text: str) -> None:
    assert label(number) == text


# ---- the data sets' own columns -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "contrasts", "expected"),
    [("cprag102", 34, 34), ("role88", 44, 88), ("neg136", 68, 34)],
)
def test_perfect_predictions_are_perfect_and_uniform_ones_show_nothing(
    data_dir: Path, task: str, contrasts: int, expected: int
) -> None:
    rows = stimuli.load(str(data_dir), task).columns()
    best, none = measured(task, rows, perfect(rows)), measured(task, rows, uniform(rows))
    for name, n in (
        ("accuracy@1", expected),
        ("accuracy@5", expected),
        ("sensitivity", contrasts),
        ("sensitivity@0.01", contrasts),
    ):
        assert best[name].values.tolist() == [1] * n, name
        assert none[name].values.tolist() == [0] * n, name
        for parts in best[name].by.values():
            assert all(part.values.all() for part in parts.values())


def test_people_and_quartiles_of_role88_are_the_papers(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "role88").columns()
    found = measured("role88", rows, uniform(rows))
    assert found["human_sensitivity"].values.tolist() == [1] * 44
    assert found["human_sensitivity@0.01"].values.tolist() == [1] * 44
    assert round(mean(found["cloze_difference"]), 4) == 0.2333  # .233 in section 5.2
    sizes = {
        level: len(part.items) for level, part in found["accuracy@1"].by["cloze_quartile"].items()
    }
    assert sizes == {"1": 25, "2": 23, "3": 23, "4": 17}
    # the labels of table 8 are the largest value of each bin
    bins = quartiles(rows["expected_cloze"])
    top = {
        level: max(c for c, b in zip(rows["expected_cloze"], bins, strict=True) if b == level)
        for level in "1234"
    }
    assert {level: round(value, 2) for level, value in top.items()} == {
        "1": 0.17,
        "2": 0.23,
        "3": 0.33,
        "4": 0.77,
    }


def test_break_downs_of_the_data_sets(data_dir: Path) -> None:
    sizes = {}
    for task in ("cprag102", "role88", "neg136"):
        rows = stimuli.load(str(data_dir), task).columns()
        by = measured(task, rows, uniform(rows))["sensitivity"].by
        sizes[task] = {
            name: {level: len(p.items) for level, p in parts.items()} for name, parts in by.items()
        }
    assert sizes["cprag102"] == {"constraint": {"high": 18, "low": 16}}
    assert sizes["role88"] == {}
    assert sizes["neg136"] == {
        "subset": {"simp": 36, "nat": 32},
        "subset/polarity": {
            "simp/affirmative": 18, "simp/negative": 18, "nat/affirmative": 16, "nat/negative": 16,
        },
        "natural": {"natural": 16, "less_natural": 16},
        "natural/polarity": {
            "natural/affirmative": 8, "natural/negative": 8,
            "less_natural/affirmative": 8, "less_natural/negative": 8,
        },
    }  # fmt: skip


def test_known_columns_are_never_guessed_at(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "role88", limit=6).columns()  # few objects, few subjects
    assert set(row_levels("role88", rows)) == set()
    assert {"object", "subject"} <= set(row_levels("own", rows))


def test_the_columns_of_the_data_sets_are_the_known_ones(demo_dir: Path) -> None:
    for task in stimuli.tasks(str(demo_dir)):
        rows = stimuli.load(str(demo_dir), task)
        assert set(rows.columns()) - CORE == DIAGNOSTICS[task][0], task
        assert DIAGNOSTIC_COLUMNS[task] <= DIAGNOSTICS[task][0]
