"""Runs requests by the ordinary `lmdiag run`, each in a child process with limits.

Weights are read from safetensors alone and no code of a repository is run: the defaults of
`lmdiag run`. A run that fails leaves a file with its reason, and does not stop the others.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from lmdiag.files import clear_drafts, without_secrets, write_atomically
from lmdiag.hub.client import plain_errors
from lmdiag.hub.requests import Entry, RunRequest
from lmdiag.leaderboard.board import FAILURE, Board, Failure
from lmdiag.text import shortened
from lmdiag.types import BadInput

_KEYS = ("LMDIAG_SERVER_KEY", "OPENAI_API_KEY")
"""Variables that a child does not get."""
_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Devices of CUDA, of ROCm, and of CUDA in WSL."""
_PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when its parent ends."""
_LONGEST_LOG = 100_000


@dataclass(frozen=True)
class Limits:
    """What a run may use.

    Attributes:
        parameters: most parameters of a model.
        seconds: most time of a run, the download included.
        memory: most bytes of the process's own data; None for no limit.
        device: where the model goes, e.g. "cuda:0"; None for the default.
    """

    parameters: int = 3_000_000_000
    seconds: float = 3600.0
    memory: int | None = None
    device: str | None = None


def free_memory(device: str | None) -> int | None:
    """Returns most of the free memory in bytes; None where a run may use an accelerator.

    The libraries of accelerators reserve much more address space than they use.
    """
    uses_processor = device == "cpu" or not (device or any(map(os.path.exists, _ACCELERATORS)))
    return int(0.9 * psutil.virtual_memory().available) if uses_processor else None


def run_missing(
    board: Board, entries: Iterable[Entry], limits: Limits, say: Callable[[str], None]
) -> None:
    """Runs every request that has no finished run.

    A request that exceeded a limit on time is tried again when the limit is longer; one that failed
    for another reason is tried again each time.

    Args:
        board: what is run.
        entries: the requests; other entries are skipped.
        limits: of each run.
        say: gets a line for each request that is run.

    Raises:
        BadInput: another process runs requests in the same directory.
    """
    board.runs.mkdir(parents=True, exist_ok=True)
    lock = FileLock(board.runs / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(f"another lmdiag leaderboard is at work in {board.runs}") from None
    with lock:
        for request in filter(None, (entry.request for entry in entries)):
            if board.run(request) or board.failure(request).seconds >= limits.seconds:
                continue
            say(f"running {request.model} {request.commit[:12]} {request.precision}")
            failure = _attempt(board, request, limits)
            file = board.folder(request) / FAILURE
            file.unlink(missing_ok=True)
            if failure is not None:
                say(f"failed: {failure.reason}")
                file.parent.mkdir(parents=True, exist_ok=True)
                clear_drafts(file.parent)
                write_atomically(file, json.dumps(failure).encode())


def _attempt(board: Board, request: RunRequest, limits: Limits) -> Failure | None:
    """Runs a request; returns why it failed, None if it did not."""
    seconds = 0.0
    try:
        if request.commit:
            _check_model(request, limits.parameters)
        reason = _run_child(board, request, limits)
        if board.run(request):
            return None
    except subprocess.TimeoutExpired:
        seconds = limits.seconds
        reason = f"it took longer than {seconds:g} seconds"
    except BadInput as error:
        reason = str(error)
    # For a public page: one line, no secret, no home directory.
    return Failure(shortened(without_secrets(reason).replace(str(Path.home()), "~"), 300), seconds)


def _check_model(request: RunRequest, most: int) -> None:
    """Checks a model by what the Hub says of it, before its weights are downloaded.

    Raises:
        BadInput: another id or commit, no safetensors weights, too many parameters, no access.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, NotASafetensorsRepoError

    api, where = HfApi(), f"{request.model} at {request.commit[:12]}"
    with plain_errors(where):
        info = api.model_info(request.model, revision=request.commit)
        if (info.id, info.sha) != (request.model, request.commit):
            raise BadInput(f"the Hub has this model as {info.id} at {info.sha}: request that")
        try:
            metadata = api.get_safetensors_metadata(request.model, revision=request.commit)
            n = sum(metadata.parameter_count.values())
        except NotASafetensorsRepoError:
            raise BadInput(f"{where} has no safetensors weights") from None
        except HfHubHTTPError:
            raise
        except Exception:  # the header is a stranger's; the client does not check it
            raise BadInput(f"{where} has damaged safetensors weights") from None
    if n > most:
        raise BadInput(f"{where} has {n:,} parameters, more than {most:,}")


def _run_child(board: Board, request: RunRequest, limits: Limits) -> str:
    """Runs `lmdiag run` for a request; returns what it said last.

    Raises:
        TimeoutExpired: it took too long, and was ended.
    """
    options = {
        "--model": request.model, "--revision": request.commit, "--dtype": request.dtype,
        "--quantization": request.quantization, "--data": board.data,
        "--data-revision": board.revision, "--device-map": limits.device,
        "--output": str(board.output(request)),
    }  # fmt: skip
    command = [sys.executable, "-m", "lmdiag", "run", "--quiet", "--tasks", *board.tasks]
    command += [word for name, value in options.items() if value for word in (name, value)]
    if [*board.folder(request).glob("*/results.json")]:
        command.append("--overwrite")  # it is there but is not the run of this request
    env = {name: value for name, value in os.environ.items() if name not in _KEYS}

    def limit() -> None:  # in the child: it ends with its parent, and has this much memory
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if limits.memory is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))

    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            start_new_session=True, preexec_fn=limit,
        )  # fmt: skip
        try:
            code = child.wait(limits.seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # with all that it has started
            child.wait()
        log.seek(max(0, log.tell() - _LONGEST_LOG))
        lines = log.read().decode("utf-8", "replace").strip().splitlines()
    if code < 0:
        return f"the run was ended by {signal.Signals(-code).name}"
    return lines[-1].removeprefix("lmdiag: error: ") if lines else f"exit code {code}"
