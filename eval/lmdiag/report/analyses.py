"""The tables of an analysis of conditions, and the analyses that the report of runs shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pandas import DataFrame, isna

from lmdiag import diagnostics
from lmdiag.analysis.designs import PARTS_OF, UNITS, Analysis, analyse_table, cell_columns
from lmdiag.analysis.items import items_of
from lmdiag.analysis.rows import EACH_REGION
from lmdiag.measures import PSEUDO
from lmdiag.report import numbers
from lmdiag.report.analysis_findings import analysis_findings
from lmdiag.report.charts import MOST_BESIDE, Plot, name_part
from lmdiag.report.grid import CellText, Grid, text_grid
from lmdiag.report.labels import order_of, run_labels
from lmdiag.report.output import WARNING, Deferred, Fact, Output, Section
from lmdiag.results.item_rows import Per
from lmdiag.stimuli.designs.design import design_of, item_columns
from lmdiag.studies.comparison import runs_of_other_kind
from lmdiag.text import visible
from lmdiag.types import FOUND_DESIGN, WHOLE_SENTENCE, BadInput, DesignOptions

if TYPE_CHECKING:
    from lmdiag.results import Run

_MOST_SUITES = 12
"""Suites with different conditions in a chart, and on the terminal."""


_EFFECTS = "effects: paired t tests over items; d_z: in standard deviations"
_SIMPLE = (
    "simple effects: of the first condition at each level of the second, with their interaction; "
    "p Holm over these"
)
_EXACT = "p exact: sign-flip test over all patterns of signs"
_CELLS = "intervals of cells: within items (Cousineau 2005; Morey 2008)"
"""Remarks, which papers have below the table that they are about."""


def _note_on_levels(by: str) -> str:
    """Returns the remark on the differences between the levels of a factor between items."""
    return f"differences between levels of {by}: Welch's t test over items"


class _Column(NamedTuple):
    """How a column is shown.

    Attributes:
        heading: without the unit.
        text_of: returns the text of a value.
        is_figure: whether the heading has the unit, and the cells have the interval.
    """

    heading: str
    text_of: Callable[[Any], str] = numbers.decimals
    is_figure: bool = False


def _number_text(value: Any) -> str:
    """Returns a number as text: whole numbers, as most n and df are, without decimals."""
    if isna(value):
        return numbers.UNDEFINED
    return str(int(value)) if value % 1 == 0 else numbers.decimals(value)


_three_decimals = partial(numbers.decimals, digits=3)
_TEST = {
    "n": _Column("n", _number_text), "estimate": _Column("difference", is_figure=True),
    "t_df": _Column("t (df)", str), "p": _Column("p", numbers.p_value), "d_z": _Column("d_z"),
    "p_sign_flip": _Column("p exact", numbers.p_value),
    "p_holm": _Column("p Holm", numbers.p_value), "n_tests": _Column("tests", _number_text),
}  # fmt: skip
_CELL = {"n": _Column("n", _number_text), "mean": _Column("mean", is_figure=True)}
_TERM = {
    "estimate": _Column("estimate", _three_decimals, is_figure=True),
    "se": _Column("SE", _three_decimals), "df": _Column("df", _three_decimals),
    "t": _Column("t", _three_decimals), "p": _Column("p", numbers.p_value),
}  # fmt: skip
"""Columns of a table of tests, cells or terms."""


def designs_of(runs: Sequence[Run], options: DesignOptions = FOUND_DESIGN) -> list[Section]:
    """Returns a section per task of a user's own data that has conditions, with its tests.

    Tasks that are built in, and tables of words that people gave, have no such section. Warnings on
    the rows are remarks of the section. A task that cannot be analysed has a section that says why
    if the user named a part of the design, or if there are warnings.

    Args:
        runs: finished runs, in the order in which they are shown.
        options: added to the design that is stored with the first run.

    Raises:
        BadInput: the options fit none of the tasks.
    """
    sections: list[Section] = []
    problems = []
    stored_options = runs[0].results.design if runs else FOUND_DESIGN
    all_options = replace(stored_options, **options.stored())
    for task in dict.fromkeys(task for run in runs for task in run.stimuli):
        runs_of_task = [run for run in runs if task in run.stimuli]
        rows = runs_of_task[0].stimuli[task]
        design = design_of(rows, all_options)  # what the columns are used for
        warnings = []
        if design:
            warnings = [visible(f"{WARNING}{line}") for line in design.warnings]
        arguments = all_options.given()
        if rows.whole is not None and design and design.levels:
            # the run asked a sample: its conditions are those of all rows
            arguments["conditions"] = tuple(design.levels)
        items = item_columns(all_options, rows.columns())
        # whether all columns that name items have values
        has_items = all(any(rows.columns().get(name, ())) for name in items)
        section = Section("conditions")
        if has_items and task not in diagnostics.built_in() and rows.form != "cloze":
            try:
                section = _conditions_section(runs_of_task, task, dict(arguments))
            except BadInput as error:
                problems.append(error)
                if all_options.given() or warnings:  # data without either need no reason
                    section = section._replace(remarks=[f"conditions: {error}"])
        if remarks := [*section.remarks, *warnings]:
            title = f"{visible(task)}: {section.title}"
            sections.append(section._replace(title=title, remarks=remarks))
    # options of this call, unlike those that are stored with the run, have to fit a task
    if problems and options.stored() and not any(section.tables for section in sections):
        raise problems[0]
    return sections


def _conditions_section(runs: Sequence[Run], task: str, arguments: dict[str, Any]) -> Section:
    """Returns the section on the conditions of a task: tables, sentences and charts.

    Of many suites, and of many models, some of the tables are `further` ones, which a page folds.
    Suites with different conditions are tested one by one.

    Args:
        runs: that have the task.
        arguments: of `analyse_table`.
    """
    from lmdiag.report.charts.conditions import condition_plot, forest_plots  # loads pandas

    name = name_part(task)
    region = arguments.get("region", "")
    analysis, n_suites, region_plots = _analysis_of_runs(runs, task, arguments)
    order = order_of([run.results for run in runs])
    if order and order.name == "layer":  # layers of a model are not tested against each other
        analysis = replace(analysis, differences=analysis.differences.iloc[:0])
    grids = [*analysis_grids(analysis)]
    # the tables of tests, not those of cells and terms
    effects = [grid for grid in grids if grid.label_headings[0] == "effect"]
    if n_suites:
        title = "conditions"
        findings = []
        design_line = f"{n_suites} suites with different conditions, each tested by itself"
    else:
        title = analysis.response_text()
        findings = analysis_findings(analysis)
        design_line = f"conditions: {' x '.join(analysis.conditions)}"
    if n_suites > _MOST_SUITES:
        design_line += "; `lmdiag analyse` prints all tables"
    remarks = [design_line, *analysis_remarks(analysis)]
    # many suites: the tests alone, which a page folds
    if n_suites > _MOST_SUITES:
        return Section(title, remarks=remarks, further=effects, plots=region_plots)
    trends = _trends(runs, name, analysis)
    # many models: the table of effects, with all other tables folded
    if len(runs) > MOST_BESIDE:
        plots = trends or forest_plots(f"{name}-effects", analysis)
        return Section(
            title, effects[:1], remarks, further=grids[1:], plots=plots, findings=findings
        )
    plots = region_plots
    if region != EACH_REGION:  # otherwise `region_plots` has the chart of this analysis
        plots = [condition_plot(f"{name}-conditions", analysis), *plots]
    # where there are trends, a page folds these charts, which have a panel for each run
    plots = [plot._replace(is_further=bool(trends)) for plot in plots]
    return Section(title, grids, remarks, plots=[*trends, *plots], findings=findings)


class _RunsAnalysis(NamedTuple):
    """The analysis of a task of some runs.

    Attributes:
        analysis: of the region that the user chose, or of the response of whole rows.
        n_suites: number of suites with different conditions; 0 if all rows have the same ones.
        region_plots: a chart of the response in each region, of rows with regions. Suites have
            none: their own charts have the regions.
    """

    analysis: Analysis
    n_suites: int
    region_plots: list[Plot]


def _analysis_of_runs(runs: Sequence[Run], task: str, arguments: dict[str, Any]) -> _RunsAnalysis:
    """Returns the analysis of a task, the number of its suites, and a chart of its regions.

    Args:
        runs: that have the task.
        arguments: of `analyse_table`. Its `region`, which is taken out of them, is the number or
            name of a region, "all", or "sentence" for whole sentences.
    """
    from lmdiag.report.charts.conditions import condition_plot  # loads pandas

    region = arguments.pop("region", "")
    stimuli = runs[0].stimuli[task]
    asks = stimuli.diagnostic.asks
    labels = run_labels([run.results for run in runs])
    if asks == "sentence":  # surprisals of causal and other models are on different scales
        arguments["not_compared"] = [labels[position] for position in runs_of_other_kind(runs)]
    per: Per = "row"
    if region == WHOLE_SENTENCE:
        per = "sentence"
        region = ""
    analysis = analyse_table(items_of(runs, task=task, per=per, labels=labels), **arguments)
    n_suites = analysis.cells["suite"].nunique() if "suite" in analysis.cells else 0
    part = "" if n_suites else PARTS_OF[asks]  # what the response is of, in words
    analysis = replace(analysis, part=part, warnings=())  # warnings: `designs_of` has them
    if stimuli.regions is None:
        if region:
            raise BadInput(f"--region {region}: {task} has no regions")
        return _RunsAnalysis(analysis, n_suites, [])
    plots = []
    table = items_of(runs, task=task, per="region", labels=labels)
    if not n_suites:
        # regions are analysed by the conditions that the analysis of whole rows found
        arguments["conditions"] = [*analysis.conditions]
        analysis_of_regions = analyse_table(table, region=EACH_REGION, **arguments)
        plots.append(condition_plot(f"{name_part(task)}-regions", analysis_of_regions))
    if region:
        analysis = analyse_table(table, region=region, **arguments)
    return _RunsAnalysis(analysis, n_suites, plots)


def _trends(runs: Sequence[Run], name: str, analysis: Analysis) -> list[Plot]:
    """Returns the curves of an analysis over the layers or training steps of one model, if any.

    Args:
        name: beginning of the names of the charts.
    """
    from lmdiag.report.charts.models import condition_trends  # loads pandas

    results = [run.results for run in runs]
    order = order_of(results)
    if order is None:
        return []
    # label of a run -> its layer or training step
    number_of = dict(zip(run_labels(results), order.numbers, strict=True))
    return condition_trends(
        name, analysis, number_of, "layers" if order.name == "layer" else "steps"
    )


def analysis_output(analysis: Analysis) -> Output:
    """Returns what is shown of an analysis: its tables and the chart of the means."""

    def plots() -> Iterator[Plot]:
        from lmdiag.report.charts.conditions import condition_plot  # loads pandas

        if len(analysis.cells):
            yield condition_plot("conditions", analysis)

    fit_warnings = tuple(fit.warning for fit in analysis.mixed.values() if fit.warning)
    remarks = [*analysis_remarks(analysis)]  # of which some are "MODEL: WARNING"
    # without fit warnings this is [], since no text ends with one of ()
    warnings = [remark for remark in remarks if remark.endswith(fit_warnings)]
    other_remarks = [remark for remark in remarks if remark not in warnings]
    title = analysis.response_text()
    if analysis.conditions:
        title += f" by {visible(' x '.join(analysis.conditions))}"
    return Output(
        kind="analysis", title=title[:1].upper() + title[1:],
        facts=[Fact(visible(name), [visible(text)]) for name, text in analysis.sources.items()],
        findings=analysis_findings(analysis), warnings=warnings,
        sections=[Section(
            "", [*analysis_grids(analysis)], other_remarks, plots=Deferred(plots),
            signatures=[*map(visible, analysis.signatures)],
        )],
        frame=analysis.to_frame, document=analysis.to_json,
    )  # fmt: skip


def analysis_grids(analysis: Analysis) -> Iterator[Grid]:
    """Yields the tables of an analysis that have rows, each with its notes.

    They are effects, simple effects, differences between models, effects by the levels of a factor,
    means of cells, and the terms of each mixed model.
    """
    response = analysis.response_text()
    tests_of_title = {
        "Effects": analysis.effects,
        "Simple effects": analysis.simple,
        "Differences between models in effects": analysis.differences,
    }
    # tests over all items: a table for each kind
    for title, tests in tests_of_title.items():
        if len(tests):
            caption = f"{title} on {response} over items, with 95% interval"
            grid = _table_grid(analysis, caption, "effect", tests["label"], _with_t(tests), _TEST)
            notes = [_EFFECTS]
            if tests is analysis.simple:
                notes.append(_SIMPLE)
            if "p_sign_flip" in tests:
                notes.append(_EXACT)
            yield grid._replace(notes=tuple(notes))
    # tests at each level of a factor between items
    tests = analysis.by_level
    if len(tests):
        labels = tests["label"] + ", " + tests["level"]
        caption = f"Effects on {response} by {visible(analysis.by)}, with 95% interval"
        heading = f"effect, {analysis.by}"
        grid = _table_grid(analysis, caption, heading, labels, _with_t(tests), _TEST)
        yield grid._replace(notes=(_EFFECTS, _note_on_levels(analysis.by)))
    # means of cells: a row is labelled by its level of each condition, e.g. "A, sg"
    cells = analysis.cells
    if len(cells):
        conditions = [*analysis.conditions]
        levels = cells[[*cell_columns(conditions).values()]]  # the column of each condition
        labels = [
            ", ".join(filter(None, cell_levels))
            for cell_levels in levels.itertuples(index=False, name=None)
        ]
        caption = f"Mean {response} by condition, with 95% interval within items"
        grid = _table_grid(analysis, caption, ", ".join(conditions), labels, cells, _CELL)
        yield grid._replace(notes=(_CELLS,))
    # terms of mixed models: `drop` leaves out the intervals, as such tables have the SE
    for model, fit in analysis.mixed.items():
        of_model = f" of {visible(model)}" if len(analysis.mixed) > 1 else ""
        caption = f"Mixed model{of_model}: {visible(fit.formula)}"
        terms = fit.terms.drop(columns=["ci_low", "ci_high"]).reset_index()
        yield _table_grid(analysis, caption, "term", terms["term"], terms, _TERM)


def _with_t(tests: DataFrame) -> DataFrame:
    """Returns tests with a column `t_df`: t and its degrees of freedom, "2.31 (15)"."""
    texts = [
        f"{numbers.decimals(t)} ({_number_text(df)})"
        for t, df in zip(tests["t"], tests["df"], strict=True)
    ]
    return tests.assign(t_df=texts)


def _table_grid(
    analysis: Analysis,
    caption: str,
    heading: str,
    labels: Iterable[str],
    table: DataFrame,
    columns: Mapping[str, _Column],
) -> Grid:
    """Returns tests, cells or terms as a table of texts.

    For example, a test with an estimate of 1.2 and an interval from 0.4 to 2.0 has the cell "1.20
    [0.40, 2.00]" below the heading "difference, bits".

    Args:
        analysis: that the table is part of; it has the unit of the response.
        caption: of the table.
        heading: of the column of labels.
        labels: of the rows. The suite stands before them; a second column has the model. Both are
            left out where there is one only.
        table: a row per test, cell or term, with the interval in `ci_low` and `ci_high`.
        columns: name of a column -> how it is shown; those that the table lacks are left out.
    """
    present = {name: column for name, column in columns.items() if name in table}
    unit = f", {UNITS[analysis.response]}" if analysis.response in UNITS else ""
    heading_of = {}
    text_columns = []
    for name, column in present.items():
        heading_of[name] = column.heading
        if column.is_figure:
            heading_of[name] += unit
        else:
            text_columns.append(column.heading)
    has_model_column = analysis.has_models and "model" in table
    rows = []
    for label, record in zip(labels, table.to_dict("records"), strict=True):
        interval = ""
        if not isna(record.get("ci_low")):
            bounds = (numbers.decimals(record.get(end)) for end in ("ci_low", "ci_high"))
            interval = f"[{', '.join(bounds)}]"
        cells = {}
        for name, column in present.items():
            text = column.text_of(record[name])
            cells[heading_of[name]] = CellText(text, interval if column.is_figure else "")
        if "suite" in record:
            label = f"{record['suite']}: {label}"
        row_labels = (label, record["model"]) if has_model_column else (label,)
        rows.append((row_labels, cells))
    label_headings = (visible(heading), "model") if has_model_column else (visible(heading),)
    return text_grid(caption, label_headings, rows, text_columns)


def analysis_remarks(analysis: Analysis) -> Iterator[str]:
    """Yields the lines below the tables of `lmdiag analyse`.

    They say how rows were read, and give warnings, the sample and random effects of each mixed
    model, how many items were left out ("left out of gpt2: 2 items without a value in every
    condition"), which level is subtracted from which, and by which tests.
    """
    yield from analysis.notes
    for warning in analysis.warnings:
        yield f"{WARNING}{warning}"
    for model, fit in analysis.mixed.items():
        name = f"mixed model of {model}" if len(analysis.mixed) > 1 else "mixed model"
        if fit.warning:
            yield f"{name}: {fit.warning}"
        groups = ", ".join(f"{n} groups of {group}" for group, n in fit.groups.items())
        sds = [
            f"{group} {term} {numbers.decimals(sd, 3)}"
            for group, terms in fit.random_sd.items()
            for term, sd in terms.items()
        ]
        sds.append(f"residual {numbers.decimals(fit.residual_sd, 3)}")
        left_out = f" ({fit.left_out} rows without a value left out)" if fit.left_out else ""
        yield (
            f"{name}: n = {fit.n}{left_out}, {groups}; standard deviations: {', '.join(sds)}; "
            "REML, Satterthwaite's df"
        )
    for (suite, model), n in analysis.left_out.items():  # n: items that lack a cell
        group = ", ".join(filter(None, (suite, model if analysis.has_models else "")))
        of_group = f" of {group}" if group else ""
        if n:
            items = f"{n} item{'s' if n > 1 else ''} without a value in every condition"
            yield f"left out{of_group}: {items}"
    differences_of_levels = [
        f"{condition}: {levels[1]} - {levels[0]}"
        for condition, levels in analysis.conditions.items()
        if len(levels) == 2
    ]
    if differences_of_levels and analysis.mixed:
        yield f"mixed model: coefficients of two levels, {'; '.join(differences_of_levels)}"
    if analysis.not_compared:
        models = ", ".join(analysis.not_compared)
        yield f"not compared with the first model: {models}: {PSEUDO}"
    if len(analysis.effects):
        yield _EFFECTS
        if len(analysis.simple):
            yield _SIMPLE
        if analysis.by:
            yield _note_on_levels(analysis.by)
        if "p_sign_flip" in analysis.effects:
            yield _EXACT
        yield _CELLS
