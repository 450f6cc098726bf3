"""Checks that the figures of a run are those that follow from its predictions.

Anybody can write figures, and a digest that fits them, so that a digest alone proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from lmdiag.asking.elicitation import wording_of
from lmdiag.asking.questions import Setting, distinct_questions
from lmdiag.results.results import Figure, Results, SettingResults
from lmdiag.stimuli.perturbations import NONE, is_shuffled, perturb
from lmdiag.types import BadInput, Sentence

if TYPE_CHECKING:
    from pathlib import Path

    from lmdiag.stimuli import Stimuli

_ROUNDING = {"rel_tol": 1e-9, "abs_tol": 1e-12}
"""Two values that differ by less are the same; the order of a sum differs between systems."""

_OF_BOUNDS = {"rel_tol": 1e-6, "abs_tol": 1e-9}
"""The same for bounds of intervals: the logit of a mean near 1 has few digits."""

_NUMBERS = {
    "value": ("", _ROUNDING),
    "n": ("n of ", _ROUNDING),
    "n_tied": ("number of ties of ", _ROUNDING),
    "chance": ("chance of ", _ROUNDING),
    "sd": ("sd of ", _ROUNDING),
    "runs": ("shuffles of ", _ROUNDING),
    "ci_low": ("low bound of ", _OF_BOUNDS),
    "ci_high": ("high bound of ", _OF_BOUNDS),
}
"""Number of a figure -> what it is called before the name of the measure, and its rounding."""

_NOT_COMPARED = ("measures", "signature", "not_computed")
"""Fields of `SettingResults` that are compared figure by figure, or are words for readers."""


def check_figures(
    file: Path,
    stated: Results,
    given: Mapping[str, Mapping[str, SettingResults]],
    stimuli: Mapping[str, Stimuli],
) -> None:
    """Checks that all figures and counts of a run follow from its predictions and rows.

    Args:
        file: `results.json`, for messages.
        stated: its content.
        given: task -> setting -> what follows.
        stimuli: task -> its rows.

    Raises:
        BadInput: names the first figure or count that does not follow, with both values.
    """
    for problem in _differences(stated, given, stimuli):
        raise BadInput(f"{file}: {problem}: run again with --overwrite")


def _differences(
    stated: Results,
    given: Mapping[str, Mapping[str, SettingResults]],
    stimuli: Mapping[str, Stimuli],
) -> Iterator[str]:
    """Yields what differs between the results and what follows from predictions and rows."""
    yield from _differences_of_contexts(stated, stimuli)
    yield from _unequal("task", stated.tasks, given)
    for task, settings in stated.tasks.items():
        yield from _unequal(f"setting of {task}", settings, given[task])
        for setting, content in settings.items():
            what = f"of {task}" if len(settings) == 1 else f"of {task} in setting {setting}"
            for problem in _differences_of_setting(content, given[task][setting]):
                yield f"{problem}, {what}"


def _differences_of_contexts(results: Results, stimuli: Mapping[str, Stimuli]) -> Iterator[str]:
    """Yields that the number of contexts is another than that of the distinct questions.

    To count the questions of shuffled settings, all their texts would have to be made: they are
    from none to one per row and shuffle.
    """
    protocol = results.protocol
    wording = wording_of(protocol)
    settings = []
    most = 0
    for task, names in results.tasks.items():
        for name in names:
            if is_shuffled(task, name):
                most += protocol.shuffles * len(stimuli[task])
                continue
            rows = stimuli[task] if name == NONE else perturb(stimuli[task], name, 0, protocol.seed)
            settings.append(Setting(rows, name, wording=wording))
    parts = distinct_questions(settings, kind=results.model.kind, cased=results.model.cased)
    contexts = {q if isinstance(q, Sentence) else q.query for part in parts for q in part}
    least = len(contexts)
    if not least <= results.n_contexts <= least + most:
        given = f"{least}" if not most else f"{least} to {least + most}"
        yield f"n_contexts is {results.n_contexts}, but {given} follow from the rows"


def _differences_of_setting(stated: SettingResults, given: SettingResults) -> Iterator[str]:
    """Yields what differs between the figures and counts of one setting."""
    yield from _unequal("measure", stated.measures, given.measures)
    for name, measure in stated.measures.items():
        yield from _differences_of_measure(name, measure, given.measures[name])
    for field in fields(SettingResults):
        if field.name in _NOT_COMPARED:
            continue
        old = getattr(stated, field.name)
        new = getattr(given, field.name)
        if isinstance(old, list) and len(old) != len(new):
            yield _problem(f"number of {field.name}", len(old), len(new))
        elif old != new:
            yield _problem(field.name, old, new)


def _differences_of_measure(name: str, stated: Figure, given: Figure) -> Iterator[str]:
    """Yields what differs between two figures, or between two of their levels."""
    yield from _differences_of_figure(name, stated, given)
    yield from _unequal(f"break-down of {name}", stated.by, given.by)
    for by, levels in stated.by.items():
        yield from _unequal(f"level of {name} by {by}", levels, given.by[by])
        for level, figure in levels.items():
            yield from _differences_of_figure(
                f"{name} at {by} {level}", figure, given.by[by][level]
            )


def _differences_of_figure(name: str, stated: Figure, given: Figure) -> Iterator[str]:
    """Yields the numbers that differ between two figures, and other statistics."""
    if stated.statistic != given.statistic:
        yield _problem(f"statistic of {name}", stated.statistic, given.statistic)
    for key, (what, rounding) in _NUMBERS.items():
        old = getattr(stated, key)
        new = getattr(given, key)
        if not _is_same(old, new, rounding):
            yield _problem(f"{what}{name}", old, new)


def _problem(what: str, stated: object, given: object) -> str:
    return f"{what} is {stated}, but {given} follows from the predictions"


def _is_same(stated: float | None, given: float | None, rounding: Mapping[str, float]) -> bool:
    """Whether two numbers of figures, None for undefined ones, are the same but for rounding."""
    if stated is None or given is None or math.isnan(given):
        return stated == given
    return stated == given or math.isclose(stated, given, **rounding)


def _unequal(
    what: str, stated: Collection[str], given: Sequence[str] | Mapping[str, object]
) -> Iterator[str]:
    """Yields the first name that only the results have, or only what follows."""
    for name in sorted({*stated} ^ {*given}):
        where = "in results.json alone" if name in {*stated} else "not in results.json"
        yield f"the {what} {name} is {where}"
        return
