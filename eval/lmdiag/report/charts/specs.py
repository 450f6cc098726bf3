"""Specifications in Vega-Lite: the files of `cards/charts/`, filled with rows of data.

A row is a mapping from fixed field names to values as in `results.json`: proportions are in
[0, 1], and None is undefined. Text from data and models stands in rows and in the domains of
scales only, where Vega reads it as text and never as an expression. Colours are CSS variables
(`var(--c1)`) that `output` resolves where there is no style sheet.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmdiag.files import resource_path

Spec = dict[str, Any]
Datum = Mapping[str, Any]


class Plot(NamedTuple):
    """A chart with its data.

    Attributes:
        kind: see `lmdiag.report.charts.kinds.CHART_KINDS`; also `steps`, `differences`, `density`.
        name: unique among the charts of a report; the name of its file.
        caption: what it shows and how to read it.
        spec: the Vega-Lite specification.
        is_further: whether it is one of many, which a page folds.
        heading: name of its model, where charts of several models stand beside each other.
    """

    kind: str
    name: str
    caption: str
    spec: Spec
    is_further: bool = False
    heading: str = ""


_FEW_LABELS = 20
"""Lines of a chart of figures with room between them."""

_FLOOR = 1e-8
"""Smallest probability on an axis; smaller ones are drawn at its end."""


COLORS = [f"var(--c{number})" for number in range(1, 7)]
"""Of series."""

SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]

DASHED = [4, 3]
"""Of the lines that captions call dashed."""


def from_altair(chart: Any, rows: Sequence[Datum]) -> Spec:
    """Returns the specification of an altair chart with rows as its data."""
    spec: Spec = chart.to_dict(validate=False)
    for layer in spec.get("layer", ()):  # beside layers with data, those without have an empty list
        if layer.get("data") == {"values": []}:
            del layer["data"]
    kept = {key: spec[key] for key in spec if key not in ("config", "$schema", "datasets")}
    return kept | {"data": {"values": [_defined(row) for row in rows]}}


def tips(rows: Sequence[Datum], titles: Mapping[str, str], form: str = "") -> list[Any]:
    """Returns the tooltips of those fields that any row has: field -> its title.

    Args:
        rows: of the chart.
        titles: of the fields.
        form: of numbers, as d3 writes it; "" for text.
    """
    import altair as alt

    shown = {field: title for field, title in titles.items()
             if any(row.get(field) is not None for row in rows)}  # fmt: skip
    if form:
        return [alt.Tooltip(f"{key}:Q", title=title, format=form) for key, title in shown.items()]
    return [alt.Tooltip(f"{key}:N", title=title) for key, title in shown.items()]


_DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 4], [10, 4]]


def series(
    channel: str, field: str, names: Sequence[str], looks: Sequence[Any], title: str | None = None
) -> Any:
    """Returns a channel of a field whose values look different, with a legend if there are several.

    Args:
        channel: `color`, `fill`, `shape` or `strokeDash`.
        field: of the rows.
        names: its values, in order.
        looks: of the values; repeated where there are more names.
        title: of the legend.
    """
    import altair as alt

    classes = {"color": alt.Color, "fill": alt.Fill, "shape": alt.Shape}
    made: Any = classes.get(channel, alt.StrokeDash)
    repeated = [looks[i % len(looks)] for i in range(len(names))]
    legend = _legend({"title": title, "symbolOpacity": 1}, names)
    scale = alt.Scale(domain=list(names), range=repeated)
    return made(f"{field}:N", sort=None, scale=scale, legend=legend and alt.Legend(**legend))


def specification(name: str, rows: Sequence[Datum], **fields: Mapping[str, Any]) -> Spec:
    """Returns the specification of a file with rows as its data.

    An empty `sort` or `domain` of the file becomes the values of the field in the order of the
    rows. Tooltips show the fields that any row has, legends what has several values.

    Args:
        name: of the file.
        rows: with the fields that the file names; other fields are kept, too.
        fields: field -> what its channels add to their `scale` and `axis`.
    """
    text = resource_path("cards", "charts", f"{name}.json").read_text(encoding="utf-8")
    spec: Spec = json.loads(text)
    for part in [*_parts(spec)]:
        field = part.get("field", "")
        for key in ("scale", "axis"):
            if part.get(key) is not None:
                part[key] |= fields.get(field, {}).get(key, {})
        if part.get("sort") == []:
            part["sort"] = distinct(rows, field)
        if part.get("scale", {}).get("domain") == []:
            part["scale"]["domain"] = distinct(rows, field)
        if part.get("legend"):
            part["legend"] = _legend(part["legend"], part["scale"]["domain"])
        if "tooltip" in part.get("encoding", ()):
            tips = part["encoding"]["tooltip"]
            shown = [tip for tip in tips if any(row.get(tip["field"]) is not None for row in rows)]
            part["encoding"]["tooltip"] = shown
    return spec | {"data": {"values": [_defined(row) for row in rows]}}


def _parts(value: Any) -> Iterator[Spec]:
    """Every mapping in a specification."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from _parts(part)


