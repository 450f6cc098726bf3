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

_LONG_TABLE = 15
"""Number of rows above which a table that may be folded is folded in a page."""

_RANK_COLUMNS = {
    "measure": ["measure_rank"],
    "score": ["measure_rank"],
    "cutoff": ["measure_rank"],
    "level": ["by_rank", "level_rank"],
    "setting": ["setting_rank"],
}
"""Side of a table -> what its values are ordered by, where it is not their first appearance."""

_CellsOfRows = dict[tuple[Any, ...], dict[Any, CellText]]
"""Key of a row -> value of the columns -> cell.

The key has the values of the sides that are rows, then the number of the run; published models are
numbered after the runs.
"""


# ---- from shapes to tables -----------------------------------------------------------------------


def _pivot(figures: ReportFigures, shape: TableShape, table: pd.DataFrame) -> Grid:
    """Returns selected figures as a printed table.

    The values of `shape.rows` are the rows, those of `shape.columns` the columns: with the rows
    ("level",) and the columns "measure", a level is a row and a measure a column. Of several runs,
    each has a row; then follow the models of the paper.

    Args:
        shape: says which columns of `table` are the sides of the printed table.
        table: a row per figure, see `ReportFigures.select`.
    """
    if "setting" in shape.rows:
        # the human baseline is a setting that every run has with the same figures: it has one row
        is_repeated = table.duplicated(["setting", "address"]) & (table["setting"] == HUMAN)
        table = table[~is_repeated]
    sides = (*shape.rows, shape.columns)
    # side -> value -> what readers see, e.g. "level" -> "neg" -> "negated"
    names_of = dict[str, dict[str, str]]()
    for side in sides:
        names = table.get(f"{side}_label", table[side])
        names_of[side] = dict(zip(table[side], names, strict=True)) | {**shape.labels}
    n_runs = len(figures.sources)
    references = _reference_cells(figures, table)  # model of the paper -> its cells
    # (values of the rows' sides, run) -> value of the columns -> cell
    cells = _pivot_cells(shape, table, n_runs, [*references.values()])
    ranks = [_ranks_in(table, side) for side in shape.rows]
    columns = _ranks_in(table, shape.columns)
    has_model_labels = n_runs > 1 or not shape.rows
    rows = []
    for *values, run in sorted(cells, key=partial(_rank_of_row, ranks)):
        cells_of_row = cells[*values, run]
        is_human = HUMAN in values
        # the second side has rows of its own, indented; "" stands for the row of the first side.
        # A row is labelled by its value of the side at its depth.
        depth = int(len(values) == 2 and values[1] != "")
        row_labels = [visible(names_of[shape.rows[depth]][values[depth]])] if values else []
        is_published = run >= n_runs  # models of the paper are numbered after the runs
        if is_published:
            model = f"{[*references][run - n_runs]}, {PUBLISHED}"
            if has_model_labels:
                row_labels.append(model)
            else:  # an indented row below that of the run
                row_labels = [model]
                depth += 1
        elif has_model_labels:
            row_labels.append("" if is_human else figures.sources[run].label)
        row_cells = tuple(cells_of_row.get(column, CellText("")) for column in columns)
        rows.append(GridRow(tuple(row_labels), depth, row_cells, is_published, is_human))
    # the headings of the paper, or else what readers see of the values of the columns
    headings = _paper_headings(shape, [*columns], rows)
    if not headings:
        headings = [visible(names_of[shape.columns][value]) for value in columns]
    label_headings = ("", "model") if has_model_labels and shape.rows else ("",)
    return figure_grid(shape.title, label_headings, headings, rows, shape.source)


def _paper_headings(
    shape: TableShape, columns: Sequence[Any], rows: Sequence[GridRow]
) -> list[str]:
    """Returns the headings that columns have in the paper, if the figures are over as many rows.

    [] if no run has figures over as many rows as the paper, or it has no headings of its own.

    Args:
        columns: the value that each column of the table stands for.
        rows: of the table.
    """
    if not shape.published:
        return []
    headings_and_n = [shape.published.get(value, ("", 0)) for value in columns]
    paper_n = [n for _, n in headings_and_n]
    if any([cell.n for cell in row.cells] == paper_n for row in rows):
        return [heading for heading, _ in headings_and_n]
    return []


