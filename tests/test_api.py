"""The Python API gives the numbers of the commands."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from families import FAMILIES
from runs import predictions_of

import lmdiag
from lmdiag import cli
from lmdiag.report.labels import label
from lmdiag.schema import BadInput

TASKS = ("cprag102", "role88", "neg136", "agreement")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: FAMILIES[name].make(folder / name) for name in ("bert", "gpt2")}


@pytest.fixture(scope="module")
def runs(
    models: dict[str, Path], demo_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Model -> the directory of its run by the command."""
    output = tmp_path_factory.mktemp("results")
    names = [str(folder) for folder in models.values()]
    arguments = ["run", "--model", *names, "--data", str(demo_dir), "--tasks", *TASKS]
    assert cli.main([*arguments, "--output", str(output), "--quiet"]) == 0
    return {name: next((output / name).iterdir()) for name in models}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_measures_are_those_of_the_command(
    models: dict[str, Path], runs: dict[str, Path], demo_dir: Path, name: str, task: str
) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), task)
    predictions = lmdiag.load_model(str(models[name])).predict(stimuli)
    measures = lmdiag.measure(predictions, stimuli)
    results = json.loads((runs[name] / "results.json").read_text())["tasks"][task]["none"]
    assert list(measures) == list(results["measures"])
    for measure, expected in results["measures"].items():
        for part in ("value", "ci_low", "ci_high"):
            if expected[part] is None:
                assert measures[measure][part] is None
            else:
                assert measures[measure][part] == pytest.approx(expected[part], abs=1e-6)
        assert measures[measure]["n"] == expected["n"]


def test_what_is_returned_shows_itself(models: dict[str, Path], demo_dir: Path) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "neg136")
    model = lmdiag.load_model(str(models["bert"]))
    measures = lmdiag.measure(model.predict(stimuli), stimuli)
    assert "Affirmative" in str(measures)
    assert measures.signature in str(measures)
    html = measures._repr_html_()
    assert html.startswith("<pre>")
    assert "Affirmative" in html
    assert "\x1b" not in html + str(measures)


def test_everything_has_a_short_repr_and_a_frame(
    models: dict[str, Path], runs: dict[str, Path], demo_dir: Path
) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    predictions = lmdiag.load_model(str(models["gpt2"])).predict(stimuli)
    measures = lmdiag.measure(predictions, stimuli)
    compared = lmdiag.compare(*runs.values(), resamples=20)
    run = lmdiag.load_run(runs["gpt2"])
    for each in (predictions, measures, compared, run):
        assert repr(each).startswith("<")
        assert "gpt2" in repr(each)
        assert len(repr(each)) < 1000
        assert len(repr(each).splitlines()) == 1

    frame = predictions.to_frame()
    assert frame["id"].tolist() == predictions.id
    assert frame["log_prob"].tolist() == predictions.log_prob

    frame = measures.to_frame().set_index(["measure", "by", "level"])
    assert frame.loc[("sensitivity", "", ""), "value"] == measures["sensitivity"]["value"]
    assert frame.loc[("sensitivity", "", ""), "chance"] == 0.5
    quartile = measures["accuracy@5"]["by"]["cloze_quartile"]["2"]
    assert frame.loc[("accuracy@5", "cloze_quartile", "2"), "n"] == quartile["n"]

    frame = compared.to_frame()
    assert frame["difference"].tolist() == [one.difference for one in compared]
    assert set(frame["model_b"]) == {str(models["gpt2"])}

    frame = run.to_frame()
    whole = frame[(frame["task"] == "role88") & (frame["by"] == "")]
    assert whole["measure"].tolist() == list(run.results["tasks"]["role88"]["none"]["measures"])


