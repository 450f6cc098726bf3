"""How commands end when they are interrupted, and what launchers show after an error."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES
from report.runs import PLAIN, write_run

from lmdiag.cli import exits, launchers, main
from lmdiag.runs.processes import Processes

LIMIT = 600
"""Seconds; only to end a hang."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FAMILIES["bert"].make(tmp_path_factory.mktemp("model") / "bert")


@pytest.fixture(scope="module")
def run_dir(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("exits") / "run", demo_dir, protocol=PLAIN)


def long_run(root: Path, model: Path, data: Path, output: Path) -> list[str]:
    """The script and the arguments of a run of many small batches."""
    arguments = ["--model", model, "--data", data, "--output", output, "--batch-size", 1]
    arguments += ["--tasks", "cprag102", "--perturb", "shuf", "--shuffles", 6, "--quiet"]
    return [str(root / "eval/run.py"), *map(str, arguments)]


def interrupt(command: list[str], output: Path, number: signal.Signals) -> tuple[int, str]:
    """Starts a run and sends it a signal as soon as it has saved answers.

    Returns:
        exit code and standard error.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    child = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + LIMIT
    while not any(path.stat().st_size for path in output.rglob("journal/*.jsonl")):
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    child.send_signal(number)
    _, err = child.communicate(timeout=LIMIT)
    return child.returncode, err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_run_that_is_stopped_keeps_its_answers_and_the_same_command_continues(
    root: Path,
    model: Path,
    demo_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    code: int,
    word: str,
) -> None:
    script = long_run(root, model, demo_dir, tmp_path)
    ended, err = interrupt([sys.executable, *script], tmp_path, number)
    assert ended == code
    assert err == (
        f"lmdiag: {word}; answers saved so far are kept; run the same command again to continue\n"
    )
    assert not [*tmp_path.rglob("results.json")]
    if number == signal.SIGINT:
        assert main(["run", *(word for word in script[1:] if word != "--quiet")]) == 0
        assert " of them saved before" in capsys.readouterr().err


@pytest.mark.slow
def test_several_processes_that_are_interrupted_say_so_once(
    root: Path, model: Path, demo_dir: Path, tmp_path: Path
) -> None:
    script = long_run(root, model, demo_dir, tmp_path)
    _, err = interrupt(torchrun(2) + script, tmp_path, signal.SIGINT)
    assert err.count("lmdiag: interrupted; answers saved so far are kept") == 1
    assert 'eval/run.py"' not in err  # no traceback of ours; torchrun prints its own
    assert main(["run", *script[1:]]) == 0


@pytest.fixture(params=["report", "compare", "score", "leaderboard"])
def command(
    request: pytest.FixtureRequest,
    run_dir: Path,
    demo_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """A command during which this process gets SIGINT."""

    def interrupted(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lmdiag.results.load_run", interrupted)
    monkeypatch.setattr("lmdiag.leaderboard.collect.judge", interrupted)
    run = str(run_dir)
    return {
        "report": ["report", run, "--out", "new.html"],
        "compare": ["compare", run, run],
        "score": ["score", "--task", "role88", "--predictions", run],
        "leaderboard": ["leaderboard", run, "--data", str(demo_dir), "--out", "board"],
    }[request.param]


def test_other_commands_have_written_nothing(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 130
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "lmdiag: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_with_overwrite_continues_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "lmdiag.cli.run.wanted_models", lambda _: signal.raise_signal(signal.SIGINT)
    )
    assert main(["run", "--model", "x", "--overwrite"]) == 130
    assert "again without --overwrite to continue" in capsys.readouterr().err


def test_only_the_first_of_several_processes_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert exits.stop(KeyboardInterrupt(), "nothing was written") == 130
    assert exits.fail("of all processes", code=2, shared=True) == 0
    assert capsys.readouterr().err == ""
    assert exits.fail("of this process alone", code=2) == 2
    assert capsys.readouterr().err == "lmdiag: error: of this process alone\n"


@pytest.mark.parametrize(
    ("count", "message", "raised"),
    [
        (2, "Connection closed by peer [127.0.0.1]:29500", ConnectionError),
        (1, "Connection closed by peer [127.0.0.1]:29500", RuntimeError),
        (2, "mat1 and mat2 shapes cannot be multiplied", RuntimeError),
    ],
)
def test_a_process_that_loses_another_within_the_model_says_so(
    count: int, message: str, raised: type[Exception]
) -> None:
    processes = Processes(alone=True)
    processes.count = count
    with pytest.raises(raised), processes.ended_with_others():
        raise RuntimeError(message)


# ---- launchers -----------------------------------------------------------------------------------


def torchrun(count: int) -> list[str]:
    """The launcher, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={count}"]
    return [*launcher, f"--master_port={port}"]