def _pivot_cells(
    shape: TableShape,
    table: pd.DataFrame,
    n_runs: int,
    references: Sequence[Mapping[int, CellText]],
) -> _CellsOfRows:
    """Returns key of a row of a printed table -> value of its columns -> cell.

    A key has the values of the columns `shape.rows`, then the number of the run. Published models
    have the numbers after those of the runs. For example, {("negated", 0): {"accuracy@1": cell,
    "accuracy@5": cell}} for the rows ("level",) and the columns "measure".

    Args:
        shape: says which columns of `table` are the rows and columns of the printed table, and of
            which measures (`plain`) cells have the value alone.
        table: a row per figure and run.
        n_runs: number of runs.
        references: of each published model, number of a row of `table` -> cell.
    """
    sides = (*shape.rows, shape.columns)
    # of each row of `table`, the values that say where its figure stands
    values_of_figures = [*zip(*(table[side].tolist() for side in sides), strict=True)]
    cells: _CellsOfRows = {}

    def put(number: int, run: int, cell: CellText) -> None:
        """Adds a cell where the figure of a row of `table` stands, by its number."""
        *row_values, column = values_of_figures[number]
        cells_of_row = cells.setdefault((*row_values, run), {})
        if column in cells_of_row:
            raise ValueError(f"{shape.title}: several figures at {(*row_values, column)}")
        cells_of_row[column] = cell

    is_plain = table["score"].isin(shape.plain)
    cell_arguments = zip(table["run"], table["figure"], table["reported"], is_plain, strict=True)
    for number, (run, figure, reported, has_value_alone) in enumerate(cell_arguments):
        put(number, run, cell_of(figure, reported, has_value_alone))
    for i, reference in enumerate(references):
        for number, cell in reference.items():
            put(number, n_runs + i, cell)
    return cells


def _ranks_in(table: pd.DataFrame, side: str) -> dict[Any, int]:
    """Returns value of a side of a table -> its rank, from 0; the values in this order.

    For example, {"affirmative": 0, "negated": 1} for the side "level".

    Args:
        table: a row per figure.
        side: name of the column whose values are the rows or the columns of a printed table. If
            `_RANK_COLUMNS` names columns that order it, the values are sorted by these; otherwise
            they are in the order in which they appear.
    """
    values = table[side].tolist()
    rank_columns = [table[name].tolist() for name in _RANK_COLUMNS.get(side, ())]
    positions = sorted(range(len(values)), key=lambda i: [column[i] for column in rank_columns])
    distinct_values = dict.fromkeys(values[i] for i in positions)
    return {value: rank for rank, value in enumerate(distinct_values)}


def _rank_of_row(ranks: Sequence[Mapping[Any, int]], key: tuple[Any, ...]) -> list[int]:
    """Returns what a row is sorted by: the ranks of its values on each side, then its run.

    For example, [1, 0] for the key ("negated", 0) with the ranks {"affirmative": 0, "negated": 1}.

    Args:
        ranks: value -> rank, of each side that is rows.
        key: of the row, see `_CellsOfRows`.
    """
    *values, run = key
    value_ranks = [ranks_of_side[value] for ranks_of_side, value in zip(ranks, values, strict=True)]
    return [*value_ranks, run]


def _reference_cells(figures: ReportFigures, table: pd.DataFrame) -> dict[str, dict[int, CellText]]:
    """Returns model of the paper -> number of a row of a table -> its figure at the same address.

    The address of a figure is its measure, break-down and level. Where several runs have an
    address, the number is that of the first row. A model of the paper that is also shown as a run
    is left out, since its published figures stand beside those of the run.

    Args:
        figures: of the runs.
        table: a row per figure and run.
    """
    shown_models = {figure.model for figure in table["reported"] if figure}
    published = dict[tuple[str, FigureKey], PublishedFigure]()
    for task in table["task"].unique():
        published |= reference_figures(figures.runs_with(task)[0].results, task)
    first_number = dict[tuple[str, str], int]()  # setting and address -> number of its first row
    for number, address in enumerate(zip(table["setting"], table["address"], strict=True)):
        first_number.setdefault(address, number)
    keys = [*map(FigureKey, *(table[name].tolist() for name in FigureKey._fields))]
    references = dict[str, dict[int, CellText]]()
    for model, name in REFERENCES.items():  # id of a model of the paper, and its name
        if model in shown_models:
            continue
        cells = {}
        for number in first_number.values():
            reported = published.get((model, keys[number]))
            if reported:
                cells[number] = CellText(numbers.reported_value(reported))
        if cells:
            references[name] = cells
    return references


