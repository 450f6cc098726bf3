"""Kills real runs with SIGKILL at random moments, resumes them, and prints what came of it.

Run by `test_resume.py` as a program of its own, because it forks: a child that is forked after the
imports is a whole `lmdiag run` but for the seconds that importing torch takes. Nothing is computed
before the fork, so no thread is lost by it. By hand, on a tiny model and the demo data:

    PYTHONPATH=tests python -m killed_runs --kills 200 --seed 0

Kills fall at random moments of a run, soon after it has saved something, and in turn at each
operation on its files: before one is opened, renamed or removed, and while it is written.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lmdiag.cli import main

IMPORTED = (
    "lmdiag.models.local",
    "lmdiag.report.terminal",
    "lmdiag.running",
    "pyarrow.parquet",
    "scipy.stats",
    "transformers.models.bert.modeling_bert",
)
"""What a run imports; the children find it in memory."""


OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}
"""Audit events of the interpreter that come just before an operation on a file."""
STEPS = 40
"""More operations than a short run has: a kill at a later one would never come."""


def start(arguments: list[str], output: Path, kill_at: int = 0) -> int:
    """Forks a run; returns its process id.

    Args:
        arguments: of `lmdiag run`.
        output: its `--output`.
        kill_at: number of the operation on files in `output` at which it dies; 0 for none.
    """
    child = os.fork()
    if child:
        return child
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    if kill_at:
        arm(output, kill_at)
    os._exit(main(["run", *arguments, "--output", str(output)]))


def arm(folder: Path, step: int) -> None:
    """Makes this process die at its so-manyth operation on files in a folder.

    Where the operation is to bring a file's content to the disk, the file loses its last bytes.
    """
    steps, flush = itertools.count(1), os.fsync

    def hook(event: str, arguments: Sequence[object]) -> None:
        if event in OPERATIONS and str(folder) in str(arguments[0]) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def torn(file: int) -> None:
        if next(steps) == step:
            os.ftruncate(file, max(0, os.fstat(file).st_size - 7))
            os.kill(os.getpid(), signal.SIGKILL)
        flush(file)

    os.fsync = torn
    sys.addaudithook(hook)


def wait(child: int, seconds: float, begun: Callable[[], bool] = lambda: True) -> int | None:
    """Returns a run's exit code, or None where it was killed so many seconds after it had begun."""
    end = None
    while end is None or time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if end is None and begun():
            end = time.monotonic() + seconds
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


def saved(output: Path) -> int:
    """Counts the bytes that a run's journals hold."""
    return sum(path.stat().st_size for path in output.rglob("journal/*.jsonl"))


def tear(journal: Path, rng: random.Random) -> bool:
    """Cuts the newest file of a journal somewhere in its last record."""
    files = sorted(journal.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    if not files or not (content := files[-1].read_bytes()):
        return False
    last = len(content.rstrip(b"\n").rpartition(b"\n")[2])
    files[-1].write_bytes(content[: -rng.randint(1, last)])
    return True


def asked_twice(journal: Path) -> int:
    """Counts questions that whole records of a journal hold more than once."""
    lines = [line for path in journal.glob("*.jsonl") for line in path.open("rb")]
    whole = [json.loads(line.partition(b" ")[2]) for line in lines if line.endswith(b"\n")]
    numbers = [number for batch, _ in whole for number in batch]
    return len(numbers) - len(set(numbers))


def leftovers(output: Path) -> list[str]:
    """Names what a finished run should not have, and what it should have and has not."""
    (found,) = output.rglob("results.json")
    there = {path.name for path in found.parent.iterdir()} - {".lock", "agreement.parquet"}
    return sorted(there ^ {"results.json", "predictions.parquet", "report.html"})


def torment(folder: Path, arguments: list[str], kills: int, seed: int) -> dict[str, object]:
    """Kills runs until there were so many kills, finishing and beginning anew as they come.

    Of three kills one falls anywhere in the run, one soon after it has saved something new and one
    at an operation on a file; every second one that leaves a journal is made to leave its last
    record torn.
    """
    rng = random.Random(seed)
    began = time.monotonic()
    assert wait(start(arguments, folder / "undisturbed"), 600) == 0
    duration = time.monotonic() - began
    expected = data_files(folder / "undisturbed")
    facts = {"kills": 0, "torn": 0, "midway": 0, "twice": 0, "runs": 0, "same": 0, "writing": 0}
    left: list[str] = []
    code: int | None = None
    while facts["kills"] < kills or code is None:
        output = folder / f"run{facts['runs']}"
        before = saved(output)
        way = facts["kills"] % 3 if facts["kills"] < kills else 3
        child = start(arguments, output, rng.randint(1, STEPS) if way == 2 else 0)
        if way == 0:
            code = wait(child, rng.uniform(0, duration))
        elif way == 1:
            code = wait(child, rng.uniform(0, duration / 8), lambda: saved(output) > before)  # noqa: B023
        else:
            code = wait(child, 600)
            code = None if code == -signal.SIGKILL else code
        (journal,) = [*output.rglob("journal")] or [output]
        facts["twice"] += asked_twice(journal)
        if code is None:
            facts["kills"] += 1
            facts["writing"] += way == 2
            facts["midway"] += (midway := any(journal.glob("*.jsonl")))
            facts["torn"] += midway and facts["midway"] % 2 and tear(journal, rng)
            continue
        assert code == 0, code
        left += leftovers(output)
        facts["runs"] += 1
        facts["same"] += data_files(output) == expected
    return facts | {"left": left, "seed": seed}


def every_step(folder: Path, arguments: list[str]) -> dict[str, object]:
    """Kills a run at its first operation on a file, another at its second, and so on; resumes."""
    assert wait(start(arguments, folder / "undisturbed"), 600) == 0
    expected = data_files(folder / "undisturbed")
    facts = {"kills": 0, "same": 0}
    left: list[str] = []
    for step in itertools.count(1):
        output = folder / f"step{step}"
        if wait(start(arguments, output, step), 600) == 0:
            return facts | {"left": left}
        facts["kills"] += 1
        assert wait(start(arguments, output), 600) == 0, step
        left += leftovers(output)
        facts["same"] += data_files(output) == expected
    raise AssertionError


def data_files(output: Path) -> dict[str, bytes]:
    """Returns the predictions of the one run in a folder."""
    return {path.name: path.read_bytes() for path in output.rglob("*.parquet")}


def material(folder: Path) -> list[str]:
    """Makes a tiny model and the demo data; returns the arguments of a run on them."""
    from families import FAMILIES

    build = Path(__file__).parents[1] / "datasets/lmdiag/build.py"
    data, made = folder / "lmdiag", FAMILIES["bert"].make(folder / "bert")
    subprocess.run([sys.executable, str(build), str(data), "--source", "demo"], check=True)
    arguments = ["--model", str(made), "--data", str(data), "--perturb", "all", "--shuffles", "4"]
    return [*arguments, "--batch-size", "8", "--quiet"]


def program() -> dict[str, object]:
    """Reads the command line and does what it says; see the top of this file."""
    parser = argparse.ArgumentParser(description=program.__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every-step", action="store_true", help="a kill at each operation once")
    parser.add_argument("--folder", type=Path, help="where the runs go (default: a temporary one)")
    parser.add_argument("arguments", nargs="*", help="of `lmdiag run`, after --")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        arguments = args.arguments or material(folder)
        for name in IMPORTED:
            importlib.import_module(name)
        if args.every_step:
            return every_step(folder, arguments)
        return torment(folder, arguments, args.kills, args.seed)


if __name__ == "__main__":
    print(json.dumps(program()))
