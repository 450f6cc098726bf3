"""How long a command takes before it does anything."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

IMPORTS = (
    "torch",
    "transformers.models.auto",
    "datasets",
    "evaluate",
    "lmdiag.cli",
    "lmdiag.runs.run",
    "lmdiag.models.local",
)
LMDIAG = [sys.executable, "-c", "import sys; from lmdiag.cli import main; sys.exit(main())"]


def show(model: Path, data: Path, times: int = 3) -> None:
    """Prints import times, those of `--help`, and the time from command to first batch."""
    print("\nstart-up, seconds (median of 3)")
    nothing = median(_seconds([sys.executable, "-c", "pass"]) for _ in range(times))
    print(f"{'python':>28} {nothing:6.2f}")
    for name in IMPORTS:
        took = median(_seconds([sys.executable, "-c", f"import {name}"]) for _ in range(times))
        print(f"{'import ' + name:>28} {took - nothing:6.2f}")
    for arguments in (["--help"], ["run", "--help"], ["score", "--help"]):
        took = median(_seconds([*LMDIAG, *arguments]) for _ in range(times))
        print(f"{'lmdiag ' + ' '.join(arguments):>28} {took:6.2f}")
    took = median(_first_batch(model, data) for _ in range(times))
    print(f"{'lmdiag run to first batch':>28} {took:6.2f}   (a tiny model)")


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def _first_batch(model: Path, data: Path) -> float:
    """Returns the seconds until a run says how many contexts it is about to ask."""
    with tempfile.TemporaryDirectory() as output:
        command = [*LMDIAG, "run", "--model", str(model), "--data", str(data), "--output", output]
        start = time.perf_counter()
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as run:
            assert run.stderr is not None
            took = next(time.perf_counter() - start for line in run.stderr if " contexts" in line)
            run.stderr.read()
    return took
