"""The directory of a run: its files, who may write it, and whether its files belong together."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.files import (
    clear_drafts,
    has_file,
    is_file,
    is_folder,
    read_json,
    readable,
    write_atomically,
)
from lmdiag.results.results import Results
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from filelock import FileLock

RESULTS, PREDICTIONS, REPORT = "results.json", "predictions.parquet", "report.html"
IDENTITY = "run.json"
"""Whose run an unfinished one is."""


def digests(path: Path) -> dict[str, str]:
    """Returns the name and the SHA-256 of the file that the figures of a run are computed from."""
    file = path / PREDICTIONS
    with readable(file), file.open("rb") as content:
        return {file.name: hashlib.file_digest(content, "sha256").hexdigest()}


def saved_files(path: Path) -> list[str]:
    """Returns the names of a run's files that are there, to be named in a message."""
    return [name for name in (RESULTS, PREDICTIONS, REPORT) if (path / name).exists()]


def check_files(path: Path, results: Results) -> None:
    """Checks that the results of a run were computed from the predictions beside them.

    Raises:
        BadInput: a file differs from the one that the run wrote, or is missing.
    """
    if not (path / PREDICTIONS).exists():
        raise BadInput(f"{path / PREDICTIONS} is missing: run again to make it")
    if results.files and results.files != digests(path):
        raise BadInput(
            f"{path / PREDICTIONS} is not the file that this run wrote (its SHA-256 differs from "
            "the one in results.json): run again with --overwrite"
        )


class RunDirectory:
    """The directory of one run, held by one process group at a time.

    Attributes:
        path: `<output>/<model slug>/<protocol>`.
        journal: folder of finished batches while the run is under way.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.journal = path, path / "journal"
        self._lock: FileLock | None = None

    def open(self, identity: Mapping[str, Any], *, overwrite: bool) -> bool:
        """Takes the directory for a run; returns whether a finished one is already there.

        A finished run whose predictions are gone counts as unfinished: it is made again. What a
        killed process left behind (temporary files, a journal that is no longer needed) is removed.

        Raises:
            BadInput: another process is at work here, the directory belongs to another run, or
                its files are damaged.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._acquire()
        clear_drafts(self.path)
        if overwrite:
            self._remove(RESULTS, IDENTITY, PREDICTIONS, REPORT)
        results = read_results(self.path) if (self.path / RESULTS).exists() else None
        begun = self.path / IDENTITY
        if results:
            self._refuse_other(results.identity, identity)
        elif begun.exists():
            with advice_to_overwrite():
                owner = read_json(begun)
                if not isinstance(owner, dict):
                    raise BadInput(f"{begun}: expected an object, not {type(owner).__name__}")
            self._refuse_other(owner, identity)
        elif others := {path.name for path in self.path.iterdir()} - {".lock"}:
            is_run = others <= {PREDICTIONS, REPORT, self.journal.name}
            raise BadInput(
                f"{self.path} is not empty and is not a run directory: choose another --output"
                + (f", or --overwrite it (it has no {RESULTS})" if is_run else "")
            )
        if results and (self.path / PREDICTIONS).exists():
            check_files(self.path, results)
            self._remove(IDENTITY)
            return True
        write_atomically(begun, json.dumps(identity, indent=1).encode())
        (self.path / RESULTS).unlink(missing_ok=True)
        return False

    def finish(self, results: Results) -> None:
        """Writes results.json, the mark of a finished run, and removes what only resuming needs."""
        text = json.dumps(results.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / RESULTS, text.encode())
        self._remove(IDENTITY)

    def close(self) -> None:
        """Releases the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _acquire(self) -> None:
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise BadInput(
                f"another lmdiag run is at work in {self.path}: "
                "wait for it, or choose another --output"
            ) from None
        self._lock = lock

    def _remove(self, *names: str) -> None:
        """Removes files, and the journal."""
        shutil.rmtree(self.journal, ignore_errors=True)
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def _refuse_other(self, owner: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
        for key, value in identity.items():
            old, new = str(owner.get(key)), str(value)
            if old == new:
                continue
            what = f"{self.path} holds a run of another {key} ({old}, not {new})"
            if re.sub(r"\|data:[^|]*", "", old) == re.sub(r"\|data:[^|]*", "", new):
                what = f"the data changed since the run in {self.path} was made"
            raise BadInput(f"{what}: choose another --output or --name, or --overwrite the run")


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Returns directories of runs, with those in a folder in its place.

    Args:
        paths: run directories, or folders that have some: of a model, or `--output`. The runs of a
            folder are in the order of their names. Any other path stays.
    """
    return [folder for path in paths for folder in (_runs_in(path) or [path])]


def _runs_in(path: Path) -> list[Path]:
    if not is_folder(path) or is_file(path / RESULTS):
        return []
    with readable(path):
        files = [file for depth in ("*", "*/*") for file in path.glob(f"{depth}/{RESULTS}")]
    return sorted(file.parent for file in files)


def read_results(path: Path) -> Results:
    """Returns the results of a run directory.

    Raises:
        BadInput: there are none, or they cannot be read; see `Results.from_json`.
    """
    if not has_file(path / RESULTS):
        if runs := _runs_in(path):
            raise BadInput(f"{path} has several runs: name one of them, as {runs[0]}")
        raise BadInput(f"{path} is not a finished run: it has no {RESULTS}; `lmdiag run` writes it")
    with advice_to_overwrite():
        return Results.read(path / RESULTS)


@contextmanager
def advice_to_overwrite() -> Iterator[None]:
    """Ends a message on a damaged file of a run with the remedy."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{error}: run again with --overwrite") from None
