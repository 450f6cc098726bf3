"""The runs of a task, with what their charts and lists are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from lmdiag.diagnostics import Diagnostic, FigureSelection
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import COLORS, MUTED
from lmdiag.report.run_items import RunItems
from lmdiag.report.selections import ReportFigures
from lmdiag.results import Run
from lmdiag.results.model_labels import NO_CONTEXT
from lmdiag.text import visible


@dataclass(frozen=True)
class TaskRuns:
    """The runs that have a task, with their items.

    Attributes:
        task: its name.
        runs: the runs.
        figures: of the same runs, in the same order.
        items: the unperturbed items of each run, in the same order.
        styles: label of each of several models -> number of its colour and shape in all charts; {}
            for one model.
    """

    task: str
    runs: Sequence[Run]
    figures: ReportFigures
    items: Sequence[RunItems]
    styles: Mapping[str, int] = field(default_factory=dict)

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
        measures: Sequence[str] = ("*",),
        by: str = "",
        levels: tuple[str, ...] = (),
        settings: Sequence[str] = ("none",),
    ) -> pd.DataFrame:
        """Returns the defined figures of the task, a row per figure and run.

        Args:
            measures: names, in which `*` stands for any part.
            by: break-down, e.g. "verb"; "" for figures over all items.
            levels: of the break-down; () for all.
            settings: names of perturbations, "none" for unperturbed rows; () for all.

        Returns:
            the columns of `ReportFigures.select`, `label` (of the measure, or of the level of a
            break-down) and `series` (the model where there are several, else the measure).
        """
        selection = FigureSelection((*measures,), by, levels)
        if not settings:
            all_figures = self.figures.table
            settings = all_figures.loc[all_figures["task"] == self.task, "setting"].unique()
        table = self.figures.select(self.task, selection, *settings).dropna(subset="value")
        labels = table["level_label" if by else "measure_label"].map(visible)
        names = table["model" if len(self.figures.sources) > 1 else "measure_label"]
        return table.assign(label=labels, series=names)

    def plot_of_run(self, i: int, plot: Plot) -> Plot:
        """Returns a chart of run i, whose name, caption and heading say which run it is of.

        For example, the name "shuffles" becomes "shuffles-2" for the second run, with index 1. The
        chart of a single run is returned as it is.
        """
        if len(self.runs) == 1:
            return plot
        label = self.figures.sources[i].label
        caption = f"{label}: {plot.caption}"
        return plot._replace(name=f"{plot.name}-{i + 1}", caption=caption, heading=label)

    def colors(self, i: int) -> list[str]:
        """Returns the colours of the series in a chart of run i alone, two at least.

        If there are several runs, all are that of the model, which is grey for word frequencies.
        """
        label = self.figures.sources[i].label
        number = self.styles.get(label)
        if number is None:
            return COLORS
        color = MUTED if label.startswith(NO_CONTEXT) else COLORS[number % len(COLORS)]
        return [color, color]
