"""Judges each submission in a child process with limits of time and memory.

Whatever a submission does to the process that reads it (an exception, a crash of a decoder, memory
or time without end), it is rejected with a reason, and the next one is judged by another process.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.refusal import Refused
from lmdiag.schema import AGREEMENT, DIAGNOSTICS, BadInput

MAX_REPLY = 64_000_000
"""Bytes of a reply: the figures of a run have a hundredth of it."""

READY = b"ready\n"
"""What the child says when it has the benchmark."""

PLAIN_MEMORY = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""One thread, one heap, and plain malloc: no memory is reserved that is not used."""

PATIENCE = 20
"""How many times its processor time a judgement may take on the clock of a busy machine."""


@dataclass(frozen=True)
class Limits:
    """What judging one submission may cost.

    Attributes:
        seconds: of processor time.
        memory: bytes beyond those that the process holds before it reads the submission.
    """

    seconds: int
    memory: int

    @classmethod
    def for_rows(cls, rows: int) -> Limits:
        """The limits for a benchmark of so many rows: many times what an honest run needs."""
        return cls(seconds=10 + rows // 2000, memory=400_000_000 + 12_000 * rows)


@dataclass(frozen=True)
class Judged:
    """A submission that was verified in the child process.

    Attributes:
        results: see `Verified`.
        copy: folder with the verified predictions, written by the child in a form of its own.
        log_probs: of the rows of the three diagnostics, to recognise equal predictions.
    """

    results: dict[str, Any]
    copy: Path
    log_probs: Sequence[float | None]


class Judges:
    """Judges submissions; a context manager that ends the child process and removes the copies.

    Args:
        benchmark: the data that submissions are verified on.
        limits: for each submission; None for what suits the benchmark.

    Raises:
        BadInput: the benchmark cannot be loaded.
    """

    def __init__(self, benchmark: Benchmark, limits: Limits | None = None) -> None:
        for task in DIAGNOSTICS:
            benchmark.stimuli(task)
        self.benchmark = benchmark
        self._limits = limits
        self._scratch = tempfile.TemporaryDirectory(prefix="lmdiag-judges-")
        self._worker: subprocess.Popen[bytes] | None = None
        self._rows = 0
        self._count = 0

    def __enter__(self) -> Judges:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._scratch.cleanup()

    @property
    def limits(self) -> Limits:
        """What judging one submission may cost."""
        return self._limits or Limits.for_rows(self._rows)

    def judge(self, folder: Path) -> Judged:
        """Verifies the submission in a folder.

        Raises:
            Refused: with the reasons, whatever happened to the process.
        """
        self._count += 1
        copy = Path(self._scratch.name) / str(self._count)
        reply = self._ask(folder, copy)
        if "needs" in reply:
            self._load(reply["needs"])
            reply = self._ask(folder, copy)
        if "results" in reply:
            return Judged(reply["results"], copy, reply["log_probs"])
        raise Refused(reply.get("reasons") or [self._explain(reply.get("broken", ""))])

    def _load(self, task: str) -> None:
        """Loads a task that the worker's copy of the benchmark lacks, for a new worker."""
        try:
            self.benchmark.stimuli(task)
            if task == AGREEMENT:
                self.benchmark.verbs()
        except BadInput:
            raise Refused([f"this leaderboard's data have no {task}"]) from None
        self._stop()

    def _ask(self, folder: Path, copy: Path) -> dict[str, Any]:
        """Sends one request and waits for the reply; what the process died of is one, too."""
        worker = self._worker if self._worker is not None else self._start()
        overtime = threading.Event()
        timer = threading.Timer(PATIENCE * self.limits.seconds, _end, (worker, overtime))
        timer.start()
        try:
            reply = _exchange(worker, [str(folder.resolve()), str(copy)])
        finally:
            timer.cancel()
        if reply is not None and "broken" not in reply:
            return reply
        code = self._stop()
        if overtime.is_set() or code == -getattr(signal, "SIGXCPU", 0):
            return {"broken": "time"}
        return reply or {"broken": f"exit status {code}"}

    def _start(self) -> subprocess.Popen[bytes]:
        sealed = self.benchmark.sealed()
        self._rows = sum(len(sealed.stimuli(task)) for task in sealed.tasks())
        worker = subprocess.Popen(
            [sys.executable, "-m", "lmdiag.hub.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | PLAIN_MEMORY,
        )
        self._worker = worker
        if not _greet(worker, pickle.dumps((sealed, self.limits))):
            raise RuntimeError(f"the process that judges submissions ended ({self._stop()})")
        return worker

    def _stop(self) -> int | None:
        """Ends the worker, if there is one; returns its exit status."""
        worker, self._worker = self._worker, None
        if worker is None:
            return None
        for pipe in (worker.stdin, worker.stdout):
            _close(pipe)
        try:
            return worker.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            worker.kill()
            return worker.wait()

    def _explain(self, broken: str) -> str:
        """One line for what happened to the process."""
        limits = self.limits
        if broken == "time":
            return f"judging it took more than {limits.seconds} seconds of processor time"
        if broken == "memory":
            return f"judging it took more than {limits.memory // 1_000_000:,} MB of memory"
        return f"it could not be judged: reading it ended in an error ({broken})"


def _greet(worker: subprocess.Popen[bytes], benchmark: bytes) -> bool:
    """Hands over the benchmark; returns whether the process is ready for requests."""
    if worker.stdin is None or worker.stdout is None:
        return False
    try:
        worker.stdin.write(benchmark)
        worker.stdin.flush()
    except OSError:
        return False
    return worker.stdout.readline(MAX_REPLY) == READY


def _exchange(worker: subprocess.Popen[bytes], request: list[str]) -> dict[str, Any] | None:
    """Returns the reply to a request; None where the process ends without a whole one."""
    if worker.stdin is None or worker.stdout is None:
        return None
    try:
        worker.stdin.write(json.dumps(request).encode() + b"\n")
        worker.stdin.flush()
    except OSError:
        return None
    line = worker.stdout.readline(MAX_REPLY)
    return dict(json.loads(line)) if line.endswith(b"\n") else None


def _end(worker: subprocess.Popen[bytes], overtime: threading.Event) -> None:
    overtime.set()
    worker.kill()


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:
        pass  # what was left in the buffer of a process that has ended
