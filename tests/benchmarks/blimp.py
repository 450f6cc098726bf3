"""A set as large as BLiMP, run from its files to the report: `python -m benchmarks.blimp`.

67 paradigms of 1,000 pairs each, written by this script in BLiMP's form (the sentences are made
up), for a tiny causal and a tiny masked model: what is seen is everything but the model. Prints
time, largest memory and the size of the report; a second run is killed in the middle, resumed, and
must end with the same predictions.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from families import FAMILIES
from launched import SCRIPT
from vocabularies import TEXT

PARADIGMS, PAIRS = 67, 1000
FIELDS = ("morphology", "semantics", "syntax", "syntax_semantics")
TERMS = 12
LARGEST_PAGE = 4 * 2**20
"""Bytes of a report."""


def write_set(folder: Path, paradigms: int = PARADIGMS, pairs: int = PAIRS) -> Path:
    """Writes one file of pairs per paradigm, with the keys of BLiMP's files; returns the folder.

    Half of the pairs have a common beginning, and in some paradigms one bad sentence is used twice.
    """
    rng = random.Random(0)
    words = sorted(set(re.findall(r"[A-Za-z]+", TEXT)))
    folder.mkdir(parents=True)
    for number in range(paradigms):
        uid = f"paradigm_{number:02d}"
        lines = []
        for pair in range(pairs):
            beginning = rng.choices(words, k=rng.randint(2, 6)) if number % 2 else []
            good, bad = (
                " ".join([*beginning, *rng.choices(words, k=rng.randint(3, 7))]) for _ in range(2)
            )
            entry = {
                "sentence_good": f"{good.capitalize()}.",
                "sentence_bad": f"{bad.capitalize()}.",
                "field": FIELDS[number % len(FIELDS)],
                "linguistics_term": f"term_{number % TERMS:02d}",
                "UID": uid,
                "simple_LM_method": True,
                "one_prefix_method": False,
                "two_prefix_method": False,
                "lexically_identical": False,
                "pairID": str(pair),
            }
            lines.append(json.dumps(entry))
        (folder / f"{uid}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


class Watched:
    """A run of lmdiag as a process of its own.

    Attributes:
        seconds: how long it took.
        memory: the most that it held, MiB.
        code: its exit code.
        shown: its standard error.
    """

    def __init__(self, arguments: Sequence[object], kill_after_lines: int = 0) -> None:
        command = [sys.executable, SCRIPT, *map(str, arguments)]
        start, self.memory = time.monotonic(), 0.0
        with tempfile.TemporaryFile("w+") as shown:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=shown)
            output = Path(str(arguments[list(arguments).index("--output") + 1]))
            while process.poll() is None:
                self.memory = max(self.memory, peak(process.pid))
                if kill_after_lines and journal_lines(output) >= kill_after_lines:
                    process.send_signal(signal.SIGKILL)
                time.sleep(0.05)
            shown.seek(0)
            self.shown = shown.read()
        self.seconds, self.code = time.monotonic() - start, process.returncode


def peak(process: int) -> float:
    """Returns the most memory that a process ever held, MiB; 0 where that is not told."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return sum(int(size) for size in re.findall(r"VmHWM:\s+(\d+)", status)) / 1024


def journal_lines(output: Path) -> int:
    """Returns how many batches a run has saved."""
    return sum(path.read_bytes().count(b"\n") for path in output.rglob("journal/*.jsonl"))


def predictions(output: Path) -> bytes:
    """Returns the predictions of the one run in a folder."""
    (path,) = output.rglob("predictions.parquet")
    return path.read_bytes()


def measure(model: Path, data: Path, folder: Path, *, kill: bool = True) -> dict[str, float]:
    """Runs a model, kills and resumes another run; returns what was seen."""
    arguments = ["--model", model, "--data", data, "--output"]
    whole = Watched([*arguments, folder / "whole"])
    assert whole.code == 0, whole.shown
    (page,) = (folder / "whole").rglob("report.html")
    facts = {"seconds": whole.seconds, "MiB": whole.memory, "report": page.stat().st_size}
    if kill:
        killed = Watched([*arguments, folder / "killed"], kill_after_lines=3)
        assert killed.code == -signal.SIGKILL, killed.shown
        facts["saved"] = journal_lines(folder / "killed")
        resumed = Watched([*arguments, folder / "killed"])
        assert resumed.code == 0, resumed.shown
        assert "saved before" in resumed.shown
        facts["same"] = predictions(folder / "whole") == predictions(folder / "killed")
    return facts


def main() -> None:
    """Runs both models and prints what was seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--families", nargs="+", default=["gpt2", "bert"], choices=FAMILIES)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of each paradigm (1000)")
    parser.add_argument("--no-kill", action="store_true", help="only one run of each")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as scratch:
        data = write_set(Path(scratch) / "pairs", pairs=args.pairs)
        for name in args.families:
            model = FAMILIES[name].make(Path(scratch) / "models" / name)
            facts = measure(model, data, Path(scratch) / name, kill=not args.no_kill)
            print(f"{name}: {PARADIGMS * args.pairs} pairs: {facts}", flush=True)
            assert facts["report"] <= LARGEST_PAGE


if __name__ == "__main__":
    main()
