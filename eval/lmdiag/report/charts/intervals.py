"""Figures with their intervals: of measures, of shuffles, of differences between two runs."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.report.charts.parts import (
    COLOURS,
    INK,
    MUTED,
    RIGHT,
    SHAPES,
    WRONG,
    Datum,
    Spec,
    by_label,
    by_series,
    distinct,
    in_panels,
    interval,
    layered,
    mark,
    tooltips,
)


def dots(rows: Sequence[Datum]) -> Spec:
    """Figures as dots with 95% intervals, one line of the chart per label and series.

    A thin line is the 95% interval, a thick one the standard deviation over shuffles, a short
    dashed line the chance level, a hollow diamond the published figure.

    Args:
        rows: label, series, value, low, high, sd, n, chance, published.
    """
    labels, series = distinct(rows, "label"), distinct(rows, "series")
    lines = max(label.count("\n") + 1 for label in labels)
    band = max(14 * len(series) + 6, 13 * lines + 10)
    position = {
        "y": by_label("label", labels),
        "yOffset": {"field": "series", "type": "nominal", "sort": None, "title": None},
    }
    layers = [
        mark("tick", "chance", color=INK, size=13, thickness=1, strokeDash=[2, 2]),
        interval("low", "high", strokeWidth=1.5, opacity=0.6),
        interval("sd_low", "sd_high", strokeWidth=6, opacity=0.3),
        mark("point", "published", shape="diamond", size=70, color=INK, strokeWidth=1.3),
        mark("point", "value", filled=True, size=48, opacity=1),
    ]
    for layer in layers[1:3] + layers[4:]:
        layer["encoding"]["color"] = by_series(series, COLOURS)
    layers[-1]["encoding"]["shape"] = by_series(series, SHAPES)
    layers[-1]["encoding"]["tooltip"] = tooltips(
        rows, label="figure", series="of", value="value:%", low="from:%", high="to:%",
        sd="sd over shuffles:%", n="n", chance="chance:%", published="published:%",
    )  # fmt: skip
    return layered([{**row, **_spread(row)} for row in rows], layers, position, len(labels) * band)


def _spread(row: Datum) -> Datum:
    """One standard deviation over shuffles to both sides of the mean, within [0, 1]."""
    value, sd = row["value"], row.get("sd")
    if value is None or sd is None:
        return {}
    return {"sd_low": max(0.0, value - sd), "sd_high": min(1.0, value + sd)}


def shuffles(rows: Sequence[Datum]) -> Spec:
    """How often each value occurred over the shuffles, with their mean and standard deviation.

    Args:
        rows: label, value, count; and one row per label with mean, sd, plain (the figure without
            shuffling) and published in place of value and count.
    """
    labels = distinct(rows, "label")
    rows = [{**row, **_spread({"value": row.get("mean"), "sd": row.get("sd")})} for row in rows]
    below = {"yOffset": {"value": 13}}
    size = {"field": "count", "type": "quantitative", "scale": {"range": [8, 320]}, "legend": None}
    count = mark("circle", "value", color=RIGHT, opacity=0.6)
    count["encoding"] |= {
        "size": size,
        "tooltip": tooltips(rows, label="figure", value="value:%", count="shuffles"),
    }
    mean = mark("point", "mean", color=INK, filled=True, size=36, opacity=1)
    mean["encoding"] |= below | {
        "tooltip": tooltips(
            rows, mean="mean:%", sd="sd:%", plain="not shuffled:%", published="published:%"
        ),
    }
    spread = interval("sd_low", "sd_high", color=INK, strokeWidth=5, opacity=0.3)
    published = mark("point", "published", shape="diamond", size=70, color=INK, strokeWidth=1.3)
    for layer in (spread, published):
        layer["encoding"] |= below
    plain = mark("tick", "plain", color=WRONG, thickness=2, size=30, strokeDash=[4, 2])
    layers = [count, plain, spread, published, mean]
    return layered(rows, layers, {"y": by_label("label", labels)}, len(labels) * 44)


def differences(rows: Sequence[Datum]) -> Spec:
    """Differences between two runs with their intervals, a panel for each task and setting.

    Args:
        rows: group, label, difference, low, high, a, b, p_adjusted, n.
    """
    bounds = [abs(row[key]) for row in rows for key in ("low", "high") if row[key] is not None]
    reach = max(bounds, default=1.0) or 1.0
    tips = tooltips(
        rows, label="figure", difference="difference:+%", low="from:+%", high="to:+%", a="first:%",
        b="second:%", p_adjusted="adjusted p:.3f", n="n",
    )  # fmt: skip
    sign = {
        "condition": {"test": "datum.difference < 0", "value": WRONG},
        "value": RIGHT,
    }
    layers = [
        {"mark": {"type": "rule", "color": MUTED}, "encoding": {"x": {"datum": 0}}},
        interval("low", "high", strokeWidth=1.5, opacity=0.6),
        mark("point", "difference", filled=True, size=48, opacity=1),
    ]
    for layer in layers[1:]:
        layer["encoding"] |= {"color": sign, "y": by_label("label", distinct(rows, "label"))}
        layer["encoding"]["x"] |= {
            "scale": {"domain": [-reach, reach]},
            "axis": {"format": "+%", "tickCount": 5},
        }
    layers[-1]["encoding"]["tooltip"] = tips
    return in_panels(rows, "group", layers, columns=1, height={"step": 18}, y="independent")
