"""The means of the conditions of a design, with within-item intervals and the items behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pandas import DataFrame

from lmdiag.analysis.designs import UNITS, Analysis
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import means_chart
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
    first = next(iter(analyses.values()))
    data = DataFrame(row for region, part in analyses.items() for row in _rows(region, part))
    response = first.response.replace("_", " ")
    possible = _POSSIBLE.get(first.response, (-math.inf, math.inf))
    chart = means_chart(
        data,
        *map(visible, [*first.conditions][:2]),
        y=", ".join(filter(None, (response, UNITS.get(first.response)))),
        possible=possible,
        same_levels="suite" not in first.cells,
    )
    is_cut = data["low"].min() < possible[0] or data["high"].max() > possible[1]
    items = f"the first {_MOST_ITEMS} items" if data["n"].max() > _MOST_ITEMS else "the items"
    caption = (
        f"Mean {response}{of} by condition. Vertical lines are 95% intervals within items "
        f"(Cousineau 2005; Morey 2008){', cut where no value is possible' if is_cut else ''}, "
        f"thin lines are {items}."
    )
    return Plot("conditions", name, caption, chart)


def _rows(region: str, analysis: Analysis) -> Iterator[dict[str, Any]]:
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
