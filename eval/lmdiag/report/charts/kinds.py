"""The kinds of charts that a diagnostic can declare, filled from its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import altair as alt
import pandas as pd

from lmdiag.diagnostics import Chart
from lmdiag.report.charts import Plot, drawing, name_part
from lmdiag.report.charts.conditions import regions
from lmdiag.report.charts.drawing import COLORS, MUTED, SHAPES, distinct, dot_plot, meanings
from lmdiag.report.charts.items import cloze, scatter
from lmdiag.report.charts.task_runs import DRAWN, TaskRuns
from lmdiag.report.items import run_scores
from lmdiag.report.labels import measure_label
from lmdiag.report.selections import HUMAN, ReportFigures, figures_of_sets, rank_in
from lmdiag.results import FigureKey, Results
from lmdiag.results.figures import in_patterns
from lmdiag.text import visible
from lmdiag.types import BadInput

_MOST_LEVELS = 40
"""Levels in a chart; more make it longer than a page of a paper."""


def plots(data: TaskRuns) -> list[Plot]:
    """Returns the charts that a diagnostic declares and that its runs have data for."""
    found = [plot for x in data.diagnostic.charts for plot in CHART_KINDS[x.kind](data, x)]
    found += _extended_sets(data)
    return [plot._replace(name=f"{name_part(data.task)}-{plot.name}") for plot in found]


def measures_plot(model: str, results: Results) -> Plot:
    """Returns a chart of the figures of one model that are in percent, without cut-offs."""
    task, setting = next((task, setting) for task, of in results.tasks.items() for setting in of)
    data = TaskRuns(task, (), ReportFigures.of([results]), ())
    table = data.table(setting=setting, proportions=True).assign(series=visible(model))
    if table.empty:
        raise BadInput("no measure is a proportion, so there is nothing to draw: see to_frame()")
    return dot_plot("figures", "measures", visible(model), table)[0]


def _figures(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Figures in percent: of one run in all settings, of several runs unperturbed."""
    measures = (*chart.measures, "*")
    table = data.table(*measures, proportions=True)
    if len(data.runs) == 1:
        order = distinct(table, "label")
        series = {name: visible(data.diagnostic.setting_label(name)) for name in data.settings}
        series[HUMAN] = "Human (cloze)"
        table = pd.concat([
            data.table(*measures, setting=setting, proportions=True).assign(series=label)
            for setting, label in series.items()
        ])  # fmt: skip
        table = table.assign(rank=rank_in(table["label"], order)).dropna(subset="rank")
        table = table.sort_values("rank", kind="stable").drop(columns="rank")
    yield from dot_plot(chart.kind, "measures", chart.title or "Figures in percent", table)


