"""Charts of many models: a figure of every model, and figures against size or training step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from lmdiag import diagnostics
from lmdiag.analysis.designs import UNITS, Analysis, cell_columns
from lmdiag.asking.training_steps import trained_model
from lmdiag.report.charts import MOST_BESIDE, Plot, name_part
from lmdiag.report.charts.conditions import cell_colors
from lmdiag.report.charts.drawing import (
    ANALYSIS_TO_CHART,
    COLORS,
    OTHERS,
    curves,
    distinct,
    layer_channel,
    line_plot,
    meanings,
)
from lmdiag.report.charts.kinds import chart_columns, figure_plots
from lmdiag.report.charts.vega import Spec, field
from lmdiag.report.selections import ReportFigures, headlines
from lmdiag.results import Results
from lmdiag.results.model_labels import distinct_names, model_label
from lmdiag.text import visible

Axis = Literal["steps", "layers", "sizes"]
"""What figures are drawn against: training step, layer, or number of parameters."""

_AXIS_IN_CAPTION: Mapping[Axis, str] = {
    "steps": "training step", "layers": "layer", "sizes": "number of parameters",
}  # fmt: skip
_AXIS_TITLE: Mapping[Axis, str] = {"steps": "step", "layers": "layer", "sizes": "parameters"}

_OTHER_MODELS = "other models"
"""Family of the models whose marks no line joins."""

_MANY_SIZES = 9
"""Distinct numbers of parameters from which on the axis has fewer ticks than numbers."""

_MOST_RANKED = 6
"""Figures of which a page of many models has a chart; its table has all."""

_SIZE = re.compile(r"\d+(\.\d+)?[kmb]|tiny|mini|small|medium|base|large|x+l|huge", re.IGNORECASE)
"""Matches a part of a model's name that only says how large the model is."""


def family(name: str) -> str:
    """Returns the name of a model without the parts that name its size.

    >>> family("EleutherAI/pythia-1.4b-deduped"), family("bert-large-uncased"), family("gpt2")
    ('pythia-deduped', 'bert-uncased', 'gpt2')
    """
    name_without_owner = name.rstrip("/").rpartition("/")[2]
    parts = re.split("[-_]", name_without_owner)
    return "-".join(part for part in parts if not _SIZE.fullmatch(part)) or name_without_owner


def _headline_rows(figures: ReportFigures) -> pd.DataFrame:
    """The headline figures of all models, a row per defined value, with columns for charts.

    `title` is that of the diagnostic, `panel` the heading of the figure, and `human` the value of
    the human baseline (None without one). `form` is "%" if all values of the figure are in percent,
    else "". For example, a row has the `model` "gpt2", the `title` "NEG-136", the `panel`
    "sensitivity", the `value` 0.81 and the `form` "%".
    """
    table = pd.concat([headlines(task, figures) for task in figures.tasks])
    table = table.dropna(subset="value")
    is_percent = table.groupby(["task", "address"])["is_percent"].transform("all")
    return table.assign(
        title=[visible(diagnostics.get(task).short_title or task) for task in table["task"]],
        panel=table["heading"].map(visible),
        human=[human_figure and human_figure.value for human_figure in table["human"]],
        form=is_percent.map({True: "%", False: ""}),
        label=table["model"],
    )


