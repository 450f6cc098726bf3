"""A sweep over checkpoints of one shape: the whole command, its loading and its asking."""

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


def run(models: Sequence[Path], data: Path, threads: int) -> Sweep:
    """Runs the command once on all models."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, _SCRIPT, "--data", str(data), "--output", output]
        command += ["--quiet", "--model", *map(str, models)]
        start = time.perf_counter()
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        whole = time.perf_counter() - start
        documents = [json.loads(path.read_text()) for path in Path(output).rglob("results.json")]
    assert len(documents) == len(models)
    load, ask = (sum(one["seconds"][step] for one in documents) for step in ("load", "ask"))
    return Sweep(whole, load, ask)


def time_sweep(
    shape: str, count: int, data: Path, folder: Path, *, rounds: int, threads: int
) -> None:
    """Prints the seconds of each round."""
    models = checkpoints(shape, count, folder)
    print(f"\n{shape}: a sweep over {count} checkpoints, seconds")
    print(f"{'':>10} {'whole':>8} {'loading':>8} {'the rest':>9} {'asking':>7}")
    for number in range(1, rounds + 1):
        timed = run(models, data, threads)
        print(
            f"{f'round {number}':>10} {timed.whole:8.1f} {timed.load:8.1f} {timed.rest:9.1f} "
            f"{timed.ask:7.1f}",
            flush=True,
        )
