"""Runs requests by the ordinary `lmdiag run`, each in a child process with limits.

Weights are read from safetensors alone and no code of a repository is run: the defaults of
`lmdiag run`. A run that fails leaves a file with its reason, and does not stop the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import psutil

from lmdiag import results, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.files import reading, secrets, writing
from lmdiag.hub.requests import RunRequest
from lmdiag.leaderboard.child import child_environment
from lmdiag.leaderboard.entries import Entry, RankedEntry, merged, ranked
from lmdiag.results import REPORT, RESULTS, Run
from lmdiag.stimuli import Stimuli
from lmdiag.text import shortened
from lmdiag.types import DIAGNOSTICS, BadInput

_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Devices of CUDA, of ROCm, and of CUDA in WSL."""

MAX_COMMITS = 5
"""Commits of a model for which requests may wait."""

_MAX_LOG = 2**16
"""Bytes that are read of what a run said, from the end."""


@dataclass(frozen=True)
class Board:
    """What every request is run with, and within which limits.

    Attributes:
        runs: directory in which the runs are kept.
        data, revision: the data set, and its revision on the Hub.
        tasks: the diagnostics.
        device: where a model goes, e.g. "cuda:0"; None for the default.
        most_parameters: of a model.
        seconds: most time of a run, the download included.
    """

    runs: Path
    data: str = "lmdiag"
    revision: str | None = None
    tasks: tuple[str, ...] = DIAGNOSTICS
    device: str | None = None
    most_parameters: int = 3_000_000_000
    seconds: float = 3600.0

    @cached_property
    def stimuli(self) -> dict[str, Stimuli]:
        """Task -> its rows; `BadInput` if the data set cannot be loaded or lacks a task."""
        return {task: stimuli.load(self.data, task, revision=self.revision) for task in self.tasks}

    @cached_property
    def protocol(self) -> Protocol:
        """How every model is asked."""
        has_verbs = any(rows.diagnostic.has_verbs for rows in self.stimuli.values())
        verbs = stimuli.load_verbs(self.data, revision=self.revision) if has_verbs else ()
        return Protocol(tasks=self.tasks, verbs=len(verbs) or None)

    @cached_property
    def signature(self) -> str:
        """The signature of every run."""
        fingerprints = {task: rows.fingerprint for task, rows in self.stimuli.items()}
        return results.signature(self.protocol, results.combine(fingerprints))

    def folder(self, request: RunRequest) -> Path:
        """Returns the run directory of a request; another signature is another directory."""
        digest = hashlib.sha256(self.signature.encode()).hexdigest()[:8]
        slug = results.model_slug(request.model, request.commit or None)
        return self.runs / digest / request.precision / slug / results.protocol_slug(self.protocol)

    def run(self, request: RunRequest) -> Run | None:
        """Returns the finished run of a request; None without one, and where it is damaged."""
        path = self.folder(request)
        try:
            run = results.opened_run(path, results.read_results(path), self.stimuli)
        except BadInput:
            return None
        model = run.results.model
        facts = (model.id, model.dtype, model.quantization, run.results.signature)
        requested = (request.model, request.dtype, request.quantization, self.signature)
        is_same = facts == requested and request.commit in ("", model.commit)
        return run if is_same and reading.is_file(path / REPORT) else None

    def failure(self, request: RunRequest) -> tuple[str, float]:
        """Returns why a request has no run, and the limit on time that it exceeded, else 0."""
        file = self.folder(request).with_name("failure.json")
        try:
            content = reading.read_json(file)
        except BadInput:
            content = None
        match content:
            case [str(reason), float(seconds)]:
                return reason, seconds
        return "not run yet", 0.0  # there is no file, or it is damaged

    def capped(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yields entries; those beyond the caps on open requests have a reason and no request.

        Of a model, requests of at most `MAX_COMMITS` commits are run by one command, and one for
        each dtype of a commit.
        """
        commits: dict[str, set[str]] = {}
        dtypes = set[tuple[str, str, str]]()
        for entry in entries:
            request = entry.request
            if request and not reading.is_file(self.folder(request) / RESULTS):
                model = request.model.lower()  # as on the Hub, letter case makes no other name
                seen = commits.setdefault(model, set())
                key = model, request.commit, request.dtype
                if key in dtypes or len(seen | {request.commit}) > MAX_COMMITS:
                    reason = f"at most {MAX_COMMITS} commits of a model wait, in each dtype once"
                    yield Entry(request.path, claimed=entry.claimed, reason=reason)
                    continue
                seen.add(request.commit)
                dtypes.add(key)
            yield entry

    def rows(self, entries: Iterable[Entry]) -> tuple[list[RankedEntry], list[Entry]]:
        """Returns the rows in order of rank, and by name the entries without a run."""
        rows = []
        others = []
        for entry in entries:
            if entry.request is None:
                others.append(entry)
            elif run := self.run(entry.request):
                rows.append(RankedEntry(**vars(entry) | {"run": run}))
            else:
                others.append(replace(entry, reason=self.failure(entry.request)[0]))
        return ranked(merged(rows)), sorted(others, key=lambda entry: (entry.name, entry.key))

    def locked(self) -> AbstractContextManager[Any]:
        """Takes the runs and the site for one command; `BadInput` if another one holds them."""
        self.runs.mkdir(parents=True, exist_ok=True)
        busy = f"another lmdiag leaderboard is at work in {self.runs}: wait for it"
        return writing.take_lock(self.runs / ".lock", busy)

    def run_missing(self, requests: Iterable[RunRequest], say: Callable[[str], None]) -> None:
        """Runs every request that has no finished run; `say` gets a line for each.

        A request that exceeded a limit on time is tried again when the limit is longer; one that
        failed for another reason is tried again each time.
        """
        for request in requests:
            if self.run(request) or self.failure(request)[1] >= self.seconds:
                continue
            say(f"running {request.model} {request.commit[:12]} {request.precision}")
            seconds = 0.0
            try:
                reason = self._run_child(request)
            except subprocess.TimeoutExpired:
                seconds = self.seconds
                reason = f"it took longer than {seconds:g} seconds"
            file = self.folder(request).with_name("failure.json")
            file.unlink(missing_ok=True)
            if not self.run(request):
                # For a public page: one line, no secret, no home directory.
                reason = shortened(secrets.without_secrets(reason).replace(str(Path.home()), "~"))
                say(f"failed: {reason}")
                file.parent.mkdir(parents=True, exist_ok=True)
                writing.write_atomically(file, json.dumps([reason, seconds]).encode())

    def _run_child(self, request: RunRequest) -> str:
        """Runs a request in a child; returns what it said last, or raises `TimeoutExpired`."""
        limit = _memory_limit(self.device)
        with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as empty:
            data = self.data
            folder = None
            if request.commit:  # no folder here may stand for a model on the Hub
                folder = empty
                if reading.exists(Path(data)):
                    # the names of models have a slash, that of the link none
                    real = reading.real_path(Path(data))
                    Path(empty, data := real.name).symlink_to(real)
            child = subprocess.Popen(
                self._command(request, data), env=child_environment(), cwd=folder, stderr=log,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=limit,
            )  # fmt: skip
            try:
                code = child.wait(self.seconds)
            finally:
                if sys.platform != "win32":
                    with suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)  # with all that it has started
                child.wait()
            log.seek(max(0, log.seek(0, os.SEEK_END) - _MAX_LOG))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
        if code < 0:
            return f"the run was ended by {signal.Signals(-code).name}"
        return lines[-1].removeprefix("lmdiag: error: ") if lines else f"exit code {code}"

    def _command(self, request: RunRequest, data: str) -> list[str]:
        """Returns the command line of the process that runs a request, see its module `child`."""
        folder = self.folder(request)
        output = reading.real_path(folder.parents[1])
        options = {
            "--model": request.model, "--revision": request.commit, "--dtype": request.dtype,
            "--quantization": request.quantization, "--output": str(output),
            "--data": f"{data}@{self.revision}" if self.revision else data,
            "--device-map": self.device,
        }  # fmt: skip
        # -P: no file in the current directory takes the place of a module
        command = [sys.executable, "-P", "-m", "lmdiag.leaderboard.child"]
        command += [str(os.getpid()), str(self.most_parameters), request.model, request.commit]
        command += ["run", "--quiet", "--tasks", *self.tasks]
        command += [word for name, value in options.items() if value for word in (name, value)]
        if reading.is_file(folder / RESULTS):
            command.append("--overwrite")  # it is there but is not the run of this request
        return command


def _memory_limit(device: str | None) -> Callable[[], None] | None:
    """Returns what a child calls first to limit its memory to the free one; None for no limit."""
    if sys.platform == "win32":
        raise BadInput(
            "the runs of a leaderboard need limits that Windows does not have: use Linux, macOS or "
            "WSL, or build the site of finished runs with --no-run"
        )
    else:
        import resource

        memory = free_memory(device)
        if memory is None:
            return None
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most != resource.RLIM_INFINITY:  # of the board itself, as by `ulimit -d`
            memory = min(memory, most)
        return partial(resource.setrlimit, resource.RLIMIT_DATA, (memory, memory))


def free_memory(device: str | None) -> int | None:
    """Returns most of the free memory in bytes; None where a run may use an accelerator.

    The libraries of accelerators reserve much more address space than they use.
    """
    uses_processor = device == "cpu" or not (device or any(map(os.path.exists, _ACCELERATORS)))
    return int(0.9 * psutil.virtual_memory().available) if uses_processor else None
