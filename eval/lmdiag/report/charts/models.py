"""Charts of many models: a figure of every model, and figures against size or training step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from lmdiag import diagnostics
from lmdiag.analysis.designs import UNITS, Analysis, cell_columns
from lmdiag.asking.training_steps import trained_model
from lmdiag.report.charts import MOST_BESIDE, Plot, name_part
from lmdiag.report.charts.conditions import cell_colors
from lmdiag.report.charts.drawing import (
    COLORS,
    OF_ANALYSIS,
    OTHERS,
    curves,
    distinct,
    layer_channel,
    line_plot,
    meanings,
)
from lmdiag.report.charts.kinds import drawn, figure_plots
from lmdiag.report.charts.vega import Spec, field
from lmdiag.report.selections import ReportFigures, headlines
from lmdiag.results import Results
from lmdiag.results.model_labels import distinct_names, model_label
from lmdiag.text import visible

Axis = Literal["steps", "layers", "sizes"]
_WHAT: Mapping[Axis, str] = {
    "steps": "training step", "layers": "layer", "sizes": "number of parameters",
}  # fmt: skip
_SHORT: Mapping[Axis, str] = {"steps": "step", "layers": "layer", "sizes": "parameters"}
"""What figures are drawn against: in captions, and on the axis."""

_OTHERS = "other models"
"""Family of the models whose marks no line joins."""

_MANY = 9
"""Numbers of parameters from which not each has a tick."""

_MOST_RANKED = 6
"""Figures of which a page of many models has a chart; its table has all."""

_SIZE = re.compile(r"\d+(\.\d+)?[kmb]|tiny|mini|small|medium|base|large|x+l|huge", re.IGNORECASE)
"""A part of a model's name that only says how large the model is."""


def family(name: str) -> str:
    """Returns the name of a model without the parts that name its size.

    >>> family("EleutherAI/pythia-1.4b-deduped"), family("bert-large-uncased"), family("gpt2")
    ('pythia-deduped', 'bert-uncased', 'gpt2')
    """
    last = name.rstrip("/").rpartition("/")[2]
    return "-".join(part for part in re.split("[-_]", last) if not _SIZE.fullmatch(part)) or last


def _figures(figures: ReportFigures) -> pd.DataFrame:
    """The headline figures of all models: `title` of the diagnostic, `panel` the heading.

    `form` is how all values of a figure are written, `human` the value of the baseline.
    """
    table = pd.concat([headlines(task, figures) for task in figures.tasks])
    table = table.dropna(subset="value")
    is_percent = table.groupby(["task", "address"])["is_percent"].transform("all")
    return table.assign(
        title=[visible(diagnostics.get(task).short_title or task) for task in table["task"]],
        panel=table["heading"].map(visible),
        human=[human and human.value for human in table["human"]],
        form=is_percent.map({True: "%", False: ""}),
        label=table["model"],
    )


def ranked_plots(figures: ReportFigures) -> list[Plot]:
    """Returns a chart per headline figure: every model, the highest value first.

    A page has those of the first few figures, of which those with a chance level come first.
    """
    plots = []
    keys = ["task", "title", "panel", "form"]
    table = _figures(figures)
    tested = table[keys].assign(has_chance=table["chance"].notna()).groupby(keys, sort=False).any()
    order = tested.sort_values("has_chance", ascending=False, kind="stable").index
    for (task, title, figure, form), rows in table.groupby(keys, sort=False):
        ordered = rows.sort_values("value", ascending=False, kind="stable")
        data = ordered.drop(columns="panel").assign(series="")
        name = f"{name_part(task)}-models-{name_part(figure)}"
        is_shown = (task, title, figure, form) in order[:_MOST_RANKED]
        charts = figure_plots("models", name, f"{title}: {figure}", data, form)
        plots += [plot._replace(is_repeated=not is_shown) for plot in charts]
    return plots


