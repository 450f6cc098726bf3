"""`report.html`: one page without a network, of one run or of several on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lmdiag.comparison import RESAMPLES
from lmdiag.report.charts import MOST_BESIDE, Plot
from lmdiag.report.charts.kinds import TaskRuns, plots
from lmdiag.report.charts.models import model_figures, ranked_plots, trend_plots
from lmdiag.report.comparing import compared, differences, in_detail, is_percent, notes, p_text
from lmdiag.report.designs import Design, designs_of
from lmdiag.report.items import items, listed
from lmdiag.report.labels import (
    are_checkpoints,
    asked,
    framing_facts,
    model_facts,
    model_label,
    training_order,
)
from lmdiag.report.page import environment, frame
from lmdiag.report.tables import HeadlineFigure, Section, Source, headlines, sections, sources_of
from lmdiag.results import Figure
from lmdiag.results.run import joined_runs
from lmdiag.text import visible
from lmdiag.training_steps import trained_model

if TYPE_CHECKING:
    from lmdiag.results import Run


def render(
    runs: Run | Sequence[Run],
    *,
    chosen: Sequence[str] = (),
    region: str = "",
    designs: Sequence[Design] | None = None,
) -> str:
    """Returns the page of a run, or one that compares several.

    Args:
        runs: finished runs. Those of one model on different tasks are shown as one run; several
            models must be on the same data by the same protocol.
        chosen: ids of rows or contrasts that a task with too many items must list.
        region: number or name of the critical region of a design.
        designs: what `designs_of` returns for the runs, where it is known.

    Raises:
        BadInput: several runs that cannot be compared, no such region, or a data file of the
            package is missing.
    """
    several, sources, close = _in_order(runs)
    results = [source.results for source in sources]
    columns = {task: rows.columns() for run in several for task, rows in run.stimuli.items()}
    views = [
        _view(section, _task_runs(section.task, several, sources, close), chosen)
        | {"headlines": headlines(section.task, [sources[i] for i in close])}
        for section in sections(results, columns)
    ]
    is_table = len(sources) > MOST_BESIDE
    trends, ranked = trend_plots(sources), ranked_plots(sources) if is_table else []
    if designs is None:
        designs = designs_of([several[i] for i in close], region)
    pairs = compared(several, sources)
    grouped = groupby(model_figures(sources), key=lambda pair: pair[0]) if is_table else ()
    has_charts = bool(trends or designs or ranked) or any(view["plots"] for view in views)
    title = f"{len(results)} models"
    if are_checkpoints(results):
        first = results[0].model
        title = f"{visible(trained_model(first.id, first.revision))}: {len(results)} checkpoints"
    elif len(results) < 3:
        title = " and ".join(map(model_label, results))
    return environment().get_template("report.html.j2").render(
        title=title,
        sources=sources,
        close=[sources[i].label for i in close],
        asked=asked(results[0]),
        is_table=is_table,
        most_beside=MOST_BESIDE,
        grouped=[(task, [figure for _, figure in group]) for task, group in grouped],
        shade=_shade,
        trends=trends,
        ranked=ranked,
        designs=designs,
        views=views,
        comparisons=pairs,
        comparison_notes=notes([c for pair in pairs for c in pair.comparisons], RESAMPLES),
        p_text=p_text,
        is_percent=is_percent,
        model_facts=model_facts,
        framing_facts=framing_facts,
        **frame("report", charts=has_charts),
    )  # fmt: skip


def charts(runs: Run | Sequence[Run], region: str = "") -> list[Plot]:
    """Returns all charts of a run, or of several that are compared; `region` as for `render`.

    Raises:
        BadInput: several runs that cannot be compared.
    """
    several, sources, close = _in_order(runs)
    tasks = dict.fromkeys(task for run in several for task in run.results.tasks)
    designs = designs_of([several[i] for i in close], region)
    return [
        *(plot for design in designs for plot in design.plots),
        *trend_plots(sources),
        *(ranked_plots(sources) if len(sources) > MOST_BESIDE else ()),
        *differences(compared(several, sources)),
        *(plot for task in tasks for plot in plots(_task_runs(task, several, sources, close))),
    ]


def _in_order(runs: Run | Sequence[Run]) -> tuple[list[Run], list[Source], list[int]]:
    """The runs, joined by models, checkpoints in the order of training.

    Then the same as sources, and the positions of those that are shown in detail.
    """
    given = joined_runs(runs) if isinstance(runs, Sequence) else [runs]
    several = [given[i] for i in training_order([run.results for run in given])]
    return several, sources_of([run.results for run in several]), in_detail(several)


def _task_runs(
    task: str, runs: Sequence[Run], sources: Sequence[Source], close: Sequence[int]
) -> TaskRuns:
    having = [i for i in close if task in runs[i].results.tasks]
    of_task = [runs[i] for i in having]
    return TaskRuns(task, of_task, [sources[i] for i in having], [items(r, task) for r in of_task])


def _view(section: Section, data: TaskRuns, chosen: Sequence[str]) -> dict[str, Any]:
    """A diagnostic as the page shows it.

    `listed` is what the list of items holds, with the names of its runs in `models`; `total` is
    how many unperturbed items there are, listed or not.
    """
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
    return {
        "diagnostic": diagnostic,
        "section": section,
        "plots": [plot for plot in plots(data) if plot.kind != repeated],
        "listed": shown,
        "models": [source.label for source in data.sources],
        "total": len(data.items[0]),
    }


def _shade(figure: Figure | None, column: HeadlineFigure) -> int:
    """The shade of a cell, 0 to 8: of 100 percent, else between the lowest and highest value."""
    if figure is None or figure.value is None:
        return 0
    values = [x.value for x in column.figures if x and x.value is not None]
    low, high = (0.0, 1.0) if figure.is_percent else (min(values), max(values))
    return round(8 * (figure.value - low) / (high - low)) if high > low else 0
