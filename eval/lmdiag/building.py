"""Builds the data set with its own loading scripts, and keeps the builds that `--data` names.

The scripts (`datasets/lmdiag/loading`) are published with the data set and run without this
package; here they are imported from where the installation has them.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lmdiag.home import home
from lmdiag.schema import BadInput

PACKAGE = "lmdiag_loading"
"""Name under which the loading scripts are imported."""

BUILT: Mapping[str, str] = {"lmdiag": "upstream", "demo": "demo"}
"""Name of a data set that is built on first use -> source that it is built from."""

REMEDY = (
    "build it from copies of the repositories with `lmdiag build --source DIR`, or use the "
    "bundled demo items with `--data demo`"
)


@cache
def script(name: str) -> Any:
    """Returns a module of the loading scripts, e.g. "command"."""
    if PACKAGE not in sys.modules:
        folder = home("datasets", "lmdiag", "loading")
        spec = importlib.util.spec_from_file_location(
            PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{PACKAGE}.{name}")


def user_cache() -> Path:
    """Returns the folder for what lmdiag keeps between runs: `LMDIAG_CACHE`, or the usual one."""
    folder: Path = script("sources").user_cache()
    return folder


def kept(name: str) -> Path:
    """Returns the directory of a data set in the user's cache; the first call builds it.

    Of processes that ask at the same time, one builds and the others wait.

    Args:
        name: a key of `BUILT`.

    Raises:
        BadInput: the source files cannot be fetched, or the cache cannot be written.
    """
    from filelock import FileLock

    folder = user_cache() / "data" / f"{name}-{_digest()}"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():  # another process may have built it meanwhile
                _build(name, folder)
    except OSError as error:
        raise BadInput(
            f"cannot write the data set {name} to {folder.parent} ({error.strerror or error}): "
            "set LMDIAG_CACHE to a writable directory"
        ) from error
    return folder


def _build(name: str, folder: Path) -> None:
    what = "demo" if name == "demo" else "published"
    line = f"lmdiag: building the {what} items in {folder} (only the first time)"
    print(line, file=sys.stderr, flush=True)
    try:
        script("command").build(folder, BUILT[name])
    except script("lines").BadSource as error:
        why = str(error).partition("; use --source")[0]
        raise BadInput(f"the data set {name} is not built yet: {why}; {REMEDY}") from error


@cache
def _digest() -> str:
    """Returns 12 hex digits over the loading scripts and the demo source: other scripts may build
    other rows."""
    total = hashlib.sha256()
    for inside, path in script("directory").published_files():
        total.update(f"{inside}\n".encode())
        total.update(path.read_bytes())
    return total.hexdigest()[:12]
