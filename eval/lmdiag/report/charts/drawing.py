"""What charts share, and the charts that several modules draw.

Text from data and models is only in the data and in the domains of scales, where Vega takes it as
text and never as an expression.

Data are DataFrames; those of figures have the columns value, low and high (95% interval), n,
chance, versus_chance, and those that the functions name; a column may be missing. Proportions are
in [0, 1].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from lmdiag.report.charts import Plot

COLORS = [f"var(--c{number})" for number in range(1, 7)]
INK = "var(--ink)"
MUTED = "var(--muted)"
SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]
DASHED = [4, 3]
LINE = ".{1,26}([ _]|$)"
"""A line of a label, which ends after a blank or an underscore."""

LINES = f"split(trim(replace(datum.label, regexp('{LINE}', 'g'), '$&\\n')), '\\n')"
"""The lines of a label, as an expression of Vega."""

ONE_ROW = alt.Data(values=[{}])  # type: ignore[no-untyped-call]
"""The data of a mark at a fixed place."""

_FORMS = dict.fromkeys(("n", "at", "shuffles"), ",") | dict.fromkeys(("p", "p_adjusted"), ".3f")
_FORMS |= dict.fromkeys(("first", "second"), ".1%")  # of differences, which have a sign
_TITLES = {"low": "from", "high": "to", "versus_chance": "against chance", "p_adjusted": "p adj."}


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


def has(data: pd.DataFrame, column: str) -> bool:
    """Returns whether any row has a value in a column."""
    return column in data and bool(data[column].notna().any())


def distinct(data: pd.DataFrame, column: str) -> list[Any]:
    """Returns the values of a column, each once, in the order of the rows."""
    return list(data[column].dropna().unique())


def numeric(
    channel: str, column: str, *, percent: bool = True, title: str | None = None, **scale: Any
) -> Any:
    """Returns the channel x or y of a column of numbers.

    Proportions (`percent`) are shown from 0 to 1, unless options of the scale say otherwise.
    """
    scale = scale or ({"domain": [0, 1], "nice": False} if percent else {"zero": False})
    made = {"x": alt.X, "y": alt.Y}[channel](f"{column}:Q", title=title, scale=alt.Scale(**scale))
    return made.axis(format="%") if percent else made


def labels(data: pd.DataFrame, column: str, *, room: int = 0, **axis: Any) -> Any:
    """Returns the channel y of a column of labels: in lines, or cut to pixels of `room`."""
    lines = {"minExtent": room, "maxExtent": room, "labelLimit": room - 8}
    shown = alt.Axis(**(lines if room else {"labelExpr": LINES}) | axis)
    return alt.Y(f"{column}:N", sort=distinct(data, column), title=None, axis=shown)


def series(
    column: str, names: Sequence[str], title: str | None = None, **looks: Sequence[Any]
) -> dict[str, Any]:
    """Returns channels on which the values of a column differ, with a legend for several values.

    `looks` are lists of colours, shapes and the like by channel, which Vega repeats.
    """
    columns = max(1, 330 // (24 + 6 * max(map(len, names))))  # a letter has about 6 pixels
    legend = alt.Legend(title=title, columns=columns) if len(names) > 1 else None
    return {
        channel: getattr(alt, channel.title())(
            f"{column}:N", sort=None, legend=legend, scale=alt.Scale(domain=names, range=[*values])
        )
        for channel, values in looks.items()
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


def points(
    data: pd.DataFrame,
    on: str,
    channels: dict[str, Any],
    columns: str,
    form: str = ".1%",
    across: Mapping[str, Any] | None = None,
    **looks: Any,
) -> list[Any]:
    """Returns the layers of figures: points with tooltips, and what the data have beside them.

    These are intervals from `low` to `high`, the grey line of the human baseline and the dashed one
    of chance.

    Args:
        data: a row per figure.
        on: the channel of the values, x or y.
        channels: of points and intervals, which have no shape; `looks` are of the points alone.
        columns, form: see `tooltip`.
        across: where the two lines begin and end, which otherwise cross the chart.
    """
    lines: dict[str, dict[str, Any]] = {
        "human": {"color": MUTED, "strokeWidth": 2, "opacity": 0.7},
        "chance": {"color": INK, "strokeWidth": 1, "strokeDash": DASHED},
    }
    layers = [
        alt.Chart().mark_rule(**line).encode(**across or {}, **{on: f"mean({column}):Q"})
        for column, line in lines.items()
        if has(data, column)
    ]
    if has(data, "low"):
        place = {name: channel for name, channel in channels.items() if name != "shape"}
        rules = alt.Chart().mark_rule(strokeWidth=1.5, opacity=0.6)
        layers.append(rules.encode(**place | {on: "low:Q", f"{on}2": "high:Q"}))
    dots = alt.Chart().mark_point(filled=True, size=48, opacity=1)
    return [*layers, dots.encode(**channels, **looks, tooltip=tooltip(data, columns, form))]


def meanings(data: pd.DataFrame) -> str:
    """Returns the part of a caption that says what the marks of figures mean."""
    texts = {
        "low": "Lines are 95% intervals over items",
        "sd": "thick lines ± one standard deviation over shuffles",
        "published": "◇ is the published figure",
        "chance": "the dashed line is chance",
        "human": "the grey line is the human baseline",
        "shuffles": "the larger a mark, the more shuffles had this value",
    }
    text = ", ".join(text for column, text in texts.items() if has(data, column))
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def dot_plot(
    kind: str,
    name: str,
    title: str,
    data: pd.DataFrame,
    *,
    percent: bool = True,
    colors: Sequence[str] = COLORS,
) -> list[Plot]:
    """Returns figures as dots with 95% intervals, a line of the chart per label and series.

    The caption says what the marks mean; without rows there is no chart.

    Args:
        kind, name, title: of the chart; the caption begins with its title.
        data: columns of figures; label, series, sd, published, human, shuffles.
        percent: whether the figures are proportions.
        colors: of the series.
    """
    if data.empty:
        return []
    names = distinct(data, "series")
    y = labels(data, "label").scale(type="band", paddingInner=0.2)
    place = {"x": numeric("x", "value", percent=percent), "y": y}
    place |= {"yOffset": alt.YOffset("series:N", sort=names)}
    looks = series("series", names, color=colors, shape=SHAPES)
    layers = []
    if has(data, "sd"):
        bars = alt.Chart().mark_errorbar(thickness=6, opacity=0.3, clip=True)
        layers.append(bars.encode(**place, color=looks["color"], xError="sd:Q"))
    if has(data, "published"):
        diamond = alt.Chart().mark_point(shape="diamond", size=70, color=INK, strokeWidth=1.3)
        layers.append(diamond.encode(**place | {"x": alt.X("published:Q")}))
    sizes = {}
    if has(data, "shuffles"):
        sizes["size"] = alt.Size("shuffles:Q", legend=None).scale(rangeMin=30, rangeMax=150)
    layers += points(
        data, "x", place | looks,
        "label, series, n, shuffles, versus_chance, value, low, high, sd, chance, human, published",
        ".1%" if percent else ".3~f",
        {"y": y.bandPosition(0), "y2": alt.Y2("label:N", bandPosition=1)}, **sizes,
    )  # fmt: skip
    lines = max(len(re.findall(LINE, label)) for label in data["label"])
    height = max(16 * len(names) + 5, 13 * lines + 8) * data["label"].nunique()
    return [Plot(kind, name, f"{title}.{meanings(data)}", layered(data, *layers, height=height))]


def difference_chart(data: pd.DataFrame, reach: float, colors: Sequence[str]) -> Any:
    """Returns differences between two runs with intervals.

    A difference has the colour of the model with the larger figure; 0 has none.

    Args:
        data: label, difference, low, high, first, second, p_adjusted, n.
        reach: the end of the scale in both directions.
        colors: of the first and the second run.
    """
    color = alt.when("datum.difference > 0").then(alt.value(colors[0]))
    color = color.when("datum.difference < 0").then(alt.value(colors[1]))
    channels = {
        "x": numeric("x", "difference", domain=[-reach, reach]).axis(format="+%"),
        "y": labels(data, "label", room=230),
        "color": color.otherwise(alt.value(MUTED)),
    }
    columns = "label, n, difference, low, high, first, second, p_adjusted"
    zero = alt.Chart(ONE_ROW).mark_rule(color=MUTED).encode(x=alt.XDatum(0))
    layers = points(data, "x", channels, columns, "+.1%")
    return layered(data, zero, *layers, height=18 * data["label"].nunique())


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

    def where(column: str, yes: Any, no: Any) -> Any:
        return alt.when(f"datum.{column}").then(alt.value(yes)).otherwise(alt.value(no))

    known = data.reindex(columns=["value", "low", "high", "chance"])
    ends = [min([known.min().min(), *reach]), max([known.max().max(), *reach])]
    y = numeric("y", "value", domain=ends, nice=True, zero=False)
    y = y.axis(format="%" if percent else ".3~g", minExtent=150, maxExtent=150)
    x = alt.X("place:O", axis=None)
    *lines, dots = points(
        data, "y", {"x": x, "y": y, "color": alt.value(color)},
        "protocol, n, versus_chance, value, low, high, chance, p, p_adjusted",
        ".1%" if percent else ".3~g",
        fill=where("solid", color, "transparent"), size=where("default", 150, 44),
    )  # fmt: skip
    curve = alt.layer(*lines, dots.mark_point(strokeWidth=1.3, opacity=1), height=150)
    matrix = alt.Chart(inline(choices), height=alt.Step(15)).mark_circle(size=34, opacity=1)
    rows = labels(choices, "choice", room=150, grid=True, labelPadding=2)
    shown = tooltip(choices, "choice")
    colors = where("strongest", color, MUTED)
    both = alt.vconcat(curve, matrix.encode(x=x, y=rows, color=colors, tooltip=shown), spacing=8)
    both = both.resolve_scale(x="shared").properties(usermeta={"beside": 162})
    return both.properties(data=inline(data))
