"""Writes files completely or not at all, one process at a time."""

from __future__ import annotations

import errno
import os
import platform
import sys
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lmdiag.files.reading import real_path
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file that replaces `path` when the block ends without an error.

    At any moment `path` has either the old content or the new one, complete. After an error it has
    the old content. `clear_drafts` removes the temporary file of a process that was killed.
    """
    # `clear_drafts` reads machine and process from the name
    owner = f"{_host_digits()}{os.getpid():08x}{uuid.uuid4().hex[:16]}"
    draft = path.with_name(f".{path.name}.draft-{owner}")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)  # after it is closed: Windows does not rename an open file
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file completely or not at all."""
    with replacing(path) as file:
        file.write(data)


def write_user_file(path: Path, data: bytes) -> None:
    """Writes a file that a user named.

    If the name is a symbolic link, its target is written and the link stays, as in other programs.
    """
    write_atomically(real_path(path), data)


_DAY = 86_400  # seconds


def clear_drafts(folder: Path) -> None:
    """Removes the temporary files of `replacing` that killed processes left in a folder.

    Files of another machine, whose processes cannot be seen from here, are removed after a day.
    """
    from psutil import pid_exists

    for path in folder.glob(".*.draft-" + "[0-9a-f]" * 32):
        # eight digits for the machine, eight for the process, and sixteen random ones
        owner = path.name[-32:]
        host, process = owner[:8], int(owner[8:16], 16)
        with suppress(OSError):
            if host == _host_digits():
                is_abandoned = not pid_exists(process)
            else:
                is_abandoned = time.time() - path.stat().st_mtime > _DAY
            if is_abandoned:
                path.unlink()


def _host_digits() -> str:
    """Returns eight hexadecimal digits that stand for the name of this machine."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of a file system without locks, as of the home directories of some clusters."""


def take_lock(path: Path, busy: str | None = None) -> AcquireReturnProxy[Any]:
    """Takes the lock that a file stands for, and returns the context at whose end it is released.

    On a file system without locks, a second file, FILE.soft, is the lock while it exists, and a
    line on standard error says so.

    Args:
        path: the file, which is made.
        busy: message of `BadInput` where another process holds the lock; None to wait for it.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    timeout = -1 if busy is None else 0  # seconds; -1 waits without end
    try:
        try:
            return FileLock(path, fallback_to_soft=False).acquire(timeout)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            marker = Path(f"{path}.soft")
            _warn_of_missing_locks(path.parent.stat().st_dev, marker)
            # 1 in place of 0 seconds: older versions of filelock remove the marker of a killed
            # process, and need a second to try again
            return SoftFileLock(marker).acquire(timeout or 1)
    except Timeout:
        raise BadInput(str(busy)) from None


_SYSTEMS_WITHOUT_LOCKS = set[int]()
"""Device numbers of the file systems that the user was warned of."""


def _warn_of_missing_locks(device: int, marker: Path) -> None:
    """Says on standard error that a file takes the place of a lock, once for each file system.

    Args:
        device: number of the file system.
        marker: the file that is the lock while it exists.
    """
    if device not in _SYSTEMS_WITHOUT_LOCKS:
        _SYSTEMS_WITHOUT_LOCKS.add(device)
        line = f"{marker.parent} is on a file system without locks; {marker.name} is used instead"
        advice = "remove it if a command that was killed on another machine has left it there"
        print(f"lmdiag: warning: {line}: {advice}", file=sys.stderr, flush=True)