def trend_plots(figures: ReportFigures) -> list[Plot]:
    """Returns the headline figures of each task against layer, training step or model size.

    Against the layer where some answered after an inner one, against the training step where all
    models have one, otherwise against the number of parameters, of three models or more, a few of
    which must be of one family. The figures of one model, or of
    one family, are lines of one chart; those of several are panels. Against layers, figures without
    a chance level are further charts where others have one.
    """
    runs = {source.label: source.results for source in figures.sources}
    axis = _axis([*runs.values()])
    positions = dict[str, int]()
    families = dict[str, str]()
    for label, run in runs.items():
        position = {
            "steps": run.model.training_step,
            "layers": run.layer,
            "sizes": run.model.n_parameters or None,
        }[axis]
        if position is not None:
            positions[label] = position
        families[label] = {
            "steps": trained_model(run.model.id, run.model.revision),
            "layers": model_label(run.model),
            "sizes": family(run.model.name or run.model.id),
        }[axis]
    if len({*positions.values()}) < 2 or len(positions) < (3 if axis == "sizes" else 2):
        return []
    counts = Counter(families.values()).most_common(len(COLORS) - 1)
    names = {name: visible(name) for name, n in counts if n > 1}
    if axis == "steps":
        names = {name: visible(last) for name, last in distinct_names(names).items()}
    if axis == "sizes" and not names and len(runs) <= MOST_BESIDE:
        return []  # points that no line joins: the headline table has the same figures
    data = _figures(figures)
    data["series"] = data["model"].map(families).map(names).fillna(_OTHERS)
    data["at"] = data["model"].map(positions)
    plots = []
    data["is_further"] = False
    if axis == "layers" and data["chance"].notna().any():
        has_chance = data["chance"].notna().groupby([data["task"], data["address"]])
        data["is_further"] = ~has_chance.transform("any")
    keys = ["task", "title", "form", "is_further"]
    for plot_key, rows in data.dropna(subset="at").groupby(keys, sort=False):
        task, title, form, is_further = plot_key
        figure_names = "figures"
        if rows["series"].nunique() == 1:  # a line per figure, in one panel
            rows = rows.assign(series=rows["panel"]).drop(columns=["panel", "human"])
            if prefix := _shared_beginning(distinct(rows, "series")):
                figure_names = prefix.removesuffix(", ")
                rows["series"] = rows["series"].str.removeprefix(prefix)
        caption = f"{title}: {figure_names} by {_WHAT[axis]}.{meanings(rows)}"
        if names and axis == "sizes":
            caption += " Lines join the models of a family."
        name = f"{name_part(task)}-{axis}"
        if not form:  # of figures that are not in percent
            name += "-other"
        if is_further:
            name += "-further"
        chart = _trend_chart(drawn(rows), axis, form)
        plots.append(Plot(axis, name, caption, chart, is_further, heading=title))
    return sorted(plots, key=lambda plot: plot.is_further)


def _shared_beginning(names: Sequence[str]) -> str:
    """The measure with which the names of several figures begin, "" where they differ in it.

    >>> _shared_beginning(["sensitivity, simple", "sensitivity, natural"])
    'sensitivity, '
    """
    measures = {name.partition(", ")[0] + ", " for name in names}
    shared = measures.pop()
    is_shared = len(names) > 1 and not measures and all(name.startswith(shared) for name in names)
    return shared if is_shared else ""


