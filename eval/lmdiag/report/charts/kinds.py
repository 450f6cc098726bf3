"""The kinds of charts that a diagnostic can declare, filled from its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from lmdiag.diagnostics import Chart
from lmdiag.diagnostics.base import Perturbation
from lmdiag.report.charts import Plot, name_part
from lmdiag.report.charts.conditions import regions
from lmdiag.report.charts.drawing import (
    COLORS,
    MUTED,
    ONE_ROW,
    distinct,
    dot_plot,
    line_plot,
    meanings,
)
from lmdiag.report.charts.items import scatter, target_cloze
from lmdiag.report.charts.task_runs import TaskRuns
from lmdiag.report.charts.vega import Spec, field, mark
from lmdiag.report.selections import ReportFigures, figures_of_sets
from lmdiag.results import FigureKey, Results
from lmdiag.text import visible
from lmdiag.types import BadInput

_MOST_LEVELS = 40
"""Levels in a chart; more make it longer than a page of a paper."""

_DRAWN = [
    *FigureKey._fields,
    *("model", "label", "series", "panel", "at", "score", "cut-off"),
    *("value", "n", "n_tied", "chance", "versus_chance", "sd", "low", "high", "published", "human"),
    "shuffles",
]
"""Columns of figures that charts have."""


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Returns figures with the columns that charts have."""
    return table[[name for name in _DRAWN if name in table]]


def figure_plots(
    kind: str,
    name: str,
    title: str,
    table: pd.DataFrame,
    form: str = "%",
    colors: Sequence[str] = COLORS,
    looks: Mapping[str, int] = {},
) -> list[Plot]:
    """Returns a dot plot of figures, whose caption says what the marks mean; [] without rows."""
    if table.empty:
        return []
    chart = dot_plot(drawn(table), form=form, colors=colors, looks=looks)
    return [Plot(kind, name, f"{title}.{meanings(table)}", chart)]


def plots(data: TaskRuns) -> list[Plot]:
    """Returns the charts that a diagnostic declares and that its runs have data for."""
    declared = [
        plot for chart in data.diagnostic.charts for plot in PLOTS_OF[chart.kind](data, chart)
    ]
    declared += _extended_sets(data)
    return [plot._replace(name=f"{name_part(data.task)}-{plot.name}") for plot in declared]


def measures_plot(model: str, results: Results) -> Plot:
    """Returns a chart of the figures of one model that are in percent, without cut-offs."""
    task, setting = next(
        (task, setting) for task, settings in results.tasks.items() for setting in settings
    )
    table = _proportions(TaskRuns(task, (), ReportFigures.of([results]), ()).table(settings=()))
    table = table[table["setting"] == setting].assign(series=visible(model))
    if table.empty:
        raise BadInput("no measure is a proportion, so there is nothing to draw: see to_frame()")
    return figure_plots("figures", "measures", visible(model), table)[0]


def _proportions(table: pd.DataFrame) -> pd.DataFrame:
    """The figures that are in percent, without curves over cut-offs."""
    return table[table["is_percent"] & ~table["measure"].str.contains("=")]


