"""`multiverse.html`: a specification curve of each headline figure; and the tables of a multiverse.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from pandas import DataFrame

from lmdiag import diagnostics
from lmdiag.protocol import KNOBS
from lmdiag.report import numbers
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import curve_chart
from lmdiag.report.charts.parts import COLORS, INK
from lmdiag.report.grid import CellText, Grid, GridRow, Heading
from lmdiag.report.labels import short_commit
from lmdiag.report.page import environment, frame
from lmdiag.results import REPORT
from lmdiag.results.multiverse import (
    Multiverse,
    MultiverseFigure,
    counts_of,
    effects_of,
    is_rejected,
)
from lmdiag.text import visible

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
    first, *others = multiverse.models
    for task in dict.fromkeys(figure.task for figure in multiverse.figures):
        figures = [figure for figure in multiverse.figures if figure.task == task]
        diagnostic = diagnostics.get(task, multiverse.forms.get(task, ""))
        ranges = [_range_grid(multiverse, figures, model) for model in multiverse.models]
        differences = []
        for second in others:
            counts = {
                figure.label: counts_of(pairs).values()
                for figure in figures
                if (pairs := multiverse.differences(figure, second))
            }
            if counts:
                title = f"{visible(first)} minus {visible(second)}"
                headings = ("ahead", "behind", "equal", "p < .05", "adjusted")
                cells = {label: list(map(str, values)) for label, values in counts.items()}
                differences.append(_grid(title, headings, cells))
        tables.append(TaskTables(diagnostic, figures, ranges, differences))
    return tables


def _range_grid(multiverse: Multiverse, figures: Sequence[MultiverseFigure], model: str) -> Grid:
    """Of each figure of a model the range, the default, and how far each knob moves it."""
    knobs = [*multiverse.choices(model)]
    default = multiverse.numbers_of(model)[0]
    cells = {}
    for figure in figures:
        for curve in (curve for curve in multiverse.curves(figure) if curve.model == model):
            known = figure.values[default]
            values = [
                known.value if known else None,
                *curve.summary.values(),
                *map(curve.effects.get, knobs),
            ]
            statistic = curve.figures[0].statistic
            cells[figure.label] = [
                "" if x is None else numbers.number(x, statistic) for x in values
            ]
    title = visible(model) if len(multiverse.models) > 1 else ""
    return _grid(title, ("default", "lowest", "median", "highest"), cells, knobs)


def _grid(
    title: str,
    figures: Sequence[str],
    cells: Mapping[str, Sequence[str]],
    further: Sequence[str] = (),
) -> Grid:
    """A table of texts: a row per label, columns of figures and further ones."""
    headings = [Heading(label, is_figure=True) for label in figures]
    rows = [
        GridRow((visible(label),), 0, tuple(map(CellText, row))) for label, row in cells.items()
    ]
    return Grid("", (title,), (*headings, *map(Heading, further)), tuple(rows))


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
    return [(knob, [*map(choice_label, choices)]) for knob, choices in known.items()]


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
    name = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in figure.place if part)
    models, curves = multiverse.models, multiverse.curves(figure)
    known = [x for curve in curves for x in curve.figures]
    reach = [bound for x in known for bound in (x.value, x.ci_low, x.ci_high) if bound is not None]
    percent = all(curve.figures[0].is_percent for curve in curves)
    for curve in curves:
        number, default = models.index(curve.model), multiverse.numbers_of(curve.model)[0]
        rows = [
            {
                "value": x.value, "low": x.ci_low, "high": x.ci_high, "chance": x.chance, "n": x.n,
                "versus_chance": x.versus_chance, "default": member == default,
                "solid": x.versus_chance != "not distinguishable",
            }
            for member, x in zip(curve.members, curve.figures, strict=True)
        ]  # fmt: skip
        choices = [multiverse.members[member].choices for member in curve.members]
        matrix = _matrix(rows, choices, multiverse.choices(curve.model), curve.effects)
        caption = f"{visible(figure.label)}, {visible(curve.model)}. Lines are 95% intervals; the "
        caption += "large point is the default protocol"
        if any(row["chance"] is not None for row in rows):
            caption += (
                "; the dashed line is chance, and a hollow point is not distinguishable from chance"
            )
        color, is_percent = COLORS[number % len(COLORS)], curve.figures[0].is_percent
        chart = curve_chart(DataFrame(rows), matrix, color, percent=is_percent, reach=reach)
        yield Plot("curve", f"{name}-{number + 1}", f"{caption}.", chart)
    for number, second in enumerate(models[1:], start=2):
        if figure.differences and multiverse.differences(figure, second):
            chart = _difference_curve(multiverse, figure, second, percent=percent)
            caption = f"{visible(figure.label)}, {visible(models[0])} minus {visible(second)}. "
            caption += "Lines are 95% intervals; the large point is the default protocol; a filled "
            caption += "point has p < .05, not adjusted."
            yield Plot("curve", f"{name}-difference-{number}", caption, chart)


def _difference_curve(
    multiverse: Multiverse, figure: MultiverseFigure, second: str, *, percent: bool
) -> Any:
    first, pairs = multiverse.models[0], multiverse.differences(figure, second)
    defaults = multiverse.numbers_of(first)[0], multiverse.numbers_of(second)[0]
    open_to_first = multiverse.choices(first)
    rows, choices = [], []
    for pair in pairs:
        a, b = multiverse.members[pair.a].choices, multiverse.members[pair.b].choices
        choices.append(b | {k: a[k] for k in a if k in open_to_first or k not in b})
        rows.append(
            {
                "value": pair.difference, "low": pair.ci_low, "high": pair.ci_high, "chance": 0.0,
                "n": pair.n, "p": pair.p, "p_adjusted": pair.p_adjusted,
                "solid": is_rejected(pair.p), "default": (pair.a, pair.b) == defaults,
            }
        )  # fmt: skip
    effects = effects_of([(c, p.difference) for c, p in zip(choices, pairs, strict=True)])
    open_knobs = open_to_first | multiverse.choices(second)
    matrix = _matrix(rows, choices, open_knobs, effects)
    return curve_chart(DataFrame(rows), matrix, INK, percent=percent)


def _matrix(
    rows: Sequence[dict[str, Any]],
    choices: Sequence[Mapping[str, str]],
    open_knobs: Mapping[str, Sequence[str]],
    effects: Mapping[str, float],
) -> DataFrame:
    """The choices of points in order, the knob that moves the figure most first.

    The rows of the points get their places and protocols.
    """
    largest = max(effects.values(), default=0.0)
    lines: list[dict[str, Any]] = []
    for knob in sorted(open_knobs, key=lambda knob: -effects.get(knob, 0.0)):
        labels = [*map(choice_label, open_knobs[knob])]
        for number, choice in enumerate(open_knobs[knob]):
            label = labels[number]
            if labels.count(label) > 1:  # long prompts that look alike
                label = f"{number + 1}: {label}"
            lines += [
                {
                    "place": place, "choice": f"{knob} {label}",
                    "strongest": largest > 0 and effects.get(knob) == largest,
                }
                for place, chosen in enumerate(choices, start=1)
                if chosen.get(knob) == choice
            ]  # fmt: skip
    for place, (row, chosen) in enumerate(zip(rows, choices, strict=True), start=1):
        shown = [f"{k} {choice_label(chosen[k])}" for k in KNOBS if k in open_knobs and k in chosen]
        label = ", ".join(shown) or "the one protocol"
        row |= {"place": place, "protocol": f"{label} (default)" if row["default"] else label}
    return DataFrame(lines, columns=["place", "choice", "strongest"])
