"""How commands end when they are interrupted, and what launchers show after an error."""

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

from lmdiag.cli import exits, launchers


def interrupt(command: list[str], output: Path, number: signal.Signals) -> tuple[int, str]:
    """Starts a run and sends it a signal as soon as it has saved answers.

    Returns:
        exit code and standard error.
    """
    child = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + HANG
    while not any(path.stat().st_size for path in output.rglob("journal/*.jsonl")):
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    child.send_signal(number)
    _, err = child.communicate(timeout=HANG)
    return child.returncode, err


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
    script = [sys.executable, SCRIPT] if count == 1 else torchrun(count)
    ended, err = interrupt([*script, *arguments, "--quiet"], command.folder, number)
    line = (
        f"lmdiag: {word}; answers saved so far are kept; run the same command again to continue\n"
    )
    assert err.count(line) == 1
    if count == 1:
        assert (ended, err) == (code, line)
    assert f'{SCRIPT}"' not in err  # no traceback of ours; torchrun prints its own
    assert not [*command.folder.rglob("results.json")]
    code, err = alone("run", *arguments)
    assert code == 0, err
    assert " of them saved before" in err


@pytest.mark.parametrize("name", ["report", "compare", "score"])
def test_other_commands_have_written_nothing(
    command: Commands, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """This process gets SIGINT while a run is read."""

    def interrupted(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(command.folder)
    monkeypatch.setattr("lmdiag.results.load_run", interrupted)
    run = command.runs[0]
    arguments = {
        "report": [run, "--out", "new.html"],
        "compare": [run, run],
        "score": ["--task", "role88", "--predictions", run],
    }[name]
    said = (130, "", "lmdiag: interrupted; nothing was written\n")
    assert command(name, *arguments) == said
    assert list(command.folder.iterdir()) == []


def test_an_interrupted_run_with_overwrite_continues_without_it(
    command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "lmdiag.cli.run.requested_models", lambda _: signal.raise_signal(signal.SIGINT)
    )
    code, _, err = command("run", "--model", "x", "--overwrite")
    assert code == 130
    assert "again without --overwrite to continue" in err


def test_only_the_first_of_several_processes_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert exits.stop(KeyboardInterrupt(), "nothing was written") == 130
    assert exits.fail("of all processes", code=2, shared=True) == 0
    assert capsys.readouterr().err == ""
    assert exits.fail("of this process alone", code=2) == 2
    assert capsys.readouterr().err == "lmdiag: error: of this process alone\n"


# ---- launchers -----------------------------------------------------------------------------------


def test_the_table_of_torchrun_quotes_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    file = str(tmp_path / "error.json")
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", file)
    exits.fail("no mask token", code=2)
    table = str(ChildFailedError("run.py", {0: ProcessFailure(0, 1, 2, file)}))
    assert "traceback : lmdiag: error: no mask token\n" in table


ACCELERATE = "/usr/bin/python /env/bin/accelerate launch"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{ACCELERATE} eval/run.py --model x", True),
        (f"{ACCELERATE} eval/run.py --model x --quiet", True),
        (f"{ACCELERATE} --quiet eval/run.py --model x", False),
        (f"{ACCELERATE} -q eval/run.py", False),
        ("/bin/bash", False),
        ("", False),
        ("/usr/bin/python /env/bin/torchrun eval/run.py --model launch", False),
    ],
)
def test_the_traceback_of_accelerate_is_foreseen(
    monkeypatch: pytest.MonkeyPatch, line: str, expected: bool
) -> None:
    monkeypatch.setattr(sys, "argv", ["eval/run.py"])
    monkeypatch.delenv("RANK", raising=False)
    assert launchers.prints_traceback(line.split()) is expected


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--quiet"]], ids=["plain", "quiet"])
def test_accelerate_launch_shows_our_line_last(options: list[str]) -> None:
    launcher = [str(Path(sys.executable).with_name("accelerate")), "launch", *options]
    done = finished(launcher, SCRIPT, "--modle", "x")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("lmdiag: error: there is no option --modle")
    assert f'{SCRIPT}", line' not in done.stderr
    assert ("Traceback" in done.stderr) is (not options)


@pytest.mark.slow
def test_several_processes_report_a_model_that_cannot_be_loaded_once(
    demo_dir: Path, tmp_path: Path
) -> None:
    arguments = ["--model", tmp_path / "absent", "--data", demo_dir, "--output", tmp_path]
    done = finished(torchrun(2), *arguments)
    first, second = (line for line in done.stderr.splitlines() if "lmdiag: error:" in line)
    assert first.startswith("lmdiag: error: no model folder ")
    assert second.strip() == f"traceback : {first}"  # in the table of torchrun
