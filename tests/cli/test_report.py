"""`lmdiag report`: what it writes where, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from report.runs import PLAIN, write_run

from lmdiag.cli import main


@pytest.fixture(scope="module")
def runs(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs of two models."""
    root = tmp_path_factory.mktemp("report")
    return [
        write_run(root / name, demo_dir, protocol=PLAIN, seed=seed, id=f"org/{name}")
        for seed, name in enumerate(("one", "two"))
    ]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["report", *map(str, arguments)])
    return (code, *capsys.readouterr())


def test_html_goes_into_the_run_directory(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, runs[0])
    assert (code, out) == (0, f"Saved in {runs[0] / 'report.html'}\n")
    assert "<h1>org/one</h1>" in (runs[0] / "report.html").read_text()


def test_several_runs_make_one_page_here(
    runs: list[Path],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, *runs)[:2] == (0, "Saved in report.html\n")
    assert "<h1>org/one and org/two</h1>" in (tmp_path / "report.html").read_text()


def test_tables_go_to_standard_output(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *runs, "--format", "markdown")
    assert (code, err) == (0, "")
    assert "| org/two |" in out
    assert r"\toprule" in run(capsys, runs[0], "--format", "latex")[1]


def test_tables_need_no_data_set(
    runs: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    results = json.loads((runs[0] / "results.json").read_text())
    results["data"]["source"] = "gone"
    (tmp_path / "results.json").write_text(json.dumps(results))
    code, out, _ = run(capsys, tmp_path, "--format", "csv")
    figures = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    (first,) = [
        f for f in figures if (f["task"], f["measure"], f["by"]) == ("role88", "sensitivity", "")
    ]
    assert (
        float(first["value"])
        == results["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"]
    )


def test_chosen_items_come_with_their_words(
    runs: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "items.csv"
    code, said, _ = run(capsys, *runs, "--format", "csv", "--items", "role88-1", "--out", out)
    assert (code, said) == (0, f"Saved in {out}\n")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 2 * 2 * 5  # two contexts, two models, five words
    assert {row["model"] for row in rows} == {"org/one", "org/two"}


def test_folders_of_training_steps_are_shown_in_their_order(
    demo_dir: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paths = [
        write_run(
            tmp_path / name, demo_dir, protocol=PLAIN, seed=step, skill=step / 300,
            id=f"runs/tiny/{name}", commit=f"sha256:{step:016}", training_step=step,
        )
        for name, step in (("checkpoint-500", 500), ("step1", 1), ("global_step20", 20))
    ]  # fmt: skip
    assert run(capsys, *paths, "--out", tmp_path / "curves.html")[0] == 0
    page = (tmp_path / "curves.html").read_text()
    assert "<h1>runs/tiny: 3 checkpoints</h1>" in page
    assert "over training steps" in page
    out = run(capsys, *paths, "--format", "markdown")[1]
    places = [out.index(f"| step {step} |") for step in (1, 20, 500)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not a finished run"),
        (
            ["{run}", "--format", "latex", "--items", "rol88-1"],
            "no item 'rol88-1' (did you mean 'role88-1'?) in",
        ),
        (["{run}", "--data", "nowhere"], "no data at nowhere"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    runs: list[Path], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, *(each.format(run=runs[0]) for each in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("lmdiag: error: ")
    assert message in err
    assert err.count("\n") == 1
