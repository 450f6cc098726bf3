"""Runs the requests to a leaderboard by `lmdiag run`, each in a child process with limits.

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
from lmdiag.leaderboard.entries import Entry, RankedEntry, merge_copies, ranked
from lmdiag.results import REPORT, RESULTS, Run
from lmdiag.stimuli import Stimuli
from lmdiag.text import shortened
from lmdiag.types import DIAGNOSTICS, BadInput

_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Devices of CUDA, of ROCm, and of CUDA in WSL."""

MAX_COMMITS = 5
"""Commits of a model for which requests may wait."""

_MAX_LOG = 2**16
"""Bytes that are read of what a run printed, from the end."""


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
        """How every model is asked: by default options, on the tasks of the board."""
        has_verbs = any(rows.diagnostic.has_verbs for rows in self.stimuli.values())
        verbs = stimuli.load_verbs(self.data, revision=self.revision) if has_verbs else ()
        return Protocol(tasks=self.tasks, verbs=len(verbs) or None)

    @cached_property
    def signature(self) -> str:
        """The signature of every run."""
        fingerprints = {task: rows.fingerprint for task, rows in self.stimuli.items()}
        return results.signature(self.protocol, results.combined_fingerprint(fingerprints))

    def folder(self, request: RunRequest) -> Path:
        """Returns the run directory of a request: `runs/DIGEST/PRECISION/MODEL/PROTOCOL`.

        The digest is of the signature of the board: runs on other data are in other directories.
        """
        digest = hashlib.sha256(self.signature.encode()).hexdigest()[:8]
        slug = results.model_slug(request.model, request.commit or None)
        return self.runs / digest / request.precision / slug / results.protocol_slug(self.protocol)

    def run(self, request: RunRequest) -> Run | None:
        """Returns the finished run of a request; None if there is none, or a damaged or other one.

        The run must have the requested model, commit, precision and signature, and a report.
        """
        path = self.folder(request)
        try:
            run = results.open_run(path, results.read_results(path), self.stimuli)
        except BadInput:
            return None
        model = run.results.model
        run_facts = (model.id, model.dtype, model.quantization, run.results.signature)
        requested = (request.model, request.dtype, request.quantization, self.signature)
        # a request for a model of this machine names no commit
        is_requested = run_facts == requested and request.commit in ("", model.commit)
        return run if is_requested and reading.is_file(path / REPORT) else None

    def _failure_file(self, request: RunRequest) -> Path:
        """The file that says why a request has no run, beside its run directory."""
        return self.folder(request).with_name("failure.json")

    def failure(self, request: RunRequest) -> tuple[str, float]:
        """Returns why a request has no run, and the limit in seconds that its run exceeded.

        The limit is 0 if the run failed for another reason, or was not tried.
        """
        file = self._failure_file(request)
        try:
            content = reading.read_json(file)
        except BadInput:
            content = None
        match content:
            case [str(reason), int() | float() as seconds]:  # as `run_missing` writes it
                return reason, float(seconds)
        return "not run yet", 0.0  # there is no file, or it is damaged

    def capped(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yields all entries; those beyond the caps on waiting requests lose their request.

        Such an entry has a reason in place of the request, and is not run. Of a model, at most
        `MAX_COMMITS` commits wait, and each of them once in each dtype; requests with a run do not
        count. So nobody can fill the queue with requests for one model.
        """
        commits_of_model: dict[str, set[str]] = {}
        waiting = set[tuple[str, str, str]]()  # model, commit and dtype
        for entry in entries:
            request = entry.request
            if request is None or reading.is_file(self.folder(request) / RESULTS):
                yield entry
                continue
            model = request.model.lower()  # as on the Hub, letter case makes no other name
            commits = commits_of_model.setdefault(model, set())
            key = model, request.commit, request.dtype
            if key in waiting or len(commits | {request.commit}) > MAX_COMMITS:
                reason = f"at most {MAX_COMMITS} commits of a model wait, in each dtype once"
                # without a request, the entry is named by the path of its file
                yield Entry(request.path, claimed=entry.claimed, reason=reason)
            else:
                commits.add(request.commit)
                waiting.add(key)
                yield entry

    def rows(self, entries: Iterable[Entry]) -> tuple[list[RankedEntry], list[Entry]]:
        """Returns the entries with a finished run in order of rank, and the others by name.

        An entry without a run has the reason, e.g. "not run yet". Entries whose runs have the same
        predictions are one row.
        """
        rows = []
        without_run = []
        for entry in entries:
            if entry.request is None:
                without_run.append(entry)
                continue
            run = self.run(entry.request)
            if run:
                # the fields of the entry and its run; `ranked` adds the rank
                rows.append(RankedEntry(**vars(entry) | {"run": run}))
            else:
                reason, _ = self.failure(entry.request)
                without_run.append(replace(entry, reason=reason))
        without_run.sort(key=lambda entry: (entry.name, entry.key))
        return ranked(merge_copies(rows)), without_run

    def locked(self) -> AbstractContextManager[Any]:
        """Returns a context in which no other command uses the runs and the site.

        `BadInput` if another one does at the moment.
        """
        self.runs.mkdir(parents=True, exist_ok=True)
        busy = f"another lmdiag leaderboard is at work in {self.runs}: wait for it"
        return writing.take_lock(self.runs / ".lock", busy)

    def run_missing(self, requests: Iterable[RunRequest], say: Callable[[str], None]) -> None:
        """Runs every request that has no finished run; `say` gets a line for each.

        A request that exceeded a limit on time is tried again when the limit is longer; one that
        failed for another reason is tried again each time.
        """
        for request in requests:
            _, exceeded_limit = self.failure(request)
            if self.run(request) or exceeded_limit >= self.seconds:
                continue
            say(f"running {request.model} {request.commit[:12]} {request.precision}")
            exceeded_limit = 0.0
            try:
                reason = self._run_child(request)
            except subprocess.TimeoutExpired:
                exceeded_limit = self.seconds
                reason = f"it took longer than {self.seconds:g} seconds"
            file = self._failure_file(request)
            file.unlink(missing_ok=True)  # of an earlier attempt
            # what counts is whether the requested run is there, not how the child ended
            if not self.run(request):
                # For a public page: one line, no secret, no home directory.
                reason = shortened(secrets.without_secrets(reason).replace(str(Path.home()), "~"))
                say(f"failed: {reason}")
                file.parent.mkdir(parents=True, exist_ok=True)
                writing.write_atomically(file, json.dumps([reason, exceeded_limit]).encode())

    def _run_child(self, request: RunRequest) -> str:
        """Runs a request in a child process; returns the last line that it printed.

        The last line of a run that fails says why: "the model has no safetensors weights". Raises
        `TimeoutExpired` if the run takes longer than `seconds`.
        """
        limit_memory = _memory_limit(self.device)
        with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as empty_folder:
            data = self.data
            working_folder = None  # the current one
            if request.commit:
                # In an empty folder, no path can be taken for the id of a model on the Hub. A link
                # to the data cannot either, since its name has no slash.
                working_folder = empty_folder
                if reading.exists(Path(data)):
                    data_path = reading.real_path(Path(data))
                    data = data_path.name
                    Path(empty_folder, data).symlink_to(data_path)
            child = subprocess.Popen(
                self._command(request, data), env=child_environment(), cwd=working_folder,
                stderr=log, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                start_new_session=True, preexec_fn=limit_memory,
            )  # fmt: skip
            try:
                code = child.wait(self.seconds)
            finally:
                if sys.platform != "win32":
                    with suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)  # with all that it has started
                child.wait()
            log_size = log.seek(0, os.SEEK_END)
            log.seek(max(0, log_size - _MAX_LOG))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
        if code < 0:
            return f"the run was ended by {signal.Signals(-code).name}"
        return lines[-1].removeprefix("lmdiag: error: ") if lines else f"exit code {code}"

    def _command(self, request: RunRequest, data: str) -> list[str]:
        """Returns the command line of the process that runs a request.

        The process first checks the model (module `lmdiag.leaderboard.child`), then is `lmdiag run
        --quiet --tasks ... --model org/name --revision COMMIT ...`.

        Args:
            request: the model, its commit and precision.
            data: the data set as the process finds it: an id on the Hub, or a path.
        """
        folder = self.folder(request)
        output = reading.real_path(folder.parents[1])  # the run adds model and protocol
        options = {
            "--model": request.model, "--revision": request.commit, "--dtype": request.dtype,
            "--quantization": request.quantization, "--output": str(output),
            "--data": f"{data}@{self.revision}" if self.revision else data,
            "--device-map": self.device,
        }  # fmt: skip
        # -P: no file in the current directory takes the place of a module
        command = [sys.executable, "-P", "-m", "lmdiag.leaderboard.child"]
        # arguments of the check, then those of lmdiag; see `main` there
        command += [str(os.getpid()), str(self.most_parameters), request.model, request.commit]
        command += ["run", "--quiet", "--tasks", *self.tasks]
        for name, value in options.items():
            if value:
                command += [name, value]
        if reading.is_file(folder / RESULTS):
            command.append("--overwrite")  # it is there but is not the run of this request
        return command


def _memory_limit(device: str | None) -> Callable[[], None] | None:
    """Returns a function that limits the memory of the process that calls it; None for no limit.

    A child calls it before its program starts. The limit is the memory that is free now, or that of
    this process if it is lower.

    Args:
        device: on which the child computes, see `Board`; on accelerators there is no limit.
    """
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
        _, own_limit = resource.getrlimit(resource.RLIMIT_DATA)  # e.g. by `ulimit -d`
        if own_limit != resource.RLIM_INFINITY:
            memory = min(memory, own_limit)
        return partial(resource.setrlimit, resource.RLIMIT_DATA, (memory, memory))


def free_memory(device: str | None) -> int | None:
    """Returns nine tenths of the free memory in bytes; None where a run may use an accelerator.

    The libraries of accelerators reserve much more address space than they use.

    Args:
        device: "cpu", an accelerator, or None for an accelerator if this machine has one.
    """
    has_accelerator = any(map(os.path.exists, _ACCELERATORS))
    if device == "cpu" or not (device or has_accelerator):
        return int(0.9 * psutil.virtual_memory().available)  # the rest is for the board
    return None
