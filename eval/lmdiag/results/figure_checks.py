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

_ROUNDING_OF_BOUNDS = {"rel_tol": 1e-6, "abs_tol": 1e-9}
"""The same for bounds of intervals: the logit of a mean near 1 has few digits."""

_NUMBERS = {
    "value": ("", _ROUNDING),
    "n": ("n of ", _ROUNDING),
    "n_tied": ("number of ties of ", _ROUNDING),
    "chance": ("chance of ", _ROUNDING),
    "sd": ("sd of ", _ROUNDING),
    "runs": ("shuffles of ", _ROUNDING),
    "ci_low": ("low bound of ", _ROUNDING_OF_BOUNDS),
    "ci_high": ("high bound of ", _ROUNDING_OF_BOUNDS),
}
"""Field of a figure -> its name in messages, before that of the measure, and its tolerance."""

_NOT_COMPARED = ("measures", "signature", "not_computed")
"""Fields of `SettingResults` that are compared figure by figure, or are words for readers."""


def check_figures(
    file: Path,
    stated: Results,
    computed: Mapping[str, Mapping[str, SettingResults]],
    stimuli: Mapping[str, Stimuli],
) -> None:
    """Checks that all figures and counts of a run follow from its predictions and rows.

    Args:
        file: `results.json`, for messages.
        stated: its content.
        computed: task -> setting -> the results that follow from the predictions.
        stimuli: task -> its rows.

    Raises:
        BadInput: names the first figure or count that does not follow, with both values.
    """
    # the first line alone is taken: what follows it in `_differences` may not run
    for problem in _differences(stated, computed, stimuli):
        raise BadInput(f"{file}: {problem}: run again with --overwrite")


def _differences(
    stated: Results,
    computed: Mapping[str, Mapping[str, SettingResults]],
    stimuli: Mapping[str, Stimuli],
) -> Iterator[str]:
    """Yields a line for each difference between results and what follows from predictions and rows.

    The caller must stop at the first line. After a line of `_first_unmatched_name`, the code goes
    on to compare the names one by one, and a name that is in the results alone is a `KeyError`. The
    functions below, which this one calls, are to be used in the same way.

    The arguments are those of `check_figures`.
    """
    yield from _differences_of_contexts(stated, stimuli)
    yield from _first_unmatched_name("task", stated.tasks, computed)
    for task, settings in stated.tasks.items():
        yield from _first_unmatched_name(f"setting of {task}", settings, computed[task])
        for setting, content in settings.items():
            where = f"of {task}" if len(settings) == 1 else f"of {task} in setting {setting}"
            for problem in _differences_of_setting(content, computed[task][setting]):
                yield f"{problem}, {where}"


def _differences_of_contexts(results: Results, stimuli: Mapping[str, Stimuli]) -> Iterator[str]:
    """Yields a line if `n_contexts` of a run cannot be the number of its distinct contexts.

    The contexts of shuffled settings are not counted, since this would take long. They add at least
    0 contexts, and at most one per row and shuffle.
    """
    protocol = results.protocol
    wording = wording_of(protocol)
    settings = []
    n_shuffled_rows = 0
    for task, names in results.tasks.items():
        for name in names:
            if is_shuffled(task, name):
                n_shuffled_rows += protocol.shuffles * len(stimuli[task])
                continue
            rows = stimuli[task]
            if name != NONE:  # nothing is shuffled: the number of the shuffle has no effect
                rows = perturb(rows, name, run=0, seed=protocol.seed)
            settings.append(Setting(rows, name, wording=wording))
    parts = distinct_questions(settings, kind=results.model.kind, cased=results.model.cased)
    contexts = {
        question if isinstance(question, Sentence) else question.query
        for part in parts
        for question in part
    }
    least = len(contexts)
    most = least + n_shuffled_rows
    if not least <= results.n_contexts <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        yield f"n_contexts is {results.n_contexts}, but {expected} follow from the rows"


def _differences_of_setting(stated: SettingResults, computed: SettingResults) -> Iterator[str]:
    """Yields a line for each figure and count of one setting that differs from the computed one.

    The caller must stop at the first line, see `_differences`: a measure that is not among the
    computed ones would be a `KeyError` afterwards.
    """
    yield from _first_unmatched_name("measure", stated.measures, computed.measures)
    for name, measure in stated.measures.items():
        yield from _differences_of_measure(name, measure, computed.measures[name])
    for field in fields(SettingResults):
        if field.name in _NOT_COMPARED:
            continue
        stated_value = getattr(stated, field.name)
        computed_value = getattr(computed, field.name)
        if isinstance(stated_value, list) and len(stated_value) != len(computed_value):
            what = f"number of {field.name}"
            yield _problem_line(what, len(stated_value), len(computed_value))
        elif stated_value != computed_value:
            yield _problem_line(field.name, stated_value, computed_value)


def _differences_of_measure(name: str, stated: Figure, computed: Figure) -> Iterator[str]:
    """Yields a line for each difference between two figures of a measure, or of their levels.

    The caller must stop at the first line, see `_differences`: a break-down or level that is not
    among the computed ones would be a `KeyError` afterwards.
    """
    yield from _differences_of_figure(name, stated, computed)
    yield from _first_unmatched_name(f"break-down of {name}", stated.by, computed.by)
    for by, levels in stated.by.items():
        computed_levels = computed.by[by]
        yield from _first_unmatched_name(f"level of {name} by {by}", levels, computed_levels)
        for level, figure in levels.items():
            what = f"{name} at {by} {level}"
            yield from _differences_of_figure(what, figure, computed_levels[level])


def _differences_of_figure(name: str, stated: Figure, computed: Figure) -> Iterator[str]:
    """Yields a line for each number that differs between two figures, and for their statistics."""
    if stated.statistic != computed.statistic:
        yield _problem_line(f"statistic of {name}", stated.statistic, computed.statistic)
    for field, (what, rounding) in _NUMBERS.items():
        stated_value = getattr(stated, field)
        computed_value = getattr(computed, field)
        if not _is_same(stated_value, computed_value, rounding):
            yield _problem_line(f"{what}{name}", stated_value, computed_value)


def _problem_line(what: str, stated: object, computed: object) -> str:
    """Returns e.g. "n of accuracy@1 is 3, but 4 follows from the predictions"."""
    return f"{what} is {stated}, but {computed} follows from the predictions"


def _is_same(stated: float | None, computed: float | None, rounding: Mapping[str, float]) -> bool:
    """Whether two numbers are the same but for rounding; None is the same as None alone.

    `rounding` has the tolerances of `math.isclose`.
    """
    if stated is None or computed is None or math.isnan(computed):
        return stated == computed
    return stated == computed or math.isclose(stated, computed, **rounding)


def _first_unmatched_name(
    what: str, stated: Collection[str], computed: Sequence[str] | Mapping[str, object]
) -> Iterator[str]:
    """Yields a line for the first name that is on one side alone; nothing if both have the same.

    For example "the measure accuracy@5 is in results.json alone".

    Args:
        what: what the names are of, for the message.
        stated: names in results.json.
        computed: names that follow from the predictions.
    """
    unmatched_names = set(stated) ^ set(computed)
    if unmatched_names:
        name = min(unmatched_names)
        where = "in results.json alone" if name in stated else "not in results.json"
        yield f"the {what} {name} is {where}"
