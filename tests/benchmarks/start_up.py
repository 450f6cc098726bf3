"""Whole processes, from the shell's call to the end: `lmdiag run` and a bare script.

The bare script loads the same model by transformers and asks the same contexts, each once, sorted
by length, in padded batches of 32; it scores nothing and writes nothing. `lmdiag run` reads the
data set, writes predictions, results and the report, and prints tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from launched import SCRIPT

from benchmarks import shapes


class Spent(NamedTuple):
    """What a process took: seconds by the clock, and seconds of processors in it and in its kernel.

    The clock depends on what else the machine does, processor time hardly.
    """

    clock: float
    processor: float


def compare(folder: Path, shape: str, threads: int, rounds: int) -> None:
    """Starts both in turn, first once for warmth, and prints their medians and ratios."""
    data, rows, _ = shapes.build(folder)
    model = shapes.make(shape, folder)
    contenders = str(Path(__file__).with_name("contenders.py"))
    bare = [sys.executable, contenders, "floor", str(model), str(rows), str(data), str(threads)]
    run = [sys.executable, SCRIPT, "--model", str(model), "--data", str(data), "--quiet"]
    spent: dict[str, list[Spent]] = {"bare": [], "lmdiag": []}
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory() as output:
            for name, command in (("bare", bare), ("lmdiag", [*run, "--output", output])):
                took = whole_process(command, threads)
                if number:
                    spent[name].append(took)
    show(shape, spent)


def whole_process(command: Sequence[str], threads: int) -> Spent:
    """Runs a command to its end; a contender is told to work once."""
    changes = {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    environment = os.environ | changes
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile("w+") as errors:
        told.write(b"go\n")
        told.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=told, stdout=subprocess.DEVNULL, stderr=errors, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed: {errors.read()}")
    return Spent(seconds, usage.ru_utime + usage.ru_stime)


def show(shape: str, spent: dict[str, list[Spent]]) -> None:
    """Prints a table; ratios are of the two processes of one round."""
    print(f"\n{shape}: whole processes, from start to exit")
    print(f"{'':>22} {'seconds':>8} {'time / bare':>12} {'(least-most)':>14} {'CPU / bare':>11}")
    for name, own in spent.items():
        pairs = list(zip(own, spent["bare"], strict=True))
        ratios = [mine.clock / bare.clock for mine, bare in pairs]
        processor = median(mine.processor / bare.processor for mine, bare in pairs)
        print(
            f"{name:>22} {median(each.clock for each in own):8.2f} {median(ratios):12.2f} "
            f"{f'({min(ratios):.2f}-{max(ratios):.2f})':>14} {processor:11.2f}",
            flush=True,
        )