def test_the_table_of_torchrun_quotes_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    exits.fail("no mask token", code=2)
    failure = ProcessFailure(0, 1, 2, str(tmp_path / "error.json"))
    table = str(ChildFailedError("run.py", {0: failure}))
    assert "traceback : lmdiag: error: no mask token\n" in table
    assert json.loads((tmp_path / "error.json").read_text())["message"]["message"]


ACCELERATE = ["/usr/bin/python", "/env/bin/accelerate", "launch"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([*ACCELERATE, "eval/run.py", "--model", "x"], True),
        ([*ACCELERATE, "eval/run.py", "--model", "x", "--quiet"], True),
        ([*ACCELERATE, "--quiet", "eval/run.py", "--model", "x"], False),
        ([*ACCELERATE, "-q", "eval/run.py"], False),
        (["/bin/bash"], False),
        ([], False),
        (["/usr/bin/python", "/env/bin/torchrun", "eval/run.py", "--model", "launch"], False),
    ],
)
def test_accelerates_own_traceback_is_foreseen(
    monkeypatch: pytest.MonkeyPatch, command: list[str], expected: bool
) -> None:
    monkeypatch.setattr(sys, "argv", ["eval/run.py"])
    monkeypatch.delenv("RANK", raising=False)
    assert launchers.prints_traceback(command) is expected


@pytest.mark.slow
def test_the_line_is_repeated_when_the_launcher_has_ended() -> None:
    with subprocess.Popen(["sleep", "0.2"]) as launcher:
        program = (
            "import sys; from lmdiag.cli.launchers import _repeat; "
            "_repeat('last', int(sys.argv[1])); print('first', file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(launcher.pid)],
            stderr=subprocess.PIPE, text=True, check=True, timeout=LIMIT,
        )  # fmt: skip
        assert done.stderr == "first\nlast\n"


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--quiet"]], ids=["plain", "quiet"])
def test_accelerate_launch_shows_our_line_last(root: Path, options: list[str]) -> None:
    launcher = [str(Path(sys.executable).with_name("accelerate")), "launch", *options]
    done = subprocess.run(
        [*launcher, str(root / "eval/run.py"), "--modle", "x"],
        stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("lmdiag: error: there is no option --modle")
    assert 'eval/run.py", line' not in done.stderr
    assert ("Traceback" in done.stderr) is (not options)


@pytest.mark.slow
def test_several_processes_report_a_model_that_cannot_be_loaded_once(
    root: Path, demo_dir: Path, tmp_path: Path
) -> None:
    arguments = ["--model", str(tmp_path / "absent"), "--data", str(demo_dir)]
    done = subprocess.run(
        [*torchrun(2), str(root / "eval/run.py"), *arguments],
        stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT, cwd=tmp_path,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if "lmdiag: error:" in line]
    assert len(lines) == 2  # once by us, once in torchrun's table
    assert lines[0].startswith("lmdiag: error: no model folder ")
    assert lines[1].strip() == f"traceback : {lines[0]}"
