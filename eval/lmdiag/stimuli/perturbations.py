"""Applies the perturbations that diagnostics declare: the same rows with other contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from lmdiag import diagnostics
from lmdiag.text import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

NONE = "none"
"""The setting without a perturbation."""


def names() -> list[str]:
    """Returns the names of all perturbations that built-in diagnostics declare."""
    declared: dict[str, None] = {}  # in order, each once
    for diagnostic in diagnostics.built_in().values():
        for perturbation in diagnostic.perturbations:
            declared[perturbation.name] = None
    return [*declared]


def is_shuffled(task: str, setting: str) -> bool:
    """Returns whether a setting depends on the seed and is run several times."""
    perturbation = diagnostics.get(task).perturbation(setting)
    return perturbation is not None and perturbation.shuffled


def chosen(asked: Sequence[str], tasks: Sequence[str]) -> tuple[str, ...]:
    """Returns the perturbations that are asked for, in the order of `names`.

    `BadInput`: an unknown one, one that none of the tasks has, or `none` together with another.

    Args:
        asked: names of perturbations; `all` stands for those of the tasks, `none` for no one.
        tasks: that are run.
    """
    choices = [NONE, "all", *names()]
    of_tasks = {p.name for task in tasks for p in diagnostics.get(task).perturbations}
    for name in asked:
        if name not in choices:
            unknown = f"unknown perturbation {name!r}{suggest(name, choices)}"
            raise BadInput(f"{unknown}: choose from {', '.join(choices)}")
        if name not in (NONE, "all", *of_tasks):
            built_in = diagnostics.built_in().items()
            owners = [task for task, diagnostic in built_in if diagnostic.perturbation(name)]
            made = f"the perturbation {name} is made for {' and '.join(owners)}"
            remedy = f"add such a task, or leave {name} out"
            raise BadInput(f"{made}, not for {', '.join(tasks)}: {remedy}")
    if NONE in asked and len(asked) > 1:
        raise BadInput("--perturb none cannot be combined with other perturbations: leave it out")
    wanted = {*asked, *of_tasks} if "all" in asked else {*asked}
    return tuple(name for name in names() if name in wanted)


def settings(task: str, perturbations: Sequence[str], shuffles: int) -> list[tuple[str, int]]:
    """Returns each (perturbation, number of the shuffle) of a task, the unperturbed one first.

    Perturbations that the task does not have are ignored. The number is 0 if nothing is shuffled.

    Args:
        task: name of a diagnostic.
        perturbations: names of the perturbations that are wanted.
        shuffles: number of shuffles of a perturbation that is random.

    >>> settings("cprag102", ["shuf", "trunc", "obj"], 2)
    [('none', 0), ('shuf', 0), ('shuf', 1), ('trunc', 0)]
    """
    runs = [(NONE, 0)]
    for perturbation in diagnostics.get(task).perturbations:
        if perturbation.name in perturbations:
            n_shuffles = shuffles if perturbation.shuffled else 1
            runs += [(perturbation.name, shuffle) for shuffle in range(n_shuffles)]
    return runs


def perturb(stimuli: Stimuli, name: str, run: int, seed: int) -> Stimuli:
    """Returns the stimuli with perturbed contexts, which are made once and kept with them.

    `run`, the number of the shuffle, and `seed` are without effect where nothing is shuffled.

    Raises:
        BadInput: an unknown perturbation, one of another task, or a row without the words that are
            to be replaced.
    """
    contexts = PerturbedContexts(stimuli, name, run, seed)
    if contexts.key not in stimuli.perturbed:
        stimuli.perturbed[contexts.key] = stimuli.with_contexts([*contexts])
    return stimuli.perturbed[contexts.key]


class PerturbedContexts(Sequence[str]):
    """The perturbed contexts of rows; each context is made when it is read.

    Scores of a shuffled setting read hardly any context, and to make all contexts takes longer than
    scoring.

    Args:
        stimuli: the rows.
        name: of the perturbation. `BadInput` for an unknown name, or one of another task.
        run: number of the shuffle, from 0.
        seed: of the shuffles.

    Attributes:
        key: (name, number of the shuffle, seed) of the setting, under which `Stimuli.perturbed` has
            its rows.
    """

    def __init__(self, stimuli: Stimuli, name: str, run: int, seed: int) -> None:
        perturbation = diagnostics.get(stimuli.task).perturbation(name)
        if perturbation is None:
            chosen([name], [stimuli.task])  # refuses all names but `none` and `all`
            raise BadInput(f"{name} is not one perturbation: choose from {', '.join(names())}")
        self._columns = stimuli.columns()
        for column in perturbation.needs:
            if column not in self._columns:
                needs = f"the perturbation {name} needs the column {column}"
                raise BadInput(f"{stimuli.source}: {needs}")
        # without shuffling, all runs and seeds are one setting
        self.key = (name, run, seed) if perturbation.shuffled else (name, 0, 0)
        self._change = perturbation.change
        self._run_and_seed = run, seed

    def __len__(self) -> int:
        return len(self._columns["id"])

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        """Returns the perturbed context of a row, or those of a slice of the rows."""
        if isinstance(row, slice):
            return [self[number] for number in range(len(self))[row]]
        stimulus = {name: values[row] for name, values in self._columns.items()}
        return self._change(stimulus, *self._run_and_seed)
