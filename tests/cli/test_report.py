"""`lmdiag report`: what it writes where, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import make_run

Typed = Callable[..., tuple[int, str, str]]


def test_a_page_goes_into_the_run_directory_and_one_of_several_runs_here(
    typed: Typed, finished_runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = Path(shutil.copytree(finished_runs[0], tmp_path / "run"))
    assert typed("report", copy) == (0, f"Saved in {copy / 'report.html'}\n", "")
    assert "<h1>org/[b]first</h1>" in (copy / "report.html").read_text()
    assert typed("report", *finished_runs)[:2] == (0, "Saved in report.html\n")
    page = (tmp_path / "report.html").read_text()
    assert "<h1>org/[b]first and org/second</h1>" in page


def test_tables_go_to_standard_output_and_need_no_data_set(
    typed: Typed, finished_runs: list[Path], tmp_path: Path
) -> None:
    code, out, err = typed("report", *finished_runs, "--format", "markdown")
    assert (code, err) == (0, "")
    assert "| org/second |" in out
    results = json.loads((finished_runs[0] / "results.json").read_text())
    results["data"]["source"] = "gone"
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert r"\toprule" in typed("report", tmp_path, "--format", "latex")[1]
    code, out, _ = typed("report", tmp_path, "--format", "csv")
    assert code == 0
    rows = {
        (row["task"], row["measure"], row["by"]): row for row in csv.DictReader(io.StringIO(out))
    }
    measure = results["tasks"]["role88"]["none"]["measures"]["sensitivity"]
    assert float(rows["role88", "sensitivity", ""]["value"]) == measure["value"]


def test_chosen_items_come_with_their_words(
    typed: Typed, finished_runs: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "items.csv"
    arguments = ["--format", "csv", "--items", "role88-1", "--out", out]
    assert typed("report", *finished_runs, *arguments)[:2] == (0, f"Saved in {out}\n")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 2 * 2 * 5  # two contexts, two models, five words
    assert {row["model"] for row in rows} == {"org/[b]first", "org/second"}


def test_training_steps_are_shown_in_their_order(
    typed: Typed, demo_dir: Path, tmp_path: Path
) -> None:
    steps = {"checkpoint-500": 500, "step1": 1, "global_step20": 20}
    paths = [
        make_run(
            tmp_path / name, demo_dir, seed=step, skill=step / 300, training_step=step,
            id=f"runs/tiny/{name}", commit=f"sha256:{step:016}",
        )
        for name, step in steps.items()
    ]  # fmt: skip
    assert typed("report", *paths, "--out", tmp_path / "curves.html")[0] == 0
    page = (tmp_path / "curves.html").read_text()
    assert "<h1>runs/tiny: 3 checkpoints</h1>" in page
    assert "over training steps" in page
    out = typed("report", *paths, "--format", "markdown")[1]
    places = [out.index(f"| step {step} |") for step in (1, 20, 500)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere", "nowhere is not a finished run"),
        ("{run} --format latex --items rol88-1", "no item 'rol88-1' (did you mean 'role88-1'?) in"),
        ("{run} --data nowhere", "no data at nowhere"),
    ],
)
def test_bad_input_is_one_line(
    refused: Callable[..., str], finished_runs: list[Path], arguments: str, message: str
) -> None:
    assert message in refused("report", *arguments.format(run=finished_runs[0]).split())
