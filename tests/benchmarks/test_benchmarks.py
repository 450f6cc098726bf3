"""The benchmarks run: on the smallest shapes, a single round, whatever the figures are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from limits import HANG


@pytest.mark.nightly
def test_every_table_is_printed(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--shapes", "gpt2-tiny"]
    command += ["--rounds", "1", "--threads", "1", "--sentences", "20", "--folder", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(root / "tests"), "LMDIAG_UPSTREAM": "nowhere"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[2] for row in rows if row[:1] == ["bare"]] == ["1.00"] * 3
    assert sum(row[0] == "lmdiag" and float(row[2]) > 0 for row in rows if len(row) == 5) == 3
    assert done.stdout.count("lmdiag run, gpt2-tiny: bare") == 1
