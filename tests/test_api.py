"""The Python API gives the numbers of the commands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Commands
from pandas import read_parquet
from pandas.testing import assert_frame_equal
from runs import predictions_of

import lmdiag
from lmdiag.cli import main
from lmdiag.results import read_results
from lmdiag.types import BadInput

TASKS = ("cprag102", "role88", "neg136", "agreement")
NAMES = ("bert", "gpt2")


class Fixture:
    """What the tests share.

    Attributes:
        rows: task -> stimuli.
        models: name -> model, as the API loads it.
        measures: (model, task) -> measures.
        run_dirs: model -> directory of its run by the command.
        results: model -> results of that run.
    """

    def __init__(self, folders: dict[str, Path], data: Path, output: Path) -> None:
        self.folders = folders
        self.rows = {task: lmdiag.load_stimuli(str(data), task) for task in TASKS}
        self.models = {name: lmdiag.load_model(str(path)) for name, path in folders.items()}
        self.measures = {
            (name, task): lmdiag.measure(model.predict(rows), rows)
            for name, model in self.models.items()
            for task, rows in self.rows.items()
        }
        arguments = ["--data", str(data), "--tasks", *TASKS, "--output", str(output), "--quiet"]
        for path in folders.values():  # together, they would have a page that no test reads
            assert main(["run", "--model", str(path), *arguments]) == 0
        self.run_dirs = {name: next((output / name).iterdir()) for name in folders}
        self.results = {name: read_results(path) for name, path in self.run_dirs.items()}


@pytest.fixture(scope="module")
def api(
    tiny_models: dict[str, Path], demo_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Fixture:
    return Fixture(tiny_models, demo_dir, tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_measures_are_those_of_the_command(api: Fixture, name: str, task: str) -> None:
    told, measures = api.results[name].tasks[task]["none"], api.measures[name, task]
    assert list(measures) == list(told.measures)
    for measure, expected in told.measures.items():
        for part in ("value", "ci_low", "ci_high"):
            given = getattr(expected, part)
            assert measures[measure][part] == (given and pytest.approx(given, abs=1e-6))
        assert measures[measure]["n"] == expected.n
    # a run with agreement says the number of verbs for all its tasks
    verbs = "" if task == "agreement" else "".join(told.signature.partition("|verbs:")[1:])
    assert measures.signature + verbs == told.signature


def test_a_notebook_displays_results_once(api: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook, a console of rich displays what it prints, wherever its file is."""
    displayed: list[Any] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *given: displayed.append(given))
    assert "Affirmative" in api.measures["bert", "neg136"]._repr_html_()
    assert not displayed


def test_results_print_as_tables_and_have_a_short_repr(api: Fixture) -> None:
    measures = api.measures["bert", "neg136"]
    html = measures._repr_html_()
    assert html.startswith("<pre>")
    for words in ("Affirmative", measures.signature):
        assert words in str(measures)
        assert words in html
    assert "\x1b" not in html + str(measures)
    compared = lmdiag.compare(*api.run_dirs.values(), resamples=20)
    predictions = api.models["gpt2"].predict(api.rows["role88"])
    run = lmdiag.load_run(api.run_dirs["gpt2"])
    for each in (predictions, api.measures["gpt2", "role88"], compared, run):
        assert repr(each).startswith("<")
        assert "gpt2" in repr(each)
        assert len(repr(each)) < 1000
        assert len(repr(each).splitlines()) == 1


def test_everything_becomes_a_frame(api: Fixture) -> None:
    predictions = api.models["gpt2"].predict(api.rows["role88"])
    frame = predictions.to_frame()
    assert frame["id"].tolist() == predictions.id
    assert frame["log_prob"].tolist() == predictions.log_prob

    measures = api.measures["gpt2", "role88"]
    frame = measures.to_frame().set_index(["measure", "by", "level"])
    assert frame.loc[("sensitivity", "", ""), "value"] == measures["sensitivity"]["value"]
    assert frame.loc[("sensitivity", "", ""), "chance"] == 0.5
    quartile = measures["accuracy@5"]["by"]["cloze_quartile"]["2"]
    assert frame.loc[("accuracy@5", "cloze_quartile", "2"), "n"] == quartile["n"]

    compared = lmdiag.compare(*api.run_dirs.values(), resamples=20)
    frame = compared.to_frame()
    assert frame["difference"].tolist() == [one.difference for one in compared]
    assert set(frame["model_b"]) == {api.results["gpt2"].model.id}

    frame = lmdiag.load_run(api.run_dirs["gpt2"]).to_frame()
    whole = frame[(frame["task"] == "role88") & (frame["by"] == "")]
    assert whole["measure"].tolist() == list(api.results["gpt2"].tasks["role88"]["none"].measures)


def test_two_models_are_compared_as_by_the_command(api: Fixture, command: Commands) -> None:
    _, out, _ = command("compare", *api.run_dirs.values(), "--json", "--resamples", "500")
    document = json.loads(out)["comparisons"]
    compared = lmdiag.compare(*api.run_dirs.values(), resamples=500)
    assert [one.measure for one in compared] == [one["measure"] for one in document]
    assert [one.difference for one in compared] == [one["difference"] for one in document]
    pair = [api.measures[name, "role88"] for name in NAMES]
    in_memory = {one.measure: one for one in lmdiag.compare(*pair, resamples=500)}
    of_task = [one for one in compared if one.task == "role88"]
    assert {one.measure for one in of_task} == set(in_memory)
    for one in of_task:
        assert in_memory[one.measure].difference == pytest.approx(one.difference, abs=1e-6)
    assert "sensitivity@0.01" in str(compared)


