"""`multiverse.html`: a specification curve of each headline figure; and the tables of a multiverse.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pandas import DataFrame

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic
from lmdiag.multiverse import ALPHA, Multiverse, MultiverseFigure, counts_of, effects_of
from lmdiag.protocol import KNOBS
from lmdiag.report import numbers
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import COLORS, INK, curve_chart
from lmdiag.report.grid import CellText, Grid, GridRow, Heading, figure_headings
from lmdiag.report.labels import short_commit
from lmdiag.report.page import environment, frame
from lmdiag.results import REPORT, FigureKey
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
    plots: dict[Any, list[Plot]] = {figure.key: [] for figure in multiverse.figures}
    for key, plot in multiverse_plots(multiverse):
        plots[key].append(plot)
    return (
        environment()
        .get_template("multiverse.html.j2")
        .render(
            title=" and ".join(map(visible, models)),
            multiverse=multiverse,
            models=[multiverse.members[multiverse.numbers_of(model)[0]] for model in models],
            tasks=task_tables(multiverse),
            plots=plots,
            knobs=[*knobs],
            prompts=[choice for choice in knobs.get("prompt", ()) if "{" in choice],
            link=lambda path: quote(f"{path}/{REPORT}"),
            choice_label=choice_label,
            protocols_line=protocols_line,
            short_commit=short_commit,
            **frame("report", charts=bool(multiverse.figures)),
        )
    )


# ---- texts and tables ----------------------------------------------------------------------------


def choice_label(choice: str) -> str:
    """Returns a choice as readers see it: of a long prompt its beginning and its end."""
    text = visible(" ".join(choice.split()))
    half = _LONGEST_CHOICE // 2
    return text if len(text) <= _LONGEST_CHOICE else f"{text[:half]} … {text[-half:]}"


def protocols_line(multiverse: Multiverse, model: str) -> str:
    """Returns the number of protocols of a model, and the choices of the knobs that are open."""
    count = len(multiverse.numbers_of(model))
    knobs = multiverse.choices(model).items()
    shown = "; ".join(f"{knob} {', '.join(map(choice_label, values))}" for knob, values in knobs)
    return ": ".join(filter(None, (f"{count} protocol{'s' * (count != 1)}", shown)))


TaskTables = tuple[Diagnostic, list[MultiverseFigure], list[Grid], list[Grid]]


def task_tables(multiverse: Multiverse) -> list[TaskTables]:
    """Returns each diagnostic with its headline figures and two lists of tables.

    The first has a table per model: the range of each figure, and how far each knob moves it. The
    second has one per further model: in how many protocols the first model is ahead of it.
    """
    tables: list[TaskTables] = []
    first, *others = multiverse.models
    for task in dict.fromkeys(figure.task for figure in multiverse.figures):
        figures = [figure for figure in multiverse.figures if figure.task == task]
        ranges, differences = [], []
        for model in (first, *others):
            knobs, default = [*multiverse.choices(model)], multiverse.numbers_of(model)[0]
            headings = figure_headings("default", "lowest", "median", "highest")
            rows = []
            for figure in figures:
                if known := multiverse.range_of(figure, model):
                    asked, effects = figure.values[default], known.pop("effects")
                    values = [asked and asked.value, *known.values(), *map(effects.get, knobs)]
                    statistic = multiverse.curve(figure, model)[0][1].statistic
                    cells = ("" if x is None else numbers.number(x, statistic) for x in values)
                    rows.append(GridRow((visible(figure.label),), 0, tuple(map(CellText, cells))))
            title = visible(model) if others else ""
            ranges.append(Grid("", (title,), (*headings, *map(Heading, knobs)), tuple(rows)))
        for second in others:
            title, rows = f"{visible(first)} minus {visible(second)}", []
            headings = figure_headings("ahead", "behind", "equal", "p < .05", "adjusted", "tests")
            for figure in figures:
                if pairs := multiverse.differences(figure, second):
                    counts = tuple(CellText(f"{n}") for n in counts_of(pairs).values())
                    rows.append(GridRow((visible(figure.label),), 0, counts))
            if rows:
                differences.append(Grid("", (title,), headings, tuple(rows)))
        diagnostic = diagnostics.get(task, multiverse.forms.get(task, ""))
        tables.append((diagnostic, figures, ranges, differences))
    return tables


# ---- charts --------------------------------------------------------------------------------------


def multiverse_plots(multiverse: Multiverse) -> Iterator[tuple[FigureKey, Plot]]:
    """Yields all charts with the address of their figure.

    A curve for each model, and one of the differences from the first model of each other one.
    """
    first, *others = multiverse.models
    default = {model: multiverse.numbers_of(model)[0] for model in (first, *others)}
    choices = [member.choices for member in multiverse.members]
    large = "Lines are 95% intervals; the large point is the default protocol"
    for figure in multiverse.figures:
        key, label = figure.key, visible(figure.label)
        name = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in key if part)
        known = [x for x in figure.values if x and x.value is not None]
        reach = [y for x in known for y in (x.value, x.ci_low, x.ci_high) if y is not None]
        percent = all(x.is_percent for x in known)
        for number, model in enumerate((first, *others)):
            rows: list[dict[str, Any]] = [
                {
                    "value": x.value, "low": x.ci_low, "high": x.ci_high, "chance": x.chance,
                    "n": x.n, "versus_chance": x.versus_chance,
                    "solid": x.versus_chance != "not distinguishable",
                    "default": member == default[model], "choices": choices[member],
                }
                for member, x in multiverse.curve(figure, model)
            ]  # fmt: skip
            if rows:
                has_chance = any(row["chance"] is not None for row in rows)
                color = COLORS[number % len(COLORS)]
                chart = _chart(rows, multiverse.choices(model), color, percent, reach)
                caption = f"{label}, {visible(model)}. {large}"
                if has_chance:
                    caption += "; the dashed line is chance, and a hollow point is not "
                    caption += "distinguishable from chance"
                yield key, Plot("curve", f"{name}-{number + 1}", f"{caption}.", chart)
        for number, second in enumerate(others, start=2):
            knobs = multiverse.choices(first)
            rows = [
                {
                    "value": x.difference, "low": x.ci_low, "high": x.ci_high, "chance": 0.0,
                    "n": x.n, "p": x.p, "p_adjusted": x.p_adjusted,
                    "solid": x.p is not None and x.p < ALPHA,
                    "default": [x.a, x.b] == [default[first], default[second]],
                    "choices": choices[x.a] | choices[x.b]
                    | {knob: choice for knob, choice in choices[x.a].items() if knob in knobs},
                }
                for x in multiverse.differences(figure, second)
            ]  # fmt: skip
            if rows:
                chart = _chart(rows, knobs | multiverse.choices(second), INK, percent)
                caption = f"{label}, {visible(first)} minus {visible(second)}. {large}"
                caption += "; a filled point has p < .05, not adjusted."
                yield key, Plot("curve", f"{name}-difference-{number}", caption, chart)


def _chart(
    rows: Sequence[dict[str, Any]],
    open_knobs: Mapping[str, Sequence[str]],
    color: str,
    percent: bool,
    reach: Sequence[float] = (),
) -> Any:
    """A curve above the choices of its points, the knob that moves the figure most first."""
    choices = [row.pop("choices") for row in rows]
    effects = effects_of(choices, [row["value"] for row in rows])
    largest = max(effects.values(), default=0.0)
    lines: list[dict[str, Any]] = []
    for knob in sorted(open_knobs, key=lambda knob: -effects.get(knob, 0.0)):
        labels = [*map(choice_label, open_knobs[knob])]
        for number, (choice, label) in enumerate(zip(open_knobs[knob], labels, strict=True)):
            alike = labels.count(label) > 1  # long prompts
            shown = f"{knob} {number + 1}: {label}" if alike else f"{knob} {label}"
            strongest = largest > 0 and effects.get(knob) == largest
            lines += [
                {"place": place, "choice": shown, "strongest": strongest}
                for place, chosen in enumerate(choices, start=1)
                if chosen.get(knob) == choice
            ]
    for place, (row, chosen) in enumerate(zip(rows, choices, strict=True), start=1):
        parts = [f"{k} {choice_label(chosen[k])}" for k in KNOBS if k in open_knobs and k in chosen]
        label = ", ".join(parts) or "the one protocol"
        row |= {"place": place, "protocol": f"{label} (default)" if row["default"] else label}
    matrix = DataFrame(lines, columns=["place", "choice", "strongest"])
    return curve_chart(DataFrame(rows), matrix, color, percent=percent, reach=reach)