def _levels(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The levels of a break-down: all measures of one run, or the first measure of several runs.

    Very many levels have several charts, by the break-down that each of them is a part of.
    """
    by = chart.by
    title = chart.title
    table = data.table(*chart.measures, by=by, levels=chart.levels)
    if len(data.runs) > 1 and len(table):
        first = in_patterns(table["measure"].unique(), chart.measures)[0]
        table = table[table["measure"] == first]
        title += f" ({measure_label(first)})"
    levels = pd.Series(distinct(table, "level"))
    groups = pd.Series("", levels)
    if len(levels) > _MOST_LEVELS:
        groups = pd.Series([f"part {1 + i // _MOST_LEVELS}" for i in levels.index], levels)
        items = pd.DataFrame([item.levels for item in data.items[0]]).groupby(by, sort=False)
        owners = items.first().loc[:, items.nunique().eq(1).all()]
        if len(owners.columns):
            finest = owners.nunique().idxmax()
            groups = owners[finest].map(lambda x: visible(data.diagnostic.level_label(finest, x)))
    name = name_part(by) + (f"-{name_part(chart.measures[0])}" if len(chart.measures) == 1 else "")
    for group, rows in table.groupby(table["level"].map(groups), sort=False):
        about = f"{title}: {group}" if group else title
        part = f"{name}-{name_part(str(group))}".strip("-")
        for plot in dot_plot(chart.kind, part, about, rows):
            yield plot._replace(is_further=bool(group))


def _extended_sets(data: TaskRuns) -> Iterator[Plot]:
    """The figures of small and extended sets, as their table has them."""
    sets = data.diagnostic.extended_sets
    found = figures_of_sets(data.task, data.figures)
    if found.empty or sets is None:
        return
    headings = found["heading"].map(visible)
    table = found.assign(label=headings, series=found["set"])
    if len(data.runs) > 1:
        table = found.assign(label=headings + ", " + found["set"], series=found["model"])
    drawn = table[[*FigureKey._fields, *DRAWN]]
    yield from dot_plot("levels", "extended-sets", sets.title, drawn)


def _shuffles(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The measures in each shuffle, with mean and standard deviation, a chart per run."""
    for i, run in enumerate(data.runs):
        parts = []
        times = 0
        model = data.figures.sources[i].label
        for setting in (p for p in data.diagnostic.perturbations if p.shuffled):
            settings = (setting.name, setting.unshuffled)
            tables = [data.table(*chart.measures, setting=name) for name in settings]
            means, plain = (table[table["model"] == model] for table in tables)
            keys = [key for key in run.predictions[data.task] if key[0] == setting.name]
            scores = [run_scores(run, data.task, *key) for key in keys]
            values = [
                {"label": row["label"], "value": float(of_items[row["measure"]].values.mean())}
                for row in means.to_dict("records")
                for of_items in scores
            ]
            shuffled = pd.DataFrame(values).value_counts().rename("shuffles").reset_index()
            series = {
                "mean": means,
                "shuffles": shuffled,
                "not shuffled": plain[["label", "value"]],
            }
            rows = pd.concat([table.assign(series=name) for name, table in series.items()])
            rows["label"], times = f"{setting.label}, " + rows["label"], len(keys) or times
            parts.append(rows)
        if times:
            table = pd.concat(parts)[["label", "series", "value", "sd", "published", "shuffles"]]
            table = table.fillna({"shuffles": 1})
            title = f"{chart.title}, {times} times"
            drawn = dot_plot(chart.kind, "shuffles", title, table, colors=data.colors(i))
            yield from (data.of_run(i, plot) for plot in drawn)


def _cutoffs(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """MW and EW over cut-offs: of one run, or a panel per score of several; then by break-down."""
    names = [f"{score}@{end}=*" for score in ("mw", "ew") for end in ("top", "bottom")]
    table = data.table(*names)
    several = len(data.runs) > 1
    if table.empty:  # a server gives no whole distribution
        return
    caption = "MW and EW of the verbs in the top of the distribution, then of those in its bottom."
    drawn = _cutoff_chart(table, "score" if several else "")
    yield Plot(chart.kind, "cutoffs-mw-ew", caption + meanings(table), drawn)
    by = data.table(*names, by=chart.by, levels=chart.levels)
    if len(by) and not several:
        caption = f"MW and EW by cut-off in each {chart.by}; left of the line top, right bottom."
        name = f"cutoffs-{name_part(chart.by)}s"
        yield Plot(chart.kind, name, caption, _cutoff_chart(by, "label"))


def _cutoff_chart(data: pd.DataFrame, panel: str) -> Any:
    """Scores by cut-off of the distribution: of its top, then of its bottom.

    With panels by `score` the series are models; panels by `label` have no points and intervals.
    """
    data[["score", "end", "cut"]] = data["measure"].str.upper().str.split("[@=]", expand=True)
    cuts = data["end"].str.lower() + data["cut"].map(lambda cut: f" {float(cut):g}")
    is_small = panel == "label"
    data = data.drop(columns=["end", "cut"]).assign(**{"cut-off": cuts})
    axis = alt.Axis(labelAngle=0, labelOverlap=True)
    axis["labelExpr"] = "replace(datum.label, regexp('.* 0?'), '')"
    title = None if is_small else "probability mass kept: top | bottom of the distribution"
    x = alt.X("cut-off:O", sort=distinct(data, "cut-off"), title=title, axis=axis)
    lowest = 0 if is_small else min(0.48, data[["value", "low"]].min().min())
    place = {"x": x, "y": drawing.numeric("y", "value", domain=[lowest, 1])}
    column = "model" if panel == "score" else "score"
    looks = drawing.series(column, distinct(data, column), color=COLORS, shape=SHAPES)
    first = next((cut for cut in cuts if cut.startswith("bottom")), cuts.iloc[-1])
    border = alt.Chart(drawing.ONE_ROW).mark_rule(color=MUTED)
    layers = [
        alt.Chart().mark_line(strokeWidth=1.5).encode(**place, color=looks["color"]),
        border.encode(x=alt.XDatum(first, bandPosition=0)),
    ]
    if not is_small:
        columns = f"{column}, cut-off, n, versus_chance, value, low, high, chance"
        layers += drawing.points(data, "y", place | looks, columns)
    chart = drawing.layered(data, *layers, height=80 if is_small else 190)
    return drawing.panels(chart, data, panel, 2 if is_small else 1) if panel else chart


CHART_KINDS: Mapping[str, Callable[[TaskRuns, Chart], Iterator[Plot]]] = {
    "figures": _figures, "levels": _levels, "scatter": scatter, "cloze": cloze,
    "shuffles": _shuffles, "cutoffs": _cutoffs, "regions": regions,
}  # fmt: skip
"""Kind of a declared chart -> the function that makes it."""
