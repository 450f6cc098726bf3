"""Means of conditions with within-item intervals: of a design, and of the regions of suites."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from lmdiag import stats
from lmdiag.analysis.designs import UNITS, Analysis, cell_columns
from lmdiag.analysis.effects import within_item_intervals
from lmdiag.diagnostics import Chart
from lmdiag.measures.formulas import parse_formula
from lmdiag.report.charts import Plot, name_part
from lmdiag.report.charts.drawing import ANALYSIS_TO_CHART, COLORS, distinct, dot_plot, line_plot
from lmdiag.report.charts.task_runs import TaskRuns
from lmdiag.report.charts.vega import Spec, field, where
from lmdiag.report.run_items import RunItems
from lmdiag.text import in_order, visible

_MOST_ITEMS = 60
"""Items that are drawn as lines, in each panel."""

_UNFOLDED = 6
"""Suites whose charts are shown at once; of more, all are folded."""

_VALUE_RANGES = {"surprisal": (0, math.inf), "probability": (0, 1), "correct": (0, 1)}
"""Response -> its lowest and highest possible value; intervals of few items may reach further."""


def condition_plot(name: str, analysis: Analysis) -> Plot:
    """Returns the means of conditions as dots with intervals, and the items as thin lines.

    The levels of the first condition are side by side, those of the second have colours, and lines
    join the means; each combination of further conditions, suite and model has a panel. Where each
    region is analysed by itself, regions are side by side and cells have colours, without items.
    All panels have one scale.

    The tables `cells` (mean and interval of each cell) and `items` (the value of each item in each
    cell) of the analysis are drawn.
    """
    titles = [*analysis.conditions]
    # with a prefix, since a condition may be called as a column of a chart, e.g. "series"
    column_names = {column: f"condition {title}" for title, column in cell_columns(titles).items()}
    cells = analysis.cells.rename(columns=column_names)
    items = analysis.items.rename(columns=column_names)
    conditions = [*column_names.values()]
    # which columns are side by side, and which have colours
    has_each_region = analysis.region == "all"
    if has_each_region:
        level_columns = ["suite"]  # in such an analysis, a value of this column names a region
        series_columns = conditions
        titles = ["", ", ".join(titles)]
        items = items.iloc[:0]
    else:
        level_columns = conditions[:1]
        series_columns = conditions[1:2]
    # columns that tell cells apart; each cell has the values of its first items
    keys = [column for column in ("suite", "model", *conditions) if column in items]
    items = items[items.groupby(keys, sort=False).cumcount() < _MOST_ITEMS]
    # one table for all that is drawn: rows of cells have an interval, those of items an `item`
    rows = pd.concat([cells.rename(columns=ANALYSIS_TO_CHART), items], ignore_index=True)
    # the columns that are left tell panels apart
    panel_columns = [key for key in keys if key not in (*level_columns, *series_columns)]
    if not analysis.has_models and "model" in panel_columns:
        panel_columns.remove("model")
    data = rows[["value", "n", "low", "high"]].assign(
        level=_joined_texts(rows, level_columns),
        series=_joined_texts(rows, series_columns),
        panel=_joined_texts(rows, panel_columns),
    )
    if not has_each_region:
        data["item"] = rows["item"].map(visible, na_action="ignore")
    response = analysis.response_text()
    chart = _means_chart(
        data,
        ", ".join(filter(None, (response, UNITS.get(analysis.response)))),
        *map(visible, titles[:2]),  # of the axis x and, if there are two conditions, of the colours
        value_range=_VALUE_RANGES.get(analysis.response, (-math.inf, math.inf)),
        colors=cell_colors(rows[conditions]) if has_each_region else COLORS,
    )
    caption = _means_caption(data, analysis, has_items=not has_each_region)
    return Plot("conditions", name, caption, chart)


def _joined_texts(rows: pd.DataFrame, columns: Sequence[str]) -> Any:
    """The texts of some columns as one text per row, e.g. "plural, short"; "" without columns."""
    if not columns:
        return ""
    return rows[[*columns]].map(visible).agg(", ".join, axis=1)


def _means_caption(data: pd.DataFrame, analysis: Analysis, *, has_items: bool) -> str:
    """The caption of `condition_plot`, which says what its lines are and where they are cut.

    For example, "Mean surprisal by condition. Vertical lines are 95% intervals within items
    (Cousineau 2005; Morey 2008), thin lines are the items.".

    Args:
        data: the rows of the chart, with the ends of intervals in `low` and `high`.
        analysis: that the chart shows.
        has_items: whether the chart has thin lines, of single items.
    """
    lowest, highest = _VALUE_RANGES.get(analysis.response, (-math.inf, math.inf))
    caption = f"Mean {analysis.response_text()} by condition. "
    caption += "Vertical lines are 95% intervals within items (Cousineau 2005; Morey 2008)"
    if data["low"].min() < lowest or data["high"].max() > highest:
        caption += ", cut where no value is possible"
    if has_items:
        is_sample = data["n"].max() > _MOST_ITEMS
        lines = f"the first {_MOST_ITEMS} items" if is_sample else "the items"
        caption += f", thin lines are {lines}"
    return f"{caption}."


def cell_colors(levels: pd.DataFrame) -> list[str]:
    """Returns a colour for each distinct cell of a design, in the order of the rows.

    In all charts, a colour stands for a level of the second condition or, in a design of one
    condition, of this one. For example, the cells (match, short), (match, long) and (mismatch,
    short) have the first, the second and the first colour.

    Args:
        levels: a column per condition, and rows in which cells may be repeated.
    """
    cells = levels.drop_duplicates()
    second_or_only = min(1, len(cells.columns) - 1)
    numbers, _ = pd.factorize(cells.iloc[:, second_or_only])
    return [COLORS[number % len(COLORS)] for number in numbers]


def forest_plots(name: str, analysis: Analysis) -> list[Plot]:
    """Returns a chart per effect (and suite): its estimate with its interval in each model.

    `name` begins the names of the charts, which are numbered.
    """
    title = ", ".join(filter(None, ("difference", UNITS.get(analysis.response))))
    # the labels of effects get another name, since `label` of a chart has the labels of its lines:
    # here the models
    tests = analysis.effects.rename(columns=ANALYSIS_TO_CHART | {"label": "effect and levels"})
    labels = tests["model"].map(visible)
    tests = tests.assign(label=labels, series=labels, zero=0.0)
    chart_keys = [column for column in ("suite", "effect and levels") if column in tests]
    plots = []
    for number, (chart_key, rows) in enumerate(tests.groupby(chart_keys, sort=False), start=1):
        data = rows[["label", "series", "value", "low", "high", "n", "zero"]]
        caption = (
            f"{visible(': '.join(chart_key))}: effect on {analysis.response_text()} in each model. "
            "Lines are 95% intervals over items, the line across marks an effect of zero."
        )
        chart = dot_plot(data, form="", title=title)
        plots.append(Plot("conditions", f"{name}-{number}", caption, chart))
    return plots


def _means_chart(
    data: pd.DataFrame,
    y: str,
    x: str = "",
    legend: str = "",
    *,
    value_range: tuple[float, float],
    colors: Sequence[str] = COLORS,
) -> Spec:
    """Means with intervals by the levels of a condition, those of a series beside each other.

    Args:
        data: columns `level`, `series`, `panel`, `value`, `low`, `high`; `item` in the rows of
            single items; `named`, False for regions that are shown after a click on "all regions".
        y, x, legend: titles of the axes and of the series.
        value_range: lowest and highest possible value; intervals that reach further are cut.
        colors: of the series.
    """
    levels = distinct(data, "level")
    has_items = "item" in data
    are_panels = data["panel"].nunique() > 1
    # a letter has 6 pixels, and labels are at least two letters apart
    label_pixels = 6 * sum(len(level) + 2 for level in levels)
    is_slanted = label_pixels > (160 if are_panels else 310)  # the width of a panel or plot
    axis = {"labelAngle": -35 if is_slanted else 0, "labelLimit": 110, "labelOverlap": False}
    lowest, highest = value_range
    ends: dict[str, Any] = {}
    if data["low"].min() < lowest:
        ends["domainMin"] = lowest
    if data["high"].max() > highest:
        ends["domainMax"] = highest
    # where some panels lack levels, each panel of a chart with items has an axis of its own levels;
    # panels of regions keep a common axis
    has_same_levels = data.groupby("panel")["level"].nunique().eq(len(levels)).all()
    # bands of a tenth of the distance of two levels, within which series stand beside each other
    bands = {"type": "band", "paddingInner": 0.9, "paddingOuter": 0.45}
    chart = line_plot(
        data, field("level", "names", sort=levels, title=x or None, axis=axis, scale=bands),
        title=y, legend=legend, colors=colors, are_series_beside=True, heights=(200, 150),
        independent="x" if has_items and not has_same_levels else "", zero=False, **ends,
    )  # fmt: skip
    if "named" not in data or data["named"].nunique() == 1:
        return chart
    # a checkbox below the chart; without a tick, rows that are not `named` are left out
    box = {"input": "checkbox", "name": "all regions"}
    every_region = {"name": "every_region", "value": False, "bind": box}
    return where(chart, "every_region || datum.named") | {"params": [every_region]}


def regions(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields a chart per suite: the mean surprisal of each region in each condition.

    Several runs have a panel each. `chart.by` is the break-down by suites.
    """
    suites_of_runs = [items.level(chart.by) for items in task_runs.items]  # the suite of each item
    suites = pd.concat(suites_of_runs).unique()
    for number, suite in enumerate(suites, start=1):
        rows = []
        for i, suite_of_item in enumerate(suites_of_runs):  # i is the number of the run
            item_ids = suite_of_item.index[suite_of_item == suite]
            model = task_runs.figures.sources[i].label
            for row in _region_means(task_runs.items[i].select_items(item_ids)):
                rows.append(row | {"panel": model})
        means = pd.DataFrame(rows)
        if means.empty:
            continue
        name = visible(task_runs.diagnostic.level_label(chart.by, suite)) or task_runs.task
        caption = f"{name}: mean surprisal by region. Lines are 95% intervals within items."
        if means["named"].nunique() > 1:
            caption += " Only the regions that the predictions read are shown."
        file_name = "-".join(filter(None, ("regions", str(number), name_part(suite))))
        spec = _means_chart(means, "surprisal, bits", value_range=(0, math.inf))
        yield Plot(chart.kind, file_name, caption, spec, is_further=len(suites) > _UNFOLDED)


