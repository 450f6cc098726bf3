"""What all charts are drawn with: `dot_plot`, `line_plot`, and the parts of both.

A chart is a tidy DataFrame and a few declarations. Columns have fixed meanings, and one that is
missing or has no values is not drawn:

| column | drawn as |
| --- | --- |
| `value`, `low`, `high` | a point with its 95% interval |
| `label` | a line of a dot plot |
| `series` | colour and shape, with a legend for several; word frequencies (`NO_CONTEXT`) are grey |
| `panel` | panels beside each other, for several |
| `chance`, `human`, `zero` | a dashed, a thick grey and a thin grey line across |
| `published`, `sd`, `shuffles` | a diamond, a thick line of ± one, the size of the point |
| `item` | of a line plot: a thin line of the values of an item |

Text from data and models is only in the data and in the domains of scales, where Vega takes it as
text and never as an expression. Proportions are in [0, 1]. `form` says how values are written: "%"
for proportions, "+%" for differences between proportions, whose axis has points, "" for any other
number.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from lmdiag.report.charts import escaped
from lmdiag.report.charts.vega import Spec, choice, field, mark, where
from lmdiag.results.model_labels import NO_CONTEXT

COLORS = [f"var(--c{number})" for number in range(1, 7)]
INK = "var(--ink)"
MUTED = "var(--muted)"
OTHERS = -1
"""Number of series that are grey."""
SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]
DASHED = [4, 3]
_DASHES = [[1, 0], DASHED, [1, 2]]
"""Of the lines of series that have one colour."""

_END_GAP = 0.058
"""Distance of two names at the ends of lines, as a share of the height of a chart."""
_LABEL = 26
_END_LABEL = 32
_HEADER = 17
_TITLE = 24
"""Characters in a line of a label, of a name at the end of a line, of the heading of a panel, and
of the title of its axis."""

OF_ANALYSIS = {"mean": "value", "estimate": "value", "ci_low": "low", "ci_high": "high"}
"""Column of an analysis of conditions -> of a chart."""

ONE_ROW: Spec = {"values": [{}]}
"""The data of a mark at a fixed place."""

_VALUES = ("value", "low", "high", "chance", "human", "zero", "published")
"""Columns that share the scale of the values."""

_ACROSS: dict[str, dict[str, Any]] = {
    "human": {"color": MUTED, "strokeWidth": 2, "opacity": 0.7},
    "chance": {"color": INK, "strokeWidth": 1, "strokeDash": DASHED},
    "zero": {"color": MUTED, "strokeWidth": 1},
}
"""Column -> the line across a chart."""

_DIAMOND = {"shape": "diamond", "size": 70, "color": INK, "strokeWidth": 1.3}
"""The mark of a published figure."""

_TOOLTIP = (
    *("label", "panel", "series", "level", "at", "cut-off", "surprisal", "row", "word", "protocol"),
    *("n", "n_tied", "shuffles", "versus_chance", "value", "low", "high", "sd", "chance", "human"),
    *("published", "first", "second", "p", "p_adjusted"),
)
"""Columns that tooltips of figures show, in their order."""

_POINTS = "abs(datum.value) < 1e-9 ? '0' : format(100 * datum.value, '+.3~g')"
"""The label of a difference in percentage points, in Vega's expressions."""

_POINTS_TOLD = (
    "!isValid(datum.{0}) ? null : abs(datum.{0}) < 5e-4 ? '0.0' : format(100 * datum.{0}, '+.1f')"
)
"""A difference in percentage points in a tooltip."""

_FORMS = dict.fromkeys(("n", "at", "shuffles", "contrasts"), ",")
_FORMS |= dict.fromkeys(("p", "p_adjusted"), ".3f") | dict.fromkeys(("first", "second"), ".1%")
_TITLES = {
    "n_tied": "tied",
    "low": "from",
    "high": "to",
    "versus_chance": "against chance",
    "p_adjusted": "p adj.",
}


