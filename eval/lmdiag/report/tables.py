"""The tables of runs: selections of their figures, pivoted by the names of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from lmdiag.diagnostics import TableShape
from lmdiag.measures import shown_as
from lmdiag.report import labels, numbers
from lmdiag.report.charts import MOST_BESIDE
from lmdiag.report.grid import (
    PUBLISHED,
    CellText,
    Grid,
    GridRow,
    Heading,
    cell_of,
    figure_grid,
    rows_below_heading,
    signs,
)
from lmdiag.report.output import Section
from lmdiag.report.remarks import remarks_below, remarks_on_overview, remarks_on_rows
from lmdiag.report.selections import HUMAN, ReportFigures, figures_of_sets, headlines
from lmdiag.results import FigureKey, cited_signatures
from lmdiag.results.published_figures import REFERENCES, PublishedFigure, reference_figures
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

_CellsAt = dict[tuple[Any, ...], dict[Any, CellText]]
"""Values of the sides of a row and number of its run or model -> value of the columns -> cell."""


# ---- from shapes to tables -----------------------------------------------------------------------


def _pivot(figures: ReportFigures, shape: TableShape, table: pd.DataFrame) -> Grid:
    """Returns selected figures as a printed table.

    The values of `shape.rows` are the rows, those of `shape.columns` the columns. Of several runs,
    each has a row; then follow the models of the paper.

    Args:
        table: figures, see `ReportFigures.select`.
    """
    if "setting" in shape.rows:  # the human baseline is the same for all models
        is_repeated = table.duplicated(["setting", "address"]) & (table["setting"] == HUMAN)
        table = table[~is_repeated]
    sides = (*shape.rows, shape.columns)
    names_of = dict[str, dict[str, str]]()
    for side in sides:
        names = table.get(f"{side}_label", table[side])
        names_of[side] = dict(zip(table[side], names, strict=True)) | {**shape.labels}
    n_runs = len(figures.sources)
    references = _reference_cells(figures, table)
    keys_of_figures = [*zip(*(table[side].tolist() for side in sides), strict=True)]
    cells: _CellsAt = {}

    def put(number: int, run: int, cell: CellText) -> None:
        *keys, column = keys_of_figures[number]
        of_row = cells.setdefault((*keys, run), {})
        if column in of_row:
            raise ValueError(f"{shape.title}: several figures at {(*keys, column)}")
        of_row[column] = cell

    is_plain = table["score"].isin(shape.plain)
    cell_arguments = zip(table["run"], table["figure"], table["reported"], is_plain, strict=True)
    for number, (run, *figure) in enumerate(cell_arguments):
        put(number, run, cell_of(*figure))
    for i, cells_of_model in enumerate(references.values()):
        for number, cell in cells_of_model.items():
            put(number, n_runs + i, cell)
    ranks = [_ranks_in(table, side) for side in shape.rows]
    columns = _ranks_in(table, shape.columns)
    has_models = n_runs > 1 or not shape.rows
    rows = []
    for *keys, run in sorted(cells, key=partial(_row_order, ranks)):
        of_row = cells[*keys, run]
        is_human = HUMAN in keys
        depth = int(len(keys) == 2 and keys[1] != "")
        names = [visible(names_of[shape.rows[depth]][keys[depth]])] if keys else []
        is_published = run >= n_runs
        if is_published:
            model = f"{[*references][run - n_runs]}, {PUBLISHED}"
            names = [*names, model] if has_models else [model]
            depth += not has_models
        else:
            names += ["" if is_human else figures.sources[run].label] * has_models
        texts = tuple(of_row.get(column, CellText("")) for column in columns)
        rows.append(GridRow(tuple(names), depth, texts, is_published, is_human))
    headings = [visible(names_of[shape.columns][key]) for key in columns]
    published = [shape.published.get(key, ("", 0)) for key in columns]
    n = [n for _, n in published]
    if shape.published and n in [[cell.n for cell in row.cells] for row in rows]:
        headings = [heading for heading, _ in published]
    label_headings = ("", "model") if has_models and shape.rows else ("",)
    return figure_grid(shape.title, label_headings, headings, rows, shape.source)


def _ranks_in(table: pd.DataFrame, side: str) -> dict[Any, int]:
    """Returns value of a side of a table -> its rank.

    Args:
        side: name of a column, which the values are from; `_RANKS` says what orders it.
    """
    values = table[side].tolist()
    orders = [table[name].tolist() for name in _RANKS.get(side, ())]
    numbers = sorted(range(len(values)), key=lambda i: [order[i] for order in orders])
    return {value: rank for rank, value in enumerate(dict.fromkeys(values[i] for i in numbers))}


def _row_order(ranks: Sequence[Mapping[Any, int]], row: tuple[Any, ...]) -> list[int]:
    """Returns what a row of `_CellsAt` is sorted by: the ranks of its values, then its run."""
    *keys, run = row
    return [*(of_side[key] for of_side, key in zip(ranks, keys, strict=True)), run]


def _reference_cells(figures: ReportFigures, table: pd.DataFrame) -> dict[str, dict[int, CellText]]:
    """Returns model of the paper -> number of a row of a table -> its figure at the same address.

    Where several runs have an address, it is the number of the first row. A model whose own run is
    shown is left out: its published figures stand beside those.
    """
    shown_models = {figure.model for figure in table["reported"] if figure}
    published = dict[tuple[str, FigureKey], PublishedFigure]()
    for task in table["task"].unique():
        published |= reference_figures(figures.runs_with(task)[0].results, task)
    numbers_of = dict[tuple[str, str], int]()  # setting, address -> the first row
    for number, address in enumerate(zip(table["setting"], table["address"], strict=True)):
        numbers_of.setdefault(address, number)
    keys = [*map(FigureKey, *(table[name].tolist() for name in FigureKey._fields))]
    references = dict[str, dict[int, CellText]]()
    for model, name in REFERENCES.items():
        figure_of_row = {
            number: published.get((model, keys[number])) for number in numbers_of.values()
        }
        cells = {
            number: CellText(numbers.reported_value(figure))
            for number, figure in figure_of_row.items()
            if figure
        }
        if model not in shown_models and cells:
            references[name] = cells
    return references


def _tables(
    task: str, figures: ReportFigures, formulas: Mapping[str, str]
) -> tuple[list[Grid], list[Grid]]:
    """Returns the tables that a diagnostic declares, and the further ones.

    Further are long tables, and one of all figures that no table has. A measure that no table has
    is in a table of further measures. Left out are break-downs with a single level, which add
    nothing, and the curves over cut-offs, whose thousands of levels are in charts and in csv only.

    Args:
        formulas: "SUITE/NUMBER" -> the prediction that a suite calls so.
    """
    tables = list[Grid]()
    further = list[Grid]()
    breakdowns = figures.table["by"][figures.table["task"] == task].unique()
    shape_of_all = TableShape("All measures", "", ("*",), ("address",), "setting", (*breakdowns,))
    all_figures = figures.select(task, shape_of_all)
    all_figures = all_figures[~all_figures["measure"].map(shown_as).astype(bool)]
    unused = all_figures.sort_values(["measure_rank", "by_rank", "level_rank"], kind="stable")
    declared = figures.diagnostic(task).tables
    for shape in declared:
        table = figures.select(task, shape)
        grid = _pivot(figures, replace(shape, labels={**formulas, **shape.labels}), table)
        is_long = shape.is_further and len(grid.rows) > _LONG
        (further if is_long else tables).append(grid)
        unused = unused.drop(index=table.index, errors="ignore")
    if declared:
        measures = all_figures["measure"][~all_figures.index.isin(unused.index)]
        new_measures = unused[
            ~unused["measure"].isin(measures) & (unused["by"] == "") & ~unused["is_curve_point"]
        ]
        tables.append(
            _pivot(figures, replace(shape_of_all, title="Further measures"), new_measures)
        )
        unused = unused.drop(index=new_measures.index)
    n_levels = unused.groupby(["measure", "by"])["level"].transform("nunique")
    unused = unused[(unused["by"] == "") | ((n_levels > 1) & ~unused["is_curve_point"])]
    (further if declared else tables).append(_pivot(figures, shape_of_all, unused))
    set_figures = figures_of_sets(task, figures)
    sets = figures.diagnostic(task).extended_sets
    if sets and len(set_figures):
        shape = TableShape(sets.title, sets.source, (), ("set",), "heading")
        tables.append(_pivot(figures, shape, set_figures))
    return [grid for grid in tables if grid.rows], [grid for grid in further if grid.rows]


# ---- headline figures ----------------------------------------------------------------------------


def overview(figures: ReportFigures) -> Section:
    """Returns the headline figures of all tasks, with the figures of the paper's models.

    Up to four models are columns of one table; more are the rows of a table per task.
    """
    results = [source.results for source in figures.sources]
    if len(results) <= MOST_BESIDE:
        grids = [_overview_of_few(figures)]
    else:
        grids = [_overview_of_many(task, figures) for task in figures.tasks]
    grids = [grid for grid in grids if grid.rows]
    remarks = [*signs(grids), *remarks_on_overview(figures)]
    signatures = cited_signatures(run.signature for run in results)
    return Section(labels.title(results), grids, remarks, signatures=signatures)


def _overview_of_many(task: str, figures: ReportFigures) -> Grid:
    """A row per model and a column per headline figure of a task."""
    table = headlines(task, figures)
    table = table.assign(address_label=table["heading"], reported=None)
    shape = TableShape(figures.diagnostic(task).title, "", (), (), "address")
    return _pivot(figures, shape, table)


def _overview_of_few(figures: ReportFigures) -> Grid:
    """A row per headline figure and a column per model; of one model, p has a column."""
    rows = []
    for task in figures.tasks:
        task_rows = headline_rows(task, figures)
        title = visible(figures.diagnostic(task).short_title)
        rows += rows_below_heading(title, task_rows) if len(figures.tasks) > 1 else task_rows
    if not rows:
        return Grid("", ("",), (), ())
    published = [f"{name}, {PUBLISHED}" for name in REFERENCES.values()]
    names = [*(source.label for source in figures.sources), *published]
    grid = figure_grid("Main figures", ("",), names, rows, "", published)
    if len(figures.sources) == 1:
        rows = [row._replace(cells=(*row.cells, _p_of(row))) for row in grid.rows]
        grid = grid._replace(headings=(*grid.headings, Heading("p")), rows=tuple(rows))
    columns = range(len(grid.headings))
    return grid.select_columns([i for i in columns if any(row.cells[i].value for row in grid.rows)])


def headline_rows(task: str, figures: ReportFigures) -> list[GridRow]:
    """Returns the headline figures of a task that any of the runs has.

    Cells are those of the runs, then those of the models of the paper.
    """
    table = headlines(task, figures)
    addresses = table["address"].tolist()
    references = {
        name: {addresses[row]: cell for row, cell in cells_of.items()}
        for name, cells_of in _reference_cells(figures, table).items()
    }
    by_address: dict[str, list[dict[str, Any]]] = {}
    columns = ["address", "run", "figure", "reported", "human", "heading"]
    for record in table[columns].to_dict("records"):  # of few figures, pandas' groups take longer
        by_address.setdefault(record["address"], []).append(record)
    rows = []
    for address, records in by_address.items():
        cells = [CellText("")] * len(figures.sources)
        for record in records:
            cells[record["run"]] = cell_of(record["figure"], record["reported"])
        for name in REFERENCES.values():
            cells.append(references.get(name, {}).get(address, CellText("")))
        first = records[0]
        rows.append(GridRow((visible(first["heading"]),), 0, tuple(cells), human=first["human"]))
    return rows


def _p_of(row: GridRow) -> CellText:
    """Returns the cell of p of the test of the first model against chance; "" without a test."""
    tests = [cell.figure.p_chance for cell in row.cells if cell.figure]
    return CellText(numbers.p_value(tests[0]) if tests and tests[0] is not None else "")


# ---- the section of a diagnostic -----------------------------------------------------------------


def sections(
    figures: ReportFigures, rows: Mapping[str, Mapping[str, Sequence[Any]]] = {}
) -> list[Section]:
    """Returns a section per task that any of the runs has, in order of appearance.

    `rows` has the columns of tasks whose predictions are shown by their formulas.
    """
    task_sections = []
    for task in figures.tasks:
        columns = rows.get(task, {})
        formulas_of_suite = dict(
            zip(columns.get("suite", ()), columns.get("formulas", ()), strict=False)
        )
        formulas = {
            f"{suite}/{number}": f"{suite}: {text}" if len(formulas_of_suite) > 1 else text
            for suite, suite_rows in formulas_of_suite.items()
            for number, text in enumerate(suite_rows, start=1)
        }
        tables, further = _tables(task, figures, formulas)
        remarks = [
            *remarks_on_rows(task, figures),
            *signs([*tables, *further]),
            *remarks_below(task, figures),
        ]
        title = figures.diagnostic(task).title
        task_sections.append(Section(title, tables, remarks, further, task=task))
    return task_sections
