"""Judges each submission in a child process with limits of time and memory.

An exception, a crash of a decoder, or memory and time without end reject one submission. The next
one is judged by another process. The child replies in JSON, never in pickles: after it has read a
submission, it is not trusted to run code here.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from lmdiag.hub.benchmark import Benchmark, NotLoaded
from lmdiag.hub.bounded import Refused, read_files
from lmdiag.hub.verify import verify
from lmdiag.questions import Setting
from lmdiag.results import RESULTS, Results
from lmdiag.results.predictions import write_run
from lmdiag.types import DIAGNOSTICS, BadInput

_MAX_REPLY = 64_000_000
"""Bytes of a reply; the results of a run have a hundredth of it."""

_PLAIN_MEMORY = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""One thread, one heap and plain malloc, so that no memory is reserved without being used."""

_PATIENCE = 20
"""Seconds on the clock of a busy machine for each second of processor time."""

_BROKEN = "it could not be judged: reading it ended in an error"


@dataclass(frozen=True)
class Limits:
    """What judging one submission may cost.

    Attributes:
        seconds: of processor time.
        memory: bytes beyond those that the process holds before it reads the submission.
    """

    seconds: int
    memory: int


@dataclass(frozen=True)
class Judged:
    """A submission that was verified in the child process.

    Attributes:
        results: see `Verified`.
        copy: folder with the verified predictions, written by the child.
        log_probs: of the rows of the three diagnostics; equal predictions have equal ones.
    """

    results: Results
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
        self._given = limits
        self._scratch = tempfile.TemporaryDirectory(prefix="lmdiag-judges-")
        self._child: tuple[SpawnProcess, Connection] | None = None
        self._count = 0

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._scratch.cleanup()

    @property
    def limits(self) -> Limits:
        """What judging one submission may cost: many times what an honest run needs."""
        rows = self.benchmark.n_rows
        return self._given or Limits(10 + rows // 2000, 400_000_000 + 12_000 * rows)

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
        try:
            results = Results.from_json(reply["results"], RESULTS)
            return Judged(results, copy, reply["log_probs"])
        except (BadInput, LookupError):  # there are none, or the child was taken over
            raise Refused(reply.get("reasons") or [_BROKEN]) from None

    def _load(self, task: str) -> None:
        """Loads a task that the child's benchmark lacks; the next child has it."""
        try:
            self.benchmark.stimuli(task)
        except BadInput:
            raise Refused([f"this leaderboard's data have no {task}"]) from None
        self._stop()

    def _ask(self, folder: Path, copy: Path) -> dict[str, Any]:
        """Sends one request; the reply has `results`, the task that it `needs`, or `reasons`."""
        process, connection = self._child = self._child or self._start()
        too_long = f"judging it took more than {self.limits.seconds} seconds of processor time"
        try:
            connection.send_bytes(json.dumps([str(folder.resolve()), str(copy)]).encode())
            if not connection.poll(_PATIENCE * self.limits.seconds):
                process.kill()
                self._stop()
                return {"reasons": [too_long]}
            reply = dict(json.loads(connection.recv_bytes(_MAX_REPLY)))
        except (OSError, EOFError, ValueError, TypeError, RecursionError):
            reply = {"is_broken": True}  # it ended, or does not reply as our code does
        if "is_broken" in reply:
            status = self._stop()
            ended = too_long if status == -signal.SIGXCPU else f"{_BROKEN} (exit status {status})"
            reply.setdefault("reasons", [ended])
        return reply

    def _start(self) -> tuple[SpawnProcess, Connection]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = theirs, self.benchmark.sealed(), self.limits
        process = context.Process(target=_serve, args=arguments, daemon=True)
        before = dict(os.environ)
        os.environ.update(_PLAIN_MEMORY)
        try:
            process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        theirs.close()
        return process, ours

    def _stop(self) -> int | None:
        """Ends the child, if there is one; returns its exit status."""
        if self._child is None:
            return None
        (process, connection), self._child = self._child, None
        connection.close()
        process.join(_PATIENCE)
        process.kill()
        process.join()
        return process.exitcode


# ---- in the child process -----------------------------------------------------------------------


def _serve(connection: Connection, benchmark: Benchmark, limits: Limits) -> None:
    """Answers requests until the connection closes, or a submission broke something."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the output of a library must not reach the user's terminal
        os.dup2(nothing, stream)
    _import_all()
    _limit_memory(limits.memory)
    while True:
        try:
            request = connection.recv_bytes()
        except EOFError:
            return
        _limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + limits.seconds)
        folder, copy = map(Path, json.loads(request))
        reply = _answer(folder, copy, benchmark, limits)
        connection.send_bytes(json.dumps(reply, allow_nan=False).encode())
        if "is_broken" in reply:
            sys.exit(1)


def _import_all() -> None:
    """Imports what judging needs, before memory is limited."""
    import pyarrow.compute
    import pyarrow.parquet

    import lmdiag.evaluation
    import lmdiag.stats
    from lmdiag import diagnostics

    diagnostics.built_in()
    lmdiag.stats.wilson(1, 2)
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)


def _answer(folder: Path, copy: Path, benchmark: Benchmark, limits: Limits) -> dict[str, Any]:
    try:
        verified = verify(read_files(folder), benchmark)
        parts = verified.predictions
        settings = [Setting(benchmark.stimuli(task)) for task in parts]
        copy.mkdir(parents=True)
        write_run(copy, list(parts.values()), settings, kind=verified.results.model.kind)
    except Refused as refusal:
        return {"reasons": refusal.reasons}
    except NotLoaded as missing:
        return {"needs": missing.args[0]}
    except MemoryError:
        reason = f"judging it took more than {limits.memory // 1_000_000:,} MB of memory"
        return {"is_broken": True, "reasons": [reason]}
    except Exception as error:
        # The text of an exception may hold anything, and paths of this machine.
        return {"is_broken": True, "reasons": [f"{_BROKEN} ({type(error).__name__})"]}
    log_probs = [p for task in DIAGNOSTICS for p in parts[task].log_prob]
    return {"results": verified.results.to_json(), "log_probs": log_probs}


def _limit_memory(headroom: int) -> None:
    """Limits the address space to what is in use now and a headroom, in bytes (Linux)."""
    with suppress(OSError):  # other systems do not enforce it; the limit of time remains
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _limit(resource.RLIMIT_AS, pages * os.sysconf("SC_PAGESIZE") + headroom)
        _limit(resource.RLIMIT_FSIZE, headroom)
        _limit(resource.RLIMIT_CORE, 0)


def _limit(kind: int, most: int) -> None:
    """Sets a limit, no higher than the system allows."""
    _, hard = resource.getrlimit(kind)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (max(allowed, 0), hard))
