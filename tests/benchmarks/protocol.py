"""The full protocol of the three diagnostics with a tiny model: what everything but it takes."""

from __future__ import annotations

import cProfile
import pstats
import tempfile
import time
from pathlib import Path


def show(folder: Path, data: Path, threads: int) -> None:
    """Prints the seconds of a run of all perturbations and 100 shuffles, by stage."""
    import torch

    from lmdiag.models import LoadOptions
    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run import run_model
    from lmdiag.schema import Protocol

    torch.set_num_threads(threads)
    perturb = ("shuf", "trunc", "shuf_trunc", "obj", "sub", "both")
    start = time.perf_counter()
    inputs = load_inputs(str(data), Protocol(perturb=perturb))
    gathered = time.perf_counter() - start
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as output:
        start = time.perf_counter()
        profile.enable()
        run = run_model(str(folder), LoadOptions(), inputs, output=Path(output), quiet=True)
        profile.disable()
        whole = time.perf_counter() - start
    assert run is not None
    seconds = run.results["seconds"]
    rest = whole - seconds["load"] - seconds["ask"]
    print(
        f"\nfull protocol, {folder.name}, {run.results['n_contexts']} contexts, profiled: "
        f"perturb {gathered:.1f} s, load {seconds['load']:.1f}, ask {seconds['ask']:.1f}, "
        f"write and measure {rest:.1f}"
    )
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    ours = [(row[3], place) for place, row in stats.items() if "/lmdiag/" in place[0]]
    for took, (path, line, name) in sorted(ours, reverse=True)[:16]:
        print(f"  {took:6.2f} s  {Path(path).name}:{line} {name}")
