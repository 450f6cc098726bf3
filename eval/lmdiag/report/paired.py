"""Comparisons of models on a terminal: one table per pair of models, task and setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.report.labels import measure_label
from lmdiag.report.numbers import number, p_value
from lmdiag.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from lmdiag.comparison import Comparison


def letter(number: int) -> str:
    """Returns the name of a run in the tables: A to Z, then AA, AB and so on.

    >>> [letter(number) for number in (0, 1, 25, 26, 27)]
    ['A', 'B', 'Z', 'AA', 'AB']
    """
    first, last = divmod(number, 26)
    return (letter(first - 1) if first else "") + chr(ord("A") + last)


def print_comparisons(found: Sequence[Comparison], console: Console) -> None:
    """Prints a table for each pair of models, task and setting."""
    from rich.text import Text

    several = len({one.second for one in found}) > 1
    for (second, task, setting), rows in groupby(
        found, key=lambda one: (one.second, one.task, one.setting)
    ):
        title = task if setting == "none" else f"{task}, {setting}"
        pair = f"A and {letter(second)}, " if several else ""
        console.print()
        console.print(Text(visible(pair + title), style="bold"))
        console.print(table(list(rows)))


def name(one: Comparison) -> str:
    """Returns what was compared: the measure, and the level of a break-down."""
    label = measure_label(one.measure)
    return (
        f"{label}, {diagnostics.get(one.task).level_label(one.by, one.level)}" if one.by else label
    )


def table(rows: Sequence[Comparison]) -> Any:
    """Returns the rows of one pair, task and setting as a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    other = letter(rows[0].second)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    drawn.add_column("", overflow="fold", min_width=max(len(name(one)) for one in rows))
    for heading in ("n", "A", other, f"A - {other}", "95% interval", "p", "p adj."):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for one in rows:
        percent = one.statistic in ("proportion", "share")
        a, b, difference, low, high = (
            number(value, percent).replace("−", "-")
            for value in (one.a, one.b, one.difference, one.ci_low, one.ci_high)
        )
        interval = "–" if math.isnan(one.ci_low) else f"[{low}, {high}]"
        p = "–" if math.isnan(one.p) else f"{p_value(one.p)} {one.test[0]}"
        figures = (str(one.n), a, b, difference, interval, p, p_value(one.p_adjusted))
        drawn.add_row(Text(visible(name(one))), *figures)
    return drawn
