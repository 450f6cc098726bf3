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
from lmdiag.report.items import items
from lmdiag.report.labels import (
    are_checkpoints,
    asked,
    framing_facts,
    model_facts,
    model_label,
    training_order,
)
from lmdiag.report.listing import listed
from lmdiag.report.page import environment, frame
from lmdiag.report.sections import Section, sections
from lmdiag.report.tables import HeadlineFigure, Source, headlines, sources_of
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
    several, sources = _in_order(runs)
    close = in_detail(several)
    is_table = len(sources) > MOST_BESIDE
    views = [
        _view(section, _task_runs(section.task, several, sources), chosen)
        for section in sections(
            [source.results for source in sources],
            {task: rows.columns() for run in several for task, rows in run.stimuli.items()},
        )
    ]
    for view in views:
        view["headlines"] = headlines(view["section"].task, [sources[i] for i in close])
    trends, ranked = trend_plots(sources), ranked_plots(sources) if is_table else []
    if designs is None:
        designs = designs_of([several[i] for i in close], region)
    pairs = compared(several, sources)
    columns = groupby(model_figures(sources), key=lambda pair: pair[0]) if is_table else ()
    has_charts = bool(trends or designs or ranked) or any(view["plots"] for view in views)
    return environment().get_template("report.html.j2").render(
        title=_title(several),
        sources=sources,
        close=[sources[i].label for i in close],
        asked=asked(sources[0].results),
        is_table=is_table,
        most_beside=MOST_BESIDE,
        grouped=[(title, [figure for _, figure in group]) for title, group in columns],
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
    several, sources = _in_order(runs)
    tasks = dict.fromkeys(task for run in several for task in run.results.tasks)
    designs = designs_of([several[i] for i in in_detail(several)], region)
    return [
        *(plot for design in designs for plot in design.plots),
        *trend_plots(sources),
        *(ranked_plots(sources) if len(sources) > MOST_BESIDE else ()),
        *differences(compared(several, sources)),
        *(plot for task in tasks for plot in plots(_task_runs(task, several, sources))),
    ]


def _in_order(runs: Run | Sequence[Run]) -> tuple[list[Run], list[Source]]:
    """The runs, joined by models, checkpoints in the order of training; and the same as sources."""
    given = joined_runs(runs) if isinstance(runs, Sequence) else [runs]
    several = [given[i] for i in training_order([run.results for run in given])]
    return several, sources_of([run.results for run in several])


def _title(runs: Sequence[Run]) -> str:
    results = [run.results for run in runs]
    if are_checkpoints(results):
        model = results[0].model
        return f"{visible(trained_model(model.id, model.revision))}: {len(runs)} checkpoints"
    return " and ".join(map(model_label, results)) if len(runs) < 3 else f"{len(runs)} models"


def _shade(figure: Figure | None, column: HeadlineFigure) -> int:
    """The shade of a cell, 0 to 8: of 100 percent, else between the lowest and highest value."""
    if figure is None or figure.value is None:
        return 0
    values = [x.value for x in column.figures if x and x.value is not None]
    low, high = (0.0, 1.0) if figure.is_percent else (min(values), max(values))
    return round(8 * (figure.value - low) / (high - low)) if high > low else 0


# ---- a diagnostic --------------------------------------------------------------------------------


def _task_runs(task: str, runs: Sequence[Run], sources: Sequence[Source]) -> TaskRuns:
    close = [i for i in in_detail(runs) if task in runs[i].results.tasks]
    of_task = [runs[i] for i in close]
    return TaskRuns(task, of_task, [sources[i] for i in close], [items(r, task) for r in of_task])


def _view(section: Section, data: TaskRuns, chosen: Sequence[str]) -> dict[str, Any]:
    """A diagnostic as the page shows it.

    `listed` is what the list of items holds, with the names of its runs in `models`; `total` is
    how many unperturbed items there are, listed or not.
    """
    task, runs, diagnostic = data.task, data.runs, data.diagnostic
    columns = runs[0].stimuli[task].columns()
    shown = listed(data.items, diagnostic, chosen=chosen)
    for setting in data.settings if len(runs) == 1 else ():
        perturbation = diagnostic.perturbation(setting)
        if perturbation and not perturbation.shuffled:
            shown += listed([items(runs[0], task, setting)], diagnostic, setting, chosen)
    is_causal = any(run.results.model.kind == "causal" for run in runs)
    unread = ["a causal model reads the left context only: the right context was not read"]
    has_unread = is_causal and any(columns.get("right_context", ()))
    # The headline table has the same figures unless there are further settings.
    repeated = "figures" if len(runs) > 1 or len(data.settings) == 1 else ""
    return {
        "diagnostic": diagnostic,
        "section": section._replace(
            remarks=unread * has_unread + section.remarks,
        ),
        "plots": [plot for plot in plots(data) if plot.kind != repeated],
        "listed": shown,
        "models": [source.label for source in data.sources],
        "total": len(data.items[0]),
    }
