"""Runs that are killed, torn or cut off by a full disk lose nothing and end the same."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES

from lmdiag import cli
from lmdiag.runs.journal import Journal
from lmdiag.schema import Answer, WordScore


def environment() -> dict[str, str]:
    """One thread a process: the numbers are the same, and processes do not fight for the cores."""
    return os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FAMILIES["bert"].make(tmp_path_factory.mktemp("model") / "bert")


def killed(root: Path, folder: Path, options: list[str], arguments: list[str]) -> dict[str, Any]:
    """Runs `killed_runs.py`; returns what it counted."""
    program = [sys.executable, str(root / "tests/killed_runs.py"), "--folder", str(folder)]
    done = subprocess.run(
        [*program, *options, "--", *arguments],
        capture_output=True, text=True, env=environment(), check=False, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("kills", [12, 60])
def test_runs_killed_at_random_moments_end_as_undisturbed_ones(
    tmp_path: Path, root: Path, model: Path, demo_dir: Path, kills: int
) -> None:
    arguments = ["--model", str(model), "--data", str(demo_dir), "--perturb", "all"]
    arguments += ["--shuffles", "4", "--batch-size", "8", "--quiet"]
    facts = killed(root, tmp_path, ["--kills", str(kills), "--seed", "20"], arguments)
    print(facts)
    assert facts["kills"] == kills
    assert facts["midway"] >= kills / 4
    assert facts["torn"] >= kills / 12
    assert facts["twice"] == 0
    assert facts["runs"] >= 1
    assert facts["same"] == facts["runs"]
    assert facts["writing"] >= kills / 12
    assert facts["left"] == []


@pytest.mark.slow
def test_a_kill_at_any_operation_on_a_file_changes_nothing(
    tmp_path: Path, root: Path, model: Path, demo_dir: Path
) -> None:
    arguments = ["--model", str(model), "--data", str(demo_dir), "--tasks", "neg136", "agreement"]
    facts = killed(root, tmp_path, ["--every-step"], [*arguments, "--limit", "8", "--quiet"])
    assert facts["kills"] >= 20
    assert facts["same"] == facts["kills"]
    assert facts["left"] == []


@pytest.mark.slow
def test_whole_words_end_the_same_after_kills(
    tmp_path: Path, root: Path, model: Path, demo_dir: Path
) -> None:
    arguments = ["--model", str(model), "--data", str(demo_dir), "--tasks", "neg136"]
    arguments += ["--unit", "word", "--batch-size", "4", "--quiet"]
    facts = killed(root, tmp_path, ["--kills", "6", "--seed", "3"], arguments)
    assert facts["midway"] >= 2
    assert facts["twice"] == 0
    assert facts["same"] == facts["runs"] >= 1


def test_a_full_disk_raises_and_keeps_what_was_saved(tmp_path: Path) -> None:
    answer = Answer({"bird": WordScore(-1.0, 1, 1)}, ("bird",), (-1.0,))
    with Journal(tmp_path) as journal:
        journal.append({0: answer})
    full = Journal(tmp_path)
    full._path = Path("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        full.append({1: answer})
    assert caught.value.errno == errno.ENOSPC
    assert Journal(tmp_path).read() == {0: answer}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.main(["run", *arguments])
    return code, capsys.readouterr().err


def test_a_run_on_a_disk_too_small_says_so_in_one_line_and_resumes_when_there_is_room(
    tmp_path: Path, model: Path, demo_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "small"
    output.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "lmdiag-test", str(output)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    arguments = ["--model", str(model), "--data", str(demo_dir), "--output", str(output)]
    arguments += ["--batch-size", "4", "--quiet"]
    try:
        code, error = run(capsys, *arguments)
        assert code == 1
        assert error.count("\n") == 1
        assert "no space left on device; what was saved is kept" in error
        (journal,) = output.rglob("journal")
        assert any(b"\n" in path.read_bytes() for path in journal.glob("*.jsonl"))
        subprocess.run(["mount", "-o", "remount,size=16m", str(output)], check=True)
        assert run(capsys, *arguments)[0] == 0
    finally:
        subprocess.run(["umount", str(output)], check=True)


def test_an_output_that_cannot_be_written_is_one_line(
    tmp_path: Path, model: Path, demo_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    for output in ("/sys/lmdiag", str(tmp_path / "file")):
        code, error = run(
            capsys, "--model", str(model), "--data", str(demo_dir), "--output", output, "--quiet"
        )
        assert code == 2
        assert error.count("\n") == 1
        assert error.startswith("lmdiag: error: cannot write (")
    assert (tmp_path / "file").read_text() == "mine"