def _legend(legend: Spec, names: Sequence[str]) -> Spec | None:
    """The legend with as many columns as fit; none for a single series."""
    widths = (sum(9 if letter.isupper() else 6 for letter in name) for name in names)
    longest = 30 + max(widths, default=0)  # pixels of a column, about
    columns = max(1, min(len(names), 360 // longest))
    return legend | {"columns": columns} if len(names) > 1 else None


def _defined(row: Datum) -> Datum:
    """The row without what is undefined: JSON has no NaN, and Vega draws null as 0."""
    return {
        key: value
        for key, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def distinct(rows: Sequence[Datum], field: str) -> list[Any]:
    """Returns the values of a field, each once, in the order of the rows."""
    return list(dict.fromkeys(row.get(field) for row in rows))


def dots(rows: Sequence[Datum]) -> Spec:
    """Returns figures as dots with 95% intervals, one line of the chart per label and series.

    A thin line is the 95% interval, a thick one the standard deviation over shuffles, a short
    dashed line the chance level, a hollow diamond the published figure.

    Args:
        rows: label, series, value, low, high, sd, n, chance, published.
    """
    labels, series = distinct(rows, "label"), distinct(rows, "series")
    lines = max(label.count("\n") + 1 for label in labels)
    gap = 10 if len(labels) <= _FEW_LABELS else 4
    height = len(labels) * max(14 * len(series) + min(gap, 6), 13 * lines + gap)
    return specification("dots", rows) | {"height": height}


def scatter(rows: Sequence[Datum], threshold: float, lowest: float = 1.0) -> Spec:
    """Returns the probability of the good against the bad completion of every contrast.

    Above the diagonal the good one is preferred, above the dashed curve by more than `threshold`.

    Args:
        rows: item, context, good, bad, p_good, p_bad, rank_good, rank_bad, verdict.
        threshold: of sensitivity@threshold.
        lowest: a probability that the axes reach, too.
    """
    low = decade([lowest, *(row[field] for row in rows for field in ("p_good", "p_bad"))])
    x = log_axis("x", "p_bad", "p(bad completion)", low)
    y = log_axis("y", "p_good", "p(good completion)", low)
    steps = [float(f"{low * (1.4 / low) ** (i / 50):.4g}") for i in range(51)]
    sums = [(p, float(f"{p + threshold:.4g}")) for p in steps]
    curve = [{"p_bad": p, "p_good": total} for p, total in sums if total <= 1]
    verdicts = [f"good by > {threshold:g}", "good", "bad"]
    looks = {
        "color": series("color", "verdict", verdicts, [COLORS[0], COLORS[0], COLORS[1]], "prefers"),
        "fill": series(
            "fill", "verdict", verdicts, [COLORS[0], "transparent", "transparent"], "prefers"
        ),
        "shape": series(
            "shape", "verdict", verdicts, ["circle", "circle", "triangle-down"], "prefers"
        ),
    }
    texts = {"item": "item", "context": "context", "good": "good word", "bad": "bad word",
             "rank_good": "rank of good", "rank_bad": "rank of bad"}  # fmt: skip
    shown = [*tips(rows, texts), *tips(rows, {"p_good": "p(good)", "p_bad": "p(bad)"}, ".3g")]
    lines = [line([{"p_bad": low, "p_good": low}, {"p_bad": 1, "p_good": 1}], x, y)]
    lines.append(line(curve, x, y, strokeDash=DASHED))
    return items_chart(rows, x, y, looks, shown, lines)


def surprisal_scatter(rows: Sequence[Datum], reach: Sequence[float] = ()) -> Spec:
    """Returns the surprisal of the good against the bad sentence of every contrast, in bits.

    Below the diagonal the good one is preferred.

    Args:
        rows: item, context, other, good, bad, difference, verdict.
        reach: values that the axes reach, too.
    """
    ends = bits_ends([*reach, *(row[field] for row in rows for field in ("good", "bad"))])
    x = bits_axis("x", "bad", "bad sentence, bits", ends)
    y = bits_axis("y", "good", "good sentence, bits", ends)
    verdicts = ["good", "bad"]
    looks = {
        "color": series("color", "verdict", verdicts, COLORS, "prefers"),
        "shape": series("shape", "verdict", verdicts, ["circle", "triangle-down"], "prefers"),
    }
    texts = tips(rows, {"item": "item", "context": "good", "other": "bad"})
    shown = [*texts, *tips(rows, {"good": "bits", "bad": "bits of bad"}, ".1f")]
    return items_chart(rows, x, y, looks, shown, [_diagonal(ends, x, y)])


def cloze(rows: Sequence[Datum], lowest: float = 1.0) -> Spec:
    """Returns the probability of each target against its human cloze probability.

    Args:
        rows: item, context, cloze, word, p, rank, kind.
        lowest: a probability that the axis reaches, too.
    """
    import altair as alt

    x = alt.X("cloze:Q", title="human cloze probability")
    y = log_axis("y", "p", "model's probability", decade([lowest, *(row["p"] for row in rows)]))
    kinds = ["appropriate", "reversed"]
    looks = {
        "color": series("color", "kind", kinds, COLORS),
        "fill": series("fill", "kind", kinds, [COLORS[0], "transparent"]),
        "shape": series("shape", "kind", kinds, ["circle", "triangle-up"]),
    }
    texts = {"item": "item", "context": "context", "word": "word", "rank": "rank"}
    shown = [*tips(rows, texts), *tips(rows, {"p": "model's p", "cloze": "human cloze"}, ".3g")]
    return items_chart(rows, x, y, looks, shown, [], height=230)


def items_chart(
    rows: Sequence[Datum],
    x: Any,
    y: Any,
    looks: Mapping[str, Any],
    tooltip: Sequence[Any],
    lines: Sequence[Any],
    height: int = 300,
) -> Spec:
    """Returns a chart with a mark per item, which a page connects with its list of items."""
    import altair as alt

    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]
    marks = chart.mark_point(size=42, strokeWidth=1.3, opacity=1, cursor="pointer")
    items = marks.encode(x=x, y=y, **looks, tooltip=list(tooltip)).properties(name="items")
    return from_altair(alt.layer(*lines, items).properties(width=360, height=height), rows)


def line(rows: Sequence[Datum], x: Any, y: Any, **mark: Any) -> Any:
    """Returns a thin line through points of its own, without a tooltip."""
    import altair as alt

    chart = alt.Chart(alt.Data(values=list(rows)))  # type: ignore[no-untyped-call]
    return chart.mark_line(color="var(--muted)", strokeWidth=1, tooltip=None, **mark).encode(
        x=x, y=y
    )


def density(
    good: Sequence[float],
    bad: Sequence[float],
    *,
    in_bits: bool = False,
    reach: Sequence[float] = (),
) -> Spec:
    """Returns what `scatter` or `surprisal_scatter` shows, where only the density can be seen.

    Args:
        good, bad: of each contrast, probabilities or bits.
        in_bits: whether they are surprisals.
        reach: values that the axes reach, too.
    """
    import altair as alt
    import numpy as np

    if in_bits:
        low, high = ends = bits_ends([*good, *bad, *reach])
        edges = np.linspace(low, high, 37)
        x = bits_axis("x", "bad", "bad sentence, bits", ends)
        y = bits_axis("y", "good", "good sentence, bits", ends)
    else:
        low, high = ends = (decade([*good, *bad, *reach]), 1.0)
        edges = np.geomspace(low, high, 37)
        x = log_axis("x", "bad", "p(bad completion)", low)
        y = log_axis("y", "good", "p(good completion)", low)
    counts, _, _ = np.histogram2d(
        np.clip(bad, low, high), np.clip(good, low, high), bins=[edges, edges]
    )
    rows = [
        {
            "bad": float(edges[x]), "bad_end": float(edges[x + 1]),
            "good": float(edges[y]), "good_end": float(edges[y + 1]), "count": int(counts[x, y]),
        }
        for x, y in np.argwhere(counts)
    ]  # fmt: skip
    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]
    shades = alt.Opacity("count:Q", scale=alt.Scale(type="log", range=[0.1, 1]), legend=None)
    shown = [*tips(rows, {"good": "good from", "bad": "bad from"}, ".2g"),
             *tips(rows, {"count": "contrasts"})]  # fmt: skip
    cells = chart.mark_rect(color=COLORS[0]).encode(
        x=x, y=y, x2="bad_end", y2="good_end", opacity=shades, tooltip=shown
    )
    whole = alt.layer(_diagonal(ends, x, y), cells).properties(width=360, height=300)
    return from_altair(whole, rows)


def shuffles(rows: Sequence[Datum]) -> Spec:
    """Returns the values of measures in each shuffle, with mean and standard deviation below.

    Args:
        rows: label, value, count of each value; label, mean, sd, plain, published of each measure.
    """
    import altair as alt

    labels = distinct(rows, "label")
    axis = alt.Axis(ticks=False, domain=False, labelPadding=11, labelExpr=LINES)
    y = alt.Y("label:N", sort=labels, title=None, axis=axis)
    scale, percent = alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5)
    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]

    def having(field: str) -> Any:
        return chart.transform_filter(f"isValid(datum.{field})")

    def across(field: str) -> Any:
        return alt.X(f"{field}:Q", title=None, scale=scale, axis=percent)

    below = {"y": y, "yOffset": alt.value(13)}
    size = alt.Size("count:Q", scale=alt.Scale(range=[8, 320]), legend=None)
    circles = having("value").mark_circle(color=COLORS[0], opacity=0.6)
    value = [*tips(rows, {"label": "figure", "count": "shuffles"})]
    value += tips(rows, {"value": "value"}, ".1%")
    tick = having("plain").mark_tick(color=COLORS[1], thickness=2, size=30, strokeDash=DASHED)
    sd = having("sd").transform_calculate(
        sd_low="max(0, datum.mean - datum.sd)", sd_high="min(1, datum.mean + datum.sd)"
    )
    diamond = having("published").mark_point(
        shape="diamond", size=70, color="var(--ink)", strokeWidth=1.3
    )
    titles = {"mean": "mean", "sd": "sd", "plain": "not shuffled", "published": "published"}
    mean = having("mean").mark_point(color="var(--ink)", filled=True, size=36, opacity=1)
    whole = alt.layer(
        circles.encode(x=across("value"), y=y, size=size, tooltip=value),
        tick.encode(x=across("plain"), y=y),
        sd.mark_rule(color="var(--ink)", strokeWidth=5, opacity=0.3).encode(
            **below, x=across("sd_low"), x2="sd_high"
        ),
        diamond.encode(**below, x=across("published")),
        mean.encode(**below, x=across("mean"), tooltip=tips(rows, titles, ".1%")),
    )
    return from_altair(whole.properties(width=360, height=44 * len(labels)), rows)


