"""Comparisons of two models on a terminal: one table a task and setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lmdiag.hub.text import visible
from lmdiag.report.numbers import p_value

if TYPE_CHECKING:
    from rich.console import Console

    from lmdiag.comparison import Comparison


def print_comparisons(found: Sequence[Comparison], console: Console) -> None:
    """Prints a table for each task and setting."""
    from rich.text import Text

    for (task, setting), rows in groupby(found, key=lambda one: (one.task, one.setting)):
        console.print()
        title = task if setting == "none" else f"{task}, {setting}"
        console.print(Text(visible(title), style="bold"))
        console.print(table(list(rows)))


def table(rows: Sequence[Comparison]) -> Any:
    """Returns the rows of one task in one setting as a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    drawn.add_column("", overflow="fold", min_width=max(len(one.measure) for one in rows))
    for heading in ("n", "A", "B", "A - B", "95% interval", "p", "p adj."):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for one in rows:
        percent = one.statistic in ("proportion", "share")
        a, b, difference, low, high = (
            figure(value, percent)
            for value in (one.a, one.b, one.difference, one.ci_low, one.ci_high)
        )
        p = f"{p_value(one.p)} {one.test[0]}"
        interval = f"[{low}, {high}]"
        drawn.add_row(
            Text(visible(one.measure)),
            str(one.n),
            a,
            b,
            difference,
            interval,
            p,
            p_value(one.p_adjusted),
        )
    return drawn


def figure(value: float, percent: bool) -> str:
    """Returns a value as readers see it: percent with one decimal, else three decimals."""
    if math.isnan(value):
        return "–"
    text = f"{100 * value:.1f}" if percent else f"{value:.3f}"
    return text.lstrip("-") if not text.strip("-0.") else text
