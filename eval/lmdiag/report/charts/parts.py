"""Parts that the Vega-Lite specifications of all charts share.

A row is a mapping from fixed field names to values as in `results.json`: proportions are in
[0, 1], and None is undefined. Text from data and models stands in rows and in the domains of
scales only, where Vega reads it as text and never as an expression. Colours are CSS variables
(`var(--c1)`) that `theme` resolves where there is no style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]
Datum = Mapping[str, Any]

INK, MUTED = "var(--ink)", "var(--muted)"
RIGHT, WRONG = "var(--c1)", "var(--c2)"
COLOURS = [f"var(--c{i})" for i in range(1, 7)]
SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3]]

CHART_WIDTH = 360
"""Width of a chart in pixels, unless the page or a file asks for another."""

PERCENT = {"format": "%", "tickCount": 5}


def layered(rows: Sequence[Datum], layers: Sequence[Spec], position: Spec, height: float) -> Spec:
    """A layered specification whose layers share their data and position."""
    shared = {"encoding": position} if position else {}
    return {
        "data": {"values": [_defined(row) for row in rows]},
        "width": CHART_WIDTH,
        "height": height,
        **shared,
        "layer": list(layers),
    }


def in_panels(
    rows: Sequence[Datum],
    by: str,
    layers: Sequence[Spec],
    *,
    columns: int,
    height: Any,
    y: str = "",
) -> Spec:
    """The same layers once for each value of a field."""
    width = (CHART_WIDTH - 40 * columns) // columns
    facet = {"field": by, "type": "nominal", "sort": distinct(rows, by), "title": None}
    spec: Spec = {
        "data": {"values": [_defined(row) for row in rows]},
        "facet": facet,
        "columns": columns,
        "spacing": 14,
        "spec": {"width": width, "height": height, "layer": list(layers)},
    }
    return spec | {"resolve": {"scale": {"y": y}}}


def _defined(row: Datum) -> Datum:
    """The row without what is undefined: JSON has no NaN, and Vega draws null as 0."""
    return {
        key: value
        for key, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def distinct(rows: Sequence[Datum], field: str) -> list[Any]:
    return list(dict.fromkeys(row.get(field) for row in rows))


def mark(kind: str, field: str, **style: Any) -> Spec:
    """A mark at a proportion; rows without the field have none."""
    x = {"field": field, "type": "quantitative", "title": None, "axis": PERCENT}
    return {
        "transform": [{"filter": f"isValid(datum.{field})"}] if field else [],
        "mark": {"type": kind, **style},
        "encoding": {"x": x | {"scale": {"domain": [0, 1]}}} if field else {},
    }


def interval(low: str, high: str, **style: Any) -> Spec:
    """A horizontal line between two proportions."""
    layer = mark("rule", low, **style)
    layer["encoding"]["x2"] = {"field": high}
    return layer


def by_label(field: str, labels: Sequence[str]) -> Spec:
    """The vertical position of rows by their label; a label may have several lines."""
    axis = {
        "labelExpr": "split(datum.label, '\\n')",
        "ticks": False,
        "domain": False,
        "labelPadding": 11,
    }
    return {"field": field, "type": "nominal", "sort": list(labels), "title": None, "axis": axis}


def by_series(
    names: Sequence[str], values: Sequence[Any], field: str = "series", title: str | None = None
) -> Spec:
    """A colour, shape or dash for each series; a single series needs no legend."""
    scale = {"domain": list(names), "range": [values[i % len(values)] for i in range(len(names))]}
    longest = 30 + 6 * max(map(len, names), default=0)  # pixels of a column, about
    columns = max(1, min(len(names), CHART_WIDTH // longest))
    legend = {"title": title, "columns": columns, "symbolOpacity": 1} if len(names) > 1 else None
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend, "sort": None}


def tooltips(rows: Sequence[Datum], **titles: str) -> list[Spec]:
    """What a pointer on a mark shows: field=`title` or field=`title:format`, if any row has it."""
    present = {key for row in rows for key, value in row.items() if value is not None}
    tips = []
    for field, text in titles.items():
        title, _, style = text.partition(":")
        if field in present:
            form = {"format": {"%": ".1%", "+%": "+.1%"}.get(style, style)} if style else {}
            kind = "quantitative" if style else "nominal"
            tips.append({"field": field, "title": title, "type": kind, **form})
    return tips
