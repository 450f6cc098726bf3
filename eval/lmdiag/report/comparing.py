"""Several runs beside each other: paired statistics, and which runs are shown in detail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lmdiag import diagnostics
from lmdiag.comparison import compare_runs, refuse_different, side_of
from lmdiag.report import numbers
from lmdiag.report.charts import MOST_BESIDE, Plot
from lmdiag.report.labels import are_checkpoints, comparison_label, measure_label
from lmdiag.report.numbers import UNDEFINED
from lmdiag.report.tables import Source
from lmdiag.results import Place
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.comparison import Comparison
    from lmdiag.results import Run


TESTS = {
    "mcnemar": "exact McNemar test where each item is right or wrong (m)",
    "sign-flip": "sign-flip test of a mean over items (s)",
    "permutation": "permutation test of a median or a correlation (p)",
}
"""Name of a test of `Comparison` -> what readers are told; its first letter stands beside p."""


def notes(comparisons: Sequence[Comparison], resamples: int) -> list[str]:
    """Returns how the columns of a table of comparisons were computed, and on what."""
    tests = {c.test for c in comparisons}
    few = "; none for fewer than 8 items" if any(c.n < 8 for c in comparisons) else ""
    n_tests = sum(not math.isnan(c.p) and not c.same_as for c in comparisons)
    present = [text for name, text in TESTS.items() if name in tests]
    lines = {
        f"95% intervals of differences: paired bootstrap over items, {resamples:,} resamples{few}":
            any(not math.isnan(c.ci_low) for c in comparisons),
        f"p: {'; '.join(present)}": bool(present),
        f"{UNDEFINED}: the two do not differ in any item, so there is nothing to test":
            "none" in tests,
        f"p adj.: by Holm's method over the {n_tests} distinct tests": n_tests > 1,
    }  # fmt: skip
    same = dict.fromkeys((c.measure, c.same_as) for c in comparisons if c.same_as)
    return [line for line, is_needed in lines.items() if is_needed] + [
        f"{measure_label(measure)} has the same numbers as {measure_label(other)} by construction: "
        "one test"
        for measure, other in same
    ]


def p_text(comparison: Comparison) -> str:
    """Returns the p-value of a comparison with the letter of its test, e.g. `.043 m`."""
    p = numbers.p_value(comparison.p)
    return p if p == UNDEFINED else f"{p} {comparison.test[0]}"


def is_percent(comparison: Comparison) -> bool:
    """Returns whether the figures are shares, which are shown in percent."""
    return comparison.statistic in ("proportion", "share")


class RunPair(NamedTuple):
    """Two runs, measure by measure.

    Attributes:
        a, b: names of the models; differences are the first minus the second.
        comparisons: of the measures that both have.
        colors: numbers of the models' colours on the page, from 1.
    """

    a: str
    b: str
    comparisons: Sequence[Comparison]
    colors: tuple[int, int]

    def at(self, place: Place) -> Comparison | None:
        """Returns the comparison of the figures at an address; None where there is none."""
        matches = (c for c in self.comparisons
                   if (c.task, c.setting, c.measure, c.by, c.level) == place)  # fmt: skip
        return next(matches, None)

    def color(self, comparison: Comparison) -> int:
        """Returns the number of the colour of the model with the larger figure; 0 for neither."""
        difference = comparison.difference
        return self.colors[difference < 0] if difference and not math.isnan(difference) else 0

    @property
    def groups(self) -> Iterator[tuple[str, list[tuple[str, Comparison]]]]:
        """Title of each task and setting, and the measures there by name."""
        for (task, setting), part in groupby(self.comparisons, key=lambda c: (c.task, c.setting)):
            diagnostic = diagnostics.get(task)
            after = "" if setting == "none" else f", {diagnostic.setting_label(setting)}"
            yield visible(diagnostic.title + after), [(comparison_label(c), c) for c in part]

    @property
    def reach(self) -> float:
        """The largest bound of any interval in percent, in either direction: the end of a scale."""
        percent = [c for c in self.comparisons if is_percent(c)]
        bounds = [abs(bound) for c in percent for bound in (c.ci_low, c.ci_high)]
        return max((bound for bound in bounds if not math.isnan(bound)), default=1.0) or 1.0


def compared(runs: Sequence[Run], sources: Sequence[Source]) -> list[RunPair]:
    """Returns the comparisons of the first run with each other one; of checkpoints, with the last.

    The p-values are adjusted over all of them.

    Args:
        runs: finished runs.
        sources: the same, parallel.

    Raises:
        BadInput: the runs differ in data or protocol.
    """
    sides = [side_of(run) for run in runs]
    for other in sides[1:]:
        refuse_different(sides[0], other)
    checkpoints = are_checkpoints([run.results for run in runs])
    shown = in_detail(runs) if checkpoints else range(len(runs))
    comparisons = compare_runs(*(sides[i] for i in shown))
    pairs = []
    for number, i in enumerate(shown[1:], start=1):
        of_pair = [c for c in comparisons if c.second == number]
        colors = (1, min(number, MOST_BESIDE) + 1)
        pairs.append(RunPair(sources[0].label, sources[i].label, of_pair, colors))
    return pairs


def differences(pairs: Sequence[RunPair]) -> list[Plot]:
    """Returns a chart per pair of runs: the differences that are in percent."""
    from pandas import DataFrame

    from lmdiag.report.charts.drawing import difference_chart
    from lmdiag.report.charts.parts import COLORS

    plots = []
    for i, pair in enumerate(pairs, start=1):
        rows = [
            {
                "group": title, "label": visible(label), "n": result.n, "first": result.a,
                "second": result.b, "difference": result.difference, "low": result.ci_low,
                "high": result.ci_high, "p_adjusted": result.p_adjusted,
            }
            for title, comparisons in pair.groups
            for label, result in comparisons
            if is_percent(result)
        ]  # fmt: skip
        if rows:
            caption = (
                f"Differences, {pair.a} minus {pair.b}, in the colour of the model with the larger "
                "figure. Lines are 95% intervals."
            )
            colors = [COLORS[number - 1] for number in pair.colors]
            chart = difference_chart(DataFrame(rows), pair.reach, colors)
            plots.append(Plot("differences", f"differences-{i}", caption, chart))
    return plots


def in_detail(runs: Sequence[Run]) -> list[int]:
    """Returns the runs whose items and charts of items are shown.

    Up to four all; of more, whose page would be too large, the first two; of checkpoints, the first
    and the last.
    """
    if are_checkpoints([run.results for run in runs]):
        return [0, len(runs) - 1]
    return list(range(len(runs) if len(runs) <= MOST_BESIDE else 2))
