"""Charts of many models: a figure of every model, and figures against size or training step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from lmdiag import diagnostics
from lmdiag.report.charts import Plot, name_part
from lmdiag.report.charts.drawing import OTHER_MODELS, dot_chart, trend_chart
from lmdiag.report.charts.kinds import figure_row
from lmdiag.report.charts.parts import COLORS, has
from lmdiag.report.tables import HeadlineFigure, Source, headlines
from lmdiag.text import visible
from lmdiag.training_steps import trained_model

_SIZE = re.compile(r"\d+(\.\d+)?[kmb]|tiny|mini|small|medium|base|large|x+l|huge", re.IGNORECASE)
"""A part of a model's name that only says how large the model is."""


def family(name: str) -> str:
    """Returns the name of a model without the parts that name its size.

    >>> family("EleutherAI/pythia-1.4b-deduped"), family("bert-large-uncased"), family("gpt2")
    ('pythia-deduped', 'bert-uncased', 'gpt2')
    """
    last = name.rstrip("/").rpartition("/")[2]
    return "-".join(part for part in re.split("[-_]", last) if not _SIZE.fullmatch(part)) or last


def model_figures(sources: Sequence[Source]) -> list[tuple[str, HeadlineFigure]]:
    """Returns each headline figure that any model has, with the title of its diagnostic."""
    return [
        (visible(diagnostics.get(task).short_title or task), figure)
        for task in dict.fromkeys(task for source in sources for task in source.results.tasks)
        for figure in headlines(task, sources)
        if any(value and value.value is not None for value in figure.figures)
    ]


def _table(figure: HeadlineFigure, sources: Sequence[Source]) -> pd.DataFrame:
    """A row per model that has the figure; with the sources, in their order."""
    human, label = figure.human and figure.human.value, visible(figure.label)
    return pd.DataFrame(
        figure_row(value) | {"model": source.label, "human": human, "figure": label}
        for source, value in zip(sources, figure.figures, strict=True)
        if value and value.value is not None
    )


def _is_percent(figure: HeadlineFigure) -> bool:
    return all(value.is_percent for value in figure.figures if value)


def _reading(data: pd.DataFrame, direction: str) -> str:
    """What the marks of the data mean."""
    parts = {
        "low": f"Thin {direction} lines are 95% intervals.",
        "chance": "The dashed line is chance.",
        "human": "The grey line is the human baseline.",
    }
    return " ".join(text for column, text in parts.items() if has(data, column))


def ranked_plots(sources: Sequence[Source]) -> list[Plot]:
    """Returns a chart per headline figure: every model, the highest value first."""
    plots = []
    for title, figure in model_figures(sources):
        data = _table(figure, sources).sort_values("value", ascending=False, kind="stable")
        chart = dot_chart(data.assign(label=data["model"], series=""), percent=_is_percent(figure))
        caption = f"{title}: {visible(figure.label)}. {_reading(data, 'horizontal')}"
        name = f"{name_part(figure.place.task)}-models-{name_part(figure.label)}"
        plots.append(Plot("models", name, caption, chart))
    return plots


def trend_plots(sources: Sequence[Source]) -> list[Plot]:
    """Returns the headline figures of each task in panels, against training step or model size.

    The figures in percent have one scale. Against the training step where all models have one,
    otherwise against the number of parameters, of three models or more.
    """
    is_step = all(source.results.model.training_step is not None for source in sources)
    models = {source.label: source.results.model for source in sources}
    known = {
        label: model.training_step if is_step else model.n_parameters or None
        for label, model in models.items()
    }
    places = {label: place for label, place in known.items() if place is not None}
    if len(places) < (2 if is_step else 3) or len({*places.values()}) < 2:
        return []
    families = _families(sources, is_step)
    are_joined = not is_step and {*families.values()} != {OTHER_MODELS}
    tables: dict[tuple[str, str, bool], list[pd.DataFrame]] = {}
    for title, figure in model_figures(sources):
        data = _table(figure, sources)
        data = data[data["model"].isin(places)]
        facts = {"at": data["model"].map(places), "family": data["model"].map(families)}
        key = figure.place.task, title, _is_percent(figure)
        tables.setdefault(key, []).append(data.assign(**facts))
    plots = []
    for (task, title, is_percent), parts in tables.items():
        data = pd.concat(parts)
        of = "training step" if is_step else "number of parameters"
        caption = f"{title}: figures by {of}. {_reading(data, 'vertical')}"
        caption += " Lines join the models of a family." if are_joined else ""
        kind = "steps" if is_step else "sizes"
        name = f"{name_part(task)}-{kind}{'' if is_percent else '-other'}"
        chart = trend_chart(data, is_step=is_step, percent=is_percent)
        plots.append(Plot(kind, name, caption, chart))
    return plots


def _families(sources: Sequence[Source], is_step: bool) -> Mapping[str, str]:
    """Label of each model -> its family; single models, and families beyond five, are others."""
    named = {}
    for source in sources:
        model = source.results.model
        of_steps = trained_model(model.id, model.revision) if is_step else ""
        named[source.label] = of_steps or family(model.name or model.id)
    counts = Counter(named.values())
    joined = [name for name, count in counts.most_common(len(COLORS) - 1) if count > 1]
    return {label: visible(x) if x in joined else OTHER_MODELS for label, x in named.items()}
