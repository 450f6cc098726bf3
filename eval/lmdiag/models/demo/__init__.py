"""Two tiny models that the package makes itself: `demo:masked` and `demo:causal`.

A ModernBERT and a GPT-2 of toy size, trained in seconds on sentences of a small made-up English
(`corpus`), so that every command can be tried, and tested, with no network. They are kept in the
user's cache, under a digest of their recipe: another recipe makes other models, and results of the
two never pass for the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args

from lmdiag.schema import BadInput
from lmdiag.suggestions import suggest

Name = Literal["masked", "causal"]
NAMES: tuple[Name, ...] = get_args(Name)

_RECIPE = ("corpus.py", "lexicon.json", "training.py", "vocabulary.py")
_LIBRARIES = ("torch", "transformers", "tokenizers")


def demo_folder(name: str) -> Path:
    """Returns the folder of a demo model, which transformers loads like any other.

    The first call trains it, on the CPU and in seconds, with a bar on standard error where that is
    a terminal; processes that ask at the same time wait for the one that trains.

    Args:
        name: "masked" or "causal".

    Raises:
        BadInput: there is no such demo model, or the cache cannot be written.
    """
    if name not in NAMES:
        raise BadInput(
            f"no model demo:{name}{suggest(name, NAMES)}: choose demo:masked or demo:causal"
        )
    folder = cache_root() / "demo" / f"{name}-{recipe_digest()}"
    try:
        make_once(folder, lambda unfinished: _train(name, unfinished))
    except OSError as error:
        raise BadInput(
            f"cannot keep demo:{name} in {folder.parent} ({error.strerror or error}): "
            "name a folder for it in LMDIAG_CACHE"
        ) from error
    return folder


def cache_root() -> Path:
    """Returns the user's cache folder of lmdiag: $LMDIAG_CACHE, else the XDG place for caches."""
    if chosen := os.environ.get("LMDIAG_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmdiag"


def recipe_digest() -> str:
    """Returns 12 hex digits over all that decides the weights: our own files and the libraries."""
    total = hashlib.sha256()
    for file in _RECIPE:
        total.update(Path(__file__).with_name(file).read_bytes())
    for library in _LIBRARIES:
        total.update(f"{library} {version(library)}\n".encode())
    return total.hexdigest()[:12]


def make_once(folder: Path, make: Callable[[Path], None]) -> None:
    """Makes a folder, all or nothing, if it is not there yet, in one process at a time.

    Args:
        folder: what will stand there is complete.
        make: fills the empty folder that it is given, which is renamed when it returns.
    """
    if folder.is_dir():
        return
    from filelock import FileLock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if folder.is_dir():  # made by another process while this one waited
            return
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder.parent))
        try:
            make(unfinished)
            unfinished.chmod(0o755)  # mkdtemp's folders are their owner's alone
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _train(name: Name, folder: Path) -> None:
    from lmdiag.models.demo.training import STEPS, train

    train(name, folder, STEPS[name])
