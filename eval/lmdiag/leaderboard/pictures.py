"""Models compared by diagnostic: a dot and an interval for each model and figure, as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic
from lmdiag.leaderboard.standing import Standing
from lmdiag.report.charts.output import svg
from lmdiag.report.charts.specs import dots
from lmdiag.text import shortened

MOST_MODELS = 24
"""Models that a chart can hold and stay readable."""

_LONGEST = 30
"""Characters of a model's name in a chart."""

_WIDTH = 430
"""Pixels of a chart, which is scaled to its column of the page."""


class Picture(NamedTuple):
    """A chart of one diagnostic: its title, the element, and what it leaves out, "" for nothing."""

    title: str
    svg: str
    note: str


def pictures(rows: Sequence[Standing]) -> list[Picture]:
    """Returns a chart for each diagnostic that any row has figures of, in the rows' order."""
    declared = diagnostics.built_in().values()
    return [picture for diagnostic in declared for picture in _picture(diagnostic, rows)]


def _picture(diagnostic: Diagnostic, rows: Sequence[Standing]) -> Iterator[Picture]:
    """Yields the chart of a diagnostic, of its overview or, if that is one column, of all."""
    overview = [column for column in diagnostic.leaderboard if column.is_overview]
    columns = overview if len(overview) > 1 else diagnostic.leaderboard
    having = [row for row in rows if any(column.task_id in row.figures for column in columns)]
    if not having:
        return
    kept = having[:MOST_MODELS]
    rows_of = Counter(row.group for row in kept)
    data = [
        {
            "label": _name(row, rows_of[row.group] > 1),
            "series": column.label,
            "value": figure.value,
            "low": figure.ci_low,
            "high": figure.ci_high,
            "n": figure.n,
            "chance": figure.chance,
        }
        for row in kept
        for column in columns
        if (figure := row.figures.get(column.task_id)) is not None
    ]
    note = f"The first {MOST_MODELS} of {len(having)}." if len(having) > MOST_MODELS else ""
    yield Picture(diagnostic.title, svg(dots(data), _WIDTH), note)


def _name(row: Standing, several: bool) -> str:
    """Returns the label of a row; if its model has several rows, with what distinguishes them."""
    name = shortened(row.name, _LONGEST)
    if several and row.model:
        commit = row.model["commit"].removeprefix("sha256:")[:7]
        detail = f"{shortened(row.model['revision'] or commit, _LONGEST)} {row.model['dtype']}"
        return f"{name}\n{detail}" if row.is_first else f"· {detail}"
    return f"{name} (paper)" if row.origin == "published" else name
