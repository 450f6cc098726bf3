"""`multiverse.html`: a specification curve of each headline figure, and its charts.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from lmdiag import diagnostics
from lmdiag.protocol import KNOBS
from lmdiag.report.charts import specs
from lmdiag.report.charts.specs import Plot
from lmdiag.report.labels import short_commit
from lmdiag.report.page import environment, frame
from lmdiag.report.protocols import (
    choice_label,
    choices_label,
    protocols,
    remarks,
    said,
    shown_choices,
)
from lmdiag.results import REPORT
from lmdiag.results.multiverse import effects_of, is_rejected
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.diagnostics import Diagnostic
    from lmdiag.results.multiverse import Contest, Curve, HeadlineCurves, Multiverse

_COLORS = 6
"""Colours of series."""


class ShownFigure(NamedTuple):
    """A headline figure as the page shows it.

    Attributes:
        figure: in all protocols.
        words: what follows, a sentence each.
        plots: its specification curves.
    """

    figure: HeadlineCurves
    words: list[str]
    plots: list[Plot]


class ShownTask(NamedTuple):
    """A diagnostic as the page shows it: its declaration and its headline figures."""

    diagnostic: Diagnostic
    figures: list[ShownFigure]


def render(multiverse: Multiverse) -> str:
    """Returns the page of a multiverse.

    Raises:
        BadInput: a data file of the package is missing.
    """
    numbers = range(len(multiverse.models))
    tasks = dict.fromkeys(figure.task for figure in multiverse.figures)
    page = environment().get_template("multiverse.html.j2")
    return page.render(
        title=" and ".join(visible(model.label) for model in multiverse.models),
        multiverse=multiverse,
        tasks=[_task(multiverse, task) for task in tasks],
        knobs=[*multiverse.choices(*numbers)],
        prompts=[c for c in multiverse.choices(*numbers).get("prompt", ()) if "{" in c],
        link=lambda path: quote(f"{path}/{REPORT}"),
        protocols=protocols,
        choice_label=choice_label,
        shown_choices=shown_choices,
        remarks=[*remarks(multiverse)],
        short_commit=short_commit,
        **frame("report", charts=bool(multiverse.figures)),
    )


def multiverse_plots(multiverse: Multiverse) -> list[Plot]:
    """Returns all charts of a multiverse."""
    return [plot for figure in multiverse.figures for plot in _plots(multiverse, figure)]


def _task(multiverse: Multiverse, task: str) -> ShownTask:
    shown = [
        ShownFigure(figure, [*said(multiverse, figure)], [*_plots(multiverse, figure)])
        for figure in multiverse.figures
        if figure.task == task
    ]
    return ShownTask(diagnostics.get(task, multiverse.forms.get(task, "")), shown)


# ---- charts --------------------------------------------------------------------------------------


def _plots(multiverse: Multiverse, figure: HeadlineCurves) -> Iterator[Plot]:
    """A curve for each model, and one of the differences of each two."""
    name = "-".join(filter(None, map(_slug, figure.place)))
    for curve in figure.curves:
        yield _curve(multiverse, figure, curve, f"{name}-{curve.model + 1}")
    for contest in figure.contests:
        yield _contest(multiverse, figure, contest, f"{name}-difference-{contest.second + 1}")


def _curve(multiverse: Multiverse, figure: HeadlineCurves, curve: Curve, name: str) -> Plot:
    rows, choices = [], []
    for point in curve.points:
        one = point.figure
        choices.append(multiverse.members[point.member].choices)
        rows.append(
            {
                "value": one.value, "low": one.ci_low, "high": one.ci_high, "chance": one.chance,
                "n": one.n, "versus_chance": one.versus_chance,
                "solid": one.versus_chance != "not distinguishable",
            }
        )  # fmt: skip
    label = visible(multiverse.models[curve.model].label)
    caption = f"{visible(figure.label)}, {label}. Lines are 95% intervals"
    if any(row["chance"] is not None for row in rows):
        caption += (
            "; the dashed line is chance, and a hollow point is not distinguishable from chance"
        )
    every = [point.figure for one in figure.curves for point in one.points]
    bounds = [b for one in every for b in (one.value, one.ci_low, one.ci_high) if b is not None]
    spec = specs.specification_curve(
        rows,
        _matrix(rows, choices, multiverse.choices(curve.model), curve.effects),
        f"var(--c{curve.model % _COLORS + 1})",
        percent=curve.points[0].figure.is_percent,
        reach=bounds,
    )
    return Plot("curve", name, f"{caption}.", spec)


def _contest(multiverse: Multiverse, figure: HeadlineCurves, contest: Contest, name: str) -> Plot:
    rows, choices = [], []
    for pair in contest.pairs:
        a, b = multiverse.members[pair.a].choices, multiverse.members[pair.b].choices
        own = multiverse.choices(0)
        choices.append({**b, **{knob: a[knob] for knob in a if knob in own or knob not in b}})
        rows.append(
            {
                "value": pair.difference, "low": pair.ci_low, "high": pair.ci_high, "chance": 0.0,
                "n": pair.n, "p": pair.p, "p_adjusted": pair.p_adjusted,
                "solid": is_rejected(pair.p),
            }
        )  # fmt: skip
    names = " minus ".join(visible(multiverse.models[n].label) for n in (0, contest.second))
    caption = f"{visible(figure.label)}, {names}. Lines are 95% intervals; a filled point has "
    caption += "p < .05, not adjusted."
    values = [(one, pair.difference) for one, pair in zip(choices, contest.pairs, strict=True)]
    open_knobs = multiverse.choices(0) | multiverse.choices(contest.second)
    percent = all(c.points[0].figure.is_percent for c in figure.curves)
    matrix = _matrix(rows, choices, open_knobs, effects_of(values))
    spec = specs.specification_curve(rows, matrix, "var(--ink)", percent=percent)
    return Plot("curve", name, caption, spec)


def _matrix(
    rows: Sequence[dict[str, Any]],
    choices: Sequence[Mapping[str, str]],
    open_knobs: Mapping[str, Sequence[str]],
    effects: Mapping[str, float],
) -> list[dict[str, Any]]:
    """The choices of points in order, the knob that moves the figure most first.

    The rows of the points get their places and protocols.
    """
    order = sorted(open_knobs, key=lambda knob: -effects.get(knob, 0.0))
    largest = max(effects.values(), default=0.0)
    lines: list[dict[str, Any]] = []
    for knob in order:
        names = _distinct_labels(open_knobs[knob])
        for choice in open_knobs[knob]:
            lines += [
                {
                    "place": place, "choice": f"{knob} {names[choice]}",
                    "strongest": largest > 0 and effects.get(knob) == largest,
                }
                for place, own in enumerate(choices, start=1)
                if own.get(knob) == choice
            ]  # fmt: skip
    for place, (row, own) in enumerate(zip(rows, choices, strict=True), start=1):
        shown = {knob: own[knob] for knob in KNOBS if knob in open_knobs and knob in own}
        row |= {"place": place, "protocol": choices_label(shown) or "the one protocol"}
    return lines


def _distinct_labels(choices: Sequence[str]) -> dict[str, str]:
    """The labels of choices; those of prompts that look alike are numbered."""
    labels = [choice_label(choice) for choice in choices]
    return {
        choice: f"{number}: {label}" if labels.count(label) > 1 else label
        for number, (choice, label) in enumerate(zip(choices, labels, strict=True), start=1)
    }


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")
