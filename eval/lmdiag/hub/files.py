"""The files of a submission, read once and no further than a bound.

What is verified, shown and uploaded comes from these bytes; the folder is not read again.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from lmdiag.hub.refusal import Refused
from lmdiag.results import EW_AND_MW, PREDICTIONS, RESULTS

MAX_RESULTS = 5_000_000
"""Bytes of a `results.json`: those of a full run have a tenth of it."""

MAX_TABLE = 256_000_000
"""Bytes of a Parquet file; the number of rows of the benchmark gives a closer bound."""

MAX_BYTES = {RESULTS: MAX_RESULTS, PREDICTIONS: MAX_TABLE, EW_AND_MW: MAX_TABLE}
"""Name of each file of a submission -> the bytes that it may have."""


@dataclass(frozen=True)
class Files:
    """The bytes of a submission.

    Attributes:
        results: of `results.json`.
        predictions: of `predictions.parquet`.
        agreement: of `agreement.parquet`; None where there is none.
    """

    results: bytes
    predictions: bytes
    agreement: bytes | None = None

    def by_name(self) -> dict[str, bytes]:
        """File name -> bytes, of those that are there."""
        named = {RESULTS: self.results, PREDICTIONS: self.predictions, EW_AND_MW: self.agreement}
        return {name: content for name, content in named.items() if content is not None}


def read_files(folder: Path) -> Files:
    """Reads the files of a run directory.

    Raises:
        Refused: a file is missing, too large, or not a regular file.
    """
    results = read_bounded(folder / RESULTS, MAX_RESULTS)
    predictions = read_bounded(folder / PREDICTIONS, MAX_TABLE)
    has_agreement = os.path.lexists(folder / EW_AND_MW)
    agreement = read_bounded(folder / EW_AND_MW, MAX_TABLE) if has_agreement else None
    return Files(results, predictions, agreement)


def read_bounded(path: Path, most: int) -> bytes:
    """Returns the bytes of a regular file.

    Raises:
        Refused: there is none, it cannot be read, or it has more than `most` bytes.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    except FileNotFoundError:
        raise Refused([f"there is no {path.name}"]) from None
    except (OSError, ValueError):
        raise Refused([f"{path.name} cannot be read"]) from None
    with file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise Refused([f"{path.name} is not a regular file"])
        if state.st_size > most:
            raise Refused([f"{path.name} has more than {most:,} bytes"])
        return file.read(state.st_size)  # no more, should it grow meanwhile


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file; opening a named pipe would otherwise wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
