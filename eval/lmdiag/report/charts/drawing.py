"""The Vega-Lite specifications of charts: `dot_plot`, `line_plot`, and the parts of both.

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

from lmdiag.report.charts import escape_value
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
"""Patterns of lines that tell series of one colour apart: lengths of dash and gap in pixels."""

_END_GAP = 0.058
"""Distance of two names at the ends of lines, as a share of the height of a chart."""
_LABEL_LENGTH = 26
"""Characters in a line of a label."""
_END_NAME_LENGTH = 32
"""Characters of a name at the end of a line."""
_HEADER_LENGTH = 17
"""Characters in a line of the heading of a panel, if two panels are side by side."""
_TITLE_LENGTH = 24
"""Characters in a line of the title of a panel's axis."""

ANALYSIS_TO_CHART = {"mean": "value", "estimate": "value", "ci_low": "low", "ci_high": "high"}
"""Column of an analysis of conditions -> the column of a chart."""

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

_POINTS_IN_TOOLTIP = (
    "!isValid(datum.{0}) ? null : abs(datum.{0}) < 5e-4 ? '0.0' : format(100 * datum.{0}, '+.1f')"
)
"""A difference in percentage points in a tooltip, in Vega's expressions; {0} is its column."""

_TOOLTIP_FORMATS = {
    **dict.fromkeys(("n", "at", "shuffles", "contrasts"), ","),
    **dict.fromkeys(("p", "p_adjusted"), ".3f"),
    **dict.fromkeys(("first", "second"), ".1%"),
}
"""Column -> how a tooltip writes its numbers; others are written as the figures of the chart."""

_TOOLTIP_TITLES = {
    "n_tied": "tied",
    "low": "from",
    "high": "to",
    "versus_chance": "against chance",
    "p_adjusted": "p adj.",
}


def inline(data: pd.DataFrame) -> Spec:
    """Returns the data of a chart, `{"values": rows}`, with its texts escaped.

    A row is a dictionary without the columns that are undefined for it, since JSON has no NaN.

    >>> inline(pd.DataFrame({"label": ["a", "b"], "value": [0.5, None]}))
    {'values': [{'label': 'a', 'value': 0.5}, {'label': 'b'}]}
    """
    records = []
    for row in data.astype(object).to_dict("records"):
        defined = {column: value for column, value in row.items() if not pd.isna(value)}
        records.append({column: escape_value(value) for column, value in defined.items()})
    return {"values": records}


def layered(data: pd.DataFrame, *layers: Spec, height: float) -> Spec:
    """Returns a chart of several layers over the same rows; its height is in pixels."""
    return {"data": inline(data), "layer": [*layers], "width": 360, "height": height}


def has_values(data: pd.DataFrame, column: str) -> bool:
    """Returns whether any row has a value in a column; NaN and empty texts do not count."""
    if column not in data:
        return False
    return any(not pd.isna(value) and value != "" for value in data[column].tolist())


def distinct(data: pd.DataFrame, column: str) -> list[Any]:
    """Returns the values of a column, each once, in the order of the rows."""
    values: list[Any] = data[column].dropna().unique().tolist()
    return values


def _line_pattern(n: int) -> str:
    """Returns a regular expression that matches a line of up to n characters of a label.

    A line ends after a part of a name (a blank, `_`, `/` or `-`), and within brackets only where
    nothing before them fits. A longer part is divided after n characters. For n = 12, the lines of
    "animate_subject [a - b]" are "animate_", "subject " and "[a - b]".

    The first of three alternatives that matches is taken: as many whole parts as fit, up to an end
    outside of brackets or the end of the label; else up to an end within brackets; else n
    characters.
    """
    line_start = f".{{1,{n - 1}}}"  # and the character that ends the part
    part_end = "[ _/-]"
    outside_brackets = r"(?![^\[(]*[\])])"  # the next bracket, if any, is an opening one
    end_of_label_or_part = f"({part_end}{outside_brackets}|$)"
    return f"{line_start}{end_of_label_or_part}|{line_start}{part_end}|.{{{n}}}"