def inline(data: pd.DataFrame) -> Spec:
    """Returns the rows for a chart, escaped and without undefined values: JSON has no NaN."""
    rows = data.astype(object).to_dict("records")
    records = [
        {key: escaped(value) for key, value in row.items() if not pd.isna(value)} for row in rows
    ]
    return {"values": records}


def layered(data: pd.DataFrame, *layers: Spec, height: float) -> Spec:
    """Returns layers over the same rows as a chart."""
    return {"data": inline(data), "layer": [*layers], "width": 360, "height": height}


def has(data: pd.DataFrame, column: str) -> bool:
    """Returns whether any row has a value in a column; an empty text does not count."""
    return column in data and any(not pd.isna(x) and x != "" for x in data[column].tolist())


def distinct(data: pd.DataFrame, column: str) -> list[Any]:
    """Returns the values of a column, each once, in the order of the rows."""
    values: list[Any] = data[column].dropna().unique().tolist()
    return values


def _line_pattern(n: int) -> str:
    """Returns a pattern for a line of a label of up to n characters.

    A line ends after a part of a name, and within brackets only where nothing before them fits.
    """
    after = r"(?![^\[(]*[\])])"
    return rf".{{1,{n - 1}}}([ _/-]{after}|$)|.{{1,{n - 1}}}[ _/-]|.{{{n}}}"


def _lines_expression(n: int) -> str:
    """Returns the lines of a label as an expression in the language of Vega."""
    line = _line_pattern(n).replace("\\", "\\\\")  # of a text of Vega
    return f"split(trim(replace(datum.label, regexp('{line}', 'g'), '$&\\n')), '\\n')"


def ends(values: pd.Series[float]) -> list[float]:
    """Returns the ends of a scale, which has room on both sides of a single value."""
    low, high = float(values.min()), float(values.max())
    room = (abs(low) / 10 or 0.5) if low == high else 0.0
    return [low - room, high + room]


def _with_room(data: pd.DataFrame, own: str = "") -> pd.DataFrame:
    """Returns the rows with the ends of a scale, `from` and `to`, where all its values are equal.

    Such a scale would have no length.

    Args:
        own: "y" if each panel has a scale of its own.
    """
    values = data.reindex(columns=[*_VALUES]).astype(float)
    parts = []
    for _, rows in values.groupby(data["panel"] if own == "y" else [""] * len(data), sort=False):
        panel_values = rows.stack()
        if panel_values.nunique() == 1:
            low, high = ends(panel_values)
            parts.append(pd.DataFrame({"from": low, "to": high}, rows.index))
    return data.join(pd.concat(parts)) if parts else data


# ---- channels ------------------------------------------------------------------------------------


def numeric(
    column: str = "value",
    *,
    form: str = "",
    title: str | list[str] | None = None,
    ticks: int | None = None,
    **scale: Any,
) -> Spec:
    """Returns the channel x or y of numbers; proportions are shown from 0 to 1 by default.

    An axis has about so many `ticks`, by default as the theme says.
    """
    axis: Spec = {"format": form} if form else {}
    scale = scale or ({"domain": [0, 1], "nice": False} if form == "%" else {"zero": False})
    if form == "+%":
        title = title or "difference, points"
        axis = {"labelExpr": _POINTS}
    if ticks:
        axis["tickCount"] = ticks
    options = {"axis": axis} if axis else {}
    return field(column, "numbers", title=title, scale=scale, **options)


def labels(data: pd.DataFrame, column: str, **axis: Any) -> Spec:
    """Returns the channel y of a column of labels, which have several lines where they are long."""
    axis = {"labelExpr": _lines_expression(_LABEL), **axis}
    return field(column, "names", sort=distinct(data, column), title=None, axis=axis)


