"""The benchmarks run: on the smallest shape, a single round, whatever the figures are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from limits import HANG


@pytest.mark.nightly
def test_every_table_is_printed(root: Path) -> None:
    options = ["--shapes", "gpt2-tiny", "--rounds", "1", "--threads", "1"]
    environment = os.environ | {"PYTHONPATH": str(root / "tests"), "LMDIAG_UPSTREAM": "nowhere"}
    command = [sys.executable, "-m", "benchmarks", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[2] for row in rows if row[:1] == ["bare"]] == ["1.00"] * 3
    assert sum(float(row[2]) > 0 for row in rows if row[:1] == ["lmdiag"] and len(row) > 3) == 3
