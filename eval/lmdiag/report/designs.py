"""The tables of an analysis of conditions, and the analyses that the report of runs shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag import diagnostics
from lmdiag.analysis.designs import Analysis, analyse_table
from lmdiag.analysis.items import items_of
from lmdiag.report import numbers
from lmdiag.report.charts import Plot, name_part
from lmdiag.report.charts.conditions import condition_plot
from lmdiag.report.formats.grid import CellText, Grid, GridRow, Heading
from lmdiag.text import visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.analysis.mixed import MixedFit
    from lmdiag.results import Run


_GAPS = "Differences between models in effects"


class Design(NamedTuple):
    """The conditions of a task as a report shows them: plots, tables and remarks."""

    title: str
    plots: list[Plot]
    grids: list[Grid]
    remarks: list[str]


def designs_of(runs: Sequence[Run], region: str = "") -> list[Design]:
    """Returns the designs of the tasks of runs; none for built-in tasks.

    Args:
        runs: of several models, or one.
        region: see `design_of`.
    """
    tasks = dict.fromkeys(task for run in runs for task in run.stimuli)
    designs = [design_of([run for run in runs if t in run.stimuli], t, region) for t in tasks]
    return [design for design in designs if design]


def design_of(runs: Sequence[Run], task: str, region: str = "") -> Design | None:
    """Returns the design of a user's own data; None where they have none.

    Args:
        runs: that have the task.
        task: its name.
        region: number or name of the critical region; "" for the whole sentence.

    Raises:
        BadInput: there is no such region.
    """
    stimuli = runs[0].stimuli[task]
    if task in diagnostics.built_in() or not any(stimuli.columns().get("item", ())):
        return None
    try:
        whole = analyse_table(items_of(runs, task=task))
    except BadInput:
        return None
    if stimuli.regions is None:
        return _design(task, whole, {})
    table = items_of(runs, task=task, per="region")
    places = table[["number", "name"]].drop_duplicates().sort_values("number").astype(str)
    regions = {}
    for number, name in places.itertuples(index=False):
        part = table[table["number"].astype(str) == number]
        if part["surprisal"].any():  # the others are empty, or have no probability
            label = visible(f"{number} {name}") if name else f"region {number}"
            try:
                regions[label] = analyse_table(part, conditions=list(whole.conditions))
            except BadInput:  # a region of few conditions or items
                continue
    chosen = (
        analyse_table(table, region=region, conditions=[*whole.conditions]) if region else whole
    )
    return _design(task, chosen, regions, region)


def _design(
    task: str, analysis: Analysis, regions: dict[str, Analysis], region: str = ""
) -> Design:
    """The plot of the chosen region or of whole rows, then that of all regions on one scale."""
    of = f" of region {region}" if region else " of sentences" if regions else ""
    plots = [condition_plot(f"{name_part(task)}-conditions", {"": analysis}, of)]
    if regions:
        plots.append(condition_plot(f"{name_part(task)}-regions", regions, " in each region"))
    grids = [*analysis_grids(analysis, of)]
    remarks = [f"conditions: {' x '.join(analysis.conditions)}", *analysis_remarks(analysis)]
    return Design(visible(task), plots, grids, remarks)


# ---- tables --------------------------------------------------------------------------------------


def analysis_grids(analysis: Analysis, part: str = "") -> Iterator[Grid]:
    """Yields the tables of an analysis: effects, cells, and each mixed model.

    Args:
        analysis: the figures.
        part: what the response is of, for the captions, e.g. " of region 2".
    """
    unit = f", {analysis.unit}" if analysis.unit else ""
    several = len(analysis.items) > 1
    of = analysis.response.replace("_", " ") + part
    for title, table in (("Effects", analysis.effects), (_GAPS, analysis.differences)):
        if len(table):
            caption = f"{title} on {of} over items, with 95% interval"
            yield _effects(table, caption, unit, several)
    if len(analysis.cells):
        rows = []
        for cell in analysis.cells.to_dict("records"):
            label = ", ".join(visible(str(cell[name])) for name in analysis.conditions)
            rows.append(_row(cell, several, label, str(cell["n"]), _figure(cell, "mean")))
        heading = ", ".join(map(visible, analysis.conditions))
        headings = (Heading("n"), Heading(f"mean{unit}", is_figure=True))
        caption = f"Mean {of} by condition, with 95% interval within items"
        yield Grid(caption, (heading, "model")[: 1 + several], headings, tuple(rows))
    for model, fit in analysis.mixed.items():
        yield _mixed(fit, model if len(analysis.mixed) > 1 else "", unit)


def _effects(table: Any, caption: str, unit: str, several: bool) -> Grid:
    has = {name: table[name].notna().any() for name in ("p_sign_flip", "p_holm")}
    rows = []
    for effect in table.to_dict("records"):
        p = [effect["p"], *(effect[name] for name, is_there in has.items() if is_there)]
        texts = [numbers.p_value(value) for value in p]
        tests = (numbers.decimals(effect["t"]), str(effect["df"]), *texts)
        d_z = numbers.decimals(effect["d_z"])
        label = visible(effect["effect"])
        rows.append(
            _row(effect, several, label, str(effect["n"]), _figure(effect, "estimate"), *tests, d_z)
        )
    further = [name for key, name in (("p_sign_flip", "p exact"), ("p_holm", "p Holm")) if has[key]]
    headings = (
        Heading("n"),
        Heading(f"difference{unit}", is_figure=True),
        *map(Heading, ("t", "df", "p", *further, "d_z")),
    )
    return Grid(caption, ("effect", "model")[: 1 + several], headings, tuple(rows))


def _mixed(fit: MixedFit, model: str, unit: str) -> Grid:
    headings = (Heading(f"estimate{unit}", is_figure=True), *map(Heading, ("SE", "df", "t", "p")))
    rows = []
    for term in fit.terms:
        values = (term.estimate, term.se, term.df, term.t)
        estimate, *others = (numbers.decimals(value, 3) for value in values)
        cells = (CellText(estimate), *map(CellText, (*others, numbers.p_value(term.p))))
        rows.append(GridRow((visible(term.term),), 0, cells))
    title = f"Mixed model{f' of {visible(model)}' if model else ''}: {visible(fit.formula)}"
    return Grid(title, ("term",), headings, tuple(rows))


def _row(record: Any, several: bool, label: str, *cells: str | CellText) -> GridRow:
    labels = (label, visible(record["model"]))[: 1 + several]
    return GridRow(labels, 0, tuple(CellText(c) if isinstance(c, str) else c for c in cells))


def _figure(record: Any, name: str) -> CellText:
    low, high = (numbers.decimals(record[bound]) for bound in ("ci_low", "ci_high"))
    interval = "" if low == numbers.UNDEFINED else f"[{low}, {high}]"
    return CellText(numbers.decimals(record[name]), interval)


def analysis_remarks(analysis: Analysis) -> Iterator[str]:
    """Yields what a reader of the tables has to know."""
    for model, fit in analysis.mixed.items():
        of = f" of {model}" if len(analysis.mixed) > 1 else ""
        if fit.warning:
            yield f"mixed model{of}: {fit.warning}"
        groups = ", ".join(f"{n} groups of {name}" for name, n in fit.groups.items())
        sds = (
            f"{group} {term} {numbers.decimals(sd, 3)}"
            for group, terms in fit.random_sd.items()
            for term, sd in terms.items()
        )
        yield (
            f"mixed model{of}: n = {fit.n}, {groups}; standard deviations: {', '.join(sds)}, "
            f"residual {numbers.decimals(fit.residual_sd, 3)}; REML, Satterthwaite's df"
        )
    left_out = {model: cells.left_out for model, cells in analysis.items.items() if cells.left_out}
    for model, n in left_out.items():
        of = f" of {model}" if len(analysis.items) > 1 else ""
        yield f"left out{of}: {n} item{'s' if n > 1 else ''} without a value in every condition"
    if len(analysis.effects):
        pairs = "; ".join(
            f"{name}: " + ", ".join(f"{high} - {low}" for low, high in pairwise(levels))
            for name, levels in analysis.conditions.items()
            if len(levels) == 2
        )
        directions = f"; {pairs}" if pairs else ""
        yield f"effects: paired t tests over items{directions}; d_z: in standard deviations"
    if analysis.effects.get("p_sign_flip") is not None and analysis.effects["p_sign_flip"].any():
        yield "p exact: sign-flip test over all patterns of signs"
    if len(analysis.cells):
        yield "intervals of cells: within items (Cousineau 2005; Morey 2008)"