LINES = "split(datum.label, '\\n')"
"""Expression of a label of several lines."""


def decade(probabilities: Iterable[float]) -> float:
    """Returns the power of ten below the smallest probability: the end of an axis."""
    smallest = min((p for p in probabilities if 0 < p < 1), default=0.1)
    return float(10.0 ** math.floor(math.log10(max(smallest, _FLOOR))))


def log_axis(channel: str, field: str, title: str, low: float) -> Any:
    """Returns a channel of probabilities from a power of ten to 1; smaller ones are at its end."""
    import altair as alt

    decades = [10.0**i for i in range(round(math.log10(low)), 1)]
    scale = alt.Scale(type="log", domain=[0.7 * low, 1.4], clamp=True, nice=False)
    labels = "format(datum.value, datum.value < 0.001 ? '~e' : '~g')"
    axis = alt.Axis(values=decades, labelExpr=labels)
    made = alt.X if channel == "x" else alt.Y
    return made(f"{field}:Q", title=title, scale=scale, axis=axis)


def bits_ends(values: Sequence[float]) -> tuple[float, float]:
    """Returns the multiples of 10 bits around surprisals."""
    low, high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10)
    return low, max(high, low + 10)


def bits_axis(channel: str, field: str, title: str, ends: Sequence[float]) -> Any:
    """Returns a linear channel of surprisals."""
    import altair as alt

    scale = alt.Scale(domain=list(ends), clamp=True, nice=False)
    made = alt.X if channel == "x" else alt.Y
    return made(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))


