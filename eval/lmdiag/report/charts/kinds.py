"""The kinds of charts that a diagnostic can declare, filled from its runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmdiag import stats
from lmdiag.analysis.designs import within_item_intervals
from lmdiag.diagnostics import Chart, Diagnostic
from lmdiag.formulas import parse_formula
from lmdiag.report import numbers
from lmdiag.report.charts import Plot, drawing, name_part
from lmdiag.report.charts.parts import COLORS, broken, distinct, has
from lmdiag.report.items import MAX_LISTED, Item, run_scores
from lmdiag.report.labels import measure_label
from lmdiag.report.tables import Source, measured, sets_shape
from lmdiag.results import Figure
from lmdiag.text import visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.results import Run

_MOST_LEVELS = 40
"""Levels in a chart; more make it longer than a page of a paper."""

_UNFOLDED = 6
"""Suites whose charts are shown at once; of more, all are folded."""


@dataclass(frozen=True)
class TaskRuns:
    """The runs that have a task, with their items.

    Attributes:
        task: its name.
        runs: the runs.
        sources: the same runs as tables see them.
        items: the unperturbed items of each run.
    """

    task: str
    runs: Sequence[Run]
    sources: Sequence[Source]
    items: Sequence[Sequence[Item]]

    @property
    def diagnostic(self) -> Diagnostic:
        """The declaration of the task."""
        return self.runs[0].results.diagnostic(self.task)

    @property
    def settings(self) -> list[str]:
        """The settings of the first run, in the order of the paper."""
        return self.diagnostic.settings_in_order(self.runs[0].results.tasks[self.task])

    @cached_property
    def figures(self) -> pd.DataFrame:
        """The figures of all tasks of the runs: their addresses, the columns of charts, `model`."""
        rows = []
        for source in self.sources:
            for place, figure in source.results.figures():
                published = source.published.get(place)
                facts = {"model": source.label, "published": published and published.value / 100}
                rows.append(place._asdict() | figure_row(figure) | facts)
        return pd.DataFrame(rows).dropna(subset="value")

    def table(self, *measures: str, by: str = "", setting: str = "none", **where: str) -> Any:
        """The figures of measures in their order, of which `*` stands for any part of a name."""
        where = {"task": self.task, "by": by, "setting": setting} | where
        figures = self.figures
        for column, value in where.items():
            figures = figures[figures[column] == value]
        names = figures["measure"].map(measure_label)
        series = figures["model"] if len(self.runs) > 1 else names
        figures = figures.assign(label=names, series=series)
        names = distinct(figures, "measure")
        order = [name for pattern in measures for name in names if fnmatchcase(name, pattern)]
        return _in_order(figures, "measure", order)

    def plot(self, i: int, kind: str, name: str, caption: str, chart: Any) -> Plot:
        """The chart of run i, which names its model where there are several."""
        if len(self.runs) == 1:
            return Plot(kind, name, caption, chart)
        label = self.sources[i].label
        return Plot(kind, f"{name}-{i + 1}", f"{label}: {caption}", chart, heading=label)

    def colors(self, i: int) -> list[str]:
        """The colours of a chart of run i: where there are several runs, only that of its model."""
        return COLORS if len(self.runs) == 1 else [COLORS[i % len(COLORS)]] * 2


def figure_row(figure: Figure) -> dict[str, Any]:
    """Returns a figure as a row of the charts of figures."""
    return {
        "value": figure.value, "low": figure.ci_low, "high": figure.ci_high, "n": figure.n,
        "chance": figure.chance, "versus_chance": figure.versus_chance, "sd": figure.sd,
    }  # fmt: skip


def plots(data: TaskRuns) -> list[Plot]:
    """Returns the charts that a diagnostic declares and that its runs have data for."""
    declared = [
        plot for chart in data.diagnostic.charts for plot in CHART_KINDS[chart.kind](data, chart)
    ]
    return [
        plot._replace(name=f"{name_part(data.task)}-{plot.name}")
        for plot in (*declared, *_extended_sets(data))
    ]


def measures_plot(model: str, measures: Mapping[str, Figure]) -> Plot:
    """Returns a chart of the figures of one model that are in percent, without cut-offs."""
    rows = [
        figure_row(figure) | {"label": measure_label(name), "series": visible(model)}
        for name, figure in measures.items()
        if figure.is_percent and figure.value is not None and "=" not in name
    ]
    for plot in _dotted("figures", "measures", visible(model), pd.DataFrame(rows)):
        return plot
    raise BadInput("no measure is a proportion, so there is nothing to draw: see to_frame()")


# ---- figures -------------------------------------------------------------------------------------


def _dotted(kind: str, name: str, title: str, data: pd.DataFrame) -> Iterator[Plot]:
    """A chart of dots, with the meaning of those marks that the data have in its caption."""
    parts = {
        "low": "lines are 95% intervals over items",
        "sd": "thick lines ± one standard deviation over shuffles",
        "published": "◇ is the published figure",
        "chance": "the dashed line is chance",
    }
    text = ", ".join(part for column, part in parts.items() if has(data, column))
    caption = f"{title}. {text[:1].upper()}{text[1:]}{'.' if text else ''}"
    if len(data):
        yield Plot(kind, name.strip("-"), caption, drawing.dot_chart(data))


def _in_order(data: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    """The rows with these names in a column, in their order."""
    return pd.concat([data[data[column] == name] for name in names] or [data[:0]])


def _figures(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Accuracy and sensitivity: of one run in all settings, of several runs unperturbed."""
    table = data.table(*chart.measures)
    if len(data.runs) == 1:
        label = data.diagnostic.setting_label
        settings = [
            data.table(*chart.measures, setting=name).assign(series=visible(label(name)))
            for name in data.settings
        ]
        human = data.table(*(f"human_{name}" for name in chart.measures))
        names = human["measure"].str.removeprefix("human_").map(measure_label)
        settings.append(human.assign(label=names, series="Human (cloze)"))
        table = _in_order(pd.concat(settings), "label", distinct(table, "label"))
    yield from _dotted(chart.kind, "measures", chart.title or "Accuracy and sensitivity", table)


