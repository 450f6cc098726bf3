"""Finished runs, read back; runs of one model on different tasks as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.files import exists, real_path
from lmdiag.protocol import Predictions, asking_of
from lmdiag.results.figure import Figure, Place
from lmdiag.results.folder import PREDICTIONS, check_files, read_results, run_folders
from lmdiag.results.predictions import SettingKey, read_run
from lmdiag.results.results import DataInfo, Results
from lmdiag.results.signatures import combine, signature
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.stimuli import Stimuli


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run, read back.

    Attributes:
        path: the run directory.
        results: its figures and facts.
        stimuli: task -> its rows, unperturbed.
        parts: runs on different tasks that this one joins; see `joined_runs`.
    """

    path: Path
    results: Results
    stimuli: dict[str, Stimuli]
    parts: Sequence[Run] = ()

    @cached_property
    def predictions(self) -> dict[str, dict[SettingKey, Predictions]]:
        """Task -> (perturbation, run) -> its predictions, in the order of the stimuli."""
        if self.parts:
            return {task: rows for part in self.parts for task, rows in part.predictions.items()}
        check_files(self.path, self.results)
        model, protocol = self.results.model, self.results.protocol
        asked = asking_of(protocol) | {"seed": protocol.seed, "verbs": protocol.verbs}
        predictions = read_run(self.path, self.stimuli)
        for task, settings in self.results.tasks.items():
            if lacking := [name for name in settings if (name, 0) not in predictions[task]]:
                raise BadInput(
                    f"{self.path / PREDICTIONS} has no predictions for {task} in setting "
                    f"{lacking[0]}: run again with --overwrite"
                )
        return {
            task: {key: replace(part, model=model, **asked) for key, part in parts.items()}
            for task, parts in predictions.items()
        }

    def __repr__(self) -> str:
        tasks = ", ".join(self.results.tasks)
        return f"<Run of {self.results.model.id}: {tasks}; {self.results.signature}; {self.path}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `frame_of`."""
        return frame_of(self.results.figures())


def frame_of(figures: Iterable[tuple[Place, Figure]]) -> DataFrame:
    """Returns figures as a pandas table, with the parts of their addresses as columns.

    Proportions are in [0, 1]. `by` and `level` are "" for a measure as a whole.
    """
    from pandas import DataFrame

    columns = (
        "value", "n", "ci_low", "ci_high", "chance", "versus_chance", "p_chance", "sd", "runs",
        "statistic",
    )  # fmt: skip
    return DataFrame(
        place._asdict() | {name: getattr(figure, name) for name in columns}
        for place, figure in figures
    )


def load_run(path: str | Path, data: str | None = None) -> Run:
    """Reads a finished run and the data it was made on.

    Args:
        path: run directory, or a folder with a single one.
        data: where the data set is; None for where it was when the run was made. A relative path
            is looked for here, then in the folders above the run directory.

    Raises:
        BadInput: no finished run, or the data set is not the one it was made on.
    """
    from lmdiag import stimuli

    folders = run_folders([Path(path)])
    path = folders[0] if len(folders) == 1 else Path(path)
    results = read_results(path)
    protocol, source = results.protocol, data or results.data.source
    if data is None:  # a folder of runs may have the name of the data: it is passed over
        near = [Path(source), *(folder / source for folder in real_path(path).parents)]
        source = str(next((x for x in near if exists(x) and stimuli.is_data(x)), source))
    revision = results.data.revision if data is None else None
    loaded = {}
    for task, facts in results.data.tasks.items():
        loaded[task] = stimuli.load(
            source, task, revision=revision, limit=protocol.limit, seed=protocol.seed
        )
        if loaded[task].fingerprint != facts.fingerprint:
            raise BadInput(
                f"{source} is not the data {path} was made on: its {task} has fingerprint "
                f"{loaded[task].fingerprint}, the run's is {facts.fingerprint}; "
                "name the right one by --data"
            )
    return Run(path, results, loaded)


# ---- runs on different tasks as one --------------------------------------------------------------


def joined_runs(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs, those of one model on different tasks as one; see `joined_results`."""
    joined = []
    for group in _groups([run.results for run in runs]):
        parts = [runs[i] for i in group]
        stimuli = {task: rows for part in parts for task, rows in part.stimuli.items()}
        run = Run(parts[0].path, _joined([part.results for part in parts]), stimuli, parts)
        joined.append(run if len(parts) > 1 else parts[0])
    return joined


def joined_results(results: Sequence[Results]) -> list[Results]:
    """Returns the results, those of one model on different tasks as one, in the order given.

    They are joined if the model is the same (commit and dtype included), no task is in two of them,
    and their protocols differ in tasks, perturbations and verbs alone.
    """
    return [_joined([results[i] for i in group]) for group in _groups(results)]


def _groups(results: Sequence[Results]) -> list[list[int]]:
    """Positions of the results that are joined, group by group."""

    def shared(result: Results) -> tuple[Any, ...]:
        protocol = asdict(result.protocol) | dict.fromkeys(("tasks", "perturb", "verbs"))
        return result.model, protocol

    groups: list[list[int]] = []
    for i, result in enumerate(results):
        for group in groups:
            tasks = {task for j in group for task in results[j].tasks}
            if shared(results[group[0]]) == shared(result) and tasks.isdisjoint(result.tasks):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _joined(parts: Sequence[Results]) -> Results:
    """The parts as one; what was recorded once per run is added up, or taken from the first."""
    first = parts[0]
    if len(parts) == 1:
        return first
    protocol = replace(
        first.protocol,
        tasks=tuple(task for part in parts for task in part.protocol.tasks),
        perturb=tuple(dict.fromkeys(name for part in parts for name in part.protocol.perturb)),
        verbs=next((part.protocol.verbs for part in parts if part.protocol.verbs), None),
    )
    tasks = {task: facts for part in parts for task, facts in part.data.tasks.items()}
    fingerprint = combine({task: facts.fingerprint for task, facts in tasks.items()})
    asks_words = any(part.diagnostic(task).asks == "word" for part in parts for task in part.tasks)
    sources = dict.fromkeys(part.data.source for part in parts)
    revision = first.data.revision if len(sources) == 1 else None
    return replace(
        first,
        signature=signature(protocol, fingerprint, asks_words=asks_words),
        data=DataInfo(", ".join(sources), revision, fingerprint, tasks),
        protocol=protocol,
        seconds={
            step: sum(part.seconds.get(step, 0.0) for part in parts) for step in first.seconds
        },
        finished=max(part.finished for part in parts),
        n_contexts=sum(part.n_contexts for part in parts),
        tasks={task: settings for part in parts for task, settings in part.tasks.items()},
        identity={},
        files={},
    )