def ranked_plots(figures: ReportFigures) -> list[Plot]:
    """Returns a chart per headline figure: every model, the highest value first.

    All but the first `_MOST_RANKED` are marked as repeated, so that a page leaves them out: its
    table has the same figures. Figures with a chance level are counted before those without.
    """
    plots = []
    table = _headline_rows(figures)  # a row per headline figure and model
    keys = ["task", "title", "panel", "form"]  # equal in all rows of a figure
    with_chance = table[keys].assign(has_chance=table["chance"].notna())
    has_chance = with_chance.groupby(keys, sort=False)["has_chance"].any()
    by_chance = has_chance.sort_values(ascending=False, kind="stable")
    shown_keys = by_chance.index[:_MOST_RANKED]
    for figure_key, rows in table.groupby(keys, sort=False):
        task, title, figure, form = figure_key
        ordered = rows.sort_values("value", ascending=False, kind="stable")
        # one series of one colour, in one panel: the labels are the models
        data = ordered.drop(columns="panel").assign(series="")
        name = f"{name_part(task)}-models-{name_part(figure)}"
        is_repeated = figure_key not in shown_keys
        for plot in figure_plots("models", name, f"{title}: {figure}", data, form):
            plots.append(plot._replace(is_repeated=is_repeated))
    return plots


def trend_plots(figures: ReportFigures) -> list[Plot]:
    """Returns the headline figures of each task against layer, training step or model size.

    The axis is the layer if some runs answered after an inner one, the training step if all models
    have one, otherwise the number of parameters. Charts against the number of parameters need three
    models, some of which are of one family, or more models than a table has columns.

    The figures of one model, or of one family, are lines of one chart; those of several are panels.
    Against layers, figures without a chance level are further charts if others have one.
    """
    runs = {source.label: source.results for source in figures.sources}
    axis = _axis([*runs.values()])
    positions = _positions(runs, axis)
    if len({*positions.values()}) < 2 or len(positions) < (3 if axis == "sizes" else 2):
        return []
    families = {label: _family_on_axis(run, axis) for label, run in runs.items()}
    largest_families = Counter(families.values()).most_common(len(COLORS) - 1)
    # family -> its name in the chart, for those whose models a line joins; the marks of all other
    # models are grey points
    names = {name: visible(name) for name, n_models in largest_families if n_models > 1}
    if axis == "steps":  # the last part of an id, or more parts where models share it
        names = {name: visible(short) for name, short in distinct_names(names).items()}
    if axis == "sizes" and not names and len(runs) <= MOST_BESIDE:
        return []  # points that no line joins: the headline table has the same figures
    data = _headline_rows(figures)
    data["series"] = data["model"].map(families).map(names).fillna(_OTHER_MODELS)
    data["at"] = data["model"].map(positions)
    data["is_further"] = False  # whether the figure is in a further chart
    if axis == "layers" and data["chance"].notna().any():
        has_chance = data["chance"].notna().groupby([data["task"], data["address"]])
        data["is_further"] = ~has_chance.transform("any")
    plots = []
    # a chart for each task, of its figures in percent ("%") or in other units ("")
    keys = ["task", "title", "form", "is_further"]
    for plot_key, rows in data.dropna(subset="at").groupby(keys, sort=False):
        task, title, form, is_further = plot_key
        figure_names = "figures"
        if rows["series"].nunique() == 1:
            # one model or family: its figures are the lines of one panel
            rows = rows.assign(series=rows["panel"]).drop(columns=["panel", "human"])
            # "sensitivity, simple" and "sensitivity, natural" become "simple" and "natural", and
            # the caption names the sensitivity
            prefix = _shared_prefix(distinct(rows, "series"))
            if prefix:
                figure_names = prefix.removesuffix(", ")
                rows["series"] = rows["series"].str.removeprefix(prefix)
        caption = f"{title}: {figure_names} by {_AXIS_IN_CAPTION[axis]}.{meanings(rows)}"
        if names and axis == "sizes":
            caption += " Lines join the models of a family."
        name = f"{name_part(task)}-{axis}"
        if not form:  # of figures that are not in percent
            name += "-other"
        if is_further:
            name += "-further"
        chart = _trend_chart(chart_columns(rows), axis, form)
        plots.append(Plot(axis, name, caption, chart, is_further, heading=title))
    return sorted(plots, key=lambda plot: plot.is_further)


