"""Ends processes together with the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
"""Option of Linux's `prctl`: the signal that this process gets when its parent ends."""


def end_with_parent(parent: int) -> None:
    """Makes this process end when its parent ends, even if that is killed.

    `parent` is the process id of the parent.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: int) -> None:
    """Waits for the end of the parent of this process, then ends this one."""
    from psutil import pid_exists

    # on Windows, `getppid` still returns the id of a parent that has ended
    while os.getppid() == parent and pid_exists(parent):
        time.sleep(1)
    os._exit(1)
