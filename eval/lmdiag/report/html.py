"""`report.html`: one page without a network, of one run or of several on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from altair.utils import schemapi

from lmdiag.comparison import not_compared
from lmdiag.report import labels, numbers
from lmdiag.report.charts import MOST_BESIDE, Plot
from lmdiag.report.charts.kinds import plots
from lmdiag.report.charts.models import ranked_plots, trend_plots
from lmdiag.report.charts.task_runs import TaskRuns
from lmdiag.report.comparisons import RunPair, compared, in_detail, notes
from lmdiag.report.designs import designs_of
from lmdiag.report.grid import Section, chance_legend
from lmdiag.report.item_list import item_list
from lmdiag.report.items import choose, items
from lmdiag.report.page import environment, frame
from lmdiag.report.selections import ReportFigures, chosen_run
from lmdiag.report.tables import HeadlineRow, headline_rows, sections
from lmdiag.results import Results, Run, cited_signature
from lmdiag.results.published import REFERENCES
from lmdiag.results.run import joined_runs
from lmdiag.text import visible
from lmdiag.types import FOUND_DESIGN, DesignOptions


class Report:
    """What pages, terminals and files show of a run, or of several that are compared.

    Attributes:
        runs: in the order in which they are shown.
        figures: of these runs.
        detailed: positions of the runs whose items and charts of items are shown.
    """

    def __init__(
        self,
        runs: Run | Sequence[Run],
        design: DesignOptions = FOUND_DESIGN,
        across: Sequence[str] = (),
        tasks: Sequence[str] = (),
        measures: Sequence[str] = (),
    ) -> None:
        """Puts the runs in order.

        Args:
            runs: finished runs. Those of one model on different tasks are shown as one run.
            design: how items of own data are analysed, beside what is stored with the runs.
            across: keys of `KNOBS` in which runs that are compared may differ; the layers of one
                model may in any case.
            tasks, measures: what is shown; all if empty.
        """
        given = joined_runs(runs) if isinstance(runs, Sequence) else [runs]
        given = [chosen_run(run, tasks, measures) for run in given]
        order = labels.order_of([run.results for run in given])
        if order and order.name == "layer":
            across = [*across, "layer"]
        self.runs = [given[i] for i in labels.positions_in_order([run.results for run in given])]
        self.figures = ReportFigures.of([run.results for run in self.runs])
        self.detailed = in_detail(self.runs)
        self._design = design
        self._across = across
        self._measures = measures

    @cached_property
    def comparisons(self) -> list[RunPair]:
        """Of pairs of the runs; `BadInput` if they differ in data or protocol."""
        return compared(self.runs, self.figures.sources, self._across, self._measures)

    @cached_property
    def designs(self) -> list[Section]:
        """The conditions of own data; `BadInput` if there is no such region."""
        return designs_of(self.runs, self._design)

    @cached_property
    def sections(self) -> list[Section]:
        """The tables of each task, with the formulas of suites."""
        columns = {task: rows.columns() for run in self.runs for task, rows in run.stimuli.items()}
        return sections(self.figures, columns)

    @property
    def all_tables(self) -> list[Section]:
        """The tables of own data's conditions, and of each task."""
        return [*self.designs, *self.sections]

    @cached_property
    def tasks(self) -> dict[str, TaskRuns]:
        """The detailed runs that have each task."""
        tasks = {}
        for task in self.figures.tasks:
            having = [i for i in self.detailed if task in self.runs[i].results.tasks]
            runs = [self.runs[i] for i in having]
            task_items = [items(run, task) for run in runs]
            looks = {self.figures.sources[i].label: self.detailed.index(i) for i in having}
            looks = looks if len(runs) > 1 else {}
            tasks[task] = TaskRuns(task, runs, self.figures.of_runs(having), task_items, looks)
        return tasks

    @cached_property
    def trends(self) -> list[Plot]:
        """The headline figures against training step or model size."""
        return trend_plots(self.figures)

    @cached_property
    def ranked(self) -> list[Plot]:
        """A chart per headline figure of many models."""
        return ranked_plots(self.figures) if len(self.runs) > MOST_BESIDE else []

    def charts(self) -> list[Plot]:
        """Returns all charts."""
        return [
            *(plot for design in self.designs for plot in design.plots),
            *self.trends,
            *self.ranked,
            *(plot for pair in self.comparisons for plot in pair.plots),
            *(plot for task_runs in self.tasks.values() for plot in plots(task_runs)),
        ]

    @schemapi.debug_mode(False)  # altair would validate each part of each chart
    def page(self, chosen: Sequence[str] = ()) -> str:
        """Returns the HTML page.

        Args:
            chosen: ids of rows or contrasts that a task with too many items must list.

        Raises:
            BadInput: several runs that cannot be compared, a region that the data do not have, or
                an unknown id.
        """
        if chosen:
            choose(self.runs, chosen)  # refuses unknown ids
        figures = self.figures
        pairs = self.comparisons
        close = figures.of_runs(self.detailed)
        results = [source.results for source in figures.sources]
        is_table = len(results) > MOST_BESIDE
        asks = labels.asked(results[0])
        views = [
            _view(section, self.tasks[section.task], chosen)
            | {"headlines": headline_rows(section.task, close)}
            for section in self.sections
        ]
        rows = [row for view in views for row in view["headlines"]]
        groups = [self.trends, self.designs, self.ranked, *(view["plots"] for view in views)]
        groups += [pair.plots for pair in pairs if len(pairs) < MOST_BESIDE]
        tests = [c for pair in pairs for c in pair.comparisons.values()]
        return environment().get_template("report.html.j2").render(
            title=labels.title(results), sources=figures.sources, designs=self.designs,
            signatures=dict.fromkeys(cited_signature(run.signature) for run in results),
            close=[source.label for source in close.sources],
            asked=asks, is_table=is_table, most_beside=MOST_BESIDE, views=views,
            trends=self.trends, ranked=self.ranked, comparisons=pairs,
            legend=_headline_legend(rows, asks, n=len(results), is_table=is_table),
            facts=_headline_facts(rows, several=len(results) > 1),
            has_scale=any(row.is_percent for row in rows),
            grouped=_columns(figures) if is_table else [],
            **_sizes(results, self.trends),
            samples=_samples(figures),
            comparison_notes=notes(tests) + not_compared(self.runs),
            **frame("report", charts=any(groups)),
        )  # fmt: skip


