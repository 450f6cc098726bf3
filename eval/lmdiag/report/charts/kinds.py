"""The kinds of charts that a diagnostic can declare, filled from its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from lmdiag.diagnostics import Chart, Perturbation
from lmdiag.report import numbers
from lmdiag.report.charts import specs
from lmdiag.report.charts.charted import Charted, figure_row, name_part
from lmdiag.report.charts.sentences import sentence_pairs, suite_regions
from lmdiag.report.charts.specs import Datum, Plot
from lmdiag.report.items import MAX_LISTED, Item, run_scores
from lmdiag.report.labels import measure_label
from lmdiag.report.tables import measured, set_columns, sets_beside
from lmdiag.results import Figure, Place
from lmdiag.text import visible
from lmdiag.types import BadInput


def plots(charted: Charted) -> list[Plot]:
    """Returns the charts that a diagnostic declares and that its runs have data for."""
    declared = [
        plot
        for chart in charted.diagnostic.charts
        for plot in CHART_KINDS[chart.kind](charted, chart)
    ]
    return [
        plot._replace(name=f"{name_part(charted.task)}-{plot.name}")
        for plot in (*declared, *_extended_sets(charted))
    ]


def measures_plot(model: str, measures: Mapping[str, Figure]) -> Plot:
    """Returns a chart of the figures of one model that are in percent, without cut-offs."""
    rows = [
        figure_row(figure) | {"label": measure_label(name), "series": visible(model)}
        for name, figure in measures.items()
        if figure.is_percent and figure.value is not None and "=" not in name
    ]
    for plot in _dotted("figures", "measures", visible(model), rows):
        return plot
    raise BadInput("no measure is a proportion, so there is nothing to draw: see to_frame()")


# ---- figures -------------------------------------------------------------------------------------


def _figures(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Accuracy and sensitivity: of one run in all settings, of several runs unperturbed."""
    if len(charted.runs) > 1:
        kinds = [(source.label, i, "none", "") for i, source in enumerate(charted.sources)]
    else:
        label = charted.diagnostic.setting_label
        kinds = [(visible(label(name)), 0, name, "") for name in charted.settings]
        kinds.append(("Human (cloze)", 0, "none", "human_"))
    rows = [
        row
        for name in charted.names(*chart.measures)
        for series, i, setting, prefix in kinds
        for row in charted.row(measure_label(name), series, i, setting, prefix + name)
    ]
    yield from _dotted(chart.kind, "measures", chart.title or "Accuracy and sensitivity", rows)