def _diagonal(ends: Sequence[float], x: Any, y: Any) -> Any:
    """The line where good and bad are equal."""
    return line([{"bad": end, "good": end} for end in ends], x, y)


def region_lines(rows: Sequence[Datum]) -> Spec:
    """Returns mean surprisals region by region, a line for each condition, a panel for each model.

    Where predictions read some of the regions, those are shown; the others with a click.

    Args:
        rows: model, region, condition, value, low, high, n, and whether predictions read the region
            (`named`).
    """
    import altair as alt

    conditions, models = distinct(rows, "condition"), distinct(rows, "model")
    x = alt.X("region:N", sort=distinct(rows, "region"), title=None)
    x = x.axis(labelAngle=-35, labelLimit=110, labelOverlap=False, grid=False)
    offset = alt.XOffset("condition:N", sort=conditions, scale=alt.Scale(type="point", padding=4))

    def up(field: str) -> Any:
        scale, axis = alt.Scale(zero=False), alt.Axis(tickCount=5)
        return alt.Y(f"{field}:Q", title="surprisal, bits", scale=scale, axis=axis)

    shared = {"x": x, "xOffset": offset, "color": series("color", "condition", conditions, COLORS)}
    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]
    is_part = 0 < sum(row["named"] for row in rows) < len(rows)
    if is_part:
        chart = chart.transform_filter("every_region || datum.named")
    dashes = series("strokeDash", "condition", conditions, _DASHES)
    lines = chart.mark_line(strokeWidth=1.5, tooltip=None).encode(
        **shared, y=up("value"), strokeDash=dashes
    )
    layers = [lines]
    if any(row["low"] == row["low"] for row in rows):  # Vega warns of an empty layer
        rules = chart.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, opacity=0.6)
        layers.append(rules.encode(**shared, y=up("low"), y2="high:Q"))
    titles = {"region": "region", "condition": "condition", "n": "items"}
    bits = {"value": "bits", "low": "from", "high": "to"}
    layers.append(
        chart.mark_point(filled=True, size=42, opacity=1).encode(
            **shared,
            y=up("value"),
            shape=series("shape", "condition", conditions, SHAPES),
            tooltip=[*tips(rows, titles), *tips(rows, bits, ".2f")],
        )
    )
    whole = alt.layer(*layers).properties(width=360, height=180)
    if len(models) > 1:
        panels = alt.Facet("model:N", title=None, sort=models)
        whole = whole.properties(width=150, height=150).facet(panels, columns=2, spacing=14)
    if is_part:
        box = alt.binding_checkbox(name="all regions")
        whole = whole.add_params(alt.param(name="every_region", value=False, bind=box))
    return from_altair(whole, rows)