def _lines_expression(n: int) -> str:
    """Returns an expression in Vega's language: the lines of up to n characters of a label."""
    line = _line_pattern(n).replace("\\", "\\\\")  # Vega takes "\\" in a text for "\"
    return f"split(trim(replace(datum.label, regexp('{line}', 'g'), '$&\\n')), '\\n')"


def ends(values: pd.Series[float]) -> list[float]:
    """Returns the ends of a scale for some values, [lowest, highest].

    A scale without length cannot be drawn: if all values are equal, there is room on both sides, a
    tenth of the value or, beside 0, one half.

    >>> ends(pd.Series([1.0, 3.0]))
    [1.0, 3.0]
    >>> ends(pd.Series([2.0, 2.0]))
    [1.8, 2.2]
    """
    low, high = float(values.min()), float(values.max())
    room = 0.0
    if low == high:
        room = abs(low) / 10 or 0.5
    return [low - room, high + room]


def _with_room(data: pd.DataFrame, *, by_panel: bool = False) -> pd.DataFrame:
    """Returns the rows with columns that give a scale some length where all its values are equal.

    For example, if all values are 2, the rows get `from` = 1.8 and `to` = 2.2, which are drawn
    invisibly. If the values of every scale differ, the rows are returned as they are.

    Args:
        data: a row per figure, with columns of values such as `value`, `low` and `high`.
        by_panel: whether each panel (column `panel`) has a scale of its own, not all one scale.
    """
    values = data.reindex(columns=[*_VALUES]).astype(float)
    scales = data["panel"] if by_panel else [""] * len(data)
    parts = []
    for _, rows in values.groupby(scales, sort=False):
        scale_values = rows.stack()
        if scale_values.nunique() == 1:
            low, high = ends(scale_values)  # these differ, also for equal values
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
    """Returns the channel x or y of a column of numbers.

    >>> numeric("value", form="%")["scale"], numeric("value")["scale"]
    ({'domain': [0, 1], 'nice': False}, {'zero': False})

    Args:
        column: whose values it shows.
        form: "%" for proportions, "+%" for differences between them, "" for other numbers.
        title: of the axis; several texts are its lines.
        ticks: about how many the axis has; None for as many as the theme says.
        scale: options of the scale; by default, proportions are shown from 0 to 1, and scales of
            other numbers need not begin at 0.
    """
    axis: Spec = {"format": form} if form else {}
    if not scale and form == "%":
        scale = {"domain": [0, 1], "nice": False}
    elif not scale:
        scale = {"zero": False}
    if form == "+%":
        title = title or "difference, points"
        axis = {"labelExpr": _POINTS}
    if ticks:
        axis["tickCount"] = ticks
    options = {"axis": axis} if axis else {}
    return field(column, "numbers", title=title, scale=scale, **options)


def labels(data: pd.DataFrame, column: str, **axis: Any) -> Spec:
    """Returns the channel y of a column of labels; long labels have several lines.

    The labels are in the order of the rows, and `axis` are further options of the axis.
    """
    axis = {"labelExpr": _lines_expression(_LABEL_LENGTH), **axis}
    return field(column, "names", sort=distinct(data, column), title=None, axis=axis)