def layer_channel(column: str, layers: Sequence[int]) -> Spec:
    """Returns the channel of the numbers of layers: up to nine whole numbers and the last layer."""
    first, last = min(layers), max(layers)
    step = next(n for n in (1, 2, 5, 10, 20, 50, last - first) if last - first <= 8 * n)
    ticks = [n for n in range(first, last + 1) if n % step == 0 and last - n > step / 2] + [last]
    axis = {"grid": False, "values": ticks, "format": "d"}
    scale = {"zero": False, "nice": False, "padding": 8}
    return field(column, "numbers", title="layer", scale=scale, axis=axis)


_PLOT_WIDTH, _LETTER_WIDTH, _SYMBOL_WIDTH = 330, 6, 24
"""Pixels of a plot, of a letter, and of the symbol before a label of a legend."""


def series(
    column: str,
    names: Sequence[str],
    title: str | None = None,
    *,
    has_legend: bool = True,
    n_letters_beside: int = 0,
    **looks: Sequence[Any],
) -> Spec:
    """Returns channels on which the values of a column differ, with a legend for several values.

    `looks` are lists of colours, shapes and the like by channel, parallel to the names. The legend
    stands above the plot; the labels of an axis, of a number of letters, take their width from it.
    """
    longest = max(map(len, names), default=0)
    room = _PLOT_WIDTH - _LETTER_WIDTH * n_letters_beside
    columns = max(1, room // (_SYMBOL_WIDTH + _LETTER_WIDTH * longest))
    legend = {"title": title, "columns": columns} if len(names) > 1 and has_legend else None
    return {
        channel: field(
            column, "names", sort=None, legend=legend,
            scale={"domain": [*names], "range": [*values]},
        )
        for channel, values in looks.items()
    }  # fmt: skip


def _series_arguments(
    data: pd.DataFrame, looks: Mapping[str, int], colors: Sequence[str]
) -> dict[str, Any]:
    """Returns the arguments of `series`: names with their colours and marks.

    Args:
        looks: name of a series -> number of its colour and mark; {} for the order of the rows.
    """
    numbers = looks or {name: i for i, name in enumerate(distinct(data, "series"))}
    shades = [
        MUTED if i == OTHERS or name.startswith(NO_CONTEXT) else colors[i % len(colors)]
        for name, i in numbers.items()
    ]
    shapes = [SHAPES[i % len(SHAPES)] for i in numbers.values()]
    return {"names": [*numbers], "color": shades, "shape": shapes}


def tooltip(
    data: pd.DataFrame, columns: Sequence[str] = _TOOLTIP, form: str = "", **titles: str
) -> list[Spec]:
    """Returns a tooltip line for each of `columns` that has values.

    Args:
        data: the rows of the chart.
        columns: their names, in the order of lines.
        form: of the values of figures: "+%" of differences in points, "%" of shares, else "".
        titles: name of a column -> what the line calls it.
    """
    tooltips = []
    for name in (name for name in columns if has(data, name)):
        is_number = name in _FORMS or data[name].dtype.kind == "f"
        is_large = data[name].dtype.kind == "f" and data[name].abs().max() >= 1e4
        usual = form.replace("%", ".1%") or (",.1~f" if is_large else ".4~g")
        title = (_TITLES | titles).get(name, name)
        if form == "+%" and name in ("value", "low", "high"):
            title = "difference, points" if name == "value" else title
            line = field(_told(name), "names", title=title)
        elif is_number:
            line = field(name, "numbers", title=title, format=_FORMS.get(name, usual))
        else:
            line = field(name, "names", title=title)
        tooltips.append(line)
    return tooltips


def _told(column: str) -> str:
    """The field of what a tooltip says of a column."""
    return f"{column}_told"


# ---- plots ---------------------------------------------------------------------------------------


def points(
    data: pd.DataFrame,
    on: str,
    channels: Spec,
    form: str,
    across: Spec | None = None,
    **looks: Spec,
) -> list[Spec]:
    """Returns the layers of figures: lines across, intervals, and points with tooltips.

    Args:
        data: a row per figure.
        on: the channel of the values, x or y.
        channels: of points and intervals, which have no shape; `looks` are of the points alone.
        form: of the values in tooltips.
        across: where lines across begin and end, by default at the ends of the chart.
    """
    layers = []
    for column, line in _ACROSS.items():
        if has(data, column):
            height = field(column, "numbers", aggregate="mean")
            layers.append(mark("rule", {**(across or {}), on: height}, **line))
    if has(data, "from"):
        layers.append(mark("rule", _span(on, "from", "to"), opacity=0, tooltip=None))
    if has(data, "low"):
        place = {name: channel for name, channel in channels.items() if name != "shape"}
        interval = place | _span(on, "low", "high")
        layers.append(mark("rule", interval, strokeWidth=1.5, opacity=0.6))
    encoding = channels | looks | {"tooltip": tooltip(data, form=form)}
    dots = mark("point", encoding, filled=True, size=48, opacity=1)
    if form == "+%":
        told = {name: _POINTS_TOLD.format(name) for name in ("value", "low", "high")}
        dots["transform"] = [{"calculate": text, "as": _told(x)} for x, text in told.items()]
    return [*layers, dots]


def _span(on: str, low: str, high: str) -> Spec:
    """The channels of a mark from the value of one column to that of another."""
    return {on: field(low, "numbers"), f"{on}2": {"field": high}}


def dot_plot(
    data: pd.DataFrame,
    *,
    form: str = "%",
    title: str | None = None,
    colors: Sequence[str] = COLORS,
    looks: Mapping[str, int] = {},
    **scale: Any,
) -> Spec:
    """Returns figures as dots from left to right, those of a label below each other.

    Args:
        data, form: see the module.
        title: of the axis.
        colors: that series have.
        looks: name of a series -> number of its colour and mark, `OTHERS` for grey; by default in
            the order of the rows. The legend has all of them.
        scale: options of the scale of values.
    """
    data = data if "domain" in scale or form == "%" else _with_room(data)
    names = distinct(data, "series")
    has_legend = not data["series"].equals(data["label"])
    n_letters_beside = min(_LABEL, max(map(len, data["label"]), default=0))
    channels = series(
        "series", has_legend=has_legend, n_letters_beside=n_letters_beside,
        **_series_arguments(data, looks, colors),
    )  # fmt: skip
    y = labels(data, "label") | {"scale": {"type": "band", "paddingInner": 0.2}}
    # beside long labels there is little room, and the numbers of the axis would touch
    ticks = 3 if n_letters_beside > _LABEL * 3 // 4 else None
    place = {"x": numeric(form=form, title=title, ticks=ticks, **scale), "y": y}
    n_beside = 1
    if data.duplicated("label").any():
        n_beside = len(names)
        place["yOffset"] = field("series", "names", sort=names)
    layers = []
    if has(data, "sd"):
        bars = place | {"color": channels["color"], "xError": {"field": "sd"}}
        layers.append(mark("errorbar", bars, thickness=6, opacity=0.3, clip=True))
    if has(data, "published"):
        published = place | {"x": field("published", "numbers")}
        layers.append(mark("point", published, **_DIAMOND))
    sizes = {}
    if has(data, "shuffles"):
        scale_of_sizes = {"rangeMin": 30, "rangeMax": 150}
        sizes["size"] = field("shuffles", "numbers", legend=None, scale=scale_of_sizes)
    across = {"y": y | {"bandPosition": 0}, "y2": {"field": "label", "bandPosition": 1}}
    layers += points(data, "x", place | channels, form, across, **sizes)
    n_lines = max(len(re.findall(_line_pattern(_LABEL), label)) for label in data["label"])
    height = max(16 * n_beside + 5, 13 * n_lines + 8) * data["label"].nunique()
    return layered(data, *layers, height=height)


def line_plot(
    data: pd.DataFrame,
    x: Spec,
    *layers: Spec,
    form: str = "",
    title: str | None = None,
    legend: str | None = None,
    joined: Collection[str] | None = None,
    colors: Sequence[str] = COLORS,
    looks: Mapping[str, int] = {},
    is_small: bool = False,
    is_beside: bool = False,
    heights: tuple[float, float] = (240, 110),
    columns: int = 2,
    own: str = "",
    has_legend: bool = True,
    **scale: Any,
) -> Spec:
    """Returns figures as dots over x, which lines join, in panels where there are several.

    Args:
        data, form: see the module.
        x: the channel.
        layers: what is drawn above the figures.
        title, legend: titles of the values and of the series.
        joined: series with lines; by default all.
        colors, looks, scale: see `dot_plot`; lines of one colour are dashed but for the first.
        is_small: whether there are lines alone.
        is_beside: whether the dots of several series at one x are beside each other.
        heights: of a chart, and of each of several panels.
        columns: of panels.
        own: the channel, x or y, of which each panel has a scale of its own; "" for none.
        has_legend: whether several series have a legend.
    """
    data = data if "domain" in scale or form == "%" else _with_room(data, own)
    are_panels = "panel" in data and data["panel"].nunique() > 1
    names = distinct(data, "series")
    series_arguments = _series_arguments(data, looks, colors)
    channels = series("series", title=legend or None, has_legend=has_legend, **series_arguments)
    lines = textwrap.wrap(title, _TITLE) if title and are_panels else title
    y = numeric(form=form, title=lines, **scale)
    place = {"x": x, "y": y, "color": channels["color"]}
    if is_beside and len(names) > 1:
        place["xOffset"] = field("series", "names", sort=names)
    if len({*colors[: len(names)]}) < len(names) <= len(colors):  # series of one colour
        place["strokeDash"] = series(
            "series",
            names,
            legend or None,  # as that of the colours, with which Vega merges it
            has_legend=has_legend,
            strokeDash=[
                _DASHES[colors[:i].count(colors[i]) % len(_DASHES)] for i in range(len(names))
            ],
        )["strokeDash"]
    with_line = [*(names if joined is None else joined)]
    marks = []
    if with_line:
        line = mark("line", place, strokeWidth=1.5)
        marks.append(where(line, {"field": "series", "oneOf": with_line}))
    if not is_small:
        marks += points(data, "y", place | channels, form)
        if {"domainMin", "domainMax"} & {*scale}:
            marks[-2]["mark"]["clip"] = True  # an interval may reach further
    if has(data, "item"):
        marks = [where(layer, "!isValid(datum.item)") for layer in marks]
        of_item = place | {"detail": field("item", "names")}
        thin = mark("line", of_item, strokeWidth=1, opacity=0.18)
        marks.insert(0, where(thin, "isValid(datum.item)"))
    chart = layered(data, *marks, *layers, height=heights[are_panels])
    if not are_panels:
        return chart
    header = {"labelExpr": _lines_expression(_HEADER * 2 // min(columns, 2))}
    beside = 45 * (columns if own == "y" else 1) + 14 * columns  # labels of axes, and gaps
    panels = {
        "data": chart.pop("data"),
        "facet": field("panel", "names", title=None, sort=distinct(data, "panel"), header=header),
        "spec": chart,
        "columns": columns,
        "spacing": 14,
        "usermeta": {"beside": beside},
    }
    return panels | {"resolve": {"scale": {own: "independent"}}} if own else panels


def fitted_line(data: pd.DataFrame, x: Spec) -> list[Spec]:
    """Returns the layers of a line through `value` and of its band from `low` to `high`."""
    band = {"x": x} | _span("y", "low", "high")
    line = {"x": x, "y": field("value", "numbers")}
    rows = {"data": inline(data)}
    return [
        rows | mark("area", band, color=INK, opacity=0.12, tooltip=None),
        rows | mark("line", line, color=INK, strokeWidth=1.5, tooltip=None),
    ]


def curves(data: pd.DataFrame, x: Spec, *, at: str, form: str = "", **options: Any) -> Spec:
    """Returns a line per series over x with its name at its right end, without a legend.

    Args:
        data, form, options: see `line_plot`.
        x: the channel of the column `at`.
    """
    ends = data.dropna(subset="value").sort_values(at).drop_duplicates("series", keep="last")
    values = data.reindex(columns=[*_VALUES]).astype(float).stack()
    low, high = (0.0, 1.0) if form == "%" else (float(values.min()), float(values.max()))
    heights = _moved_apart(ends["value"], low, high)
    ends = ends.assign(height=heights, name=ends["series"].map(_shortened))
    numbers = _series_arguments(data, {}, options.get("colors", COLORS))
    color = series("series", has_legend=False, names=numbers["names"], color=numbers["color"])
    encoding = {"x": x, "y": field("height", "numbers"), "text": field("name", "names"), **color}
    names = {
        "data": inline(ends[[at, "height", "name", "series"]]),
        **mark("text", encoding, dx=9, align="left"),
    }
    return line_plot(data, x, names, form=form, has_legend=False, **options)


def _shortened(name: str) -> str:
    """Returns the name at the end of a line, cut off where it is too long."""
    return name if len(name) <= _END_LABEL else f"{name[: _END_LABEL - 1]}…"


def _moved_apart(values: pd.Series[float], low: float, high: float) -> pd.Series[float]:
    """Returns heights for names at the ends of lines, so that they do not cover each other.

    They are the values, moved apart by a gap, and within `low` and `high` while there is room.
    """
    ordered = values.sort_values()
    gap = _END_GAP * (high - low)
    heights = ordered.to_list()
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], high)
        high = heights[i] - gap
    return pd.Series(heights, ordered.index)


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


def curve_chart(
    data: pd.DataFrame, choices: pd.DataFrame, color: str, form: str, reach: Sequence[float] = ()
) -> Spec:
    """Returns figures in ascending order, and below them the choices of each.

    Args:
        data: columns of figures; place (from 1), p, p_adjusted, protocol, and whether the point is
            `solid` and the `default`.
        choices: place, choice, and whether its knob is the `strongest`; a row per point and knob.
        color, form: of the points, e.g. "var(--c1)", and see the module.
        reach: values that the scale has to show, too.
    """

    values = data.reindex(columns=["value", "low", "high", "chance"])
    ends = [min([values.min().min(), *reach]), max([values.max().max(), *reach])]
    y = numeric(domain=ends, nice=True, zero=False)
    y["axis"] = {"format": form or ".3~g", "minExtent": 150, "maxExtent": 150}
    x = field("place", "ordered", axis=None)
    place = {"x": x, "y": y, "color": {"value": color}}
    fill = choice("datum.solid", color, "transparent")
    size = choice("datum.default", 150, 44)
    *lines, dots = points(data, "y", place, form, fill=fill, size=size)
    dots["mark"] = {"type": "point", "strokeWidth": 1.3, "opacity": 1}
    room = {"minExtent": 150, "maxExtent": 150, "labelLimit": 142, "labelExpr": "datum.label"}
    of_choices = {
        "x": x,
        "y": labels(choices, "choice", grid=True, labelPadding=2, **room),
        "color": choice("datum.strongest", color, MUTED),
        "tooltip": tooltip(choices, ["choice"]),
    }
    matrix = {"data": inline(choices), "height": {"step": 15}}
    matrix |= mark("circle", of_choices, size=34, opacity=1)
    return {
        "data": inline(data),
        "vconcat": [{"layer": [*lines, dots], "height": 150}, matrix],
        "spacing": 8,
        "resolve": {"scale": {"x": "shared"}},
        "usermeta": {"beside": 162},
    }
