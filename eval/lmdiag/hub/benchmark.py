"""The data that submissions are measured on, and the figures that are shown of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import diagnostics
from lmdiag.hub.names import is_on_hub
from lmdiag.protocol import Protocol
from lmdiag.reading import real_path
from lmdiag.results import Figure, Place, Results
from lmdiag.text import first_few, visible
from lmdiag.types import AGREEMENT, DIAGNOSTICS

if TYPE_CHECKING:
    from lmdiag.diagnostics import LeaderboardColumn
    from lmdiag.stimuli import Stimuli


def columns() -> dict[Place, LeaderboardColumn]:
    """Returns the address of each figure of the leaderboard, with what its diagnostic declares.

    They are in the order of the diagnostics, and of the tasks in `eval.yaml`.
    """
    return {
        Place(diagnostic.name, "none", column.measure, column.by, column.level): column
        for diagnostic in diagnostics.built_in().values()
        for column in diagnostic.leaderboard
    }


def leaderboard_figures(results: Results) -> dict[str, Figure]:
    """Returns the id of each task of the benchmark -> the run's figure, without undefined ones."""
    figures = {column.task_id: results.figure(place) for place, column in columns().items()}
    return {key: figure for key, figure in figures.items() if figure and figure.value is not None}


@dataclass
class Benchmark:
    """The data that submissions are measured on, loaded once and only as far as needed.

    Attributes:
        data: built directory or Hub data set id.
        revision: of a Hub data set.
    """

    data: str
    revision: str | None = None
    _loaded: dict[str, Stimuli] = field(default_factory=dict, repr=False)
    _verbs: list[tuple[str, str]] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """What to call the data: the name of a data set, or the last part of a directory's path."""
        return self.data if is_on_hub(self.data) else real_path(Path(self.data)).name

    def stimuli(self, task: str) -> Stimuli:
        """The rows of a task; they are loaded once, those of agreement with its verbs.

        Raises:
            BadInput: the data set cannot be loaded or does not have the task.
        """
        if task not in self._loaded:
            from lmdiag import stimuli

            rows = stimuli.load(self.data, task, revision=self.revision)
            if task == AGREEMENT:
                self._verbs = stimuli.load_verbs(self.data, revision=self.revision)
            self._loaded[task] = rows
        return self._loaded[task]

    def verbs(self) -> list[tuple[str, str]]:
        """The verbs of EW and MW, as (singular, plural); raises what `stimuli` raises."""
        self.stimuli(AGREEMENT)
        return self._verbs


def protocol_reasons(protocol: Protocol) -> Iterator[str]:
    """Yields why runs of a protocol are not those of the leaderboard, which has the default one."""
    tasks = protocol.tasks
    if missing := [task for task in DIAGNOSTICS if task not in tasks]:
        yield f"the run is partial: it lacks {', '.join(missing)}"
    if foreign := [task for task in tasks if task not in diagnostics.built_in()]:
        yield f"its tasks are not those of the benchmark: {first_few(foreign, 9)}"
    elif foreign := [task for task in tasks if not diagnostics.get(task).in_data_set]:
        yield f"the benchmark does not contain {', '.join(foreign)}: submit a run without it"
    if protocol.limit is not None:
        rows = protocol.limit
        yield f"the run is partial: a sample of {rows} rows of each task was asked (--limit)"
    if protocol.perturb:
        yield f"the run is perturbed ({first_few(protocol.perturb, 6)}): submit a plain one"
    judged_above = {"tasks", "limit", "perturb", "verbs"}
    for name in (knob.name for knob in fields(Protocol) if knob.name not in judged_above):
        default, value = getattr(Protocol(), name), getattr(protocol, name)
        if value != default:
            a, b = ("none" if x == "" else visible(str(x)) for x in (value, default))
            yield f"another protocol: {name} is {a}, the leaderboard's is {b}"
