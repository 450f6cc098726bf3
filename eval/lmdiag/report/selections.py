"""The figures of the runs of a report, and selections of them that tables and charts show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from lmdiag import diagnostics
from lmdiag.diagnostics import CHOICE_HEADLINES, Diagnostic, FigureSelection, TableShape
from lmdiag.measures import MeasureName
from lmdiag.report.labels import run_labels
from lmdiag.results import Results, Run
from lmdiag.results.evaluation import select_measures
from lmdiag.results.figures import figure_records, matching_names
from lmdiag.text import suggest
from lmdiag.types import BadInput

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
        table: `lmdiag.results.figures.figure_records`, of which `model` is the name of the run,
            `low` and `high` are the ends of intervals and `published` is in [0, 1]; and
            `is_percent`, `score` and `cutoff` (the parts of the name of a measure),
            `is_curve_point`, `address` (measure, break-down and level as one text), `level_rank`
            and `setting_rank` (positions in the order of the break-down and of the settings), and
            `measure_label`, `level_label`, `setting_label` and `address_label` (words for these).
        headlines: task -> its headline figures, see `headlines`, where they are computed.
    """

    sources: Sequence[LabelledRun]
    table: pd.DataFrame
    headlines: dict[str, pd.DataFrame] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, runs: Sequence[Results]) -> ReportFigures:
        """Returns the figures of some runs as one table, with a row per figure.

        Columns are those of `figure_records` and, of the run, measure, level and setting of a
        figure, names, labels for readers and positions in the order of a report. For example, the
        measure "sensitivity@0.01" has the `score` "sensitivity" and the `cutoff` "0.01".

        Measures of people, `human_NAME`, become the measure NAME in the setting "human".
        """
        labels = run_labels(runs)
        sources = [LabelledRun(run, label) for run, label in zip(runs, labels, strict=True)]
        table = figure_records(runs).rename(columns={"ci_low": "low", "ci_high": "high"})
        is_human = table["measure"].str.startswith("human_")
        table["measure"] = table["measure"].str.removeprefix("human_")
        table.loc[is_human, "setting"] = HUMAN
        # of "mw@top=0.1", `base` is "mw", `parameter` "top=0.1", and `label` "MW, top 0.1"
        names = [MeasureName.of(name) for name in table["measure"]]
        table = table.assign(
            model=[sources[number].label for number in table["run"]],
            is_percent=[figure.is_percent for figure in table["figure"]],
            published=table["published"] / 100,  # papers give percent, charts need [0, 1]
            score=[name.base for name in names],
            cutoff=[name.parameter.replace("=", " ") for name in names],
            is_curve_point=[name.is_curve_point for name in names],
            address=table["measure"] + "|" + table["by"] + "|" + table["level"],
            measure_label=[name.label for name in names],
            # figures over all items keep these two; `_fill_ranks_and_labels` sets those of levels
            level_rank=0,
            level_label="All",
            # `_fill_ranks_and_labels` sets these two in every row
            setting_rank=0,
            setting_label="",
        )
        # texts as objects: selections of them are faster; of runs without a figure, the columns
        # of labels have no type from which one could tell that they are texts
        text_columns = {"measure_label", "score", "cutoff"}
        text_columns |= {name for name in table if isinstance(table[name].dtype, pd.StringDtype)}
        figures = cls(sources, table.astype(dict.fromkeys(text_columns, object)))
        figures._fill_ranks_and_labels()
        return figures

    def _fill_ranks_and_labels(self) -> None:
        """Fills the columns of `table` with ranks and labels of settings, levels and addresses.

        The diagnostic of each task declares both, so this goes task by task. Of own data, a level
        that two columns have is named with its column: "list A".
        """
        table = self.table
        for task, task_rows in table.groupby("task"):
            diagnostic = self.diagnostic(task)
            settings = diagnostic.settings_in_order(task_rows["setting"].unique())
            labels = {name: diagnostic.setting_label(name) for name in settings}
            labels[HUMAN] = "Human baseline"
            table.loc[task_rows.index, "setting_rank"] = rank_in(task_rows["setting"], settings)
            table.loc[task_rows.index, "setting_label"] = task_rows["setting"].map(labels)
            level_rows = task_rows[task_rows["by"] != ""]
            n_columns = level_rows.groupby("level")["by"].nunique()  # level -> columns that have it
            for by, by_rows in level_rows.groupby("by"):
                levels = diagnostic.levels_in_order(by, by_rows["level"].unique())
                labels = {level: diagnostic.level_label(by, level) for level in levels}
                # `is_form`: own data, whose columns may have any levels
                for level in levels if diagnostic.is_form else ():
                    if n_columns[level] > 1 and not labels[level].startswith(f"{by} "):
                        labels[level] = f"{by} {labels[level]}"
                table.loc[by_rows.index, "level_rank"] = rank_in(by_rows["level"], levels)
                table.loc[by_rows.index, "level_label"] = by_rows["level"].map(labels)
        with_level = table["measure_label"] + ", " + table["level_label"]
        table["address_label"] = table["measure_label"].mask(table["by"] != "", with_level)

    def select_runs(self, positions: Sequence[int]) -> ReportFigures:
        """Returns the figures of the runs at some positions, which get new positions from 0."""
        if [*positions] == [*range(len(self.sources))]:
            return self
        rows = self.table[self.table["run"].isin(positions)]
        new_position = {position: i for i, position in enumerate(positions)}
        sources = [self.sources[position] for position in positions]
        return ReportFigures(sources, rows.assign(run=rows["run"].map(new_position)))

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the runs has, in order of appearance."""
        return [*dict.fromkeys(task for source in self.sources for task in source.results.tasks)]

    @property
    def precede_conditions(self) -> bool:
        """Whether a report shows them before the effects of conditions, as those of test suites.

        The main figure of test suites is the share of the predictions that hold.
        """
        return all(self.diagnostic(task).has_regions for task in self.tasks)

    def runs_with(self, task: str) -> list[LabelledRun]:
        """Returns the runs that have a task."""
        return [source for source in self.sources if task in source.results.tasks]

    def diagnostic(self, task: str) -> Diagnostic:
        """Returns the declaration of a task, which is the same in all runs that have it."""
        return self.runs_with(task)[0].results.diagnostic(task)

    def select(
        self, task: str, selection: FigureSelection | TableShape, *settings: str
    ) -> pd.DataFrame:
        """Returns the rows of `table` that a selection, or a declared table, has of a task.

        They are in the order of the selection: by break-down, then level, measure and run. For
        example, the measure "accuracy*" by "polarity" selects the rows of accuracy@1 and accuracy@5
        at each polarity, of all runs.

        Args:
            task: name of the task.
            selection: says which measures, break-downs and levels are selected.
            settings: "none", unperturbed, if empty. A declared table with `setting` as a side has
                all settings.

        Returns:
            The columns of `table`, and `by_rank` and `measure_rank`, the positions in the
            selection; `heading`, the label of the selection or the usual one.
        """
        if isinstance(selection, TableShape):
            by = selection.by
            label = ""
            has_all_settings = "setting" in (*selection.rows, selection.columns)
        else:
            by = (selection.by,)
            label = selection.label
            has_all_settings = False
        # name of each selected break-down, level and measure -> its rank
        task_rows = self._rows_of_tasks.get(task, [])
        by_ranks = _ranks(by)
        level_ranks = _ranks(selection.levels)
        present_measures = dict.fromkeys(measure for measure, *_ in task_rows)
        measure_ranks = _ranks(matching_names(present_measures, selection.measures))
        selected_settings = settings or ("none",)
        # of each selected row, the ranks that it is sorted by, and its position in `table`
        rows = []
        for measure, row_by, level, setting, run, usual_rank, position in task_rows:
            if measure not in measure_ranks or row_by not in by_ranks:
                continue
            if not has_all_settings and setting not in selected_settings:
                continue
            # figures over all items, whose break-down is "", are selected whatever the levels
            if row_by and level_ranks and level not in level_ranks:
                continue
            # without listed levels, these are in their usual order; with such, figures over all
            # items, whose level is "", stand before those of the listed levels
            level_rank = level_ranks.get(level, -1) if level_ranks else usual_rank
            rows.append((by_ranks[row_by], level_rank, measure_ranks[measure], run, position))
        rows.sort()
        table = self.table.take([position for *_, position in rows])
        return table.assign(
            by_rank=[by_rank for by_rank, *_ in rows],
            level_rank=[level_rank for _, level_rank, *_ in rows],  # in place of the usual rank
            measure_rank=[measure_rank for _, _, measure_rank, *_ in rows],
            heading=label or table["address_label"],
        )

    @cached_property
    def _rows_of_tasks(self) -> dict[str, list[tuple[Any, ...]]]:
        """Task -> measure, break-down, level, setting, run, rank of the level and position per row.

        `select` reads these lists: a report selects a few of some hundred figures, often, for which
        pandas takes ten times as long.
        """
        names = ["measure", "by", "level", "setting", "run", "level_rank"]
        columns = [self.table[name].tolist() for name in names]
        rows_of: dict[str, list[tuple[Any, ...]]] = {}
        for position, (task, *values) in enumerate(zip(self.table["task"], *columns, strict=True)):
            rows_of.setdefault(task, []).append((*values, position))
        return rows_of


def _ranks(names: Iterable[str]) -> dict[str, int]:
    """Returns name -> its position, from 0."""
    return {name: rank for rank, name in enumerate(names)}


def rank_in(values: pd.Series[str], names: Sequence[str]) -> pd.Series[int]:
    """Returns the position, from 0, of each value among some names."""
    return values.map(_ranks(names))


def headlines(task: str, figures: ReportFigures) -> pd.DataFrame:
    """Returns the headline figures of a task: the few that stand for it, a row per figure and run.

    They are those that the diagnostic declares or, where no run has these, the usual ones; then
    those of runs that ask for choices. The columns are those of `ReportFigures.select`, and
    `human`, the human baseline as a `Figure`, None where the data do not contain it.
    """
    if task not in figures.headlines:
        figures.headlines[task] = _select_headlines(task, figures)
    return figures.headlines[task]


def _select_headlines(task: str, figures: ReportFigures) -> pd.DataFrame:
    """Returns the headline figures with their human baseline; `headlines` keeps this table."""
    is_of_task = figures.table["task"] == task
    measures = {*figures.table["measure"][is_of_task]}
    declared = [
        selection
        for selection in figures.diagnostic(task).headlines
        if selection.unless not in measures  # else this measure takes their place
    ]
    parts = [figures.select(task, selection) for selection in declared]
    if all(part.empty for part in parts):  # those that data of any name have
        parts = [figures.select(task, selection) for selection in diagnostics.get("").headlines]
    parts += [figures.select(task, selection) for selection in CHOICE_HEADLINES]
    table = pd.concat([part for part in parts if len(part)] or parts)
    human_rows = figures.table[is_of_task & (figures.table["setting"] == HUMAN)]
    human = human_rows.set_index("address")["figure"].to_dict()
    return table.assign(human=[human.get(address) for address in table["address"]])


def figures_of_sets(task: str, figures: ReportFigures) -> pd.DataFrame:
    """Returns the figures of a small set and its extended ones, with the column `set`.

    The table is empty unless the runs have several of the sets, and the task is the first of them.
    """
    sets = figures.diagnostic(task).extended_sets
    if sets is None:
        return figures.table[:0]
    tasks = [name for name in sets.labels if name in figures.tasks]
    if len(tasks) < 2 or tasks[0] != task:
        return figures.table[:0]
    parts = []
    for selection, name in product(sets.columns, tasks):
        part = figures.select(name, selection).assign(set=sets.labels[name])
        # without the name of a level, which the sets have different words for
        parts.append(part.assign(heading=selection.label or part["measure_label"]))
    return pd.concat(parts)


def chosen_run(run: Run, tasks: Sequence[str], measures: Sequence[str]) -> Run:
    """Returns a run whose results have some tasks and measures alone; all if none are named.

    Raises:
        BadInput: the run has no such task, or no task has such a measure.
    """
    results = run.results
    for task in tasks:
        if task not in results.tasks:
            choices = f"{suggest(task, results.tasks)}: choose from {', '.join(results.tasks)}"
            raise BadInput(f"{run.path} has no task {task}{choices}")
    chosen_tasks = [task for task in results.tasks if not tasks or task in tasks]
    # copies, of which the contents are replaced below
    settings_of_task = {task: {**results.tasks[task]} for task in chosen_tasks}
    if measures:
        contents = [
            content for settings in settings_of_task.values() for content in settings.values()
        ]
        names = dict.fromkeys(name for content in contents for name in content.measures)
        chosen = select_measures(measures, names)
        for settings in settings_of_task.values():
            for setting, content in settings.items():
                figures = {
                    name: figure for name, figure in content.measures.items() if name in chosen
                }
                settings[setting] = replace(content, measures=figures)
    return replace(run, results=replace(results, tasks=settings_of_task))
