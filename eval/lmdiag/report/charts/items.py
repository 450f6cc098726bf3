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
    """A chart of contrasts: its title, how it is read, an axis, and a value in words."""

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

_PAIR_COLUMNS = (
    *("item", "context", "other context", "good word", "bad word"),
    *("rank of good", "rank of bad", "good", "bad"),
)
_CLOZE_COLUMNS = ("item", "context", "word", "rank", "probability", "human cloze")
"""Columns that tooltips show."""


def scatter(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields good against bad completions, sentences or options, a chart per run."""
    protocol = data.runs[0].results.protocol
    asks = "choice" if protocol.elicitation == "choice" else data.diagnostic.asks
    texts = _PAIR_TEXTS[asks]
    is_bits = asks == "sentence"
    far_verdict = f"good by > {protocol.threshold:g}" if asks == "word" else ""
    tables = [_pairs(items, chart, far_verdict) for items in data.items]
    values = pd.concat([table[side] for table in tables for side in ("good", "bad")])
    axes = {
        channel: axis_of(side, texts.axis.format(side), values, is_bits)
        for channel, side in (("x", "bad"), ("y", "good"))
    }
    ends = axes["x"]["scale"]["domain"]
    lines = [_line(ends, ends, axes)]
    reading = texts.reading
    if far_verdict:
        curve = np.geomspace(*ends)
        curve = curve[curve + protocol.threshold <= 1]
        lines.append(_line(curve, curve + protocol.threshold, axes, strokeDash=DASHED))
        reading += f", above the dashed curve by more than {protocol.threshold:g}"
    title = ". ".join(filter(None, (chart.title, texts.title)))
    name = f"pairs-{name_part(chart.title)}".strip("-")
    names = {side: texts.value.format(side) for side in ("good", "bad")}
    for i, table in enumerate(tables):
        good, bad = data.colors(i)[:2]
        if len(table) > MAX_LISTED:
            drawn_chart = _density_chart(table, axes, good, lines[0])
            caption = f"{title}, {len(table):,} contrasts; the darker, the more. {texts.reading}."
            yield data.of_run(i, Plot("density", name, caption, drawn_chart))
        elif len(table):
            looks = {"good": (good, good, "circle"), "bad": (bad, "transparent", "triangle-down")}
            if far_verdict:
                looks = (
                    {far_verdict: looks["good"]} | looks | {"good": (good, "transparent", "circle")}
                )
            tooltips = tooltip(table, _PAIR_COLUMNS, **names)
            drawn_chart = _marks(table, "verdict", looks, *lines, **axes, tooltip=tooltips)
            caption = f"{title}, one mark per contrast. {reading}."
            yield data.of_run(i, Plot(chart.kind, name, caption, drawn_chart))


def _pairs(items: RunItems, chart: Chart, far_verdict: str) -> pd.DataFrame:
    """The contrasts of a run in the levels of a chart; each with the most probable bad row."""
    levels = items.level(chart.by)
    is_drawn = [any(fnmatchcase(level, x) for x in chart.levels or "*") for level in levels]
    pairs = items.outcomes[is_drawn].dropna(subset="difference")
    good = items.rows.loc[pairs["good_row"].astype(int)].set_axis(pairs.index)
    bad = items.rows.loc[pairs["bad_row"].astype(int)].set_axis(pairs.index)
    value = "surprisal" if items.asks == "sentence" else "probability"
    verdicts = pairs["prefers_good"].map({1.0: "good", 0.0: "bad"})
    if far_verdict:
        verdicts = verdicts.mask(pairs["by_threshold"].eq(1), far_verdict)
    texts = {"item": good["item"], "context": good["sentence"]}
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
    """Returns a channel of surprisals, or of probabilities on a logarithmic scale."""
    low = math.floor(math.log10(max(FLOOR, values[values > 0].min() if values.any() else 0.1)))
    low = min(low, -2)  # three ticks at least
    scale: dict[str, Any] = {"type": "log", "domain": [10.0**low, 1.0], "clamp": True}
    if is_bits:
        scale = {"domain": drawing.ends(values), "nice": True, "zero": False}
        return drawing.numeric(column, title=title, **scale)
    label = "format(datum.value, datum.value < 0.001 ? '~e' : '~g')"
    axis = {"values": [10.0**i for i in range(low, 1)], "labelExpr": label}
    return drawing.numeric(column, title=f"{title}, log scale", **scale) | {"axis": axis}


def _line(bad: Any, good: Any, axes: Spec, **options: Any) -> Spec:
    """A thin line through points of bad and good."""
    rows = drawing.inline(pd.DataFrame({"bad": bad, "good": good}))
    return {"data": rows, **mark("line", axes, color=MUTED, strokeWidth=1, **options)}


def _marks(
    data: pd.DataFrame, column: str, looks: Mapping[str, Any], *lines: Spec, **channels: Any
) -> Spec:
    """A mark per item, which a page connects with its list of items.

    `looks` are colour, fill and shape by the value of a column.
    """
    color, fill, shape = zip(*looks.values(), strict=True)
    title = "prefers" if column == "verdict" else None
    channels |= drawing.series(column, [*looks], title, color=color, fill=fill, shape=shape)
    marks = mark("point", channels, size=42, strokeWidth=1.3, opacity=1, cursor="pointer")
    height = 300 if lines else 230
    return drawing.layered(data, *lines, {"name": "items", **marks}, height=height)


def _density_chart(pairs: pd.DataFrame, axes: Spec, color: str, diagonal: Spec) -> Spec:
    """The number of contrasts in each cell, where single marks would cover each other."""
    scale = axes["x"]["scale"]
    low, high = scale["domain"]
    edges = (np.geomspace if "type" in scale else np.linspace)(low, high, 37)
    inside = pairs[["bad", "good"]].clip(low, high).to_numpy()
    counts, _ = np.histogramdd(inside, bins=[edges, edges])
    i, j = np.nonzero(counts)
    ends = {"bad": edges[i], "bad_end": edges[i + 1], "good": edges[j], "good_end": edges[j + 1]}
    data = pd.DataFrame(ends | {"contrasts": counts[i, j].astype(int)})
    scale_of_shades = {"type": "log", "range": [0.1, 1]}
    encoding = axes | {
        "x2": {"field": "bad_end"},
        "y2": {"field": "good_end"},
        "opacity": field("contrasts", "numbers", legend=None, scale=scale_of_shades),
        "tooltip": tooltip(data, ["contrasts", "good", "bad"]),
    }
    return drawing.layered(data, diagonal, mark("rect", encoding, color=color), height=300)


def target_cloze(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields the probability of each target against its human cloze probability, per run."""
    if data.runs[0].results.protocol.elicitation == "choice":
        return
    tables = [*map(_cloze_table, data.items)]
    values = pd.concat([table["probability"] for table in tables])
    channels = {
        "x": field("human cloze", "numbers", title="human cloze probability"),
        "y": axis_of("probability", "model's probability", values, False),
    }
    for i, table in enumerate(tables):
        if table.empty:
            continue
        good_color, second = data.colors(i)[:2]
        looks = {
            "appropriate": (good_color, good_color, "circle"),
            "reversed": (second, "transparent", "triangle-up"),
        }
        tooltips = tooltip(table, _CLOZE_COLUMNS)
        drawn = _marks(table, "kind", looks, **channels, tooltip=tooltips)
        measures = data.runs[i].results.tasks[data.task]["none"].measures
        correlations = ", ".join(
            f"{name.title()} {numbers.number(measures[name].value, measures[name].statistic)}"
            for name in ("spearman", "pearson")
            if name in measures
        )
        caption = "Probability of the target: model and human cloze. Correlation of log p and cloze"
        yield data.of_run(i, Plot(chart.kind, "cloze", f"{caption}: {correlations}.", drawn))


def _cloze_table(items: RunItems) -> pd.DataFrame:
    """The targets of a run with their human cloze probability."""
    cloze = pd.Series(items.stimuli.columns().get("target_cloze"), dtype=float)
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
