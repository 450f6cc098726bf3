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
from lmdiag.studies.comparison import unlike_first
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


def _whole(value: Any) -> str:
    """A number, without decimals where it has none."""
    is_whole = not isna(value) and value % 1 == 0
    return str(int(value)) if is_whole else numbers.decimals(None if isna(value) else value)


_three = partial(numbers.decimals, digits=3)
_TEST = {
    "n": _Column("n", _whole), "estimate": _Column("difference", is_figure=True),
    "t_df": _Column("t (df)", str), "p": _Column("p", numbers.p_value), "d_z": _Column("d_z"),
    "p_sign_flip": _Column("p exact", numbers.p_value),
    "p_holm": _Column("p Holm", numbers.p_value), "n_tests": _Column("tests", _whole),
}  # fmt: skip
_CELL = {"n": _Column("n", _whole), "mean": _Column("mean", is_figure=True)}
_TERM = {
    "estimate": _Column("estimate", _three, is_figure=True), "se": _Column("SE", _three),
    "df": _Column("df", _three), "t": _Column("t", _three), "p": _Column("p", numbers.p_value),
}  # fmt: skip
"""Columns of a table of tests, cells or terms."""


def designs_of(runs: Sequence[Run], options: DesignOptions = FOUND_DESIGN) -> list[Section]:
    """Returns the designs of a user's own data, of those that have conditions.

    Their tables are `further` ones where there are too many for the terminal. The options are
    beside what is stored with the first run; `BadInput` if they fit no task.
    """
    designs: list[Section] = []
    problems = []
    stored = runs[0].results.design if runs else FOUND_DESIGN
    options_of_all = replace(stored, **options.stored())
    for task in dict.fromkeys(task for run in runs for task in run.stimuli):
        having = [run for run in runs if task in run.stimuli]
        rows = having[0].stimuli[task]
        section = Section("conditions")
        found = design_of(rows, options_of_all)
        warnings = [visible(f"{WARNING}{line}") for line in (found.warnings if found else ())]
        arguments = options_of_all.given()
        if rows.whole is not None and found and found.levels:
            arguments["conditions"] = tuple(found.levels)  # of a sample, those of all rows
        items = item_columns(options_of_all, rows.columns())
        has_items = all(any(rows.columns().get(name, ())) for name in items)
        if has_items and task not in diagnostics.built_in() and rows.form != "cloze":
            try:
                section = _design(having, task, dict(arguments))
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
    """The plot of the chosen region or of whole rows, then that of all regions."""
    from lmdiag.report.charts.conditions import condition_plot, forest_plots  # loads pandas

    region = arguments.pop("region", "")
    labels = run_labels([run.results for run in runs])
    if runs[0].stimuli[task].diagnostic.asks == "sentence":
        arguments["not_compared"] = [labels[number] for number in unlike_first(runs)]
    per: Per = "sentence" if region == WHOLE_SENTENCE else "row"
    region = "" if region == WHOLE_SENTENCE else region
    chosen = analyse_table(items_of(runs, task=task, per=per, labels=labels), **arguments)
    n_suites = chosen.cells["suite"].nunique() if "suite" in chosen.cells else 0
    name = name_part(task)
    asks = runs[0].stimuli[task].diagnostic.asks
    chosen = replace(chosen, part="" if n_suites else PARTS_OF[asks], warnings=())
    plots = list[Plot]()
    if runs[0].stimuli[task].regions is not None:
        table = items_of(runs, task=task, per="region", labels=labels)
        if not n_suites:  # charts of suites have their regions
            arguments["conditions"] = [*chosen.conditions]
            regions = analyse_table(table, region="all", **arguments)
            plots.append(condition_plot(f"{name}-regions", regions))
        if region:
            chosen = analyse_table(table, region=region, **arguments)
    elif region:
        raise BadInput(f"--region {region}: {task} has no regions")
    order = order_of([run.results for run in runs])
    if order and order.name == "layer":  # layers of a model are not tested against each other
        chosen = replace(chosen, differences=chosen.differences.iloc[:0])
    grids = [*analysis_grids(chosen)]
    remarks = [f"conditions: {' x '.join(chosen.conditions)}", *analysis_remarks(chosen)]
    if n_suites:
        remarks[0] = f"{n_suites} suites with different conditions, each tested by itself"
    effects = [grid for grid in grids if grid.label_headings[0] == "effect"]
    findings = () if n_suites else analysis_findings(chosen)
    title = "conditions" if n_suites else chosen.response_text()
    if n_suites > _MOST_SUITES:
        remarks[0] += "; `lmdiag analyse` prints all tables"
        return Section("conditions", [], remarks, effects, plots=plots)
    trends = _trends(runs, name, chosen)
    if len(runs) > MOST_BESIDE:
        plots = trends or forest_plots(f"{name}-effects", chosen)
        return Section(title, effects[:1], remarks, grids[1:], plots=plots, findings=findings)
    if region != "all":
        plots.insert(0, condition_plot(f"{name}-conditions", chosen))
    plots = [plot._replace(is_further=bool(trends)) for plot in plots]  # a panel for each run
    return Section(title, grids, remarks, plots=[*trends, *plots], findings=findings)


