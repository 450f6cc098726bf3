"""Kills real runs with SIGKILL at random moments, resumes them, and prints what came of it.

Run by `test_resume.py` as a program of its own, because it forks: a child that is forked after the
imports is a whole `lmdiag run` but for the seconds that importing torch takes. Nothing is computed
before the fork, so no thread is lost by it.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lmdiag.cli import main
from lmdiag.journal import _records

IMPORTED = (
    "lmdiag.models.assemble",
    "lmdiag.report.terminal",
    "lmdiag.running",
    "pyarrow.parquet",
    "scipy.stats",
    "statsmodels.stats.proportion",
    "transformers.models.bert.modeling_bert",
)
"""What a run imports; the children find it in memory."""


def start(arguments: list[str]) -> int:
    """Forks a run; returns its process id."""
    child = os.fork()
    if child:
        return child
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os._exit(main(["run", *arguments]))


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
    numbers = [n for path in journal.glob("*.jsonl") for batch, _ in _records(path) for n in batch]
    return len(numbers) - len(set(numbers))


def torment(folder: Path, arguments: list[str], kills: int, seed: int) -> dict[str, object]:
    """Kills runs until there were so many kills, finishing and beginning anew as they come.

    Every second kill falls anywhere in the run, the others soon after it has saved something new;
    every second one that leaves a journal is made to leave its last record torn.
    """
    rng = random.Random(seed)
    began = time.monotonic()
    assert wait(start([*arguments, "--output", str(folder / "undisturbed")]), 600) == 0
    duration = time.monotonic() - began
    (expected,) = (folder / "undisturbed").rglob("predictions.parquet")
    facts = {"kills": 0, "torn": 0, "midway": 0, "twice": 0, "runs": 0, "same": 0}
    code: int | None = None
    while facts["kills"] < kills or code is None:
        output = folder / f"run{facts['runs']}"
        before = saved(output)
        child = start([*arguments, "--output", str(output)])
        if facts["kills"] >= kills:
            code = wait(child, 600)
        elif facts["kills"] % 2:
            code = wait(child, rng.uniform(0, duration / 8), lambda: saved(output) > before)  # noqa: B023
        else:
            code = wait(child, rng.uniform(0, duration))
        (journal,) = [*output.rglob("journal")] or [output]
        facts["twice"] += asked_twice(journal)
        if code is None:
            facts["kills"] += 1
            facts["midway"] += (midway := any(journal.glob("*.jsonl")))
            facts["torn"] += midway and facts["midway"] % 2 and tear(journal, rng)
            continue
        assert code == 0, code
        (found,) = output.rglob("predictions.parquet")
        facts["runs"] += 1
        facts["same"] += found.read_bytes() == expected.read_bytes()
    return facts


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    print(json.dumps(torment(Path(sys.argv[1]), sys.argv[4:], int(sys.argv[2]), int(sys.argv[3]))))
