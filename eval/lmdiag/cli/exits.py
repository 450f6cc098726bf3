"""How a command ends: one line on standard error and an exit code.

Exit codes: 0 done, 2 bad input, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM), 1 any other
failure.
Where `accelerate launch` or `torchrun` started several processes, the first one speaks for all.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


class Terminated(KeyboardInterrupt):
    """SIGTERM, for example from a scheduler at the end of a job's time."""


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
    line = one_line(f"lmdiag: error: {message}")
    print(line, file=sys.stderr, flush=True)
    return code


def is_first() -> bool:
    """Returns whether this is the only process of the command, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


def say(message: str) -> None:
    """Prints a message as one line on standard error."""
    print(one_line(message), file=sys.stderr, flush=True)


def one_line(message: str) -> str:
    """Returns a message as one line without secrets and hidden characters."""
    from lmdiag.files import without_secrets
    from lmdiag.text import visible

    return visible(" ".join(without_secrets(message).split()))


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


def terminate_like_interrupt() -> None:
    """Makes SIGTERM end the process as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _raise_terminated)


def _raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
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
