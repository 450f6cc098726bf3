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
    """Returns a value as text, in the form of its statistic; "–" for None.

    >>> number(0.389, "proportion"), number(0.99999, "share"), number(0.2333, "mean")
    ('38.9', '99.999', '0.233')
    >>> number(12.0, "median"), number(12.5, "median")
    ('12', '12.5')

    Proportions and shares are in percent with one decimal, and with more where one decimal would
    show less than 100 as 100.0. Medians are of ranks: they have a decimal only where they lie
    between two ranks, or are means over shuffles. Anything else has three decimals.
    """
    if statistic == "median":
        return decimals(value, 1).removesuffix(".0")
    if statistic not in ("proportion", "share") or value is None:
        return decimals(value, 3)
    percentage = 100 * value
    digits = 1
    is_almost_100 = 0.9995 <= abs(value) < 1  # one decimal shows these as 100.0
    while is_almost_100 and round(abs(percentage), digits) == 100:
        digits += 1
    return decimals(percentage, digits)


def signed(value: float | None, statistic: Statistic | None) -> str:
    """Returns `number` with its sign, `+5.6` or `−5.6`; zero and undefined values have none.

    >>> signed(0.056, "share"), signed(-0.056, "share"), signed(0.0, "share")
    ('+5.6', '−5.6', '0.0')
    """
    text = number(value, statistic)
    is_negative = text.startswith("−")
    is_zero = not text.strip("0.")
    if is_negative or is_zero or text == UNDEFINED:
        return text
    return f"+{text}"


def value(figure: Figure) -> str:
    """Returns a figure as text, e.g. `38.9`, `14.1 ± 3.1` over shuffles, or `0.233` of a mean.

    A sign behind it says on which side of its chance level it lies, as in `95.5↑`; see
    `CHANCE_SIGNS`.
    """
    spread = f" ± {number(figure.sd, figure.statistic)}" if figure.sd is not None else ""
    return number(figure.value, figure.statistic) + spread + figure.chance_sign


def ties(figure: Figure) -> str:
    """Returns how many contrasts of a figure are tied, e.g. `3 of 16 tied`; "" for none."""
    return f"{figure.n_tied} of {figure.n} tied" if figure.n_tied and figure.n else ""


def bounds(low: float | None, high: float | None, statistic: Statistic | None) -> str:
    """Returns an interval in brackets, e.g. `[20.3, 61.4]`; "" where a bound is not defined."""
    texts = [number(bound, statistic) for bound in (low, high)]
    return "" if UNDEFINED in texts else f"[{', '.join(texts)}]"


def whole_bounds(figure: Figure | None) -> str:
    """Returns the interval of a proportion or share in whole percent, `20–61`; "" without one."""
    if figure is None or figure.ci_low is None or figure.ci_high is None:
        return ""
    return f"{100 * figure.ci_low:.0f}–{100 * figure.ci_high:.0f}"


def reported_value(reported: PublishedFigure) -> str:
    """Returns a published figure, in percent, as text: `38.9`, or `14.1 ± 3.1` over shuffles."""
    spread = "" if reported.sd is None else f" ± {reported.sd:.1f}"
    return f"{reported.value:.1f}{spread}"


def published(reported: PublishedFigure | None, figure: Figure) -> str:
    """Returns a published figure and how far the run's lies from it, e.g. `38.9 (+5.6)`.

    Figures of further sources follow, as in `94.4 (+5.6); 100.0 Çelik, files`. A star marks a
    published figure outside the 95% interval of the run's. "" without a published figure.

    Args:
        reported: the published figure, in percent.
        figure: of the run, in [0, 1].
    """
    if reported is None:
        return ""
    points = 100 * (figure.value or 0.0) - reported.value
    star = ""
    if figure.ci_low is not None and figure.ci_high is not None:
        half_decimal = 0.05  # published figures are rounded to one decimal
        low = 100 * figure.ci_low - half_decimal
        high = 100 * figure.ci_high + half_decimal
        star = "" if low <= reported.value <= high else "*"
    others = "".join(f"; {other.value:.1f} {citation(other.source)}" for other in reported.others)
    return f"{reported_value(reported)} ({signed(points / 100, 'share')}){star}{others}"


def percent(share: float | None) -> str:
    """Returns a share, in [0, 1], as a sentence has it, e.g. `38.9%`."""
    return f"{number(share, 'share')}%"


def short_percent(share: float | None) -> str:
    """Returns `percent` without a decimal that is 0: `38.9%`, `40%`."""
    return f"{number(share, 'share').removesuffix('.0')}%"


def interval_in_sentence(figure: Any, statistic: Statistic | None) -> str:
    """Returns the interval of a figure behind a blank, e.g. ` [20.3, 61.4]`; "" without one.

    Args:
        figure: a record with `ci_low` and `ci_high`.
        statistic: of the figure, see `number`.
    """
    interval = bounds(figure.ci_low, figure.ci_high, statistic)
    return f" {interval}" if interval else ""


def count(number: int) -> str:
    """Returns a large number, as that of parameters, with a letter.

    >>> count(124439808), count(1_500_000_000), count(950)
    ('124M', '1.5B', '950')
    """
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            short = number / size
            digits = f"{short:.0f}" if short >= 10 else f"{short:.1f}".removesuffix(".0")
            return digits + letter
    return str(number)


def probability(p: float | None) -> str:
    """Returns a probability with two or three digits, e.g. `.421`, `.0037` or `4.2e−07`.

    Almost 1 is `> .999`; `–` stands for None and NaN.
    """
    if p is None or math.isnan(p):
        return UNDEFINED
    if p < 0.0001:
        return f"{p:.1e}".replace("-", "−")
    if 0.9995 <= p < 1:
        return "> .999"
    text = f"{p:.3f}" if p >= 0.0995 else f"{p:#.2g}"  # .0995 and more round to .100
    return text.removeprefix("0")


def p_value(p: float) -> str:
    """Returns a p-value with three decimals; `–` for NaN.

    >>> p_value(0.043), p_value(0.0004), p_value(0.9996), p_value(1.0), p_value(math.nan)
    ('.043', '< .001', '> .999', '1', '–')
    """
    if math.isnan(p):
        return UNDEFINED
    if p < 0.001:
        return "< .001"
    if p > 1 - 1e-9:  # a p of 1, but for the rounding of floats
        return "1"
    if p >= 0.9995:
        return "> .999"
    return f"{p:.3f}".removeprefix("0")


def p_in_sentence(p: float) -> str:
    """Returns a p-value as a sentence has it: `p = .043` or `p < .001`."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def bits(value: float | None) -> str:
    """Returns a surprisal, or a difference of two, with one decimal or one digit: `12.3`, `0.03`.

    `–` stands for None and NaN.
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    is_small = 0 < abs(value) < 0.095  # one decimal would show 0.0 or 0.1
    text = f"{value:.1g}" if is_small else f"{value:.1f}"
    return text.replace("-", "−")
