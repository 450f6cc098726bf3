"""Checks that the figures of a run are those of the scores beside them.

Anybody can write scores and their digest, so that the digest alone proves nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lmdiag.measures import MeasureName, Scores
from lmdiag.results.item_scores import MeasureScores, ScoreTable, estimate_of
from lmdiag.results.results import Figure, Results, SettingResults
from lmdiag.stimuli.perturbations import is_shuffled
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from lmdiag.diagnostics import Diagnostic

_ROUNDING = {"rel_tol": 1e-9, "abs_tol": 1e-12}
"""Two values that differ by less are the same; the order of a sum differs between systems."""

_OF_BOUNDS = {"rel_tol": 1e-6, "abs_tol": 1e-9}
"""The same for bounds of intervals: the logit of a mean near 1 has few digits."""


def check_figures(path: Path, results: Results, table: ScoreTable) -> None:
    """Checks that value, interval, n, chance, sd and shuffles of every figure follow from scores.

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
            what = f"of {task} in setting {setting}"
            for problem in _differences_of_setting(
                content, shuffles, results.diagnostic(task), is_shuffled(task, setting)
            ):
                yield f"{problem}, {what}"


def _scored_measures(content: SettingResults) -> list[str]:
    """The measures of a setting that have scores: all but points of curves."""
    return [name for name in content.measures if not MeasureName.of(name).is_curve_point]


def _differences_of_setting(
    content: SettingResults,
    shuffles: Sequence[MeasureScores],
    diagnostic: Diagnostic,
    has_sd: bool,
) -> Iterator[str]:
    """Yields what differs in one setting, whose figures have an sd if it is shuffled."""
    names = _scored_measures(content)
    yield from _unequal("measure", names, shuffles[0])
    for name in names:
        measure = content.measures[name]
        several = [scores[name] for scores in shuffles if name in scores]
        yield from _differences_of_figure(name, measure, several, diagnostic, has_sd)
        for by, levels in measure.by.items():
            yield from _unequal(f"level of {name} by {by}", levels, several[0].levels_of(by))
            for level, figure in levels.items():
                parts = [
                    scores.at(by, level) for scores in several if level in scores.levels_of(by)
                ]
                yield from _differences_of_figure(
                    f"{name} at {by} {level}", figure, parts, diagnostic, has_sd
                )


def _differences_of_figure(
    name: str,
    figure: Figure,
    several: Sequence[Scores],
    diagnostic: Diagnostic,
    has_sd: bool,
) -> Iterator[str]:
    """Yields what differs between a figure and the scores of its shuffles, or of no shuffles."""
    if any(scores.statistic != figure.statistic for scores in several):
        yield f"{name} is a {figure.statistic}, and a {several[0].statistic} of its items"
        return
    estimates = [estimate_of(scores, diagnostic) for scores in several]
    values = [estimate.value for estimate in estimates]
    value = statistics.fmean(values)
    sd = statistics.pstdev(values) if has_sd and not math.isnan(value) else math.nan
    chance = statistics.fmean(map(_chance, several))
    for what, stated, given, rounding in (
        ("", figure.value, value, _ROUNDING),
        ("n of ", figure.n or 0, min(estimate.n for estimate in estimates), _ROUNDING),
        ("chance of ", figure.chance, chance, _ROUNDING),
        ("sd of ", figure.sd, sd, _ROUNDING),
        ("shuffles of ", figure.runs, len(several) if has_sd else math.nan, _ROUNDING),
        ("low bound of ", figure.ci_low, statistics.fmean(x.ci_low for x in estimates), _OF_BOUNDS),
        (
            "high bound of ",
            figure.ci_high,
            statistics.fmean(x.ci_high for x in estimates),
            _OF_BOUNDS,
        ),
    ):
        if not _is_same(stated, given, rounding):
            yield f"{what}{name} is {stated}, and {given} of its items"


def _chance(scores: Scores) -> float:
    """The mean chance of the items; NaN for a measure without."""
    is_known = scores.chance is not None and len(scores.chance) > 0
    return float(scores.chance.mean()) if is_known else math.nan  # type: ignore[union-attr]


def _is_same(stated: float | None, given: float, rounding: Mapping[str, float]) -> bool:
    """Whether a number of a figure, None for NaN, is the one that the scores give."""
    if stated is None or math.isnan(given):
        return stated is None and math.isnan(given)
    return math.isclose(stated, given, **rounding)


def _unequal(what: str, stated: Collection[str], given: Collection[str]) -> Iterator[str]:
    """Yields the first name that is among the figures or among the scores alone."""
    for name in sorted({*stated} ^ {*given}):
        yield f"the {what} {name} is in {'results.json' if name in {*stated} else 'it'} alone"
