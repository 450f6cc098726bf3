"""Runs that are killed at any moment lose nothing and end as undisturbed ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from launched import ROOT, finished

CASES = {
    "every step": ["--every-step"],
    "random moments": ["--kills", "40", "--seed", "20"],
    "whole words": ["--kills", "6", "--seed", "3"],
}
RUNS = {
    "every step": ["--tasks", "neg136", "agreement", "--limit", "8"],
    "random moments": ["--perturb", "all", "--shuffles", "4", "--batch-size", "8"],
    "whole words": ["--tasks", "neg136", "--unit", "word", "--batch-size", "4"],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_runs_end_as_undisturbed_ones(
    tmp_path: Path, tiny_models: dict[str, Path], demo_dir: Path, case: str
) -> None:
    run = ["--model", tiny_models["bert"], "--data", demo_dir, "--quiet", *RUNS[case]]
    program = [sys.executable, str(ROOT / "tests/killed_runs.py"), "--folder", str(tmp_path)]
    done = finished([*program, *CASES[case]], "--", *run)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    print(facts)
    assert facts["same"] == facts["runs"] >= 1
    assert facts["left"] == facts["twice"] == 0
    kills = {"every step": 20, "random moments": 40, "whole words": 6}[case]
    assert facts["kills"] >= kills
    assert facts["midway"] >= kills / 8
    assert facts["torn"] >= (case != "whole words")