def cutoffs(rows: Sequence[Datum]) -> Spec:
    """Returns scores by cut-off of the distribution: of its top, then of its bottom.

    Args:
        rows: end (`top` or `bottom`), cutoff, series, value, low, high, chance, n; with `panel`,
            one panel for each of its values, without bands and points.
    """
    rows = [
        {**row, "place": f"{row['end']} {row['cutoff']:g}".replace(" 0.", " .")} for row in rows
    ]
    if "panel" in rows[0]:
        spec = specification("cutoffs-panels", rows)
        layers = spec["spec"]["layer"]
    else:
        lowest = min(row.get("low", row["value"]) for row in rows)
        y = {"scale": {"domain": [max(0, min(0.48, lowest - 0.02)), 1]}}
        spec = specification("cutoffs", rows, value=y, low=y, chance=y)
        layers = spec["layer"]
    first = next((row for row in rows if row["end"] == "bottom"), rows[-1])
    layers[-1]["data"] = {"values": [{"place": first["place"]}]}
    return spec


def difference_dots(rows: Sequence[Datum], reach: float, colors: Sequence[int]) -> Spec:
    """Returns differences between two runs with intervals, a panel for each task and setting.

    A difference has the colour of the model with the larger figure; 0 has none.

    Args:
        rows: group, label, difference, low, high, a, b, p_adjusted, n.
        reach: the end of the scale in both directions.
        colors: numbers of the colours of the first and the second run.
    """
    x = {"scale": {"domain": [-reach, reach]}}
    spec = specification("differences", rows, difference=x, low=x)
    for layer in spec["spec"]["layer"][1:]:
        layer["encoding"]["color"]["condition"] = [
            {"test": f"datum.difference {sign} 0", "value": f"var(--c{color})"}
            for sign, color in zip("><", colors, strict=True)
        ]
    return spec


