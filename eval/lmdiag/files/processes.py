"""Ends processes together with the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def end_with_parent(parent: int) -> None:
    """Makes this process end with its parent, whose id is given, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it ended in the meantime
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    """Waits for the end of the parent of this process, then ends this one."""
    from psutil import pid_exists

    while os.getppid() == parent and pid_exists(parent):  # on Windows, its id stays
        time.sleep(1)
    os._exit(1)
