"""Figures along a line: over the cut-offs of the distribution, and over training steps."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.report.charts.parts import (
    COLOURS,
    DASHES,
    INK,
    MUTED,
    PERCENT,
    SHAPES,
    Datum,
    Spec,
    by_series,
    distinct,
    in_panels,
    layered,
    tooltips,
)


def cutoffs(rows: Sequence[Datum]) -> Spec:
    """Scores by cut-off of the distribution: of its top, then of its bottom.

    Args:
        rows: end (`top` or `bottom`), cutoff, series, value, low, high, chance, n; with `panel`,
            one panel for each of its values, without bands and points.
    """
    order = list(dict.fromkeys(map(_cutoff, rows)))
    rows = [{**row, "place": _cutoff(row)} for row in rows]
    small = "panel" in rows[0]
    axis = {
        "labelExpr": "replace(replace(datum.label, 'top ', ''), 'bottom ', '')",
        "labelAngle": 0,
        "labelOverlap": True,
        "grid": False,
    }
    title = None if small else "probability mass kept: top | bottom of the distribution"
    x = {"field": "place", "type": "ordinal", "sort": order, "title": title, "axis": axis}
    first = next((place for place in order if place.startswith("bottom")), order[-1])
    line, *rest = _curves(rows, x, zoom=not small)
    rule = {
        "data": {"values": [{"place": first}]},
        "mark": {"type": "rule", "color": MUTED},
        "encoding": {"x": {**x, "bandPosition": 0}},
    }
    if small:
        return in_panels(rows, "panel", [line, rule], columns=2, height=84, y="shared")
    return layered(rows, [line, *rest, rule], {}, 190)


def _cutoff(row: Datum) -> str:
    """A cut-off as its axis names it: `top .5`, `bottom 1e-06`."""
    return f"{row['end']} {row['cutoff']:g}".replace(" 0.", " .")


def steps(rows: Sequence[Datum]) -> Spec:
    """Figures over the training steps of a model's checkpoints.

    Args:
        rows: step, series, value, low, high, chance, n.
    """
    found = sorted({row["step"] for row in rows})
    first = next((step for step in found if step > 0), 1)
    scale = {"type": "symlog", "constant": first} if found[-1] > 20 * first else {"zero": False}
    axis = {"values": found, "format": "~s", "labelOverlap": True, "grid": False}
    x = {"field": "step", "type": "quantitative", "title": "training step"}
    return layered(rows, _curves(rows, {**x, "scale": scale, "axis": axis}, zoom=False), {}, 200)


def _curves(rows: Sequence[Datum], x: Spec, *, zoom: bool) -> list[Spec]:
    """Lines, bands for their intervals, points, and a dotted line at each chance level."""
    lowest = min(row.get("low", row["value"]) for row in rows)
    start = min(0.48, lowest - 0.02) if zoom else 0
    scaled = {
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [max(0, start), 1]},
        "axis": PERCENT,
    }
    y = {"field": "value", **scaled}
    names = distinct(rows, "series")
    colour, shape, dash = (by_series(names, kind) for kind in (COLOURS, SHAPES, DASHES))
    tips = tooltips(
        rows, series="figure", step="training step", place="cut-off", value="value:%",
        low="from:%", high="to:%", chance="chance:%", n="n",
    )  # fmt: skip
    chance = [{"chance": level} for level in distinct(rows, "chance") if level is not None]
    return [
        {
            "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": {**dash, "legend": None}},
        },
        {
            "mark": {"type": "area", "opacity": 0.14},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
            | {"color": colour},
        },
        {
            "data": {"values": chance},
            "mark": {"type": "rule", "color": INK, "strokeDash": [2, 2]},
            "encoding": {"y": {"field": "chance", **scaled}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 36, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tips},
        },
    ]
