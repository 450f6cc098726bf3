"""The Python API gives the numbers of the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import predictions_of

import lmdiag
from lmdiag.results import Results, read_results
from lmdiag.schema import BadInput

TASKS = ("cprag102", "role88", "neg136", "agreement")
NAMES = ("bert", "gpt2")


@pytest.fixture(scope="module")
def run_dirs(
    tiny_models: dict[str, Path], demo_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Model -> the directory of its run by the command."""
    from lmdiag import cli

    output = tmp_path_factory.mktemp("results")
    arguments = ["run", "--model", *map(str, tiny_models.values()), "--data", str(demo_dir)]
    assert cli.main([*arguments, "--tasks", *TASKS, "--output", str(output), "--quiet"]) == 0
    return {name: next((output / name).iterdir()) for name in tiny_models}


@pytest.fixture(scope="module")
def results(run_dirs: dict[str, Path]) -> dict[str, Results]:
    return {name: read_results(path) for name, path in run_dirs.items()}


@pytest.fixture(scope="module")
def models(tiny_models: dict[str, Path]) -> dict[str, Any]:
    return {name: lmdiag.load_model(str(folder)) for name, folder in tiny_models.items()}


@pytest.fixture(scope="module")
def stimuli(demo_dir: Path) -> dict[str, Any]:
    return {task: lmdiag.load_stimuli(str(demo_dir), task) for task in TASKS}


