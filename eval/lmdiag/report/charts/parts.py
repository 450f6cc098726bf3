"""What charts share: colours, data, scales, legends, tooltips, intervals and reference lines.

Text from data and models is only in the data and in the domains of scales, where Vega takes it as
text and never as an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

COLORS = [f"var(--c{number})" for number in range(1, 7)]
INK, MUTED = "var(--ink)", "var(--muted)"
SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]
DASHED = [4, 3]
DIAMOND = alt.MarkDef("point", shape="diamond", size=70, color=INK, filled=False, strokeWidth=1.3)
"""The mark of a published figure."""

LINE = ".{1,26}([ _]|$)"
"""A line of a label, which ends after a blank or an underscore."""

LINES = f"split(trim(replace(datum.label, regexp('{LINE}', 'g'), '$&\\n')), '\\n')"
"""The lines of a label, as an expression of Vega."""

_FORMS = {"n": ",", "at": ",", "shuffles": ",", "p": ".3f", "p_adjusted": ".3f"}
_TITLES = {"low": "from", "high": "to", "versus_chance": "against chance", "p_adjusted": "p adj."}


# ---- data ----------------------------------------------------------------------------------------


def inline(data: pd.DataFrame) -> Any:
    """Returns the rows for a chart, without undefined values: JSON has no NaN."""
    rows = data.astype(object).to_dict("records")
    known = [{key: value for key, value in row.items() if not pd.isna(value)} for row in rows]
    return alt.Data(values=known)  # type: ignore[no-untyped-call]


def layered(data: pd.DataFrame, *layers: Any, **size: Any) -> Any:
    """Returns layers over the same rows as a chart."""
    return alt.layer(*layers, data=inline(data)).properties(**{"width": 360, **size})


def panels(
    chart: Any, data: pd.DataFrame, column: str, columns: int = 2, *, room: int = 45, own: str = ""
) -> Any:
    """Returns a chart as panels with headings, a panel per value of a column.

    `room` is the width of the labels left of a panel, in pixels. Panels have one scale, but for
    the channel `own`.
    """
    facet = alt.Facet(f"{column}:N", title=None, sort=distinct(data, column))
    beside = room * (columns if own == "y" else 1) + 14 * columns
    made = chart.facet(facet.header(labelExpr=LINES), columns=columns, spacing=14)
    made = made.properties(usermeta={"beside": beside})
    return made.resolve_scale(**{own: "independent"}) if own else made


def rule(**place: Any) -> Any:
    """Returns a line at a value."""
    return alt.Chart(inline(pd.DataFrame(index=[0]))).mark_rule(color=MUTED).encode(**place)


def has(data: pd.DataFrame, column: str) -> bool:
    """Returns whether any row has a value in a column."""
    return column in data and bool(data[column].notna().any())


def distinct(data: pd.DataFrame, column: str) -> list[Any]:
    """Returns the values of a column, each once, in the order of the rows."""
    return list(data[column].dropna().unique())


# ---- channels ------------------------------------------------------------------------------------


def numeric(
    channel: str, column: str, *, percent: bool = True, title: str | None = None, **scale: Any
) -> Any:
    """Returns the channel x or y of a column of numbers.

    Proportions (`percent`) are shown from 0 to 1, unless options of the scale say otherwise.
    """
    scale = scale or ({"domain": [0, 1], "nice": False} if percent else {"zero": False})
    made = {"x": alt.X, "y": alt.Y}[channel](f"{column}:Q", title=title, scale=alt.Scale(**scale))
    return made.axis(format="%") if percent else made


def labels(data: pd.DataFrame, column: str, **axis: Any) -> Any:
    """Returns the channel y of a column of labels, which are broken into lines."""
    names = distinct(data, column)
    return alt.Y(f"{column}:N", sort=names, title=None).axis(**{"labelExpr": LINES} | axis)


def series(
    column: str, names: Sequence[str], title: str | None = None, **looks: Sequence[Any]
) -> dict[str, Any]:
    """Returns channels on which the values of a column differ, with a legend for several values.

    `looks` are lists of colours, shapes and the like by channel, repeated for more values.
    """
    columns = max(1, 330 // (24 + 6 * max(map(len, names))))  # a letter has about 6 pixels
    legend = alt.Legend(title=title, columns=columns) if len(names) > 1 else None
    scales = {
        channel: alt.Scale(domain=names, range=[x[i % len(x)] for i in range(len(names))])
        for channel, x in looks.items()
    }
    return {
        channel: getattr(alt, channel.title())(f"{column}:N", sort=None, scale=x, legend=legend)
        for channel, x in scales.items()
    }


def tooltip(data: pd.DataFrame, columns: str, form: str = ".1%", **titles: str) -> list[Any]:
    """Returns the tooltips of those columns (names separated by commas) that have values.

    `form` is the format of floats, as d3 writes it.
    """
    shown = []
    for name in (name for name in columns.split(", ") if has(data, name)):
        is_number = name in _FORMS or data[name].dtype.kind == "f"
        forms: dict[str, Any] = {"format": _FORMS.get(name, form)} if is_number else {}
        title = (_TITLES | titles).get(name, name)
        shown.append(alt.Tooltip(f"{name}:{'Q' if is_number else 'N'}", title=title, **forms))
    return shown


# ---- marks ---------------------------------------------------------------------------------------


def points(data: pd.DataFrame, on: str, channels: dict[str, Any], **looks: Any) -> list[Any]:
    """Returns points, and the rules of their intervals from `low` to `high` where they have any.

    `on` is the channel of the values, x or y; rules have the `channels` of the points, less shapes
    and the `looks`.
    """
    dots = alt.Chart().mark_point(filled=True, size=48, opacity=1).encode(**channels, **looks)
    place = {name: channel for name, channel in channels.items() if name != "shape"}
    rules = alt.Chart().mark_rule(strokeWidth=1.5, opacity=0.6)
    rules = rules.encode(**place | {on: "low:Q", f"{on}2": "high:Q"})
    return [rules, dots] if has(data, "low") else [dots]


def reference_lines(data: pd.DataFrame, on: str, **place: Any) -> list[Any]:
    """Returns the grey line of the human baseline and the dashed one of chance, if in the data.

    Without a place, the lines cross the chart.
    """
    looks: dict[str, dict[str, Any]] = {
        "human": {"color": MUTED, "strokeWidth": 2, "opacity": 0.7},
        "chance": {"color": INK, "strokeWidth": 1, "strokeDash": DASHED},
    }
    return [
        alt.Chart().mark_rule(**look).encode(**place, **{on: f"mean({column}):Q"})
        for column, look in looks.items()
        if has(data, column)
    ]
