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
    a_mapping,
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

RESULTS, PREDICTIONS, EW_AND_MW, REPORT = (
    "results.json", "predictions.parquet", "agreement.parquet", "report.html",
)  # fmt: skip
IDENTITY = "run.json"
"""Whose run an unfinished one is."""
DATA_FILES = (PREDICTIONS, EW_AND_MW)
"""The files that figures are computed from."""


def digests(path: Path) -> dict[str, str]:
    """Returns file name -> SHA-256 of the files that the figures of a run are computed from."""
    return {name: _digest(path / name) for name in DATA_FILES if (path / name).exists()}


def saved_files(path: Path) -> list[str]:
    """Returns the names of a run's files that are there, to be named in a message."""
    return [name for name in (RESULTS, PREDICTIONS, REPORT) if (path / name).exists()]


def check_files(path: Path, results: Results) -> None:
    """Checks that the results of a run were computed from the predictions beside them.

    Raises:
        BadInput: a file differs from the one that the run wrote, or is missing.
    """
    for name, digest in results.files.items():
        if name not in DATA_FILES or not (path / name).exists():
            raise BadInput(f"{path / name} is missing: run again to make it")
        if _digest(path / name) != digest:
            raise BadInput(
                f"{path / name} is not the file that this run wrote (its SHA-256 differs from the "
                "one in results.json): run again with --overwrite"
            )


def _digest(path: Path) -> str:
    with readable(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class RunDirectory:
    """The directory of one run, held by one process group at a time.

    Attributes:
        path: `<output>/<model slug>/<protocol>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: FileLock | None = None

    @property
    def journal(self) -> Path:
        """The folder of finished batches while the run is under way."""
        return self.path / "journal"

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
            self._clear()
        results = read_results(self.path) if (self.path / RESULTS).exists() else None
        holder = results.identity if results else self._begun()
        if holder is not None:
            self._refuse_other(holder, identity)
        elif others := {path.name for path in self.path.iterdir()} - {".lock"}:
            own = others <= {*DATA_FILES, REPORT, "journal"}
            raise BadInput(
                f"{self.path} is not empty and is not a run directory: choose another --output"
                + (f", or --overwrite it (it has no {RESULTS})" if own else "")
            )
        if results and all((self.path / x).exists() for x in {PREDICTIONS, *results.files}):
            check_files(self.path, results)
            self._clear_resuming()
            return True
        write_atomically(self.path / IDENTITY, json.dumps(identity, indent=1).encode())
        (self.path / RESULTS).unlink(missing_ok=True)
        return False

    def _acquire(self) -> None:
        from filelock import FileLock, Timeout

        self._lock = FileLock(self.path / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._lock = None
            raise BadInput(
                f"another lmdiag run is at work in {self.path}: "
                "wait for it, or choose another --output"
            ) from None

    def _clear(self) -> None:
        shutil.rmtree(self.journal, ignore_errors=True)
        for name in (RESULTS, IDENTITY, PREDICTIONS, EW_AND_MW, REPORT):
            (self.path / name).unlink(missing_ok=True)

    def _clear_resuming(self) -> None:
        """Removes what only an unfinished run needs."""
        (self.path / IDENTITY).unlink(missing_ok=True)
        shutil.rmtree(self.journal, ignore_errors=True)

    def _begun(self) -> Mapping[str, Any] | None:
        """Returns the identity of the unfinished run that is in the directory."""
        file = self.path / IDENTITY
        with advice_to_overwrite():
            return a_mapping(read_json(file), str(file)) if file.exists() else None

    def _refuse_other(self, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
        for key, value in ours.items():
            if theirs.get(key) != value:
                if key == "signature" and _differs_in_data(theirs.get(key), value):
                    raise BadInput(
                        f"the data changed since the run in {self.path} was made: choose another "
                        "--output or --name, or --overwrite the run"
                    )
                raise BadInput(
                    f"{self.path} holds a run of another {key} ({theirs.get(key)}, not {value}): "
                    "choose another --output or --name, or --overwrite it"
                )

    def finish(self, results: Results) -> None:
        """Writes results.json, the mark of a finished run, and removes what only resuming needs."""
        text = json.dumps(results.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / RESULTS, text.encode())
        self._clear_resuming()

    def close(self) -> None:
        """Lets go of the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _differs_in_data(first: object, second: object) -> bool:
    """Whether two signatures are of the same questions about other data."""
    parts = [re.sub(r"\|data:[^|]*", "", str(signature)) for signature in (first, second)]
    return parts[0] == parts[1]


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Returns directories of runs, with those in a folder in its place.

    Args:
        paths: run directories, or folders that have some: of a model, or `--output`. The runs of a
            folder are in the order of their names. Any other path stays.
    """
    return [found for path in paths for found in (_runs_in(path) or [path])]


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
    file = path / RESULTS
    if not has_file(file):
        if runs := _runs_in(path):
            raise BadInput(f"{path} has several runs: name one of them, as {runs[0]}")
        raise BadInput(f"{path} is not a finished run: it has no {RESULTS}; `lmdiag run` writes it")
    with advice_to_overwrite():
        return Results.read(file)


@contextmanager
def advice_to_overwrite() -> Iterator[None]:
    """Ends a message on a damaged file of a run with the remedy."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{error}: run again with --overwrite") from None