def _tables(
    task: str, figures: ReportFigures, formulas: Mapping[str, str]
) -> tuple[list[Grid], list[Grid]]:
    """Returns the tables of a diagnostic, and its further tables, which a page folds.

    The tables are those that the diagnostic declares, one of measures that none of these has, and
    one of small and extended sets. Further are declared tables that are long and may be folded, and
    one of all figures that no other table has. Left out are break-downs with a single level, which
    add nothing, and the curves over cut-offs, whose thousands of levels are in charts and csv only.

    Args:
        formulas: address of a prediction of a suite, "SUITE/NUMBER" -> its formula.
    """
    tables = list[Grid]()
    further = list[Grid]()
    # all figures of the task: those that no table has yet are `unused`
    breakdowns = figures.table["by"][figures.table["task"] == task].unique()
    shape_of_all = TableShape(  # "*" stands for any measure
        "All measures", source="", measures=("*",), rows=("address",), columns="setting",
        by=(*breakdowns,),
    )  # fmt: skip
    all_figures = figures.select(task, shape_of_all)
    # without measures in place of which another one is shown
    all_figures = all_figures[~all_figures["measure"].map(shown_as).astype(bool)]
    unused = all_figures.sort_values(["measure_rank", "by_rank", "level_rank"], kind="stable")
    # the tables that the diagnostic declares
    declared = figures.diagnostic(task).tables
    for shape in declared:
        table = figures.select(task, shape)
        grid = _pivot(figures, replace(shape, labels={**formulas, **shape.labels}), table)
        if shape.is_further and len(grid.rows) > _LONG_TABLE:
            further.append(grid)
        else:
            tables.append(grid)
        unused = unused.drop(index=table.index, errors="ignore")  # figures that no table has yet
    # a table of the measures that none of these has, over all items
    if declared:
        used_measures = all_figures["measure"][~all_figures.index.isin(unused.index)]
        is_new_measure = ~unused["measure"].isin(used_measures) & ~unused["is_curve_point"]
        new_measures = unused[is_new_measure & (unused["by"] == "")]
        shape_of_new = replace(shape_of_all, title="Further measures")
        tables.append(_pivot(figures, shape_of_new, new_measures))
        unused = unused.drop(index=new_measures.index)
    # a table of all other figures; without declared tables it is the main one
    n_levels = unused.groupby(["measure", "by"])["level"].transform("nunique")
    unused = unused[(unused["by"] == "") | ((n_levels > 1) & ~unused["is_curve_point"])]
    table_of_unused = _pivot(figures, shape_of_all, unused)
    if declared:
        further.append(table_of_unused)
    else:
        tables.append(table_of_unused)
    # a table of small and extended sets
    set_figures = figures_of_sets(task, figures)
    sets = figures.diagnostic(task).extended_sets
    if sets and len(set_figures):
        shape = TableShape(sets.title, sets.source, measures=(), rows=("set",), columns="heading")
        tables.append(_pivot(figures, shape, set_figures))
    return [grid for grid in tables if grid.rows], [grid for grid in further if grid.rows]


# ---- headline figures ----------------------------------------------------------------------------


