"""Finds the submissions and sorts them into entries and rejected ones."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.bounded import MAX_BYTES, Refused
from lmdiag.hub.client import plain_errors
from lmdiag.hub.isolation import Judged, Judges
from lmdiag.hub.names import display_name, is_on_hub, name_reason
from lmdiag.hub.submit import RUNS, run_place
from lmdiag.hub.verify import is_close
from lmdiag.reading import readable, real_path
from lmdiag.results import PREDICTIONS, RESULTS, Results, Run
from lmdiag.text import file_name, shortened
from lmdiag.types import BadInput

_NO_DATE = datetime.max.replace(tzinfo=UTC)
_SAME = 0.001
"""Nats by which the log-probabilities of two submissions differ if they count as the same."""

Identity = tuple[str, str, str, str, str | None, str]
"""Id, commit, kind, dtype and quantization of a model, and the signature of a run."""


@dataclass(frozen=True)
class Outcome:
    """The attempt to reproduce a submission; `lmdiag.reproduction` makes it.

    Attributes:
        status: reproduced (every answer agrees), differs, or not possible (the model could not be
            loaded or queried here).
        detail: the first item that differs, or why it was not possible; "" if it is reproduced.
        asked: contexts that were queried.
        of: contexts of the submission.
        seed: that the contexts were drawn with, from the system's random source; kept secret until
            the model had answered.
        tolerance: nats by which a log-probability may differ.
        device: that the model ran on.
        versions: of the packages that queried it.
        seconds: that loading and querying took.
        finished: date and time, ISO 8601.
    """

    status: Literal["reproduced", "differs", "not possible"]
    detail: str
    asked: int = 0
    of: int = 0
    seed: str = ""
    tolerance: float | None = None
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    finished: str = ""


@dataclass(frozen=True)
class Submission:
    """A directory that claims to be a run.

    Attributes:
        folder: of the run.
        place: what to call it in messages and on the site.
        inside: its path in a results repository, where each run has its place; else None.
        date: when its predictions were last changed in the results repository; None elsewhere.
    """

    folder: Path
    place: str
    inside: str | None = None
    date: datetime | None = None


@dataclass(frozen=True)
class Entry:
    """A submission that was verified.

    Attributes:
        submission: where it comes from.
        judged: what was verified; nothing else of the submission is shown.
        benchmark: the data it was verified on.
        same_as: the first earlier entry of another model with the same predictions, if any.
        outcome: of the attempt to reproduce it; None if there was none.
    """

    submission: Submission
    judged: Judged
    benchmark: Benchmark
    same_as: Entry | None = None
    outcome: Outcome | None = None

    @property
    def results(self) -> Results:
        """The verified results."""
        return self.judged.results

    @property
    def name(self) -> str:
        """What the model is called."""
        return display_name(self.results.model)

    @property
    def level(self) -> str:
        """What is proved of it: "reproduced", "differs" or "recomputed"."""
        if self.outcome is None or self.outcome.status == "not possible":
            return "recomputed"
        return self.outcome.status

    @property
    def page(self) -> str:
        """The file name of its page."""
        return f"{file_name(self.name, json.dumps(self.identity))}.html"

    @property
    def identity(self) -> Identity:
        """What two entries of one leaderboard must differ in."""
        # The Hub does not distinguish the case of ids.
        model = self.results.model
        facts = model.commit, model.kind, model.dtype, model.quantization
        return (model.id.lower(), *facts, self.results.signature)

    def run(self) -> Run:
        """Returns the run with its verified predictions, which are read when they are needed."""
        stimuli = {task: self.benchmark.stimuli(task) for task in self.results.protocol.tasks}
        return Run(self.judged.copy, self.results, stimuli)


@dataclass(frozen=True)
class Rejected:
    """A submission that is not shown: what to call it, and why, each reason one line."""

    place: str
    reasons: tuple[str, ...]


# ---- finding ------------------------------------------------------------------------------------


def find_submissions(places: Sequence[str]) -> list[Submission]:
    """Returns the submissions in run directories, folders of them, and results repositories.

    They are in the order of the places. Within a results repository the one that has been there
    longest comes first; within a folder they are ordered by name.

    Raises:
        BadInput: a place that does not exist or has no runs.
    """
    by_folder: dict[Path, Submission] = {}
    for place in places:
        submissions = sorted(_below(place), key=lambda one: (one.date or _NO_DATE, one.place))
        if not submissions:
            raise BadInput(f"{place} has no runs: name run directories, or a results repository")
        for submission in submissions:
            by_folder.setdefault(real_path(submission.folder), submission)
    return list(by_folder.values())


def _below(place: str) -> Iterator[Submission]:
    is_repo = is_on_hub(place)
    root, dates = _download(place) if is_repo else (Path(place), {})
    # The page is public: where on this machine a run lies is left out.
    base = place if is_repo else real_path(root).name
    with readable(root):
        files = [path for name in (RESULTS, PREDICTIONS) for path in root.rglob(name)]
    for folder in {path.parent for path in files}:
        inside = folder.relative_to(root).as_posix()
        name = shortened(f"{base}/{inside}" if inside != "." else base)
        date = dates.get(f"{inside}/{PREDICTIONS}")
        yield Submission(folder, name, inside if is_repo else None, date)


def _download(repo_id: str) -> tuple[Path, dict[str, datetime]]:
    """Downloads the runs of a results repository, without files that are too large for one.

    Returns:
        The folder, and when each file was last changed.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.hf_api import RepoFile

    with plain_errors(f"cannot read the runs of {repo_id}"):
        api = HfApi()
        commit = api.dataset_info(repo_id).sha
        tree = api.list_repo_tree(
            repo_id, repo_type="dataset", revision=commit, recursive=True, expand=True
        )
        files = [
            file
            for file in tree
            if isinstance(file, RepoFile)
            and PurePosixPath(file.path).parts[0] == RUNS
            and file.size <= MAX_BYTES.get(PurePosixPath(file.path).name, -1)
        ]
        folder = snapshot_download(
            repo_id,
            repo_type="dataset",
            revision=commit,
            allow_patterns=[glob.escape(file.path) for file in files],
        )
    return Path(folder), {file.path: file.last_commit.date for file in files if file.last_commit}


