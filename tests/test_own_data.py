"""Rows of one's own from a file to the report, where nothing is compared and of a sample."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from families import FAMILIES

import lmdiag
from lmdiag import cli

WORDS = ("bird", "tree", "hammer", "robin", "trout", "fish", "bird", "tree")
NOTHING = "nothing was compared: the rows have no columns good and contrast"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: FAMILIES[name].make(folder / name) for name in ("bert", "gpt2")}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Eight rows with the two columns that are needed, and a factor of whole numbers."""
    contexts = [f"A {word} is a" for word in WORDS]
    return pd.DataFrame({"context": contexts, "target": WORDS[::-1], "number": [1, 2] * 4})


@pytest.fixture(scope="module")
def file(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "mine.csv"
    frame.to_csv(path)  # with the index, as people do
    return path


@pytest.fixture(scope="module")
def runs(
    models: dict[str, Path], file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    output = tmp_path_factory.mktemp("results")
    names = [str(folder) for folder in models.values()]
    arguments = ["run", "--model", *names, "--data", str(file), "--output", str(output), "--quiet"]
    assert cli.main(arguments) == 0
    return {name: output / name / "mine-token" for name in models}


def measures(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "results.json").read_text())["tasks"]["mine"]["none"]
    return found["measures"]


def test_a_run_without_contrasts_has_surprisals_and_ranks(runs: dict[str, Path]) -> None:
    found = measures(runs["bert"])
    assert set(found) == {"surprisal", "rank"}
    table = pq.read_table(runs["bert"] / "predictions.parquet").to_pydict()
    assert table["id"] == [f"mine-{number}" for number in range(1, 9)]
    known = [value for value in table["log_prob"] if value is not None]
    mean = -sum(known) / len(known) / math.log(2)
    assert found["surprisal"]["value"] == pytest.approx(mean)
    assert found["surprisal"]["n"] == len(known)
    assert list(found["surprisal"]["by"]) == ["number"]
    assert list(found["surprisal"]["by"]["number"]) == ["1", "2"]
    assert found["rank"]["value"] >= 1


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_its_tables_say_that_nothing_was_compared(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], form: str
) -> None:
    assert cli.main(["report", str(runs["bert"]), "--format", form]) == 0
    text = capsys.readouterr().out
    assert "surprisal" in text
    assert (NOTHING in text) == (form == "markdown")


def test_its_page_has_a_headline_and_the_words(runs: dict[str, Path]) -> None:
    page = (runs["bert"] / "report.html").read_text()
    assert NOTHING in page
    assert "mean surprisal, bits" in page.partition('id="section-1"')[0]
    assert " bits</span>" in page  # of each word
    assert 'data-filter="outcome"' not in page


def test_such_runs_are_compared_and_reported_together(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    both = [str(run) for run in runs.values()]
    assert cli.main(["compare", *both, "--json"]) == 0
    text = capsys.readouterr().out
    assert '"surprisal"' in text
    assert '"rank"' in text
    assert cli.main(["report", *both, "--out", str(tmp_path / "both.html")]) == 0
    assert NOTHING in (tmp_path / "both.html").read_text()


def test_its_score_is_that_of_the_run(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["score", "--task", "mine", "--predictions", str(runs["bert"]), "--json"]
    assert cli.main(arguments) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["measures"] == measures(runs["bert"])
    assert "not computed: sensitivity: no rows are compared" in said.err


def test_a_data_frame_gives_the_same(
    runs: dict[str, Path], models: dict[str, Path], frame: pd.DataFrame
) -> None:
    stimuli = lmdiag.load_stimuli(frame, "mine")
    found = lmdiag.measure(lmdiag.load_model(str(models["bert"])).predict(stimuli), stimuli)
    expected = measures(runs["bert"])
    assert list(found) == list(expected)
    assert found["surprisal"]["value"] == pytest.approx(expected["surprisal"]["value"])
    assert found["rank"]["value"] == expected["rank"]["value"]


def test_json_says_it_on_standard_error(
    models: dict[str, Path], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--model", str(models["bert"]), "--data", str(file), "--quiet", "--json"]
    assert cli.main([*arguments, "--output", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "surprisal" in json.loads(said.out)["tasks"]["mine"]["none"]["measures"]
    assert said.err == "lmdiag: nothing was compared in mine: no columns good and contrast\n"


@pytest.mark.parametrize("task", ["neg136", "agreement"])
def test_a_file_may_be_called_like_a_diagnostic(
    models: dict[str, Path], frame: pd.DataFrame, tmp_path: Path, task: str
) -> None:
    data = tmp_path / f"{task}.csv"
    frame.to_csv(data, index=False)
    arguments = ["run", "--model", str(models["bert"]), "--data", str(data), "--quiet"]
    assert cli.main([*arguments, "--output", str(tmp_path / "out")]) == 0
    (found,) = (tmp_path / "out").rglob("results.json")
    assert list(json.loads(found.read_text())["tasks"]) == [f"{task}.csv"]


def test_the_report_of_a_sample_says_so_and_has_a_headline(
    models: dict[str, Path], demo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--model", str(models["bert"]), "--data", str(demo_dir), "--quiet"]
    assert cli.main([*arguments, "--limit", "12", "--output", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    sample = "a sample of 12 rows, drawn evenly over the break-downs (--limit 12)"
    assert text.count(sample) == 3  # each of the three diagnostics
    assert "|limit:sample12" in text
    (page,) = tmp_path.rglob("report.html")
    headline = page.read_text().partition('id="section-1"')[0]
    assert headline.count(sample) == 3
    assert "sensitivity, SIMP negative" in headline
    run = lmdiag.compare(page.parent, page.parent)  # the same sample is read back
    assert {one.task for one in run} == {"cprag102", "role88", "neg136"}


def test_the_headline_of_a_sample_without_the_usual_levels_is_a_plain_one(
    models: dict[str, Path], demo_dir: Path, tmp_path: Path
) -> None:
    arguments = ["run", "--model", str(models["bert"]), "--data", str(demo_dir), "--quiet"]
    arguments += ["--tasks", "neg136", "--limit", "2", "--seed", "1", "--output", str(tmp_path)]
    assert cli.main(arguments) == 0
    (page,) = tmp_path.rglob("report.html")
    headline = page.read_text().partition('id="section-1"')[0]
    assert '<th scope="row">' in headline
