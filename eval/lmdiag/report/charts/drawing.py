"""Charts of figures that several rooms draw: dots beside labels, differences, specification curves.

Data are DataFrames with the columns value, low and high (95% interval), n, chance, versus_chance,
and those that the functions name; a column may be missing. Proportions are in [0, 1].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from lmdiag.report.charts import parts
from lmdiag.report.charts.parts import COLORS, LINE, MUTED, SHAPES, distinct, has, tooltip


def _room(width: int) -> dict[str, Any]:
    """Options of an axis of panels whose labels have a certain width."""
    return {"minExtent": width, "maxExtent": width, "labelLimit": width - 8}


def dot_chart(data: pd.DataFrame, *, percent: bool = True) -> Any:
    """Returns figures as dots with 95% intervals, a line of the chart per label and series.

    A thick line is the standard deviation over shuffles, a short dashed line the chance level, a
    grey one the human baseline, a hollow diamond the published figure.

    Args:
        data: columns of figures; label, series, sd, published, human.
        percent: whether the figures are proportions.
    """
    names = distinct(data, "series")
    y = parts.labels(data, "label").scale(type="band", paddingInner=0.2)
    x = parts.numeric("x", "value", percent=percent)
    channels = {"x": x, "y": y, "yOffset": alt.YOffset("series:N", sort=names)}
    channels |= parts.series("series", names, color=COLORS, shape=SHAPES)
    label = {"y": y.bandPosition(0), "y2": alt.Y2("label:N", bandPosition=1)}
    layers = parts.reference_lines(data, "x", **label)
    if has(data, "sd"):
        sd = {name: channel for name, channel in channels.items() if name != "shape"}
        bars = alt.Chart().mark_errorbar(thickness=6, opacity=0.3, clip=True)
        layers.append(bars.encode(**sd, xError="sd:Q"))
    if has(data, "published"):
        diamond = alt.Chart(mark=parts.DIAMOND)
        layers.append(diamond.encode(y=y, yOffset=channels["yOffset"], x="published:Q"))
    columns = "label, series, n, versus_chance, value, low, high, sd, chance, human, published"
    shown = tooltip(data, columns, ".1%" if percent else ".3~f")
    layers += parts.points(data, "x", channels, tooltip=shown)
    lines = max(len(re.findall(LINE, label)) for label in data["label"])
    step = max(16 * len(names) + 5, 13 * lines + 8)
    return parts.layered(data, *layers, height=step * data["label"].nunique())


def difference_chart(data: pd.DataFrame, reach: float, colors: Sequence[str]) -> Any:
    """Returns differences between two runs with intervals, a panel for each task and setting.

    A difference has the colour of the model with the larger figure; 0 has none.

    Args:
        data: group, label, difference, low, high, first, second, p_adjusted, n.
        reach: the end of the scale in both directions.
        colors: of the first and the second run.
    """
    sign = alt.when("datum.difference > 0").then(alt.value(colors[0]))
    sign = sign.when("datum.difference < 0").then(alt.value(colors[1]))
    shown = tooltip(data, "label, n, difference, low, high", "+.1%")
    channels = {
        "x": parts.numeric("x", "difference", domain=[-reach, reach]).axis(format="+%"),
        "y": parts.labels(data, "label", labelExpr="datum.label", **_room(190)),
        "color": sign.otherwise(alt.value(MUTED)),
    }
    shown += tooltip(data, "first, second, p_adjusted")
    dots = parts.points(data, "x", channels, tooltip=shown)
    chart = parts.layered(data, parts.rule(x=alt.XDatum(0)), *dots, height=alt.Step(18))
    return parts.panels(chart, data, "group", 1, room=190, own="y")


def curve_chart(
    data: pd.DataFrame,
    choices: pd.DataFrame,
    color: str,
    *,
    percent: bool,
    reach: Sequence[float] = (),
) -> Any:
    """Returns figures in ascending order, and below them the choices of each.

    Args:
        data: columns of figures; place (from 1), p, p_adjusted, protocol, and whether the point is
            `solid` and the `default`.
        choices: place, choice, and whether its knob is the `strongest`; a row per point and knob.
        color: of the points, e.g. "var(--c1)".
        percent: whether the values are proportions.
        reach: values that the scale has to show, too.
    """
    known = data.reindex(columns=["value", "low", "high", "chance"])
    ends = [min([known.min().min(), *reach]), max([known.max().max(), *reach])]
    y = parts.numeric("y", "value", percent=percent, domain=ends, nice=True, zero=False)
    channels = {"x": alt.X("place:O", axis=None), "color": alt.value(color), "y": y}
    y.axis = alt.Axis(format="%" if percent else ".3~g", **_room(120))
    *rules, dots = parts.points(
        data,
        "y",
        channels,
        fill=alt.when("datum.solid").then(alt.value(color)).otherwise(alt.value("transparent")),
        size=alt.when("datum.default").then(alt.value(150)).otherwise(alt.value(44)),
        tooltip=tooltip(
            data,
            "protocol, n, versus_chance, value, low, high, chance, p, p_adjusted",
            ".1%" if percent else ".3~g",
        ),
    )
    dots = dots.mark_point(strokeWidth=1.3, opacity=1)
    curve = alt.layer(*parts.reference_lines(data, "y"), *rules, dots, height=150)
    strongest = alt.when("datum.strongest").then(alt.value(color)).otherwise(alt.value(MUTED))
    matrix = alt.Chart(parts.inline(choices), height=alt.Step(15))
    matrix = matrix.mark_point(filled=True, size=34, opacity=1).encode(
        x=channels["x"],
        y=parts.labels(choices, "choice", **_room(120), grid=True, labelPadding=2),
        color=strongest,
        tooltip=tooltip(choices, "choice"),
    )
    both = alt.vconcat(curve, matrix, data=parts.inline(data), spacing=8)
    return both.resolve_scale(x="shared").properties(usermeta={"beside": 132})