# ---- judging ------------------------------------------------------------------------------------


def judge(
    submissions: Sequence[Submission], judges: Judges, *, allow_local: bool = False
) -> tuple[list[Entry], list[Rejected]]:
    """Verifies every submission; of two of the same model and protocol the first one counts.

    Only accepted submissions are compared, so a rejected one never takes another's place.

    Args:
        submissions: in the order in which they count.
        judges: verify them, each on its own.
        allow_local: list models of local folders.
    """
    entries: dict[Identity, Entry] = {}
    rejected = []
    for submission in submissions:
        try:
            entry = Entry(submission, judges.judge(submission.folder), judges.benchmark)
            _refuse_entry(entry, entries.get(entry.identity), allow_local)
        except Refused as refusal:
            rejected.append(Rejected(submission.place, refusal.reasons))
        else:
            entries[entry.identity] = replace(entry, same_as=_first_like(entry, entries.values()))
    return list(entries.values()), rejected


def _refuse_entry(entry: Entry, first: Entry | None, allow_local: bool) -> None:
    """Refuses a verified submission for its name, its place, or an earlier one of the same run."""
    model, inside = entry.results.model, entry.submission.inside
    if reason := name_reason(model, allow_local=allow_local and inside is None):
        raise Refused([reason])
    expected = run_place(entry.results)
    if inside not in (None, expected):
        raise Refused([f"a run of {model.id} belongs in {expected}"])
    if first is not None:
        raise Refused([f"doubled: {first.submission.place} has the same model and protocol"])


def _first_like(entry: Entry, others: Iterable[Entry]) -> Entry | None:
    """Returns the first of earlier entries with the same predictions, except for rounding.

    One model in two precisions is expected to have nearly the same, and is not reported.
    """
    for other in others:
        pairs = zip(entry.judged.log_probs, other.judged.log_probs, strict=True)
        if all(is_close(one, two, _SAME) for one, two in pairs):
            return None if entry.identity[:2] == other.identity[:2] else other
    return None
