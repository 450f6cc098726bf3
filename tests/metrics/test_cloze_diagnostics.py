"""The metric as users of `evaluate` load it: from its folder, with real rows, offline."""

import doctest
import math
import re
from dataclasses import replace
from datetime import date
from uuid import uuid4

import datasets
import evaluate
import numpy as np
import pytest
import yaml
from invented_runs import perfect, uniform

from lmdiag import stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.results import evaluation
from lmdiag.types import BadInput

ROWS = [
    {
        "id": f"{i}{side}", "item": str(i), "condition": side, "context": f"Sentence {i} is",
        "right_context": "today.", "target": "good" if side == "a" else "bad",
        "good": side == "a", "contrast": str(i), "expected": ["good"] if side == "a" else [],
        "length": "long" if i else "short",
    }
    for i in range(3)
    for side in "ab"
]  # fmt: skip
"""A user's own diagnostic, with a further column."""
PREDICTIONS = [{"top_words": ["good"] * 5, "log_prob": -1.0}] * 6


@pytest.fixture
def folder(root):
    return root / "metrics/cloze_diagnostics"


@pytest.fixture
def load(folder):
    """Loads the metric with its own cache file: after an error, others would wait for it."""
    return lambda *task: evaluate.load(str(folder), *task, experiment_id=uuid4().hex)


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136", "agreement"])
def test_the_measures_are_those_of_a_run(load, task, request):
    data = str(request.getfixturevalue("demo_dir" if task == "agreement" else "data_dir"))
    rows = datasets.load_dataset(data, task, split="test")
    loaded, metric = stimuli.load(data, task), load(task)
    for made in (perfect(loaded.columns()), uniform(loaded.columns())):
        run = replace(made, n_tokens=[1] * len(rows))  # which TSE needs
        pairs = zip(run.top_words, run.log_prob, strict=True)
        given = [{"top_words": words, "log_prob": p, "n_tokens": 1} for words, p in pairs]
        computed = metric.compute(predictions=given, references=rows, k=[1, 5], threshold=0.01)
        expected = evaluation.evaluate(loaded, [run], Protocol()).to_json()["measures"]
        assert computed == expected
        assert ("tse" in computed) == (task == "agreement")


def test_a_diagnostic_of_your_own_needs_no_code(load):
    logs = [-1.0, -2.0, -3.0, -2.0, -1.0, None]
    options = {"k": np.array([1, 2]), "threshold": np.float64(0.1)}
    predictions = [
        {"top_words": np.array(["fine", "good"]), "log_prob": value, "note": 1} for value in logs
    ]
    rows = [row | {"read": date(2026, 1, 2)} for row in ROWS]  # a further column is not read
    measures = load("my_own").compute(predictions=predictions, references=rows, **options)
    names = "accuracy@1 accuracy@2 sensitivity sensitivity@0.1 surprisal unscorable"
    assert set(measures) == set(names.split())
    assert (measures["accuracy@1"]["value"], measures["accuracy@2"]["value"]) == (0.0, 1.0)
    assert (measures["sensitivity"]["value"], measures["sensitivity"]["n"]) == (0.5, 2)
    by_length = measures["sensitivity"]["by"]["length"]
    assert {level: by_length[level]["value"] for level in by_length} == {"short": 1.0, "long": 0.0}
    assert measures["unscorable"] == [{"id": "2b", "word": "bad"}]


def test_predictions_one_by_one_and_one_part_of_them(load):
    metric = load()
    for row in ROWS:
        log_prob = np.float32(-1) if row["good"] else -math.inf
        metric.add(prediction={"top_words": ["Good"] * 5, "log_prob": log_prob}, reference=row)
    measures = metric.compute(cased=False)
    assert measures["sensitivity"]["value"] == measures["accuracy@1"]["value"] == 1.0
    part = [{"top_words": prediction["top_words"]} for prediction in PREDICTIONS]
    assert set(metric.compute(predictions=part, references=ROWS)) == {"accuracy@1", "accuracy@5"}


def test_what_is_changed_or_left_out_is_a_warning(load):
    metric = load()
    # a space before a word, as the tokens of GPT-2 are decoded
    plain, spaced = ([{"top_words": [f"{space}good", f"{space}bad"]}] * 6 for space in ("", " "))
    with pytest.warns(UserWarning, match="leading space .* of 12 top words was removed"):
        computed = metric.compute(predictions=spaced, references=ROWS, k=[1])
    assert computed == metric.compute(predictions=plain, references=ROWS, k=[1])
    assert computed["accuracy@1"]["value"] == 1.0
    with pytest.warns(UserWarning, match="not computed: accuracy@5: 0a has 2 top words only"):
        measures = metric.compute(predictions=plain, references=ROWS, k=[1, 2, 5])
    assert set(measures) == {"accuracy@1", "accuracy@2"}


def changed(rows, at, **values):
    return [*rows[:at], rows[at] | values, *rows[at + 1 :]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": [0, 5]}, r"k is \[0, 5\]: give integers from 1 up"),
        ({"threshold": 1.0}, "threshold is 1.0: give a number from 0 up to below 1"),
        ({"predictions": changed(PREDICTIONS, 1, log_prob=math.nan)}, "prediction 2: log_prob is"),
        ({"predictions": [{"top_words": ["good"], "logprob": -1.0}] * 6}, "mean 'log_prob'"),
        ({"predictions": changed(PREDICTIONS, 1, top_words="good")}, "2: top_words is 'good'"),
        ({"predictions": changed(PREDICTIONS, 1, id="0a")}, "is for 0a, its reference is 0b"),
        ({"references": [*ROWS[:5], {"id": "2b"}]}, "reference 6: the column target is empty"),
        ({"predictions": ["good"] * 6}, "prediction 1 is 'good': give a dict"),
        ({"references": changed(ROWS, 2, id="0a")}, "same id more than once"),
    ],
)
def test_errors_name_the_row_or_argument(load, arguments, message):
    with pytest.raises(BadInput, match=message):
        load().compute(**{"predictions": PREDICTIONS, "references": ROWS} | arguments)


def test_it_loads_by_path_without_a_network(root, monkeypatch):
    monkeypatch.chdir(root)
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    metric = evaluate.load("metrics/cloze_diagnostics", "cprag102")
    text, names = metric.inputs_description, {"evaluate": evaluate}
    test = doctest.DocTestParser().get_doctest(text, names, "example", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_card_describes_a_space(folder, capsys):
    _, header, body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(header)["app_file"] == "app.py"
    (code,) = re.findall(r"```python\n(.*?)```", body, re.DOTALL)  # the example, with its output
    exec(compile(code.replace("ORG/cloze_diagnostics", str(folder)), "card", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", code, re.MULTILINE)
