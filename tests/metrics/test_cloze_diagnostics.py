"""The metric as `evaluate` users meet it: loaded from its folder, fed with real rows, offline."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pytest
import yaml
from runs import perfect, uniform

from lmdiag import evaluation, stimuli
from lmdiag.schema import BadInput, Predictions, Protocol


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "metrics/cloze_diagnostics"


def records(run: Predictions) -> list[dict[str, Any]]:
    """Predictions as a user hands them over."""
    return [
        {"top_words": words, "log_prob": log_prob}
        for words, log_prob in zip(run.top_words, run.log_prob, strict=True)
    ]


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_rows_of_the_data_set_give_the_measures_of_a_run(
    folder: Path, data_dir: Path, task: str
) -> None:
    rows = datasets.load_dataset(str(data_dir), task, split="test")
    ours = stimuli.load(str(data_dir), task)
    metric = evaluate.load(str(folder), task)
    for run in (perfect(ours.columns()), uniform(ours.columns())):
        found = metric.compute(predictions=records(run), references=rows, k=[1, 5], threshold=0.01)
        assert found == evaluation.evaluate(ours, [run], Protocol(), cased=True)["measures"]


def own_rows() -> list[dict[str, Any]]:
    """A diagnostic of one's own, with a column that nobody knows."""
    return [
        {
            "id": f"{i}{side}", "item": str(i), "condition": side, "context": f"Sentence {i} is",
            "right_context": "today.", "target": "good" if side == "a" else "bad",
            "good": side == "a", "contrast": str(i), "expected": ["good"] if side == "a" else [],
            "length": "long" if i else "short",
        }
        for i in range(3)
        for side in "ab"
    ]  # fmt: skip


def test_a_diagnostic_of_ones_own_needs_no_code(folder: Path) -> None:
    logs = [-1.0, -2.0, -3.0, -2.0, -1.0, None]
    predictions = [
        {"top_words": np.array(["fine", "good"]), "log_prob": value, "note": 1} for value in logs
    ]
    metric = evaluate.load(str(folder), "my_own")
    found = metric.compute(predictions=predictions, references=own_rows(), k=[1, 2], threshold=0.1)
    assert set(found) == {
        "accuracy@1",
        "accuracy@2",
        "sensitivity",
        "sensitivity@0.1",
        "unscorable",
    }
    assert (found["accuracy@1"]["value"], found["accuracy@2"]["value"]) == (0.0, 1.0)
    assert (found["sensitivity"]["value"], found["sensitivity"]["n"]) == (0.5, 2)
    by_length = found["sensitivity"]["by"]["length"]
    assert {level: cell["value"] for level, cell in by_length.items()} == {
        "short": 1.0,
        "long": 0.0,
    }
    assert found["unscorable"] == [{"id": "2b", "word": "bad"}]


def test_predictions_may_come_one_by_one_and_without_a_configuration(folder: Path) -> None:
    metric = evaluate.load(str(folder))
    for row in own_rows():
        log_prob = np.float32(-1) if row["good"] else -math.inf
        metric.add(prediction={"top_words": ["Good"] * 5, "log_prob": log_prob}, reference=row)
    found = metric.compute(cased=False)
    assert found["sensitivity"]["value"] == found["accuracy@1"]["value"] == 1.0


def test_either_half_of_a_prediction_will_do(folder: Path) -> None:
    metric = evaluate.load(str(folder))
    rows = own_rows()
    tops = [{"top_words": ["good", "-", "-", "-", "-"]}] * 6
    words = metric.compute(predictions=tops, references=rows)
    assert set(words) == {"accuracy@1", "accuracy@5"}
    logs = metric.compute(predictions=[{"log_prob": -1.0}] * 6, references=rows)
    assert set(logs) == {"sensitivity", "sensitivity@0.01"}


