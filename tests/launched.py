"""Starts commands as launchers do: on one or several processes of this machine."""

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


def torchrun(count: int, *program: str) -> list[str]:
    """A program (default: `SCRIPT`) on so many processes, before its arguments."""
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={count}"]
    return [*launcher, f"--master_port={free_port()}", *(program or [SCRIPT])]


def alone(*arguments: object) -> tuple[int, str]:
    """Runs a command of `lmdiag` here; returns exit code and standard error.

    A process of its own would take seconds to import torch and transformers.
    """
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as error:
        return main([*map(str, arguments)]), error.getvalue()


def finished(command: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    words = [*command, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)


def outcome(output: Path) -> dict[str, bytes]:
    """Path of each file of runs -> its content if it is the same for all equal runs, else b""."""
    files = [path for path in output.rglob("*") if path.is_file() and path.name != ".lock"]
    same = ("predictions.parquet", "multiverse.json")
    return {
        str(path.relative_to(output)): path.read_bytes() if path.name in same else b""
        for path in files
    }
