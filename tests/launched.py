"""Child processes: commands as launchers start them, how long tests wait, how processes end."""

import contextlib
import io
import os
import socket
import subprocess
import sys
from pathlib import Path

SCRIPT = str(Path(__file__).parents[1] / "eval/run.py")
HANG = 600
"""Seconds. Every time limit in the tests is this one or longer: it only ends a hang, so that a test
does not fail because the machine is busy."""
LEAVE = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""
"""The end of a child process that read Parquet by `datasets`, past the interpreter's own end: about
one in 300 otherwise ends with SIGABRT after all its work (apache/arrow#45214)."""


def environment(**more):
    """One thread per process, so that the processes do not compete for the cores; no network."""
    return os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"} | more


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def torchrun(count, *program):
    """A program (default: `SCRIPT`) on so many processes, before its arguments."""
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={count}"]
    return [*launcher, f"--master_port={free_port()}", *(program or [SCRIPT])]


def finished(*command, cwd=None, **more):
    """Runs a program, which must succeed; returns its standard output.

    `more` is added to its environment.
    """
    words, env = [*map(str, command)], environment(**more)
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def printed(function, *arguments):
    """Standard output of a call in this process, which must return 0 or None."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert not function(*arguments), output.getvalue()
    return output.getvalue()


def outcome(output):
    """Path of each file of runs -> its content if it is the same for all equal runs, else b""."""
    files = [path for path in output.rglob("*") if path.is_file() and path.name != ".lock"]
    same = ("predictions.parquet", "multiverse.json")
    return {
        str(path.relative_to(output)): path.read_bytes() if path.name in same else b""
        for path in files
    }
