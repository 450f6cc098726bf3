"""Starts `eval/run.py` as launchers do: on one or several processes of this machine.

A process takes seconds to import torch and transformers, so what one process does alone is done in
the process of the test (`alone`).
"""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from lmdiag.cli import main

ROOT = Path(__file__).parents[1]
SCRIPT = str(ROOT / "eval/run.py")


def environment(**more: str) -> dict[str, str]:
    """One thread per process, so that the processes do not compete for the cores; no network."""
    return os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"} | more


def free_port() -> str:
    """Returns a port that is not in use."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def torchrun(count: int) -> list[str]:
    """The command of a run on so many processes, before its arguments."""
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={count}"]
    return [*launcher, f"--master_port={free_port()}", SCRIPT]


def alone(*arguments: object) -> tuple[int, str]:
    """Runs a command of `lmdiag` here, with one thread; returns exit code and standard error."""
    import torch

    error, threads = io.StringIO(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(error):
            return main([*map(str, arguments)]), error.getvalue()
    finally:
        torch.set_num_threads(threads)


def launch(command: list[str], *arguments: object) -> str:
    """Runs a command to its end, which must be a success; returns its standard error."""
    done = finished(command, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def finished(command: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    words = [*command, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
