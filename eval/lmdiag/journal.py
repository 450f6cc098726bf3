"""What a run has asked so far, safe on disk: an append-only record of finished batches.

Every process appends to a file of its own. A record is one line, a CRC-32 and a JSON text. The
checksum covers the identity of the run as well as the JSON, so a line that a killed process left
torn, one with a flipped bit and one of another run fail it alike, and count as never written.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

from lmdiag.reading import readable
from lmdiag.schema import Answer


class Journal:
    """Answers by the number of their question, kept in a folder across interrupted runs.

    Args:
        folder: of the journal.
        rank: of this process.
        owner: identity of the run; records of other owners are passed over.
    """

    def __init__(self, folder: Path, rank: int = 0, owner: str = "") -> None:
        self.folder = folder
        self._seed = zlib.crc32(owner.encode())
        self._path = folder / f"{rank:05d}-{time.time_ns():x}-{os.getpid()}.jsonl"
        self._file: IO[bytes] | None = None

    def read(self) -> dict[int, Answer]:
        """Returns every answer that was saved whole, by any process of any earlier run."""
        saved: dict[int, Answer] = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            for numbers, answers in _records(path, self._seed):
                saved.update(zip(numbers, answers, strict=True))
        return saved

    def append(self, answers: Mapping[int, Answer]) -> None:
        """Saves one finished batch; when this returns, it outlives the process and the machine."""
        numbers, records = list(answers), [answer.to_json() for answer in answers.values()]
        text = json.dumps([numbers, records], ensure_ascii=False, separators=(",", ":")).encode()
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab")
        self._file.write(b"%08x %b\n" % (zlib.crc32(text, self._seed), text))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes this process's file; what is saved stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _records(path: Path, seed: int = 0) -> Iterator[tuple[list[int], list[Answer]]]:
    """Yields the records of a file whose checksum holds."""
    with readable(path), path.open("rb") as lines:
        for line in lines:
            checksum, _, text = line.rstrip(b"\n").partition(b" ")
            if line.endswith(b"\n") and checksum == b"%08x" % zlib.crc32(text, seed):
                numbers, answers = json.loads(text)
                yield numbers, [Answer.from_json(answer) for answer in answers]


class NoJournal(Journal):
    """Keeps nothing: for questions that are asked in memory."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))

    def read(self) -> dict[int, Answer]:
        """Returns nothing."""
        return {}

    def append(self, answers: Mapping[int, Answer]) -> None:
        """Forgets a batch."""
