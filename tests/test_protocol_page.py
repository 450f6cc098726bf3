"""`docs/protocol.md`: its commands run, and its figures are what they give."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lmdiag.cli import main

pytestmark = pytest.mark.slow

ROUNDING = 0.051
"""Percentage points: the page gives one decimal. No other difference is allowed, on any machine."""

FOLDERS = {
    "": "diagnostics-token",
    "--unit word": "diagnostics-word",
    "--bos always": "diagnostics-token-bosalways",
}


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/protocol.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ran(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all commands of the page were run, in order."""
    folder = tmp_path_factory.mktemp("protocol")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in commands(page):
            _, *arguments = shlex.split(command)
            assert main(arguments) == 0, command
    return folder


def commands(page: str) -> list[str]:
    blocks = re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def tables(page: str) -> list[list[list[str]]]:
    """The cells of each table, its head first."""
    found = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    rows = [[line.strip("|").split("|") for line in each.splitlines()] for each in found]
    return [[[cell.strip() for cell in row] for row in (each[0], *each[2:])] for each in rows]


def measures(ran: Path, run: str, task: str) -> dict[str, Any]:
    model, _, knob = run.partition(" ")
    path = ran / "results" / model.replace(":", "--") / FOLDERS[knob] / "results.json"
    found: dict[str, Any] = json.loads(path.read_text())["tasks"][task]["none"]["measures"]
    return found


def test_the_table_of_runs_says_what_they_gave(page: str, ran: Path) -> None:
    head, *rows = tables(page)[0]
    assert len(rows) == 5
    for run, *cells in rows:
        for column, cell in zip(head[1:], cells, strict=True):
            task, measure = column.split()
            value = 100 * measures(ran, run, task)[measure]["value"]
            assert float(cell) == pytest.approx(value, abs=ROUNDING), (run, column)


def test_the_lists_of_top_words_are_the_models(
    page: str, ran: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ran)
    shown = {}
    for unit in ("token", "word"):
        run = f"results/demo--causal/diagnostics-{unit}"
        assert main(["report", run, "--format", "csv", "--items", "cprag102-8"]) == 0
        lines = capsys.readouterr().out.splitlines()[1:]
        shown[unit] = [line.split(",")[-3] for line in lines]
    assert dict(tables(page)[1][1:]) == {unit: ", ".join(words) for unit, words in shown.items()}


def test_thresholds_need_no_model(
    page: str, ran: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ran)
    predictions = "results/demo--causal/diagnostics-token"
    for name, cell in tables(page)[2][1:]:
        threshold = name.partition("@")[2] or "0.01"
        command = ["score", "--task", "role88", "--predictions", predictions, "--json"]
        assert main([*command, "--threshold", threshold]) == 0
        value = json.loads(capsys.readouterr().out)["measures"][name]["value"]
        assert float(cell) == pytest.approx(100 * value, abs=ROUNDING)


def test_what_must_be_so_is_so(ran: Path) -> None:
    token = measures(ran, "demo:masked", "cprag102")
    word = measures(ran, "demo:masked --unit word", "cprag102")
    assert token["sensitivity"] == word["sensitivity"]
    assert token["sensitivity@0.01"]["value"] >= word["sensitivity@0.01"]["value"]
    plain = measures(ran, "demo:causal", "neg136")["accuracy@1"]["value"]
    assert measures(ran, "demo:causal --bos always", "neg136")["accuracy@1"]["value"] < plain - 0.1


def test_runs_that_differ_in_a_knob_are_not_compared(
    ran: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ran / "results/demo--causal")
    assert main(["compare", FOLDERS[""], FOLDERS["--bos always"], "--data", "../../lmdiag"]) == 2
    assert "differ in bos (- and always)" in capsys.readouterr().err