def _figures(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Figures in percent: of one run in all settings, of several runs unperturbed."""
    table = _proportions(data.table((*chart.measures, "*"), settings=()))
    unperturbed = table[table["setting"] == "none"]
    if len(data.runs) > 1:
        table = unperturbed
    else:
        table = table[table["label"].isin(unperturbed["label"])]
        table = table.assign(series=table["setting_label"].map(visible))
        table = table.sort_values(["measure_rank", "setting_rank"], kind="stable")
    title = chart.title or "Figures in percent"
    yield from figure_plots(chart.kind, "measures", title, table, looks=data.looks)


def _levels(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The levels of a break-down: all measures of one run, or the first measure of several runs.

    Very many levels have several charts, by the break-down that each of them is a part of.
    """
    title = chart.title
    table = data.table(chart.measures, by=chart.by, levels=chart.levels)
    if len(data.runs) > 1 and len(table):
        figure = table.sort_values("measure_rank", kind="stable").iloc[0]
        table = table[table["measure"] == figure["measure"]]
        title += f" ({figure['measure_label']})"
    name = name_part(chart.by)
    if len(chart.measures) == 1:
        name += f"-{name_part(chart.measures[0])}"
    groups = table["level"].map(_groups(data, chart.by, distinct(table, "level")))
    for group, rows in table.groupby(groups, sort=False):
        caption = f"{title}: {group}" if group else title
        file_name = f"{name}-{name_part(str(group))}".strip("-")
        for plot in figure_plots(chart.kind, file_name, caption, rows, looks=data.looks):
            yield plot._replace(is_further=bool(group))


def _groups(data: TaskRuns, by: str, levels: list[str]) -> dict[str, str]:
    """Level -> the group whose chart it is in: a level of the finest break-down above it."""
    if len(levels) <= _MOST_LEVELS:
        return dict.fromkeys(levels, "")
    items = data.items[0].levels.groupby(by, sort=False)
    above = items.first().loc[:, items.nunique().eq(1).all()]
    if above.columns.empty:
        return {level: f"part {1 + i // _MOST_LEVELS}" for i, level in enumerate(levels)}
    finest = str(above.nunique().idxmax())
    label = data.diagnostic.level_label
    return {str(level): visible(label(finest, name)) for level, name in above[finest].items()}


def _extended_sets(data: TaskRuns) -> Iterator[Plot]:
    """The figures of small and extended sets, as their table has them."""
    sets = data.diagnostic.extended_sets
    table = figures_of_sets(data.task, data.figures)
    if table.empty or sets is None:
        return
    labels = table["heading"].map(visible)
    if len(data.runs) > 1:
        table = table.assign(label=labels + ", " + table["set"], series=table["model"])
    else:
        table = table.assign(label=labels, series=table["set"])
    yield from figure_plots("levels", "extended-sets", sets.title, table, looks=data.looks)


def _shuffles(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The measures in each shuffle, with mean and standard deviation, a chart per run."""
    for i, run in enumerate(data.runs):
        n_shuffles = Counter(setting for setting, _ in run.predictions.get(data.task, {}))
        shuffled = [x for x in data.diagnostic.perturbations if x.shuffled and x.name in n_shuffles]
        if not shuffled:
            continue
        table = pd.concat([_rows_of_shuffles(data, chart, i, setting) for setting in shuffled])
        title = f"{chart.title}, {n_shuffles[shuffled[-1].name]} times"
        charts = figure_plots(chart.kind, "shuffles", title, table, colors=data.colors(i))
        yield from (data.of_run(i, plot) for plot in charts)


def _rows_of_shuffles(data: TaskRuns, chart: Chart, i: int, setting: Perturbation) -> pd.DataFrame:
    """The measures of run i in a setting: their means, in each shuffle, and without shuffling."""
    table = data.table(chart.measures, settings=(setting.name, setting.unshuffled))
    table = table[table["run"] == i]
    means = table[table["setting"] == setting.name]
    plain = table[table["setting"] == setting.unshuffled]
    shuffles = data.runs[i].shuffles_of(data.task, setting.name)
    values = [
        {"label": row.label, "value": float(scores[row.measure].values.mean())}
        for row in means.itertuples()
        for scores in shuffles
    ]
    counts = pd.DataFrame(values).value_counts().rename("shuffles").reset_index()
    rows = pd.concat([
        means[["label", "value", "sd", "published"]].assign(series="mean"),
        counts.assign(series="shuffles"),
        plain[["label", "value"]].assign(series="not shuffled"),
    ])  # fmt: skip
    return rows.assign(
        label=f"{setting.label}, " + rows["label"], shuffles=rows["shuffles"].fillna(1)
    )


def _cutoffs(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """MW and EW over cut-offs: of one run, or a panel per score of several; then by break-down."""
    names = [f"{score}@{end}=*" for score in ("mw", "ew") for end in ("top", "bottom")]
    table = data.table(names)
    if table.empty:  # a server gives no whole distribution
        return
    score = table["score"].str.upper()
    is_alone = len(data.runs) == 1
    table = table.assign(score=score, series=score if is_alone else table["model"])
    table["panel"] = "" if is_alone else score
    lowest = min(0.48, table[["value", "low"]].min().min())
    title = "probability mass kept: top | bottom of the distribution"
    sizes: dict[str, Any] = {"columns": 1, "heights": (190, 190), "looks": data.looks}
    curves = _cutoff_chart(table, title, **sizes, domain=[lowest, 1])
    caption = "MW and EW of the verbs in the top of the distribution, then of those in its bottom."
    yield Plot(chart.kind, "cutoffs-mw-ew", caption + meanings(table), curves)
    level_table = data.table(names, by=chart.by, levels=chart.levels)
    if len(level_table) and is_alone:
        level_table = level_table.assign(
            panel=level_table["label"], series=level_table["score"].str.upper()
        )
        curves = _cutoff_chart(level_table, None, is_small=True, heights=(80, 80), domain=[0, 1])
        caption = f"MW and EW by cut-off in each {chart.by}; left of the line top, right bottom."
        yield Plot(chart.kind, f"cutoffs-{name_part(chart.by)}s", caption, curves)


def _cutoff_chart(table: pd.DataFrame, title: str | None, **options: Any) -> Spec:
    """Scores by cut-off of the distribution: of its top, then, right of a line, of its bottom."""
    table = table.assign(**{"cut-off": table["cutoff"]})
    cuts = distinct(table, "cut-off")
    label = "replace(datum.label, regexp('.* 0?'), '')"
    axis = {"labelAngle": 0, "labelOverlap": True, "labelExpr": label}
    x = field("cut-off", "ordered", sort=cuts, title=title, axis=axis)
    bottom = next((cut for cut in cuts if cut.startswith("bottom")), cuts[-1])
    at_bottom = {"x": {"datum": bottom, "bandPosition": 0}}
    border = {"data": ONE_ROW, **mark("rule", at_bottom, color=MUTED)}
    return line_plot(drawn(table), x, border, form="%", **options)


PLOTS_OF: Mapping[str, Callable[[TaskRuns, Chart], Iterator[Plot]]] = {
    "figures": _figures, "levels": _levels, "scatter": scatter, "cloze": target_cloze,
    "shuffles": _shuffles, "cutoffs": _cutoffs, "regions": regions,
}  # fmt: skip
"""Kind of a declared chart -> the function that makes it."""
