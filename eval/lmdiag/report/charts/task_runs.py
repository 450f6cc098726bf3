"""What charts of a diagnostic are made of: its runs, their items, and selections of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lmdiag.diagnostics import Diagnostic, FigureSelection
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import COLORS
from lmdiag.report.items import Item
from lmdiag.report.labels import measure_label
from lmdiag.report.selections import ReportFigures
from lmdiag.results import FigureKey, Run
from lmdiag.text import visible

DRAWN = [
    *("value", "n", "chance", "versus_chance", "sd", "low", "high", "published"),
    *("model", "label", "series"),
]
"""Columns of figures that charts have beside the address."""


@dataclass(frozen=True)
class TaskRuns:
    """The runs that have a task, with their items.

    Attributes:
        task: its name.
        runs: the runs.
        figures: of the same runs, in the same order.
        items: the unperturbed items of each run.
    """

    task: str
    runs: Sequence[Run]
    figures: ReportFigures
    items: Sequence[Sequence[Item]]

    @property
    def diagnostic(self) -> Diagnostic:
        """The declaration of the task."""
        return self.figures.diagnostic(self.task)

    @property
    def settings(self) -> list[str]:
        """The settings of the first run, in the order of the paper."""
        return self.diagnostic.settings_in_order(self.runs[0].results.tasks[self.task])

    def table(
        self,
        *measures: str,
        by: str = "",
        levels: tuple[str, ...] = (),
        setting: str = "none",
        proportions: bool = False,
    ) -> pd.DataFrame:
        """Returns figures that are defined, in order; in measures, `*` stands for any characters.

        They have the columns of charts, and `label` (measure, or level of a break-down) and
        `series` (model, or measure). `proportions` have no other figures, and no cut-offs.
        """
        selection = FigureSelection(measures or ("*",), by, levels)
        table = self.figures.select(self.task, selection, setting).dropna(subset="value")
        if proportions:
            table = table[table["is_percent"] & ~table["measure"].str.contains("=")]
        names = table["measure"].map(measure_label)
        label = self.diagnostic.level_label
        labels = [visible(label(by, level)) for level in table["level"]] if by else names
        several = len(self.figures.sources) > 1
        table = table.assign(label=labels, series=table["model"] if several else names)
        return table[[*FigureKey._fields, *DRAWN]]

    def of_run(self, i: int, plot: Plot) -> Plot:
        """Returns the chart of run i, which names its model where there are several."""
        if len(self.runs) == 1:
            return plot
        label = self.figures.sources[i].label
        caption = f"{label}: {plot.caption}"
        return plot._replace(name=f"{plot.name}-{i + 1}", caption=caption, heading=label)

    def colors(self, i: int) -> list[str]:
        """Returns the colours of a chart of run i: of several runs, only that of its model."""
        return COLORS if len(self.runs) == 1 else [COLORS[i % len(COLORS)]] * 2
