"""`report.html`: one page without a network, of one run or of several on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.comparison import RESAMPLES
from lmdiag.diagnostics import Diagnostic
from lmdiag.report.charts.charted import Charted
from lmdiag.report.charts.kinds import plots
from lmdiag.report.charts.models import MOST_BESIDE, model_figures, ranked_plots, trend_plots
from lmdiag.report.charts.specs import Plot
from lmdiag.report.comparing import (
    compared,
    differences,
    in_detail,
    is_percent,
    notes,
    p_text,
)
from lmdiag.report.designs import Design, designs_of
from lmdiag.report.formats.grid import grid_of
from lmdiag.report.items import items
from lmdiag.report.labels import (
    are_checkpoints,
    asked,
    framing_facts,
    model_facts,
    model_label,
    training_order,
)
from lmdiag.report.listing import ListedItem, listed
from lmdiag.report.page import environment, frame
from lmdiag.report.sections import Section, sections
from lmdiag.report.tables import HeadlineFigure, Source, Table, headlines, sources_of
from lmdiag.results import Figure
from lmdiag.results.run import joined_runs
from lmdiag.text import visible
from lmdiag.training_steps import trained_model

if TYPE_CHECKING:
    from lmdiag.results import Run


class View(NamedTuple):
    """A diagnostic as the page shows it.

    Attributes:
        diagnostic: its declaration.
        section: its tables.
        headlines: its headline figures, of the runs that are shown in detail.
        plots: its charts.
        items: what the list holds.
        models: names of the runs in the list.
        total: how many unperturbed items there are, listed or not.
    """

    diagnostic: Diagnostic
    section: Section
    headlines: list[HeadlineFigure]
    plots: list[Plot]
    items: list[ListedItem]
    models: list[str]
    total: int


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
    close = [sources[i] for i in in_detail(several)]
    views = [
        _view(section, _charted(section.task, several, sources), chosen, close)
        for section in sections([source.results for source in sources])
    ]
    trends = trend_plots(sources)
    is_table = len(sources) > MOST_BESIDE
    ranked = ranked_plots(sources) if is_table else []
    if designs is None:
        designs = designs_of([several[i] for i in in_detail(several)], region)
    pairs = compared(several, sources)
    has_charts = any(view.plots for view in views) or bool(trends or designs or ranked)
    page = environment().get_template("report.html.j2")
    return page.render(
        title=_title(several),
        sources=sources,
        close=[source.label for source in close],
        comparisons=pairs,
        comparison_notes=notes([one for pair in pairs for one in pair.comparisons], RESAMPLES),
        p_text=p_text,
        trends=trends,
        ranked=ranked,
        is_table=is_table,
        most_beside=MOST_BESIDE,
        grouped=_grouped(sources) if is_table else [],
        shade=_shade,
        views=views,
        designs=designs,
        asked=asked(sources[0].results),
        is_percent=is_percent,
        grid_of=grid_of,
        model_facts=model_facts,
        framing_facts=framing_facts,
        **frame("report", charts=has_charts),
    )


def charts(runs: Run | Sequence[Run], region: str = "") -> list[Plot]:
    """Returns all charts of a run, or of several that are compared; `region` as for `render`.

    Raises:
        BadInput: several runs that cannot be compared.
    """
    several, sources = _in_order(runs)
    tasks = dict.fromkeys(task for run in several for task in run.results.tasks)
    own = [plot for task in tasks for plot in plots(_charted(task, several, sources))]
    designs = designs_of([several[i] for i in in_detail(several)], region)
    first = [plot for design in designs for plot in design.plots]
    models = [*trend_plots(sources), *(ranked_plots(sources) if len(sources) > MOST_BESIDE else ())]
    return [*first, *models, *differences(compared(several, sources)), *own]


def _grouped(sources: Sequence[Source]) -> list[tuple[str, list[HeadlineFigure]]]:
    """Title of each diagnostic and its headline figures: the columns of a table of models."""
    groups = groupby(model_figures(sources), key=lambda pair: pair[0])
    return [(title, [figure for _, figure in group]) for title, group in groups]


def _shade(figure: Figure | None, column: HeadlineFigure) -> int:
    """The shade of a cell, 0 to 8: of 100 percent, else between the lowest and highest value."""
    if figure is None or figure.value is None:
        return 0
    values = [one.value for one in column.figures if one and one.value is not None]
    low, high = (0.0, 1.0) if figure.is_percent else (min(values), max(values))
    return round(8 * (figure.value - low) / (high - low)) if high > low else 0


def _in_order(runs: Run | Sequence[Run]) -> tuple[list[Run], list[Source]]:
    """The runs, joined by models, checkpoints in the order of training; and the same as sources."""
    given = joined_runs(runs) if isinstance(runs, Sequence) else [runs]
    several = [given[i] for i in training_order([run.results for run in given])]
    return several, sources_of([run.results for run in several])


def _title(runs: Sequence[Run]) -> str:
    results = [run.results for run in runs]
    names = [model_label(each) for each in results]
    if are_checkpoints(results):
        model = results[0].model
        return f"{visible(trained_model(model.id, model.revision))}: {len(runs)} checkpoints"
    return " and ".join(names) if len(names) < 3 else f"{len(names)} models"


def _charted(task: str, runs: Sequence[Run], sources: Sequence[Source]) -> Charted:
    close = [i for i in in_detail(runs) if task in runs[i].results.tasks]
    own = [runs[i] for i in close]
    return Charted(task, own, [sources[i] for i in close], [items(run, task) for run in own])


def _view(
    section: Section, charted: Charted, chosen: Sequence[str], close: Sequence[Source]
) -> View:
    task, runs, diagnostic = charted.task, charted.runs, charted.diagnostic
    shown = listed(charted.items, diagnostic, chosen=chosen)
    if any(run.results.model.kind == "causal" for run in runs) and any(
        runs[0].stimuli[task].columns().get("right_context", ())
    ):
        unread = "a causal model reads the left context only: the right context was not read"
        section = replace(section, remarks=(unread, *section.remarks))
    for setting in charted.settings if len(runs) == 1 else ():
        perturbation = diagnostic.perturbation(setting)
        if perturbation and not perturbation.shuffled:
            shown += listed([items(runs[0], task, setting)], diagnostic, setting, chosen)
    section = _with_formulas(section, runs[0])
    # The headline table has the same figures unless there are further settings.
    repeated = "figures" if len(runs) > 1 or len(charted.settings) == 1 else ""
    return View(
        diagnostic=diagnostic,
        section=section,
        headlines=headlines(task, close),
        plots=[plot for plot in plots(charted) if plot.kind != repeated],
        items=shown,
        models=[source.label for source in charted.sources],
        total=len(charted.items[0]),
    )


def _with_formulas(section: Section, run: Run) -> Section:
    """The section with predictions of suites by their formulas, not by their numbers."""
    rows = run.stimuli[section.task].columns()
    if "formulas" not in rows:
        return section
    suites = dict(zip(rows["suite"], rows["formulas"], strict=True))
    texts = {
        f"{suite}/{number}": f"{suite}: {text}" if len(suites) > 1 else text
        for suite, formulas in suites.items()
        for number, text in enumerate(formulas, start=1)
    }

    def named(table: Table) -> Table:
        new = (row._replace(label=texts.get(row.label, row.label)) for row in table.rows)
        return replace(table, rows=tuple(new))

    tables, further = (tuple(map(named, part)) for part in (section.tables, section.further))
    return replace(section, tables=tables, further=further)
