"""What `accelerate launch` and `torchrun` do with the errors of the processes that they start.

Both print a traceback of their own when a process fails. `torchrun` ends it with a table of failed
processes, which quotes the file named in TORCHELASTIC_ERROR_FILE. The traceback of `accelerate
launch` quotes nothing, so the error line would stand above it and be overlooked.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

REPEAT = """
left=100
while grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null && [ "$left" -gt 0 ]
do sleep 0.05; left=$((left - 1)); done
printf '%s\\n' "$2" >&2
"""
"""A shell script: waits until process $1 has ended, but at most five seconds; then prints $2."""


def is_first() -> bool:
    """Returns whether this is the only process of the command, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


def pass_on(line: str) -> None:
    """Has the launcher that started this process, if any, end its output with a line."""
    if file := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        extra = {"py_callstack": line, "timestamp": str(int(time.time()))}
        record = {"message": {"message": line, "extraInfo": extra}}
        Path(file).write_text(json.dumps(record), encoding="utf-8")
    if is_first() and prints_traceback(parent_command()):
        _repeat(line, after=os.getppid())


def parent_command() -> list[str]:
    """Returns the command line of the parent process; empty where the system does not tell."""
    try:
        return Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8").split("\0")
    except (OSError, UnicodeDecodeError):
        return []


def prints_traceback(command: list[str]) -> bool:
    """Returns whether a command line is one of `accelerate launch` that is not `--quiet`.

    Accelerate obeys `--quiet` if it starts a single process. The option must be before the
    script; what follows the script are arguments of lmdiag.
    """
    script = command.index(sys.argv[0]) if sys.argv[0] in command else len(command)
    launcher = command[:script]
    if "launch" not in launcher or not any(Path(word).name == "accelerate" for word in launcher):
        return False
    return "RANK" in os.environ or not {"--quiet", "-q"} & set(launcher)


def _repeat(line: str, after: int) -> None:
    """Starts a small process that prints a line on standard error when another one has ended."""
    with contextlib.suppress(OSError):
        subprocess.Popen(
            ["sh", "-c", REPEAT, "lmdiag", str(after), line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