def layer_channel(column: str, layers: Sequence[int]) -> Spec:
    """Returns the channel of a column with numbers of layers.

    The axis has up to nine ticks at round numbers, and one at the last layer. For example, the
    layers 0 to 12 have the ticks 0, 2, 4, 6, 8, 10 and 12.
    """
    first, last = min(layers), max(layers)
    span = last - first
    # the smallest step of which eight reach from the first layer to the last
    step = next(step for step in (1, 2, 5, 10, 20, 50, span) if span <= 8 * step)
    round_numbers = [n for n in range(first, last + 1) if n % step == 0]
    # a number near the last layer would cover its label
    ticks = [n for n in round_numbers if last - n > step / 2] + [last]
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
    **ranges: Sequence[Any],
) -> Spec:
    """Returns channels that tell the values of a column apart, e.g. by colour and shape.

    Args:
        names: the values, in the order of the legend above the plot.
        title: of the legend.
        has_legend: whether several values have a legend.
        n_letters_beside: letters of the labels left of the plot, which leave the legend less width.
        ranges: channel -> what it shows for each of the names, e.g. `color=["red", "blue"]`.
    """
    longest = max(map(len, names), default=0)
    room = _PLOT_WIDTH - _LETTER_WIDTH * n_letters_beside
    columns = max(1, room // (_SYMBOL_WIDTH + _LETTER_WIDTH * longest))
    legend = {"title": title, "columns": columns} if len(names) > 1 and has_legend else None
    channels = {}
    for channel, values in ranges.items():
        # sort=None: the names stay in the order of the domain
        scale = {"domain": [*names], "range": [*values]}
        channels[channel] = field(column, "names", sort=None, legend=legend, scale=scale)
    return channels


def _series_arguments(
    data: pd.DataFrame, styles: Mapping[str, int], colors: Sequence[str]
) -> dict[str, Any]:
    """Returns the arguments of `series`: `names` of the series, with their `color` and `shape`.

    For example, {"names": ["gpt2"], "color": ["var(--c1)"], "shape": ["circle"]}.

    Args:
        data: rows with a column `series`.
        styles: name of a series -> number of its colour and shape, `OTHERS` for grey; {} to number
            the series in the order of the rows.
        colors: to choose from.
    """
    numbers = styles or {name: i for i, name in enumerate(distinct(data, "series"))}
    series_colors = []
    for name, number in numbers.items():
        is_grey = number == OTHERS or name.startswith(NO_CONTEXT)
        series_colors.append(MUTED if is_grey else colors[number % len(colors)])
    shapes = [SHAPES[number % len(SHAPES)] for number in numbers.values()]
    return {"names": [*numbers], "color": series_colors, "shape": shapes}


def tooltip(
    data: pd.DataFrame, columns: Sequence[str] = _TOOLTIP, form: str = "", **titles: str
) -> list[Spec]:
    """Returns the channels of a tooltip: a line for each of `columns` that has values.

    Args:
        data: the rows of the chart.
        columns: their names, in the order of lines.
        form: of figures: "+%" for differences in points, "%" for proportions, "" for others.
        titles: name of a column -> what the line calls it.
    """
    lines = []
    for name in columns:
        if not has_values(data, name):
            continue
        is_float = data[name].dtype.kind == "f"
        is_large = is_float and data[name].abs().max() >= 1e4
        # ".1%" or "+.1%" for a form with "%"; other numbers have no form
        usual_format = form.replace("%", ".1%") or (",.1~f" if is_large else ".4~g")
        title = (_TOOLTIP_TITLES | titles).get(name, name)
        if form == "+%" and name in ("value", "low", "high"):
            # in points: `points` computes a column of texts for each of the three
            title = "difference, points" if name == "value" else title
            line = field(_points_column(name), "names", title=title)
        elif name in _TOOLTIP_FORMATS or is_float:
            number_format = _TOOLTIP_FORMATS.get(name, usual_format)
            line = field(name, "numbers", title=title, format=number_format)
        else:
            line = field(name, "names", title=title)
        lines.append(line)
    return lines


def _points_column(column: str) -> str:
    """The column that a chart computes from `column`: the difference in points, as a text.

    Tooltips show it, since Vega's formats of numbers multiply by 100 only with "%" behind.
    """
    return f"{column}_told"


# ---- plots ---------------------------------------------------------------------------------------


def points(
    data: pd.DataFrame,
    value_channel: str,
    channels: Spec,
    form: str,
    line_ends: Spec | None = None,
    **point_channels: Spec,
) -> list[Spec]:
    """Returns the layers of figures: lines across, intervals, and points with tooltips.

    Args:
        data: a row per figure; see the docstring of this module for its columns.
        value_channel: the channel of the values, "x" or "y".
        channels: of points and intervals; intervals do not use a shape.
        form: of figures in tooltips: "%" for proportions, "+%" for differences, "" for others.
        line_ends: channels that say where lines across begin and end; None for the ends of the
            chart.
        point_channels: further channels of points.
    """
    layers = []
    for column, line in _ACROSS.items():
        if has_values(data, column):
            # all rows have the same value, for which one line is drawn
            value = field(column, "numbers", aggregate="mean")
            layers.append(mark("rule", {**(line_ends or {}), value_channel: value}, **line))
    if has_values(data, "from"):  # see `_with_room`: a mark that is not seen lengthens the scale
        ends_of_scale = _span(value_channel, "from", "to")
        layers.append(mark("rule", ends_of_scale, opacity=0, tooltip=None))
    if has_values(data, "low"):
        shapeless = {name: channel for name, channel in channels.items() if name != "shape"}
        interval = shapeless | _span(value_channel, "low", "high")
        layers.append(mark("rule", interval, strokeWidth=1.5, opacity=0.6))
    encoding = channels | point_channels | {"tooltip": tooltip(data, form=form)}
    dots = mark("point", encoding, filled=True, size=48, opacity=1)
    if form == "+%":
        dots["transform"] = [
            {"calculate": _POINTS_IN_TOOLTIP.format(column), "as": _points_column(column)}
            for column in ("value", "low", "high")
        ]
    return [*layers, dots]


def _span(value_channel: str, low: str, high: str) -> Spec:
    """The channels of a mark that extends from the value in column `low` to that in column `high`.

    Args:
        value_channel: "x" or "y"; the end of the mark is in the channel "x2" or "y2". In Vega-Lite
            the latter has the type and scale of the former, so only the column is named.
    """
    return {value_channel: field(low, "numbers"), f"{value_channel}2": {"field": high}}


def dot_plot(
    data: pd.DataFrame,
    *,
    form: str = "%",
    title: str | None = None,
    colors: Sequence[str] = COLORS,
    styles: Mapping[str, int] = {},
    **scale: Any,
) -> Spec:
    """Returns a chart of figures as dots, a line per label; the values are from left to right.

    Args:
        data: a row per figure: `value`, `label`, `series`, and further columns, see the docstring
            of this module.
        form: of figures: "%" for proportions, "+%" for differences between them, "" for others.
        title: of the axis.
        colors: that series have.
        styles: name of a series -> number of its colour and shape, `OTHERS` for grey; by default in
            the order of the rows. The legend has all of them.
        scale: options of the scale of values.
    """
    # a scale with given ends has a length, and that of proportions extends from 0 to 1
    if "domain" not in scale and form != "%":
        data = _with_room(data)
    names = distinct(data, "series")
    # a legend of series that are the labels would repeat them
    has_legend = not data["series"].equals(data["label"])
    n_letters_beside = min(_LABEL_LENGTH, max(map(len, data["label"]), default=0))
    channels = series(
        "series", has_legend=has_legend, n_letters_beside=n_letters_beside,
        **_series_arguments(data, styles, colors),
    )  # fmt: skip
    y = labels(data, "label") | {"scale": {"type": "band", "paddingInner": 0.2}}
    # beside long labels there is little room, and the numbers of the axis would touch
    ticks = 3 if n_letters_beside > _LABEL_LENGTH * 3 // 4 else None
    position = {"x": numeric(form=form, title=title, ticks=ticks, **scale), "y": y}
    # where labels have several dots, each series has its own height within the band of a label
    n_dots_per_label = 1
    if data.duplicated("label").any():
        n_dots_per_label = len(names)
        position["yOffset"] = field("series", "names", sort=names)
    layers = []  # each is drawn above the earlier ones
    if has_values(data, "sd"):
        bars = position | {"color": channels["color"], "xError": {"field": "sd"}}
        layers.append(mark("errorbar", bars, thickness=6, opacity=0.3, clip=True))
    if has_values(data, "published"):
        published = position | {"x": field("published", "numbers")}
        layers.append(mark("point", published, **_DIAMOND))
    sizes = {}
    if has_values(data, "shuffles"):
        scale_of_sizes = {"rangeMin": 30, "rangeMax": 150}
        sizes["size"] = field("shuffles", "numbers", legend=None, scale=scale_of_sizes)
    # lines across, such as a chance level, are drawn over the height of each label alone
    band_of_label = {"y": y | {"bandPosition": 0}, "y2": {"field": "label", "bandPosition": 1}}
    layers += points(data, "x", position | channels, form, band_of_label, **sizes)
    # pixels: 16 for a dot, 13 for a line of a label, and a gap
    n_lines = max(len(re.findall(_line_pattern(_LABEL_LENGTH), label)) for label in data["label"])
    height_per_label = max(16 * n_dots_per_label + 5, 13 * n_lines + 8)
    return layered(data, *layers, height=height_per_label * data["label"].nunique())


def line_plot(
    data: pd.DataFrame,
    x: Spec,
    *layers: Spec,
    form: str = "",
    title: str | None = None,
    legend: str | None = None,
    joined: Collection[str] | None = None,
    colors: Sequence[str] = COLORS,
    styles: Mapping[str, int] = {},
    lines_only: bool = False,
    are_series_beside: bool = False,
    heights: tuple[float, float] = (240, 110),
    columns: int = 2,
    independent: str = "",
    has_legend: bool = True,
    **scale: Any,
) -> Spec:
    """Returns a chart of figures as dots over x, which lines join, in panels if there are several.

    Args:
        data: a row per figure: the column of x, `value`, `series`, and further columns, see the
            docstring of this module.
        x: the channel of the horizontal axis.
        layers: what is drawn above the figures.
        form, colors, styles, scale: see `dot_plot`; of series with the same colour, all but the
            first have dashed lines.
        title, legend: titles of the values and of the series.
        joined: series with lines; None for all.
        lines_only: whether there are lines without dots and intervals.
        are_series_beside: whether the dots of several series at one x are beside each other.
        heights: of a single plot, and of each of several panels, in pixels.
        columns: of panels.
        independent: the channel, "x" or "y", of which each panel has its own scale; "" for none.
        has_legend: whether several series have a legend.
    """
    # a scale with given ends has a length, and that of proportions extends from 0 to 1
    if "domain" not in scale and form != "%":
        data = _with_room(data, by_panel=independent == "y")
    are_panels = "panel" in data and data["panel"].nunique() > 1
    names = distinct(data, "series")
    series_arguments = _series_arguments(data, styles, colors)
    channels = series("series", title=legend or None, has_legend=has_legend, **series_arguments)
    title_lines = textwrap.wrap(title, _TITLE_LENGTH) if title and are_panels else title
    y = numeric(form=form, title=title_lines, **scale)
    line_channels = {"x": x, "y": y, "color": channels["color"]}
    if are_series_beside and len(names) > 1:
        line_channels["xOffset"] = field("series", "names", sort=names)
    # the list of colours may repeat one, e.g. that of a model: dashes tell its series apart; more
    # series than colours take them in turn, without dashes
    have_same_color = len({*colors[: len(names)]}) < len(names)
    if have_same_color and len(names) <= len(colors):
        # among the series of its colour, a line's number says how it is dashed
        numbers = [colors[:i].count(colors[i]) for i in range(len(names))]
        dashes = [_DASHES[number % len(_DASHES)] for number in numbers]
        # a legend with the title of that of the colours, so that Vega shows both as one
        line_channels |= series(
            "series", names, legend or None, has_legend=has_legend, strokeDash=dashes
        )
    marks = []
    series_with_line = [*(names if joined is None else joined)]
    if series_with_line:
        line = mark("line", line_channels, strokeWidth=1.5)
        marks.append(where(line, {"field": "series", "oneOf": series_with_line}))
    if not lines_only:
        marks += points(data, "y", line_channels | channels, form)
        if {"domainMin", "domainMax"} & {*scale}:
            intervals = marks[-2]  # the last two layers of `points` are intervals and points
            intervals["mark"]["clip"] = True  # intervals may reach beyond a scale that is cut
    if has_values(data, "item"):
        # rows with an item become thin lines, below the marks of all other rows
        marks = [where(layer, "!isValid(datum.item)") for layer in marks]
        item_channels = line_channels | {"detail": field("item", "names")}
        item_lines = mark("line", item_channels, strokeWidth=1, opacity=0.18)
        marks.insert(0, where(item_lines, "isValid(datum.item)"))
    plot_height, panel_height = heights
    if not are_panels:
        return layered(data, *marks, *layers, height=plot_height)
    chart = layered(data, *marks, *layers, height=panel_height)
    return _panels(chart, distinct(data, "panel"), columns, independent)


def _panels(chart: Spec, names: Sequence[str], columns: int, independent: str) -> Spec:
    """Returns a chart as one panel per value of its column `panel`, in so many columns.

    `independent` is "x" or "y" if each panel has its own scale of this channel, else "".
    """
    # headings are twice as long in one column
    header = {"labelExpr": _lines_expression(_HEADER_LENGTH * 2 // min(columns, 2))}
    n_axes = columns if independent == "y" else 1
    panels = {
        "data": chart.pop("data"),
        "facet": field("panel", "names", title=None, sort=[*names], header=header),
        "spec": chart,
        "columns": columns,
        "spacing": 14,
        # pixels of the labels of axes, and of gaps; the rest of a width is for the plots
        "usermeta": {"beside": 45 * n_axes + 14 * columns},
    }
    if independent:
        panels["resolve"] = {"scale": {independent: "independent"}}
    return panels


def fitted_line(data: pd.DataFrame, x: Spec) -> list[Spec]:
    """Returns two layers: a line through `value`, and its band from `low` to `high`.

    Args:
        data: columns `value`, `low`, `high` and that of `x`, in the order of x.
        x: the channel.
    """
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
    # the last row of each series, where its line ends
    last_rows = data.dropna(subset="value").sort_values(at).drop_duplicates("series", keep="last")
    # ends of the scale on which the names are placed: proportions have the whole scale; another one
    # extends over all that is drawn on it, so also over the ends of intervals
    values = data.reindex(columns=[*_VALUES]).astype(float).stack()
    low, high = (0.0, 1.0) if form == "%" else (float(values.min()), float(values.max()))
    names = last_rows[[at, "series"]].assign(
        height=_heights_of_names(last_rows["value"], low, high),
        name=last_rows["series"].map(_shortened),
    )
    # without styles, colours are in the order of the rows, as `line_plot` gives them to the lines
    arguments = _series_arguments(data, styles={}, colors=options.get("colors", COLORS))
    color = series("series", has_legend=False, names=arguments["names"], color=arguments["color"])
    encoding = {"x": x, "y": field("height", "numbers"), "text": field("name", "names"), **color}
    name_layer = {
        "data": inline(names[[at, "height", "name", "series"]]),
        **mark("text", encoding, dx=9, align="left"),
    }
    return line_plot(data, x, name_layer, form=form, has_legend=False, **options)


def _shortened(name: str) -> str:
    """Returns the name at the end of a line, cut off where it is too long: "a very long na…"."""
    return name if len(name) <= _END_NAME_LENGTH else f"{name[: _END_NAME_LENGTH - 1]}…"


def _heights_of_names(values: pd.Series[float], low: float, high: float) -> pd.Series[float]:
    """Returns heights for the names at the right ends of lines, so that names do not overlap.

    Where the values are far enough from each other, the heights are the values. Otherwise the names
    are moved up, from the lowest name on, and then, if names would be above the scale, down from
    the highest one. For example, on a scale from 0 to 1, the values .50 and .52 have the heights
    .50 and .558.

    Args:
        values: in which the lines end.
        low, high: ends of the scale.
    """
    ordered = values.sort_values()
    gap = _END_GAP * (high - low)
    heights = ordered.to_list()
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    highest = high
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], highest)
        highest = heights[i] - gap
    return pd.Series(heights, ordered.index)


def meanings(data: pd.DataFrame) -> str:
    """Returns the part of a caption that says what the marks of figures mean.

    It begins with a blank, e.g. " Lines are 95% intervals over items, the dashed line is chance.";
    "" if only the values are drawn.
    """
    texts = {
        "low": "Lines are 95% intervals over items",
        "sd": "thick lines ± one standard deviation over shuffles",
        "published": "◇ is the published figure",
        "chance": "the dashed line is chance",
        "human": "the grey line is the human baseline",
        "shuffles": "the larger a mark, the more shuffles had this value",
    }
    text = ", ".join(text for column, text in texts.items() if has_values(data, column))
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def curve_chart(
    data: pd.DataFrame, choices: pd.DataFrame, color: str, form: str, reach: Sequence[float] = ()
) -> Spec:
    """Returns a specification curve: figures in ascending order, and below them their choices.

    Args:
        data: a row per figure: columns of figures; place (from 1), p, p_adjusted, protocol, and
            whether the point is `solid` and the `default`.
        choices: a row per point and knob (option of how models are asked): place of the point,
            choice, and whether the knob is the `strongest`, which moves the figure most.
        color: of the points, e.g. "var(--c1)".
        form: of the figures: "%" for proportions, "+%" for differences, "" for others.
        reach: further values that the scale has to show.
    """
    values = data.reindex(columns=["value", "low", "high", "chance"])
    lowest = min([values.min().min(), *reach])
    highest = max([values.max().max(), *reach])
    y = numeric(domain=[lowest, highest], nice=True, zero=False)
    # the axes of both charts have the same width, so that points are above their choices
    axis_width = {"minExtent": 150, "maxExtent": 150}
    y["axis"] = {"format": form or ".3~g", **axis_width}
    x = field("place", "ordered", axis=None)
    channels = {"x": x, "y": y, "color": {"value": color}}
    fill = choice("datum.solid", color, "transparent")
    size = choice("datum.default", 150, 44)
    *lines, dots = points(data, "y", channels, form, fill=fill, size=size)  # dots are last
    # the dots of `points` are filled and of one size; here the channels `fill` and `size` decide
    dots["mark"] = {"type": "point", "strokeWidth": 1.3, "opacity": 1}
    choice_labels = labels(
        choices, "choice", grid=True, labelPadding=2, **axis_width, labelLimit=142,
        labelExpr="datum.label",  # on one line: each choice has a row of 15 pixels
    )  # fmt: skip
    choice_channels = {
        "x": x,
        "y": choice_labels,
        "color": choice("datum.strongest", color, MUTED),
        "tooltip": tooltip(choices, ["choice"]),
    }
    choices_chart = {
        "data": inline(choices),
        "height": {"step": 15},
        **mark("circle", choice_channels, size=34, opacity=1),
    }
    return {
        "data": inline(data),
        "vconcat": [{"layer": [*lines, dots], "height": 150}, choices_chart],
        "spacing": 8,
        "resolve": {"scale": {"x": "shared"}},
        "usermeta": {"beside": 162},  # pixels of the axis and its gap
    }
