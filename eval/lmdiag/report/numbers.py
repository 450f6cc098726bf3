"""Figures as readers see them: percent with one decimal, intervals in brackets."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmdiag.report.records import CHANCE, Cell

NOTHING = "–"
"""What stands for a figure that is not defined."""


def value(cell: Cell) -> str:
    """E.g. `38.9`, `14.1 ± 3.1` over shuffled runs, or `0.233` for what is not a proportion.

    A dagger marks a figure that cannot be told from chance: `52.3†`.
    """
    shown = figure(cell.value, cell.percent)
    spread = f" ± {figure(cell.sd, cell.percent)}" if cell.sd is not None else ""
    return shown + spread + (CHANCE if cell.at_chance else "")


def chances(levels: Sequence[float]) -> str:
    """Chance levels in percent, e.g. `50.0`, or `33.3–50.0` from the lowest to the highest."""
    ends = (*levels[:1], *levels[-1:])
    return "–".join(dict.fromkeys(figure(level, percent=True) for level in ends))


def interval(cell: Cell) -> str:
    """E.g. `[20.3, 61.4]`; "" where there is none, or a standard deviation stands instead."""
    if cell.low is None or cell.high is None or cell.sd is not None:
        return ""
    return f"[{figure(cell.low, cell.percent)}, {figure(cell.high, cell.percent)}]"


def published(cell: Cell) -> str:
    """The paper's figure and ours less it, e.g. `38.9 (+5.6)`; "" where there is none.

    A star marks a figure that lies outside our interval.
    """
    if cell.published is None:
        return ""
    theirs = cell.published.figure
    spread = "" if theirs.sd is None else f" ± {theirs.sd:.1f}"
    star = "*" if cell.published.within is False else ""
    return f"{theirs.value:.1f}{spread} ({signed(cell.published.difference / 100, True)}){star}"


def figure(number: float | None, percent: bool) -> str:
    """One number: a proportion in percent with one decimal, another with three; no `−0.0`."""
    if number is None or math.isnan(number):
        return NOTHING
    text = f"{100 * number:.1f}" if percent else f"{number:.3f}"
    return text.replace("-", "−") if text.strip("-0.") else text.lstrip("-")


def signed(number: float | None, percent: bool) -> str:
    """One number with its sign, e.g. a difference in percentage points; zero has none."""
    shown = figure(number, percent)
    return f"+{shown}" if shown[0] not in f"−{NOTHING}" and shown.strip("0.") else shown


def count(number: int) -> str:
    """A large number of parameters in a few letters, e.g. `110M`."""
    for size, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            short = number / size
            digits = f"{short:.0f}" if short >= 10 else f"{short:.1f}".removesuffix(".0")
            return digits + letter
    return str(number)


def probability(p: float | None) -> str:
    """A probability with two or three digits, e.g. `.421`, `.0037` or `4.2e−07`."""
    if p is None or math.isnan(p):
        return NOTHING
    if p < 0.0001:
        return f"{p:.1e}".replace("-", "−")
    return (f"{p:.3f}" if p >= 0.0995 else f"{p:#.2g}").removeprefix("0")


def p_value(p: float) -> str:
    """A p-value with three decimals, e.g. `.043`, or `< .001`."""
    if math.isnan(p):
        return NOTHING
    if p < 0.001:
        return "< .001"
    return "1" if p > 0.9995 else f"{p:.3f}".removeprefix("0")