def test_accuracy_beyond_the_lists_is_left_out_with_a_warning(folder: Path) -> None:
    metric = evaluate.load(str(folder))
    predictions = [{"top_words": ["bad", "good"]}] * 6
    with pytest.warns(UserWarning, match="not computed: accuracy@5: 0a has 2 top words only"):
        found = metric.compute(predictions=predictions, references=own_rows(), k=[1, 2, 5])
    assert set(found) == {"accuracy@1", "accuracy@2"}


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"k": [0, 5]}, r"k is \[0, 5\]: give integers from 1 up"),
        ({"k": [2.0]}, r"k is \[2.0\]"),
        ({"threshold": 1.0}, "threshold is 1.0: give a number from 0 up to below 1"),
        ({"threshold": math.inf}, "threshold is inf"),
    ],
)
def test_knobs_are_checked_as_by_the_command(
    folder: Path, knobs: dict[str, Any], message: str
) -> None:
    predictions = [{"top_words": ["good"] * 5, "log_prob": -1.0}] * 6
    metric = evaluate.load(str(folder))
    with pytest.raises(BadInput, match=message):
        metric.compute(predictions=predictions, references=own_rows(), **knobs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_prob": math.nan}, "prediction 2: log_prob is NaN"),
        ({"log_prob": 1.0}, "prediction 2: log_prob is 1.0"),
        ({"top_words": "good"}, "prediction 2: top_words is 'good'"),
        ({"top_words": None}, "prediction 2: top_words are there for some"),
        ({"id": "0a"}, "prediction 2 is for 0a, its reference is 0b"),
    ],
)
def test_what_is_wrong_with_a_prediction_is_said(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    predictions: list[dict[str, Any]] = [{"top_words": ["good"] * 5, "log_prob": -1.0}] * 6
    predictions[1] = predictions[1] | change
    with pytest.raises(BadInput, match=message):
        evaluate.load(str(folder)).compute(predictions=predictions, references=own_rows())


def test_what_is_wrong_with_the_rows_is_said(folder: Path) -> None:
    metric = evaluate.load(str(folder))
    predictions = [{"log_prob": -1.0}] * 6
    rows = own_rows()
    rows[2].pop("contrast")
    with pytest.raises(BadInput, match="reference 3: the column contrast is missing"):
        metric.compute(predictions=predictions, references=rows)
    rows = own_rows()
    rows[2]["id"] = "0a"
    with pytest.raises(BadInput, match="same id more than once"):
        metric.compute(predictions=predictions, references=rows)
    with pytest.raises(ValueError, match="Mismatch in the number"):
        metric.compute(predictions=predictions[:5], references=own_rows())


def test_rows_that_are_not_compared_have_surprisal(folder: Path) -> None:
    rows = [
        {"context": "A robin is a", "target": "bird"},
        {"context": "A bee is an", "target": "ox"},
    ]
    for configuration in ("my_own", "neg136"):  # without its columns it is not that diagnostic
        found = evaluate.load(str(folder), configuration).compute(
            predictions=[{"log_prob": -math.log(2)}, {"log_prob": -math.log(8)}], references=rows
        )
        assert set(found) == {"surprisal"}
        assert found["surprisal"]["value"] == pytest.approx(2)  # one bit and three


def test_token_counts_pass_for_agreement(folder: Path, demo_dir: Path) -> None:
    rows = datasets.load_dataset(str(demo_dir), "agreement", split="test")
    predictions = [{"log_prob": -1.0 if row["good"] else -2.0, "n_tokens": 1} for row in rows]
    found = evaluate.load(str(folder), "agreement").compute(
        predictions=predictions, references=rows
    )
    assert found["tse"]["value"] == 1.0
    assert found["tse"]["n"] == len(rows) // 2


def test_it_loads_by_the_path_of_the_documentation_without_a_network(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    metric = evaluate.load("metrics/cloze_diagnostics", "cprag102")
    assert metric.config_name == "cprag102"
    assert set(metric.features) == {"predictions", "references"}


def test_the_example_of_its_documentation_holds(folder: Path) -> None:
    import doctest

    metric = evaluate.load(str(folder))
    example = metric.inputs_description.replace('"metrics/cloze_diagnostics"', repr(str(folder)))
    test = doctest.DocTestParser().get_doctest(example, {"evaluate": evaluate}, "example", None, 0)
    assert len(test.examples) == 5
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_card_describes_a_space(folder: Path) -> None:
    _, header, body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(header)
    assert (card["sdk"], card["app_file"]) == ("gradio", "app.py")
    assert {"evaluate", "metric"} <= set(card["tags"])
    assert (folder / card["app_file"]).is_file()
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "README.md", "app.py", "cloze_diagnostics.py", "requirements.txt",
    }  # fmt: skip
    for name in ("accuracy@k", "sensitivity", "within_category_boost", "determiner_match@k", "tse"):
        assert f"`{name}`" in body


def test_the_page_computes_what_its_form_holds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gradio", reason="gradio runs the page on the Hub, and is not needed here")
    monkeypatch.syspath_prepend(str(folder))
    import app

    assert app.compute(app.PREDICTIONS, app.ROWS)["sensitivity"]["value"] == 1.0
    assert json.dumps(app.page().config)
