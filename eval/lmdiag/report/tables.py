"""The tables of runs: selections of their figures, pivoted by the names of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from lmdiag.diagnostics import TableShape
from lmdiag.report import labels, numbers
from lmdiag.report.charts import MOST_BESIDE
from lmdiag.report.grid import (
    PUBLISHED,
    CellText,
    Grid,
    GridRow,
    Heading,
    Section,
    cell_of,
    figure_grid,
    signs,
    with_heading,
)
from lmdiag.report.headline import headline_rows
from lmdiag.report.remarks import remarks_below, remarks_on_overview, remarks_on_rows
from lmdiag.report.selections import HUMAN, ReportFigures, figures_of_sets, headlines
from lmdiag.results import FigureKey, cited_signature
from lmdiag.results.published import REFERENCES, PublishedFigure, reference_figures
from lmdiag.text import visible

_LONG = 15
"""Rows of a further table that is folded in a page."""

_RANKS = {
    "measure": ["measure_rank"],
    "score": ["measure_rank"],
    "cutoff": ["measure_rank"],
    "level": ["by_rank", "level_rank"],
    "setting": ["setting_rank"],
}
"""Side of a table -> what its values are ordered by, where it is not their first appearance."""


# ---- from shapes to tables -----------------------------------------------------------------------


def _pivot(
    figures: ReportFigures, shape: TableShape, table: pd.DataFrame, *, with_p: bool = False
) -> Grid:
    """Returns selected figures as a printed table."""
    if "setting" in shape.rows:  # the human baseline is the same for all models
        is_repeated = table.duplicated(["setting", "address"]) & (table["setting"] == HUMAN)
        table = table[~is_repeated]
    sides = (*shape.rows, shape.columns)
    columns: dict[str, Any] = {side: _in_order(table, side) for side in sides}
    cells = zip(table["figure"], table["reported"], table["score"].isin(shape.plain), strict=True)
    texts_of = [cell_of(*cell) for cell in cells]
    columns["cell"] = pd.Series(texts_of, table.index, object)
    table = table.assign(**columns)
    references = _references(figures, table)
    pivoted = pd.concat([table, *references.values()]).pivot(
        index=[*shape.rows, "run"], columns=shape.columns, values="cell"
    )
    names_of = {side: _labels(table, side) | {**shape.labels} for side in sides}
    has_models = len(figures.sources) > 1 or not shape.rows
    rows = []
    for index, *of_row in pivoted.itertuples(name=None):
        *keys, run = index if shape.rows else (index,)
        is_human = HUMAN in keys
        depth = int(len(keys) == 2 and keys[1] != "")
        names = [visible(names_of[shape.rows[depth]][keys[depth]])] if keys else []
        is_published = run >= len(figures.sources)
        if is_published:
            model = [*references][run - len(figures.sources)]
            names = [*names, model] if has_models else [model]
            depth += not has_models
        else:
            names += ["" if is_human else figures.sources[run].label] * has_models
        texts = tuple(cell if isinstance(cell, CellText) else CellText("") for cell in of_row)
        rows.append(GridRow(tuple(names), depth, texts, is_published, is_human))
    headings = [visible(names_of[shape.columns][key]) for key in pivoted.columns]
    published = [shape.published.get(key, ("", 0)) for key in pivoted.columns]
    n = [n for _, n in published]
    if shape.published and n in [[cell.n for cell in row.cells] for row in rows]:
        headings = [heading for heading, _ in published]
    label_headings = ("", "model") if has_models and shape.rows else ("",)
    return figure_grid(shape.title, label_headings, headings, rows, shape.source)


def _references(figures: ReportFigures, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Name of a model of the paper -> the rows of a table with its figures, as those of a run.

    A model whose own run is shown has its published figures there.
    """
    own = {figure.model for figure in table["reported"] if figure}
    known = dict[tuple[str, FigureKey], PublishedFigure]()
    for task in table["task"].unique():
        known |= reference_figures(figures.having(task)[0].results, task)
    once = table.drop_duplicates(["setting", "address"])
    references = dict[str, pd.DataFrame]()
    for model, name in REFERENCES.items():
        keys = once[[*FigureKey._fields]].itertuples(index=False, name=None)
        found = [known.get((model, FigureKey(*key))) for key in keys]
        texts = [figure and CellText(numbers.reported_value(figure)) for figure in found]
        cells = pd.Series(texts, once.index, object)
        if cells.notna().any() and model not in own:
            run = len(figures.sources) + len(references)
            part = once.assign(cell=cells, run=run)[cells.notna()]
            references[f"{name}, {PUBLISHED}"] = part
    return references


def _labels(table: pd.DataFrame, side: str) -> dict[str, str]:
    """The usual headings of the values of a side."""
    names = table.get(f"{side}_label", table[side])
    return dict(zip(table[side], names, strict=True))


def _in_order(table: pd.DataFrame, side: str) -> pd.Categorical:
    """The values of a side, which are ordered."""
    ordered = table.sort_values(_RANKS.get(side, []), kind="stable")
    return pd.Categorical(table[side], ordered[side].unique())


