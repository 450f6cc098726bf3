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
from lmdiag.report.charts.drawing import COLORS, OF_ANALYSIS, distinct, dot_plot, line_plot
from lmdiag.report.charts.task_runs import TaskRuns
from lmdiag.report.charts.vega import Spec, field, where
from lmdiag.report.run_items import RunItems
from lmdiag.text import in_order, visible

_MOST_ITEMS = 60
"""Items that are drawn as lines, in each panel."""

_UNFOLDED = 6
"""Suites whose charts are shown at once; of more, all are folded."""

_POSSIBLE = {"surprisal": (0, math.inf), "probability": (0, 1), "correct": (0, 1)}
"""Response -> its possible values; the interval of a few items may reach further."""


def condition_plot(name: str, analysis: Analysis) -> Plot:
    """Returns the means of conditions as dots with intervals, and the items as thin lines.

    The levels of the first condition are side by side, those of the second have colours, and lines
    join the means; each combination of further conditions, suite and model has a panel. Where each
    region is analysed by itself, regions are side by side and cells have colours, without items.
    All panels have one scale.
    """
    titles = [*analysis.conditions]
    column_names = {column: f"condition {name}" for name, column in cell_columns(titles).items()}
    cells, items = (
        table.rename(columns=column_names) for table in (analysis.cells, analysis.items)
    )
    conditions = [*column_names.values()]  # no other column has such a name
    sides = conditions[:1]
    joined = conditions[1:2]
    is_path = analysis.region == "all"
    if is_path:
        sides = ["suite"]
        joined = conditions
        titles = ["", ", ".join(titles)]
        items = items.iloc[:0]
    keys = [column for column in ("suite", "model", *conditions) if column in items]
    items = items[items.groupby(keys, sort=False).cumcount() < _MOST_ITEMS]
    data = pd.concat([cells.rename(columns=OF_ANALYSIS), items], ignore_index=True)
    drawn_columns = {*sides, *joined, *(() if analysis.has_models else ("model",))}

    def texts(columns: Sequence[str]) -> Any:
        return data[[*columns]].map(visible).agg(", ".join, axis=1) if columns else ""

    colors = COLORS
    if is_path:
        colors = cell_colors(data[conditions])
    columns = {
        "level": texts(sides), "series": texts(joined),
        "panel": texts([key for key in keys if key not in drawn_columns]),
    }  # fmt: skip
    if not is_path:
        columns["item"] = data["item"].map(visible, na_action="ignore")
    data = data[["value", "n", "low", "high"]].assign(**columns)
    response = analysis.response_text()
    possible = _POSSIBLE.get(analysis.response, (-math.inf, math.inf))
    unit = UNITS.get(analysis.response)
    title = ", ".join(filter(None, (response, unit)))
    names = map(visible, titles[:2])
    chart = _means_chart(data, title, *names, possible=possible, colors=colors)
    is_cut = data["low"].min() < possible[0] or data["high"].max() > possible[1]
    lines = f"the first {_MOST_ITEMS} items" if data["n"].max() > _MOST_ITEMS else "the items"
    caption = (
        f"Mean {response} by condition. Vertical lines are 95% intervals within items "
        f"(Cousineau 2005; Morey 2008){', cut where no value is possible' if is_cut else ''}"
        f"{'' if is_path else f', thin lines are {lines}'}."
    )
    return Plot("conditions", name, caption, chart)


def cell_colors(levels: pd.DataFrame) -> list[str]:
    """Returns the colours of cells: that of its level of the second condition, in all charts.

    `levels` has a column per condition; a cell that comes again has no further colour. Cells of one
    condition have the colours of its levels.
    """
    cells = levels.drop_duplicates()
    numbers, _ = pd.factorize(cells.iloc[:, :2].iloc[:, -1])
    return [COLORS[number % len(COLORS)] for number in numbers]