def in_one_color(spec: Spec, number: int) -> Spec:
    """Returns the specification with one colour, a model's, in place of all colours of series.

    Args:
        spec: whose series differ by shape, fill or dashes as well.
        number: of the colour, from 1.
    """
    text = json.dumps({key: value for key, value in spec.items() if key != "data"})
    painted: Spec = json.loads(re.sub(r"var\(--c\d\)", f"var(--c{number})", text))
    return painted | {"data": spec["data"]}


MARGIN = 120
"""Pixels left of the panels of a specification curve: the labels of the choices."""


def specification_curve(
    rows: Sequence[Datum],
    choices: Sequence[Datum],
    color: str,
    *,
    percent: bool,
    reach: Sequence[float] = (),
) -> Spec:
    """Returns figures in ascending order, and below them the choices of each.

    Args:
        rows: place (from 1), value, low, high, chance, n, p, p_adjusted, protocol, and whether the
            point is `solid` and the `default`.
        choices: place, choice, and whether its knob is the `strongest`; a row per point and knob.
        color: of the points, e.g. "var(--c1)".
        percent: whether the values are proportions.
        reach: values that the scale has to show, too.
    """
    known = [row[key] for row in rows for key in ("value", "low", "high", "chance")
             if row.get(key) is not None]  # fmt: skip
    low, high = min([*reach, *known]), max([*reach, *known])
    room = 0.06 * (high - low) or 0.05
    scale = {"scale": {"domain": [low - room, high + room], "nice": False, "zero": False},
             "axis": {"format": "%" if percent else ".3~g"}}  # fmt: skip
    spec = specification("curve", rows, value=scale, low=scale, chance=scale)
    curve, matrix = spec["vconcat"]
    curve["layer"][1]["mark"]["color"] = color
    curve["layer"][2]["mark"] |= {"stroke": color, "fill": color}
    if not percent:
        for tip in curve["layer"][2]["encoding"]["tooltip"]:
            tip |= {"format": ".3~g"} if tip.get("format") == ".1%" else {}
    if all(row.get("low") is None for row in rows):  # Vega warns of an empty layer
        del curve["layer"][1]
    matrix["data"] = {"values": list(choices)}
    matrix["encoding"]["y"]["sort"] = distinct(choices, "choice")
    matrix["encoding"]["color"]["condition"]["value"] = color
    return spec
