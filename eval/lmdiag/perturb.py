"""Applies the perturbations that diagnostics declare: the same rows with other contexts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lmdiag import diagnostics
from lmdiag.text import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

NONE = "none"
"""The setting without a perturbation."""


def names() -> list[str]:
    """Returns the names of all perturbations."""
    declared = diagnostics.built_in().values()
    return list(dict.fromkeys(each.name for of in declared for each in of.perturbations))


def tasks_with(name: str) -> list[str]:
    """Returns the tasks that have a perturbation."""
    return [task for task, each in diagnostics.built_in().items() if each.perturbation(name)]


def is_shuffled(task: str, setting: str) -> bool:
    """Returns whether a setting depends on the seed and is run several times."""
    perturbation = diagnostics.get(task).perturbation(setting)
    return perturbation is not None and perturbation.shuffled


def settings(task: str, asked: Iterable[str], shuffles: int) -> list[tuple[str, int]]:
    """Returns the (perturbation, run) in which a task is asked, the unperturbed one first.

    Args:
        task: the task; perturbations that it does not have are ignored.
        asked: names of perturbations, or `all`, or `none`.
        shuffles: number of runs of each shuffled setting.

    Raises:
        BadInput: an unknown perturbation, or fewer than one run of a shuffled setting.

    >>> settings("cprag102", ["shuf", "trunc", "obj"], 2)
    [('none', 0), ('shuf', 0), ('shuf', 1), ('trunc', 0)]
    """
    wanted = set(asked) - {NONE}
    for name in sorted(wanted - {*names(), "all"}):
        raise _unknown(name, [*names(), "all", NONE])
    chosen = [(NONE, 0)]
    for each in diagnostics.get(task).perturbations:
        if each.name in wanted or "all" in wanted:
            if each.shuffled and shuffles < 1:
                raise BadInput(f"--shuffles must be at least 1 for {each.name}, not {shuffles}")
            chosen += [(each.name, run) for run in range(shuffles if each.shuffled else 1)]
    return chosen


def _unknown(name: str, choices: list[str]) -> BadInput:
    return BadInput(
        f"unknown perturbation {name!r}{suggest(name, choices)}: choose from {', '.join(choices)}"
    )


def perturb(stimuli: Stimuli, name: str, run: int, seed: int) -> Stimuli:
    """Returns the stimuli with perturbed contexts; all other columns stay.

    Args:
        stimuli: rows of a task that has the perturbation.
        name: of the perturbation.
        run: number of the shuffle; without effect where nothing is shuffled.
        seed: of the shuffles; likewise.

    Raises:
        BadInput: an unknown perturbation, one of another task, or a row without the words that are
            to be replaced.
    """
    perturbation = diagnostics.get(stimuli.task).perturbation(name)
    if perturbation is None:
        if not (tasks := tasks_with(name)):
            raise _unknown(name, names())
        raise BadInput(f"the perturbation {name} is for {tasks[0]}, not for {stimuli.task}")
    columns = stimuli.columns()
    for column in perturbation.needs:
        if column not in columns:
            raise BadInput(f"{stimuli.source}: the perturbation {name} needs the column {column}")
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return stimuli.with_contexts([perturbation.change(row, run, seed) for row in rows])
