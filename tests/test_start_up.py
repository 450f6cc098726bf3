"""What commands import, and how they end: a short run takes little longer than its imports.

Counted in modules, in a process of its own, since times differ between machines.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from limits import HANG

from lmdiag.report.charts import output
from lmdiag.types import DIAGNOSTICS

IMPORTED = """
import sys
from lmdiag.cli import main
code = main(sys.argv[1:])
print("|", *sys.modules)
sys.exit(code)
"""

NEEDS_ASKING = {"torch", "transformers", "tokenizers", "accelerate", "safetensors"}

SLOW = {"pandas", "scipy.stats", "pyarrow.dataset", "datasets", "evaluate"} | {
    *("altair", "vl_convert"),
    *("lmdiag.leaderboard", "lmdiag.hub", "lmdiag.api"),
}
"""Modules that take long to import, and that neither a run nor a report uses."""


def child(program: str, *arguments: object, code: int = 0) -> str:
    """Returns what a Python program prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def imported(*arguments: object) -> set[str]:
    """Returns the modules that a command has imported at its end."""
    said, _, modules = child(IMPORTED, *arguments).rpartition("|")
    assert said
    return set(modules.split())


@pytest.fixture(scope="module", autouse=True)
def _charts() -> None:
    """Makes the script of the charts, which is made once for each version of vl-convert."""
    output.library()


@pytest.mark.slow
def test_a_run_with_its_report_imports_nothing_it_does_not_use(
    demo_dir: Path, tmp_path: Path
) -> None:
    arguments = ["--data", demo_dir, "--tasks", *DIAGNOSTICS, "agreement", "--limit", "12"]
    modules = imported("run", "--model", "demo:masked", *arguments, "--output", tmp_path)
    assert next(tmp_path.rglob("report.html")).is_file()
    assert modules >= {"torch", "pyarrow", "jinja2"}
    assert sorted(modules & (SLOW | {"pydantic"})) == []


def test_a_report_imports_nothing_it_does_not_use(
    finished_runs: list[Path], tmp_path: Path
) -> None:
    modules = imported("report", finished_runs[0], "--out", tmp_path / "report.html")
    assert (tmp_path / "report.html").is_file()
    assert "pyarrow" in modules
    assert sorted(modules & (SLOW | NEEDS_ASKING)) == []


LEAVING = """
import sys, threading, time
from lmdiag.cli import exits
log = open(sys.argv[1], "w")
log.write("buffered, ")
thread = threading.Thread(target=lambda: (time.sleep(0.1), log.write("of a thread")))
thread.start()
exits.leave(int(sys.argv[2]))
"""


@pytest.mark.parametrize("code", [0, 2])
def test_the_end_of_a_process_loses_nothing(tmp_path: Path, code: int) -> None:
    """Threads end and files are flushed."""
    child(LEAVING, tmp_path / "log", code, code=code)
    assert (tmp_path / "log").read_text() == "buffered, of a thread"
