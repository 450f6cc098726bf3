"""Charts of many models: a figure of every model, and figures against size or training step."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import altair as alt
import pandas as pd

from lmdiag import diagnostics
from lmdiag.report.charts import Plot, drawing, name_part
from lmdiag.report.charts.drawing import COLORS, MUTED, SHAPES, distinct, dot_plot
from lmdiag.report.selections import ReportFigures, headlines
from lmdiag.text import visible
from lmdiag.training_steps import trained_model

_OTHERS = "other models"
"""Family of the models whose marks no line joins."""

_SIZE = re.compile(r"\d+(\.\d+)?[kmb]|tiny|mini|small|medium|base|large|x+l|huge", re.IGNORECASE)
"""A part of a model's name that only says how large the model is."""


def family(name: str) -> str:
    """Returns the name of a model without the parts that name its size.

    >>> family("EleutherAI/pythia-1.4b-deduped"), family("bert-large-uncased"), family("gpt2")
    ('pythia-deduped', 'bert-uncased', 'gpt2')
    """
    last = name.rstrip("/").rpartition("/")[2]
    return "-".join(part for part in re.split("[-_]", last) if not _SIZE.fullmatch(part)) or last


_COLUMNS = [
    "task", "title", "figure", "model", "human", "is_percent",
    "value", "n", "chance", "versus_chance", "sd", "low", "high",
]  # fmt: skip
"""Columns of figures that these charts have."""


def _figures(figures: ReportFigures) -> pd.DataFrame:
    """The headline figures of all models, a row per model.

    `title` is that of the diagnostic, `figure` the heading, `human` the value of the baseline.
    """
    table = pd.concat([headlines(task, figures) for task in figures.tasks])
    table = table.dropna(subset="value")
    is_percent = table.groupby(["task", "address"])["is_percent"].transform("all")
    return table.assign(
        title=[visible(diagnostics.get(task).short_title or task) for task in table["task"]],
        figure=table["heading"].map(visible),
        human=[human and human.value for human in table["human"]],
        is_percent=is_percent,
    )[_COLUMNS]


def ranked_plots(figures: ReportFigures) -> list[Plot]:
    """Returns a chart per headline figure: every model, the highest value first."""
    plots = []
    keys = ["task", "title", "figure", "is_percent"]
    for (task, title, figure, is_percent), rows in _figures(figures).groupby(keys, sort=False):
        data = rows.sort_values("value", ascending=False, kind="stable")
        data = data.assign(label=data["model"], series="")
        name = f"{name_part(task)}-models-{name_part(figure)}"
        plots += dot_plot("models", name, f"{title}: {figure}", data, percent=is_percent)
    return plots


def trend_plots(figures: ReportFigures) -> list[Plot]:
    """Returns the headline figures of each task in panels, against training step or model size.

    The figures in percent have one scale. Against the training step where all models have one,
    otherwise against the number of parameters, of three models or more.
    """
    models = {source.label: source.results.model for source in figures.sources}
    is_step = all(model.training_step is not None for model in models.values())
    kind, what = ("steps", "training step") if is_step else ("sizes", "number of parameters")
    places = dict[str, int]()
    families = dict[str, str]()
    for label, model in models.items():
        place = model.training_step if is_step else model.n_parameters or None
        places |= {} if place is None else {label: place}
        of_steps = trained_model(model.id, model.revision) if is_step else ""
        families[label] = of_steps or family(model.name or model.id)
    if len({*places.values()}) < 2 or len(places) < (2 if is_step else 3):
        return []
    data = _figures(figures)
    counts = Counter(families.values()).most_common(len(COLORS) - 1)
    names = {name: visible(name) for name, n in counts if n > 1}
    data["family"] = data["model"].map(families).map(names).fillna(_OTHERS)
    data = data.assign(at=data["model"].map(places)).dropna(subset="at")
    plots = []
    for (task, title, is_percent), rows in data.groupby(
        ["task", "title", "is_percent"], sort=False
    ):
        caption = f"{title}: figures by {what}.{drawing.meanings(rows)}"
        caption += "" if is_step or not names else " Lines join the models of a family."
        name = f"{name_part(task)}-{kind}{'' if is_percent else '-other'}"
        plots.append(Plot(kind, name, caption, _trend_chart(rows, is_step, is_percent)))
    return plots


def _trend_chart(data: pd.DataFrame, is_step: bool, percent: bool) -> Any:
    """Figures against the training step or the number of parameters (`at`), a panel for each."""
    places = sorted(distinct(data, "at"))
    label = "replace(format(datum.value, '.3~s'), 'G', 'B')"
    axis = alt.Axis(labelExpr=label, labelOverlap=True, grid=False, tickCount=3)
    scale = alt.Scale(type="log", nice=False, padding=8)
    if is_step:  # linear up to the first step, so that there is room for step 0
        ticks = places[:1]
        for place in places:  # each at least eight times the tick before
            if place >= max(1, 8 * ticks[-1]):
                ticks.append(place)
        axis["values"] = ticks
        scale = alt.Scale(type="symlog", constant=next(filter(None, places)), nice=False)
    x = alt.X("at:Q", title="training step" if is_step else "parameters", scale=scale, axis=axis)
    families = sorted(distinct(data, "family"), key=lambda name: name == _OTHERS)
    colors = [MUTED if name == _OTHERS else COLORS[i] for i, name in enumerate(families)]
    looks = drawing.series("family", families, color=colors, shape=SHAPES)
    channels = {"x": x, "y": drawing.numeric("y", "value", percent=percent)}
    line = alt.Chart().mark_line(strokeWidth=1.5).encode(**channels, color=looks["color"])
    line = line.transform_filter(f"datum.family != '{_OTHERS}'")
    columns = "model, figure, at, n, value, low, high, chance, human"
    dots = drawing.points(data, "y", channels | looks, columns, ".1%" if percent else ".3~f")
    chart = drawing.layered(data, line, *dots, height=110)
    return drawing.panels(chart, data, "figure", own="" if percent else "y")