def _headline_facts(rows: Sequence[HeadlineRow], *, several: bool) -> list[str]:
    """Which facts the table of a few models has columns for."""
    facts = {"n"}.union(name for row in rows for name, text in row.facts.items() if text)
    facts -= {"published"} if several else {*REFERENCES.values()} if "published" in facts else set()
    names = ("n", "chance", "published", *REFERENCES.values(), "human")
    return [name for name in names if name in facts]


def _headline_legend(rows: Sequence[HeadlineRow], asks: str, *, n: int, is_table: bool) -> str:
    """What the headline figures of `n` models, and the marks beside them, mean.

    `asks` is what the models are asked; many models are in the rows of a table.
    """
    cells = [cell for row in rows for cell in row.cells]
    kinds = {cell.figure.is_percent for cell in cells if cell.figure}
    units = "surprisal in bits"
    units += "" if asks == "sentences" else ", and rank as the place among all words"
    chance = "Chance is" if is_table else "The dashed line is chance:"
    has_chance = any(row.facts["chance"] for row in rows)
    legend = chance_legend(cell.figure for cell in cells)
    sentences = {
        "A cell is the darker, the higher its value.": is_table,
        f"{units.capitalize()}, with 95% intervals.": True not in kinds,
        f"Percent with 95% intervals; {units}.": kinds == {True, False},
        "Percent with 95% intervals.": kinds == {True},
        f"◇ is the published figure of {'a' if n > 1 else 'this'} model.":
            not is_table and any(cell.published for cell in cells),
        "The figures of BERT are those of Ettinger (2020).":
            any(row.facts[name] for row in rows for name in REFERENCES.values()),
        "❘ is the human baseline.": not is_table and any(row.human for row in rows),
        f"{chance} the expected figure of a model that guesses.": has_chance,
        f"{legend}.": has_chance and legend != "",
    }  # fmt: skip
    return " ".join(sentence for sentence, is_needed in sentences.items() if is_needed)


def _columns(figures: ReportFigures) -> list[tuple[str, list[HeadlineRow]]]:
    """The columns of the table of many models, with the title of their diagnostic."""
    columns = []
    for task in figures.tasks:
        rows = headline_rows(task, figures)
        if defined := [row for row in rows if row.values.count(None) < len(row.values)]:
            columns.append((visible(figures.diagnostic(task).short_title), defined))
    return columns


def _sizes(results: Sequence[Results], trends: Sequence[Plot]) -> dict[str, Any]:
    """The training step or number of parameters of many models: what sorts a column, and a text."""
    models = [run.model for run in results]
    if trends and trends[0].kind == "layers":
        layers = [run.layer or 0 for run in results]
        return {"size_heading": "layer", "sizes": [(layer, str(layer)) for layer in layers]}
    if trends and trends[0].kind == "steps":
        steps = [model.training_step or 0 for model in models]
        return {"size_heading": "step", "sizes": [(step, f"{step:,}") for step in steps]}
    counts = [model.n_parameters for model in models]
    sizes = [(n, numbers.count(n)) if n else ("", numbers.UNDEFINED) for n in counts]
    return {"size_heading": "parameters", "sizes": sizes}


def _samples(figures: ReportFigures) -> list[str]:
    """Lines on the diagnostics of which a sample of the rows was asked."""
    results = {task: figures.having(task)[0].results for task in figures.tasks}
    return [
        f"{figures.diagnostic(task).short_title}: a sample of {run.data.tasks[task].n} rows "
        f"(--limit {run.protocol.limit})."
        for task, run in results.items()
        if run.protocol.limit
    ]


def _view(section: Section, data: TaskRuns, chosen: Sequence[str]) -> dict[str, Any]:
    """A diagnostic as the page shows it."""
    task = data.task
    runs = data.runs
    is_causal = any(run.results.model.kind == "causal" for run in runs)
    if is_causal and any(runs[0].stimuli[task].columns().get("right_context", ())):
        unread = "a causal model reads the left context only: the right context was not read"
        section = section._replace(remarks=[unread, *section.remarks])
    # The headline table has the same figures unless there are further settings.
    repeated = "figures" if len(runs) > 1 or len(data.settings) == 1 else ""
    shown_plots = [plot for plot in plots(data) if plot.kind != repeated]
    listed = item_list(data, chosen)
    return {"data": data, "section": section, "plots": shown_plots, "items": listed}
