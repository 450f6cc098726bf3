"""The means of the conditions of a design, with within-item intervals and the items behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from lmdiag.analysis.designs import Analysis
from lmdiag.report.charts.specs import Datum, Plot
from lmdiag.text import visible

_MOST_ITEMS = 60
"""Items that are drawn as lines, in each panel."""

_TEXTS = {"panel": "panel", "level": "level", "series": "of", "n": "items"}
_BITS = {"value": "mean", "low": "from", "high": "to"}

_COLOURS = [f"var(--c{number})" for number in range(1, 7)]
_SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"]


def condition_plot(name: str, analyses: Mapping[str, Analysis], of: str = "") -> Plot:
    """Returns the means of conditions as dots with intervals, and the items as thin lines.

    The levels of the first condition are side by side, those of the second have colours; each
    combination of further conditions, region and model has a panel. All panels have one scale.

    Args:
        name: of the chart.
        analyses: region -> its analysis; "" for that of whole rows.
        of: what the response is of, for the caption, e.g. " of region 2".
    """
    import altair as alt

    first = next(iter(analyses.values()))
    rows = [row for region, analysis in analyses.items() for row in _rows(region, analysis)]
    across, *others = first.conditions
    unit = f", {first.unit}" if first.unit else ""
    series = list(dict.fromkeys(row["series"] for row in rows))
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    encodings: dict[str, Any] = {
        "x": alt.X("level:N", sort=list(map(visible, first.conditions[across])))
        .title(visible(across))
        .axis(labelAngle=0, labelLimit=110, grid=False),
        "xOffset": alt.XOffset("series:N", sort=series),
        "y": alt.Y("value:Q")
        .title(f"{first.response.replace('_', ' ')}{unit}")
        .scale(zero=False, padding=8)
        .axis(tickCount=5),
        "color": alt.Color("series:N", sort=series)
        .scale(domain=series, range=_COLOURS)
        .legend(alt.Legend(title=visible(others[0]), symbolOpacity=1) if others else None),
        "shape": alt.Shape("series:N", sort=series)
        .scale(domain=series, range=_SHAPES)
        .legend(alt.Legend(title=visible(others[0])) if others else None),
    }
    shown = {key: encodings[key] for key in ("x", "xOffset", "y", "color")}
    base = alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]
    lines = (
        base.transform_filter("isValid(datum.item)")
        .mark_line(strokeWidth=1, opacity=0.18, tooltip=None)
        .encode(**shown, detail="item:N")
    )
    means = base.transform_filter("!isValid(datum.item)")
    intervals = means.mark_rule(strokeWidth=2).encode(**shown | {"y": "low:Q"}, y2="high:Q")
    tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in _TEXTS.items()]
    tips += [alt.Tooltip(f"{field}:Q", title=title, format=".2f") for field, title in _BITS.items()]
    dots = means.mark_point(filled=True, size=60, opacity=1).encode(**encodings, tooltip=tips)
    chart: Any = alt.layer(lines, intervals, dots)
    if len(panels) > 1:
        size = chart.properties(width=170, height=150)
        chart = size.facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=2)
    else:
        chart = chart.properties(width=360, height=200)
    spec = chart.to_dict(validate=False)
    n_items = max(len(cells.items) for a in analyses.values() for cells in a.items.values())
    items = f"the first {_MOST_ITEMS} items" if n_items > _MOST_ITEMS else "the items"
    caption = (
        f"Mean {first.response.replace('_', ' ')}{of} by condition. Vertical lines are 95% "
        f"intervals within items (Cousineau 2005; Morey 2008), thin lines are {items}."
    )
    return Plot("conditions", name, caption, {k: spec[k] for k in spec if k not in _UNUSED})


_UNUSED = ("config", "$schema")


def _rows(region: str, analysis: Analysis) -> Iterator[Datum]:
    """Rows of the chart: a mean per cell, and a value per item and cell."""
    cells = iter(analysis.cells.to_dict("records"))
    several = len(analysis.items) > 1
    for model, items in analysis.items.items():
        for i, levels in enumerate(product(*analysis.conditions.values())):
            level, *others = map(visible, levels)
            parts = [region, *(visible(model) for _ in range(several)), *others[1:]]
            place = {
                "level": level,
                "series": others[0] if others else "",
                "panel": ", ".join(filter(None, parts)),
            }
            cell = next(cells)
            bounds = {"low": cell["ci_low"], "high": cell["ci_high"]} if cell["n"] > 1 else {}
            yield place | {"value": cell["mean"], "n": cell["n"], **bounds}
            for item, values in zip(items.items[:_MOST_ITEMS], items.means, strict=False):
                yield place | {"item": visible(item), "value": float(values[i])}
