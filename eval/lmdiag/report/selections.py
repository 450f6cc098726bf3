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
        """Returns the figures of some runs as one table, with the labels and ranks of `table`."""
        sources = [LabelledRun(*pair) for pair in zip(runs, run_labels(runs), strict=True)]
        table = figure_records(runs).rename(columns={"ci_low": "low", "ci_high": "high"})
        is_human = table["measure"].str.startswith("human_")
        table["measure"] = table["measure"].str.removeprefix("human_")
        table.loc[is_human, "setting"] = HUMAN
        names = [MeasureName.of(name) for name in table["measure"]]
        table = table.assign(
            model=[sources[number].label for number in table["run"]],
            is_percent=[figure.is_percent for figure in table["figure"]],
            published=table["published"] / 100,
            score=[name.base for name in names],
            cutoff=[name.parameter.replace("=", " ") for name in names],
            is_curve_point=[name.is_curve_point for name in names],
            address=table["measure"] + "|" + table["by"] + "|" + table["level"],
            level_rank=0,
            measure_label=[name.label for name in names],
            level_label="All",
            setting_rank=0,
            setting_label="",
        )
        is_text = {name: isinstance(table[name].dtype, pd.StringDtype) for name in table}
        labels = ("measure_label", "score", "cutoff")  # of runs without a figure, they have no type
        texts = [*labels, *(name for name in table if is_text[name])]
        of_runs = cls(sources, table.astype(dict.fromkeys(texts, object)))
        of_runs._name_values()
        return of_runs

    def _name_values(self) -> None:
        """Fills the ranks (for the order of rows) and labels of settings and levels.

        The diagnostic of each task declares both, so this goes task by task. Of own data, a level
        that two columns have is named with its column: "list A".
        """
        table = self.table
        for task, rows in table.groupby("task"):
            diagnostic = self.diagnostic(task)
            settings = diagnostic.settings_in_order(rows["setting"].unique())
            labels = {name: diagnostic.setting_label(name) for name in settings}
            labels[HUMAN] = "Human baseline"
            table.loc[rows.index, "setting_rank"] = rank_in(rows["setting"], settings)
            table.loc[rows.index, "setting_label"] = rows["setting"].map(labels)
            level_rows = rows[rows["by"] != ""]
            n_columns = level_rows.groupby("level")["by"].nunique()  # of own data with such a level
            for by, rows_of in level_rows.groupby("by"):
                levels = diagnostic.levels_in_order(by, rows_of["level"].unique())
                labels = {level: diagnostic.level_label(by, level) for level in levels}
                for level in levels if diagnostic.is_form else ():
                    if n_columns[level] > 1 and not labels[level].startswith(f"{by} "):
                        labels[level] = f"{by} {labels[level]}"
                table.loc[rows_of.index, "level_rank"] = rank_in(rows_of["level"], levels)
                table.loc[rows_of.index, "level_label"] = rows_of["level"].map(labels)
        with_level = table["measure_label"] + ", " + table["level_label"]
        table["address_label"] = table["measure_label"].mask(table["by"] != "", with_level)

    def of_runs(self, numbers: Sequence[int]) -> ReportFigures:
        """Returns the figures of some of the runs."""
        if [*numbers] == [*range(len(self.sources))]:
            return self
        rows = self.table[self.table["run"].isin(numbers)]
        positions = {number: i for i, number in enumerate(numbers)}
        return ReportFigures(
            [self.sources[i] for i in numbers], rows.assign(run=rows["run"].map(positions))
        )

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the runs has."""
        return [*dict.fromkeys(task for source in self.sources for task in source.results.tasks)]

    @property
    def are_first(self) -> bool:
        """Whether they stand before conditions: of suites, the share of predictions that hold."""
        return all(self.diagnostic(task).has_regions for task in self.tasks)

    def having(self, task: str) -> list[LabelledRun]:
        """Returns the runs that have a task."""
        return [source for source in self.sources if task in source.results.tasks]

    def diagnostic(self, task: str) -> Diagnostic:
        """Returns the declaration of a task."""
        return self.having(task)[0].results.diagnostic(task)

    def select(
        self, task: str, selection: FigureSelection | TableShape, *settings: str
    ) -> pd.DataFrame:
        """Returns figures of a task in the order of break-downs, levels, measures and runs.

        By default they are unperturbed, or, for a table with `setting` as a side, of all settings.
        Further columns: `by_rank`, `measure_rank`, and `heading`, which is the label of the
        selection or the usual one.
        """
        if isinstance(selection, TableShape):
            by = selection.by
            label = ""
            has_settings = "setting" in (*selection.rows, selection.columns)
        else:
            by = (selection.by,)
            label = selection.label
            has_settings = False
        compared = self._compared.get(task, [])
        by_ranks = _ranks(by)
        level_ranks = _ranks(selection.levels)
        measures = matching_names(dict.fromkeys(row[0] for row in compared), selection.measures)
        measure_ranks = _ranks(measures)
        shown = None if has_settings else settings or ("none",)
        rows = []
        for measure, row_by, level, setting, run, usual_rank, position in compared:
            is_listed = not level_ranks or not row_by or level in level_ranks
            is_shown = shown is None or setting in shown
            if measure in measure_ranks and row_by in by_ranks and is_listed and is_shown:
                level_rank = level_ranks.get(level, -1) if level_ranks else usual_rank
                rank = by_ranks[row_by], level_rank, measure_ranks[measure]
                rows.append((*rank, run, position))
        rows.sort()
        table = self.table.take([position for *_, position in rows])
        return table.assign(
            by_rank=[by_rank for by_rank, *_ in rows],
            level_rank=[level_rank for _, level_rank, *_ in rows],
            measure_rank=[measure_rank for _, _, measure_rank, *_ in rows],
            heading=label or table["address_label"],
        )

    @cached_property
    def _compared(self) -> dict[str, list[tuple[Any, ...]]]:
        """Task -> what `select` compares of its rows, and their positions in the table.

        A report selects some figures of a few hundred, often: pandas takes ten times as long.
        """
        names = ["measure", "by", "level", "setting", "run", "level_rank"]
        columns = [self.table[name].tolist() for name in names]
        rows_of: dict[str, list[tuple[Any, ...]]] = {}
        for position, (task, *row) in enumerate(zip(self.table["task"], *columns, strict=True)):
            rows_of.setdefault(task, []).append((*row, position))
        return rows_of


def _ranks(names: Iterable[str]) -> dict[str, int]:
    """Returns the position of each name."""
    return {name: rank for rank, name in enumerate(names)}


def rank_in(values: pd.Series[str], names: Sequence[str]) -> pd.Series[int]:
    """Returns the position of each value among some names."""
    return values.map(_ranks(names))


def headlines(task: str, figures: ReportFigures) -> pd.DataFrame:
    """Returns the headline figures of a task that any run has, in order, then those of choices.

    Where no run has those that the diagnostic declares, they are the usual ones. The column `human`
    has the human baseline as a record, None where the data do not contain it.
    """
    if task not in figures.headlines:
        figures.headlines[task] = _headlines(task, figures)
    return figures.headlines[task]


def _headlines(task: str, figures: ReportFigures) -> pd.DataFrame:
    """The same, computed."""
    measures = {*figures.table["measure"][figures.table["task"] == task]}
    declared = [x for x in figures.diagnostic(task).headlines if x.unless not in measures]
    parts = [figures.select(task, headline) for headline in declared]
    if all(part.empty for part in parts):
        parts = [figures.select(task, headline) for headline in diagnostics.get("").headlines]
    parts += [figures.select(task, headline) for headline in CHOICE_HEADLINES]
    table = pd.concat([part for part in parts if len(part)] or parts)
    is_human = (figures.table["task"] == task) & (figures.table["setting"] == HUMAN)
    human = figures.table[is_human].set_index("address")["figure"].to_dict()
    return table.assign(human=[human.get(address) for address in table["address"]])


def figures_of_sets(task: str, figures: ReportFigures) -> pd.DataFrame:
    """Returns the figures of small and extended sets, with `set`.

    Without rows unless the runs have several of the sets, of which the task is the first.
    """
    sets = figures.diagnostic(task).extended_sets
    tasks = [name for name in sets.labels if name in figures.tasks] if sets else []
    if sets is None or len(tasks) < 2 or tasks[0] != task:
        return figures.table[:0]
    parts = []
    for selection, name in product(sets.columns, tasks):
        part = figures.select(name, selection).assign(set=sets.labels[name])
        # without the name of a level, which the sets have different words for
        parts.append(part.assign(heading=selection.label or part["measure_label"]))
    return pd.concat(parts)


def chosen_run(run: Run, tasks: Sequence[str], measures: Sequence[str]) -> Run:
    """Returns a run with the figures of some tasks and measures; all if none are named.

    Raises:
        BadInput: the run has no such task, or no task has such a measure.
    """
    results = run.results
    for task in tasks:
        if task not in results.tasks:
            choices = f"{suggest(task, results.tasks)}: choose from {', '.join(results.tasks)}"
            raise BadInput(f"{run.path} has no task {task}{choices}")
    settings_of_task = {
        task: {**results.tasks[task]} for task in results.tasks if task in (tasks or (task,))
    }
    if measures:
        contents = [
            content for settings in settings_of_task.values() for content in settings.values()
        ]
        names = dict.fromkeys(name for content in contents for name in content.measures)
        chosen = select_measures(measures, names)
        for settings in settings_of_task.values():
            for setting, content in settings.items():
                figures = {x: figure for x, figure in content.measures.items() if x in chosen}
                settings[setting] = replace(content, measures=figures)
    return replace(run, results=replace(results, tasks=settings_of_task))
