"""Charts of items: good against bad rows, and the model's against human cloze probability."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from lmdiag.diagnostics import Chart
from lmdiag.report import numbers
from lmdiag.report.charts import Plot, name_part, parts
from lmdiag.report.charts.parts import DASHED, MUTED, tooltip
from lmdiag.report.items import MAX_LISTED
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.report.charts.kinds import TaskRuns

_FLOOR = 1e-8
"""Smallest probability on an axis; smaller ones are drawn at its end."""


def scatter(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields good against bad completions or sentences, a chart per run.

    On the side of the diagonal with the more probable good rows the good one is preferred; of
    probabilities, above the dashed curve by more than the threshold of sensitivity@threshold.
    """
    bits, threshold = data.diagnostic.asks == "sentence", data.runs[0].results.protocol.threshold
    tables = [_pairs(data, i, chart) for i in range(len(data.runs))]
    what, reading, axis = (
        ("Surprisal of the good against the bad sentence",
         "Below the diagonal the model prefers the good sentence", "{} sentence, bits")
        if bits else
        ("p(good) against p(bad)", "Above the diagonal the model prefers the good completion",
         "p({} completion)")
    )  # fmt: skip
    values = pd.concat([table[side] for table in tables for side in ("good", "bad")])
    axes = {
        channel: axis_of(channel, side, axis.format(side), values, bits)
        for channel, side in (("x", "bad"), ("y", "good"))
    }
    title = f"{chart.title}. {what}" if chart.title else what
    for i, table in enumerate(tables):
        kind, colors = chart.kind, data.colors(i)[:2]
        if table.empty:
            continue
        if len(table) > MAX_LISTED:
            kind, drawn = "density", _density_chart(table, axes, colors[0])
            caption = f"{title}, {len(table):,} contrasts; the darker, the more. {reading}."
        else:
            drawn = _pair_chart(table, axes, None if bits else threshold, colors)
            more = "" if bits else f", above the dashed curve by more than {threshold:g}"
            caption = f"{title}, one mark per contrast. {reading}{more}."
        name = f"pairs-{name_part(chart.title)}".strip("-")
        yield data.plot(i, kind, name, caption, drawn)


def _pairs(data: TaskRuns, i: int, chart: Chart) -> pd.DataFrame:
    """The contrasts of a run, in the levels that a chart is restricted to; each with the most
    probable of its bad rows."""
    columns, rows = data.runs[i].stimuli[data.task].columns(), []
    levels = data.diagnostic.levels(columns).get(chart.by, columns.get(chart.by, ()))
    inside = {x for x, level in zip(columns["id"], levels, strict=False) if level in chart.levels}
    threshold = data.runs[0].results.protocol.threshold
    for item in data.items[i]:
        if item.difference is None or (chart.by and item.choices[0].id not in inside):
            continue
        good = next(choice for choice in item.choices if choice.good)
        bad = max((c for c in item.choices if c.good is False), key=lambda c: c.value or 0.0)
        texts = {"item": item.id, "context": good.sentence}
        if data.diagnostic.asks == "sentence":
            texts |= {"other context": bad.context}
            figures: dict[str, Any] = {"good": good.bits, "bad": bad.bits}
        else:
            texts |= {"good word": good.target, "bad word": bad.target}
            figures = {"good": good.probability, "bad": bad.probability}
            figures |= {"rank of good": good.rank, "rank of bad": bad.rank}
        is_far = item.by_threshold and data.diagnostic.asks != "sentence"
        verdict = (f"good by > {threshold:g}" if is_far else "good") if item.prefers_good else "bad"
        rows.append({x: visible(y) for x, y in texts.items()} | figures | {"verdict": verdict})
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["good", "bad"], dtype=float)


def axis_of(channel: str, column: str, title: str, values: pd.Series[float], bits: bool) -> Any:
    """Returns a channel of surprisals, or of probabilities on a logarithmic scale."""
    if bits:
        ends = [values.min(), values.max()]
        scale: dict[str, Any] = {"domain": ends, "nice": True, "zero": False}
        return parts.numeric(channel, column, percent=False, title=title, **scale)
    low = math.floor(math.log10(max(_FLOOR, values[values > 0].min() if values.any() else 0.1)))
    scale = {"type": "log", "domain": [10.0**low, 1.0], "clamp": True}
    made = parts.numeric(channel, column, percent=False, title=title, **scale)
    return made.axis(values=[10.0**i for i in range(low, 1)], format="~g")


def _line(bad: Any, good: Any, axes: dict[str, Any], **mark: Any) -> Any:
    """A thin line through points of bad and good."""
    line = alt.Chart(parts.inline(pd.DataFrame({"bad": bad, "good": good})))
    return line.mark_line(color=MUTED, strokeWidth=1, **mark).encode(**axes)