def _region_means(items: RunItems) -> Iterator[dict[str, Any]]:
    """The mean surprisal of each region in each condition, with its interval within items.

    The mean is over the items that have the region in all conditions that any item has it in. The
    conditions are in the order of the levels of a design, so that they have the same colours.

    Yields:
        a row of `_means_chart`: `level` is the region, `series` the condition, and `named` whether
        a prediction reads the region.
    """
    # the regions that formulas name; a prediction is a formula, and whether it holds
    formulas = {
        formula for predictions in items.outcomes["predictions"] for formula, _ in predictions
    }
    read_regions = set[int | None]()  # None for a formula that reads the whole sentence
    for formula in formulas:
        read_regions |= {region.number for region in parse_formula(formula).regions}
    parts = items.parts().set_index("row")[["name", "surprisal"]]  # a row per region of a sentence
    bits = items.rows[["item", "condition"]].join(parts).dropna()
    for region, rows in bits.groupby("name", sort=False):
        # a row per item that has all conditions, and a column per condition
        table = rows.pivot(index="item", columns="condition", values="surprisal").dropna()
        table = table[[*in_order(table)]]
        values = table.to_numpy()
        if len(table.columns) == 1:  # there are no differences within items
            bounds = [stats.mean_interval(values[:, 0])]
        else:
            bounds = within_item_intervals(values)
        region_number = str(region).partition(" ")[0]  # of a name such as "3 verb"
        is_named = None in read_regions or region_number in map(str, read_regions)
        for condition, (low, high) in zip(table, bounds, strict=True):
            yield {
                "level": visible(str(region)), "series": visible(condition), "n": len(table),
                "value": table[condition].mean(), "low": low, "high": high, "named": is_named,
            }  # fmt: skip
