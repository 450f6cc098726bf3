"""The kinds of charts that a diagnostic can declare, made of the runs of models on its items."""

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

_CHART_COLUMNS = [
    *FigureKey._fields,
    *("model", "label", "series", "panel", "at", "score", "cut-off"),
    *("value", "n", "n_tied", "chance", "versus_chance", "sd", "low", "high", "published", "human"),
    "shuffles",
]
"""Columns of a table of figures that charts draw or show in tooltips."""


def chart_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table of figures without the columns that charts neither draw nor show."""
    return table[[name for name in _CHART_COLUMNS if name in table]]


def figure_plots(
    kind: str,
    name: str,
    title: str,
    table: pd.DataFrame,
    form: str = "%",
    colors: Sequence[str] = COLORS,
    styles: Mapping[str, int] = {},
) -> list[Plot]:
    """Returns a dot plot of a table with a row per figure, as a list; [] if it has no rows.

    The caption begins with the title and says what the marks mean. For `kind` and `name` see
    `Plot`, for all other arguments `dot_plot`.
    """
    if table.empty:
        return []
    chart = dot_plot(chart_columns(table), form=form, colors=colors, styles=styles)
    return [Plot(kind, name, f"{title}.{meanings(table)}", chart)]


def plots(task_runs: TaskRuns) -> list[Plot]:
    """Returns the charts that the diagnostic of a task declares, as far as its runs have the data.

    A chart of small and extended sets is the last one. All names begin with the task.
    """
    task_plots = list[Plot]()
    for chart in task_runs.diagnostic.charts:
        make_plots = PLOTS_OF[chart.kind]
        task_plots += make_plots(task_runs, chart)
    task_plots += _extended_sets(task_runs)
    prefix = name_part(task_runs.task)
    return [plot._replace(name=f"{prefix}-{plot.name}") for plot in task_plots]


def measures_plot(model: str, results: Results) -> Plot:
    """Returns a chart of the figures in percent of a model's first task, in its first setting.

    Args:
        model: what the chart calls the model.
        results: of the model. Without a figure in percent they are refused (`BadInput`).
    """
    addresses = [(task, name) for task, settings in results.tasks.items() for name in settings]
    task, setting = addresses[0]
    # `table` reads the figures alone, so that neither a run nor its items are needed
    task_runs = TaskRuns(task, runs=(), figures=ReportFigures.of([results]), items=())
    table = _in_percent(task_runs.table(settings=()))  # of all settings
    table = table[table["setting"] == setting].assign(series=visible(model))
    if table.empty:
        raise BadInput("no measure is a proportion, so there is nothing to draw: see to_frame()")
    return figure_plots("figures", "measures", visible(model), table)[0]


def _in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of figures that are in percent, without points of curves over cut-offs.

    The measure of such a point has a cut-off in its name, e.g. "mw@top=0.5"; there are too many of
    them for a chart of single figures.
    """
    return table[table["is_percent"] & ~table["measure"].str.contains("=")]


