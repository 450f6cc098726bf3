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
from lmdiag.report.grid import CellText, Grid, GridRow, Heading
from lmdiag.report.labels import short_commit
from lmdiag.report.page import environment, frame
from lmdiag.results import REPORT, Place
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
    plots: dict[Any, list[Plot]] = {figure.place: [] for figure in multiverse.figures}
    for place, plot in multiverse_plots(multiverse):
        plots[place].append(plot)
    page = environment().get_template("multiverse.html.j2")
    return page.render(
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
        questions_line=questions_line(multiverse),
        short_commit=short_commit,
        **frame("report", charts=bool(multiverse.figures)),
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


def questions_line(multiverse: Multiverse) -> str:
    """Returns how many combinations and questions there are, and how many had to be asked."""
    count, questions = multiverse.combinations, multiverse.questions
    line = f"{count} combinations, {questions:,} questions; {multiverse.asked:,} were asked"
    merged = count - len(multiverse.members)
    return f"{line}: {merged} combinations ask the same as another one" if merged else line


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
            cells = {}
            for figure in figures:
                if known := multiverse.range_of(figure, model):
                    asked, effects = figure.values[default], known.pop("effects")
                    values = [asked and asked.value, *known.values(), *map(effects.get, knobs)]
                    statistic = multiverse.curve(figure, model)[0][1].statistic
                    cells[figure.label] = [
                        "" if x is None else numbers.number(x, statistic) for x in values
                    ]
            title = visible(model) if others else ""
            ranges.append(_grid(title, ("default", "lowest", "median", "highest"), knobs, cells))
        for second in others:
            pairs = {figure.label: multiverse.differences(figure, second) for figure in figures}
            cells = {x: [*map(str, counts_of(of).values())] for x, of in pairs.items() if of}
            if cells:
                title = f"{visible(first)} minus {visible(second)}"
                headings = ("ahead", "behind", "equal", "p < .05", "adjusted")
                differences.append(_grid(title, headings, (), cells))
        diagnostic = diagnostics.get(task, multiverse.forms.get(task, ""))
        tables.append((diagnostic, figures, ranges, differences))
    return tables


def _grid(
    title: str, figures: Sequence[str], knobs: Sequence[str], cells: Mapping[str, Sequence[str]]
) -> Grid:
    """A table of texts: a row per label, columns of figures and of knobs."""
    headings = (*(Heading(name, is_figure=True) for name in figures), *map(Heading, knobs))
    rows = [GridRow((visible(x),), 0, tuple(map(CellText, row))) for x, row in cells.items()]
    return Grid("", (title,), headings, tuple(rows))


# ---- charts --------------------------------------------------------------------------------------


def multiverse_plots(multiverse: Multiverse) -> Iterator[tuple[Place, Plot]]:
    """Yields all charts with the address of their figure.

    A curve for each model, and one of the differences from the first model of each other one.
    """
    first, *others = multiverse.models
    for figure in multiverse.figures:
        place, label = figure.place, visible(figure.label)
        name = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in place if part)
        known = [x for x in figure.values if x and x.value is not None]
        reach = [y for x in known for y in (x.value, x.ci_low, x.ci_high) if y is not None]
        percent = all(x.is_percent for x in known)
        for number, model in enumerate((first, *others)):
            if rows := _figure_rows(multiverse, figure, model):
                color = COLORS[number % len(COLORS)]
                chart = _chart(rows, multiverse.choices(model), color, percent, reach)
                caption = f"{label}, {visible(model)}. Lines are 95% intervals; the large point is "
                caption += "the default protocol"
                if any(row["chance"] is not None for row in rows):
                    caption += "; the dashed line is chance, and a hollow point is not "
                    caption += "distinguishable from chance"
                yield place, Plot("curve", f"{name}-{number + 1}", f"{caption}.", chart)
        for number, second in enumerate(others, start=2):
            if rows := _difference_rows(multiverse, figure, second):
                knobs = multiverse.choices(first) | multiverse.choices(second)
                chart = _chart(rows, knobs, INK, percent)
                caption = f"{label}, {visible(first)} minus {visible(second)}. Lines are 95% "
                caption += "intervals; the large point is the default protocol; a filled point has "
                caption += "p < .05, not adjusted."
                yield place, Plot("curve", f"{name}-difference-{number}", caption, chart)


def _figure_rows(
    multiverse: Multiverse, figure: MultiverseFigure, model: str
) -> list[dict[str, Any]]:
    """The points of the curve of a model, each with its choices."""
    default = multiverse.numbers_of(model)[0]
    return [
        {
            "value": x.value, "low": x.ci_low, "high": x.ci_high, "chance": x.chance, "n": x.n,
            "versus_chance": x.versus_chance, "solid": x.versus_chance != "not distinguishable",
            "default": member == default, "choices": multiverse.members[member].choices,
        }
        for member, x in multiverse.curve(figure, model)
    ]  # fmt: skip


def _difference_rows(
    multiverse: Multiverse, figure: MultiverseFigure, second: str
) -> list[dict[str, Any]]:
    """The points of the differences from the first model, each with the choices of both members."""
    first = multiverse.models[0]
    knobs = multiverse.choices(first)
    defaults = [multiverse.numbers_of(model)[0] for model in (first, second)]
    pairs = [
        (x, multiverse.members[x.a].choices, multiverse.members[x.b].choices)
        for x in multiverse.differences(figure, second)
    ]
    return [
        {
            "value": x.difference, "low": x.ci_low, "high": x.ci_high, "chance": 0.0, "n": x.n,
            "p": x.p, "p_adjusted": x.p_adjusted, "solid": x.p is not None and x.p < ALPHA,
            "default": [x.a, x.b] == defaults,
            "choices": a | b | {knob: a[knob] for knob in a if knob in knobs},
        }
        for x, a, b in pairs
    ]  # fmt: skip


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
