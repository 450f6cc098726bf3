"""Agreement: what EW and MW cost beside the model, and whether memory stays flat.

Run by itself, `python -m benchmarks.agreement MODEL DATA N` asks N contexts and prints the largest
memory that the process ever held, in MiB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contenders import BATCH, Bare, peak_memory

N_CONTEXTS = 384
BLOCK = 64
"""The contexts of the ratio: so many, in blocks of neighbours from all over the data set."""


def show(folder: Path, data: Path, threads: int, rounds: int) -> None:
    """Prints the time per distinct context against the bare forward pass with its softmax."""
    import torch

    torch.set_num_threads(threads)
    model, questions = prepare(folder, data)
    blocks = N_CONTEXTS // BLOCK
    starts = [n * (len(questions) - BLOCK) // max(1, blocks - 1) for n in range(blocks)]
    chosen = [question for start in starts for question in questions[start : start + BLOCK]]
    bare = Bare(str(folder))
    pairs = [(_forward(bare, chosen), ask(model, chosen)) for _ in range(rounds + 1)][1:]
    n_rows = sum(len(model.encode(question).rows) for question in chosen)
    ratios = [ours / floor for floor, ours in pairs]
    floor, ours = (1000 * median(column) / len(chosen) for column in zip(*pairs, strict=True))
    print(
        f"agreement, {folder.name}: {len(questions)} distinct contexts in all, "
        f"{len(chosen)} asked in {n_rows} rows (words of several pieces need more)\n"
        f"  bare forward pass and softmax {floor:.2f} ms a context, "
        f"lmdiag {ours:.2f}: ratio {median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})",
        flush=True,
    )


def prepare(folder: Path, data: Path) -> tuple[Any, list[Any]]:
    """Returns the model, its verbs set, and all questions of agreement; prints what that took."""
    from lmdiag import models, stimuli
    from lmdiag.questions import Setting, collect

    clock = [time.perf_counter()]
    model = models.load(str(folder))
    clock.append(time.perf_counter())
    rows = stimuli.load(str(data), "agreement")
    clock.append(time.perf_counter())
    model.set_verbs(stimuli.load_verbs(str(data)))
    clock.append(time.perf_counter())
    questions = collect([Setting(rows)], kind=model.info.kind, cased=model.info.cased)
    clock.append(time.perf_counter())
    steps = ("load model", "load rows", "set verbs", "collect")
    took = [f"{name} {clock[n + 1] - clock[n]:.1f} s" for n, name in enumerate(steps)]
    print(f"\n{folder.name}, {len(rows)} rows: {', '.join(took)}")
    return model, questions


def ask(model: Any, questions: Sequence[Any]) -> float:
    """Returns the seconds that lmdiag takes for them, journal and tokenising included."""
    from lmdiag.runs.asking import ask as ask_all
    from lmdiag.runs.journal import Journal

    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder)) as journal:
        start = time.perf_counter()
        ask_all(model, questions, top=5, journal=journal)
        return time.perf_counter() - start


def _forward(bare: Bare, questions: Sequence[Any]) -> float:
    """Returns the seconds of a bare loop over the contexts: projection at the blank alone."""
    start = time.perf_counter()
    queries = [question.query for question in questions]
    sides = [query.context for query in queries], [query.right_context for query in queries]
    encoded = sorted(bare.encode(*sides), key=len, reverse=True)
    for first in range(0, len(encoded), BATCH):
        bare.ask(encoded[first : first + BATCH], everywhere=False)
    return time.perf_counter() - start


def show_memory(folder: Path, data: Path, counts: Sequence[int]) -> None:
    """Prints the largest memory of runs of so many contexts."""
    found = []
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.agreement", str(folder), str(data), str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(f"{done.stdout.split()[-2]} contexts {done.stdout.split()[-1]} MiB")
    print(f"\nagreement, {folder.name}: largest memory of a process: {', '.join(found)}")


def main() -> None:
    """Asks some contexts and prints their number and the memory that took."""
    folder, data, count = sys.argv[1:]
    model, questions = prepare(Path(folder), Path(data))
    ask(model, questions[: int(count)])
    print(min(int(count), len(questions)), round(peak_memory()))


if __name__ == "__main__":
    main()
