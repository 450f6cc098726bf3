"""Other systems, as far as Linux can stand for them: PYTHONPATH=tests/systems, and SYSTEM=

windows: for this package and its tests there are no modules of POSIX, files that are open are
neither replaced nor removed, and links are refused. no-locks: `flock` fails, as on some clusters.
"""

import builtins
import errno
import importlib
import os
import shutil
from pathlib import Path

POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
ROOT = str(Path(__file__).resolve().parents[2])


def hide_modules():
    def importing(name, scope=None, *others, **options):
        importer = str((scope or {}).get("__file__"))
        if name in POSIX and importer.startswith((f"{ROOT}/eval", f"{ROOT}/tests")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, scope, *others, **options)

    def importing_by_name(name, package=None):  # of `pytest.importorskip`
        if name in POSIX:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported_by_name(name, package)

    imported, builtins.__import__ = builtins.__import__, importing
    imported_by_name, importlib.import_module = importlib.import_module, importing_by_name


def refuse_open_files():
    def is_open(path):
        for number in Path("/proc/self/fd").iterdir():
            try:
                if number.readlink() == Path.cwd() / path:
                    return True
            except OSError:  # the descriptor of the listing itself
                continue
        return False

    def refusing(change):
        def changed(path, *others, **options):
            for name in (path, *others):
                if isinstance(name, str | os.PathLike) and is_open(name):
                    raise PermissionError(errno.EACCES, "The file is in use", os.fspath(name))
            return change(path, *others, **options)

        return changed

    for name in ("remove", "rename", "replace", "unlink"):
        setattr(os, name, refusing(getattr(os, name)))
    shutil._use_fd_functions = False  # as on Windows, removed by their paths


def refuse_links(*_, **__):
    raise OSError(errno.EPERM, "A required privilege is not held by the client")


def refuse_locks(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


match os.environ.get("SYSTEM"):
    case "windows":
        hide_modules()
        refuse_open_files()
        os.symlink = refuse_links
    case "no-locks":
        import fcntl

        fcntl.flock = refuse_locks
