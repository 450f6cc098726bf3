"""A function per kind of chart, from a pandas DataFrame to an altair chart.

Data of figures have the columns value, low and high (95% interval), n, chance, versus_chance,
and those that the functions name; a column may be missing. Proportions are in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lmdiag.report.charts import parts
from lmdiag.report.charts.parts import COLORS, DASHED, INK, MUTED, SHAPES, distinct, has, tooltip

OTHER_MODELS = "other models"
"""Family of the models whose marks no line joins."""

CHOICES_WIDTH = 120
"""Pixels left of the panels of a specification curve: the labels of the choices."""

_FEW_LABELS = 20
"""Lines of a chart of dots with room between them."""

_FLOOR = 1e-8
"""Smallest probability on an axis; smaller ones are drawn at its end."""

_DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 4], [10, 4]]
_DIAMOND = {"shape": "diamond", "size": 70, "color": INK, "strokeWidth": 1.3}

Ends = tuple[float, float]


# ---- figures beside labels -----------------------------------------------------------------------


def dot_chart(data: pd.DataFrame, *, percent: bool = True) -> Any:
    """Returns figures as dots with 95% intervals, a line of the chart per label and series.

    A thick line is the standard deviation over shuffles, a short dashed line the chance level, a
    grey one the human baseline, a hollow diamond the published figure.

    Args:
        data: columns of figures; label, series, sd, published, human.
        percent: whether the figures are proportions.
    """
    labels, names = distinct(data, "label"), distinct(data, "series")
    longest = max(parts.text_width(line) for label in labels for line in label.split("\n"))
    looks = {"color": COLORS, "shape": SHAPES}
    place = {"y": parts.labels(data, "label")}
    place["yOffset"] = alt.YOffset("series:N", sort=None)
    channels = place | parts.series("series", looks, names, room=parts.WIDTH - 20 - longest)
    form = ".1%" if percent else ".3~f"
    layers = parts.reference_lines(data, "x", **place)
    if has(data, "sd"):
        ends = {"color": channels["color"], "x": "sd_low:Q", "x2": "sd_high:Q"}
        layers.append(
            _within_sd("value").mark_rule(strokeWidth=6, opacity=0.3).encode(**place, **ends)
        )
    if has(data, "published"):
        diamond = parts.only("published").mark_point(**_DIAMOND)
        layers.append(diamond.encode(**place, x="published:Q"))
    numbers = "value, low, high, sd, chance, human, published"
    shown = tooltip(data, "label, series, n, versus_chance", numbers, form)
    x = parts.numeric("x", "value", percent=percent)
    layers += parts.points(data, "x", **channels, x=x, tooltip=shown)
    gap = 10 if len(labels) <= _FEW_LABELS else 4
    lines = max(label.count("\n") + 1 for label in labels)
    height = len(labels) * max(14 * len(names) + min(gap, 6), 13 * lines + gap)
    return parts.layered(data, *layers, height=height)


def _within_sd(column: str) -> Any:
    """The rows with a standard deviation, and its ends around a column."""
    low, high = f"max(0, datum.{column} - datum.sd)", f"min(1, datum.{column} + datum.sd)"
    return parts.only("sd").transform_calculate(sd_low=low, sd_high=high)


def shuffle_chart(data: pd.DataFrame, colors: Sequence[str] = COLORS) -> Any:
    """Returns the values of measures in each shuffle, with mean and standard deviation below.

    Args:
        data: label, value, shuffles of each value; label, mean, sd, `not shuffled`, published of
            each measure.
        colors: of the circles and of the figure without shuffling.
    """
    place = {"y": parts.labels(data, "label")}
    below = place | {"yOffset": alt.value(13)}
    circles = parts.only("value").mark_circle(color=colors[0], opacity=0.6)
    size = alt.Size("shuffles:Q", scale=alt.Scale(range=[8, 320]), legend=None)
    shown = tooltip(data, "label, shuffles", "value")
    tick = alt.Chart().mark_tick(color=colors[1], thickness=2, size=30, strokeDash=DASHED)
    sd = _within_sd("mean").mark_rule(color=INK, strokeWidth=5, opacity=0.3)
    diamond = parts.only("published").mark_point(**_DIAMOND)
    mean = parts.only("mean").mark_point(color=INK, filled=True, size=36, opacity=1)
    columns = tooltip(data, "label", "mean, sd, not shuffled, published")
    layers = [
        circles.encode(**place, x=parts.numeric("x", "value"), size=size, tooltip=shown),
        tick.encode(**place, x="not shuffled:Q"),
        sd.encode(**below, x="sd_low:Q", x2="sd_high:Q"),
        *([diamond.encode(**below, x="published:Q")] if has(data, "published") else []),
        mean.encode(**below, x="mean:Q", tooltip=columns),
    ]
    return parts.layered(data, *layers, height=44 * len(distinct(data, "label")))


def difference_chart(data: pd.DataFrame, reach: float, colors: Sequence[str]) -> Any:
    """Returns differences between two runs with intervals, a panel for each task and setting.

    A difference has the colour of the model with the larger figure; 0 has none.

    Args:
        data: group, label, difference, low, high, first, second, p_adjusted, n.
        reach: the end of the scale in both directions.
        colors: of the first and the second run.
    """
    sign = alt.when("datum.difference > 0").then(alt.value(colors[0]))
    color = sign.when("datum.difference < 0").then(alt.value(colors[1]))
    shown = tooltip(data, "label, n", "difference, low, high", "+.1%")
    dots = parts.points(
        data,
        "x",
        y=parts.labels(data, "label"),
        x=parts.numeric(
            "x", "difference", domain=[-reach, reach], nice=True, axis={"format": "+%"}
        ),
        color=color.otherwise(alt.value(MUTED)),
        tooltip=shown + tooltip(data, "", "first, second, p_adjusted"),
    )
    zero = alt.Chart().mark_rule(color=MUTED).encode(x=alt.XDatum(0))
    chart = parts.layered(data, zero, *dots, width=320, height=alt.Step(18))
    return parts.panels(chart, data, "group", columns=1).resolve_scale(y="independent")


# ---- figures along a scale -----------------------------------------------------------------------


def cutoff_chart(data: pd.DataFrame) -> Any:
    """Returns scores by cut-off of the distribution: of its top, then of its bottom.

    Args:
        data: columns of figures; `cut-off` (e.g. `top 0.1`), series; with `panel`, a panel for each
            of its values, without bands and points.
    """
    names, is_small = distinct(data, "series"), has(data, "panel")
    places = [place.replace(" 0.", " .") for place in data["cut-off"]]
    label = "replace(replace(datum.label, 'top ', ''), 'bottom ', '')"
    axis = alt.Axis(labelExpr=label, labelAngle=0, labelOverlap=True, grid=False)
    title = None if is_small else "probability mass kept: top | bottom of the distribution"
    x = alt.X("cut-off:O", sort=list(dict.fromkeys(places)), title=title, axis=axis)
    first = next((place for place in places if place.startswith("bottom")), places[-1])
    border = alt.Chart(parts.inline(pd.DataFrame({"cut-off": [first]}))).mark_rule(color=MUTED)
    between = border.encode(x=x.copy().bandPosition(0))
    data = data.assign(**{"cut-off": places})
    line = alt.Chart().mark_line(strokeWidth=1.5, tooltip=None)
    if is_small:
        looks = parts.series("series", {"color": COLORS, "strokeDash": _DASHES}, names)
        line = line.encode(x=x, y=parts.numeric("y", "value"), **looks)
        chart = parts.layered(data, line, between, width=140, height=80)
        return parts.panels(chart, data, "panel")
    looks = parts.series("series", {"color": COLORS, "shape": SHAPES}, names)
    curve = {"x": x, "color": looks["color"]}
    lowest = data[["value", "low"]].min().min()
    y = parts.numeric("y", "value", domain=[max(0, min(0.48, lowest - 0.02)), 1])
    band = alt.Chart().mark_area(opacity=0.1, tooltip=None)
    dots = alt.Chart().mark_point(filled=True, size=36, opacity=1)
    shown = tooltip(data, "series, cut-off, n, versus_chance", "value, low, high, chance")
    layers = [
        line.encode(**curve, y=y),
        band.encode(**curve, y="low:Q", y2="high:Q"),
        *parts.reference_lines(data, "y"),
        dots.encode(x=x, y=y, **looks, tooltip=shown),
        between,
    ]
    return parts.layered(data, *layers, height=190)


def trend_chart(data: pd.DataFrame, *, is_step: bool, percent: bool) -> Any:
    """Returns figures against the training step or the number of parameters, a panel for each.

    Args:
        data: columns of figures; at (the step or number), model, family, figure, human.
        is_step: whether `at` is the training step.
        percent: whether they are proportions; then the panels have one scale.
    """
    places = sorted(distinct(data, "at"))
    first = next((place for place in places if place > 0), 1)
    is_wide = not is_step or places[-1] > 20 * first
    scale = alt.Scale(type="log", nice=False, padding=8) if not is_step else (
        alt.Scale(type="symlog", constant=first) if is_wide else alt.Scale(zero=False)
    )  # fmt: skip
    ticks = _ticks(places, is_step) if is_wide else places[:: math.ceil(len(places) / 6)]
    labels = "replace(format(datum.value, '.3~s'), 'G', 'B')"
    axis = alt.Axis(values=ticks, labelExpr=labels, labelOverlap=True, grid=False)
    title = "training step" if is_step else "parameters"
    x = alt.X("at:Q", title=title, scale=scale, axis=axis)
    y = parts.numeric("y", "value", percent=percent)
    families = sorted(distinct(data, "family"), key=lambda name: name == OTHER_MODELS)
    is_mixed = families[-1] == OTHER_MODELS and len(families) > 1
    colors = COLORS[: len(families) - is_mixed] + [MUTED] * is_mixed
    looks = parts.series("family", {"color": colors, "shape": SHAPES}, families, room=310)
    joined = "true" if is_step else f"datum.family != '{OTHER_MODELS}'"
    line = alt.Chart().transform_filter(joined).mark_line(strokeWidth=1.5, tooltip=None)
    form = ".1%" if percent else ".3~f"
    shown = tooltip(data, "model, figure, at, n", "value, low, high, chance, human", form)
    layers = [
        *parts.reference_lines(data, "y"),
        line.encode(x=x, y=y, color=looks["color"]),
        *parts.points(data, "y", 30 if is_step else 44, x=x, y=y, **looks, tooltip=shown),
    ]
    chart = parts.layered(data, *layers, width=150, height=110)
    by_figure = parts.panels(chart, data, "figure")
    return by_figure if percent else by_figure.resolve_scale(y="independent")


def _ticks(places: Sequence[int], is_step: bool) -> list[int]:
    """Ticks of a logarithmic scale: powers of ten, or steps that are eight times the one before."""
    if is_step:
        ticks = list(places[:1])
        for place in places:
            if place > 0 and place >= 8 * ticks[-1]:
                ticks.append(place)
        return ticks
    known = [[f * 10**i for i in range(16) for f in factors] for factors in ((1,), (1, 2, 5))]
    tens, parts_of_tens = ([x for x in of if places[0] <= x <= places[-1]] for of in known)
    return tens if len(tens) > 1 else parts_of_tens


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
    known = data.reindex(columns=["value", "low", "high", "chance"]).to_numpy(float)
    low, high = np.nanmin([*reach, np.nanmin(known)]), np.nanmax([*reach, np.nanmax(known)])
    room = 0.06 * (high - low) or 0.05
    form = ".1%" if percent else ".3~g"
    margin = {"minExtent": CHOICES_WIDTH, "maxExtent": CHOICES_WIDTH}
    options: dict[str, Any] = {"domain": [low - room, high + room], "zero": False}
    axis = margin | {"format": "%" if percent else ".3~g"}
    numbers = "value, low, high, chance, p, p_adjusted"
    x = alt.X("place:O", axis=None)
    layers = parts.points(
        data,
        "y",
        x=x,
        y=parts.numeric("y", "value", axis=axis, **options),
        color=alt.value(color),
        fillOpacity=alt.when("datum.solid").then(alt.value(1)).otherwise(alt.value(0)),
        size=alt.when("datum.default").then(alt.value(150)).otherwise(alt.value(44)),
        tooltip=tooltip(data, "protocol, n, versus_chance", numbers, form),
    )
    layers[-1].mark = alt.MarkDef("point", opacity=1, strokeWidth=1.3, fill=color)
    curve = alt.layer(*parts.reference_lines(data, "y"), *layers).properties(height=150)
    limits = margin | {"labelLimit": CHOICES_WIDTH - 8, "grid": True, "labelPadding": 2}
    strongest = alt.when("datum.strongest").then(alt.value(color)).otherwise(alt.value(MUTED))
    matrix = alt.Chart(parts.inline(choices)).mark_point(filled=True, size=34, opacity=1)
    below = matrix.encode(
        x=x,
        y=parts.labels(choices, "choice", **limits),
        color=strongest,
        tooltip=tooltip(choices, "choice"),
    )
    panels = (curve.properties(width=240), below.properties(width=240, height=alt.Step(15)))
    return alt.vconcat(*panels, data=parts.inline(data), spacing=8).resolve_scale(x="shared")


# ---- items ---------------------------------------------------------------------------------------


def ends_of(values: Iterable[float], *, bits: bool) -> Ends:
    """Returns the ends of an axis: powers of ten around probabilities, tens around surprisals."""
    if bits:
        known = list(values)
        low = 10 * math.floor(min(known) / 10)
        return low, max(10 * math.ceil(max(known) / 10), low + 10)
    smallest = min((p for p in values if 0 < p < 1), default=0.1)
    return 10.0 ** math.floor(math.log10(max(smallest, _FLOOR))), 1.0


def _item_axis(channel: str, column: str, title: str, ends: Ends, bits: bool) -> Any:
    """A channel of surprisals, or of probabilities on a logarithmic scale."""
    decades = [10.0**i for i in range(round(math.log10(ends[0] or 1)), 1)]
    labels = "format(datum.value, datum.value < 0.001 ? '~e' : '~g')"
    options: dict[str, Any] = (
        {"domain": ends, "axis": {"tickCount": 6}} if bits else
        {"type": "log", "domain": [0.7 * ends[0], 1.4],
         "axis": {"values": decades, "labelExpr": labels}}
    )  # fmt: skip
    return parts.numeric(channel, column, title=title, clamp=True, **options)


def _pair_axes(ends: Ends, bits: bool) -> dict[str, Any]:
    """The axes of bad and good."""
    title = "{} sentence, bits" if bits else "p({} completion)"
    axes = (("x", "bad"), ("y", "good"))
    return {at: _item_axis(at, name, title.format(name), ends, bits) for at, name in axes}


def _line(points: Sequence[tuple[float, float]], axes: dict[str, Any], **mark: Any) -> Any:
    """A thin line through points of bad and good."""
    line = alt.Chart(parts.inline(pd.DataFrame(points, columns=["bad", "good"])))
    return line.mark_line(color=MUTED, strokeWidth=1, tooltip=None, **mark).encode(**axes)


def _item_marks(data: pd.DataFrame, *lines: Any, height: int, **channels: Any) -> Any:
    """A mark per item, which a page connects with its list of items."""
    marks = alt.Chart().mark_point(size=42, strokeWidth=1.3, opacity=1, cursor="pointer")
    items = marks.encode(**channels).properties(name="items")
    return parts.layered(data, *lines, items, height=height)


def pair_chart(
    data: pd.DataFrame,
    ends: Ends,
    *,
    bits: bool,
    threshold: float = 0.0,
    colors: Sequence[str] = COLORS,
) -> Any:
    """Returns a mark per contrast: probability or surprisal of the good against the bad row.

    On the side of the diagonal with the more probable good rows the good one is preferred; of
    probabilities, above the dashed curve by more than `threshold`.

    Args:
        data: item, context, good, bad, verdict, `other context` of sentences, and of words
            `good word`, `bad word`, `rank of good`, `rank of bad`.
        ends: of both axes.
        bits: whether good and bad are surprisals.
        threshold: of sensitivity@threshold.
        colors: of preferred good and preferred bad rows.
    """
    axes, (good, bad), (low, high) = _pair_axes(ends, bits), colors[:2], ends
    looks: dict[str, Sequence[Any]] = {
        "color": [good, good, bad],
        "fill": [good, "transparent", good if bits else "transparent"],
        "shape": ["circle", "circle", "triangle-down"],
    }
    names = [f"good by > {threshold:g}", "good", "bad"]
    lines = [_line([(low, low), (high, high)], axes)]
    if bits:
        looks = {"color": [good, bad], "shape": ["circle", "triangle-down"]}
        names = names[1:]
    else:
        steps = [low * (1.4 / low) ** (i / 50) for i in range(51)]
        curve = [(p, p + threshold) for p in steps if p + threshold <= 1]
        lines.append(_line(curve, axes, strokeDash=DASHED))
    channels = axes | parts.series("verdict", looks, names, title="prefers")
    texts = "item, context, other context, good word, bad word, rank of good, rank of bad"
    unit = "bits of {}" if bits else "p({})"
    titles = {name: unit.format(name) for name in ("good", "bad")}
    shown = tooltip(data, texts, "good, bad", ".1f" if bits else ".3g", **titles)
    return _item_marks(data, *lines, height=300, **channels, tooltip=shown)


def density_chart(
    good: Sequence[float], bad: Sequence[float], ends: Ends, *, bits: bool, color: str = COLORS[0]
) -> Any:
    """Returns what `pair_chart` shows, where only the density can be seen.

    Args:
        good, bad: of each contrast, probabilities or bits.
        ends: of both axes.
        bits: whether they are surprisals.
        color: of the cells.
    """
    edges = (np.linspace if bits else np.geomspace)(*ends, 37)
    counts, _, _ = np.histogram2d(np.clip(bad, *ends), np.clip(good, *ends), bins=[edges, edges])
    i, j = np.nonzero(counts)
    data = pd.DataFrame({
        "bad": edges[i], "bad_end": edges[i + 1], "good": edges[j], "good_end": edges[j + 1],
        "contrasts": counts[i, j].astype(int),
    })  # fmt: skip
    shades = alt.Scale(type="log", range=[0.1, 1])
    axes = _pair_axes(ends, bits)
    cells = alt.Chart().mark_rect(color=color).encode(
        **axes,
        x2="bad_end",
        y2="good_end",
        opacity=alt.Opacity("contrasts:Q", scale=shades, legend=None),
        tooltip=tooltip(data, "contrasts", "good, bad", ".2g"),
    )  # fmt: skip
    return parts.layered(data, _line([(end, end) for end in ends], axes), cells, height=300)


def cloze_chart(data: pd.DataFrame, ends: Ends, colors: Sequence[str] = COLORS) -> Any:
    """Returns the probability of each target against its human cloze probability.

    Args:
        data: item, context, `human cloze`, word, probability, rank, kind.
        ends: of the axis of the model's probabilities.
        colors: of the kinds `appropriate` and `reversed`.
    """
    looks = {
        "color": colors[:2], "fill": [colors[0], "transparent"], "shape": ["circle", "triangle-up"],
    }  # fmt: skip
    channels = parts.series("kind", looks, ["appropriate", "reversed"])
    channels["x"] = alt.X("human cloze:Q", title="human cloze probability")
    channels["y"] = _item_axis("y", "probability", "model's probability", ends, False)
    shown = tooltip(data, "item, context, word, rank", "probability, human cloze", ".3g")
    return _item_marks(data, height=230, **channels, tooltip=shown)


def means_chart(
    data: pd.DataFrame,
    x: str = "",
    legend: str = "",
    *,
    y: str,
    possible: Ends,
    same_levels: bool = True,
) -> Any:
    """Returns means with intervals by the levels of a condition, those of a series side by side.

    Args:
        data: level, series, panel, value, low, high, n of each mean; with `item`, a value of an
            item, for its thin line; without items, lines join the means. `named` is False for
            levels that a click shows.
        x, legend, y: titles of levels, series and values.
        possible: values, beyond which an interval is cut.
        same_levels: whether all panels have the same levels.
    """
    names, is_path = distinct(data, "series"), "item" not in data
    looks = parts.series("series", {"color": COLORS, "shape": SHAPES}, names, title=legend or None)
    are_panels, levels = len(distinct(data, "panel")) > 1, distinct(data, "level")
    room = (160 if are_panels else 310) // len(levels)
    is_slanted = is_path or any(parts.text_width(level) > room for level in levels)
    angle = -35 if is_slanted else 0
    axis = alt.Axis(labelAngle=angle, labelLimit=110, labelOverlap=False, grid=False)
    place: dict[str, Any] = {"x": alt.X("level:N", sort=levels, title=x or None, axis=axis)}
    if len(names) > 1:
        place["xOffset"] = alt.XOffset("series:N", sort=names)
    place["color"] = looks["color"]
    ends = {"domainMin": possible[0]} if data["low"].min() < possible[0] else {}
    ends |= {"domainMax": possible[1]} if data["high"].max() > possible[1] else {}
    value = parts.numeric("y", "value", percent=False, title=y, zero=False, **ends)
    shown = tooltip(data, "panel, level, series, n", "value, low, high", ".2f")
    shape = looks["shape"]
    layers = parts.points(data, "y", 52, **place, y=value, shape=shape, tooltip=shown)
    layers[0].mark.clip = bool(ends)
    if is_path:  # without a domain, so that the symbols of the legend are not dashed
        looks_of_lines = alt.Scale(range=_DASHES)
        dashes = alt.StrokeDash("series:N", sort=names, legend=None, scale=looks_of_lines)
        lines = alt.Chart().mark_line(strokeWidth=1.5, tooltip=None)
        lines = lines.encode(**place, y=value, strokeDash=dashes)
    else:
        layers = [layer.transform_filter("!isValid(datum.item)") for layer in layers]
        lines = parts.only("item").mark_line(strokeWidth=1, opacity=0.18, tooltip=None)
        lines = lines.encode(**place, y=value, detail="item:N")
    layers.insert(0, lines)
    is_part = "named" in data and bool(data["named"].any() and not data["named"].all())
    if is_part:
        layers = [layer.transform_filter("every_region || datum.named") for layer in layers]
    chart = parts.layered(data, *layers, height=200)
    if are_panels:
        chart = parts.panels(chart.properties(width=160, height=150), data, "panel")
        chart = chart if same_levels else chart.resolve_scale(x="independent")
    box = alt.binding_checkbox(name="all regions")
    every = alt.param(name="every_region", value=False, bind=box)
    return chart.add_params(every) if is_part else chart
