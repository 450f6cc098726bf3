"""The benchmarks run: on the smallest shapes, a single round, whatever the figures are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from limits import HANG


@pytest.mark.slow
def test_tiny(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "speed", "--shapes", "gpt2-tiny"]
    command += ["--rounds", "1", "--threads", "1", "--folder", str(tmp_path)]
    command += ["--contenders", "floor", "lmdiag", "minicons"]
    environment = os.environ | {"PYTHONPATH": str(root / "tests"), "LMDIAG_UPSTREAM": "nowhere"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    table = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert table["floor"][1] == "1.00"
    rate, ratio, _, memory = table["lmdiag"]
    assert float(rate) > 0 < float(ratio)
    assert float(memory) > 50
    assert "not installed" in done.stdout