def _axis(runs: Sequence[Results]) -> Axis:
    """What the figures of some runs are drawn against.

    Layers if any run was asked after an inner layer, training steps if all models are checkpoints
    of a training, otherwise numbers of parameters.
    """
    if any(run.protocol.layer is not None for run in runs):
        return "layers"
    return "steps" if all(run.model.training_step is not None for run in runs) else "sizes"


def _positions(runs: Mapping[str, Results], axis: Axis) -> dict[str, int]:
    """Label of a run -> its training step, layer or number of parameters, where it is known.

    For example, {"pythia-70m": 70426624} against sizes.
    """
    positions = {}
    for label, run in runs.items():
        position = {
            "steps": run.model.training_step,
            "layers": run.layer,
            "sizes": run.model.n_parameters or None,
        }[axis]
        if position is not None:
            positions[label] = position
    return positions


def _family_on_axis(run: Results, axis: Axis) -> str:
    """The name that runs have in common if a line joins their figures along an axis.

    That is the model whose checkpoints or layers were run, or a family of models of several sizes,
    as "pythia" of pythia-70m and pythia-160m.
    """
    if axis == "steps":
        return trained_model(run.model.id, run.model.revision)
    if axis == "layers":
        return model_label(run.model)
    return family(run.model.name or run.model.id)


def _shared_prefix(names: Sequence[str]) -> str:
    """The measure with which the names of several figures begin; "" if they differ in it.

    >>> _shared_prefix(["sensitivity, simple", "sensitivity, natural"])
    'sensitivity, '
    """
    prefixes = {name.partition(", ")[0] + ", " for name in names}
    if len(names) < 2 or len(prefixes) > 1:
        return ""
    [prefix] = prefixes
    # a name that is the measure alone does not begin with the comma
    return prefix if all(name.startswith(prefix) for name in names) else ""


def condition_trends(
    name: str, analysis: Analysis, positions: Mapping[str, int], axis: Axis
) -> list[Plot]:
    """Returns the effects of a design, and the means of its conditions, against layer or step.

    A line is an effect or a condition, in the colour of the condition in all charts. Each suite has
    charts of its own.

    Args:
        name: with which the names of the charts begin.
        analysis: of models that are layers or checkpoints of one.
        positions: label of a model -> its layer or training step.
        axis: what the positions are.
    """
    response = analysis.response_text()
    condition_columns = [*cell_columns([*analysis.conditions]).values()]
    levels = analysis.cells[condition_columns]  # a row per model and cell
    cell_names = [", ".join(filter(None, row)) for row in levels.itertuples(index=False, name=None)]
    colors = cell_colors(levels)
    # an effect has the colour of no condition, as long as there are colours
    effect_colors = COLORS[len({*colors}) % len(COLORS) :]
    effects = analysis.effects.assign(zero=0.0)
    keys = ["model", "effect"]
    if "suite" in effects:
        keys.insert(0, "suite")
    subject = f"effects on {response}"
    if effects.duplicated(keys).any():  # of other levels, which are in the label
        effects["series"] = effects["label"]
    else:
        effects["series"] = effects["effect"]
        subject += f" ({', '.join(distinct(effects, 'label'))})"
    unit = UNITS.get(analysis.response)
    effect_plots = _design_curves(
        effects.assign(at=effects["model"].map(positions)), axis,
        name=f"{name}-effects", subject=subject, title="difference", unit=unit,
        meaning="Lines are 95% intervals over items, the line across marks an effect of zero.",
        colors=effect_colors,
    )  # fmt: skip
    mean_plots = _design_curves(
        analysis.cells.assign(series=cell_names, at=analysis.cells["model"].map(positions)), axis,
        name=f"{name}-means", subject=f"mean {response} by condition", title=response, unit=unit,
        meaning="Lines are 95% intervals within items.", colors=colors,
    )  # fmt: skip
    return [*effect_plots, *mean_plots]


