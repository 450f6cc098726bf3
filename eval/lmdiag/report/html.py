"""`report.html`: one page without a network, of one run or of several on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pandas import DataFrame

from lmdiag import diagnostics
from lmdiag.comparison import (
    Comparison,
    compare_runs,
    not_compared,
    refuse_different,
    side_of,
)
from lmdiag.report import labels
from lmdiag.report.charts import MOST_BESIDE, Plot
from lmdiag.report.charts.drawing import COLORS, difference_chart
from lmdiag.report.charts.kinds import plots
from lmdiag.report.charts.models import model_figures, ranked_plots, trend_plots
from lmdiag.report.charts.selection import TaskRuns
from lmdiag.report.designs import designs_of
from lmdiag.report.grid import Section
from lmdiag.report.items import items, listed
from lmdiag.report.page import environment, frame
from lmdiag.report.tables import HeadlineFigure, LabelledRun, ReportFigures, headlines, sections
from lmdiag.results import Figure, Place, Run
from lmdiag.results.run import joined_runs
from lmdiag.text import visible
from lmdiag.training_steps import trained_model
from lmdiag.types import FOUND_DESIGN, DesignOptions


def _content(
    runs: Run | Sequence[Run], design: DesignOptions, designs: Sequence[Section] | None = None
) -> dict[str, Any]:
    """What a page has beside its tables: the runs in order, their items and charts.

    `detailed` are the positions of the runs that are shown in detail, `tasks` these with items.
    """
    given = joined_runs(runs) if isinstance(runs, Sequence) else [runs]
    several = [given[i] for i in labels.training_order([run.results for run in given])]
    figures, close = ReportFigures.of([run.results for run in several]), in_detail(several)
    tasks = {}
    for task in dict.fromkeys(task for run in several for task in run.results.tasks):
        having = [i for i in close if task in several[i].results.tasks]
        of_task = [items(several[i], task) for i in having]
        runs_of = [several[i] for i in having]
        tasks[task] = TaskRuns(task, runs_of, figures.of_runs(having), of_task)
    return {
        "runs": several, "figures": figures, "sources": figures.sources,
        "detailed": close, "tasks": tasks,
        "designs": designs_of(several, design) if designs is None else designs,
        "trends": trend_plots(figures),
        "ranked": ranked_plots(figures) if len(several) > MOST_BESIDE else [],
        "comparisons": compared(several, figures.sources),
    }  # fmt: skip


def charts(runs: Run | Sequence[Run], design: DesignOptions = FOUND_DESIGN) -> list[Plot]:
    """Returns all charts of a run, or of several that are compared; `design` as for `render`.

    Raises:
        BadInput: several runs that cannot be compared.
    """
    content = _content(runs, design)
    return [
        *(plot for design in content["designs"] for plot in design.plots),
        *content["trends"],
        *content["ranked"],
        *(plot for pair in content["comparisons"] for plot in pair.plots),
        *(plot for of_task in content["tasks"].values() for plot in plots(of_task)),
    ]


def render(
    runs: Run | Sequence[Run],
    *,
    chosen: Sequence[str] = (),
    design: DesignOptions = FOUND_DESIGN,
    designs: Sequence[Section] | None = None,
) -> str:
    """Returns the page of a run, or one that compares several.

    Args:
        runs: finished runs. Those of one model on different tasks are shown as one run; several
            models must be on the same data by the same protocol.
        chosen: ids of rows or contrasts that a task with too many items must list.
        design: how items of own data are analysed, beside what is stored with the runs.
        designs: what `designs_of` returns for the runs, where it is known.

    Raises:
        BadInput: several runs that cannot be compared, no such region, or a data file of the
            package is missing.
    """
    content = _content(runs, design, designs)
    sources, several = content["sources"], content["runs"]
    close = content["figures"].of_runs(content["detailed"])
    results = [source.results for source in sources]
    columns = {task: rows.columns() for run in several for task, rows in run.stimuli.items()}
    views = [
        _view(section, content["tasks"][section.task], chosen)
        | {"headlines": headlines(section.task, close)}
        for section in sections(content["figures"], columns)
    ]
    figures, is_table = model_figures(content["figures"]), len(sources) > MOST_BESIDE
    grouped = groupby(figures, key=lambda pair: pair[0]) if is_table else ()
    title = f"{len(results)} models"
    if labels.are_checkpoints(results):
        first = results[0].model
        title = f"{visible(trained_model(first.id, first.revision))}: {len(results)} checkpoints"
    elif len(results) < 3:
        title = " and ".join(map(labels.model_label, results))
    pairs = content["comparisons"]
    plots = [content["trends"], content["designs"], content["ranked"], *(x["plots"] for x in views)]
    plots += [pair.plots for pair in pairs if len(pairs) < MOST_BESIDE]
    tests = [c for pair in content["comparisons"] for c in pair.comparisons.values()]
    return environment().get_template("report.html.j2").render(
        title=title, close=[source.label for source in close.sources],
        asked=labels.asked(results[0]),
        is_table=is_table, most_beside=MOST_BESIDE, shade=_shade, views=views,
        grouped=[(task, [figure for _, figure in group]) for task, group in grouped],
        comparison_notes=labels.notes(tests) + not_compared(several),
        **content, **frame("report", charts=any(plots)),
    )  # fmt: skip


def _view(section: Section, data: TaskRuns, chosen: Sequence[str]) -> dict[str, Any]:
    """A diagnostic as the page shows it; `listed` is what the list of items holds."""
    task, runs, diagnostic = data.task, data.runs, data.diagnostic
    shown = listed(data.items, diagnostic, chosen=chosen)
    for setting in data.settings if len(runs) == 1 else ():
        perturbation = diagnostic.perturbation(setting)
        if perturbation and not perturbation.shuffled:
            shown += listed([items(runs[0], task, setting)], diagnostic, setting, chosen)
    is_causal = any(run.results.model.kind == "causal" for run in runs)
    if is_causal and any(runs[0].stimuli[task].columns().get("right_context", ())):
        unread = "a causal model reads the left context only: the right context was not read"
        section = section._replace(remarks=[unread, *section.remarks])
    # The headline table has the same figures unless there are further settings.
    repeated = "figures" if len(runs) > 1 or len(data.settings) == 1 else ""
    shown_plots = [plot for plot in plots(data) if plot.kind != repeated]
    return {"data": data, "section": section, "plots": shown_plots, "listed": shown}


def _shade(figure: Figure | None, column: HeadlineFigure) -> int:
    """The shade of a cell, 0 to 8: of 100 percent, else between the lowest and highest value."""
    if figure is None or figure.value is None:
        return 0
    values = [x.value for x in column.figures if x and x.value is not None]
    low, high = (0.0, 1.0) if figure.is_percent else (min(values), max(values))
    return round(8 * (figure.value - low) / (high - low)) if high > low else 0


# ---- several runs --------------------------------------------------------------------------------


class RunPair(NamedTuple):
    """Two runs, measure by measure.

    Attributes:
        a, b: names of the models; differences are the first minus the second.
        comparisons: of the measures that both have, by their addresses.
        colors: numbers of the models' colours on the page, from 1.
        number: of the pair, from 1.
    """

    a: str
    b: str
    comparisons: dict[Place, Comparison]
    colors: tuple[int, int]
    number: int

    @property
    def groups(self) -> Iterator[tuple[str, list[tuple[str, Comparison]]]]:
        """Title of each task and setting, and the measures there by name."""
        for (task, setting), part in groupby(self.comparisons, key=lambda place: place[:2]):
            diagnostic = diagnostics.get(task)
            after = "" if setting == "none" else f", {diagnostic.setting_label(setting)}"
            found = [self.comparisons[place] for place in part]
            yield (
                visible(diagnostic.title + after),
                [(labels.comparison_label(c), c) for c in found],
            )

    @property
    def reach(self) -> float | None:
        """The largest bound of any interval in percent, in either direction: the end of a scale.

        None where nothing is in percent.
        """
        percent = [c for c in self.comparisons.values() if c.statistic in ("proportion", "share")]
        bounds = (abs(bound) for c in percent for bound in (c.ci_low, c.ci_high) if bound == bound)
        return (max(bounds, default=1.0) or 1.0) if percent else None

    @property
    def plots(self) -> list[Plot]:
        """A chart of the differences that are in percent for each task and setting."""
        rest = "in the colour of the model with the larger figure. Lines are 95% intervals."
        plots = []
        for i, (title, comparisons) in enumerate(self.groups, start=1):
            rows = [
                {
                    "label": visible(label), "n": c.n, "first": c.a, "second": c.b,
                    "difference": c.difference, "low": c.ci_low, "high": c.ci_high,
                    "p_adjusted": c.p_adjusted,
                }
                for label, c in comparisons
                if c.statistic in ("proportion", "share")
            ]  # fmt: skip
            if rows and self.reach:
                colors = [COLORS[n - 1] for n in self.colors]
                chart = difference_chart(DataFrame(rows), self.reach, colors)
                caption = f"{title}: differences, {self.a} minus {self.b}, {rest}"
                plots.append(Plot("differences", f"differences-{self.number}-{i}", caption, chart))
        return plots


def compared(runs: Sequence[Run], sources: Sequence[LabelledRun]) -> list[RunPair]:
    """Returns the comparisons of the first run with each other one; of checkpoints, with the last.

    The p-values are adjusted over all of them. `sources` are those of the runs, parallel.

    Raises:
        BadInput: the runs differ in data or protocol.
    """
    sides = [side_of(run) for run in runs]
    for other in sides[1:]:
        refuse_different(sides[0], other)
    checkpoints = labels.are_checkpoints([run.results for run in runs])
    shown = in_detail(runs) if checkpoints else range(len(runs))
    pairs = [
        RunPair(sources[0].label, sources[i].label, {}, (1, min(number, MOST_BESIDE) + 1), number)
        for number, i in enumerate(shown[1:], start=1)
    ]
    for c in compare_runs(*(sides[i] for i in shown)):
        place = Place(c.task, c.setting, c.measure, c.by, c.level)
        pairs[c.second - 1].comparisons[place] = c
    return pairs


def in_detail(runs: Sequence[Run]) -> list[int]:
    """Returns the runs whose items and charts of items are shown.

    Up to four all; of more, whose page would be too large, the first two; of checkpoints, the first
    and the last.
    """
    if labels.are_checkpoints([run.results for run in runs]):
        return [0, len(runs) - 1]
    return list(range(len(runs) if len(runs) <= MOST_BESIDE else 2))