def _item_chart(data: pd.DataFrame, *lines: Any, height: int, **channels: Any) -> Any:
    """A mark per item, which a page connects with its list of items."""
    marks = alt.Chart(name="items").mark_point(
        size=42, strokeWidth=1.3, opacity=1, cursor="pointer"
    )
    return parts.layered(data, *lines, marks.encode(**channels), height=height)


def _pair_chart(
    data: pd.DataFrame, axes: dict[str, Any], threshold: float | None, colors: Sequence[str]
) -> Any:
    """A mark per contrast, of probabilities (with a threshold) or of surprisals."""
    (good, bad), ends = colors, axes["x"]["scale"]["domain"]
    lines, form, titles = [_line(ends, ends, axes)], ".1f", {}
    looks = {"good": (good, good, "circle"), "bad": (bad, bad, "triangle-down")}
    if threshold is not None:
        form, titles = ".3g", {"good": "p(good)", "bad": "p(bad)"}
        curve = np.geomspace(ends[0], 1 - threshold)
        lines.append(_line(curve, curve + threshold, axes, strokeDash=DASHED))
        looks = {
            f"good by > {threshold:g}": (good, good, "circle"),
            "good": (good, "transparent", "circle"), "bad": (bad, "transparent", "triangle-down"),
        }  # fmt: skip
    color, fill, shape = zip(*looks.values(), strict=True)
    channels = parts.series("verdict", [*looks], "prefers", color=color, fill=fill, shape=shape)
    columns = (
        "item, context, other context, good word, bad word, rank of good, rank of bad, good, bad"
    )
    shown = tooltip(data, columns, form, **titles)
    return _item_chart(data, *lines, height=300, **axes, **channels, tooltip=shown)


def _density_chart(pairs: pd.DataFrame, axes: dict[str, Any], color: str) -> Any:
    """The number of contrasts in each cell, where single marks would cover each other."""
    scale = axes["x"]["scale"].to_dict()
    low, high = scale["domain"]
    edges = (np.geomspace if "type" in scale else np.linspace)(low, high, 37)
    inside = pairs[["bad", "good"]].clip(low, high)
    counts, _, _ = np.histogram2d(inside["bad"], inside["good"], bins=[edges, edges])
    i, j = np.nonzero(counts)
    ends = {"bad": edges[i], "bad_end": edges[i + 1], "good": edges[j], "good_end": edges[j + 1]}
    data = pd.DataFrame(ends | {"contrasts": counts[i, j].astype(int)})
    shades = alt.Opacity("contrasts:Q", legend=None).scale(type="log", range=[0.1, 1])
    shown = tooltip(data, "contrasts, good, bad", ".2g")
    cells = alt.Chart().mark_rect(color=color)
    cells = cells.encode(**axes, x2="bad_end", y2="good_end", opacity=shades, tooltip=shown)
    return parts.layered(data, _line(scale["domain"], scale["domain"], axes), cells, height=300)


def cloze(data: TaskRuns, chart: Chart) -> Iterator[Plot]:
    """Yields the probability of each target against its human cloze probability, per run."""
    columns = data.runs[0].stimuli[data.task].columns()
    known = dict(zip(columns["id"], columns.get("target_cloze", ()), strict=False))
    tables = [
        pd.DataFrame(
            {
                "item": visible(item.id), "context": visible(choice.sentence),
                "human cloze": known[choice.id], "word": visible(choice.target),
                "probability": choice.probability, "rank": choice.rank,
                "kind": "appropriate" if choice.good else "reversed",
            }
            for item in items
            for choice in item.choices
            if choice.probability is not None and choice.id in known
        )
        for items in data.items
    ]  # fmt: skip
    values = pd.concat(
        [table["probability"] for table in tables if len(table)] or [pd.Series([0.1])]
    )
    for i, table in enumerate(tables):
        if table.empty:
            continue
        found = {
            name: data.runs[i].results.measure(data.task, "none", name)
            for name in ("spearman", "pearson")
        }
        correlations = ", ".join(
            f"{name.title()} {numbers.number(x.value, x.statistic)}"
            for name, x in found.items()
            if x
        )
        caption = "Probability of the target: model and human cloze. "
        caption += f"Correlation of log p and cloze: {correlations}."
        (first, second), kinds = data.colors(i)[:2], ["appropriate", "reversed"]
        shapes, fill = ["circle", "triangle-up"], [first, "transparent"]
        channels = parts.series("kind", kinds, color=[first, second], fill=fill, shape=shapes)
        channels["x"] = alt.X("human cloze:Q", title="human cloze probability")
        channels["y"] = axis_of("y", "probability", "model's probability", values, False)
        shown = tooltip(table, "item, context, word, rank, probability, human cloze", ".3g")
        drawn = _item_chart(table, height=230, **channels, tooltip=shown)
        yield data.plot(i, chart.kind, "cloze", caption, drawn)