def overview(figures: ReportFigures) -> Section:
    """Returns a section with the headline figures of all tasks, and of the paper's models.

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
    """Returns a table with a row per model and a column per headline figure of a task.

    Published figures of the paper's models have rows of their own.
    """
    table = headlines(task, figures)
    # without `reported`, published figures stand in rows of their models, not below those of runs
    table = table.assign(address_label=table["heading"], reported=None)
    title = figures.diagnostic(task).title
    shape = TableShape(title, source="", measures=(), rows=(), columns="address")
    return _pivot(figures, shape, table)


def _overview_of_few(figures: ReportFigures) -> Grid:
    """Returns a table with a row per headline figure and a column per model, run or published.

    Of one run, the p of its tests against chance has a column. Empty columns are left out.
    """
    rows = list[GridRow]()
    for task in figures.tasks:
        task_rows = headline_rows(task, figures)
        if len(figures.tasks) > 1:
            title = visible(figures.diagnostic(task).short_title)
            task_rows = rows_below_heading(title, task_rows)
        rows += task_rows
    if not rows:
        return Grid("", label_headings=("",), headings=(), rows=())
    published = [f"{name}, {PUBLISHED}" for name in REFERENCES.values()]
    models = [*(source.label for source in figures.sources), *published]
    # published figures are less prominent than those of the runs
    grid = figure_grid("Main figures", ("",), models, rows, text_columns=published)
    if len(figures.sources) == 1:
        rows = [row._replace(cells=(*row.cells, _p_cell(row))) for row in grid.rows]
        grid = grid._replace(headings=(*grid.headings, Heading("p")), rows=tuple(rows))
    filled_columns = [
        i for i in range(len(grid.headings)) if any(row.cells[i].value for row in grid.rows)
    ]
    return grid.select_columns(filled_columns)


def headline_rows(task: str, figures: ReportFigures) -> list[GridRow]:
    """Returns a row for each headline figure of a task that any of the runs has.

    A row has a cell for each run, then one for each model of the paper; empty cells where these do
    not have the figure.
    """
    table = headlines(task, figures)
    addresses = table["address"].tolist()
    references = {  # model of the paper -> address -> cell
        name: {addresses[number]: cell for number, cell in cells.items()}
        for name, cells in _reference_cells(figures, table).items()
    }
    records_at: dict[str, list[dict[str, Any]]] = {}  # address -> a record per run that has it
    columns = ["address", "run", "figure", "reported", "human", "heading"]
    for record in table[columns].to_dict("records"):  # of few figures, pandas' groups take longer
        records_at.setdefault(record["address"], []).append(record)
    rows = []
    for address, records in records_at.items():
        cells = [CellText("")] * len(figures.sources)
        for record in records:
            cells[record["run"]] = cell_of(record["figure"], record["reported"])
        for name in REFERENCES.values():
            cells.append(references.get(name, {}).get(address, CellText("")))
        heading = visible(records[0]["heading"])
        rows.append(GridRow((heading,), 0, tuple(cells), human=records[0]["human"]))
    return rows


def _p_cell(row: GridRow) -> CellText:
    """Returns a cell with the p of the first figure of a row against chance, e.g. ".012".

    The cell is empty if the figure has no test.
    """
    p_values = [cell.figure.p_chance for cell in row.cells if cell.figure]
    if not p_values or p_values[0] is None:
        return CellText("")
    return CellText(numbers.p_value(p_values[0]))


# ---- the section of a diagnostic -----------------------------------------------------------------


def sections(
    figures: ReportFigures, rows: Mapping[str, Mapping[str, Sequence[Any]]] = {}
) -> list[Section]:
    """Returns a section with the tables of each task that any of the runs has.

    Args:
        rows: task -> column -> its values in the rows of the task. From the columns `suite` and
            `formulas` of test suites the tables have the formulas of predictions.
    """
    task_sections = []
    for task in figures.tasks:
        tables, further = _tables(task, figures, _formulas(rows.get(task, {})))
        remarks = [
            *remarks_on_rows(task, figures),
            *signs([*tables, *further]),
            *remarks_below(task, figures),
        ]
        title = figures.diagnostic(task).title
        task_sections.append(Section(title, tables, remarks, further=further, task=task))
    return task_sections


def _formulas(columns: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Returns address of each prediction of test suites, "SUITE/NUMBER" -> its formula.

    For example, {"npi/1": "(2;%bad%) > (2;%good%)"}. If there are several suites, the name of the
    suite stands before the formula: "npi: (2;%bad%) > (2;%good%)". {} for rows without formulas.

    Args:
        columns: of rows of suites, `suite` and `formulas`, the predictions of the suite of a row.
    """
    suites = columns.get("suite", ())
    # the rows of a suite have the same formulas; rows that are not of suites have no such columns
    formulas_of_suite = dict(zip(suites, columns.get("formulas", ()), strict=False))
    formulas = {}
    for suite, suite_formulas in formulas_of_suite.items():
        for number, formula in enumerate(suite_formulas, start=1):
            text = f"{suite}: {formula}" if len(formulas_of_suite) > 1 else formula
            formulas[f"{suite}/{number}"] = text
    return formulas
