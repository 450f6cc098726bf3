"""Models by their size against each headline figure, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag import diagnostics
from lmdiag.diagnostics import LeaderboardColumn
from lmdiag.hub.benchmark import columns
from lmdiag.leaderboard.rows import Row
from lmdiag.report.charts.output import svg
from lmdiag.report.numbers import count

_WIDTH, _HEIGHT = 380, 200
"""Pixels of a chart, which is scaled to its column of the page."""

_KINDS = {"masked": "var(--c1)", "causal": "var(--c2)", "seq2seq": "var(--c3)"}


def pictures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Returns title and chart of each column of the overview that any row has a figure in."""
    return [
        (f"{diagnostics.get(place.task).short_title}, {column.label}", _chart(column, rows))
        for place, column in columns().items()
        if column.is_overview and any(column.task_id in row.figures for row in rows)
    ]


def _chart(column: LeaderboardColumn, rows: Sequence[Row]) -> str:
    """Returns the chart of one figure; a point's number is the rank of its model."""
    import altair as alt

    data = [
        {
            "size": max(1, row.results.model.n_parameters),
            "value": figure.value,
            "low": figure.ci_low,
            "high": figure.ci_high,
            "kind": row.results.model.kind,
            "rank": "" if row.rank is None else str(row.rank),
        }
        for row in rows
        if (figure := row.figures.get(column.task_id)) is not None
    ]
    sizes = [max(1, row.results.model.n_parameters) for row in rows]
    ends = min(sizes) / 4, max(sizes) * 4  # which has a power of ten in it
    ticks = [10**i for i in range(16) if ends[0] < 10**i < ends[1]]
    labels = "".join(f"datum.value == {tick} ? '{count(tick)}' : " for tick in ticks) + "''"
    x = alt.X("size:Q", title="parameters").scale(type="log", domain=ends, nice=False)
    points = alt.Chart(alt.InlineData(values=data)).encode(
        x=x.axis(values=ticks, labelExpr=labels),
        color=alt.Color("kind:N").scale(domain=[*_KINDS], range=[*_KINDS.values()]).legend(None),
    )
    y = alt.Y("value:Q", title=None).scale(domain=[0, 1]).axis(format="%", tickCount=5)
    layers = [
        points.mark_rule(strokeWidth=1.5, opacity=0.5).encode(y="low:Q", y2="high:Q"),
        points.mark_point(filled=True, size=50, opacity=1).encode(y=y),
        points.mark_text(dx=7, align="left", fontSize=11).encode(
            y="value:Q", text="rank:N", color=alt.value("var(--ink)")
        ),
    ]
    chances = {row.figures[column.task_id].chance for row in rows if column.task_id in row.figures}
    if len(chances) == 1 and None not in chances:
        line = alt.Chart(alt.InlineData(values=[{"value": chances.pop()}]))
        dashed = line.mark_rule(strokeDash=[3, 2], color="var(--muted)")
        layers.insert(0, dashed.encode(y="value:Q"))
    return svg(alt.layer(*layers, height=_HEIGHT).to_dict(), _WIDTH)