def _design_curves(
    table: pd.DataFrame,
    axis: Axis,
    *,
    name: str,
    subject: str,
    title: str,
    unit: str | None,
    meaning: str,
    colors: Sequence[str],
) -> Iterator[Plot]:
    """Yields a chart per suite, or a single one, of effects or means of a design.

    Args:
        table: `Analysis.effects` or `Analysis.cells` with `series` (the names of lines) and `at`
            (layer or training step).
        name: begins the names of the charts.
        subject, meaning: begin and end of the caption.
        title, unit: of the axis of values.
        colors: of the lines, in the order of the rows.
    """
    table = table.assign(series=table["series"].map(visible)).rename(columns=ANALYSIS_TO_CHART)
    columns = ["at", "series", "value", "low", "high", "n"]
    if "zero" in table:
        columns.append("zero")
    suites = table.groupby("suite", sort=False) if "suite" in table else [("", table)]
    for number, (suite, rows) in enumerate(suites, start=1):
        caption = visible(f"{suite}: {subject}" if suite else subject)
        caption += f" by {_AXIS_IN_CAPTION[axis]}. {meaning}"
        axis_title = ", ".join(filter(None, (title, unit)))
        chart = _curves(rows[columns], axis, title=axis_title, colors=colors)
        file_name = f"{name}-{axis}-{number}" if suite else f"{name}-{axis}"
        yield Plot("conditions", file_name, caption[:1].upper() + caption[1:], chart)


def _curves(data: pd.DataFrame, axis: Axis, **options: Any) -> Spec:
    """A line per series over the column `at`, in one panel; `options` are those of `line_plot`."""
    x = _axis_channel(data, axis)
    return curves(data.sort_values("at", kind="stable"), x, at="at", **options)


def _axis_channel(data: pd.DataFrame, axis: Axis) -> Spec:
    """The channel x of the column `at`: training step, layer or number of parameters.

    Layers have a linear scale, steps and parameters a logarithmic one with ticks such as "1.5B".
    """
    positions = sorted(distinct(data, "at"))
    if axis == "layers":
        return layer_channel("at", positions)
    label = "replace(format(datum.value, '.3~s'), 'G', 'B')"  # 1.5B parameters, not 1.5G
    # few values have a tick each: with a number of ticks, Vega would leave out some of them
    has_all_ticks = axis == "steps" or len(positions) < _MANY_SIZES
    ticks: Spec = {"values": positions} if has_all_ticks else {"tickCount": 3}
    labels = {"labelExpr": label, "labelOverlap": "greedy", "labelFlush": False, "grid": False}
    if axis == "steps":  # linear up to the first step, so that there is room for step 0
        first_step = next(filter(None, positions))
        scale = {"type": "symlog", "constant": first_step, "nice": False}
    else:
        scale = {"type": "log", "nice": False, "padding": 8}
    title = f"{_AXIS_TITLE[axis]}, log scale"
    return field("at", "numbers", title=title, scale=scale, axis=labels | ticks)


def _trend_chart(data: pd.DataFrame, axis: Axis, form: str) -> Spec:
    """Figures against training step, layer or number of parameters (`at`).

    With a column `panel`, each figure has a panel, and each family (`series`) a line in it;
    without, all figures are lines of one plot. `form` is "%" for proportions, else "".
    """
    if "panel" not in data:
        return _curves(data, axis, form=form)
    # models of no family last, whose points are grey and not joined
    data = data.sort_values("series", key=lambda names: names == _OTHER_MODELS, kind="stable")
    families = [name for name in distinct(data, "series") if name != _OTHER_MODELS]
    styles = {name: number for number, name in enumerate(families)}
    if _OTHER_MODELS in distinct(data, "series"):
        styles[_OTHER_MODELS] = OTHERS
    x = _axis_channel(data, axis)
    independent = "" if form else "y"  # proportions have one scale, from 0 to 1
    return line_plot(data, x, form=form, joined=families, styles=styles, independent=independent)
