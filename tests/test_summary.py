"""From predictions to the measures of results.json, in the form of SPEC 8."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scored import perfect, predictions_of, rows_of, uniform

from lmdiag import evaluation, measures, stats, stimuli
from lmdiag.schema import BadInput, Protocol

CELL = {"value", "n", "ci_low", "ci_high", "chance"}
KNOBS: dict[str, Any] = {"k": (1, 5), "threshold": 0.01, "cased": True}


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_perfect_predictions_give_100_everywhere_and_uniform_ones_0(
    data_dir: Path, task: str
) -> None:
    rows = stimuli.load(str(data_dir), task)
    for make, value in ((perfect, 1.0), (uniform, 0.0)):
        run = make(rows.columns())
        found = evaluation.evaluate(rows, [run], Protocol(), cased=True)
        assert found["unscorable"] == []
        for name in ("accuracy@1", "accuracy@5", "sensitivity", "sensitivity@0.01"):
            cells = [found["measures"][name]]
            cells += [cell for levels in cells[0]["by"].values() for cell in levels.values()]
            for cell in cells:
                assert cell["value"] == value
                assert (cell["ci_low"], cell["ci_high"]) == stats.wilson(
                    value * cell["n"], cell["n"]
                )


def test_the_form_is_that_of_the_specification(data_dir: Path) -> None:
    measures = {}
    for task in ("cprag102", "role88", "neg136"):
        rows = stimuli.load(str(data_dir), task)
        found = evaluation.evaluate(rows, [uniform(rows.columns())], Protocol(), cased=True)
        json.dumps(found, allow_nan=False)
        measures[task] = found["measures"]
        for measure in found["measures"].values():
            assert set(measure) == CELL | {"by"}
            for levels in measure["by"].values():
                assert all(set(cell) == CELL for cell in levels.values())
    levels = {
        (task, column): list(cells)
        for task, name in (
            ("cprag102", "accuracy@1"),
            ("role88", "accuracy@1"),
            ("neg136", "sensitivity"),
        )
        for column, cells in measures[task][name]["by"].items()
    }
    assert levels == {
        ("cprag102", "constraint"): ["high", "low"],
        ("role88", "cloze_quartile"): ["1", "2", "3", "4"],
        ("neg136", "subset"): ["simp", "nat"],
        ("neg136", "subset/polarity"): [
            "simp/affirmative", "simp/negative", "nat/affirmative", "nat/negative",
        ],
        ("neg136", "natural"): ["natural", "less_natural"],
        ("neg136", "natural/polarity"): [
            "natural/affirmative", "natural/negative",
            "less_natural/affirmative", "less_natural/negative",
        ],
    }  # fmt: skip
    assert measures["role88"]["spearman"]["value"] is None  # constant predictions: undefined, not 0
    assert measures["role88"]["cloze_difference"]["value"] == pytest.approx(0.2333, abs=5e-5)
    assert measures["role88"]["human_sensitivity"]["value"] == 1.0


def test_names_follow_the_protocol(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "cprag102")
    protocol = Protocol(k=(2, 10), threshold=0.05)
    found = evaluation.evaluate(rows, [uniform(rows.columns())], protocol, cased=True)
    assert list(found["measures"]) == [
        "accuracy@2", "accuracy@10", "sensitivity", "sensitivity@0.05", "within_category_boost",
    ]  # fmt: skip


def two_contrasts() -> dict[str, list[Any]]:
    return rows_of(
        *(
            {
                "id": f"{c}{i}", "contrast": c, "good": i == 0, "target": f"word{c}{i}",
                "expected": ["yes"] if i == 0 else [], "constraint": "high" if c == "a" else "low",
            }
            for c in "abcd"
            for i in range(2)
        )
    )  # fmt: skip


def test_shuffled_runs_are_summed_up_by_mean_and_population_deviation() -> None:
    rows = two_contrasts()
    # of four contrasts 4, 2 and 3 are right; of the one with high constraint 1, 0 and 1
    right = [(1, 1, 1, 1), (0, 1, 1, 0), (1, 1, 1, 0)]
    runs = [
        predictions_of(
            rows, [-1.0 if good else -3.0 for won in wins for good in (won, not won)],
            perturbation="shuf", run=i,
        )
        for i, wins in enumerate(right)
    ]  # fmt: skip
    measure = evaluation.summarise("own", rows, runs, **KNOBS)["measures"]["sensitivity"]
    assert measure["value"] == pytest.approx((1 + 0.5 + 0.75) / 3)
    # deviations from .75: .25, -.25, 0; mean square .125 / 3
    assert measure["sd"] == pytest.approx(math.sqrt(0.125 / 3))
    assert (measure["n"], measure["runs"]) == (4, 3)
    bounds = [stats.wilson(k, 4) for k in (4, 2, 3)]
    assert measure["ci_low"] == pytest.approx(sum(low for low, _ in bounds) / 3)
    high = measure["by"]["constraint"]["high"]
    assert (high["value"], high["n"], high["runs"]) == (pytest.approx(2 / 3), 1, 3)


def test_one_shuffle_has_a_deviation_too_and_no_shuffle_has_none() -> None:
    rows = two_contrasts()
    logs = [-1.0, -2.0] * 4
    shuffled = predictions_of(rows, logs, perturbation="shuf_trunc")
    measure = evaluation.summarise("own", rows, [shuffled], **KNOBS)["measures"]["sensitivity"]
    assert (measure["sd"], measure["runs"]) == (0.0, 1)
    for name in ("none", "trunc"):
        run = predictions_of(rows, logs, perturbation=name)
        measure = evaluation.summarise("own", rows, [run], **KNOBS)["measures"]["sensitivity"]
        assert "sd" not in measure


def test_people_are_not_shown_beside_contexts_they_never_saw(data_dir: Path) -> None:
    rows = stimuli.load(str(data_dir), "role88")
    run = uniform(rows.columns())
    perturbed = predictions_of(rows.columns(), run.log_prob, run.top_words, perturbation="obj")
    plain = evaluation.evaluate(rows, [run], Protocol(), True)["measures"]
    other = evaluation.evaluate(rows, [perturbed], Protocol(), True)["measures"]
    people = {"human_sensitivity", "human_sensitivity@0.01", "cloze_difference"}
    assert set(plain) - set(other) == people


def test_unscorable_words_are_named_once_and_count_for_nothing() -> None:
    rows = two_contrasts()
    logs = [-1.0, None, -1.0, -2.0, -1.0, -2.0, None, -2.0]
    runs = [predictions_of(rows, logs, perturbation="shuf", run=i) for i in range(2)]
    found = evaluation.summarise("own", rows, runs, **KNOBS)
    assert found["unscorable"] == [{"id": "a1", "word": "worda1"}, {"id": "d0", "word": "wordd0"}]
    assert found["measures"]["sensitivity"]["n"] == 2


def test_predictions_without_any_probability_name_no_word_unscorable() -> None:
    rows = two_contrasts()
    run = predictions_of(rows, top_words=[["yes"]] * 8)
    found = evaluation.summarise("own", rows, [run], **KNOBS)
    assert found["unscorable"] == []
    assert list(found["measures"]) == ["accuracy@1"]


def test_predictions_of_other_rows_are_refused() -> None:
    rows = two_contrasts()
    backwards = predictions_of({"id": rows["id"][::-1]}, [-1.0] * 8)
    with pytest.raises(BadInput, match="not in the order of its rows"):
        evaluation.summarise("own", rows, [backwards], **KNOBS)


def test_case_decides_what_is_expected() -> None:
    rows = two_contrasts()
    run = predictions_of(rows, top_words=[["Yes"]] * 8)
    values = [
        evaluation.summarise("own", rows, [run], **KNOBS | {"cased": cased})["measures"]["accuracy@1"][
            "value"
        ]
        for cased in (True, False)
    ]
    assert values == [0.0, 1.0]


def test_what_cannot_be_computed_is_said(demo_dir: Path) -> None:
    rows = stimuli.load(str(demo_dir), "agreement")
    words = predictions_of(rows.columns(), top_words=[["a", "b"]] * len(rows))
    lines = evaluation.not_computed(rows, words, Protocol())
    assert [line.split(":")[0] for line in lines] == [
        "all that compares probabilities", "accuracy", "tse",
        "ew and mw",
    ]  # fmt: skip
    logs = predictions_of(rows.columns(), [-1.0] * len(rows), n_tokens=[1] * len(rows))
    lines = evaluation.not_computed(rows, logs, Protocol())
    assert [line.split(":")[0] for line in lines] == [
        "all that looks at the top words",
        "ew and mw",
    ]


def test_too_short_lists_are_named_and_their_accuracy_is_left_out(demo_dir: Path) -> None:
    rows = stimuli.load(str(demo_dir), "neg136")
    first = next(i for i, words in enumerate(rows.columns()["expected"]) if words)
    tops = [["a"] * (3 if i == first else 10) for i in range(len(rows))]
    run = predictions_of(rows.columns(), [-1.0] * len(rows), tops)
    protocol = Protocol(k=(1, 3, 5, 10))
    found = evaluation.evaluate(rows, [run], protocol, cased=True)["measures"]
    assert [name for name in found if name.startswith("accuracy")] == ["accuracy@1", "accuracy@3"]
    row = rows.columns()["id"][first]
    assert evaluation.not_computed(rows, run, protocol) == [
        f"accuracy@5, accuracy@10: {row} has 3 top words only; give 10 for each row"
    ]


def test_both_nouns_replaced_leave_nothing_to_compare(demo_dir: Path) -> None:
    rows = stimuli.load(str(demo_dir), "role88")
    for name, defined in (("both", False), ("obj", True)):
        run = predictions_of(rows.columns(), [-1.0] * len(rows), perturbation=name)
        found = evaluation.evaluate(rows, [run], Protocol(), cased=True)["measures"]
        for measure in ("sensitivity", "sensitivity@0.01", "probability_difference"):
            cell = found[measure]
            assert (cell["value"] is not None, cell["n"] > 0) == (defined, defined)
            assert (cell.get("not_defined", "").endswith("nothing to compare")) != defined
        assert found["spearman"]["n"] == len(rows)  # rows are still rows


def test_every_cell_says_its_chance_level(demo_dir: Path) -> None:
    wanted = {"cprag102": 1 / 3, "role88": 1 / 2, "neg136": 1 / 2, "agreement": 1 / 2}
    for task, chance in wanted.items():
        rows = stimuli.load(str(demo_dir), task)
        columns = rows.columns()
        more: dict[str, Any] = {"n_tokens": [1] * len(rows)}
        if task == "agreement":
            more["agreement"] = [(0.5,) * len(measures.AGREEMENT_LAYOUT)] * len(rows)
        run = predictions_of(columns, [-1.0] * len(rows), [["a"] * 5] * len(rows), **more)
        found = evaluation.evaluate(rows, [run], Protocol(), cased=True)["measures"]
        for name, measure in found.items():
            guessed = name in ("sensitivity", "human_sensitivity", "tse")
            guessed |= name.startswith(("ew", "mw"))
            cells = [measure, *(c for levels in measure["by"].values() for c in levels.values())]
            for cell in cells:
                expected = pytest.approx(chance) if guessed else None
                assert cell["chance"] == expected, (task, name)


def test_the_chance_of_shuffled_runs_is_that_of_one() -> None:
    rows = two_contrasts()
    runs = [predictions_of(rows, [-1.0, -2.0] * 4, perturbation="shuf", run=i) for i in range(2)]
    found = evaluation.summarise("own", rows, runs, **KNOBS)["measures"]
    assert (found["sensitivity"]["chance"], found["sensitivity@0.01"]["chance"]) == (0.5, None)
