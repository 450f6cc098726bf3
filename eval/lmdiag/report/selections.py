"""The figures of the runs of a report, and selections of them that tables and charts show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import pandas as pd

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic, FigureSelection
from lmdiag.report.labels import measure_label, run_labels
from lmdiag.results import Results
from lmdiag.results.figures import figure_records, select

HUMAN = "human"
"""Setting of the human baseline, which the results have as measures `human_...`."""


class LabelledRun(NamedTuple):
    """A run, and a name that tells it from the others."""

    results: Results
    label: str


@dataclass(frozen=True)
class ReportFigures:
    """The figures of the runs of a report.

    Attributes:
        sources: the runs with their names.
        table: the columns of `lmdiag.results.figures.figures`, of which `model` is the name of the
            run, `low` and `high` are the ends of intervals and `published` is in [0, 1]; and `run`
            (position of the run among the sources), `figure` and `reported` (the figure and the
            published one as records), `is_percent`, `score` and `cutoff` (the parts of the name of
            a measure), `address` (measure, break-down and level as one text), and `level_rank`
            (position of the level in the order of its break-down).
    """

    sources: Sequence[LabelledRun]
    table: pd.DataFrame

    @classmethod
    def of(cls, runs: Sequence[Results]) -> ReportFigures:
        """Returns the figures of some runs."""
        sources = [LabelledRun(*pair) for pair in zip(runs, run_labels(runs), strict=True)]
        table = figure_records(runs).rename(columns={"ci_low": "low", "ci_high": "high"})
        table["model"] = [sources[number].label for number in table["run"]]
        table["is_percent"] = [figure.is_percent for figure in table["figure"]]
        is_human = table["measure"].str.startswith("human_")
        table["measure"] = table["measure"].str.removeprefix("human_")
        table.loc[is_human, "setting"] = HUMAN
        parts = table["measure"].str.extract(r"([^@]*)@?(.*)")  # two columns even without rows
        table = table.assign(
            score=parts[0],
            cutoff=parts[1],
            address=table["measure"] + "|" + table["by"] + "|" + table["level"],
            published=table["published"] / 100,
            level_rank=0,
        )
        of_runs = cls(sources, table)
        for (task, by), rows in table[table["by"] != ""].groupby(["task", "by"], sort=False):
            levels = of_runs.diagnostic(task).levels_in_order(by, rows["level"].unique())
            table.loc[rows.index, "level_rank"] = rank_in(rows["level"], levels)
        return of_runs

    def of_runs(self, numbers: Sequence[int]) -> ReportFigures:
        """Returns the figures of some of the runs."""
        kept = self.table[self.table["run"].isin(numbers)]
        positions = {number: i for i, number in enumerate(numbers)}
        return ReportFigures(
            [self.sources[i] for i in numbers], kept.assign(run=kept["run"].map(positions))
        )

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the runs has."""
        return [*dict.fromkeys(task for source in self.sources for task in source.results.tasks)]

    def having(self, task: str) -> list[LabelledRun]:
        """Returns the runs that have a task."""
        return [source for source in self.sources if task in source.results.tasks]

    def diagnostic(self, task: str) -> Diagnostic:
        """Returns the declaration of a task."""
        return self.having(task)[0].results.diagnostic(task)

    def selected(
        self, task: str, selection: FigureSelection, setting: str = "none"
    ) -> pd.DataFrame:
        """Returns the selected figures of a task by level, measure and run, with `heading`."""
        of_task = self.table[self.table["task"] == task]
        by = (selection.by,)
        found = select(of_task, selection.measures, by, selection.levels, (setting,))
        measures = in_patterns(found["measure"].unique(), selection.measures)
        ranks = {"measure_rank": rank_in(found["measure"], measures)}
        if selection.levels:
            ranks["level_rank"] = rank_in(found["level"], selection.levels)
        ordered = found.assign(**ranks).sort_values(["level_rank", "measure_rank", "run"])
        diagnostic = self.diagnostic(task)
        addresses = zip(ordered["measure"], ordered["by"], ordered["level"], strict=True)
        names = [selection.label or figure_label(diagnostic, *address) for address in addresses]
        return ordered.assign(heading=names)


def rank_in(values: pd.Series[str], names: Sequence[str]) -> pd.Series[int]:
    """Returns the position of each value among some names."""
    return values.map({name: number for number, name in enumerate(names)})


def in_patterns(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names that match a pattern, in the order of the patterns."""
    return [*dict.fromkeys(x for pattern in patterns for x in names if fnmatchcase(x, pattern))]


def figure_label(diagnostic: Diagnostic, measure: str, by: str, level: str) -> str:
    """Returns the usual name of a figure: its measure and, of a break-down, the level."""
    words = diagnostic.level_label(by, level) if by else ""
    return ", ".join(filter(None, (measure_label(measure), words)))


def headlines(task: str, of_runs: ReportFigures) -> pd.DataFrame:
    """Returns the headline figures of a task that any run has, in order.

    Where no run has those that the diagnostic declares, they are the usual ones. Further columns:
    `heading`; `human`, the human baseline as a record, None where the data do not contain it.
    """
    baselines = of_runs.table[of_runs.table["setting"] == HUMAN]
    baselines = baselines[baselines["task"] == task].drop_duplicates("address")
    human = dict(zip(baselines["address"], baselines["figure"], strict=True))
    table = of_runs.table[:0].assign(heading="")
    for declared in (of_runs.diagnostic(task).headlines, diagnostics.get("").headlines):
        if declared and table.empty:
            table = pd.concat([of_runs.selected(task, selection) for selection in declared])
    return table.assign(human=[human.get(address) for address in table["address"]])


def figures_of_sets(task: str, of_runs: ReportFigures) -> pd.DataFrame:
    """Returns the figures of small and extended sets, with `set` and `heading`.

    Without rows unless the runs have several of the sets, of which the task is the first.
    """
    sets = of_runs.diagnostic(task).extended_sets
    tasks = [x for x in sets.labels if x in of_runs.tasks] if sets else []
    if sets is None or len(tasks) < 2 or tasks[0] != task:
        return of_runs.table[:0]
    parts = []
    for selection in sets.columns:
        for name in tasks:
            part = of_runs.selected(name, selection).assign(set=sets.labels[name])
            # without the name of a level, which the sets have different words for
            usual = part["measure"].map(measure_label)
            parts.append(part.assign(heading=selection.label or usual))
    return pd.concat(parts)
