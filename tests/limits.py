"""Limits of tests: how long they wait for what may never end, and how large a file may become."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

HANG = 600
"""Seconds. Every time limit in the tests is this one or longer: it only ends a hang, so that a test
does not fail because the machine is busy."""


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
