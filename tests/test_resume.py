"""Runs that are killed at any moment lose nothing and end as undisturbed ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from launched import ROOT, finished
from sentence_texts import write_table

BLANKS = ["--tasks", "neg136", "agreement", "--limit", "8"]
SETTINGS = ["--perturb", "all", "--shuffles", "4", "--batch-size", "8"]
CASES = {
    "blanks": ("bert", ["--kills", "8", "--seed", "20"], SETTINGS, 8),
    "every step": ("bert", ["--every-step"], BLANKS, 20),
    "random moments": ("bert", ["--kills", "40", "--seed", "20"], SETTINGS, 40),
    "sentences": ("bert", ["--kills", "4", "--seed", "1"], None, 4),
    "sentences, causal": ("gpt2", ["--kills", "10", "--seed", "1"], None, 10),
}
"""Case -> model, options of `killed_runs`, of the run (None for sentences), and how many kills."""
QUICKER = ("blanks", "sentences")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case in QUICKER else pytest.mark.nightly)
        for case in CASES
    ],
)
def test_killed_runs_end_as_undisturbed_ones(
    tmp_path: Path, tiny_models: dict[str, Path], demo_dir: Path, case: str
) -> None:
    model, kinds, options, kills = CASES[case]
    if options is None:
        options, demo_dir = ["--batch-size", "2"], write_table(tmp_path / "mine.csv")
    run = ["--model", tiny_models[model], "--data", demo_dir, "--quiet", *options]
    program = [sys.executable, str(ROOT / "tests/killed_runs.py"), "--folder", str(tmp_path)]
    done = finished([*program, *kinds], "--", *run)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    print(facts)
    assert facts["same"] == facts["runs"] >= 1
    assert facts["left"] == facts["twice"] == 0
    assert facts["kills"] >= kills
    assert facts["midway"] >= kills / 10 or case in QUICKER
    assert facts["torn"] >= (case in ("every step", "random moments"))
