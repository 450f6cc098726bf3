"""How a command ends: one line on standard error and an exit code.

Exit codes: 0 done, 2 bad input, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM), 1 any other
failure. Where `accelerate launch` or `torchrun` started several processes, the first one speaks for
all.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from cyclopts import CycloptsError

from lmdiag.runs.processes import SharedError

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PROTECTED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
_WRONG = {errno.ENOENT, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EINVAL}
"""Errors of the system by their cause: a full disk, a protected path, a wrong path of the user."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, for example from a scheduler at the end of a job's time."""


def say(message: str) -> None:
    """Prints a message as one line on standard error, without secrets and hidden characters."""
    from lmdiag.files import without_secrets
    from lmdiag.text import visible

    line = visible(" ".join(without_secrets(message).split()))
    print(line, file=sys.stderr, flush=True)


def end(error: BaseException, command: str, state: str) -> int:
    """Prints one line for what ended a command, and returns the exit code.

    An error that all processes have is printed by the first alone, and only there it is a failure:
    a launcher terminates all processes when one fails, before they can print. An interruption is
    followed by the `state` that the command leaves, and how to continue.
    """
    is_first = os.environ.get("RANK", "0") == "0"
    if isinstance(error, KeyboardInterrupt):
        is_terminated = isinstance(error, Terminated)
        if is_first:
            below = "\n" if sys.stderr.isatty() else ""  # the terminal shows ^C on the line before
            line = f"lmdiag: {'terminated' if is_terminated else 'interrupted'}; {state}"
            print(f"{below}{line}", file=sys.stderr, flush=True)
        return TERMINATED if is_terminated else INTERRUPTED
    code, message = 2, str(error)
    if isinstance(error, OSError):
        # The reader has closed the pipe, as in `lmdiag report RUN | head -1`, or the disk is full:
        # Python would try again to print the output when it exits.
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 1
        code = 2 if error.errno in _PROTECTED | _WRONG else 1
        if error.errno is not None:
            where = f" ({error.filename})" if error.filename else ""
            problem = f"{where}: {(error.strerror or message).lower()}"
            message = f"cannot read or write{problem}"
            if error.errno in _FULL | _PROTECTED:
                remedy = "make room or choose another place, and run again"
                message = f"cannot write{problem}; what was saved is kept: {remedy}"
    elif isinstance(error, CycloptsError):
        message += f" See `{f'lmdiag {command}'.strip()} --help`."
    if isinstance(error, CycloptsError | SharedError) and not is_first:
        return 0
    say(f"lmdiag: error: {message}")
    return code


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Handles SIGTERM as Python handles Ctrl-C."""
    raise Terminated


def leave(code: int) -> NoReturn:
    """Ends the process, after an interruption at once."""
    if code in (INTERRUPTED, TERMINATED):  # threads at work would abort the interpreter's shutdown
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
