"""Charts of items: good against bad rows, and the model's against human cloze probability."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lmdiag.diagnostics import Chart
from lmdiag.report import numbers
from lmdiag.report.charts import Plot, drawing, name_part
from lmdiag.report.charts.drawing import DASHED, MUTED, tooltip
from lmdiag.report.charts.task_runs import TaskRuns
from lmdiag.report.charts.vega import Spec, field, mark
from lmdiag.report.run_items import MAX_LISTED, RunItems
from lmdiag.text import visible

FLOOR = 1e-8
"""Smallest probability on an axis; smaller ones are drawn at its end."""


class _PairTexts(NamedTuple):
    """The texts of a chart of contrasts: its title, and how it is read.

    `axis` is the title of an axis, and `value` what tooltips call its values; {} stands for "good"
    or "bad".
    """

    title: str
    reading: str
    axis: str
    value: str


_PAIR_TEXTS = {
    "word": _PairTexts(
        "p(good) against p(bad)", "Above the diagonal the model prefers the good completion",
        "p({} completion)", "p({})",
    ),
    "sentence": _PairTexts(
        "Surprisal of the good against the bad sentence",
        "Below the diagonal the model prefers the good sentence", "{} sentence, bits", "{}",
    ),
    "choice": _PairTexts(
        "Share of the good against the bad option",
        "Above the diagonal the model chooses the good option",
        "share of the {} option", "share of {}",
    ),
}  # fmt: skip


class _MarkStyle(NamedTuple):
    """How the marks of some items are drawn."""

    color: str
    fill: str
    shape: str


_PAIR_COLUMNS = (
    *("item", "context", "other context", "good word", "bad word"),
    *("rank of good", "rank of bad", "good", "bad"),
)
_CLOZE_COLUMNS = ("item", "context", "word", "rank", "probability", "human cloze")
"""Columns that tooltips show."""


def scatter(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields a chart per run: good against bad completions, sentences or options.

    A mark is a contrast. More than `MAX_LISTED` of them are counted in the cells of a grid.
    """
    protocol = task_runs.runs[0].results.protocol
    # where the model chooses among options, values are shares of options, whatever the rows ask
    asks = "choice" if protocol.elicitation == "choice" else task_runs.diagnostic.asks
    texts = _PAIR_TEXTS[asks]
    is_bits = asks == "sentence"  # sentences have surprisals in bits, others probabilities
    # of words also: whether the good one is more probable by more than the threshold of the run
    far_verdict = f"good by > {protocol.threshold:g}" if asks == "word" else ""
    tables = [_pairs(items, chart, far_verdict) for items in task_runs.items]
    values = pd.concat([table[side] for table in tables for side in ("good", "bad")])
    axes = {
        "x": axis_of("bad", texts.axis.format("bad"), values, is_bits=is_bits),
        "y": axis_of("good", texts.axis.format("good"), values, is_bits=is_bits),
    }
    ends = axes["x"]["scale"]["domain"]  # both axes have the same
    diagonal = _line(ends, ends, axes)
    lines = [diagonal]
    reading = texts.reading
    if far_verdict:
        # a straight line of equal differences is a curve on logarithmic axes
        bad_values = np.geomspace(*ends)
        bad_values = bad_values[bad_values + protocol.threshold <= 1]  # good probabilities end at 1
        good_values = bad_values + protocol.threshold
        lines.append(_line(bad_values, good_values, axes, strokeDash=DASHED))
        reading += f", above the dashed curve by more than {protocol.threshold:g}"
    title = ". ".join(filter(None, (chart.title, texts.title)))
    name = f"pairs-{name_part(chart.title)}".strip("-")
    for i, table in enumerate(tables):
        good_color, bad_color = task_runs.colors(i)[:2]
        if len(table) > MAX_LISTED:
            spec = _density_chart(table, axes, good_color, diagonal)
            caption = f"{title}, {len(table):,} contrasts; the darker, the more. {texts.reading}."
            yield task_runs.plot_of_run(i, Plot("density", name, caption, spec))
        elif len(table):
            styles = _verdict_styles(good_color, bad_color, far_verdict)
            tooltips = tooltip(
                table, _PAIR_COLUMNS, good=texts.value.format("good"), bad=texts.value.format("bad")
            )
            spec = _marks(table, "verdict", styles, *lines, **axes, tooltip=tooltips)
            caption = f"{title}, one mark per contrast. {reading}."
            yield task_runs.plot_of_run(i, Plot(chart.kind, name, caption, spec))


