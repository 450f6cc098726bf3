"""Several runs beside each other: paired statistics, and curves over checkpoints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.hub.text import visible
from lmdiag.report.charts import curves, intervals
from lmdiag.report.charts.kinds import Plot
from lmdiag.report.checkpoints import are_checkpoints
from lmdiag.report.headline import headline
from lmdiag.report.labels import SETTINGS, TITLES
from lmdiag.report.paired import name
from lmdiag.report.tables import Source

if TYPE_CHECKING:
    from lmdiag.comparison import Comparison
    from lmdiag.results import Run


class Row(NamedTuple):
    """A measure of two runs: its name, and the comparison."""

    label: str
    compared: Comparison

    @property
    def percent(self) -> bool:
        """Whether the figures are shares, which readers see in percent."""
        return self.compared.statistic in ("proportion", "share")


class Group(NamedTuple):
    """The measures of one task in one setting."""

    title: str
    rows: list[Row]


class Compared(NamedTuple):
    """Two runs, measure by measure.

    Attributes:
        a, b: names of the models.
        groups: the measures by task and setting.
        reach: the largest bound of any share's interval, in either direction: the end of the scale.
    """

    a: str
    b: str
    groups: list[Group]
    reach: float


def compared(runs: Sequence[Run], sources: Sequence[Source]) -> list[Compared]:
    """Returns the comparisons of each later run with the first; of checkpoints, of last and first.

    The p-values are adjusted over all of them.

    Args:
        runs: finished runs.
        sources: the same, parallel.

    Raises:
        BadInput: the runs differ in data or protocol.
    """
    from lmdiag.comparison import RESAMPLES, compare_pairs, paired, refuse_different

    for other in runs[1:]:
        refuse_different(other, runs[0])
    others = ends(runs)[1:]
    pairs = (pair for i in others for pair in paired(runs[i], runs[0], i))
    found = compare_pairs(pairs, seed=0, resamples=RESAMPLES)
    names = [source.label for source in sources]
    by_run = {i: [one for one in found if one.second == i] for i in others}
    return [_compared(names[i], names[0], part) for i, part in by_run.items()]


def _compared(a: str, b: str, found: Sequence[Comparison]) -> Compared:
    groups = [
        Group(_title(task, setting), [Row(name(one), one) for one in part])
        for (task, setting), part in groupby(found, key=lambda one: (one.task, one.setting))
    ]
    shares = [row.compared for group in groups for row in group.rows if row.percent]
    bounds = [abs(bound) for one in shares for bound in (one.ci_low, one.ci_high)]
    reach = max((bound for bound in bounds if not math.isnan(bound)), default=1.0) or 1.0
    return Compared(a, b, groups, reach)


def _title(task: str, setting: str) -> str:
    title = TITLES.get(task, task)
    return title if setting == "none" else f"{title}, {SETTINGS.get(setting, setting)}"


# ---- checkpoints ---------------------------------------------------------------------------------


def ends(runs: Sequence[Run]) -> list[int]:
    """Returns which runs are looked at closely: all, but of checkpoints the first and the last."""
    checkpoints = are_checkpoints([run.results for run in runs])
    return [0, len(runs) - 1] if checkpoints else list(range(len(runs)))


def progress(sources: Sequence[Source]) -> list[Plot]:
    """Returns a chart per task if the runs are checkpoints: headline figures over training."""
    if not are_checkpoints([source.results for source in sources]):
        return []
    steps = [source.results["model"]["training_step"] for source in sources]
    found = []
    for each in headline(sources):
        rows = [
            {
                "step": step, "series": figure.label, "value": cell.value, "low": cell.low,
                "high": cell.high, "chance": cell.chance, "n": cell.n,
            }
            for figure in each.figures
            for step, cell in zip(steps, figure.cells, strict=True)
            if cell and cell.percent and cell.value is not None
        ]  # fmt: skip
        if rows:
            caption = f"{each.title}, over training steps. Bands are 95% intervals."
            found.append(Plot("steps", f"{each.task}-steps", caption, curves.steps(rows)))
    return found


def differences(pairs: Sequence[Compared]) -> list[Plot]:
    """Returns a chart per pair of runs: the differences that are in percent."""
    found = []
    for i, pair in enumerate(pairs, start=1):
        rows = [
            {
                "group": visible(group.title), "label": visible(row.label), "n": row.compared.n,
                "difference": row.compared.difference, "low": row.compared.ci_low,
                "high": row.compared.ci_high, "a": row.compared.a, "b": row.compared.b,
                "p_adjusted": row.compared.p_adjusted,
            }
            for group in pair.groups
            for row in group.rows
            if row.percent
        ]  # fmt: skip
        if rows:
            caption = f"Differences, {pair.a} minus {pair.b}. Lines are 95% intervals."
            spec = intervals.differences(rows)
            found.append(Plot("differences", f"differences-{i}", caption, spec))
    return found
