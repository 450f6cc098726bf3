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


def fail(message: str, code: int, *, shared: bool = False) -> int:
    """Prints an error as one line on standard error and returns the exit code.

    Args:
        message: what is wrong, and what to do.
        code: the exit code.
        shared: whether every process has this error. Then only the first prints it and fails: a
            launcher terminates all processes when one fails, before they can print.
    """
    if shared and not is_first():
        return 0
    say(f"lmdiag: error: {message}")
    return code


def is_first() -> bool:
    """Returns whether this is the only process of the command, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


def fail_of_system(error: OSError) -> int:
    """Reports a full disk, a path that cannot be written or a wrong path; returns the exit code."""
    drop_output()
    if error.errno is None:
        return fail(str(error), code=1)
    where = f" ({error.filename})" if error.filename else ""
    reason = (error.strerror or str(error)).lower()
    line = f"cannot read or write{where}: {reason}"
    if error.errno in _FULL | _PROTECTED:
        line = (
            f"cannot write{where}: {reason}; what was saved is kept: "
            "make room or choose another place, and run again"
        )
    return fail(line, code=2 if error.errno in _PROTECTED | _WRONG else 1)


def drop_output() -> None:
    """Discards output that cannot be printed; Python would try again to print it when it exits.

    The reader has closed the pipe, e.g. `lmdiag report RUN | head -1`, or the disk is full.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stop(reason: KeyboardInterrupt, state: str) -> int:
    """Says what is left of a command that was interrupted or terminated; returns the exit code.

    Args:
        reason: the interruption.
        state: what is written and how to continue.
    """
    terminated = isinstance(reason, Terminated)
    if is_first():
        line = f"lmdiag: {'terminated' if terminated else 'interrupted'}; {state}"
        below = "\n" if sys.stderr.isatty() else ""  # the terminal shows ^C on the line before
        print(f"{below}{line}", file=sys.stderr, flush=True)
    return TERMINATED if terminated else INTERRUPTED


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Handles SIGTERM as Python handles Ctrl-C."""
    raise Terminated


def leave(code: int) -> NoReturn:
    """Ends the process.

    After an interruption it ends at once: threads that import or compute would otherwise abort the
    interpreter while it shuts down.
    """
    if code in (INTERRUPTED, TERMINATED):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