def condition_trends(
    name: str, analysis: Analysis, places: Mapping[str, int], axis: Axis
) -> list[Plot]:
    """Returns the effects of a design, and the means of its conditions, against layer or step.

    A line is an effect or a condition, in the colour of the condition in all charts. Each suite has
    charts of its own.

    Args:
        name: with which the names of the charts begin.
        analysis: of models that are layers or checkpoints of one.
        places: label of a model -> its layer or training step.
        axis: what the places are.
    """
    response = analysis.response_text()
    unit = UNITS.get(analysis.response)
    levels = analysis.cells[[*cell_columns([*analysis.conditions]).values()]]
    colors = cell_colors(levels)
    effect_colors = COLORS[
        len({*colors}) % len(COLORS) :
    ]  # an effect has the colour of no condition
    names = [", ".join(filter(None, row)) for row in levels.itertuples(index=False, name=None)]
    cells = analysis.cells.assign(series=names)
    effects = analysis.effects.assign(zero=0.0)
    is_short = not effects.duplicated([*{"suite"}.intersection(effects), "model", "effect"]).any()
    effects["series"] = effects["effect" if is_short else "label"]  # the label has the levels, too
    levels_of = f" ({', '.join(distinct(effects, 'label'))})" if is_short else ""
    intervals = " Lines are 95% intervals over items, the line across marks an effect of zero."
    within = " Lines are 95% intervals within items."
    drawn = [
        (
            "effects",
            effects,
            f"effects on {response}{levels_of}",
            "difference",
            intervals,
            effect_colors,
        ),
        ("means", cells, f"mean {response} by condition", response, within, colors),
    ]
    plots = []
    for kind, table, subject, title, meaning, shades in drawn:
        table = table.assign(at=table["model"].map(places), series=table["series"].map(visible))
        table = table.rename(columns=OF_ANALYSIS)
        suites = table.groupby("suite", sort=False) if "suite" in table else [("", table)]
        for number, (suite, rows) in enumerate(suites, start=1):
            columns = ["at", "series", "value", "low", "high", "n", *{"zero"}.intersection(rows)]
            caption = visible(f"{suite}: {subject}" if suite else subject)
            caption += f" by {_WHAT[axis]}.{meaning}"
            title_of_axis = ", ".join(filter(None, (title, unit)))
            chart = _curves(rows[columns], axis, title=title_of_axis, colors=shades)
            suffix = f"-{number}" if suite else ""
            file = f"{name}-{kind}-{axis}{suffix}"
            plots.append(Plot("conditions", file, caption[:1].upper() + caption[1:], chart))
    return plots


def _axis(runs: Sequence[Results]) -> Axis:
    """What the figures of some runs are drawn against."""
    if any(run.protocol.layer is not None for run in runs):
        return "layers"
    return "steps" if all(run.model.training_step is not None for run in runs) else "sizes"


def _curves(data: pd.DataFrame, axis: Axis, **options: Any) -> Spec:
    """A line per series over `at`, in one panel."""
    x = _axis_channel(data, axis)
    return curves(data.sort_values("at", kind="stable"), x, at="at", **options)


def _axis_channel(data: pd.DataFrame, axis: Axis) -> Spec:
    """The channel of training step, layer or number of parameters (`at`)."""
    places = sorted(distinct(data, "at"))
    if axis == "layers":
        return layer_channel("at", places)
    label = "replace(format(datum.value, '.3~s'), 'G', 'B')"
    # a number of ticks would leave out every other one of the values
    is_few = axis == "steps" or len(places) < _MANY
    ticks: Spec = {"values": places} if is_few else {"tickCount": 3}
    ruler = {"labelExpr": label, "labelOverlap": "greedy", "labelFlush": False, "grid": False}
    scale = {"type": "log", "nice": False, "padding": 8}
    title = f"{_SHORT[axis]}, log scale"
    if axis == "steps":  # linear up to the first step, so that there is room for step 0
        scale = {"type": "symlog", "constant": next(filter(None, places)), "nice": False}
    return field("at", "numbers", title=title, scale=scale, axis=ruler | ticks)


def _trend_chart(data: pd.DataFrame, axis: Axis, form: str) -> Spec:
    """Figures against training step, layer or number of parameters (`at`), a panel for each."""
    if "panel" not in data:
        return _curves(data, axis, form=form)
    data = data.sort_values("series", key=lambda names: names == _OTHERS, kind="stable")
    families = [name for name in distinct(data, "series") if name != _OTHERS]
    looks = {name: number for number, name in enumerate(families)}
    if len(families) < data["series"].nunique():
        looks[_OTHERS] = OTHERS
    x = _axis_channel(data, axis)
    return line_plot(data, x, form=form, joined=families, looks=looks, own="" if form else "y")