def _trends(runs: Sequence[Run], name: str, analysis: Analysis) -> list[Plot]:
    """The curves of a design over the layers or training steps of one model."""
    from lmdiag.report.charts.models import condition_trends  # loads pandas

    order = order_of([run.results for run in runs])
    if order is None:
        return []
    places = dict(zip(run_labels([run.results for run in runs]), order.places, strict=True))
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
    others = [remark for remark in remarks if remark not in warnings]
    conditions = " x ".join(analysis.conditions)
    title = f"{analysis.response_text()}{f' by {visible(conditions)}' if conditions else ''}"
    return Output(
        kind="analysis", title=title[:1].upper() + title[1:],
        facts=[Fact(visible(name), [visible(text)]) for name, text in analysis.sources.items()],
        findings=analysis_findings(analysis), warnings=warnings,
        sections=[Section(
            "", [*analysis_grids(analysis)], others, plots=Deferred(plots),
            signatures=[*map(visible, analysis.signatures)],
        )],
        frame=analysis.to_frame, document=analysis.to_json,
    )  # fmt: skip


def analysis_grids(analysis: Analysis) -> Iterator[Grid]:
    """Yields the tables of an analysis: effects, cells, and each mixed model."""
    of = analysis.response_text()
    names = [*analysis.conditions]
    gaps = "Differences between models in effects"
    titled = {"Effects": analysis.effects, "Simple effects": analysis.simple}
    titled[gaps] = analysis.differences
    for title, tests in titled.items():
        if len(tests):
            caption = f"{title} on {of} over items, with 95% interval"
            grid = _grid(analysis, caption, "effect", tests["label"], _with_t(tests), _TEST)
            notes = (_EFFECTS, *[_SIMPLE] * (tests is analysis.simple))
            yield grid._replace(notes=(*notes, *[_EXACT] * ("p_sign_flip" in tests)))
    if len(tests := analysis.by_level):
        labels = tests["label"] + ", " + tests["level"]
        caption = f"Effects on {of} by {visible(analysis.by)}, with 95% interval"
        grid = _grid(analysis, caption, f"effect, {analysis.by}", labels, _with_t(tests), _TEST)
        yield grid._replace(notes=(_EFFECTS, _between_levels(analysis.by)))
    if len(cells := analysis.cells):
        levels = cells[[*cell_columns(names).values()]]
        labels = (", ".join(filter(None, of)) for of in levels.itertuples(index=False, name=None))
        caption = f"Mean {of} by condition, with 95% interval within items"
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
    return tests.assign(t_df=[f"{numbers.decimals(t)} ({_whole(df)})" for t, df in columns])


def _grid(
    analysis: Analysis,
    caption: str,
    heading: str,
    labels: Iterable[str],
    table: DataFrame,
    columns: Mapping[str, _Column],
) -> Grid:
    """The texts of a table, after the labels of its rows and the name of the model."""
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
    """Yields what a reader of the tables has to know."""
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
        of = ", ".join(filter(None, (suite, model if analysis.has_models else "")))
        items = f"{n} item{'s' if n > 1 else ''} without a value in every condition"
        if n:
            yield f"left out{f' of {of}' if of else ''}: {items}"
    pairs = [f"{x}: {of[1]} - {of[0]}" for x, of in analysis.conditions.items() if len(of) == 2]
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
