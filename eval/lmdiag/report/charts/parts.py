"""What charts share: colours, data, axes, legends, tooltips, intervals and lines of reference.

Text from data and models is only in the data and in the domains of scales, where Vega takes it as
text and never as an expression.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

COLORS = [f"var(--c{number})" for number in range(1, 7)]
INK, MUTED = "var(--ink)", "var(--muted)"
SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]
DASHED = [4, 3]
"""Of the lines that captions call dashed."""

WIDTH = 360
"""Pixels of a chart."""

_LINES = "split(datum.label, '\\n')"
"""Expression of a label of several lines."""

_TITLES = {"low": "from", "high": "to", "versus_chance": "against chance", "p_adjusted": "p adj."}
"""Titles of columns in tooltips; the others are their names."""

_OF_INTERVALS = ("x", "y", "xOffset", "yOffset", "color")


# ---- data ----------------------------------------------------------------------------------------


def inline(data: pd.DataFrame) -> Any:
    """Returns the rows for a chart, without undefined values: JSON has no NaN."""
    rows = data.astype(object).to_dict("records")
    known = [{key: value for key, value in row.items() if not pd.isna(value)} for row in rows]
    return alt.Data(values=known)  # type: ignore[no-untyped-call]


def layered(data: pd.DataFrame, *layers: Any, **size: Any) -> Any:
    """Returns layers over the same rows as a chart."""
    return alt.layer(*layers, data=inline(data)).properties(**{"width": WIDTH, **size})


def panels(chart: Any, data: pd.DataFrame, column: str, **options: Any) -> Any:
    """Returns a chart as panels with headings on one scale, a panel per value of a column."""
    header = alt.Header(labelExpr=_LINES)
    facet = alt.Facet(f"{column}:N", title=None, sort=distinct(data, column), header=header)
    return chart.facet(facet, **{"columns": 2, "spacing": 14, **options})


def has(data: pd.DataFrame, column: str) -> bool:
    """Returns whether any row has a value in a column."""
    return column in data and bool(data[column].notna().any())


def distinct(data: pd.DataFrame, column: str) -> list[Any]:
    """Returns the values of a column, each once, in the order of the rows."""
    return list(data[column].dropna().unique())


def only(column: str) -> Any:
    """Returns a chart of the rows that have a value in a column."""
    return alt.Chart().transform_filter(f"isValid(datum.{column})")


# ---- channels ------------------------------------------------------------------------------------


def numeric(
    channel: str, column: str, *, percent: bool = True, title: str | None = None, **options: Any
) -> Any:
    """Returns the channel x or y of a column of numbers.

    Args:
        channel: x or y.
        column: of the data.
        percent: whether the numbers are proportions; then the scale is from 0 to 1.
        title: of the axis.
        options: of the scale, and `axis` with options of the axis.
    """
    axis = {"tickCount": 5} | ({"format": "%"} if percent else {}) | options.pop("axis", {})
    scale = options or ({"domain": [0, 1]} if percent else {"zero": False})
    scale = {"nice": False, **scale} if "domain" in scale else scale
    made = alt.X if channel == "x" else alt.Y
    return made(f"{column}:Q", title=title, scale=alt.Scale(**scale), axis=alt.Axis(**axis))


def labels(data: pd.DataFrame, column: str, **options: Any) -> Any:
    """Returns the channel y of a column of labels, which may have several lines."""
    axis = {"ticks": False, "domain": False, "labelPadding": 11, "labelExpr": _LINES, **options}
    return alt.Y(f"{column}:N", sort=distinct(data, column), title=None, axis=alt.Axis(**axis))


def series(
    column: str,
    looks: Mapping[str, Sequence[Any]],
    names: Sequence[str],
    *,
    title: str | None = None,
    room: int = 330,
) -> dict[str, Any]:
    """Returns channels on which the values of a column differ, with a legend for several values.

    Args:
        column: of the data.
        looks: channel (`color`, `fill`, `shape`, `strokeDash`) -> looks of the values; repeated
            where there are more values.
        names: the values, in order.
        title: of the legend.
        room: pixels for the legend.
    """
    widths = [28 + text_width(name) for name in names]
    fitting = (n for n in range(len(names), 1, -1)
               if sum(max(widths[i::n]) for i in range(n)) <= room)  # fmt: skip
    columns = next(fitting, 1)
    channels = {}
    for channel, values in looks.items():
        made: Any = getattr(alt, channel[0].upper() + channel[1:])
        legend = alt.Legend(title=title, symbolOpacity=1, columns=columns)
        scale = alt.Scale(domain=names, range=[values[i % len(values)] for i in range(len(names))])
        shown = legend if len(names) > 1 else None
        channels[channel] = made(f"{column}:N", sort=None, scale=scale, legend=shown)
    return channels


def tooltip(
    data: pd.DataFrame, texts: str, numbers: str = "", form: str = ".1%", **titles: str
) -> list[Any]:
    """Returns the tooltips of those columns that have values.

    Args:
        data: of the chart.
        texts: names of columns of text and counts, separated by commas.
        numbers: names of columns of numbers.
        form: of numbers, as d3 writes it; p-values have three decimals.
        titles: of columns, where these are not their names.
    """
    known = _TITLES | titles
    forms = dict.fromkeys(numbers.split(", "), form) | {"p": ".3f", "p_adjusted": ".3f"}
    names = [name for name in f"{texts}, {numbers}".split(", ") if has(data, name)]
    return [
        alt.Tooltip(f"{name}:Q", title=known.get(name, name), format=forms[name])
        if name in forms
        else alt.Tooltip(f"{name}:N", title=known.get(name, name))
        for name in names
    ]


# ---- marks ---------------------------------------------------------------------------------------


def points(data: pd.DataFrame, on: str, area: int = 48, **channels: Any) -> list[Any]:
    """Returns points, and the rules of their intervals from `low` to `high` where they have any.

    Args:
        data: of the chart.
        on: x or y, the channel of the values.
        area: of a point, in square pixels.
        channels: of the points; the intervals have the same place and colour.
    """
    drawn = only(channels[on]["shorthand"].partition(":")[0])
    layers = [drawn.mark_point(filled=True, size=area, opacity=1).encode(**channels)]
    if has(data, "low"):
        ends = {key: channels[key] for key in channels if key in _OF_INTERVALS}
        rules = only("low").mark_rule(strokeWidth=1.5, opacity=0.6, tooltip=None)
        layers.insert(0, rules.encode(**ends | {on: "low:Q", f"{on}2": "high:Q"}))
    return layers


def reference_lines(data: pd.DataFrame, on: str, **place: Any) -> list[Any]:
    """Returns the lines of the human baseline and of chance, where the data have them.

    Args:
        data: of the chart.
        on: x or y, the channel of the values.
        place: channels of short lines, one per row; without them, the lines cross the chart.
    """
    marks: dict[str, dict[str, Any]] = {
        "human": {"color": MUTED, "strokeWidth": 2, "opacity": 0.7},
        "chance": {"color": INK, "strokeWidth": 1, "strokeDash": DASHED},
    }
    lines = []
    for column, mark in marks.items():
        if has(data, column) and place:
            tick = {"thickness": mark.pop("strokeWidth"), "size": 13}
            line = only(column).mark_tick(**mark, **tick, tooltip=None)
            lines.append(line.encode(**place, **{on: f"{column}:Q"}))
        elif has(data, column):
            line = only(column).mark_rule(**mark, tooltip=None)
            lines.append(line.encode(**{on: f"mean({column}):Q"}))
    return lines


# ---- labels --------------------------------------------------------------------------------------


def text_width(text: str) -> int:
    """Returns about how many pixels a label of 11 pixels takes."""
    return sum(9 if letter.isupper() or letter in "mw@%" else 6 for letter in text)


def broken(label: str, width: int = 26) -> str:
    """Returns a label with a line feed after each comma, and where a line would be too long.

    A line may end after a blank or an underscore.
    """
    parts = label.replace(", ", ",\n").split("\n")
    lines = [textwrap.wrap(part.replace("_", "_\0 "), width) or [part] for part in parts]
    return "\n".join(line.replace("\0 ", "").rstrip("\0") for part in lines for line in part)
