"""What charts are made from: runs with their items, and figures as rows of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic
from lmdiag.report.charts.parts import Datum, Spec
from lmdiag.report.items import Item
from lmdiag.report.tables import Source
from lmdiag.results import Figure, Place
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.results import Run


class Plot(NamedTuple):
    """A chart with its data.

    Attributes:
        kind: see `lmdiag.report.charts.kinds.CHART_KINDS`; also `steps`, `differences`, `density`.
        name: unique among the charts of a report; the name of its file.
        caption: what it shows and how to read it.
        spec: the Vega-Lite specification.
    """

    kind: str
    name: str
    caption: str
    spec: Spec


@dataclass(frozen=True)
class Charted:
    """The material of the charts of one task.

    Attributes:
        task: its name.
        runs: the runs that have it.
        sources: the same runs as tables see them.
        items: the unperturbed items of each run, parallel to `runs`.
    """

    task: str
    runs: Sequence[Run]
    sources: Sequence[Source]
    items: Sequence[Sequence[Item]]

    @property
    def diagnostic(self) -> Diagnostic:
        """The declaration of the task."""
        return diagnostics.get(self.task)

    @property
    def settings(self) -> list[str]:
        """The settings of the first run, in the order of the paper."""
        return self.diagnostic.settings_in_order(self.runs[0].results.tasks[self.task])

    def names(self, *prefixes: str) -> list[str]:
        """The unperturbed measures of the first run whose names begin with one of the prefixes."""
        settings = self.runs[0].results.tasks[self.task]
        measures = settings["none"].measures if "none" in settings else {}
        return [name for name in measures if name.startswith(prefixes)]

    def levels(self, by: str) -> list[str]:
        """The levels of a break-down in the first run, in order."""
        results = self.runs[0].results
        measures = (results.measure(self.task, "none", name) for name in self.names(""))
        levels = dict.fromkeys(x for each in measures if each for x in each.by.get(by, ()))
        return self.diagnostic.levels_in_order(by, levels)

    def level_label(self, by: str, level: str) -> str:
        """The label of a level, broken at commas."""
        return visible(self.diagnostic.level_label(by, level)).replace(", ", ",\n")

    def rows(self, label: str, series: str, place: Sequence[str], run: int = 0) -> list[Datum]:
        """The figure at a place as the row of a chart; none if it is not there or not defined.

        Args:
            label, series: of the figure.
            place: setting, measure, and by and level if they are wanted.
            run: number of the run.
        """
        source, address = self.sources[run], Place(self.task, *place)
        figure = source.results.figure(address)
        if figure is None or figure.value is None:
            return []
        published = source.published.get(address)
        row = figure_row(figure) | {"label": label, "series": series}
        return [row | ({"published": published.value / 100} if published else {})]

    def each_run(self) -> Iterator[tuple[int, str, str]]:
        """Number, suffix of names and beginning of captions of each run; "" for a single one."""
        several = len(self.runs) > 1
        for i, source in enumerate(self.sources):
            yield i, f"-{i + 1}" if several else "", f"{source.label}: " if several else ""


def figure_row(figure: Figure) -> dict[str, Any]:
    """Returns a figure as fields of a row."""
    return {
        "value": figure.value, "low": figure.ci_low, "high": figure.ci_high, "n": figure.n,
        "chance": figure.chance, "sd": figure.sd,
    }  # fmt: skip
