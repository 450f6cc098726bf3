"""The data that submissions are measured on, and the figures that are shown of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import diagnostics
from lmdiag.hub.names import is_on_hub
from lmdiag.reading import real_path
from lmdiag.results import Figure, Place, Results
from lmdiag.types import AGREEMENT

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


class NotLoaded(Exception):
    """A sealed benchmark was asked for a task that it was sealed without: `args[0]`."""


@dataclass
class Benchmark:
    """The data that submissions are measured on, loaded once and only as far as needed.

    Attributes:
        data: built directory or Hub data set id.
        revision: of a Hub data set.
        is_sealed: whether nothing more may be loaded, as in the process that judges submissions.
    """

    data: str
    revision: str | None = None
    is_sealed: bool = False
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
            NotLoaded: the benchmark is sealed.
        """
        if task not in self._loaded:
            if self.is_sealed:
                raise NotLoaded(task)
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

    @property
    def n_rows(self) -> int:
        """Number of rows that are loaded."""
        return sum(map(len, self._loaded.values()))

    def sealed(self) -> Benchmark:
        """Returns a copy of what is loaded, to be sent to another process."""
        # Without the columns that `Stimuli` keeps once they were asked for: they are large.
        loaded = {task: replace(rows) for task, rows in self._loaded.items()}
        return Benchmark(self.name, self.revision, True, loaded, self._verbs)
