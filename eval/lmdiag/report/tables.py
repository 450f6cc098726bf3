"""The tables of runs: selections of their figures, pivoted by the names of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from lmdiag.diagnostics import TableShape
from lmdiag.report.grid import CellText, Grid, GridRow, Section, cell_of, figure_grid, signs
from lmdiag.report.remarks import remarks_below, remarks_on_rows
from lmdiag.report.selections import HUMAN, ReportFigures, figures_of_sets, headlines
from lmdiag.results import Results
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


def _pivot(figures: ReportFigures, shape: TableShape, table: pd.DataFrame) -> Grid:
    """Returns selected figures as a printed table."""
    if "setting" in shape.rows:  # the human baseline is the same for all models
        is_repeated = table.duplicated(["setting", "address"]) & (table["setting"] == HUMAN)
        table = table[~is_repeated]
    sides = (*shape.rows, shape.columns)
    columns: dict[str, Any] = {side: _in_order(table, side) for side in sides}
    cells = zip(table["figure"], table["reported"], table["score"].isin(shape.plain), strict=True)
    columns["cell"] = pd.Series([cell_of(*cell) for cell in cells], table.index, object)
    pivoted = table.assign(**columns).pivot(
        index=[*shape.rows, "run"], columns=shape.columns, values="cell"
    )
    labels = {side: _labels(table, side) | {**shape.labels} for side in sides}
    has_models = len(figures.sources) > 1 or not shape.rows
    rows = []
    for index, *of_row in pivoted.itertuples(name=None):
        *keys, run = index if shape.rows else (index,)
        is_human = HUMAN in keys
        depth = int(len(keys) == 2 and keys[1] != "")
        names = [visible(labels[shape.rows[depth]][keys[depth]])] if keys else []
        names += ["" if is_human else figures.sources[run].label] * has_models
        texts = tuple(cell if isinstance(cell, CellText) else CellText("") for cell in of_row)
        rows.append(GridRow(tuple(names), depth, texts, is_human=is_human))
    headings = [visible(labels[shape.columns][key]) for key in pivoted.columns]
    published = [shape.published.get(key, ("", 0)) for key in pivoted.columns]
    n = [n for _, n in published]
    if shape.published and n in [[cell.n for cell in row.cells] for row in rows]:
        headings = [heading for heading, _ in published]
    label_headings = ("", "model") if has_models and shape.rows else ("",)
    return figure_grid(shape.title, label_headings, headings, rows, shape.source)


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


def overview(runs: Sequence[Results]) -> Section:
    """Returns a table per task with a row per run and a column per headline figure."""
    figures = ReportFigures.of(runs)
    grids = []
    for task in figures.tasks:
        table = headlines(task, figures)
        table = table.assign(address_label=table["heading"], reported=None)
        shape = TableShape(figures.diagnostic(task).title, "", (), (), "address")
        grids.append(_pivot(figures, shape, table))
    return Section(f"All {len(runs)} models", grids, signs(grids))


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
        settings = [source.results.tasks[task] for source in figures.having(task)]
        unperturbed = (of.get("none", next(iter(of.values()))) for of in settings)
        signatures = list(dict.fromkeys(setting.signature for setting in unperturbed))
        title = figures.diagnostic(task).title
        shown.append(Section(title, tables, remarks, further, signatures, task))
    return shown
