"""What charts of a diagnostic are made of: its runs, their items, and selections of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from lmdiag.diagnostics import Diagnostic, FigureSelection
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import COLORS, dot_plot, meanings
from lmdiag.report.items import Item
from lmdiag.report.selections import ReportFigures
from lmdiag.results import FigureKey, Run
from lmdiag.text import visible

_DRAWN = [
    *FigureKey._fields,
    *("model", "label", "series", "panel", "at", "score", "cut-off"),
    *("value", "n", "chance", "versus_chance", "sd", "low", "high", "published", "human"),
    "shuffles",
]
"""Columns of figures that charts have."""


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Returns figures with the columns that charts have."""
    return table[[name for name in _DRAWN if name in table]]


def figure_plots(
    kind: str,
    name: str,
    title: str,
    table: pd.DataFrame,
    form: str = "%",
    colors: Sequence[str] = COLORS,
    looks: Mapping[str, int] = {},
) -> list[Plot]:
    """Returns a dot plot of figures, whose caption says what the marks mean; [] without rows."""
    if table.empty:
        return []
    chart = dot_plot(drawn(table), form=form, colors=colors, looks=looks)
    return [Plot(kind, name, f"{title}.{meanings(table)}", chart)]


@dataclass(frozen=True)
class TaskRuns:
    """The runs that have a task, with their items.

    Attributes:
        task: its name.
        runs: the runs.
        figures: of the same runs, in the same order.
        items: the unperturbed items of each run.
        models: names of the models of all charts, in the order of their colours and marks.
    """

    task: str
    runs: Sequence[Run]
    figures: ReportFigures
    items: Sequence[Sequence[Item]]
    models: Sequence[str] = ()

    @property
    def looks(self) -> dict[str, int]:
        """The number of the colour and mark of each model; empty where there is one model."""
        labels = [source.label for source in self.figures.sources]
        if len(labels) == 1:
            return {}
        return {name: i for i, name in enumerate(self.models) if name in labels}

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
        measures: Sequence[str] = (),
        by: str = "",
        levels: tuple[str, ...] = (),
        settings: Sequence[str] = ("none",),
    ) -> pd.DataFrame:
        """Returns figures that are defined, by default all unperturbed ones; () for all settings.

        Columns are those of `ReportFigures.select`, `label` (measure, or level of a break-down) and
        `series` (model, or measure).
        """
        selection = FigureSelection((*measures,) or ("*",), by, levels)
        known = self.figures.table
        settings = settings or known.loc[known["task"] == self.task, "setting"].unique()
        table = self.figures.select(self.task, selection, *settings).dropna(subset="value")
        labels = table["level_label" if by else "measure_label"].map(visible)
        names = table["model" if len(self.figures.sources) > 1 else "measure_label"]
        return table.assign(label=labels, series=names)

    def of_run(self, i: int, plot: Plot) -> Plot:
        """Returns the chart of run i, which names its model where there are several."""
        if len(self.runs) == 1:
            return plot
        label = self.figures.sources[i].label
        caption = f"{label}: {plot.caption}"
        return plot._replace(name=f"{plot.name}-{i + 1}", caption=caption, heading=label)

    def colors(self, i: int) -> list[str]:
        """Returns the colours of a chart of run i: of several runs, only that of its model."""
        number = self.looks.get(self.figures.sources[i].label)
        return COLORS if number is None else [COLORS[number % len(COLORS)]] * 2
