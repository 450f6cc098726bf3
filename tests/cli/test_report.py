"""`lmdiag report`: what it writes where, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from commands import Commands


def test_a_page_goes_into_the_run_directory_and_one_of_several_runs_here(
    command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(command.folder)
    copy = Path(shutil.copytree(command.runs[0], command.folder / "run"))
    assert command("report", copy) == (0, f"Saved in {copy / 'report.html'}\n", "")
    assert "<h1>org/[b]first</h1>" in (copy / "report.html").read_text()
    assert command("report", *command.runs)[:2] == (0, "Saved in report.html\n")
    page = (command.folder / "report.html").read_text()
    assert "<h1>org/[b]first and org/second</h1>" in page


def test_tables_go_to_standard_output_and_need_no_data_set(command: Commands) -> None:
    code, out, err = command("report", *command.runs, "--format", "markdown")
    assert (code, err) == (0, "")
    assert "| org/second |" in out
    results = json.loads((command.runs[0] / "results.json").read_text())
    results["data"]["source"] = "gone"
    (command.folder / "results.json").write_text(json.dumps(results))
    assert r"\toprule" in command("report", command.folder, "--format", "latex")[1]
    code, out, _ = command("report", command.folder, "--format", "csv")
    assert code == 0
    rows = {
        (row["task"], row["measure"], row["by"]): row for row in csv.DictReader(io.StringIO(out))
    }
    measure = results["tasks"]["role88"]["none"]["measures"]["sensitivity"]
    assert float(rows["role88", "sensitivity", ""]["value"]) == measure["value"]


def test_chosen_items_come_with_their_words(command: Commands) -> None:
    out = command.folder / "items.csv"
    arguments = ["--format", "csv", "--items", "role88-1", "--out", out]
    assert command("report", *command.runs, *arguments)[:2] == (0, f"Saved in {out}\n")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 2 * 2 * 5  # two contexts, two models, five words
    assert {row["model"] for row in rows} == {"org/[b]first", "org/second"}


def test_figures_go_into_a_directory_with_their_captions(command: Commands) -> None:
    folder = command.folder / "figures"
    arguments = ["--figures", folder, "--format", "pdf", "--width", 17]
    code, out, err = command("report", command.runs[0], *arguments)
    figures = sorted(folder.glob("*.pdf"))
    assert (code, out, err) == (0, f"Saved {len(figures)} figures in {folder}\n", "")
    assert {"role88-cloze", "cprag102-pairs"} <= {path.stem for path in figures}
    assert all(path.with_suffix(".txt").read_text().strip() for path in figures)
    for wrong in (["--format", "svg"], ["--figures", folder, "--format", "csv"]):
        error = command.refused("report", command.runs[0], *wrong)
        assert "give --figures DIR --format svg" in error
    code, _, err = command("report", command.runs[0], "--figures", folder, "--width", 1)
    assert code == 2
    assert "--width. Must be >= 4" in err
