"""The process that judges submissions, one after another: `python -m lmdiag.hub.worker`.

It reads the benchmark from standard input, then one request a line, and answers each with one line
of JSON on what was its standard output. Its limits are set before each submission; a submission
that reaches them, or that raises what nobody thought of, ends the process, and `isolation` starts
another one for the next.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any, BinaryIO

from lmdiag.hub.benchmark import Benchmark, NotLoaded
from lmdiag.hub.files import read_files
from lmdiag.hub.isolation import READY
from lmdiag.hub.refusal import Refused
from lmdiag.hub.verify import Verified, verify
from lmdiag.schema import DIAGNOSTICS


def main() -> None:
    """Serves requests until standard input ends, or a submission broke something."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is not a reply
    # The benchmark is the parent's own; requests hold two paths. No submission comes this way.
    benchmark, limits = pickle.load(sys.stdin.buffer)
    _import_all()
    _limit_memory(limits.memory)
    replies.write(READY)
    replies.flush()
    for line in sys.stdin.buffer:
        folder, copy = json.loads(line)
        _limit_seconds(limits.seconds)
        _send(replies, _answer(Path(folder), Path(copy), benchmark))


def _import_all() -> None:
    """Imports what judging needs, before memory is limited."""
    import pyarrow.compute
    import pyarrow.parquet

    import lmdiag.results.predictions
    import lmdiag.queries
    import lmdiag.stats
    import lmdiag.summary

    lmdiag.stats.wilson(1, 2)
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)


def _answer(folder: Path, copy: Path, benchmark: Benchmark) -> dict[str, Any]:
    """Returns the reply to one request; what is not a refusal raises."""
    try:
        verified = verify(read_files(folder), benchmark)
        verified.save(copy)
    except Refused as refusal:
        return {"reasons": refusal.reasons}
    except NotLoaded as missing:
        return {"needs": missing.args[0]}
    except MemoryError:
        return {"broken": "memory"}
    except Exception as error:
        # The text of an exception may hold anything, and paths of this machine.
        return {"broken": type(error).__name__}
    return {"results": verified.results, "log_probs": _log_probs(verified)}


def _log_probs(verified: Verified) -> list[float | None]:
    """Returns the log-probabilities by which equal predictions are recognised."""
    return [value for task in DIAGNOSTICS for value in verified.predictions[task].log_prob]


def _send(replies: BinaryIO, reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
    replies.flush()
    if "broken" in reply:
        sys.exit(1)


def _limit_memory(headroom: int) -> None:
    """Limits the address space to what is in use now and a headroom, in bytes (Linux)."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return  # other systems do not enforce it; the limit of time is left
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + headroom)
    _limit(resource.RLIMIT_FSIZE, headroom)
    _limit(resource.RLIMIT_CORE, 0)


def _limit_seconds(seconds: int) -> None:
    """Allows so many more seconds of processor time (systems with resource limits)."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)


def _limit(kind: int, most: int) -> None:
    """Sets a limit, no higher than the system allows."""
    import resource

    _, hard = resource.getrlimit(kind)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (max(allowed, 0), hard))


if __name__ == "__main__":
    main()
