"""A finished run, read back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.files import exists, real_path
from lmdiag.protocol import Predictions, asking_of
from lmdiag.results.figure import Figure, Place
from lmdiag.results.folder import PREDICTIONS, check_files, read_results, run_folders
from lmdiag.results.predictions import read_run
from lmdiag.results.results import Results
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
    """

    path: Path
    results: Results
    stimuli: dict[str, Stimuli]

    @cached_property
    def predictions(self) -> dict[str, dict[tuple[str, int], Predictions]]:
        """Task -> (perturbation, run) -> its predictions, in the order of the stimuli."""
        check_files(self.path, self.results)
        model, protocol = self.results.model, self.results.protocol
        asked = asking_of(protocol) | {"seed": protocol.seed, "verbs": protocol.verbs}
        predictions = read_run(self.path, self.stimuli, model.kind)
        for task, settings in self.results.tasks.items():
            for setting in settings:
                if (setting, 0) not in predictions[task]:
                    raise BadInput(
                        f"{self.path / PREDICTIONS} has no predictions for {task} in setting "
                        f"{setting}: run again with --overwrite"
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

    path = Path(path)
    if len(found := run_folders([path])) == 1:
        [path] = found
    results = read_results(path)
    protocol = results.protocol
    source = data or _located(results.data.source, path)
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


def _located(source: str, run: Path) -> str:
    """Returns where a run's data lie as seen from here; the source itself if they are not near.

    A folder of runs may have the name of the data: it is passed over.
    """
    from lmdiag import stimuli

    places = [Path(source), *(folder / source for folder in real_path(run).parents)]
    return str(next((x for x in places if exists(x) and stimuli.is_data(x)), source))