def test_two_models_are_compared_as_by_the_command(
    models: dict[str, Path],
    runs: dict[str, Path],
    demo_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = cli.main(["compare", *map(str, runs.values()), "--json", "--resamples", "500"])
    assert code == 0
    document = json.loads(capsys.readouterr().out)["comparisons"]
    compared = lmdiag.compare(*runs.values(), resamples=500)
    assert [one.measure for one in compared] == [one["measure"] for one in document]
    assert [one.difference for one in compared] == [one["difference"] for one in document]

    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    measured = [
        lmdiag.measure(lmdiag.load_model(str(folder)).predict(stimuli), stimuli)
        for folder in models.values()
    ]
    in_memory = {one.measure: one for one in lmdiag.compare(*measured, resamples=500)}
    for one in compared:
        if one.task == "role88":
            assert in_memory[one.measure].difference == pytest.approx(one.difference, abs=1e-6)
            assert label(one.measure) in str(compared)


def test_different_rows_are_not_compared(models: dict[str, Path], demo_dir: Path) -> None:
    model = lmdiag.load_model(str(models["bert"]))
    measured = []
    for task in ("neg136", "role88"):
        stimuli = lmdiag.load_stimuli(str(demo_dir), task)
        measured.append(lmdiag.measure(model.predict(stimuli), stimuli))
    with pytest.raises(BadInput, match=r"differ in data \(\w{8} and \w{8}\);"):
        lmdiag.compare(*measured)


def test_what_was_asked_in_another_way_is_not_compared(
    models: dict[str, Path], demo_dir: Path
) -> None:
    """By unit, by BOS, by perturbation, by shuffle: as the command, which compares signatures."""
    stimuli = lmdiag.load_stimuli(str(demo_dir), "cprag102")
    folder = str(models["gpt2"])
    plain = lmdiag.load_model(folder)
    asked = {
        "unit (token and word)": lmdiag.load_model(folder, unit="word").predict(stimuli),
        "bos (- and never)": lmdiag.load_model(folder, bos="never").predict(stimuli),
        "perturb (- and trunc)": plain.predict(stimuli, perturbation="trunc"),
        "seed (0 and 3)": plain.predict(stimuli, seed=3),
    }
    first = lmdiag.measure(plain.predict(stimuli), stimuli)
    for part, predictions in asked.items():
        other = lmdiag.measure(predictions, stimuli)
        with pytest.raises(BadInput) as refused:
            lmdiag.compare(first, first, other)
        assert f"differ in {part};" in str(refused.value)
        assert "number 3" in str(refused.value)
        assert lmdiag.compare(other, other)

    shuffled = [
        lmdiag.measure(plain.predict(stimuli, perturbation="shuf", run=run), stimuli)
        for run in (0, 1)
    ]
    assert "|shuf:1|" in shuffled[0].signature
    with pytest.raises(BadInput, match=r"differ in run \(- and 1\);"):
        lmdiag.compare(*shuffled)


@pytest.mark.parametrize("task", ["role88", "agreement"])
def test_a_signature_is_that_of_a_run_of_the_task(
    models: dict[str, Path], runs: dict[str, Path], demo_dir: Path, task: str
) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), task)
    predictions = lmdiag.load_model(str(models["bert"])).predict(stimuli)
    told = json.loads((runs["bert"] / "results.json").read_text())["tasks"][task]["none"]
    signature = lmdiag.measure(predictions, stimuli).signature
    # a run with agreement says the number of verbs for all its tasks
    verbs = told["signature"].partition("|verbs:")[1:] if task != "agreement" else ("", "")
    assert signature + "".join(verbs) == told["signature"]


def test_predictions_of_a_run_know_how_they_were_asked(
    models: dict[str, Path], demo_dir: Path, tmp_path: Path
) -> None:
    arguments = [
        "run",
        "--model",
        str(models["gpt2"]),
        "--data",
        str(demo_dir),
        "--tasks",
        "role88",
    ]
    options = ["--unit", "word", "--bos", "never", "--output", str(tmp_path), "--quiet"]
    assert cli.main([*arguments, *options]) == 0
    run = lmdiag.load_run(next((tmp_path / "gpt2").iterdir()))
    predictions = run.predictions["role88"]["none", 0]
    assert (predictions.unit, predictions.bos) == ("word", "never")
    measures = lmdiag.measure(predictions, run.stimuli["role88"])
    assert measures.signature == run.results["signature"]
    assert dict(measures) == run.results["tasks"]["role88"]["none"]["measures"]


@pytest.mark.parametrize(
    ("knobs", "message"),
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
def test_knobs_are_checked_as_by_the_command(
    demo_dir: Path, knobs: dict[str, Any], message: str
) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    predictions = predictions_of(stimuli.columns(), [-1.0] * len(stimuli))
    with pytest.raises(BadInput, match=message):
        lmdiag.measure(predictions, stimuli, **knobs)


def test_knobs_may_be_numbers_of_numpy(demo_dir: Path) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    tops = [["a", "b"]] * len(stimuli)
    predictions = predictions_of(stimuli.columns(), [-1.0] * len(stimuli), tops)
    knobs: dict[str, Any] = {"k": np.array([2, 1, 2]), "threshold": np.float64(0.5)}
    measures = lmdiag.measure(predictions, stimuli, **knobs)
    assert list(measures)[:4] == ["accuracy@1", "accuracy@2", "sensitivity", "sensitivity@0.5"]


def test_lists_that_are_too_short_are_named_under_the_tables(demo_dir: Path) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    predictions = predictions_of(stimuli.columns(), top_words=[["a", "b"]] * len(stimuli))
    measures = lmdiag.measure(predictions, stimuli)
    assert "accuracy@5" not in measures
    assert "not computed: accuracy@5: " in str(measures)


def test_a_perturbed_prediction_differs(models: dict[str, Path], demo_dir: Path) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    model = lmdiag.load_model(str(models["gpt2"]))
    plain, without = model.predict(stimuli), model.predict(stimuli, perturbation="obj")
    assert without.perturbation == "obj"
    assert plain.log_prob != without.log_prob


def test_names_are_there_without_being_imported() -> None:
    assert {"load_stimuli", "load_model", "load_run", "measure", "compare"} <= set(dir(lmdiag))
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        _ = lmdiag.mesure
