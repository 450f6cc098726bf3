"""Writes files so that at any moment either the old or the new content is there, whole.

A file is written under a temporary name beside it, flushed to the disk, and renamed. What a killed
process leaves behind is such a temporary file; `clear_drafts` removes it later.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ABANDONED = 24 * 3600
"""Seconds after which a temporary file of another machine belongs to no process any more."""

_DRAFT = re.compile(r"\..+\.draft-(?P<host>[A-Za-z0-9_-]*)-(?P<pid>\d{1,10})")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file that replaces another when the block ends without an error.

    Args:
        path: of the file to write.

    Raises:
        OSError: it cannot be written; the old file is still there.
    """
    draft = path.with_name(f".{path.name}.draft-{_host()}-{os.getpid()}")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def clear_drafts(folder: Path) -> None:
    """Removes the temporary files that killed processes left in a folder.

    Those of a process that is still alive stay; so do young ones of other machines, which may share
    the file system.
    """
    for path in folder.iterdir():
        match = _DRAFT.fullmatch(path.name)
        if match and _is_abandoned(path, match["host"], int(match["pid"])):
            path.unlink(missing_ok=True)


def _is_abandoned(path: Path, host: str, pid: int) -> bool:
    if host == _host() and not _is_alive(pid):
        return True
    try:
        return time.time() - path.stat().st_mtime > ABANDONED
    except FileNotFoundError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", platform.node())[:40]
