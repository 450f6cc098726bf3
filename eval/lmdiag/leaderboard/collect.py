"""Finds runs and sorts them into entries and rejected ones."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from lmdiag.hub.benchmark import Benchmark, protocol_reasons
from lmdiag.hub.client import plain_errors
from lmdiag.hub.names import display_name, is_on_hub, name_reason
from lmdiag.hub.submit import RUNS
from lmdiag.reading import readable, real_path
from lmdiag.results import PREDICTIONS, RESULTS, Results, Run, load_run
from lmdiag.text import file_name, shortened
from lmdiag.types import BadInput

_NO_DATE = datetime.max.replace(tzinfo=UTC)

Identity = tuple[str, str, str, str, str | None, str]
"""Id, commit, kind, dtype and quantization of a model, and the signature of a run."""


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
    """A run that is listed.

    Attributes:
        submission: where it comes from.
        run: the run.
    """

    submission: Submission
    run: Run

    @property
    def results(self) -> Results:
        """The results of the run."""
        return self.run.results

    @property
    def name(self) -> str:
        """What the model is called."""
        return display_name(self.results.model)

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
            and PurePosixPath(file.path).name in (RESULTS, PREDICTIONS)
        ]
        folder = snapshot_download(
            repo_id,
            repo_type="dataset",
            revision=commit,
            allow_patterns=[glob.escape(file.path) for file in files],
        )
    return Path(folder), {file.path: file.last_commit.date for file in files if file.last_commit}


# ---- reading ------------------------------------------------------------------------------------


def read_entries(
    submissions: Sequence[Submission], benchmark: Benchmark, *, allow_local: bool = False
) -> tuple[list[Entry], list[Rejected]]:
    """Reads every run; of two of the same model and protocol the first one counts.

    Args:
        submissions: in the order in which they count.
        benchmark: the data that the runs must have been made on.
        allow_local: list models of local folders.
    """
    entries: dict[Identity, Entry] = {}
    rejected = []
    for submission in submissions:
        try:
            run = load_run(submission.folder, benchmark.data)
            named = name_reason(run.results.model, allow_local=allow_local)
            for reason in (*protocol_reasons(run.results.protocol), named):
                if reason is not None:
                    raise BadInput(reason)
            _ = run.predictions  # checks that they are those of the results
            entry = Entry(submission, run)
            if first := entries.get(entry.identity):
                raise BadInput(f"doubled: {first.submission.place} has the same model and protocol")
        except BadInput as error:
            rejected.append(Rejected(submission.place, (str(error),)))
        else:
            entries[entry.identity] = entry
    return list(entries.values()), rejected
