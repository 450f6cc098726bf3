"""The names of a run's files, and the checksums by which exchanged ones are noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmdiag.reading import readable
from lmdiag.schema import BadInput

RESULTS, PREDICTIONS, AGREEMENT, REPORT = (
    "results.json", "predictions.parquet", "agreement.parquet", "report.html",
)  # fmt: skip
IDENTITY = "run.json"
"""Whose run an unfinished one is."""
DATA_FILES = (PREDICTIONS, AGREEMENT)
"""The files that figures are computed from."""


def digests(path: Path) -> dict[str, str]:
    """Returns file name -> SHA-256 of the files that the figures of a run are computed from."""
    return {name: _digest(path / name) for name in DATA_FILES if (path / name).exists()}


def saved_files(path: Path) -> list[str]:
    """Returns the names of a run's files that are there, to be named in a message."""
    return [name for name in (RESULTS, PREDICTIONS, REPORT) if (path / name).exists()]


def check_files(path: Path, results: Mapping[str, Any]) -> None:
    """Checks that the predictions of a run are those that its results were computed from.

    Raises:
        BadInput: a file differs from the one that the run wrote, or is missing.
    """
    for name, digest in results.get("files", {}).items():
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
