"""Probabilities of single words, as points or as a density."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lmdiag.report.charts.parts import (
    MUTED,
    RIGHT,
    WRONG,
    Datum,
    Spec,
    by_series,
    layered,
    mark,
    tooltips,
)

_FLOOR = 1e-8
"""Smallest probability on an axis; smaller ones are drawn at its end."""

_DECADES = "datum.value < 0.001 ? '~e' : '~g'"


def scatter(rows: Sequence[Datum], threshold: float) -> Spec:
    """Probability of the good against the bad completion of every contrast, on log axes.

    Above the diagonal the good one is preferred, above the dashed curve by more than `threshold`.

    Args:
        rows: item, context, good, bad, p_good, p_bad, rank_good, rank_bad, verdict.
        threshold: of sensitivity@threshold.
    """
    low = _decade_below(row[key] for row in rows for key in ("p_good", "p_bad"))
    kinds = [f"good by > {threshold:g}", "good", "bad"]
    points = mark("point", "", size=42, strokeWidth=1.3, opacity=1, cursor="pointer")
    points["name"] = "items"
    points["encoding"] = {
        "color": _verdicts(kinds, [RIGHT, RIGHT, WRONG]),
        "fill": _verdicts(kinds, [RIGHT, "transparent", "transparent"]),
        "shape": _verdicts(kinds, ["circle", "circle", "triangle-down"]),
        "tooltip": tooltips(
            rows, item="item", context="context", good="good word", p_good="p(good):.3g",
            rank_good="rank of good", bad="bad word", p_bad="p(bad):.3g", rank_bad="rank of bad",
        ),
    }  # fmt: skip
    return _square(rows, low, threshold, points)


def density(p_good: Sequence[float], p_bad: Sequence[float]) -> Spec:
    """What `scatter` shows, for so many contrasts that only their density can be seen."""
    import numpy as np

    low = _decade_below((*p_good, *p_bad))
    edges = np.geomspace(low, 1, 37)
    counts, _, _ = np.histogram2d(
        np.clip(p_bad, low, 1), np.clip(p_good, low, 1), bins=[edges, edges]
    )
    rows = [
        {
            "p_bad": edges[x], "p_bad_end": edges[x + 1],
            "p_good": edges[y], "p_good_end": edges[y + 1], "count": int(counts[x, y]),
        }
        for x, y in np.argwhere(counts)
    ]  # fmt: skip
    shade = {"type": "log", "range": [0.1, 1]}
    cells = {
        "mark": {"type": "rect", "color": RIGHT, "stroke": None},
        "encoding": {
            "x2": {"field": "p_bad_end"},
            "y2": {"field": "p_good_end"},
            "opacity": {"field": "count", "type": "quantitative", "scale": shade, "legend": None},
            "tooltip": tooltips(
                rows, p_good="p(good) from:.2g", p_bad="p(bad) from:.2g", count="contrasts"
            ),
        },
    }
    return _square(rows, low, 0, cells)


def _square(rows: Sequence[Datum], low: float, threshold: float, marks: Spec) -> Spec:
    """Marks over the diagonal and, if there is a threshold, the curve that is above it by that."""
    diagonal = [{"p_bad": p, "p_good": p} for p in (low, 1.0)]
    step = (1 - threshold) / low
    curve = [low * step ** (i / 60) for i in range(61)] if threshold else []
    ahead = [{"p_bad": p, "p_good": min(p + threshold, 1.0)} for p in curve]
    line = {"type": "line", "color": MUTED, "strokeWidth": 1, "tooltip": None}
    layers = [
        {"data": {"values": diagonal}, "mark": line},
        {"data": {"values": ahead}, "mark": {**line, "strokeDash": [4, 3]}},
        marks,
    ]
    position = {
        "x": _probability("p_bad", "p(bad completion)", low),
        "y": _probability("p_good", "p(good completion)", low),
    }
    return layered(rows, layers, position, 300)


def cloze(rows: Sequence[Datum]) -> Spec:
    """A model's probability of the target against its human cloze probability, for every row.

    Args:
        rows: item, context, word, p, cloze, rank, kind (`appropriate` or `reversed`).
    """
    kinds = ["appropriate", "reversed"]
    points = mark("point", "", size=38, strokeWidth=1.3, opacity=1, cursor="pointer")
    points["name"] = "items"
    points["encoding"] = {
        "color": by_series(kinds, [RIGHT, WRONG], "kind"),
        "fill": by_series(kinds, [RIGHT, "transparent"], "kind"),
        "shape": by_series(kinds, ["circle", "triangle-up"], "kind"),
        "tooltip": tooltips(
            rows, item="item", context="context", word="word", p="model's p:.3g",
            cloze="human cloze:.2f", rank="rank",
        ),
    }  # fmt: skip
    position = {
        "x": {"field": "cloze", "type": "quantitative", "title": "human cloze probability"},
        "y": _probability("p", "model's probability", _decade_below(row["p"] for row in rows)),
    }
    return layered(rows, [points], position, 230)


def _decade_below(values: Iterable[float]) -> float:
    """Returns the power of ten at or below the smallest probability, but at least 1e-8."""
    smallest = min((value for value in values if value > 0), default=0.1)
    return float(10.0 ** math.floor(math.log10(max(smallest, _FLOOR))))


def _probability(field: str, title: str, low: float) -> Spec:
    decades = [10.0**i for i in range(round(math.log10(low)), 1)]
    scale = {"type": "log", "domain": [0.7 * low, 1.4], "clamp": True, "nice": False}
    axis = {"values": decades, "labelExpr": f"format(datum.value, {_DECADES})"}
    return {
        "field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis
    }  # fmt: skip


def _verdicts(kinds: Sequence[str], values: Sequence[str]) -> Spec:
    return by_series(kinds, values, "verdict", "prefers")
