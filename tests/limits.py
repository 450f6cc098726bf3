"""Limits of tests: how long they wait, how child processes end, how large a file may become."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

HANG = 600
"""Seconds. Every time limit in the tests is this one or longer: it only ends a hang, so that a test
does not fail because the machine is busy."""

LEAVE = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""
"""The end of a child process that read Parquet by `datasets`, past the interpreter's own end: about
one in 300 of them on a busy machine otherwise ends with SIGABRT after all its work, since a reader
thread of Arrow's wants the interpreter back (apache/arrow#45214)."""


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
