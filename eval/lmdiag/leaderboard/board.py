"""What a leaderboard runs, and where its runs are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from lmdiag import stimuli
from lmdiag.files import is_file, read_json
from lmdiag.hub.requests import RunRequest
from lmdiag.protocol import Protocol
from lmdiag.results import REPORT, RESULTS, Run, combine, model_slug, read_results, signature
from lmdiag.stimuli import Stimuli
from lmdiag.types import AGREEMENT, DIAGNOSTICS, BadInput

FAILURE = "failure.json"
"""File that keeps the last failure of a request, in its folder."""


class Failure(NamedTuple):
    """Why a request has no run.

    Attributes:
        reason: one line for the page.
        seconds: the limit on time that the run exceeded; 0 for another reason.
    """

    reason: str = "not run yet"
    seconds: float = 0.0


@dataclass(frozen=True)
class Board:
    """The protocol and the data that every request is run with.

    Attributes:
        runs: directory in which the runs are kept.
        data, revision: the data set, and its revision on the Hub.
        tasks: the diagnostics.
    """

    runs: Path
    data: str = "lmdiag"
    revision: str | None = None
    tasks: tuple[str, ...] = DIAGNOSTICS

    @cached_property
    def stimuli(self) -> dict[str, Stimuli]:
        """Task -> its rows.

        Raises:
            BadInput: the data set cannot be loaded or lacks a task.
        """
        return {task: stimuli.load(self.data, task, revision=self.revision) for task in self.tasks}

    @cached_property
    def signature(self) -> str:
        """The signature of every run of the leaderboard."""
        verbs = None
        if AGREEMENT in self.tasks:
            verbs = len(stimuli.load_verbs(self.data, revision=self.revision))
        rows = {task: loaded.fingerprint for task, loaded in self.stimuli.items()}
        return signature(Protocol(tasks=self.tasks, verbs=verbs), combine(rows))

    def output(self, request: RunRequest) -> Path:
        """Returns the `--output` of the run of a request; another signature is another folder."""
        digest = hashlib.sha256(self.signature.encode()).hexdigest()[:8]
        return self.runs / digest / request.precision

    def folder(self, request: RunRequest) -> Path:
        """Returns the folder of the model in `output`."""
        return self.output(request) / model_slug(request.model, request.commit or None)

    def run(self, request: RunRequest) -> Run | None:
        """Returns the finished run of a request, with checked predictions; None without one."""
        for file in sorted(self.folder(request).glob(f"*/{RESULTS}")):
            try:
                run = Run(file.parent, read_results(file.parent), self.stimuli)
                _ = run.predictions  # checks that they are those of the results
            except BadInput:
                continue
            model = run.results.model
            facts = (model.id, model.dtype, model.quantization, run.results.signature)
            requested = (request.model, request.dtype, request.quantization, self.signature)
            is_same = facts == requested and request.commit in ("", model.commit)
            if is_same and is_file(run.path / REPORT):
                return run
        return None

    def failure(self, request: RunRequest) -> Failure:
        """Returns the last failure of a request."""
        try:
            reason, seconds = read_json(self.folder(request) / FAILURE)
            return Failure(str(reason), float(seconds))
        except (BadInput, TypeError, ValueError):
            return Failure()