def _figures(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """A chart of the figures in percent: a label per measure and level.

    A single run has its settings (perturbations) as series, and a model is a series where several
    runs are compared, which is done in the unperturbed setting.
    """
    # the measures of the chart first, then all others ("*"); () is all settings
    table = _in_percent(task_runs.table((*chart.measures, "*"), settings=()))
    unperturbed = table[table["setting"] == "none"]
    if len(task_runs.runs) > 1:
        table = unperturbed
    else:
        # figures that only perturbed settings have would have nothing to be compared with
        table = table[table["label"].isin(unperturbed["label"])]
        table = table.assign(series=table["setting_label"].map(visible))
        table = table.sort_values(["measure_rank", "setting_rank"], kind="stable")
    title = chart.title or "Figures in percent"
    yield from figure_plots(chart.kind, "measures", title, table, styles=task_runs.styles)


def _levels(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Charts of the levels of a break-down, in one chart or, if they are very many, in several.

    They show all declared measures of one run, or the first of these measures for several runs.
    """
    title = chart.title
    table = task_runs.table(chart.measures, by=chart.by, levels=chart.levels)
    if len(task_runs.runs) > 1 and len(table):
        first_figure = table.sort_values("measure_rank", kind="stable").iloc[0]
        table = table[table["measure"] == first_figure["measure"]]
        title += f" ({first_figure['measure_label']})"
    name = name_part(chart.by)
    if len(chart.measures) == 1:
        name += f"-{name_part(chart.measures[0])}"
    group_of = _groups_of_levels(task_runs, chart.by, distinct(table, "level"))
    for group, rows in table.groupby(table["level"].map(group_of), sort=False):
        caption = f"{title}: {group}" if group else title
        file_name = f"{name}-{name_part(str(group))}".strip("-")
        for plot in figure_plots(chart.kind, file_name, caption, rows, styles=task_runs.styles):
            yield plot._replace(is_further=bool(group))  # a page folds charts of groups


def _groups_of_levels(task_runs: TaskRuns, by: str, levels: list[str]) -> dict[str, str]:
    """Level of the break-down `by` -> title of the group that has a chart; "" if one chart has all.

    Levels that are too many for one chart are grouped by another break-down, e.g. paradigms by
    their phenomenon: the finest of those in which all items of a level have the same value.
    Without any, they are divided into parts of equal size.
    """
    if len(levels) <= _MOST_LEVELS:
        return dict.fromkeys(levels, "")
    items_of_levels = task_runs.items[0].levels.groupby(by, sort=False)
    has_one_value = items_of_levels.nunique().eq(1).all()  # of each other break-down
    coarser = items_of_levels.first().loc[:, has_one_value]  # a row per level, with these values
    if coarser.columns.empty:
        return {level: f"part {1 + i // _MOST_LEVELS}" for i, level in enumerate(levels)}
    finest = str(coarser.nunique().idxmax())
    label = task_runs.diagnostic.level_label
    return {str(level): visible(label(finest, group)) for level, group in coarser[finest].items()}


def _extended_sets(task_runs: TaskRuns) -> Iterator[Plot]:
    """A chart of the figures of a small set of items and of larger sets that ask the same.

    For example, of ROLE-88 and ROLE-1500. None for a task without larger sets.
    """
    sets = task_runs.diagnostic.extended_sets
    table = figures_of_sets(task_runs.task, task_runs.figures)
    if table.empty or sets is None:
        return
    labels = table["heading"].map(visible)  # of figures; the column `set` has names of sets
    if len(task_runs.runs) > 1:
        table = table.assign(label=labels + ", " + table["set"], series=table["model"])
    else:
        table = table.assign(label=labels, series=table["set"])
    yield from figure_plots("levels", "extended-sets", sets.title, table, styles=task_runs.styles)


def _shuffles(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """A chart per run of the measures in each shuffle, with their mean and standard deviation.

    A shuffle is one random order of the words of all contexts. Runs without shuffled settings have
    no chart.
    """
    for i, run in enumerate(task_runs.runs):
        # predictions are by setting and number of the shuffle
        n_shuffles = Counter(setting for setting, _ in run.predictions.get(task_runs.task, {}))
        shuffled = [
            setting
            for setting in task_runs.diagnostic.perturbations
            if setting.shuffled and setting.name in n_shuffles
        ]
        if not shuffled:
            continue
        tables = [_rows_of_shuffles(task_runs, chart, i, setting) for setting in shuffled]
        # all shuffled settings of a run have as many shuffles
        title = f"{chart.title}, {n_shuffles[shuffled[-1].name]} times"
        colors = task_runs.colors(i)
        for plot in figure_plots(chart.kind, "shuffles", title, pd.concat(tables), colors=colors):
            yield task_runs.plot_of_run(i, plot)


def _rows_of_shuffles(
    task_runs: TaskRuns, chart: Chart, i: int, setting: Perturbation
) -> pd.DataFrame:
    """The measures of run i in a shuffled setting, a row per mark of a dot plot.

    A setting is asked in several random orders of its words, the shuffles. `series` is "mean" for
    the mean over shuffles, "shuffles" for values of single shuffles, and "not shuffled" for the
    setting without shuffling. Shuffles with the same value have one row: `shuffles` is their
    number, for example 3 for a value of 0.5 in three of ten shuffles.
    """
    table = task_runs.table(chart.measures, settings=(setting.name, setting.unshuffled))
    table = table[table["run"] == i]
    means = table[table["setting"] == setting.name]
    unshuffled = table[table["setting"] == setting.unshuffled]
    scores_of_shuffles = task_runs.runs[i].shuffles_of(task_runs.task, setting.name)
    values = []
    for row in means.itertuples():
        for scores in scores_of_shuffles:  # by measure
            value = float(scores[row.measure].values.mean())
            values.append({"label": row.label, "value": value})
    counts = pd.DataFrame(values).value_counts().rename("shuffles").reset_index()
    rows = pd.concat([
        means[["label", "value", "sd", "published"]].assign(series="mean"),
        counts.assign(series="shuffles"),
        unshuffled[["label", "value"]].assign(series="not shuffled"),
    ])  # fmt: skip
    labels = f"{setting.label}, " + rows["label"]
    # the marks of means and of unshuffled rows have the size of one shuffle
    return rows.assign(label=labels, shuffles=rows["shuffles"].fillna(1))


def _cutoffs(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Charts of MW and EW (Newman et al. 2021) by cut-off, over all items and by break-down.

    Only the most probable verbs count ("top"), or the least probable ones ("bottom"), up to a
    cumulative probability, the cut-off. One run has a line per score, and a second chart with a
    panel per level of the break-down; several runs have a panel per score and no second chart.
    """
    names = [f"{score}@{end}=*" for score in ("mw", "ew") for end in ("top", "bottom")]
    table = task_runs.table(names)
    if table.empty:  # a server gives no whole distribution
        return
    score = table["score"].str.upper()
    is_one_run = len(task_runs.runs) == 1
    table = table.assign(score=score, series=score if is_one_run else table["model"])
    table["panel"] = "" if is_one_run else score
    # the scale begins below .5, the score of a model without a preference
    lowest = min(0.48, table[["value", "low"]].min().min())
    title = "probability mass kept: top | bottom of the distribution"
    sizes: dict[str, Any] = {"columns": 1, "heights": (190, 190), "styles": task_runs.styles}
    curves = _cutoff_chart(table, title, **sizes, domain=[lowest, 1])
    caption = "MW and EW of the verbs in the top of the distribution, then of those in its bottom."
    yield Plot(chart.kind, "cutoffs-mw-ew", caption + meanings(table), curves)
    level_table = task_runs.table(names, by=chart.by, levels=chart.levels)
    if len(level_table) and is_one_run:
        level_table = level_table.assign(
            panel=level_table["label"], series=level_table["score"].str.upper()
        )
        curves = _cutoff_chart(level_table, None, lines_only=True, heights=(80, 80), domain=[0, 1])
        caption = f"MW and EW by cut-off in each {chart.by}; left of the line top, right bottom."
        yield Plot(chart.kind, f"cutoffs-{name_part(chart.by)}s", caption, curves)


def _cutoff_chart(table: pd.DataFrame, title: str | None, **options: Any) -> Spec:
    """Scores by cut-off of the distribution: of its top, then, right of a line, of its bottom.

    `table` has a row per figure, with a `cutoff` such as "top 0.5"; `title` is that of the axis of
    cut-offs, and `options` are those of `line_plot`.
    """
    table = table.assign(**{"cut-off": table["cutoff"]})  # a name for readers, in tooltips
    cutoffs = distinct(table, "cut-off")
    label = "replace(datum.label, regexp('.* 0?'), '')"  # ".5" for "top 0.5"
    axis = {"labelAngle": 0, "labelOverlap": True, "labelExpr": label}
    x = field("cut-off", "ordered", sort=cutoffs, title=title, axis=axis)
    # the line is left of the first cut-off of the bottom, or at the last one without such
    first_bottom = next((cutoff for cutoff in cutoffs if cutoff.startswith("bottom")), cutoffs[-1])
    at_bottom = {"x": {"datum": first_bottom, "bandPosition": 0}}
    border = {"data": ONE_ROW, **mark("rule", at_bottom, color=MUTED)}
    return line_plot(chart_columns(table), x, border, form="%", **options)


PLOTS_OF: Mapping[str, Callable[[TaskRuns, Chart], Iterator[Plot]]] = {
    "figures": _figures, "levels": _levels, "scatter": scatter, "cloze": target_cloze,
    "shuffles": _shuffles, "cutoffs": _cutoffs, "regions": regions,
}  # fmt: skip
"""Kind of a declared chart -> the function that makes it."""
