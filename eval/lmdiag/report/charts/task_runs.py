"""What charts of a diagnostic are made of: its runs, their items, and selections of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from lmdiag.diagnostics import Chart, Diagnostic
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import COLORS, distinct
from lmdiag.report.items import Item
from lmdiag.report.labels import measure_label
from lmdiag.report.selections import ReportFigures, in_patterns
from lmdiag.results import FigureKey, Run
from lmdiag.results.figures import select
from lmdiag.text import visible

DRAWN = ["value", "n", "chance", "versus_chance", "sd", "low", "high", "published", "model"]
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

    @cached_property
    def of_task(self) -> pd.DataFrame:
        """The figures of the task that are defined."""
        table = self.figures.table
        return table[table["task"] == self.task].dropna(subset="value")

    def table(
        self, *measures: str, by: str = "", setting: str = "none", model: str = ""
    ) -> pd.DataFrame:
        """Returns the figures of measures in their order, of which `*` stands for any characters.

        They have the columns of charts, and `label` and `series`.
        """
        found = select(self.of_task, measures, (by,), (), (setting,))
        names = in_patterns(found["measure"].unique(), measures)
        table = rows_in_order(found, "measure", names)[[*FigureKey._fields, *DRAWN]]
        if model:
            table = table[table["model"] == model]
        labels = table["measure"].map(measure_label)
        several = len(self.figures.sources) > 1
        return table.assign(label=labels, series=table["model"] if several else labels)

    def proportions(self, *measures: str, setting: str = "none") -> pd.DataFrame:
        """Returns the figures over all items that are in percent, without those of cut-offs."""
        table = self.table(*measures or "*", setting=setting)
        is_percent = self.of_task["is_percent"].reindex(table.index).astype(bool)
        return table[is_percent & ~table["measure"].str.contains("=")]

    def levels(self, chart: Chart, table: pd.DataFrame) -> pd.DataFrame:
        """Returns the figures of the levels of a chart, in their order and with their labels."""
        known = distinct(table, "level")
        levels = chart.levels or self.diagnostic.levels_in_order(chart.by, known)
        table = rows_in_order(table, "level", levels)
        label = self.diagnostic.level_label
        return table.assign(label=[visible(label(chart.by, level)) for level in table["level"]])

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


def rows_in_order(data: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    """Returns the rows with these names in a column, in their order."""
    return pd.concat([data[data[column] == name] for name in names] or [data[:0]])