@pytest.fixture(scope="module")
def measured(models: dict[str, Any], stimuli: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """(model, task) -> measures."""
    return {
        (name, task): lmdiag.measure(models[name].predict(stimuli[task]), stimuli[task])
        for name in NAMES
        for task in TASKS
    }


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_measures_are_those_of_the_command(
    measured: dict[tuple[str, str], Any], results: dict[str, Results], name: str, task: str
) -> None:
    told, measures = results[name].tasks[task]["none"], measured[name, task]
    assert list(measures) == list(told.measures)
    for measure, expected in told.measures.items():
        for part in ("value", "ci_low", "ci_high"):
            given = getattr(expected, part)
            assert measures[measure][part] == (given and pytest.approx(given, abs=1e-6))
        assert measures[measure]["n"] == expected.n
    # a run with agreement says the number of verbs for all its tasks
    verbs = "" if task == "agreement" else "".join(told.signature.partition("|verbs:")[1:])
    assert measures.signature + verbs == told.signature


def test_results_print_as_tables_and_have_a_short_repr(
    models: dict[str, Any],
    stimuli: dict[str, Any],
    measured: dict[tuple[str, str], Any],
    run_dirs: dict[str, Path],
) -> None:
    measures = measured["bert", "neg136"]
    html = measures._repr_html_()
    assert html.startswith("<pre>")
    for words in ("Affirmative", measures.signature):
        assert words in str(measures)
        assert words in html
    assert "\x1b" not in html + str(measures)
    compared = lmdiag.compare(*run_dirs.values(), resamples=20)
    predictions = models["gpt2"].predict(stimuli["role88"])
    run = lmdiag.load_run(run_dirs["gpt2"])
    for each in (predictions, measured["gpt2", "role88"], compared, run):
        assert repr(each).startswith("<")
        assert "gpt2" in repr(each)
        assert len(repr(each)) < 1000
        assert len(repr(each).splitlines()) == 1


def test_everything_becomes_a_frame(
    models: dict[str, Any],
    stimuli: dict[str, Any],
    measured: dict[tuple[str, str], Any],
    run_dirs: dict[str, Path],
    results: dict[str, Results],
) -> None:
    predictions = models["gpt2"].predict(stimuli["role88"])
    frame = predictions.to_frame()
    assert frame["id"].tolist() == predictions.id
    assert frame["log_prob"].tolist() == predictions.log_prob

    measures = measured["gpt2", "role88"]
    frame = measures.to_frame().set_index(["measure", "by", "level"])
    assert frame.loc[("sensitivity", "", ""), "value"] == measures["sensitivity"]["value"]
    assert frame.loc[("sensitivity", "", ""), "chance"] == 0.5
    quartile = measures["accuracy@5"]["by"]["cloze_quartile"]["2"]
    assert frame.loc[("accuracy@5", "cloze_quartile", "2"), "n"] == quartile["n"]

    compared = lmdiag.compare(*run_dirs.values(), resamples=20)
    frame = compared.to_frame()
    assert frame["difference"].tolist() == [one.difference for one in compared]
    assert set(frame["model_b"]) == {results["gpt2"].model.id}

    frame = lmdiag.load_run(run_dirs["gpt2"]).to_frame()
    whole = frame[(frame["task"] == "role88") & (frame["by"] == "")]
    assert whole["measure"].tolist() == list(results["gpt2"].tasks["role88"]["none"].measures)


def test_two_models_are_compared_as_by_the_command(
    run_dirs: dict[str, Path],
    measured: dict[tuple[str, str], Any],
    typed: Callable[..., tuple[int, str, str]],
) -> None:
    _, out, _ = typed("compare", *run_dirs.values(), "--json", "--resamples", "500")
    document = json.loads(out)["comparisons"]
    compared = lmdiag.compare(*run_dirs.values(), resamples=500)
    assert [one.measure for one in compared] == [one["measure"] for one in document]
    assert [one.difference for one in compared] == [one["difference"] for one in document]
    pair = [measured[name, "role88"] for name in NAMES]
    in_memory = {one.measure: one for one in lmdiag.compare(*pair, resamples=500)}
    of_task = [one for one in compared if one.task == "role88"]
    assert {one.measure for one in of_task} == set(in_memory)
    for one in of_task:
        assert in_memory[one.measure].difference == pytest.approx(one.difference, abs=1e-6)
    assert "sensitivity@0.01" in str(compared)


def test_only_what_was_measured_in_the_same_way_is_compared(
    tiny_models: dict[str, Path],
    models: dict[str, Any],
    stimuli: dict[str, Any],
    measured: dict[tuple[str, str], Any],
    run_dirs: dict[str, Path],
) -> None:
    """The same rows, unit, BOS, perturbation and shuffle: as the command, by signatures."""
    rows, plain, folder = stimuli["cprag102"], models["gpt2"], str(tiny_models["gpt2"])
    first = measured["gpt2", "cprag102"]
    others = {
        "unit (token and word)": lmdiag.load_model(folder, unit="word").predict(rows),
        "bos (- and never)": lmdiag.load_model(folder, bos="never").predict(rows),
        "perturb (- and trunc)": plain.predict(rows, perturbation="trunc"),
        "seed (0 and 3)": plain.predict(rows, seed=3),
    }
    for part, predictions in others.items():
        other = lmdiag.measure(predictions, rows)
        with pytest.raises(BadInput) as refused:
            lmdiag.compare(first, first, other)
        assert f"differ in {part};" in str(refused.value)
        assert "number 3" in str(refused.value)
        assert lmdiag.compare(other, other)
    with pytest.raises(BadInput, match=r"differ in data \(\w{8} and \w{8}\);"):
        lmdiag.compare(first, measured["gpt2", "role88"])
    shuffled = [
        lmdiag.measure(plain.predict(rows, perturbation="shuf", run=run), rows) for run in (0, 1)
    ]
    assert "|shuf:1|" in shuffled[0].signature
    with pytest.raises(BadInput, match=r"differ in run \(- and 1\);"):
        lmdiag.compare(*shuffled)
    with pytest.raises(BadInput, match="takes two or more"):
        lmdiag.compare(first)
    with pytest.raises(BadInput, match="but not both"):
        lmdiag.compare(first, run_dirs["gpt2"])


def test_predictions_of_a_run_know_how_they_were_made(
    tiny_models: dict[str, Path], demo_dir: Path, tmp_path: Path, typed: Callable[..., Any]
) -> None:
    arguments = ["run", "--model", tiny_models["gpt2"], "--data", demo_dir, "--tasks", "role88"]
    options = ["--unit", "word", "--bos", "never", "--output", tmp_path, "--quiet"]
    assert typed(*arguments, *options)[0] == 0
    run = lmdiag.load_run(next((tmp_path / "gpt2").iterdir()))
    predictions = run.predictions["role88"]["none", 0]
    assert (predictions.unit, predictions.bos) == ("word", "never")
    measures = lmdiag.measure(predictions, run.stimuli["role88"])
    assert measures.signature == run.results.signature
    assert dict(measures) == run.results.tasks["role88"]["none"].measures


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": [0]}, r"k is \[0\]: give integers from 1 up"),
        ({"k": [1.5]}, r"k is \[1.5\]"),
        ({"k": [True]}, r"k is \[True\]"),
        ({"k": []}, r"k is \[\]"),
        ({"k": 5}, r"k is 5:"),
        ({"threshold": 1}, "threshold is 1: give a number from 0 up to below 1"),
        ({"threshold": -0.1}, "threshold is -0.1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "0.1"}, "threshold is '0.1'"),
    ],
)
def test_options_of_measure_are_checked(
    stimuli: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    rows = stimuli["role88"]
    with pytest.raises(BadInput, match=message):
        lmdiag.measure(predictions_of(rows.columns(), [-1.0] * len(rows)), rows, **options)


def test_numbers_of_numpy_are_taken_and_short_lists_are_named(stimuli: dict[str, Any]) -> None:
    rows = stimuli["role88"]
    tops = [["a", "b"]] * len(rows)
    predictions = predictions_of(rows.columns(), [-1.0] * len(rows), tops)
    options: dict[str, Any] = {"k": np.array([2, 1, 2]), "threshold": np.float64(0.5)}
    measures = lmdiag.measure(predictions, rows, **options)
    assert list(measures)[:4] == ["accuracy@1", "accuracy@2", "sensitivity", "sensitivity@0.5"]
    measures = lmdiag.measure(predictions, rows)
    assert "accuracy@5" not in measures
    assert "not computed: accuracy@5: " in str(measures)


def test_names_are_there_without_being_imported() -> None:
    assert {"load_stimuli", "load_model", "load_run", "measure", "compare"} <= set(dir(lmdiag))
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        _ = lmdiag.mesure
