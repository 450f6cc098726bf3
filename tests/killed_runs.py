"""Kills real runs with SIGKILL, resumes them, and prints what was observed.

Run by `test_resume.py` as a program of its own, because it forks: a child that is forked after the
imports is a whole `lmdiag run` without the seconds that importing torch takes. Nothing is computed
before the fork, so no thread is lost by it. By hand, on a tiny model and the demo data:

    PYTHONPATH=tests python -m killed_runs --kills 200 --seed 0

Half of the kills fall at a random moment of the run, half at an operation on one of its files:
before it is opened, renamed or removed, or while it is written, with its last bytes missing.
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
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from limits import HANG

from lmdiag.cli import main

IMPORTED = (
    "lmdiag.models.local",
    "lmdiag.report.formats.terminal",
    "lmdiag.runs.run",
    "pyarrow.parquet",
    "scipy.stats",
    "transformers.models.bert.modeling_bert",
)
"""What a run imports; the children find it in memory."""

OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}
"""Audit events of the interpreter that come just before an operation on a file."""
STEPS = 40
"""More operations than a short run has: a kill at a later one would never come."""


def run(arguments: list[str], output: Path, kill_at: int = 0, seconds: float = HANG) -> bool:
    """Forks a run; returns whether it finished, or was killed.

    Args:
        arguments: of `lmdiag run`.
        output: its `--output`.
        kill_at: number of the operation on files in `output` at which it dies; 0 for none.
        seconds: after which it is killed.
    """
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if kill_at:
            die_at(kill_at, output)
        os._exit(main(["run", *arguments, "--output", str(output)]))
    end = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(ended[1])
    assert code in (0, -signal.SIGKILL), code
    return code == 0


def die_at(step: int, folder: Path) -> None:
    """Makes this process die at an operation on files in a folder; a written file is torn."""
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


def note_journal(output: Path, facts: Counter[str]) -> None:
    """Counts killed runs that left a journal or a torn record, and questions asked twice."""
    lines = [line for path in output.rglob("journal/*.jsonl") for line in path.open("rb")]
    whole = [json.loads(line.partition(b" ")[2]) for line in lines if line.endswith(b"\n")]
    numbers = [number for batch, _ in whole for number in batch]
    facts["midway"] += bool(lines)
    facts["torn"] += len(whole) < len(lines)
    facts["twice"] += len(numbers) - len(set(numbers))


def data_files(output: Path) -> dict[str, bytes]:
    """The predictions of the one run in a folder."""
    return {path.name: path.read_bytes() for path in output.rglob("*.parquet")}


def note_files(output: Path, expected: dict[str, bytes], facts: Counter[str]) -> None:
    """Counts finished runs, those with the right predictions, and missing or needless files."""
    (results,) = output.rglob("results.json")
    there = {path.name for path in results.parent.iterdir()} - {".lock"}
    facts["runs"] += 1
    facts["same"] += data_files(output) == expected
    facts["left"] += len(there ^ {"results.json", "predictions.parquet", "report.html"})


def random_kills(folder: Path, arguments: list[str], kills: int, seed: int) -> Counter[str]:
    """Kills runs until there were so many kills; each is resumed until it finishes."""
    began = time.monotonic()
    assert run(arguments, folder / "undisturbed")
    duration = time.monotonic() - began
    rng, facts, finished = random.Random(seed), Counter[str](), False
    while facts["kills"] < kills or not finished:
        output = folder / f"run{facts['runs']}"
        if facts["kills"] == kills:
            finished = run(arguments, output)
        elif facts["kills"] % 2:
            finished = run(arguments, output, rng.randint(1, STEPS))
        else:
            finished = run(arguments, output, seconds=rng.uniform(0, duration))
        if finished:
            note_files(output, data_files(folder / "undisturbed"), facts)
        else:
            facts["kills"] += 1
            note_journal(output, facts)
    return facts


def every_step(folder: Path, arguments: list[str]) -> Counter[str]:
    """Kills a run at its first operation on a file, another at its second, and so on; resumes."""
    assert run(arguments, folder / "undisturbed")
    facts = Counter[str]()
    while not run(arguments, output := folder / f"step{facts['kills']}", facts["kills"] + 1):
        facts["kills"] += 1
        note_journal(output, facts)
        assert run(arguments, output)
        note_files(output, data_files(folder / "undisturbed"), facts)
    return facts


def material(folder: Path) -> list[str]:
    """Makes a tiny model and the demo data; returns the arguments of a run on them."""
    from families import FAMILIES

    build = Path(__file__).parents[1] / "datasets/lmdiag/build.py"
    data, made = folder / "lmdiag", FAMILIES["bert"].make(folder / "bert")
    subprocess.run([sys.executable, str(build), str(data), "--source", "demo"], check=True)
    arguments = ["--model", str(made), "--data", str(data), "--perturb", "all", "--shuffles", "4"]
    return [*arguments, "--batch-size", "8", "--quiet"]


def program() -> Counter[str]:
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
        return random_kills(folder, arguments, args.kills, args.seed)


if __name__ == "__main__":
    print(json.dumps(program()))
