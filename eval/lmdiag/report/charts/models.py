"""Charts of many models: a figure of every model, and figures against size or training step."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmdiag import diagnostics
from lmdiag.report.charts.charted import figure_row, name_part
from lmdiag.report.charts.specs import (
    COLORS,
    DASHED,
    SHAPES,
    Datum,
    Plot,
    Spec,
    distinct,
    from_altair,
    tips,
)
from lmdiag.report.tables import HeadlineFigure, Source, headlines
from lmdiag.text import visible
from lmdiag.training_steps import trained_model

MOST_BESIDE = 4
"""Models whose figures stand in columns beside each other; more are the rows of a table."""

_SIZE = re.compile(r"\d+(\.\d+)?[kmb]|tiny|mini|small|medium|base|large|x+l|huge", re.IGNORECASE)
"""A part of a model's name that only says how large the model is."""

_OTHER = "other models"


def family(name: str) -> str:
    """Returns the name of a model without the parts that name its size.

    >>> family("EleutherAI/pythia-1.4b-deduped"), family("bert-large-uncased"), family("gpt2")
    ('pythia-deduped', 'bert-uncased', 'gpt2')
    """
    last = name.rstrip("/").rpartition("/")[2]
    return "-".join(part for part in re.split("[-_]", last) if not _SIZE.fullmatch(part)) or last


def model_figures(sources: Sequence[Source]) -> list[tuple[str, HeadlineFigure]]:
    """Returns each headline figure that any model has, with the title of its diagnostic."""
    tasks = dict.fromkeys(task for source in sources for task in source.results.tasks)
    titles = {task: diagnostics.get(task).short_title or task for task in tasks}
    return [
        (visible(titles[task]), figure)
        for task in tasks
        for figure in headlines(task, sources)
        if any(value and value.value is not None for value in figure.figures)
    ]


def _rows(figure: HeadlineFigure, sources: Sequence[Source]) -> list[Datum]:
    """A row per model that has the figure."""
    human = figure.human and figure.human.value
    return [
        figure_row(value) | {"model": source.label, "human": human, "panel": visible(figure.label)}
        for source, value in zip(sources, figure.figures, strict=True)
        if value and value.value is not None
    ]


def ranked_plots(sources: Sequence[Source]) -> list[Plot]:
    """Returns a chart per headline figure: every model, the highest value first."""
    plots = []
    for title, figure in model_figures(sources):
        rows = _rows(figure, sources)
        spec = _ranked(rows, is_percent=_is_percent(figure))
        caption = f"{title}: {visible(figure.label)}. {_reading(rows)}"
        name = f"{name_part(figure.place.task)}-models-{name_part(figure.label)}"
        plots.append(Plot("models", name, caption, spec))
    return plots


def trend_plots(sources: Sequence[Source]) -> list[Plot]:
    """Returns the headline figures of each task in panels, against training step or model size.

    The figures in percent have one scale. Against the training step where all models have one,
    otherwise against the number of parameters, of three models or more.
    """
    is_step = all(source.results.model.training_step is not None for source in sources)
    places = {source.label: _place(source, is_step) for source in sources}
    places = {label: place for label, place in places.items() if place is not None}
    if len(places) < (2 if is_step else 3) or len({*places.values()}) < 2:
        return []
    families = _families(sources, is_step)
    plots = []
    for task in dict.fromkeys(task for source in sources for task in source.results.tasks):
        figures = headlines(task, sources)
        for is_percent in (True, False):
            rows = [
                row | {"x": places[row["model"]], "family": families[row["model"]]}
                for figure in figures
                if _is_percent(figure) == is_percent
                for row in map(dict, _rows(figure, sources))
                if row["model"] in places
            ]
            if rows:
                kind = "steps" if is_step else "sizes"
                title = visible(diagnostics.get(task).short_title or task)
                of = "training step" if is_step else "number of parameters"
                caption = f"{title}: figures by {of}. {_reading(rows)}"
                if any(count > 1 for count in Counter(families.values()).values()) and not is_step:
                    caption += " Lines join the models of a family."
                name = f"{name_part(task)}-{kind}{'' if is_percent else '-other'}"
                spec = _trend(rows, is_step=is_step, is_percent=is_percent)
                plots.append(Plot(kind, name, caption, spec))
    return plots


def _is_percent(figure: HeadlineFigure) -> bool:
    return all(value.is_percent for value in figure.figures if value)


def _place(source: Source, is_step: bool) -> int | None:
    """Training step or number of parameters; None for a model behind a server."""
    model = source.results.model
    return model.training_step if is_step else model.n_parameters or None


def _families(sources: Sequence[Source], is_step: bool) -> dict[str, str]:
    """Label of each model -> its family; single models, and families beyond five, are others."""
    models = {source.label: source.results.model for source in sources}
    named = {
        label: trained_model(model.id, model.revision)
        if is_step
        else family(model.name or model.id)
        for label, model in models.items()
    }
    counts = Counter(named.values())
    joined = [name for name, count in counts.most_common(len(COLORS) - 1) if count > 1]
    return {label: visible(name) if name in joined else _OTHER for label, name in named.items()}


def _reading(rows: Sequence[Datum]) -> str:
    """What the marks of the rows mean."""
    parts = {
        "low": "vertical" if "x" in rows[0] else "horizontal",
        "chance": "The dashed line is chance.",
        "human": "The grey line is the human baseline.",
    }
    parts["low"] = f"Thin {parts['low']} lines are 95% intervals."
    return " ".join(
        text for field, text in parts.items() if any(row.get(field) is not None for row in rows)
    )


