"""The finished batches of runs, safe on disk, so that an interrupted command can resume.

Every process appends to its own file. A record is one line: a CRC-32 and a JSON text. The checksum
covers the identity of the run and the JSON text. A line that a killed process left torn, a line
with a flipped bit and a line of another run therefore fail it alike, and are not read; neither is
a record that does not have the fields of an answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from lmdiag.files.reading import readable
from lmdiag.results import model_slug
from lmdiag.text import type_adapter
from lmdiag.types import Answer, ModelInfo, SentenceAnswer


class Journal:
    """Answers by the key of their question (`Model.key`), kept in a folder.

    Args:
        folder: of the journal; made when something is saved.
        rank: of this process.
        owner: identity of the run or runs; records of other owners are not read.
    """

    def __init__(self, folder: Path, rank: int = 0, owner: str = "") -> None:
        self.folder = folder
        # the checksum of a record starts from that of the owner
        self._owner_checksum = zlib.crc32(owner.encode())
        # no other process, also of another machine, writes the same file
        self._path = folder / f"{rank:05d}-{time.time_ns():x}-{os.getpid()}.jsonl"
        self._file: IO[bytes] | None = None

    def read(self) -> dict[str, Any]:
        """Returns key -> answer of all that was saved whole, by any process of any earlier run."""
        from pydantic import ValidationError

        answer_type = Answer | SentenceAnswer
        # several answers are those of layers; numbers are the `ModelInfo.check_log_probs` of a
        # model behind a server
        adapter = type_adapter(dict[str, answer_type | tuple[answer_type, ...] | tuple[float, ...]])
        answers: dict[str, Any] = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            with readable(path), path.open("rb") as lines:
                for line in lines:
                    checksum, _, text = line.rstrip(b"\n").partition(b" ")
                    is_whole = line.endswith(b"\n") and checksum == self._checksum(text)
                    if is_whole:
                        with suppress(ValidationError):  # of a version with other fields
                            answers |= adapter.validate_json(text)
        return answers

    def _checksum(self, text: bytes) -> bytes:
        """Returns the CRC-32 of owner and text, as eight hexadecimal digits."""
        return b"%08x" % zlib.crc32(text, self._owner_checksum)

    def append(self, answers: Mapping[str, Any]) -> None:
        """Saves one finished batch (key -> answer), so that it survives a crash of the machine."""

        def fields(answer: Any) -> dict[str, Any]:
            """Returns the fields of an `Answer` or a `SentenceAnswer`, by name."""
            return {name: getattr(answer, name) for name in answer.__slots__}

        text = json.dumps(
            dict(answers), default=fields, ensure_ascii=False, separators=(",", ":")
        ).encode()
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab")
        self._file.write(b"%b %b\n" % (self._checksum(text), text))
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        """Returns the journal, whose file is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the file, if anything was saved."""
        if self._file is not None:
            self._file.close()


def kept_answers(
    output: Path | None, info: ModelInfo, what: str, facts: Sequence[str]
) -> AbstractContextManager[Journal | None]:
    """Returns the journal of what a model is asked outside of runs, for a `with` statement.

    Args:
        output: the folder of all models; None to keep nothing: the journal is None, too.
        info: of the model.
        what: begins the name of the journal's own folder.
        facts: what decides the answers beside the model.
    """
    if output is None:
        return nullcontext()
    model_facts = [info.id, info.commit, info.dtype, str(info.quantization), str(info.server)]
    identity = json.dumps([*model_facts, *facts])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    model_folder = output / model_slug(info.id, info.revision, info.name)
    return Journal(model_folder / f"{what}-{digest}", owner=identity)
