"""The means of the conditions of a design, with within-item intervals and the items behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lmdiag.analysis.designs import UNITS, Analysis
from lmdiag.report.charts import specs
from lmdiag.report.charts.specs import Datum, Plot
from lmdiag.text import visible

_MOST_ITEMS = 60
"""Items that are drawn as lines, in each panel."""

_POSSIBLE = {"surprisal": (0, math.inf), "probability": (0, 1), "correct": (0, 1)}
"""Response -> its possible values; the interval of a few items may reach further."""


def condition_plot(name: str, analyses: Mapping[str, Analysis], of: str = "") -> Plot:
    """Returns the means of conditions as dots with intervals, and the items as thin lines.

    The levels of the first condition are side by side, those of the second have colours; each
    combination of further conditions, region, suite and model has a panel. All panels have one
    scale.

    Args:
        name: of the chart.
        analyses: region -> its analysis; "" for that of whole rows.
        of: what the response is of, for the caption, e.g. " of region 2".
    """
    import altair as alt

    first = next(iter(analyses.values()))
    rows = [row for region, analysis in analyses.items() for row in _rows(region, analysis)]
    across, *others = first.conditions
    title = visible(others[0]) if others else None
    names, panels = specs.distinct(rows, "series"), specs.distinct(rows, "panel")
    unit = f", {UNITS[first.response]}" if first.response in UNITS else ""
    low, high = _POSSIBLE.get(first.response, (-math.inf, math.inf))
    ends: dict[str, Any] = (
        {"domainMin": low} if any(row.get("low", low) < low for row in rows) else {}
    )
    ends |= {"domainMax": high} if any(row.get("high", high) > high for row in rows) else {}
    y = alt.Y("value:Q", title=first.response.replace("_", " ") + unit)
    y = y.scale(zero=False, **ends)
    levels = [visible(level) for level in first.conditions[across]]
    shared = {
        "x": alt.X("level:N", sort=levels, title=visible(across)).axis(
            labelAngle=0, labelLimit=110, grid=False
        ),
        **({"xOffset": alt.XOffset("series:N", sort=names)} if others else {}),
        "y": y.axis(tickCount=5),
        "color": specs.series("color", "series", names, specs.COLORS, title),
    }
    chart = alt.Chart(alt.Data(values=[]))  # type: ignore[no-untyped-call]
    means = chart.transform_filter("!isValid(datum.item)")
    lines = chart.transform_filter("isValid(datum.item)").mark_line(
        strokeWidth=1, opacity=0.18, tooltip=None
    )
    shown = specs.tips(rows, {"panel": "panel", "level": "level", "series": "of", "n": "items"})
    shown += specs.tips(rows, {"value": "mean", "low": "from", "high": "to"}, ".2f")
    shape = specs.series("shape", "series", names, specs.SHAPES, title)
    whole: Any = alt.layer(
        lines.encode(**shared, detail="item:N"),
        means.mark_rule(strokeWidth=2, clip=True).encode(**shared | {"y": "low:Q"}, y2="high:Q"),
        means.mark_point(filled=True, size=60, opacity=1).encode(
            **shared, shape=shape, tooltip=shown
        ),
    )
    if len(panels) > 1:
        facet = alt.Facet("panel:N", sort=panels, title=None)
        whole = whole.properties(width=170, height=150).facet(facet, columns=2)
        if "suite" in first.cells:  # with other levels
            whole = whole.resolve_scale(x="independent")
    else:
        whole = whole.properties(width=360, height=200)
    counts = [row["n"] for row in rows if "n" in row]
    items = f"the first {_MOST_ITEMS} items" if max(counts) > _MOST_ITEMS else "the items"
    cut = ", cut where no value is possible" if ends else ""
    caption = (
        f"Mean {first.response.replace('_', ' ')}{of} by condition. Vertical lines are 95% "
        f"intervals within items (Cousineau 2005; Morey 2008){cut}, thin lines are {items}."
    )
    return Plot("conditions", name, caption, specs.from_altair(whole, rows))


def _rows(region: str, analysis: Analysis) -> Iterator[Datum]:
    """Rows of the chart: a mean per cell, and a value per item and cell."""
    across, *others = analysis.conditions
    keys = [name for name in ("suite", "model", *analysis.conditions) if name in analysis.items]
    order = analysis.items.groupby(keys, sort=False).cumcount()
    cells = analysis.cells.rename(columns={"mean": "value", "ci_low": "low", "ci_high": "high"})
    for table in (cells, analysis.items[order < _MOST_ITEMS]):
        for row in table.to_dict("records"):
            model = row["model"] if analysis.has_models else ""
            parts = (region, row.get("suite", ""), model, *(row[name] for name in others[1:]))
            place = {
                "level": visible(row[across]),
                "series": visible(row[others[0]]) if others else "",
                "panel": ", ".join(visible(part) for part in parts if part),
            }
            figures = {name: row[name] for name in ("value", "n", "low", "high") if name in row}
            item = {"item": visible(row["item"])} if "item" in row else {}
            yield place | figures | item
