"""Runs that are killed at any operation lose nothing and end as undisturbed ones.

A run on a model behind a server: `tests/test_server_runs.py`; a multiverse: `test_multiverse.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from launched import ROOT, finished
from sentence_texts import write_table

BLANKS = ["--tasks", "neg136", "agreement", "--limit", "8", "--batch-size", "8"]


@pytest.mark.parametrize(
    "stride", [pytest.param(4, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("rows", ["blanks", "sentences"])
def test_killed_runs_end_as_undisturbed_ones(
    tmp_path: Path, tiny_models: dict[str, Path], demo_dir: Path, rows: str, stride: int
) -> None:
    arguments = ["--model", tiny_models["bert"], "--data", demo_dir, *BLANKS]
    if rows == "sentences":
        data = write_table(tmp_path / "mine.csv")
        arguments = ["--model", tiny_models["gpt2"], "--data", data, "--batch-size", "2"]
    program = [sys.executable, str(ROOT / "tests/killed_runs.py"), str(tmp_path), str(stride)]
    done = finished(program, *arguments, "--quiet")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    print(facts)
    assert facts["same"] == facts["kills"] >= 15 / stride
    assert facts["left"] == facts["twice"] == 0
    assert facts["midway"]
    assert facts["torn"] or stride > 1