_TIPS = {"model": "model", "panel": "figure", "x": "at", "n": "n", "versus_chance": "vs chance"}


def _ranked(rows: Sequence[Datum], *, is_percent: bool) -> Spec:
    import altair as alt

    rows = sorted(rows, key=lambda row: -row["value"])
    models = distinct(rows, "model")
    form = ".1%" if is_percent else ".3~f"
    scale = alt.Scale(domain=[0, 1]) if is_percent else alt.Scale(zero=False)
    axis = alt.Axis(format="%" if is_percent else "~g", tickCount=5)
    y = alt.Y(
        "model:N", sort=models, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=260)
    )

    def across(field: str) -> Any:
        return alt.X(f"{field}:Q", title=None, scale=scale, axis=axis)

    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]
    layers = _levels(chart, rows, lambda field: {"x": across(f"mean({field})")})
    if _has(rows, "low"):
        known = chart.transform_filter("isValid(datum.low)")
        rule = known.mark_rule(strokeWidth=1.5, opacity=0.6, color=COLORS[0])
        layers.append(rule.encode(y=y, x=across("low"), x2="high:Q"))
    dots = chart.mark_point(filled=True, size=48, opacity=1, color=COLORS[0])
    layers.append(dots.encode(y=y, x=across("value"), tooltip=_tips(rows, form)))
    return from_altair(alt.layer(*layers).properties(height=16 * len(models), width=360), rows)


def _trend(rows: Sequence[Datum], *, is_step: bool, is_percent: bool) -> Spec:
    import altair as alt

    places = sorted(distinct(rows, "x"))
    if is_step:
        first = next((place for place in places if place > 0), 1)
        is_wide = places[-1] > 20 * first
        scale = alt.Scale(type="symlog", constant=first) if is_wide else alt.Scale(zero=False)
        ticks: dict[str, Any] = {"values": _ticks(places, 8 if is_wide else 0)}
    else:
        scale, ticks = alt.Scale(type="log", nice=False, padding=8), {"tickCount": 4}
    labels = "replace(format(datum.value, '.3~s'), 'G', 'B')"
    axis = alt.Axis(labelExpr=labels, labelOverlap=True, grid=False, **ticks)
    x = alt.X("x:Q", title="training step" if is_step else "parameters", scale=scale, axis=axis)
    y_scale = alt.Scale(domain=[0, 1]) if is_percent else alt.Scale(zero=False)
    y_axis = alt.Axis(format="%" if is_percent else "~g", tickCount=5)

    def up(field: str) -> Any:
        return alt.Y(f"{field}:Q", title=None, scale=y_scale, axis=y_axis)

    families = sorted(distinct(rows, "family"), key=lambda name: name == _OTHER)
    colors = [*COLORS[: len(families)]]
    if families[-1] == _OTHER and len(families) > 1:
        colors[-1] = "var(--muted)"
    legend = alt.Legend(title=None, symbolOpacity=1, columns=2) if len(families) > 1 else None
    color = alt.Color("family:N", legend=legend, scale=alt.Scale(domain=families, range=colors))
    shapes = alt.Scale(domain=families, range=SHAPES[: len(families)])
    shape = alt.Shape("family:N", legend=legend, scale=shapes)
    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]
    layers = _levels(chart, rows, lambda field: {"y": up(f"mean({field})")})
    joined = chart if is_step else chart.transform_filter(f"datum.family != '{_OTHER}'")
    layers.append(
        joined.mark_line(strokeWidth=1.5, tooltip=None).encode(x=x, y=up("value"), color=color)
    )
    if _has(rows, "low"):
        rule = chart.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1, opacity=0.5)
        layers.append(rule.encode(x=x, y=up("low"), y2="high:Q", color=color))
    dots = chart.mark_point(filled=True, size=30 if is_step else 44, opacity=1)
    form = ".1%" if is_percent else ".3~f"
    shown = _tips(rows, form)
    layers.append(dots.encode(x=x, y=up("value"), color=color, shape=shape, tooltip=shown))
    panels = alt.Facet("panel:N", title=None, sort=distinct(rows, "panel"))
    panel = alt.layer(*layers).properties(width=150, height=110)
    facets = panel.facet(panels, columns=2, spacing=14)
    if not is_percent:
        facets = facets.resolve_scale(y="independent")
    return from_altair(facets, rows)


def _ticks(steps: Sequence[int], factor: int) -> list[int]:
    """The steps that an axis names: those larger than the last by a factor, or about six."""
    if not factor:
        return list(steps[:: math.ceil(len(steps) / 6)])
    ticks = [steps[0]]
    for step in steps:
        if step > 0 and step >= factor * ticks[-1]:
            ticks.append(step)
    return ticks


def _levels(chart: Any, rows: Sequence[Datum], encoding: Any) -> list[Any]:
    """The lines of the human baseline and of chance, where the rows have them."""
    marks: dict[str, dict[str, Any]] = {
        "human": {"color": "var(--muted)", "strokeWidth": 2, "opacity": 0.7},
        "chance": {"color": "var(--ink)", "strokeDash": DASHED},
    }
    return [
        chart.transform_filter(f"isValid(datum.{field})")
        .mark_rule(**mark, tooltip=None)
        .encode(**encoding(field))
        for field, mark in marks.items()
        if _has(rows, field)
    ]


def _has(rows: Sequence[Datum], field: str) -> bool:
    return any(row.get(field) is not None for row in rows)


def _tips(rows: Sequence[Datum], form: str) -> list[Any]:
    titles = {"value": "value", "low": "from", "high": "to", "chance": "chance", "human": "human"}
    return [*tips(rows, _TIPS), *tips(rows, titles, form)]
