"""Run directories: where a run's files are, whose they are, and what is in them (SPEC 5)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmdiag import __version__
from lmdiag.form import HEAD, misfits
from lmdiag.form import RESULTS as FORM
from lmdiag.reading import a_mapping, is_folder, read_json, user_path
from lmdiag.redact import redacted
from lmdiag.run_files import (
    AGREEMENT,
    DATA_FILES,
    IDENTITY,
    PREDICTIONS,
    REPORT,
    RESULTS,
    check_files,
    digests,
    saved_files,
)
from lmdiag.schema import DIAGNOSTICS, BadInput, ModelInfo, Protocol
from lmdiag.training_steps import trained_model
from lmdiag.writing import clear_drafts, write_atomically

if TYPE_CHECKING:
    from filelock import FileLock
    from pandas import DataFrame

    from lmdiag.schema import Predictions
    from lmdiag.stimuli import Stimuli

__all__ = [
    "AGREEMENT", "PREDICTIONS", "REPORT", "RESULTS", "SCHEMA_VERSION", "Run", "RunDirectory",
    "check_files", "combine", "digests", "identity", "load_run", "model_slug", "protocol_slug",
    "read_results", "saved_files", "signature",
]  # fmt: skip

SCHEMA_VERSION = 1


FIGURES = ("value", "n", "ci_low", "ci_high", "chance", "sd", "runs")
"""What a cell of `results.json` can say of a figure."""


def signature(protocol: Protocol, fingerprint: str, *, run: int = 0) -> str:
    """Returns the line that makes two runs comparable exactly when it is equal.

    Knobs that stand at their default and that not every run has are left out; each adds a key.

    Args:
        protocol: what was asked, and how it is scored.
        fingerprint: of the data.
        run: number of the shuffle, for a single one; 0 for the first, or for all of a run.

    >>> signature(Protocol(), "1a2b3c4d")
    'lmdiag:0.1|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0'
    """
    version = ".".join(__version__.split(".")[:2])
    parts = {
        "lmdiag": version,
        "data": fingerprint,
        "unit": protocol.unit,
        "k": ",".join(map(str, protocol.k)),
        "t": f"{protocol.threshold:g}",
        "shuf": protocol.shuffles,
        "seed": protocol.seed,
        "perturb": "+".join(protocol.perturb) or None,
        "bos": None if protocol.bos == "auto" else protocol.bos,
        # "sample" tells these runs from those of versions that took the first rows
        "limit": protocol.limit and f"sample{protocol.limit}",
        "verbs": protocol.verbs,
        "run": run or None,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value is not None)


def combine(fingerprints: Mapping[str, str]) -> str:
    """Returns the fingerprint of several tasks' data; of a single task, its own."""
    if len(fingerprints) == 1:
        return next(iter(fingerprints.values()))
    lines = "\n".join(f"{task}:{fingerprints[task]}" for task in sorted(fingerprints))
    return hashlib.sha256(lines.encode()).hexdigest()[:8]


def model_slug(model_id: str, revision: str | None, name: str | None = None) -> str:
    """Returns the folder name of a model.

    `org/name` becomes org--name, and so does a relative path of a local folder. Of an absolute path
    it is the last name, with the folder above it where the last name is only a training step.

    Args:
        model_id: Hub id or local folder, as given.
        revision: branch, tag or commit, as given.
        name: what the user calls the model (`--name`); takes the place of the id.
    """
    folder = user_path(model_id)
    text = name or (_folder_name(folder) if is_folder(folder) else model_id)
    slug = _UNSAFE.sub("--", text).strip("-.") or "model"
    return slug if revision is None else f"{slug}@{_UNSAFE.sub('--', revision)}"


_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def _folder_name(folder: Path) -> str:
    path = Path(os.path.normpath(folder))
    if not path.is_absolute() and path.parts[:1] not in ((), ("..",)):
        return str(path)
    path = path.resolve()
    is_step = trained_model(str(path), None) == str(path.parent)
    return "/".join(path.parts[-2:]) if is_step else path.name


def protocol_slug(protocol: Protocol) -> str:
    """Returns the folder name of a protocol: what is asked, then the knobs that are turned.

    >>> protocol_slug(Protocol())
    'diagnostics-token'
    """
    default = Protocol()
    tasks = "diagnostics" if protocol.tasks == DIAGNOSTICS else "+".join(protocol.tasks)
    parts = [tasks, protocol.unit, *filter(None, ["+".join(protocol.perturb)])]
    for name in ("shuffles", "seed", "k", "threshold", "bos", "limit", "verbs"):
        value = getattr(protocol, name)
        if value != getattr(default, name):
            shown = "+".join(map(str, value)) if isinstance(value, tuple) else value
            parts.append(f"{name}{shown}")
    return "-".join(parts)


