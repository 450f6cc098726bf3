"""Builds the data sets `lmdiag` and `demo` with the loading scripts of the data set.

The scripts (`datasets/lmdiag/loading`) are published with the data set; they are imported from the
folder where the installation has them.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from lmdiag import diagnostics
from lmdiag.files import is_folder, resource_path, take_lock, user_path
from lmdiag.types import BadInput

BUILT: Mapping[str, str] = {"lmdiag": "upstream", "demo": "demo"}
"""Data set that is built on first use -> source that it is built from."""


@cache
def script(name: str) -> Any:
    """Returns a module of the loading scripts, e.g. "directory"."""
    if "lmdiag_loading" not in sys.modules:
        package = sys.modules["lmdiag_loading"] = ModuleType("lmdiag_loading")
        package.__path__ = [str(resource_path("datasets", "lmdiag", "loading"))]
    return importlib.import_module(f"lmdiag_loading.{name}")


def user_cache() -> Path:
    """Returns the folder for what lmdiag keeps between runs: `LMDIAG_CACHE`, or the usual one."""
    if chosen := os.environ.get("LMDIAG_CACHE"):
        return user_path(chosen)
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "lmdiag"


def cached(name: str) -> Path:
    """Returns the directory of a key of `BUILT` in the user's cache; the first call builds it.

    If several processes call it at the same time, one builds and the others wait. `BadInput` if
    the source files cannot be fetched, or the cache cannot be written.
    """
    columns = {name: diagnostic.columns for name, diagnostic in diagnostics.built_in().items()}
    digest = hashlib.sha256(repr((diagnostics.CORE, columns)).encode())
    for inside, path in script("directory").published_files():  # scripts and demo source
        digest.update(f"{inside}\n".encode() + path.read_bytes())
    folder = user_cache() / "data" / f"{name}-{digest.hexdigest()[:12]}"
    if is_folder(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with take_lock(Path(f"{folder}.lock")):
            if not folder.is_dir():  # another process may have built it meanwhile
                items = "demo" if name == "demo" else "published"
                line = f"lmdiag: building the {items} items in {folder} (only the first time)"
                print(line, file=sys.stderr, flush=True)
                script("directory").build(folder, BUILT[name])
    except OSError as error:
        raise BadInput(
            f"cannot write the data set {name} to {folder.parent} ({error.strerror or error}): "
            "set LMDIAG_CACHE to a writable directory"
        ) from error
    except BadInput as error:
        reason = str(error).partition("; use --source")[0]
        raise BadInput(
            f"the data set {name} is not built yet: {reason}; build it from copies of the "
            "repositories with `lmdiag build --source DIR`, or use the bundled demo items with "
            "`--data demo`"
        ) from error
    return folder