def _levels(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """The levels of a break-down: all measures of one run, or the first measure of several runs.

    Of very many levels there are several charts, see `Charted.level_groups`.
    """
    several, names = len(charted.runs) > 1, charted.names(*chart.measures)
    if several:
        names = names[:1]
    only = name_part(chart.measures[0]) if len(chart.measures) == 1 else ""
    groups = charted.level_groups(chart.by, chart.levels)
    for group, levels in groups.items():
        rows = [
            row
            for level, label in levels.items()
            for row in charted.rows(names, chart.by, level, label)
        ]
        title = chart.title + (f": {group}" if group else "")
        title += f" ({measure_label(names[0])})" if several and names else ""
        for plot in _dotted(chart.kind, f"{name_part(chart.by)}-{only}", title, rows):
            name = f"{plot.name}-{name_part(group)}" if group else plot.name
            yield plot._replace(name=name, is_further=len(groups) > 1)


def _extended_sets(charted: Charted) -> Iterator[Plot]:
    """The figures of small and extended sets, as their table has them."""
    sets, labels = charted.diagnostic.extended_sets, sets_beside(charted.task, charted.sources)
    if not sets or not labels:
        return
    several = len(charted.runs) > 1
    rows = [
        row
        for name, line in set_columns(measured(charted.task, charted.sources))
        for task, label in labels.items()
        for i, source in enumerate(charted.sources)
        for row in charted.row(
            f"{name},\n{label}" if several else name.replace(", ", ",\n"),
            source.label if several else label,
            i,
            *("none", line.measure, line.by, line.level),
            task=task,
        )
    ]
    yield from _dotted("levels", "extended-sets", sets.title, rows)


def _dotted(kind: str, name: str, title: str, rows: Sequence[Datum]) -> Iterator[Plot]:
    """A chart of dots, with the meaning of those marks that the rows have in its caption."""
    present = {key for row in rows for key, value in row.items() if value is not None}
    parts = {
        "low": "lines are 95% intervals over items",
        "sd": "thick lines ± one standard deviation over shuffles",
        "published": "◇ is the published figure",
        "chance": "the dashed line is chance",
    }
    text = ", ".join(part for key, part in parts.items() if key in present)
    caption = f"{title}. {text[:1].upper()}{text[1:]}{'.' if text else ''}"
    if rows:
        yield Plot(kind, name.strip("-"), caption, specs.dots(rows))


# ---- probabilities -------------------------------------------------------------------------------


def _scatter(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Good against bad completions or sentences, a chart per run."""
    if charted.diagnostic.asks == "sentence":
        yield from sentence_pairs(charted, chart)
        return
    known = [
        [item for item in _restricted(charted, i, chart) if item.difference is not None]
        for i in range(len(charted.runs))
    ]
    reach = [p for items in known for item in items for p in (item.good, item.bad) if p]
    lowest = min(reach, default=1.0)
    title = f"{chart.title}. " if chart.title else ""
    name = f"pairs{f'-{name_part(chart.title)}' if chart.title else ''}"
    for i, items in enumerate(known):
        if len(items) > MAX_LISTED:
            caption = (
                f"{title}p(good) against p(bad) of {len(items):,} contrasts; the darker, the "
                "more contrasts. Above the diagonal the model prefers the good completion."
            )
            both = ([item.good or 0.0 for item in items], [item.bad or 0.0 for item in items])
            spec = specs.density(*both, reach=[lowest])
            yield charted.of_run(i, "density", name, caption, spec)
        elif items:
            threshold = charted.runs[i].results.protocol.threshold
            caption = (
                f"{title}p(good) against p(bad), one mark per contrast. Above the diagonal the "
                "model prefers the good completion, above the dashed curve by more than "
                f"{threshold:g}."
            )
            spec = specs.scatter([_pair(item, threshold) for item in items], threshold, lowest)
            yield charted.of_run(i, chart.kind, name, caption, spec)


def _restricted(charted: Charted, i: int, chart: Chart) -> Sequence[Item]:
    """The items in the levels that a chart is restricted to, of a break-down or of a column."""
    if not chart.by:
        return charted.items[i]
    rows = charted.runs[i].stimuli[charted.task].columns()
    labels = charted.diagnostic.levels(rows).get(chart.by, rows.get(chart.by, ()))
    inside = {x for x, level in zip(rows["id"], labels, strict=False) if level in chart.levels}
    return [item for item in charted.items[i] if item.choices[0].id in inside]


def _pair(item: Item, threshold: float) -> Datum:
    """A contrast as a row of `specs.scatter`."""
    good = next(choice for choice in item.choices if choice.good)
    bad = max((c for c in item.choices if not c.good), key=lambda c: c.probability or 0.0)
    verdict = f"good by > {threshold:g}" if item.by_threshold else "good"
    return {
        "item": visible(item.id),
        "context": visible(good.sentence),
        "good": visible(good.target),
        "bad": visible(bad.target),
        "p_good": good.probability,
        "p_bad": bad.probability,
        "rank_good": good.rank,
        "rank_bad": bad.rank,
        "verdict": verdict if item.prefers_good else "bad",
    }


def _cloze(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Model probability against human cloze probability, a chart per run."""
    rows = [_cloze_rows(charted, i) for i in range(len(charted.runs))]
    lowest = min((row["p"] for of_run in rows for row in of_run if row["p"] > 0), default=1.0)
    for i, of_run in enumerate(rows):
        if not of_run:
            continue
        correlations = ", ".join(
            f"{name.title()} {numbers.number(figure.value, figure.statistic)}"
            for name in ("spearman", "pearson")
            if (figure := charted.runs[i].results.measure(charted.task, "none", name))
        )
        caption = (
            "Probability of the target: model and human cloze. "
            f"Correlation of log p and cloze: {correlations}."
        )
        yield charted.of_run(i, chart.kind, "cloze", caption, specs.cloze(of_run, lowest))


def _cloze_rows(charted: Charted, i: int) -> list[Datum]:
    """The targets of a run as rows of `specs.cloze`; none without cloze probabilities."""
    columns = charted.runs[i].stimuli[charted.task].columns()
    if "target_cloze" not in columns:
        return []
    cloze = dict(zip(columns["id"], columns["target_cloze"], strict=True))
    return [
        {
            "item": visible(item.id), "context": visible(choice.sentence),
            "cloze": cloze[choice.id], "word": visible(choice.target),
            "p": choice.probability, "rank": choice.rank,
            "kind": "appropriate" if choice.good else "reversed",
        }
        for item in charted.items[i]
        for choice in item.choices
        if choice.probability is not None
    ]  # fmt: skip


# ---- shuffles ------------------------------------------------------------------------------------


def _shuffles(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """The measures in each shuffle, a chart per run."""
    for i in range(len(charted.runs)):
        rows = [
            row
            for name in charted.names(*chart.measures)
            for perturbation in charted.diagnostic.perturbations
            if perturbation.shuffled
            for row in _shuffled(charted, i, name, perturbation)
        ]
        if rows:
            times = max(row["runs"] for row in rows if "runs" in row)
            caption = (
                f"{chart.title}, {times} times: the larger a circle, the more shuffles "
                "had this value. Below: mean ± one standard deviation; dashed: not shuffled."
            )
            yield charted.of_run(i, chart.kind, "shuffles", caption, specs.shuffles(rows))


def _shuffled(charted: Charted, i: int, name: str, perturbation: Perturbation) -> Iterator[Datum]:
    """How often each value occurred, and the mean beside the figure without shuffling."""
    run, task, setting = charted.runs[i], charted.task, perturbation.name
    figure = run.results.measure(task, setting, name)
    if figure is None or figure.value is None:
        return
    shuffles = sorted(n for each, n in run.predictions[task] if each == setting)
    values = [float(run_scores(run, task, setting, n)[name].values.mean()) for n in shuffles]
    text = f"{perturbation.label}, {measure_label(name)}"
    for value, count in sorted(Counter(values).items()):
        yield {"label": text, "value": value, "count": count}
    plain = run.results.measure(task, perturbation.unshuffled, name)
    published = charted.sources[i].published.get(Place(task, setting, name))
    yield {
        "label": text, "mean": figure.value, "sd": figure.sd, "runs": len(values),
        "plain": plain and plain.value, "published": published and published.value / 100,
    }  # fmt: skip


# ---- cut-offs ------------------------------------------------------------------------------------


def _cutoffs(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """EW and MW over cut-offs: of one run together, of several runs a chart per measure."""
    if not charted.names("ew@*"):
        return
    several = len(charted.runs) > 1
    for measures in (("mw",), ("ew",)) if several else (("mw", "ew"),):
        title = " and ".join(map(measure_label, measures))
        caption = (
            f"{title} of the verbs in the top of the distribution, then of those in its bottom. "
            "Bands are 95% intervals, the dashed line is chance."
        )
        spec = specs.cutoffs(_over_cutoffs(charted, measures))
        yield Plot(chart.kind, f"cutoffs-{'-'.join(measures)}", caption, spec)
    rows = [
        {**row, "panel": label}
        for level, label in charted.levels(chart.by).items()
        for row in _over_cutoffs(charted, ("mw", "ew"), chart.by, level)
    ]
    if rows and not several:
        caption = f"MW and EW by cut-off in each {chart.by}; left of the line top, right bottom."
        yield Plot(chart.kind, f"cutoffs-{name_part(chart.by)}s", caption, specs.cutoffs(rows))


def _over_cutoffs(
    charted: Charted, measures: Sequence[str], by: str = "", level: str = ""
) -> list[Datum]:
    return [
        {**row, "end": end, "cutoff": float(name.partition("=")[2])}
        for measure in measures
        for end in ("top", "bottom")
        for name in charted.names(f"{measure}@{end}=*")
        for row in charted.rows([name], by, level, series=measure_label(measure))
    ]


CHART_KINDS: Mapping[str, Callable[[Charted, Chart], Iterator[Plot]]] = {
    "figures": _figures,
    "levels": _levels,
    "scatter": _scatter,
    "cloze": _cloze,
    "shuffles": _shuffles,
    "cutoffs": _cutoffs,
    "regions": suite_regions,
}
"""Kind of a declared chart -> the function that makes it."""