def identity(info: ModelInfo, protocol: Protocol, fingerprint: str) -> dict[str, Any]:
    """Returns what must be equal for two runs to share a directory: what decides the numbers."""
    facts = {
        "model": info.id,
        "commit": info.commit,
        "kind": info.kind,
        "dtype": info.dtype,
        "quantization": info.quantization,
        "signature": signature(protocol, fingerprint),
    }
    return {key: redacted(value) for key, value in facts.items()}


class RunDirectory:
    """The directory of one run, held by one process group at a time.

    Attributes:
        path: `<output>/<model slug>/<protocol>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: FileLock | None = None

    @property
    def journal(self) -> Path:
        """The folder of finished batches while the run is under way."""
        return self.path / "journal"

    def open(self, identity: Mapping[str, Any], *, overwrite: bool) -> bool:
        """Takes the directory for a run; returns whether a finished one is already there.

        A finished run whose predictions are gone counts as unfinished: it is made again. What a
        killed process left behind (temporary files, a journal that is no longer needed) is removed.

        Raises:
            BadInput: another process is at work here, the directory belongs to another run, or
                its files are damaged.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._acquire()
        clear_drafts(self.path)
        if overwrite:
            self._clear()
        holder = self._holder()
        if holder is not None:
            self._refuse_other(holder, identity)
        elif others := {path.name for path in self.path.iterdir()} - {".lock"}:
            own = others <= {*DATA_FILES, REPORT, "journal"}
            raise BadInput(
                f"{self.path} is not empty and is not a run directory: choose another --output"
                + (f", or --overwrite it (it has no {RESULTS})" if own else "")
            )
        if self._is_finished():
            self._clear_resuming()
            return True
        write_atomically(self.path / IDENTITY, json.dumps(identity, indent=1).encode())
        (self.path / RESULTS).unlink(missing_ok=True)
        return False

    def _is_finished(self) -> bool:
        """Whether there are results and all files that they were computed from.

        Raises:
            BadInput: a file is there that is not the one of the results.
        """
        if not (self.path / RESULTS).exists():
            return False
        results = read_document(self.path)
        names = {PREDICTIONS, *results.get("files", {})}
        if not all((self.path / name).exists() for name in names):
            return False
        check_files(self.path, results)
        return True

    def _acquire(self) -> None:
        from filelock import FileLock, Timeout

        self._lock = FileLock(self.path / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._lock = None
            raise BadInput(
                f"another lmdiag run is at work in {self.path}: "
                "wait for it, or choose another --output"
            ) from None

    def _clear(self) -> None:
        shutil.rmtree(self.journal, ignore_errors=True)
        for name in (RESULTS, IDENTITY, PREDICTIONS, AGREEMENT, REPORT):
            (self.path / name).unlink(missing_ok=True)

    def _clear_resuming(self) -> None:
        """Removes what only an unfinished run needs."""
        (self.path / IDENTITY).unlink(missing_ok=True)
        shutil.rmtree(self.journal, ignore_errors=True)

    def _holder(self) -> Mapping[str, Any] | None:
        """Returns the identity of the run that is in the directory, finished or not."""
        file = self.path / IDENTITY
        if (self.path / RESULTS).exists():
            return cast("Mapping[str, Any]", read_document(self.path).get("identity", {}))
        with told_to_overwrite():
            return a_mapping(read_json(file), str(file)) if file.exists() else None

    def _refuse_other(self, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
        for key, value in ours.items():
            if theirs.get(key) != value:
                raise BadInput(
                    f"{self.path} holds a run of another {key} ({theirs.get(key)}, not {value}): "
                    "choose another --output or --name, or --overwrite it"
                )

    def finish(self, results: Mapping[str, Any]) -> None:
        """Writes results.json, the mark of a finished run, and clears what only resuming needs."""
        text = json.dumps(redacted(dict(results)), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / RESULTS, text.encode())
        self._clear_resuming()

    def close(self) -> None:
        """Lets go of the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def read_document(path: Path) -> dict[str, Any]:
    """Returns the results.json of a run directory, of this schema version but otherwise unchecked.

    Raises:
        BadInput: there is none, it is no JSON, or another version wrote it.
    """
    file = path / RESULTS
    if not file.is_file():
        raise BadInput(f"{path} is not a finished run: it has no {RESULTS}; `lmdiag run` writes it")
    with told_to_overwrite():
        results = read_json(file)
        if not isinstance(results, dict) or results.get("schema_version") != SCHEMA_VERSION:
            raise BadInput(
                f"{file} is not of schema version {SCHEMA_VERSION}, which this lmdiag has"
            )
        refuse_misfits(file, results, HEAD)
    return results


def records(task: str, setting: str, measures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields each figure of a setting with its place, the whole of a measure before its parts."""
    for name, measure in measures.items():
        cells = [("", "", measure)]
        for by, levels in measure["by"].items():
            cells += [(by, level, cell) for level, cell in levels.items()]
        for by, level, cell in cells:
            place = {"task": task, "setting": setting, "measure": name, "by": by, "level": level}
            yield place | {key: cell.get(key) for key in FIGURES}


def read_results(path: Path) -> dict[str, Any]:
    """Returns the results.json of a run directory; its keys and types are checked.

    Raises:
        BadInput: there is none, it is no JSON, another version wrote it, or a value is missing or
            of the wrong type.
    """
    results = read_document(path)
    with told_to_overwrite():
        refuse_misfits(path / RESULTS, results, FORM)
        if not results["tasks"].keys() <= results["data"]["tasks"].keys():
            raise BadInput(f"{path / RESULTS}: tasks and data.tasks do not name the same tasks")
        if not results["protocol"]["k"]:
            raise BadInput(f"{path / RESULTS}: protocol.k is empty")
    return results


def refuse_misfits(file: Path, value: Any, form: Any) -> None:
    """Raises BadInput that names the first part of a file that does not have the form."""
    if complaint := next(misfits(value, form), None):
        raise BadInput(f"{file}: {complaint}")


@contextmanager
def told_to_overwrite() -> Iterator[None]:
    """Ends a message on a damaged file of a run with what to do about it."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{error}: run again with --overwrite") from None


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run, read back.

    Attributes:
        path: the run directory.
        results: `results.json`.
        stimuli: task -> its rows, unperturbed.
    """

    path: Path
    results: dict[str, Any]
    stimuli: dict[str, Stimuli]

    @cached_property
    def predictions(self) -> dict[str, dict[tuple[str, int], Predictions]]:
        """Task -> (perturbation, run) -> its predictions, in the order of the stimuli."""
        from lmdiag.predictions import read_run

        check_files(self.path, self.results)
        protocol = Protocol.from_json(self.results["protocol"])
        facts: dict[str, Any] = {
            "model": ModelInfo.from_json(self.results["model"]),
            **{name: getattr(protocol, name) for name in ("unit", "bos", "seed", "verbs")},
        }
        found = read_run(self.path, self.stimuli, self.results)
        self._refuse_missing(found)
        return {
            task: {key: replace(part, **facts) for key, part in parts.items()}
            for task, parts in found.items()
        }

    def _refuse_missing(self, found: Mapping[str, Mapping[tuple[str, int], Predictions]]) -> None:
        """Raises BadInput for a setting of `results.json` that has no predictions."""
        for task, settings in self.results["tasks"].items():
            for name in settings:
                if (name, 0) not in found[task]:
                    raise BadInput(
                        f"{self.path / PREDICTIONS} has no predictions for {task} in setting "
                        f"{name}: run again with --overwrite"
                    )

    def __repr__(self) -> str:
        tasks = ", ".join(self.results["tasks"])
        signature = self.results["signature"]
        return f"<Run of {self.results['model']['id']}: {tasks}; {signature}; {self.path}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row for every figure, those of all break-downs too.

        Proportions are in [0, 1]. `by` and `level` are "" for a measure as a whole.
        """
        from pandas import DataFrame

        return DataFrame(
            record
            for task, settings in self.results["tasks"].items()
            for setting, content in settings.items()
            for record in records(task, setting, content["measures"])
        )


def load_run(path: str | Path, data: str | None = None) -> Run:
    """Reads a finished run and the data it was made on.

    Args:
        path: run directory.
        data: where the data set is; None for where the run found it. A relative path of the run's
            is looked for here, then in the folders that the run lies in.

    Raises:
        BadInput: no finished run, or the data set is not the one it was made on.
    """
    from lmdiag import stimuli

    path = Path(path)
    results = read_results(path)
    source = data or _located(results["data"]["source"], path)
    sample = {name: results["protocol"][name] for name in ("limit", "seed")}
    loaded = {}
    for task, facts in results["data"]["tasks"].items():
        revision = results["data"]["revision"] if data is None else None
        loaded[task] = stimuli.load(source, task, revision=revision, **sample)
        if loaded[task].fingerprint != facts["fingerprint"]:
            raise BadInput(
                f"{source} is not the data {path} was made on: its {task} has fingerprint "
                f"{loaded[task].fingerprint}, the run's is {facts['fingerprint']}; "
                "name the right one by --data"
            )
    return Run(path, results, loaded)


def _located(source: str, run: Path) -> str:
    """Returns where a run's data lie as seen from here; the source itself if they are not near."""
    places = [Path(source), *(folder / source for folder in run.resolve().parents)]
    return str(next((place for place in places if place.exists()), source))