def forest_plots(name: str, analysis: Analysis) -> list[Plot]:
    """Returns a chart per effect: its estimate with its interval in each model."""
    title = ", ".join(filter(None, ("difference", UNITS.get(analysis.response))))
    tests = analysis.effects.rename(columns=OF_ANALYSIS | {"label": "effect and levels"})
    labels = tests["model"].map(visible)
    tests = tests.assign(label=labels, series=labels, zero=0.0)
    whole = [column for column in ("suite", "effect and levels") if column in tests]
    plots = []
    for number, (key, rows) in enumerate(tests.groupby(whole, sort=False), start=1):
        data = rows[["label", "series", "value", "low", "high", "n", "zero"]]
        caption = (
            f"{visible(': '.join(key))}: effect on {analysis.response_text()} in each model. "
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
    possible: tuple[float, float],
    colors: Sequence[str] = COLORS,
) -> Spec:
    """Means with intervals by the levels of a condition, those of a series beside each other.

    `named` is False for levels that a click shows; beyond `possible` values, intervals are cut.
    """
    levels = distinct(data, "level")
    is_path = "item" not in data
    are_panels = data["panel"].nunique() > 1
    # a letter has 6 pixels, and labels are at least two letters apart
    is_slanted = 6 * sum(len(level) + 2 for level in levels) > (160 if are_panels else 310)
    axis = {"labelAngle": -35 if is_slanted else 0, "labelLimit": 110, "labelOverlap": False}
    ends: dict[str, Any] = {"domainMin": possible[0]} if data["low"].min() < possible[0] else {}
    ends |= {"domainMax": possible[1]} if data["high"].max() > possible[1] else {}
    has_same_levels = data.groupby("panel")["level"].nunique().eq(len(levels)).all()
    # bands of a tenth of the distance of two levels, within which series stand beside each other
    bands = {"type": "band", "paddingInner": 0.9, "paddingOuter": 0.45}
    chart = line_plot(
        data, field("level", "names", sort=levels, title=x or None, axis=axis, scale=bands),
        title=y, legend=legend, colors=colors, is_beside=True, heights=(200, 150),
        own="" if has_same_levels or is_path else "x", zero=False, **ends,
    )  # fmt: skip
    if "named" not in data or data["named"].nunique() == 1:
        return chart
    box = {"input": "checkbox", "name": "all regions"}
    every = {"name": "every_region", "value": False, "bind": box}
    return where(chart, "every_region || datum.named") | {"params": [every]}


def regions(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields the mean surprisal of each region in each condition, a chart per suite."""
    levels = [items.level(chart.by) for items in data.items]
    suites = pd.concat(levels).unique()
    for number, suite in enumerate(suites, start=1):
        suite_items = [
            items.of_items(level.index[level == suite])
            for items, level in zip(data.items, levels, strict=True)
        ]
        means = pd.DataFrame([
            row | {"panel": source.label}
            for source, items in zip(data.figures.sources, suite_items, strict=True)
            for row in _region_means(items)
        ])  # fmt: skip
        if means.empty:
            continue
        name = visible(data.diagnostic.level_label(chart.by, suite)) or data.task
        caption = f"{name}: mean surprisal by region. Lines are 95% intervals within items."
        if means["named"].nunique() > 1:
            caption += " Only the regions that the predictions read are shown."
        file = "-".join(filter(None, ("regions", str(number), name_part(suite))))
        drawn = _means_chart(means, "surprisal, bits", possible=(0, math.inf))
        yield Plot(chart.kind, file, caption, drawn, len(suites) > _UNFOLDED)


def _region_means(items: RunItems) -> Iterator[dict[str, Any]]:
    """The mean of each region in each condition, with its interval within items.

    The mean is over the items that have the region in all conditions that any item has it in. The
    conditions are in the order of the levels of a design, so that they have the same colours.
    """
    formulas = {
        formula for predictions in items.outcomes["predictions"] for formula, _ in predictions
    }
    read_regions = {region.number for text in formulas for region in parse_formula(text).regions}
    parts = items.parts().set_index("row")[["name", "surprisal"]]
    bits = items.rows[["item", "condition"]].join(parts).dropna()
    for region, rows in bits.groupby("name", sort=False):
        table = rows.pivot(index="item", columns="condition", values="surprisal").dropna()
        table = table[[*in_order(table)]]
        values = table.to_numpy()
        is_one = len(table.columns) == 1
        bounds = [stats.mean_interval(values[:, 0])] if is_one else within_item_intervals(values)
        # None: a formula reads the whole sentence
        is_named = None in read_regions or str(region).partition(" ")[0] in map(str, read_regions)
        for condition, (low, high) in zip(table, bounds, strict=True):
            yield {
                "level": visible(str(region)), "series": visible(condition), "n": len(table),
                "value": table[condition].mean(), "low": low, "high": high, "named": is_named,
            }  # fmt: skip
