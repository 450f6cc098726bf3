"""The files of a submission, read once and within bounds.

What is verified, shown and uploaded comes from these bytes; the folder is not read again.
"""

from __future__ import annotations

from pathlib import Path

from lmdiag.hub.refusal import Refused
from lmdiag.reading import read_bytes
from lmdiag.results import EW_AND_MW, PREDICTIONS, RESULTS
from lmdiag.schema import BadInput

MAX_BYTES = {RESULTS: 5_000_000, PREDICTIONS: 256_000_000, EW_AND_MW: 256_000_000}
"""File -> the bytes that it may have; a full run has a tenth of that."""


def read_files(folder: Path) -> dict[str, bytes]:
    """Returns file name -> bytes of a run directory; `agreement.parquet` may be missing.

    Raises:
        Refused: a file is missing, too large, or not a regular file.
    """
    names = [name for name in MAX_BYTES if name != EW_AND_MW or (folder / name).exists()]
    return {name: _read(folder / name) for name in names}


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, MAX_BYTES[path.name])
    except BadInput as error:
        # Where the submission lies on this machine is left out of a reason that is published.
        raise Refused([str(error).replace(str(path), path.name)]) from None
