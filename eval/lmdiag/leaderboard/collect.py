"""Finds the submissions and sorts them into entries and rejected ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmdiag.hub.client import REPO_ID, plain_errors
from lmdiag.hub.shape import read_strictly
from lmdiag.hub.submit import RUNS, run_place
from lmdiag.hub.text import all_visible, visible
from lmdiag.hub.verify import Benchmark, protocol_of, verify
from lmdiag.results import PREDICTIONS, RESULTS, Run
from lmdiag.schema import BadInput


@dataclass(frozen=True)
class Submission:
    """A directory that claims to be a run.

    Attributes:
        folder: where it lies.
        place: what to call it: where it was found.
        inside: its path in a results repository, where each run has its place; else None.
    """

    folder: Path
    place: str
    inside: str | None = None


@dataclass(frozen=True)
class Entry:
    """A submission that was verified.

    Attributes:
        submission: where it comes from.
        results: its results.json, every text in it made visible; the figures are as computed here.
        benchmark: the data it was verified on.
    """

    submission: Submission
    results: dict[str, Any]
    benchmark: Benchmark

    @property
    def identity(self) -> str:
        """What two entries of one board must differ in: the model as it was run, and the tasks."""
        model = self.results["model"]
        facts = [model[key] for key in ("id", "commit", "kind", "dtype", "quantization")]
        return "|".join(map(str, [*facts, self.results["signature"]]))

    def run(self) -> Run:
        """The run with its predictions, read when they are asked for."""
        tasks = protocol_of(self.results).tasks
        stimuli = {task: self.benchmark.stimuli(task) for task in tasks}
        return Run(self.submission.folder, self.results, stimuli)


@dataclass(frozen=True)
class Rejected:
    """A submission that is not shown.

    Attributes:
        place: where it was found.
        reasons: why, each one line.
    """

    place: str
    reasons: tuple[str, ...]


def find_submissions(places: Sequence[str]) -> list[Submission]:
    """Returns the submissions in run directories, folders of them, and results repositories.

    Raises:
        BadInput: a place that does not exist or holds none.
    """
    found: dict[Path, Submission] = {}
    for place in places:
        there = list(_below(place))
        if not there:
            raise BadInput(f"{place} holds no run: name run directories, or a results repository")
        found |= {submission.folder.resolve(): submission for submission in there}
    return sorted(found.values(), key=lambda submission: submission.place)


def _below(place: str) -> Iterator[Submission]:
    root, collected = Path(place), False
    if not root.exists() and REPO_ID.fullmatch(place):
        root, collected = _download(place), True
    folders = {path.parent for name in (RESULTS, PREDICTIONS) for path in root.rglob(name)}
    for folder in folders:
        inside = folder.relative_to(root).as_posix()
        # The board is for everyone: where on this machine a run lies is no one's business.
        base = place if collected else root.resolve().name
        name = f"{base}/{inside}" if inside != "." else base
        yield Submission(folder, visible(name), inside if collected else None)


def _download(repo_id: str) -> Path:
    from huggingface_hub import snapshot_download

    with plain_errors(f"cannot read the runs of {repo_id}"):
        folder = snapshot_download(repo_id, repo_type="dataset", allow_patterns=[f"{RUNS}/*"])
    return Path(folder)


def judge(
    submissions: Sequence[Submission], benchmark: Benchmark
) -> tuple[list[Entry], list[Rejected]]:
    """Verifies every submission; of two of the same model and protocol the first one counts.

    Raises:
        BadInput: the benchmark itself cannot be loaded.
    """
    entries: dict[str, Entry] = {}
    rejected, refused = [], set()
    for submission in submissions:
        reasons = verify(submission.folder, benchmark)
        if not reasons:
            entry = _entry(submission, benchmark)
            first = entries.setdefault(entry.identity, entry)
            reasons = [*_place_reasons(entry)]
            if first is not entry:
                reasons.append(f"doubled: {first.submission.place} has the same model and protocol")
        if reasons:
            rejected.append(Rejected(submission.place, tuple(reasons)))
            refused.add(submission.folder)
    return [each for each in entries.values() if each.submission.folder not in refused], rejected


def _entry(submission: Submission, benchmark: Benchmark) -> Entry:
    return Entry(submission, all_visible(read_strictly(submission.folder)), benchmark)


def _place_reasons(entry: Entry) -> Iterator[str]:
    """In a results repository nobody's run may lie where another model's belongs."""
    due = run_place(entry.results)
    if entry.submission.inside not in (None, due):
        yield f"a run of {entry.results['model']['id']} belongs in {due}"
