"""`multiverse.html`: a specification curve of each headline figure; and the tables of a multiverse.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pandas import DataFrame

from lmdiag import diagnostics
from lmdiag.protocol import KNOBS
from lmdiag.report import numbers
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import curve_chart
from lmdiag.report.charts.parts import COLORS, INK
from lmdiag.report.formats.grid import CellText, Grid, GridRow, Heading
from lmdiag.report.labels import short_commit
from lmdiag.report.page import environment, frame
from lmdiag.results import REPORT
from lmdiag.results.multiverse import counts_of, effects_of, is_rejected
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.results.multiverse import (
        Curve,
        MemberDifference,
        Multiverse,
        MultiverseFigure,
    )

_LONGEST_CHOICE = 40
"""Characters of a choice; of a longer prompt the beginning and the end are shown."""


def render(multiverse: Multiverse) -> str:
    """Returns the page of a multiverse.

    Raises:
        BadInput: a data file of the package is missing.
    """
    models = multiverse.models
    knobs = multiverse.choices(*models)
    page = environment().get_template("multiverse.html.j2")
    return page.render(
        title=" and ".join(map(visible, models)),
        multiverse=multiverse,
        models=[multiverse.members[multiverse.numbers_of(model)[0]] for model in models],
        tasks=task_tables(multiverse),
        plots={figure.place: [*_plots(multiverse, figure)] for figure in multiverse.figures},
        knobs=[*knobs],
        prompts=[choice for choice in knobs.get("prompt", ()) if "{" in choice],
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


# ---- tables --------------------------------------------------------------------------------------


class TaskTables(NamedTuple):
    """A diagnostic of a multiverse.

    Attributes:
        diagnostic: its declaration.
        figures: its headline figures.
        ranges: a table per model, with the range of each figure and how far each knob moves it.
        differences: a table per further model: in how many protocols the first is ahead of it.
    """

    diagnostic: diagnostics.Diagnostic
    figures: list[MultiverseFigure]
    ranges: list[Grid]
    differences: list[Grid]


def task_tables(multiverse: Multiverse) -> list[TaskTables]:
    """Returns the tables of each diagnostic."""
    tables = []
    for task in dict.fromkeys(figure.task for figure in multiverse.figures):
        figures = [figure for figure in multiverse.figures if figure.task == task]
        ranges = [_range_grid(multiverse, figures, model) for model in multiverse.models]
        differences = [
            _difference_grid(multiverse, figures, model) for model in multiverse.models[1:]
        ]
        diagnostic = diagnostics.get(task, multiverse.forms.get(task, ""))
        tables.append(
            TaskTables(
                diagnostic,
                figures,
                [grid for grid in ranges if grid.rows],
                [grid for grid in differences if grid.rows],
            )
        )
    return tables


def _range_grid(multiverse: Multiverse, figures: Sequence[MultiverseFigure], model: str) -> Grid:
    """Of each figure of a model the range, the default, and how far each knob moves it."""
    knobs = [*multiverse.choices(model)]
    default = multiverse.numbers_of(model)[0]
    rows = []
    for figure in figures:
        for curve in (curve for curve in multiverse.curves(figure) if curve.model == model):
            statistic = curve.figures[0].statistic
            known = figure.values[default]
            ends = (curve.values[0], curve.median, curve.values[-1])
            effects = (curve.effects.get(knob) for knob in knobs)
            values = (known.value if known else None, *ends, *effects)
            texts = ("" if x is None else numbers.number(x, statistic) for x in values)
            cells = tuple(CellText(text) for text in texts)
            rows.append(GridRow((visible(figure.label),), 0, cells))
    headings = [
        Heading(label, is_figure=True) for label in ("default", "lowest", "median", "highest")
    ]
    headings += [Heading(knob) for knob in knobs]
    label = visible(model) if len(multiverse.models) > 1 else ""
    return Grid("", (label,), tuple(headings), tuple(rows))


def _difference_grid(
    multiverse: Multiverse, figures: Sequence[MultiverseFigure], second: str
) -> Grid:
    """In how many protocols the first model is ahead of another one, for each figure."""
    rows = []
    for figure in figures:
        if found := multiverse.differences(figure, second):
            cells = tuple(CellText(str(count)) for count in counts_of(found).values())
            rows.append(GridRow((visible(figure.label),), 0, cells))
    labels = ("ahead", "behind", "equal", "p < .05", "adjusted")
    title = f"{visible(multiverse.models[0])} minus {visible(second)}"
    return Grid("", (title,), tuple(Heading(label, is_figure=True) for label in labels),
                tuple(rows))  # fmt: skip


def protocols(count: int) -> str:
    """Returns a number of protocols in words."""
    return "1 protocol" if count == 1 else f"{count} protocols"


def choice_label(choice: str) -> str:
    """Returns a choice as readers see it: of a long prompt its beginning and its end."""
    text = visible(" ".join(choice.split()))
    half = _LONGEST_CHOICE // 2
    return text if len(text) <= _LONGEST_CHOICE else f"{text[:half]} … {text[-half:]}"


def shown_choices(multiverse: Multiverse, *models: str) -> list[tuple[str, list[str]]]:
    """Returns the knobs that are open for some models, with their choices as readers see them."""
    known = multiverse.choices(*models)
    return [(knob, [choice_label(choice) for choice in known[knob]]) for knob in known]


def remarks(multiverse: Multiverse) -> Iterator[str]:
    """Yields what a reader must know of the figures."""
    merged = multiverse.combinations - len(multiverse.members)
    yield (
        f"{multiverse.combinations} combinations, {multiverse.questions:,} questions; "
        f"{multiverse.asked:,} were asked"
        + (f": {merged} combinations ask the same as another one" if merged else "")
    )
    if multiverse.choices(*multiverse.models):
        yield (
            "default: the protocol of lmdiag run without options; below each knob: how far it "
            "moves the figure, the largest difference between the means of two of its choices over "
            "all choices of the other knobs"
        )
    if len(multiverse.models) > 1:
        yield (
            "differences are taken within items, the first model minus the other: exact McNemar "
            "test where each item is right or wrong, sign-flip test of a mean over items, "
            "permutation test of a median or a correlation; adjusted by Holm's method over the "
            "protocols of a figure and pair of models"
        )
        yield (
            "models are compared where they share the choices of every knob that is open for both; "
            "a knob that is open for one of them takes each of its values"
        )


# ---- charts --------------------------------------------------------------------------------------


def _plots(multiverse: Multiverse, figure: MultiverseFigure) -> Iterator[Plot]:
    """A curve for each model, and one of the differences from the first model of each other one."""
    name = "-".join(filter(None, map(_slug, figure.place)))
    curves = multiverse.curves(figure)
    bounds = [
        bound
        for curve in curves
        for known in curve.figures
        for bound in (known.value, known.ci_low, known.ci_high)
        if bound is not None
    ]
    for curve in curves:
        number = multiverse.models.index(curve.model)
        yield _curve_plot(multiverse, figure, curve, f"{name}-{number + 1}", bounds)
    for number, second in enumerate(multiverse.models[1:], start=2):
        if pairs := multiverse.differences(figure, second):
            percent = all(curve.figures[0].is_percent for curve in curves)
            yield _difference_plot(
                multiverse, figure, pairs, second, f"{name}-difference-{number}", percent
            )


def _curve_plot(
    multiverse: Multiverse,
    figure: MultiverseFigure,
    curve: Curve,
    name: str,
    reach: Sequence[float],
) -> Plot:
    default = multiverse.numbers_of(curve.model)[0]
    choices = [multiverse.members[number].choices for number in curve.members]
    rows = [
        {
            "value": known.value, "low": known.ci_low, "high": known.ci_high,
            "chance": known.chance, "n": known.n, "versus_chance": known.versus_chance,
            "solid": known.versus_chance != "not distinguishable", "default": number == default,
        }
        for number, known in zip(curve.members, curve.figures, strict=True)
    ]  # fmt: skip
    caption = f"{visible(figure.label)}, {visible(curve.model)}. Lines are 95% intervals; the "
    caption += "large point is the default protocol"
    if any(row["chance"] is not None for row in rows):
        caption += (
            "; the dashed line is chance, and a hollow point is not distinguishable from chance"
        )
    matrix = _matrix(rows, choices, multiverse.choices(curve.model), curve.effects)
    color = COLORS[multiverse.models.index(curve.model) % len(COLORS)]
    percent = curve.figures[0].is_percent
    chart = curve_chart(DataFrame(rows), matrix, color, percent=percent, reach=reach)
    return Plot("curve", name, f"{caption}.", chart)


def _difference_plot(
    multiverse: Multiverse,
    figure: MultiverseFigure,
    pairs: Sequence[MemberDifference],
    second: str,
    name: str,
    percent: bool,
) -> Plot:
    first = multiverse.models[0]
    defaults = multiverse.numbers_of(first)[0], multiverse.numbers_of(second)[0]
    open_to_first = multiverse.choices(first)
    rows, choices = [], []
    for pair in pairs:
        a, b = multiverse.members[pair.a].choices, multiverse.members[pair.b].choices
        choices.append(
            {**b, **{knob: a[knob] for knob in a if knob in open_to_first or knob not in b}}
        )
        rows.append(
            {
                "value": pair.difference, "low": pair.ci_low, "high": pair.ci_high, "chance": 0.0,
                "n": pair.n, "p": pair.p, "p_adjusted": pair.p_adjusted,
                "solid": is_rejected(pair.p), "default": (pair.a, pair.b) == defaults,
            }
        )  # fmt: skip
    caption = f"{visible(figure.label)}, {visible(first)} minus {visible(second)}. Lines are 95% "
    caption += "intervals; the large point is the default protocol; a filled point has p < .05, "
    caption += "not adjusted."
    values = [(one, pair.difference) for one, pair in zip(choices, pairs, strict=True)]
    open_knobs = multiverse.choices(first) | multiverse.choices(second)
    matrix = _matrix(rows, choices, open_knobs, effects_of(values))
    chart = curve_chart(DataFrame(rows), matrix, INK, percent=percent)
    return Plot("curve", name, caption, chart)


def _matrix(
    rows: Sequence[dict[str, Any]],
    choices: Sequence[Mapping[str, str]],
    open_knobs: Mapping[str, Sequence[str]],
    effects: Mapping[str, float],
) -> DataFrame:
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
                for place, chosen in enumerate(choices, start=1)
                if chosen.get(knob) == choice
            ]  # fmt: skip
    for place, (row, chosen) in enumerate(zip(rows, choices, strict=True), start=1):
        shown = [
            f"{knob} {choice_label(chosen[knob])}"
            for knob in KNOBS
            if knob in open_knobs and knob in chosen
        ]
        label = ", ".join(shown) or "the one protocol"
        row |= {"place": place, "protocol": f"{label} (default)" if row["default"] else label}
    return DataFrame(lines, columns=["place", "choice", "strongest"])


def _distinct_labels(choices: Sequence[str]) -> dict[str, str]:
    """The labels of choices; those of prompts that look alike are numbered."""
    labels = [choice_label(choice) for choice in choices]
    return {
        choice: f"{number}: {label}" if labels.count(label) > 1 else label
        for number, (choice, label) in enumerate(zip(choices, labels, strict=True), start=1)
    }


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")
