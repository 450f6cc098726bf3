"""Models by their size against each headline figure, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.leaderboard.entries import Row
from lmdiag.report.charts.output import svg
from lmdiag.report.numbers import count

_WIDTH, _HEIGHT = 380, 200
"""Pixels of a chart, which is scaled to its column of the page."""

_COLORS = {"masked": "var(--c1)", "causal": "var(--c2)", "seq2seq": "var(--c3)"}


def chart(column: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Returns the chart of one figure; a point's number is the rank of its model.

    Args:
        column: with the `task_id` and the `chance` of the figure, None without one chance level.
        rows: at least one of which has the figure.
    """
    import altair as alt

    sizes = [max(1, row.model.n_parameters) for row in rows]
    data = [
        {"size": size, "value": figure.value, "low": figure.ci_low, "high": figure.ci_high,
         "kind": row.model.kind, "rank": str(row.rank or ""), "chance": column["chance"]}
        for row, size in zip(rows, sizes, strict=True)
        if (figure := row.figures.get(column["task_id"])) is not None
    ]  # fmt: skip
    ends = min(sizes) / 4, max(sizes) * 4  # which has a power of ten in it
    ticks = [10**i for i in range(16) if ends[0] < 10**i < ends[1]]
    labels = "".join(f"datum.value == {tick} ? '{count(tick)}' : " for tick in ticks) + "''"
    x = alt.X("size:Q", title="parameters").scale(type="log", domain=ends, nice=False)
    color = alt.Color("kind:N").scale(domain=[*_COLORS], range=[*_COLORS.values()]).legend(None)
    y = alt.Y("value:Q", title=None).scale(domain=[0, 1]).axis(format="%", tickCount=5)
    whole = alt.Chart(alt.InlineData(values=data))
    points = whole.encode(x=x.axis(values=ticks, labelExpr=labels), color=color)
    layers = [
        whole.mark_rule(strokeDash=[3, 2], color="var(--muted)").encode(y="max(chance):Q"),
        points.mark_rule(strokeWidth=1.5, opacity=0.5).encode(y="low:Q", y2="high:Q"),
        points.mark_point(filled=True, size=50, opacity=1).encode(y=y),
        points.mark_text(dx=7, align="left", fontSize=11).encode(
            y="value:Q", text="rank:N", color=alt.value("var(--ink)")
        ),
    ]
    shown = layers if column["chance"] is not None else layers[1:]
    return svg(alt.layer(*shown, height=_HEIGHT).to_dict(), _WIDTH)
