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


def _between_levels(by: str) -> str:
    return f"differences between levels of {by}: Welch's t test over items"


class _Column(NamedTuple):
    """How a column is shown: its heading, the text of a value, whether it has unit and interval."""

    heading: str
    text: Callable[[Any], str] = numbers.decimals
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

    Of many suites, the tables are `further` ones. Warnings on the rows are remarks of the section.

    Args:
        options: are added to the design that is stored with the first run; `BadInput` if they fit
            no
            task.
    """
    designs: list[Section] = []
    problems = []
    stored_options = runs[0].results.design if runs else FOUND_DESIGN
    options_of_all = replace(stored_options, **options.stored())
    for task in dict.fromkeys(task for run in runs for task in run.stimuli):
        runs_of_task = [run for run in runs if task in run.stimuli]
        rows = runs_of_task[0].stimuli[task]
        section = Section("conditions")
        design_of_rows = design_of(rows, options_of_all)
        warnings = [
            visible(f"{WARNING}{line}")
            for line in (design_of_rows.warnings if design_of_rows else ())
        ]
        arguments = options_of_all.given()
        if rows.whole is not None and design_of_rows and design_of_rows.levels:
            arguments["conditions"] = tuple(design_of_rows.levels)  # of a sample, those of all rows
        items = item_columns(options_of_all, rows.columns())
        has_items = all(any(rows.columns().get(name, ())) for name in items)
        if has_items and task not in diagnostics.built_in() and rows.form != "cloze":
            try:
                section = _design(runs_of_task, task, dict(arguments))
            except BadInput as error:
                problems.append(error)
                if options_of_all.given() or warnings:
                    section = section._replace(remarks=[f"conditions: {error}"])
        if remarks := [*section.remarks, *warnings]:
            title = f"{visible(task)}: {section.title}"
            designs.append(section._replace(title=title, remarks=remarks))
    if problems and options.stored() and not any(design.tables for design in designs):
        raise problems[0]
    return designs


def _design(runs: Sequence[Run], task: str, arguments: dict[str, Any]) -> Section:
    """Returns the section on the conditions of a task: tables, sentences and charts.

    Args:
        runs: that have the task.
        arguments: of `analyse_table`.
    """
    from lmdiag.report.charts.conditions import condition_plot, forest_plots  # loads pandas

    region = arguments.pop("region", "")
    labels = run_labels([run.results for run in runs])
    if runs[0].stimuli[task].diagnostic.asks == "sentence":
        arguments["not_compared"] = [labels[number] for number in runs_of_other_kind(runs)]
    per: Per = "sentence" if region == WHOLE_SENTENCE else "row"
    region = "" if region == WHOLE_SENTENCE else region
    analysis = analyse_table(items_of(runs, task=task, per=per, labels=labels), **arguments)
    n_suites = analysis.cells["suite"].nunique() if "suite" in analysis.cells else 0
    name = name_part(task)
    asks = runs[0].stimuli[task].diagnostic.asks
    analysis = replace(analysis, part="" if n_suites else PARTS_OF[asks], warnings=())
    plots = list[Plot]()
    if runs[0].stimuli[task].regions is not None:
        table = items_of(runs, task=task, per="region", labels=labels)
        if not n_suites:  # charts of suites have their regions
            arguments["conditions"] = [*analysis.conditions]
            analysis_of_regions = analyse_table(table, region="all", **arguments)
            plots.append(condition_plot(f"{name}-regions", analysis_of_regions))
        if region:
            analysis = analyse_table(table, region=region, **arguments)
    elif region:
        raise BadInput(f"--region {region}: {task} has no regions")
    order = order_of([run.results for run in runs])
    if order and order.name == "layer":  # layers of a model are not tested against each other
        analysis = replace(analysis, differences=analysis.differences.iloc[:0])
    grids = [*analysis_grids(analysis)]
    remarks = [f"conditions: {' x '.join(analysis.conditions)}", *analysis_remarks(analysis)]
    if n_suites:
        remarks[0] = f"{n_suites} suites with different conditions, each tested by itself"
    effects = [grid for grid in grids if grid.label_headings[0] == "effect"]
    findings = () if n_suites else analysis_findings(analysis)
    title = "conditions" if n_suites else analysis.response_text()
    if n_suites > _MOST_SUITES:
        remarks[0] += "; `lmdiag analyse` prints all tables"
        return Section("conditions", [], remarks, effects, plots=plots)
    trends = _trends(runs, name, analysis)
    if len(runs) > MOST_BESIDE:
        plots = trends or forest_plots(f"{name}-effects", analysis)
        return Section(title, effects[:1], remarks, grids[1:], plots=plots, findings=findings)
    if region != "all":
        plots.insert(0, condition_plot(f"{name}-conditions", analysis))
    plots = [plot._replace(is_further=bool(trends)) for plot in plots]  # a panel for each run
    return Section(title, grids, remarks, plots=[*trends, *plots], findings=findings)


def _trends(runs: Sequence[Run], name: str, analysis: Analysis) -> list[Plot]:
    """The curves of a design over the layers or training steps of one model."""
    from lmdiag.report.charts.models import condition_trends  # loads pandas

    order = order_of([run.results for run in runs])
    if order is None:
        return []
    places = dict(zip(run_labels([run.results for run in runs]), order.numbers, strict=True))
    return condition_trends(name, analysis, places, "layers" if order.name == "layer" else "steps")


def analysis_output(analysis: Analysis) -> Output:
    """Returns what is shown of an analysis: its tables and the chart of the means."""

    def plots() -> Iterator[Plot]:
        from lmdiag.report.charts.conditions import condition_plot  # loads pandas

        if len(analysis.cells):
            yield condition_plot("conditions", analysis)

    fits = tuple(fit.warning for fit in analysis.mixed.values() if fit.warning)
    remarks = [*analysis_remarks(analysis)]
    warnings = [remark for remark in remarks if remark.endswith(fits)]
    other_remarks = [remark for remark in remarks if remark not in warnings]
    conditions = " x ".join(analysis.conditions)
    title = f"{analysis.response_text()}{f' by {visible(conditions)}' if conditions else ''}"
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
    """Yields the tables of an analysis: effects, cells, and each mixed model."""
    response = analysis.response_text()
    names = [*analysis.conditions]
    difference_title = "Differences between models in effects"
    tests_of_title = {"Effects": analysis.effects, "Simple effects": analysis.simple}
    tests_of_title[difference_title] = analysis.differences
    for title, tests in tests_of_title.items():
        if len(tests):
            caption = f"{title} on {response} over items, with 95% interval"
            grid = _grid(analysis, caption, "effect", tests["label"], _with_t(tests), _TEST)
            notes = [_EFFECTS]
            if tests is analysis.simple:
                notes.append(_SIMPLE)
            if "p_sign_flip" in tests:
                notes.append(_EXACT)
            yield grid._replace(notes=tuple(notes))
    if len(tests := analysis.by_level):
        labels = tests["label"] + ", " + tests["level"]
        caption = f"Effects on {response} by {visible(analysis.by)}, with 95% interval"
        grid = _grid(analysis, caption, f"effect, {analysis.by}", labels, _with_t(tests), _TEST)
        yield grid._replace(notes=(_EFFECTS, _between_levels(analysis.by)))
    if len(cells := analysis.cells):
        levels = cells[[*cell_columns(names).values()]]
        labels = (
            ", ".join(filter(None, response))
            for response in levels.itertuples(index=False, name=None)
        )
        caption = f"Mean {response} by condition, with 95% interval within items"
        grid = _grid(analysis, caption, ", ".join(names), labels, cells, _CELL)
        yield grid._replace(notes=(_CELLS,))
    for model, fit in analysis.mixed.items():
        title = f"Mixed model{f' of {visible(model)}' if len(analysis.mixed) > 1 else ''}"
        terms = fit.terms.drop(columns=["ci_low", "ci_high"]).reset_index()
        caption = f"{title}: {visible(fit.formula)}"
        yield _grid(analysis, caption, "term", terms["term"], terms, _TERM)


def _with_t(tests: DataFrame) -> DataFrame:
    """The tests with t and its degrees of freedom as one text."""
    columns = zip(tests["t"], tests["df"], strict=True)
    return tests.assign(t_df=[f"{numbers.decimals(t)} ({_number_text(df)})" for t, df in columns])


def _grid(
    analysis: Analysis,
    caption: str,
    heading: str,
    labels: Iterable[str],
    table: DataFrame,
    columns: Mapping[str, _Column],
) -> Grid:
    """Returns tests, cells or terms as a table of texts.

    Args:
        caption: of the table.
        heading: of the column of labels.
        labels: of the rows, after which stands the model, if there are several.
        table: a row per test, cell or term.
        columns: name of a column -> how it is shown; those that the table lacks are left out.
    """
    present = {name: column for name, column in columns.items() if name in table}
    unit = f", {UNITS[analysis.response]}" if analysis.response in UNITS else ""
    headings = {name: column.heading + unit * column.is_figure for name, column in present.items()}
    n_labels = 2 if analysis.has_models and "model" in table else 1
    rows = []
    for label, record in zip(labels, table.to_dict("records"), strict=True):
        ends = (numbers.decimals(record.get(end)) for end in ("ci_low", "ci_high"))
        interval = "" if isna(record.get("ci_low")) else f"[{', '.join(ends)}]"
        cells = {
            headings[name]: CellText(x.text(record[name]), interval if x.is_figure else "")
            for name, x in present.items()
        }
        suite = f"{record['suite']}: " if "suite" in record else ""
        rows.append(((suite + label, record.get("model", ""))[:n_labels], cells))
    facts = [headings[name] for name, column in present.items() if not column.is_figure]
    return text_grid(caption, (visible(heading), "model")[:n_labels], rows, facts)


def analysis_remarks(analysis: Analysis) -> Iterator[str]:
    """Yields the lines below the tables of `lmdiag analyse`.

    How rows were read, warnings, the sample and random effects of each mixed model, how many items
    were left out, and which level is subtracted from which.
    """
    yield from analysis.notes
    yield from (f"{WARNING}{line}" for line in analysis.warnings)
    for model, fit in analysis.mixed.items():
        name = f"mixed model{f' of {model}' if len(analysis.mixed) > 1 else ''}"
        if fit.warning:
            yield f"{name}: {fit.warning}"
        groups = ", ".join(f"{n} groups of {group}" for group, n in fit.groups.items())
        sds = "".join(
            f"{group} {term} {numbers.decimals(sd, 3)}, "
            for group, terms in fit.random_sd.items()
            for term, sd in terms.items()
        )
        left_out = f" ({fit.left_out} rows without a value left out)" if fit.left_out else ""
        yield (
            f"{name}: n = {fit.n}{left_out}, {groups}; standard deviations: {sds}residual "
            f"{numbers.decimals(fit.residual_sd, 3)}; REML, Satterthwaite's df"
        )
    for (suite, model), n in analysis.left_out.items():
        place = ", ".join(filter(None, (suite, model if analysis.has_models else "")))
        items = f"{n} item{'s' if n > 1 else ''} without a value in every condition"
        if n:
            yield f"left out{f' of {place}' if place else ''}: {items}"
    pairs = [
        f"{condition}: {levels[1]} - {levels[0]}"
        for condition, levels in analysis.conditions.items()
        if len(levels) == 2
    ]
    if pairs and analysis.mixed:
        yield f"mixed model: coefficients of two levels, {'; '.join(pairs)}"
    if analysis.not_compared:
        models = ", ".join(analysis.not_compared)
        yield f"not compared with the first model: {models}: {PSEUDO}"
    if len(analysis.effects):
        yield _EFFECTS
        if len(analysis.simple):
            yield _SIMPLE
        if analysis.by:
            yield _between_levels(analysis.by)
        if "p_sign_flip" in analysis.effects:
            yield _EXACT
        yield _CELLS
