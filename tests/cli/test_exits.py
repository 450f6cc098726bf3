"""How commands end when they are interrupted, and errors of several processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from launched import SCRIPT, alone, environment, finished, torchrun
from limits import HANG

from lmdiag.cli import exits
from lmdiag.runs.processes import SharedError
from lmdiag.types import BadInput


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "number", "code", "word"),
    [
        (1, signal.SIGINT, 130, "interrupted"),
        (1, signal.SIGTERM, 143, "terminated"),
        (2, signal.SIGINT, None, "interrupted"),
    ],
)
def test_a_run_that_is_stopped_keeps_its_answers_and_the_same_command_continues(
    command: Commands, count: int, number: signal.Signals, code: int | None, word: str
) -> None:
    arguments = ["--model", str(command.models["bert"]), "--data", str(command.data)]
    arguments += ["--tasks", "cprag102", "--perturb", "shuf", "--shuffles", "6"]
    arguments += ["--batch-size", "1", "--output", str(command.folder)]
    script = [*([sys.executable, SCRIPT] if count == 1 else torchrun(count)), *arguments, "--quiet"]
    child = subprocess.Popen(script, env=environment(), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + HANG
    while not any(path.stat().st_size for path in command.folder.rglob("journal/*.jsonl")):
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    child.send_signal(number)
    _, err = child.communicate(timeout=HANG)
    line = (
        f"lmdiag: {word}; answers saved so far are kept; run the same command again, without "
        "--overwrite, to continue\n"
    )
    assert err.count(line) == 1
    if count == 1:
        assert (child.returncode, err) == (code, line)
    assert f'{SCRIPT}"' not in err  # no traceback of ours; torchrun prints its own
    assert not [*command.folder.rglob("results.json")]
    code, err = alone("run", *arguments)
    assert code == 0, err
    assert " of them saved before" in err


@pytest.mark.parametrize(
    "line",
    ["report {0} --out new.html", "compare {0} {0}", "score --task role88 --predictions {0}"],
)
def test_other_commands_have_written_nothing(
    command: Commands, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """This process gets SIGINT while a run is read."""

    def interrupted(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(command.folder)
    monkeypatch.setattr("lmdiag.results.load_run", interrupted)
    expected = (130, "", "lmdiag: interrupted; nothing was written\n")
    assert command(*line.format(command.runs[0]).split()) == expected
    assert list(command.folder.iterdir()) == []


def test_only_the_first_of_several_processes_speaks(
    monkeypatch: pytest.MonkeyPatch, command: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    command.refused("run", "--modle", "x")
    monkeypatch.setenv("RANK", "1")
    assert command("run", "--modle", "x") == (0, "", "")
    assert exits.end(KeyboardInterrupt(), "run", "nothing was written") == 130
    assert exits.end(SharedError("of all processes"), "run", "") == 0
    assert capsys.readouterr().err == ""
    assert exits.end(BadInput("of this process alone"), "run", "") == 2
    assert capsys.readouterr().err == "lmdiag: error: of this process alone\n"


@pytest.mark.slow
def test_several_processes_report_a_model_that_cannot_be_loaded_once(
    demo_dir: Path, tmp_path: Path
) -> None:
    arguments = ["--model", tmp_path / "absent", "--data", demo_dir, "--output", tmp_path]
    done = finished(torchrun(2), *arguments)
    (line,) = (line for line in done.stderr.splitlines() if "lmdiag: error:" in line)
    assert line.startswith("lmdiag: error: no model folder ")