def _tables(
    task: str, figures: ReportFigures, formulas: Mapping[str, str]
) -> tuple[list[Grid], list[Grid]]:
    """The tables that a diagnostic declares, and the further ones: long ones, all other figures.

    A measure that no table has is in a table of further measures. A break-down with a single level
    adds nothing; the curves over cut-offs have thousands of levels, which are in charts and in csv
    only. Predictions of suites are named by their formulas.
    """
    tables = list[Grid]()
    further = list[Grid]()
    breakdowns = figures.table["by"][figures.table["task"] == task].unique()
    everywhere = TableShape("All measures", "", ("*",), ("address",), "setting", (*breakdowns,))
    everything = figures.select(task, everywhere)
    rest = everything.sort_values(["measure_rank", "by_rank", "level_rank"], kind="stable")
    rest = rest.assign(is_curve=rest["cutoff"].str.match("top |bottom "))
    declared = figures.diagnostic(task).tables
    for shape in declared:
        table = figures.select(task, shape)
        grid = _pivot(figures, replace(shape, labels={**formulas, **shape.labels}), table)
        is_long = shape.is_further and len(grid.rows) > _LONG
        (further if is_long else tables).append(grid)
        rest = rest.drop(index=table.index, errors="ignore")
    if declared:
        shown = everything["measure"][~everything.index.isin(rest.index)]
        new = rest[~rest["measure"].isin(shown) & (rest["by"] == "") & ~rest["is_curve"]]
        tables.append(_pivot(figures, replace(everywhere, title="Further measures"), new))
        rest = rest.drop(index=new.index)
    n_levels = rest.groupby(["measure", "by"])["level"].transform("nunique")
    rest = rest[(rest["by"] == "") | ((n_levels > 1) & ~rest["is_curve"])]
    (further if declared else tables).append(_pivot(figures, everywhere, rest))
    tables += _table_of_sets(task, figures)
    return [grid for grid in tables if grid.rows], [grid for grid in further if grid.rows]


def _table_of_sets(task: str, figures: ReportFigures) -> list[Grid]:
    """The table of small and extended sets, a row per set and a column per figure."""
    table = figures_of_sets(task, figures)
    sets = figures.diagnostic(task).extended_sets
    if table.empty or sets is None:
        return []
    shape = TableShape(sets.title, sets.source, (), ("set",), "heading")
    return [_pivot(figures, shape, table)]


def overview(figures: ReportFigures) -> Section:
    """Returns the headline figures of all tasks, with the figures of the paper's models.

    Up to four models are columns of one table; more are the rows of a table per task.
    """
    results = [source.results for source in figures.sources]
    title = labels.title(results)
    if len(results) <= MOST_BESIDE:
        grids = [_overview_of_few(figures)]
    else:
        grids = [_overview_of_task(task, figures) for task in figures.tasks]
    grids = [grid for grid in grids if grid.rows]
    remarks = [*signs(grids), *remarks_on_overview(figures)]
    signatures = [*dict.fromkeys(cited_signature(run.signature) for run in results)]
    return Section(title, grids, remarks, signatures=signatures)


def _overview_of_task(task: str, figures: ReportFigures) -> Grid:
    """A row per model and a column per headline figure."""
    table = headlines(task, figures)
    table = table.assign(address_label=table["heading"], reported=None)
    shape = TableShape(figures.diagnostic(task).title, "", (), (), "address")
    return _pivot(figures, shape, table)


def _overview_of_few(figures: ReportFigures) -> Grid:
    """A row per headline figure and a column per model; of one model, p has a column."""
    rows = []
    is_one = len(figures.sources) == 1
    for task in figures.tasks:
        of_task = []
        for row in headline_rows(task, figures):
            references = (CellText(row.facts[name]) for name in REFERENCES.values())
            of_task.append(GridRow((visible(row.label),), 0, (*row.cells, *references)))
        title = visible(figures.diagnostic(task).short_title)
        rows += with_heading(title, of_task) if len(figures.tasks) > 1 else of_task
    if not rows:
        return Grid("", ("",), (), ())
    published = [f"{name}, {PUBLISHED}" for name in REFERENCES.values()]
    names = [*(source.label for source in figures.sources), *published]
    grid = figure_grid("Headline figures", ("",), names, rows).with_facts_as(published)
    grid = _with_tests(grid) if is_one else grid
    columns = range(len(grid.headings))
    return grid.of_columns([i for i in columns if any(row.cells[i].value for row in grid.rows)])


def _with_tests(grid: Grid) -> Grid:
    """A table with the p of the test of the first model against chance."""
    rows = []
    for row in grid.rows:
        tests = [x.figure.p_chance for x in row.cells if x.figure]
        p = numbers.p_value(tests[0]) if tests and tests[0] is not None else ""
        rows.append(row._replace(cells=(*row.cells, CellText(p))))
    return grid._replace(headings=(*grid.headings, Heading("p")), rows=tuple(rows))


# ---- the section of a diagnostic -----------------------------------------------------------------


def sections(
    figures: ReportFigures, rows: Mapping[str, Mapping[str, Sequence[Any]]] = {}
) -> list[Section]:
    """Returns a section per task that any of the runs has, in order of appearance.

    `rows` has the columns of tasks whose predictions are shown by their formulas.
    """
    shown = []
    for task in figures.tasks:
        columns = rows.get(task, {})
        suites = dict(zip(columns.get("suite", ()), columns.get("formulas", ()), strict=False))
        formulas = {
            f"{suite}/{number}": f"{suite}: {text}" if len(suites) > 1 else text
            for suite, of_suite in suites.items()
            for number, text in enumerate(of_suite, start=1)
        }
        tables, further = _tables(task, figures, formulas)
        remarks = [
            *remarks_on_rows(task, figures),
            *signs([*tables, *further]),
            *remarks_below(task, figures),
        ]
        title = figures.diagnostic(task).title
        shown.append(Section(title, tables, remarks, further, task=task))
    return shown
