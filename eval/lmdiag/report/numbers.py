"""Numbers as readers see them: percent with one decimal, intervals in brackets."""

from __future__ import annotations

import math
from typing import Any

from lmdiag.measures import Statistic
from lmdiag.results import Figure
from lmdiag.results.published_figures import PublishedFigure, citation
from lmdiag.text import UNDEFINED as UNDEFINED
from lmdiag.text import decimals as decimals


def number(value: float | None, statistic: Statistic | None) -> str:
    """One number as its statistic is shown.

    Proportions and shares are in percent with one decimal, and with more where one would show less
    than 100 as 100.0; anything else has three decimals. A median, which is one of ranks, has a
    decimal only where it lies between two of them, or is a mean over shuffles.
    """
    if statistic == "median":
        return decimals(value, 1).removesuffix(".0")
    if statistic not in ("proportion", "share"):
        return decimals(value, 3)
    digits = 1
    while value and 0.9995 <= abs(value) < 1 and round(100 * abs(value), digits) == 100:
        digits += 1
    return decimals(value and 100 * value, digits)


def signed(value: float | None, statistic: Statistic | None) -> str:
    """One number with its sign, e.g. a difference in percentage points; zero has none."""
    text = number(value, statistic)
    return f"+{text}" if text[0] not in f"−{UNDEFINED}" and text.strip("0.") else text


def value(figure: Figure) -> str:
    """E.g. `38.9`, `14.1 ± 3.1` over shuffled runs, or `0.233` for what is not a proportion.

    A sign says whether a figure with a chance level is above it, `95.5↑`; see `CHANCE_SIGNS`.
    """
    spread = f" ± {number(figure.sd, figure.statistic)}" if figure.sd is not None else ""
    return number(figure.value, figure.statistic) + spread + figure.chance_sign


def ties(figure: Figure) -> str:
    """The number of contrasts that are tied, e.g. `3 of 16 tied`; "" for none."""
    return f"{figure.n_tied} of {figure.n} tied" if figure.n_tied and figure.n else ""


def bounds(low: float | None, high: float | None, statistic: Statistic | None) -> str:
    """Two bounds in brackets, e.g. `[20.3, 61.4]`; "" where they are not defined."""
    ends = [number(bound, statistic) for bound in (low, high)]
    return "" if UNDEFINED in ends else f"[{', '.join(ends)}]"


def whole_bounds(figure: Figure | None) -> str:
    """The interval of a proportion or share in whole percent, e.g. `20–61`; "" without one."""
    if figure is None or figure.ci_low is None or figure.ci_high is None:
        return ""
    return f"{100 * figure.ci_low:.0f}–{100 * figure.ci_high:.0f}"


def reported_value(reported: PublishedFigure) -> str:
    """A published figure in percent, e.g. `38.9` or `14.1 ± 3.1`."""
    return f"{reported.value:.1f}" + ("" if reported.sd is None else f" ± {reported.sd:.1f}")


def published(reported: PublishedFigure | None, figure: Figure) -> str:
    """The published figure and the run's minus it, e.g. `38.9 (+5.6)`; "" without one.

    Other figures of further sources follow, as in `94.4 (+5.6); 100.0 Çelik, files`. A star marks a
    figure that, but for its rounding to a decimal, lies outside the run's interval.
    """
    if reported is None:
        return ""
    difference = signed((100 * (figure.value or 0.0) - reported.value) / 100, "share")
    star = ""
    if figure.ci_low is not None and figure.ci_high is not None:
        is_within = 100 * figure.ci_low - 0.05 <= reported.value <= 100 * figure.ci_high + 0.05
        star = "" if is_within else "*"
    others = "".join(f"; {other.value:.1f} {citation(other.source)}" for other in reported.others)
    return f"{reported_value(reported)} ({difference}){star}{others}"


def percent(share: float | None) -> str:
    """A share in a sentence, e.g. `38.9%`."""
    return f"{number(share, 'share')}%"


def short_percent(share: float | None) -> str:
    """A share in percent, without a decimal that is 0."""
    return f"{number(share, 'share').removesuffix('.0')}%"


def within(figure: Any, statistic: Statistic | None) -> str:
    """The interval of a figure in a sentence, with a blank before it; "" without one."""
    interval = bounds(figure.ci_low, figure.ci_high, statistic)
    return f" {interval}" if interval else ""


def count(number: int) -> str:
    """A large number of parameters in a few letters, e.g. `110M`."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            short = number / size
            return (f"{short:.0f}" if short >= 10 else f"{short:.1f}".removesuffix(".0")) + letter
    return str(number)


def probability(p: float | None) -> str:
    """A probability with two or three digits, e.g. `.421`, `.0037` or `4.2e−07`."""
    if p is None or math.isnan(p):
        return UNDEFINED
    if p < 0.0001:
        return f"{p:.1e}".replace("-", "−")
    if 0.9995 <= p < 1:
        return "> .999"
    return (f"{p:.3f}" if p >= 0.0995 else f"{p:#.2g}").removeprefix("0")


def p_value(p: float) -> str:
    """A p-value with three decimals, e.g. `.043`, `< .001` or `> .999`."""
    if math.isnan(p) or p < 0.001:
        return "< .001" if p < 0.001 else UNDEFINED
    if p >= 0.9995:
        return "1" if p > 1 - 1e-9 else "> .999"  # rounding
    return f"{p:.3f}".removeprefix("0")


def bits(value: float | None) -> str:
    """A surprisal, or a difference of two, e.g. `12.3` or `0.034`."""
    if value is None or math.isnan(value):
        return UNDEFINED
    return f"{value:{'.1g' if 0 < abs(value) < 0.095 else '.1f'}}".replace("-", "−")