def _verdict_styles(good_color: str, bad_color: str, far_verdict: str) -> dict[str, _MarkStyle]:
    """Verdict on a contrast -> how its mark is drawn, in the order of the legend.

    Filled marks are for the clearest verdict on the good side: `far_verdict` or, if it is "",
    "good".

    Args:
        good_color, bad_color: of contrasts whose good, or bad, row the model prefers.
        far_verdict: that of contrasts whose good row is preferred by more than the threshold, e.g.
            "good by > 0.01"; "" without a threshold.
    """
    filled = _MarkStyle(good_color, good_color, "circle")
    bad = _MarkStyle(bad_color, "transparent", "triangle-down")
    if not far_verdict:
        return {"good": filled, "bad": bad}
    return {far_verdict: filled, "good": filled._replace(fill="transparent"), "bad": bad}


def _pairs(items: RunItems, chart: Chart, far_verdict: str) -> pd.DataFrame:
    """The contrasts of a run in the levels of a chart, each with its most probable bad row.

    Columns are `good` and `bad` (probability or share, of sentences surprisal), `verdict` ("good"
    or "bad", whichever the model prefers, or `far_verdict` if it is not "" and the good one is
    preferred by more than the threshold) and what tooltips show.
    """
    patterns = chart.levels or ("*",)
    is_drawn = [
        any(fnmatchcase(level, pattern) for pattern in patterns) for level in items.level(chart.by)
    ]
    # a row per contrast that has a difference, since its rows have scores
    pairs = items.outcomes[is_drawn].dropna(subset="difference")
    # the good and the bad row of each contrast, in the order of the contrasts and with their index
    good = items.rows.loc[pairs["good_row"].astype(int)].set_axis(pairs.index)
    bad = items.rows.loc[pairs["bad_row"].astype(int)].set_axis(pairs.index)
    value = "surprisal" if items.asks == "sentence" else "probability"
    verdicts = pairs["prefers_good"].map({1.0: "good", 0.0: "bad"})
    if far_verdict:
        verdicts = verdicts.mask(pairs["by_threshold"].eq(1), far_verdict)
    texts = {"item": good["item"], "context": good["sentence"]}
    # two words in one context, or two contexts
    if items.stimuli.asks_words:
        texts |= {"good word": good["target"], "bad word": bad["target"]}
    else:
        texts["other context"] = bad["sentence"]
    values = {"good": good[value], "bad": bad[value]}
    if items.asks != "sentence":
        values |= {"rank of good": good["rank"], "rank of bad": bad["rank"]}
    text_columns = {name: column.map(visible) for name, column in texts.items()}
    return pd.DataFrame({**text_columns, **values, "verdict": verdicts})


def axis_of(column: str, title: str, values: pd.Series[float], is_bits: bool) -> Spec:
    """Returns a channel of surprisals, or of probabilities on a logarithmic scale.

    Args:
        values: all values of the axis, also those of other charts that share its scale.
        is_bits: whether they are surprisals.
    """
    if is_bits:
        domain = drawing.ends(values)
        return drawing.numeric(column, title=title, domain=domain, nice=True, zero=False)
    smallest = values[values > 0].min() if values.any() else 0.1
    low = math.floor(math.log10(max(FLOOR, smallest)))
    low = min(low, -2)  # three ticks at least
    scale: dict[str, Any] = {"type": "log", "domain": [10.0**low, 1.0], "clamp": True}
    label = "format(datum.value, datum.value < 0.001 ? '~e' : '~g')"
    axis = {"values": [10.0**i for i in range(low, 1)], "labelExpr": label}
    return drawing.numeric(column, title=f"{title}, log scale", **scale) | {"axis": axis}


def _line(bad: Any, good: Any, axes: Spec, **options: Any) -> Spec:
    """A thin line through the points at x = bad, y = good; `axes` are the channels x and y."""
    rows = drawing.inline(pd.DataFrame({"bad": bad, "good": good}))
    return {"data": rows, **mark("line", axes, color=MUTED, strokeWidth=1, **options)}


def _marks(
    data: pd.DataFrame, column: str, styles: Mapping[str, _MarkStyle], *lines: Spec, **channels: Any
) -> Spec:
    """A chart with a mark for each row of the data, which is an item.

    Args:
        data: a row per item.
        column: that the colours and shapes show: "verdict" of contrasts, or "kind" of targets.
        styles: value of `column` -> how its marks are drawn, in the order of the legend.
        lines: layers drawn below the marks; charts of contrasts have a diagonal.
        channels: `x`, `y` and `tooltip`.
    """
    color, fill, shape = zip(*styles.values(), strict=True)
    # the verdicts "good" and "bad" say what the model prefers; values of `kind` need no title
    title = "prefers" if column == "verdict" else None
    channels |= drawing.series(column, [*styles], title, color=color, fill=fill, shape=shape)
    marks = mark("point", channels, size=42, strokeWidth=1.3, opacity=1, cursor="pointer")
    items_layer = {"name": "items", **marks}  # a page finds it by its name: a click shows the item
    # with a diagonal both axes have the same scale, and the chart is nearly a square (360 wide)
    height = 300 if lines else 230
    return drawing.layered(data, *lines, items_layer, height=height)


