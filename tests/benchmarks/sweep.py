"""A sweep over checkpoints of one shape: the whole command against loading and asking alone.

Each round runs `lmdiag run` twice on all checkpoints: without loading models ahead, and with it.
Without, what the runs record as loading is all loading, and the rest of the process is all asking,
with imports, figures and reports; only the data are read while the first model is loaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import shapes

_SCRIPT = str(shapes.ROOT / "eval/run.py")


@dataclass(frozen=True)
class Sweep:
    """One process: seconds of all of it, and the sums of what its runs record."""

    whole: float
    load: float
    ask: float

    @property
    def rest(self) -> float:
        """All but loading."""
        return self.whole - self.load


def checkpoints(shape: str, count: int, folder: Path) -> list[Path]:
    """Writes so many checkpoints with random weights of their own, unless they are there."""
    first = shapes.make(shape, folder)
    return [first, *(_another(first, shape, number, folder) for number in range(1, count))]


def _another(first: Path, shape: str, seed: int, folder: Path) -> Path:
    """Copies a checkpoint with other weights: those of the first, turned around by some places."""
    from safetensors.torch import load_file, save_file

    out = folder / f"{shape}-step{seed}"
    if (out / "model.safetensors").exists():
        return out
    shutil.copytree(first, out, ignore=shutil.ignore_patterns("*.safetensors"), dirs_exist_ok=True)
    weights = load_file(first / "model.safetensors")
    turned = {name: weight.roll(seed, 0) for name, weight in weights.items()}
    save_file(turned, out / "model.safetensors", metadata={"format": "pt"})
    return out


def run(models: Sequence[Path], data: Path, ahead: int, threads: int) -> Sweep:
    """Runs the command once on all models."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, _SCRIPT, "--data", str(data), "--output", output]
        command += ["--prefetch", str(ahead), "--quiet", "--model", *map(str, models)]
        start = time.perf_counter()
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        whole = time.perf_counter() - start
        documents = [json.loads(path.read_text()) for path in Path(output).rglob("results.json")]
    assert len(documents) == len(models)
    load, ask = (sum(one["seconds"][step] for one in documents) for step in ("load", "ask"))
    return Sweep(whole, load, ask)


def compare_sweeps(
    shape: str, count: int, data: Path, folder: Path, *, ahead: int, rounds: int, threads: int
) -> None:
    """Prints the seconds of each round and the ratio to the larger of loading and asking."""
    models = checkpoints(shape, count, folder)
    print(f"\n{shape}: a sweep over {count} checkpoints, seconds")
    print(f"{'':>10} {'--prefetch 0':>13} {'loading':>8} {'the rest':>9} {'asking':>7}", end="")
    print(f" {f'--prefetch {ahead}':>13} {'ratio':>6}")
    ratios = []
    for number in range(1, rounds + 1):
        one, other = (run(models, data, each, threads) for each in (0, ahead))
        ratios.append(other.whole / max(one.load, one.rest))
        print(
            f"{f'round {number}':>10} {one.whole:13.1f} {one.load:8.1f} {one.rest:9.1f} "
            f"{one.ask:7.1f} {other.whole:13.1f} {ratios[-1]:6.2f}",
            flush=True,
        )
    print(
        f"whole sweep / larger of loading and the rest: {median(ratios):.2f} "
        f"({min(ratios):.2f}-{max(ratios):.2f})"
    )
