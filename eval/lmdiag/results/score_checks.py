"""Checks that the figures of a run are those of the scores beside them.

Anybody can write scores and their digest, so that the digest alone proves nothing. Intervals are
not compared: earlier versions computed some of them in other ways.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from lmdiag import stats
from lmdiag.measures import MeasureName, Scores
from lmdiag.perturb import is_shuffled
from lmdiag.results.results import Figure, Results, SettingResults
from lmdiag.results.scores import MeasureScores, ScoreTable
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pathlib import Path

_ROUNDING = {"rel_tol": 1e-9, "abs_tol": 1e-12}
"""Two values that differ by less are the same; the order of a sum differs between systems."""


def check_figures(path: Path, results: Results, table: ScoreTable) -> None:
    """Checks that value, n and chance of every figure follow from the scores.

    Points of curves over cut-offs are not among the scores.

    Args:
        path: of the scores, for messages.
        results: with the figures.
        table: the scores of all items.

    Raises:
        BadInput: a task, setting or measure is in one of them alone, or a figure is another.
    """
    for problem in _differences(results, table):
        raise BadInput(f"{path} does not give the figures of this run: {problem}")


def _differences(results: Results, table: ScoreTable) -> Iterator[str]:
    """Yields what differs between figures and scores."""
    # without an item that has a value, there is neither a figure nor a score
    tasks = {
        task: {name: content for name, content in settings.items() if _scored_measures(content)}
        for task, settings in results.tasks.items()
    }
    scored = {task: settings for task, settings in tasks.items() if settings}
    yield from _unequal("task", scored, table)
    for task, settings in scored.items():
        yield from _unequal(f"setting of {task}", settings, {name for name, _ in table[task]})
        for setting, content in settings.items():
            keys = sorted(key for key in table[task] if key[0] == setting)
            if len(keys) > 1 and not is_shuffled(task, setting):
                yield f"{task} has {len(keys)} shuffles in setting {setting}"
            shuffles = [table[task][key] for key in keys]
            for problem in _differences_of_setting(content, shuffles):
                yield f"{problem}, of {task} in setting {setting}"


def _scored_measures(content: SettingResults) -> list[str]:
    """The measures of a setting that have scores: all but points of curves."""
    return [name for name in content.measures if not MeasureName.of(name).is_curve_point]


def _differences_of_setting(
    content: SettingResults, shuffles: Sequence[MeasureScores]
) -> Iterator[str]:
    """Yields what differs in one setting."""
    names = _scored_measures(content)
    yield from _unequal("measure", names, shuffles[0])
    for name in names:
        measure = content.measures[name]
        several = [scores[name] for scores in shuffles if name in scores]
        yield from _differences_of_figure(name, measure, several)
        for by, levels in measure.by.items():
            yield from _unequal(f"level of {name} by {by}", levels, several[0].levels.get(by, {}))
            for level, figure in levels.items():
                parts = [scores.at(by, level) for scores in several if level in scores.levels[by]]
                yield from _differences_of_figure(f"{name} at {by} {level}", figure, parts)


def _differences_of_figure(name: str, figure: Figure, several: Sequence[Scores]) -> Iterator[str]:
    """Yields what differs between a figure and the scores of its shuffles, or of no shuffles."""
    if any(scores.statistic != figure.statistic for scores in several):
        yield f"{name} is a {figure.statistic}, and a {several[0].statistic} of its items"
        return
    values = [stats.point(scores.values, scores.statistic) for scores in several]
    guesses = [_chance(scores) for scores in several]
    n = min(len(scores.items) for scores in several)
    for what, stated, given in (
        ("", figure.value, statistics.fmean(values)),
        ("n of ", figure.n or 0, n),
        ("chance of ", figure.chance, statistics.fmean(guesses)),
    ):
        if not _is_same(stated, given):
            yield f"{what}{name} is {stated}, and {given} of its items"


def _chance(scores: Scores) -> float:
    """The mean chance of the items; NaN for a measure without."""
    is_known = scores.chance is not None and len(scores.chance) > 0
    return float(scores.chance.mean()) if is_known else math.nan  # type: ignore[union-attr]


def _is_same(stated: float | None, given: float) -> bool:
    """Whether a number of a figure, None for NaN, is the one that the scores give."""
    if stated is None or math.isnan(given):
        return stated is None and math.isnan(given)
    return math.isclose(stated, given, **_ROUNDING)


def _unequal(what: str, stated: Collection[str], given: Collection[str]) -> Iterator[str]:
    """Yields the first name that is among the figures or among the scores alone."""
    for name in sorted({*stated} ^ {*given}):
        yield f"the {what} {name} is in {'results.json' if name in {*stated} else 'it'} alone"