def _density_chart(pairs: pd.DataFrame, axes: Spec, color: str, diagonal: Spec) -> Spec:
    """The number of contrasts in each cell of a grid, where single marks would cover each other.

    The more contrasts, the more opaque is the colour of a cell.

    Args:
        pairs: a row per contrast, with columns `bad` (x) and `good` (y).
        axes: {"x": channel of `bad`, "y": channel of `good`}, as `axis_of` makes them. Both have
            the same scale, with its ends in `domain`.
        color: of the cells.
        diagonal: the layer of the line at which good and bad are equal, drawn below the cells.
    """
    scale = axes["x"]["scale"]
    low, high = scale["domain"]
    # `axis_of` gives a type only to the scale of probabilities, which is logarithmic
    spaced = np.geomspace if "type" in scale else np.linspace
    edges = spaced(low, high, 37)  # of 36 cells
    inside = pairs[["bad", "good"]].clip(low, high).to_numpy()
    counts, _ = np.histogramdd(inside, bins=[edges, edges])
    i, j = np.nonzero(counts)
    cells = {"bad": edges[i], "bad_end": edges[i + 1], "good": edges[j], "good_end": edges[j + 1]}
    data = pd.DataFrame(cells | {"contrasts": counts[i, j].astype(int)})
    scale_of_shades = {"type": "log", "range": [0.1, 1]}
    encoding = axes | {
        "x2": {"field": "bad_end"},
        "y2": {"field": "good_end"},
        "opacity": field("contrasts", "numbers", legend=None, scale=scale_of_shades),
        "tooltip": tooltip(data, ["contrasts", "good", "bad"]),
    }
    return drawing.layered(data, diagonal, mark("rect", encoding, color=color), height=300)


def target_cloze(task_runs: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields a chart per run: the probability of each target against its human cloze probability.

    Runs in which the model chooses among options have no chart.
    """
    if task_runs.runs[0].results.protocol.elicitation == "choice":
        return  # shares of options are not probabilities of words, as human cloze is
    tables = [_cloze_table(items) for items in task_runs.items]
    values = pd.concat([table["probability"] for table in tables])
    channels = {
        "x": field("human cloze", "numbers", title="human cloze probability"),
        "y": axis_of("probability", "model's probability", values, is_bits=False),
    }
    for i, table in enumerate(tables):
        if table.empty:
            continue
        appropriate_color, reversed_color = task_runs.colors(i)[:2]
        styles = {
            "appropriate": _MarkStyle(appropriate_color, appropriate_color, "circle"),
            "reversed": _MarkStyle(reversed_color, "transparent", "triangle-up"),
        }
        tooltips = tooltip(table, _CLOZE_COLUMNS)
        spec = _marks(table, "kind", styles, **channels, tooltip=tooltips)
        measures = task_runs.runs[i].results.tasks[task_runs.task]["none"].measures
        correlations = []
        for name in ("spearman", "pearson"):
            if name in measures:
                value = numbers.number(measures[name].value, measures[name].statistic)
                correlations.append(f"{name.title()} {value}")
        caption = "Probability of the target: model and human cloze. Correlation of log p and cloze"
        caption += f": {', '.join(correlations)}."
        yield task_runs.plot_of_run(i, Plot(chart.kind, "cloze", caption, spec))


def _cloze_table(items: RunItems) -> pd.DataFrame:
    """The targets of a run with human and model's probability, a row per mark and tooltip.

    `kind` is "appropriate" for good rows, and "reversed" for others (those of role reversals).
    """
    cloze = pd.Series(items.stimuli.columns().get("target_cloze"), dtype=float)  # by row
    rows = items.rows.assign(cloze=cloze).dropna(subset=["cloze", "probability"])
    return pd.DataFrame({
        "item": rows["item"].map(visible),
        "context": rows["sentence"].map(visible),
        "human cloze": rows["cloze"],
        "word": rows["target"].map(visible),
        "probability": rows["probability"],
        "rank": rows["rank"],
        "kind": rows["good"].map({True: "appropriate"}).fillna("reversed"),
    })  # fmt: skip
