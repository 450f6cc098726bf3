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

from lmdiag.resources import resource_path

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
    """

    kind: str
    name: str
    caption: str
    spec: Spec
    is_further: bool = False


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


def scatter(rows: Sequence[Datum], threshold: float) -> Spec:
    """Returns the probability of the good against the bad completion of every contrast.

    Above the diagonal the good one is preferred, above the dashed curve by more than `threshold`.

    Args:
        rows: item, context, good, bad, p_good, p_bad, rank_good, rank_bad, verdict.
        threshold: of sensitivity@threshold.
    """
    axis = log_axis(row[field] for row in rows for field in ("p_good", "p_bad"))
    verdicts = {"scale": {"domain": [f"good by > {threshold:g}", "good", "bad"]}}
    spec = specification("scatter", rows, p_good=axis, p_bad=axis, verdict=verdicts)
    return spec | {"params": [{"name": "threshold", "value": threshold}]}


def surprisal_scatter(rows: Sequence[Datum]) -> Spec:
    """Returns the surprisal of the good against the bad sentence of every contrast, in bits.

    Below the diagonal the good one is preferred.

    Args:
        rows: item, context, other, good, bad, difference, verdict.
    """
    axis = bits_axis([row[field] for row in rows for field in ("good", "bad")])
    spec = specification("surprisals", rows, good=axis, bad=axis)
    spec["layer"][0]["data"] = _diagonal(*axis["scale"]["domain"])
    return spec


def density(good: Sequence[float], bad: Sequence[float], *, in_bits: bool = False) -> Spec:
    """Returns what `scatter` or `surprisal_scatter` shows, where only the density can be seen.

    Args:
        good, bad: of each contrast, probabilities or bits.
        in_bits: whether they are surprisals.
    """
    import numpy as np

    axis = bits_axis([*good, *bad]) if in_bits else log_axis((*good, *bad))
    if in_bits:
        low, high = axis["scale"]["domain"]
        edges = np.linspace(low, high, 37)
        named = {"good": "good sentence, bits", "bad": "bad sentence, bits"}
    else:
        low, high = axis["axis"]["values"][0], 1
        edges = np.geomspace(low, high, 37)
        named = {"good": "p(good completion)", "bad": "p(bad completion)"}
    counts, _, _ = np.histogram2d(
        np.clip(bad, low, high), np.clip(good, low, high), bins=[edges, edges]
    )
    rows = [
        {
            "bad": edges[x], "bad_end": edges[x + 1],
            "good": edges[y], "good_end": edges[y + 1], "count": int(counts[x, y]),
        }
        for x, y in np.argwhere(counts)
    ]  # fmt: skip
    axes = {field: axis | {"axis": axis["axis"] | {"title": named[field]}} for field in named}
    spec = specification("density", rows, **axes)
    spec["layer"][0]["data"] = _diagonal(low, high)
    return spec


def bits_axis(values: Sequence[float]) -> dict[str, Any]:
    """Returns a linear scale and an axis around surprisals, its ends multiples of 10 bits."""
    low, high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10)
    scale = {"type": "linear", "domain": [low, max(high, low + 10)]}
    return {"scale": scale, "axis": {"labelExpr": "datum.label", "tickCount": 6}}


def _diagonal(*ends: float) -> dict[str, Any]:
    """The line where good and bad are equal, as data of a layer."""
    return {"values": [{"bad": end, "good": end} for end in ends]}


def region_lines(rows: Sequence[Datum]) -> Spec:
    """Returns mean surprisals region by region, a line for each condition.

    Args:
        rows: region, condition, value, low, high, n.
    """
    spec = specification("regions", rows)
    if all(row["low"] != row["low"] for row in rows):  # a single item: Vega warns of an empty layer
        spec["layer"] = [part for part in spec["layer"] if part["mark"]["type"] != "rule"]
    return spec


def log_axis(probabilities: Iterable[float]) -> dict[str, Any]:
    """Returns a scale and an axis from the power of ten below the smallest probability to 1."""
    smallest = min((p for p in probabilities if p > 0), default=0.1)
    low = math.floor(math.log10(max(smallest, _FLOOR)))
    decades = [10.0**i for i in range(low, 1)]
    return {"scale": {"domain": [0.7 * decades[0], 1.4]}, "axis": {"values": decades}}


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