def test_only_what_was_measured_in_the_same_way_is_compared(api: Fixture) -> None:
    """The same rows, unit, BOS, perturbation and shuffle: as the command, by signatures."""
    rows, plain, folder = api.rows["cprag102"], api.models["gpt2"], str(api.folders["gpt2"])
    first = api.measures["gpt2", "cprag102"]
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
    shuffled = [
        lmdiag.measure(plain.predict(rows, perturbation="shuf", run=run), rows) for run in (0, 1)
    ]
    with pytest.raises(BadInput, match=r"differ in run \(- and 1\);"):
        lmdiag.compare(*shuffled)
    with pytest.raises(BadInput, match="takes two or more"):
        lmdiag.compare(first)
    with pytest.raises(BadInput, match="but not both"):
        lmdiag.compare(first, api.run_dirs["gpt2"])


def test_predictions_of_a_run_know_how_they_were_made(command: Commands) -> None:
    arguments = ["run", "--model", command.models["gpt2"], "--data", command.data]
    arguments += ["--tasks", "role88"]
    options = ["--unit", "word", "--bos", "never", "--output", command.folder, "--quiet"]
    assert command(*arguments, *options)[0] == 0
    run = lmdiag.load_run(next((command.folder / "gpt2").iterdir()))
    predictions = run.predictions["role88"]["none", 0]
    assert (predictions.unit, predictions.bos) == ("word", "never")
    measures = lmdiag.measure(predictions, run.stimuli["role88"])
    assert measures.signature == run.results.signature
    assert dict(measures) == run.results.tasks["role88"]["none"].measures


TEXTS = ["The dogs near the gate bark.", "", "A robin is a bird.", "The dogs near the gate bark."]


@pytest.mark.parametrize("options", [{}, {"bos": "never"}, {"pll": "original"}])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:--.* has no effect")
def test_surprisals_are_those_of_the_command(
    api: Fixture, command: Commands, name: str, options: dict[str, str]
) -> None:
    """One row per word, with the same numbers in the file that the command writes."""
    frame = lmdiag.load_model(str(api.folders[name]), **options).surprisals(TEXTS)
    assert frame["text"].tolist() == [1] * 6 + [3] * 5 + [4] * 6
    assert frame["word"].tolist() == " ".join(TEXTS).split()
    cut = [TEXTS[row.text - 1][row.start :] for row in frame.itertuples()]
    assert all(map(str.startswith, cut, frame["word"]))
    texts, file = command.folder / "texts.txt", command.folder / "words.parquet"
    texts.write_text("\n".join(TEXTS))
    given = [f"--{option}={value}" for option, value in options.items()]
    arguments = ["--model", api.folders[name], texts, "--output", file, "--quiet"]
    code, out, err = command("surprisal", *arguments, *given)
    assert (code, out) == (0, "")
    is_idle = options != {} and (name == "bert") != ("pll" in options)
    assert ("has no effect" in err) == is_idle
    assert err.count("\n") == is_idle
    assert_frame_equal(frame, read_parquet(file))


def test_surprisals_are_the_log_probabilities_of_predictions_in_bits(api: Fixture) -> None:
    """Sums over the words of a sentence, for a causal and a masked model."""
    rows = lmdiag.load_stimuli([{"sentence": text} for text in TEXTS if text])
    for model in api.models.values():
        sums = model.surprisals(TEXTS).groupby("text")["surprisal"].sum()
        nats = model.predict(rows).log_prob
        assert (-sums * math.log(2)).tolist() == pytest.approx(nats, abs=1e-4)


def test_texts_and_words_without_surprisals(api: Fixture) -> None:
    for texts in ("", [], [" ", "\n"]):
        frame = api.models["bert"].surprisals(texts)
        columns = ["text", "position", "word", "start", "surprisal", "n_tokens"]
        assert frame.columns.tolist() == columns
        assert (len(frame), frame["surprisal"].dtype) == (0, np.float64)
    with pytest.raises(BadInput, match=r"text 2 is None: give texts as strings"):
        api.models["bert"].surprisals(["A robin", None])  # type: ignore[list-item]
    frame = lmdiag.load_model(str(api.folders["gpt2"]), bos="never").surprisals("A robin")
    assert frame["surprisal"].isna().tolist() == [True, False]
    assert frame["n_tokens"].min() > 0
    alone = lmdiag.load_model(str(api.folders["gpt2"]), bos="never").surprisals("Robin")
    assert (alone["surprisal"].isna().all(), alone["surprisal"].dtype) == (True, np.float64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": [0]}, r"k is \[0\]: give integers from 1 up"),
        ({"k": [True]}, r"k is \[True\]"),
        ({"k": 5}, r"k is 5:"),
        ({"threshold": 1}, "threshold is 1: give a number from 0 up to below 1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "0.1"}, "threshold is '0.1'"),
    ],
)
def test_options_of_measure_are_checked(
    api: Fixture, options: dict[str, Any], message: str
) -> None:
    rows = api.rows["role88"]
    with pytest.raises(BadInput, match=message):
        lmdiag.measure(predictions_of(rows.columns(), [-1.0] * len(rows)), rows, **options)
