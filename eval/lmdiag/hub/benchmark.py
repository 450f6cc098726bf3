"""The data that submissions are measured on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.hub.client import REPO_ID
from lmdiag.schema import AGREEMENT

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli


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
    _verbs: int | None = field(default=None, repr=False)

    @property
    def is_on_hub(self) -> bool:
        """Whether the data are a data set of the Hub, not a directory of this machine."""
        return not Path(self.data).exists() and bool(REPO_ID.fullmatch(self.data))

    @property
    def name(self) -> str:
        """What to call the data: of a directory its last name, for paths are no one's business."""
        return self.data if self.is_on_hub else Path(self.data).resolve().name

    def stimuli(self, task: str) -> Stimuli:
        """The rows of a task.

        Raises:
            BadInput: the data set cannot be loaded or does not have the task.
        """
        if task not in self._loaded:
            if self.is_sealed:
                raise NotLoaded(task)
            from lmdiag import stimuli

            self._loaded[task] = stimuli.load(self.data, task, revision=self.revision)
        return self._loaded[task]

    def verbs(self) -> int:
        """Number of pairs in its list of verbs.

        Raises:
            BadInput: the data set has none.
        """
        if self._verbs is None:
            if self.is_sealed:
                raise NotLoaded(AGREEMENT)
            from lmdiag import stimuli

            self._verbs = len(stimuli.load_verbs(self.data, revision=self.revision))
        return self._verbs

    def tasks(self) -> list[str]:
        """The tasks that are loaded."""
        return list(self._loaded)

    def sealed(self) -> Benchmark:
        """Returns a copy of what is loaded, to be sent to another process."""
        # Without the columns that `Stimuli` keeps once they were asked for: they are large.
        loaded = {task: replace(rows) for task, rows in self._loaded.items()}
        return Benchmark(self.name, self.revision, True, loaded, self._verbs)
