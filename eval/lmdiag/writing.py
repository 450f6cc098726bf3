"""Writes files atomically: at any moment either the old or the new content is there, complete.

A file is written under a temporary name next to it, flushed to the disk, and renamed. A process
that is killed may leave a temporary file behind; `clear_drafts` removes it later.
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

_ABANDONED = 24 * 3600
"""Seconds after which a temporary file of another machine is not in use any more."""

_DRAFT = re.compile(r"\..+\.draft-(?P<host>[A-Za-z0-9_-]*)-(?P<pid>\d{1,10})")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file that replaces `path` when the block ends without an error.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
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
    """Writes a file completely or not at all; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def clear_drafts(folder: Path) -> None:
    """Removes the temporary files that killed processes left in a folder.

    Files of running processes are kept, and so are recent ones of other machines, which may share
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
        return time.time() - path.stat().st_mtime > _ABANDONED
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
