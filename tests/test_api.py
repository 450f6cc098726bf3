"""The Python API gives the numbers of the commands."""

import json
from pathlib import Path

import pytest
from families import FAMILIES

import lmdiag
from lmdiag import cli
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
    assert "Affirmative" in repr(measures)
    assert measures.signature in repr(measures)
    html = measures._repr_html_()
    assert html.startswith("<pre>")
    assert "Affirmative" in html
    assert "\x1b" not in html + repr(measures)


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
            assert one.measure in repr(compared)


def test_different_rows_are_not_compared(models: dict[str, Path], demo_dir: Path) -> None:
    model = lmdiag.load_model(str(models["bert"]))
    measured = []
    for task in ("neg136", "role88"):
        stimuli = lmdiag.load_stimuli(str(demo_dir), task)
        measured.append(lmdiag.measure(model.predict(stimuli), stimuli))
    with pytest.raises(BadInput, match=r"cannot compare .*data:"):
        lmdiag.compare(*measured)


def test_a_perturbed_prediction_differs(models: dict[str, Path], demo_dir: Path) -> None:
    stimuli = lmdiag.load_stimuli(str(demo_dir), "role88")
    model = lmdiag.load_model(str(models["gpt2"]))
    plain, without = model.predict(stimuli), model.predict(stimuli, perturbation="obj")
    assert without.perturbation == "obj"
    assert plain.log_prob != without.log_prob


def test_names_are_there_without_being_imported() -> None:
    assert {"load_stimuli", "load_model", "measure", "compare"} <= set(dir(lmdiag))
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        _ = lmdiag.mesure