def _levels(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The levels of a break-down: all measures of one run, or the first measure of several runs.

    Very many levels have several charts, by the break-down that each of them is a part of.
    """
    table, title, by = data.table(*chart.measures, by=chart.by), chart.title, chart.by
    if len(data.runs) > 1 and len(table):
        table = table[table["measure"] == table["measure"].iloc[0]]
        title += f" ({table['label'].iloc[0]})"
    table = _with_labels(data, chart, table)
    levels = distinct(table, "level")
    groups = dict.fromkeys(levels, "")
    if len(levels) > _MOST_LEVELS:
        counted = {x: f"part {1 + i // _MOST_LEVELS}" for i, x in enumerate(levels)}
        groups = counted | _owners(data, by)
    name = name_part(by) + (f"-{name_part(chart.measures[0])}" if len(chart.measures) == 1 else "")
    for group, rows in table.groupby(table["level"].map(groups), sort=False):
        about = f"{title}: {group}" if group else title
        for plot in _dotted(chart.kind, f"{name}-{name_part(str(group))}", about, rows):
            yield plot._replace(is_further=bool(group))


def _with_labels(data: TaskRuns, chart: Chart, table: pd.DataFrame) -> pd.DataFrame:
    """The figures of the levels of a chart, in their order and with their labels."""
    levels = chart.levels or data.diagnostic.levels_in_order(chart.by, distinct(table, "level"))
    labels = {x: broken(visible(data.diagnostic.level_label(chart.by, x))) for x in levels}
    ordered = _in_order(table, "level", levels)
    return ordered.assign(label=ordered["level"].map(labels))


def _owners(data: TaskRuns, by: str) -> dict[str, str]:
    """Level -> the level of another break-down, in words, that it is a part of.

    Of several such break-downs, the one with the most levels.
    """
    items = pd.DataFrame([item.levels for item in data.items[0]]).dropna(subset=[by])
    levels = items.groupby(by, sort=False)
    counts = {other: items[other].nunique() for other in sorted(items) if other != by
              and (levels[other].nunique(dropna=False) == 1).all()}  # fmt: skip
    best = max(counts, key=lambda other: counts[other], default=by)
    label = data.diagnostic.level_label
    return {x: visible(label(best, owner)) for x, owner in levels[best].first().items() if counts}


def _extended_sets(data: TaskRuns) -> Iterator[Plot]:
    """The figures of small and extended sets, as their table has them."""
    sets = sets_shape(measured(data.task, data.sources))
    if sets is None:
        return
    several = len(data.runs) > 1
    tables = [
        data.table(column.measure, by=column.by, level=column.level, task=row.task).assign(
            label=f"{column.label},\n{row.label}" if several else column.label.replace(", ", ",\n"),
            **({} if several else {"series": row.label}),
        )
        for column in sets.columns
        for row in sets.rows
    ]
    yield from _dotted("levels", "extended-sets", sets.title, pd.concat(tables))


def _shuffles(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The measures in each shuffle, with mean and standard deviation, a chart per run."""
    for i, run in enumerate(data.runs):
        rows: list[dict[str, Any]] = []
        times = 0
        for name in distinct(data.table(*chart.measures), "measure"):
            for perturbation in (p for p in data.diagnostic.perturbations if p.shuffled):
                setting = perturbation.name
                figures = data.table(name, setting=setting, model=data.sources[i].label)
                if figures.empty:
                    continue
                shuffles = [n for other, n in run.predictions[data.task] if other == setting]
                scores = (run_scores(run, data.task, setting, n)[name] for n in sorted(shuffles))
                label = {"label": f"{perturbation.label}, {measure_label(name)}"}
                counts = Counter(float(of_shuffle.values.mean()) for of_shuffle in scores)
                rows += [label | {"value": x, "shuffles": n} for x, n in sorted(counts.items())]
                plain = run.results.measure(data.task, perturbation.unshuffled, name)
                [figure] = figures.to_dict("records")
                rows.append(
                    label | {"mean": figure["value"], "not shuffled": plain and plain.value}
                    | {key: figure[key] for key in ("sd", "published")}
                )  # fmt: skip
                times = max(times, len(shuffles))
        if rows:
            caption = (
                f"{chart.title}, {times} times: the larger a circle, the more shuffles "
                "had this value. Below: mean ± one standard deviation; dashed: not shuffled."
            )
            drawn = drawing.shuffle_chart(pd.DataFrame(rows), data.colors(i))
            yield data.plot(i, chart.kind, "shuffles", caption, drawn)


def _cutoffs(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """EW and MW over cut-offs: of one run in one chart, of several runs a chart per measure."""
    names = ("mw@top=*", "mw@bottom=*", "ew@top=*", "ew@bottom=*")
    table = data.table(*names)
    if table.empty:  # a server gives no whole distribution
        return
    table = _with_cutoffs(data, table)
    several = len(data.runs) > 1
    for group in (("MW",), ("EW",)) if several else (("MW", "EW"),):
        caption = (
            f"{' and '.join(group)} of the verbs in the top of the distribution, then of those in "
            "its bottom. Bands are 95% intervals, the dashed line is chance."
        )
        drawn = drawing.cutoff_chart(table[table["score"].isin(group)])
        yield Plot(chart.kind, f"cutoffs-{'-'.join(group).lower()}", caption, drawn)
    by = data.table(*names, by=chart.by)
    if len(by) and not several:
        by = _with_labels(data, chart, by).rename(columns={"label": "panel"})
        caption = f"MW and EW by cut-off in each {chart.by}; left of the line top, right bottom."
        drawn = drawing.cutoff_chart(_with_cutoffs(data, by))
        yield Plot(chart.kind, f"cutoffs-{name_part(chart.by)}s", caption, drawn)


def _with_cutoffs(data: TaskRuns, table: pd.DataFrame) -> pd.DataFrame:
    """The figures with the score (MW or EW) and the cut-off that their measures name."""
    parts = table["measure"].str.split("[@=]", expand=True, regex=True).reindex(columns=range(3))
    score = parts[0].str.upper()
    cut = parts[1].str.cat([f"{float(x):g}" for x in parts[2]], " ")
    series = table["series"] if len(data.runs) > 1 else score
    return table.assign(score=score, series=series, **{"cut-off": cut})


# ---- items ---------------------------------------------------------------------------------------


def _scatter(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Good against bad completions or sentences, a chart per run."""
    bits = data.diagnostic.asks == "sentence"
    threshold = data.runs[0].results.protocol.threshold
    tables = [
        pd.DataFrame(_pair(item, bits, threshold) for item in items if item.difference is not None)
        for items in (_restricted(data, i, chart) for i in range(len(data.runs)))
    ]
    values = [value for table in tables for side in ("good", "bad") if len(table)
              for value in table[side]]  # fmt: skip
    what, reading = (
        ("Surprisal of the good against the bad sentence",
         "Below the diagonal the model prefers the good sentence")
        if bits else
        ("p(good) against p(bad)", "Above the diagonal the model prefers the good completion")
    )  # fmt: skip
    title = f"{chart.title}. {what}" if chart.title else what
    name = f"pairs-{name_part(chart.title)}".strip("-")
    ends = drawing.ends_of(values, bits=bits) if values else (0.0, 1.0)
    for i, table in enumerate(tables):
        colors = data.colors(i)
        if len(table) > MAX_LISTED:
            caption = f"{title}, {len(table):,} contrasts; the darker, the more. {reading}."
            good, bad = table["good"], table["bad"]
            drawn = drawing.density_chart(good, bad, ends, bits=bits, color=colors[0])
            yield data.plot(i, "density", name, caption, drawn)
        elif len(table):
            more = "" if bits else f", above the dashed curve by more than {threshold:g}"
            caption = f"{title}, one mark per contrast. {reading}{more}."
            drawn = drawing.pair_chart(table, ends, bits=bits, threshold=threshold, colors=colors)
            yield data.plot(i, chart.kind, name, caption, drawn)


def _restricted(data: TaskRuns, i: int, chart: Chart) -> Sequence[Item]:
    """The items in the levels that a chart is restricted to, of a break-down or of a column."""
    if not chart.by:
        return data.items[i]
    rows = data.runs[i].stimuli[data.task].columns()
    labels = data.diagnostic.levels(rows).get(chart.by, rows.get(chart.by, ()))
    inside = {x for x, level in zip(rows["id"], labels, strict=False) if level in chart.levels}
    return [item for item in data.items[i] if item.choices[0].id in inside]


def _pair(item: Item, bits: bool, threshold: float) -> dict[str, Any]:
    """A contrast as a row of a chart; its bad row is the most probable one."""
    good = next(choice for choice in item.choices if choice.good)
    bad = max((c for c in item.choices if c.good is False), key=lambda c: c.value or 0.0)
    pair = {"item": visible(item.id), "context": visible(good.sentence)}
    pair["verdict"] = "good" if item.prefers_good else "bad"
    if bits:
        return pair | {"other context": visible(bad.context), "good": good.bits, "bad": bad.bits}
    if item.prefers_good and item.by_threshold:
        pair["verdict"] = f"good by > {threshold:g}"
    return pair | {
        "good word": visible(good.target), "good": good.probability, "rank of good": good.rank,
        "bad word": visible(bad.target), "bad": bad.probability, "rank of bad": bad.rank,
    }  # fmt: skip


def _cloze(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Model probability against human cloze probability, a chart per run."""
    columns = data.runs[0].stimuli[data.task].columns()
    cloze = dict(zip(columns["id"], columns.get("target_cloze", ()), strict=False))
    tables = [
        pd.DataFrame(
            {
                "item": visible(item.id), "context": visible(choice.sentence),
                "human cloze": cloze[choice.id], "word": visible(choice.target),
                "probability": choice.probability, "rank": choice.rank,
                "kind": "appropriate" if choice.good else "reversed",
            }
            for item in items
            for choice in item.choices
            if choice.probability is not None and choice.id in cloze
        )
        for items in data.items
    ]  # fmt: skip
    ends = drawing.ends_of(
        [p for table in tables if len(table) for p in table["probability"]], bits=False
    )
    for i, table in enumerate(tables):
        correlations = ", ".join(
            f"{name.title()} {numbers.number(figure.value, figure.statistic)}"
            for name in ("spearman", "pearson")
            if (figure := data.runs[i].results.measure(data.task, "none", name))
        )
        caption = "Probability of the target: model and human cloze. "
        caption += f"Correlation of log p and cloze: {correlations}."
        if len(table):
            drawn = drawing.cloze_chart(table, ends, data.colors(i))
            yield data.plot(i, chart.kind, "cloze", caption, drawn)


def _regions(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """The mean surprisal of each region in each condition, a chart per suite."""
    suites: dict[str, list[pd.DataFrame]] = {}
    for source, items in zip(data.sources, data.items, strict=True):
        for suite in dict.fromkeys(item.levels.get(chart.by, "") for item in items):
            of_suite = [item for item in items if item.levels.get(chart.by, "") == suite]
            means = _region_means(of_suite).assign(panel=source.label)
            suites.setdefault(suite, []).append(means)
    for number, (suite, models) in enumerate(suites.items(), start=1):
        if (means := pd.concat(models)).empty:
            continue
        name = visible(data.diagnostic.level_label(chart.by, suite)) or data.task
        caption = f"{name}: mean surprisal by region. Lines are 95% intervals within items."
        if means["named"].any() and not means["named"].all():
            caption += " Only the regions that the predictions read are shown."
        file = "-".join(filter(None, ("regions", str(number), name_part(suite))))
        drawn = drawing.means_chart(means, y="surprisal, bits", possible=(0, math.inf))
        yield Plot(chart.kind, file, caption, drawn, len(suites) > _UNFOLDED)


def _region_means(items: Sequence[Item]) -> pd.DataFrame:
    """The mean of each region in each condition, with its interval within items.

    The mean is over the items that have the region in all conditions that any item has it in.
    """
    formulas = {formula for item in items for formula, _ in item.predictions}
    regions = {region.number for text in formulas for region in parse_formula(text).regions}
    columns = ["region", "condition", "item", "bits"]
    bits = pd.DataFrame(
        [(part.name, choice.condition, item.id, part.bits)
         for item in items for choice in item.choices for part in choice.parts],
        columns=columns,
    ).dropna()  # fmt: skip
    rows = []
    for region, of_region in bits.groupby("region", sort=False):
        table = of_region.pivot(index="item", columns="condition", values="bits").dropna()
        table = table[distinct(of_region, "condition")]
        number = str(region).partition(" ")[0]
        named = None in regions or number in map(str, regions)  # None: the whole sentence
        bounds = _bounds(table.to_numpy())
        rows += [
            {"level": visible(str(region)), "series": visible(condition), "n": len(table),
             "value": table[condition].mean(), "low": low, "high": high, "named": named}
            for condition, (low, high) in zip(table, bounds, strict=True)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def _bounds(bits: stats.Values) -> list[stats.Interval]:
    """The interval of each column: within items, or of a mean where there is a single column."""
    n, columns = bits.shape
    if n < 2 or columns < 2:
        return [stats.mean_interval(x) if n > 1 else (math.nan, math.nan) for x in bits.T]
    return within_item_intervals(bits)


CHART_KINDS: Mapping[str, Callable[[TaskRuns, Chart], Iterator[Plot]]] = {
    "figures": _figures,
    "levels": _levels,
    "scatter": _scatter,
    "cloze": _cloze,
    "shuffles": _shuffles,
    "cutoffs": _cutoffs,
    "regions": _regions,
}
"""Kind of a declared chart -> the function that makes it."""
