"""What is shown of one run, or of several on the same rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from pandas import DataFrame

from lmdiag.report import labels, numbers
from lmdiag.report.analyses import designs_of
from lmdiag.report.charts import MOST_BESIDE, Plot
from lmdiag.report.charts.kinds import plots
from lmdiag.report.charts.models import ranked_plots, trend_plots
from lmdiag.report.charts.task_runs import TaskRuns
from lmdiag.report.cloze_tables import cloze_output
from lmdiag.report.comparisons import (
    RunPair,
    comparison_notes,
    detailed_positions,
    difference_tables,
    findings_beside_frequency,
    pair_findings,
    run_pairs,
)
from lmdiag.report.grid import PUBLISHED, Grid, GridRow, chance_legend, text_grid, wrapped
from lmdiag.report.item_list import item_list
from lmdiag.report.output import Deferred, ItemList, Output, Section
from lmdiag.report.remarks import against_chance
from lmdiag.report.run_findings import models_findings, prediction_findings, run_findings
from lmdiag.report.run_items import answers_to_items, items
from lmdiag.report.selections import ReportFigures, chosen_run, headlines
from lmdiag.report.tables import overview, sections
from lmdiag.results import Results, Run, cited_signatures
from lmdiag.results.figures import figures as figures_of_runs
from lmdiag.results.model_labels import model_label, needs_no_context
from lmdiag.results.published_figures import REFERENCES
from lmdiag.results.run import joined_runs
from lmdiag.results.without_figures import without_any_figure
from lmdiag.studies.cloze_norms import ClozeNorms
from lmdiag.studies.comparison import not_compared
from lmdiag.text import visible
from lmdiag.types import FOUND_DESIGN, BadInput, DesignOptions

_MOST_DESIGNS = 5
"""Tasks of a new run whose conditions are printed."""

_ANSWER_WIDTH = 40
"""Characters in a line of the answer to a chosen item."""

_CHOICE = (
    "Asked as a choice: the model was shown the alternatives of each contrast with labels, and "
    "chose by the probabilities of the labels. Shares are those of a label among all labels, not "
    "probabilities of words."
)


class Report:
    """What pages, terminals and files show of a run, or of several that are compared.

    Attributes:
        runs: in the order in which they are shown.
        figures: of these runs.
        detailed: positions, in `runs` and in the sources of `figures`, of the runs whose items and
            charts of items are shown.
        chosen_items: ids of items whose answers are shown in a table.
        answers: what the models answered to these items.
        across: keys of `KNOBS` in which the runs may differ.
        are_layers: whether the runs are layers of one model.
    """

    def __init__(
        self,
        runs: Run | Sequence[Run],
        design: DesignOptions = FOUND_DESIGN,
        across: Sequence[str] = (),
        tasks: Sequence[str] = (),
        measures: Sequence[str] = (),
        items: Sequence[str] = (),
    ) -> None:
        """Selects what is shown of the runs, and puts the runs in order.

        Args:
            runs: finished runs. Those of one model on different tasks are shown as one run.
            design: how items of own data are analysed, beside what is stored with the runs.
            across: keys of `KNOBS` in which runs that are compared may differ; the layers of one
                model may in any case.
            tasks, measures: what is shown; all if empty.
            items: ids of rows or contrasts that are shown in tables, and that a task with too many
                items must list.

        Raises:
            BadInput: the runs have no such task, measure or item.
        """
        selected_runs = joined_runs(runs) if isinstance(runs, Sequence) else [runs]
        selected_runs = [chosen_run(run, tasks, measures) for run in selected_runs]
        results = [run.results for run in selected_runs]
        order = labels.order_of(results)
        self.are_layers = order is not None and order.name == "layer"
        self.across = [*across, "layer"] if self.are_layers else across
        self.runs = [selected_runs[position] for position in labels.positions_in_order(results)]
        self.figures = ReportFigures.of([run.results for run in self.runs])
        self.detailed = detailed_positions(self.runs)
        self._design = design
        self._measures = measures
        self.chosen_items = items
        self.answers = answers_to_items(self.runs, items) if items else []

    @cached_property
    def comparisons(self) -> list[RunPair]:
        """The comparisons of the runs, see `run_pairs`; `BadInput` if data or protocols differ."""
        return run_pairs(self.runs, self.figures.sources, self.across, self._measures)

    @cached_property
    def designs(self) -> list[Section]:
        """A section per task of own data with conditions; `BadInput` if there is no such region."""
        return designs_of(self.runs, self._design)

    @cached_property
    def sections(self) -> list[Section]:
        """A section per task with its tables, in which predictions of suites are formulas."""
        columns = {task: rows.columns() for run in self.runs for task, rows in run.stimuli.items()}
        return sections(self.figures, columns)

    @cached_property
    def tasks(self) -> dict[str, TaskRuns]:
        """Task -> the runs that have it, with their items and figures, for charts and lists.

        Of many runs these are only the ones whose items are shown (`detailed`).
        """
        tasks = {}
        for task in self.figures.tasks:
            # positions in `runs`, and in `figures.sources`, which has the same runs
            positions = [i for i in self.detailed if task in self.runs[i].results.tasks]
            runs = [self.runs[i] for i in positions]
            task_items = [items(run, task) for run in runs]
            styles = {}
            if len(runs) > 1:  # a model has the same colour and mark in all tasks
                styles = {self.figures.sources[i].label: self.detailed.index(i) for i in positions}
            figures = self.figures.select_runs(positions)
            tasks[task] = TaskRuns(task, runs, figures, task_items, styles)
        return tasks

    @cached_property
    def trends(self) -> list[Plot]:
        """Charts of the headline figures against training step, layer or model size."""
        return trend_plots(self.figures)

    @cached_property
    def ranked(self) -> list[Plot]:
        """Of many models, a chart per headline figure with the models in its order."""
        return ranked_plots(self.figures) if len(self.runs) > MOST_BESIDE else []


def runs_output(report: Report) -> Output:
    """Returns what is shown of runs; of people's responses, these beside what models expect."""
    output = _runs_output(report)
    forms = {tuple(rows.form for rows in run.stimuli.values()) for run in report.runs}
    if forms != {("cloze",)}:  # unless each run has one task, which has people's responses
        return output
    norms_output = cloze_output(ClozeNorms(report.runs, report.across))
    shown_sections = [*norms_output.sections]
    if report.chosen_items:
        shown_sections.append(_chosen_items_section(report))
    return replace(output, sections=shown_sections, findings=norms_output.findings)


def _runs_output(report: Report) -> Output:
    """Returns what is shown of runs on other data than people's responses.

    Its sections: conditions of own data, trends over training or size, headline figures,
    differences between the runs, then one per diagnostic.
    """
    figures = report.figures
    results = [source.results for source in figures.sources]
    detailed_labels = [figures.sources[i].label for i in report.detailed]
    facts = []
    details = {}
    for run_results, label in figures.sources:
        look = 0  # number of the model's colour; 0 for none, as of a model without charts
        if label in detailed_labels and len(results) > 1:  # a single model needs no colour
            look = detailed_labels.index(label) + 1
        facts.append(labels.model_fact(run_results)._replace(name=label, look=look))
        details[label] = labels.run_facts(run_results) | {"Signature": run_results.signature}

    def document() -> Any:
        documents = [run_results.to_json() for run_results in results]
        return documents[0] if len(documents) == 1 else documents

    return Output(
        kind="comparison" if len(results) > 1 else "report", title=_title(report),
        facts=facts, details=details,
        signatures=cited_signatures(run_results.signature for run_results in results),
        findings=Deferred(lambda: _findings(report)),
        sections=Deferred(lambda: _sections(report)),
        method=[*_method(labels.question_noun(results[0]))],
        frame=lambda: figures_of_runs(results), document=document,
        files=["results.json", "predictions.parquet"],
    )  # fmt: skip


def brief_output(report: Report) -> Output:
    """Returns what is printed of new runs: of one its first sections, of several the main figures.

    Lines at the end say how the further tables of one run are shown.
    """
    output = runs_output(report)
    figures = report.figures
    headline = overview(figures)
    # several runs: the headline figures alone
    if len(report.runs) > 1:
        has_model_columns = len(report.runs) <= MOST_BESIDE
        is_ordered = labels.order_of([run.results for run in report.runs]) is not None
        if has_model_columns and not is_ordered:  # the columns say all that the title would
            headline = headline._replace(title="")
        return replace(output, facts=(), sections=[headline])
    # one run: the headline figures, the conditions of own data, and the commands for all else
    headline = headline._replace(title="", further=())
    designs = []
    for design in report.designs[:_MOST_DESIGNS]:
        # without tables, the first remark says why there are none
        remarks = design.remarks if design.tables else design.remarks[:1]
        designs.append(design._replace(remarks=remarks, further=()))
    if n_left_out := len(report.designs) - len(designs):
        line = f"the conditions of {n_left_out} more tasks: by the commands below"
        designs.append(Section("", remarks=[line]))
    first_sections = [headline, *designs] if figures.precede_conditions else [*designs, headline]
    path = visible(shlex.quote(str(report.runs[0].path)))
    commands = []
    for task in figures.tasks:
        title = visible(figures.diagnostic(task).short_title)
        command = f"lmdiag report {path} --format text --tasks {visible(shlex.quote(task))}"
        commands.append(f"more of {title}: {command}")
    return replace(output, sections=[*first_sections, Section("", remarks=commands)])


def measures_output(results: Results, name: str = "", rule: str = "") -> Output:
    """Returns what is shown of measures that were computed from predictions, without a run.

    A first section has their tables and a chart; a second one, without a title, has the signature,
    which identifies data and options.

    Args:
        results: of one task in one setting, for example "none", unperturbed.
        name: of the model; "" if it is not known.
        rule: how words were compared, in words, for example "without case"; "" if none were. The
            answers of a task with words depend on it, so there it is shown as a warning.
    """
    # one task in one setting, and so one section
    (task,) = results.tasks
    (setting_results,) = results.tasks[task].values()
    figures = ReportFigures.of([results])
    (section,) = sections(figures)

    def plots() -> Iterator[Plot]:
        from lmdiag.report.charts.kinds import measures_plot

        with suppress(BadInput):  # no measure is a proportion
            yield measures_plot(name or section.title, results)

    def frame() -> DataFrame:
        table = figures_of_runs([results])
        return table.assign(model=name) if name else table

    def document() -> dict[str, Any]:
        match = {"match": rule} if rule else {}
        return {"task": task, **match, **setting_results.to_json()}

    subject = name or "The model"
    asks_words = results.diagnostic(task).asks == "word"
    warnings = [f"{task}: words are compared {rule}"] if rule and asks_words else []
    signatures = overview(figures).signatures
    return Output(
        kind="measures", title=name or section.title, warnings=warnings,
        findings=[*without_any_figure(results, subject), *run_findings(results, subject)],
        sections=[section._replace(plots=Deferred(plots)), Section("", signatures=signatures)],
        frame=frame, document=document,
    )  # fmt: skip


def _findings(report: Report) -> Iterator[str]:
    """Yields the sentences above the tables.

    First stands why a run has no figure. Then follow: of one run on test suites, the share of
    predictions that hold; the effects of own conditions; of one run or the last layer, figures
    against chance; of a few runs, their differences; of many, how many models are above and below
    chance.
    """
    n_runs = len(report.runs)
    for source in report.figures.sources:
        yield from without_any_figure(source.results, source.label)
    if n_runs == 1:
        yield from prediction_findings(report.runs[0].results)
    for design in report.designs:
        yield from design.findings
    if n_runs == 1:
        yield from run_findings(report.runs[0].results)
    elif report.are_layers:
        last = report.runs[-1].results
        yield from run_findings(last, f"{model_label(last.model)}, after layer {last.layer},")
    elif n_runs <= MOST_BESIDE:
        are_frequencies = [needs_no_context(run.results.model) for run in report.runs]
        with suppress(BadInput):  # runs of other data or protocols, which only pages refuse
            if are_frequencies == [False, True]:  # a model, and word frequencies beside it
                yield from findings_beside_frequency(report.runs[0].results, report.comparisons[0])
            else:
                yield from pair_findings(report.comparisons)
    if n_runs > MOST_BESIDE:
        results = [run.results for run in report.runs]
        order = labels.order_of(results)
        yield from models_findings(results, order.plural if order else "models")


# ---- the sections of runs ------------------------------------------------------------------------


def _sections(report: Report) -> Iterator[Section]:
    """Yields the sections of a report in order.

    Layers of a model begin with their curves, and are not tested against each other.
    """
    # where sentences have conditions, the response in these is the main result and comes first
    are_curves_first = report.are_layers and not _has_response(report)
    if are_curves_first:
        yield from _trends_section(report)
    if not report.figures.precede_conditions:
        yield from _condition_sections(report)
    yield _headline_section(report)
    if not are_curves_first:
        yield from _trends_section(report)
    if report.figures.precede_conditions:
        yield from _condition_sections(report)
    if len(report.runs) > 1 and not report.are_layers:
        yield _differences_section(report)
    for number, section in enumerate(report.sections, start=1):
        yield _diagnostic_section(report, section, number)
    if report.chosen_items:
        yield _chosen_items_section(report)


def _condition_sections(report: Report) -> Iterator[Section]:
    """Yields a section per task of a user's data that has conditions, with title and anchor.

    The anchor is what links of the page point to: "conditions", then "conditions-1" and so on.
    """
    for number, design in enumerate(report.designs):
        title = design.title if len(report.designs) > 1 else "Conditions"
        anchor = f"conditions-{number}" if number else "conditions"
        yield design._replace(title=title, anchor=anchor)


def _trends_section(report: Report) -> Iterator[Section]:
    """Yields the section with the headline figures by training step, layer or size of the model.

    A report of one run has no such section, and nothing is yielded.
    """
    if len(report.runs) < 2:
        return
    order = labels.order_of([run.results for run in report.runs])
    if order is None:
        title, short_title = "By number of parameters", "By size"
    elif order.name == "layer":
        title, short_title = "By layer", "By layer"
    else:
        title, short_title = "Over training", "Training"
    yield Section(
        title, plots=Deferred(lambda: report.trends), short_title=short_title, anchor="trends",
        # of sentences in conditions, the curves are of means over all conditions
        is_folded=report.are_layers and _has_response(report),
    )  # fmt: skip


def _headline_section(report: Report) -> Section:
    """Returns the section with the headline figures of each diagnostic."""
    figures = report.figures
    section = overview(figures)
    n_runs = len(report.runs)
    are_models_rows = n_runs > MOST_BESIDE
    is_further = _has_response(report) and not are_models_rows
    if are_models_rows:
        title, short_title = f"Main figures of {n_runs} models", "Models"
    elif is_further:
        title, short_title = "Further measures", "Further"
    else:
        title, short_title = "Main figures", "Figures"
    remarks = [*section.remarks]
    if n_runs > 1:
        remarks += against_chance(figures)
    return section._replace(
        title=title, short_title=short_title, is_folded=is_further, remarks=remarks,
        anchor="headline", layout="headline",
        content=lambda: _headline_content(report, section.tables),
        plots=Deferred(lambda: report.ranked),
    )  # fmt: skip


def _title(report: Report) -> str:
    """Returns the names of the models; of one run on own sentences, the file and the response."""
    if len(report.runs) == 1 and len(report.designs) == 1 and _has_response(report):
        return report.designs[0].title
    return labels.title([source.results for source in report.figures.sources])


def _has_response(report: Report) -> bool:
    """Whether every task has a user's sentences in conditions, and no figure in percent.

    The main result is then the response in each condition, for example the surprisal, and its
    tables stand first.
    """
    figures = report.figures
    designs_with_tables = [design for design in report.designs if design.tables]
    headline_tables = [headlines(task, figures) for task in figures.tasks]
    has_percentages = any(table["is_percent"].any() for table in headline_tables)
    return len(designs_with_tables) == len(figures.tasks) and not has_percentages


def _headline_content(report: Report, grids: Sequence[Grid]) -> dict[str, Any]:
    """Returns what the macro `headline` in `cards/layouts.html.j2` needs: tables, legend, colours.

    Up to four models are columns of a table with a scale; more are the rows of tables with shades.
    For example, {"samples": [], "legend": "Percent with ...", "is_table": False, "grids": grids,
    "looks": {"gpt2": 1}, "has_scale": True} for two models.

    Args:
        grids: the tables of the headline figures.
    """
    figures = report.figures
    results = [source.results for source in figures.sources]
    n = len(results)
    are_models_rows = n > MOST_BESIDE
    questions = labels.question_noun(results[0])
    legend = _headline_legend(grids, questions, n=n, are_models_rows=are_models_rows)
    content: dict[str, Any] = {"samples": _sample_lines(figures), "legend": legend}
    content |= {"is_table": are_models_rows, "grids": grids}
    # models as columns: the macro draws the figures on a scale, in the colours of the models
    if not are_models_rows:
        # name of a model -> number of its colour
        looks = {figures.sources[i].label: look for look, i in enumerate(report.detailed, start=1)}
        cells = [cell for grid in grids for row in grid.rows for cell in row.cells]
        has_scale = any(cell.figure.is_percent for cell in cells if cell.figure)
        return content | {"looks": looks, "has_scale": has_scale}
    # models as rows: the macro puts the rows of a model in all tables beside each other
    diagnostics = [figures.diagnostic(task) for task in figures.tasks]
    rows: dict[str, dict[int, GridRow]] = {}  # model -> number of a table -> its row there
    for number, grid in enumerate(grids):
        for row in grid.rows:
            rows.setdefault(row.labels[0], {})[number] = row
    return content | {
        "ranked": [plot for plot in report.ranked if not plot.is_repeated],
        "titles": {diagnostic.title: diagnostic.short_title for diagnostic in diagnostics},
        "rows": rows,
        "models": [source.label for source in figures.sources],
        **_size_column(results, report.trends),
    }  # fmt: skip


def _differences_section(report: Report) -> Section:
    """Returns the differences between the runs, which are computed when a format asks for them.

    Of runs on other data or by other protocols there is no table, but a line that says why; charts,
    and so pages, refuse them.
    """
    base = report.figures.sources[0].label
    are_many = len(report.runs) > MOST_BESIDE
    about = (
        "All models were tested on the same items, so differences are taken within items, each "
        f"model minus {base}."
    )
    if are_many:
        about += " All measures of two models: lmdiag compare BASE NEW --measures all."

    def tables() -> Iterator[Grid]:
        with suppress(BadInput):  # `remarks` gives the reason
            yield from difference_tables(report.comparisons)

    def remarks() -> Iterator[str]:
        try:
            pairs = report.comparisons
        except BadInput as error:
            yield f"no differences: {error}"
        else:
            comparisons = [c for pair in pairs for c in pair.comparisons.values()]
            yield from comparison_notes(comparisons)
            yield from not_compared(report.runs)

    def plots() -> Iterator[Plot]:
        # a page has charts of a single pair only; of several pairs it has the tables alone
        has_several_pairs = len(report.comparisons) > 1
        for pair in report.comparisons:
            for plot in pair.plots:
                yield plot._replace(is_repeated=has_several_pairs)

    return Section(
        "Compared, item by item", Deferred(tables), Deferred(remarks), short_title="Compared",
        anchor="compared", about=[about], plots=Deferred(plots),
    )  # fmt: skip


def _diagnostic_section(report: Report, section: Section, number: int) -> Section:
    """Returns the section of a diagnostic with texts, charts and items beside its tables.

    Charts and items are made when a format reads them, since they take long.

    Args:
        report: what is shown of the runs.
        section: with its tables.
        number: of the section in the page, from 1.
    """
    task = section.task
    diagnostic = report.figures.diagnostic(task)
    has_many_models = len(report.runs) > MOST_BESIDE
    has_response = _has_response(report)
    about = [diagnostic.about] if diagnostic.about else []
    if has_response:  # the section on the conditions says what the data are about
        about = []
    if has_response or has_many_models:
        # an earlier section has the main result, so a page folds all tables of this one
        section = section._replace(tables=(), further=[*section.tables, *section.further])
    return section._replace(
        short_title=diagnostic.short_title, about=about, notes=[*_diagnostic_notes(report, task)],
        plots=Deferred(lambda: _diagnostic_plots(report.tasks[task], has_many_models)),
        lists=Deferred(lambda: _item_lists(report, task)),
        anchor=str(number), is_folded=len(report.runs) > 1,
    )  # fmt: skip


def _diagnostic_notes(report: Report, task: str) -> Iterator[str]:
    """Yields the notes at the beginning of the section of a diagnostic.

    They say that models chose among options, of which runs there are charts and items, and that
    causal models did not read the right context that the rows have.
    """
    sources = report.figures.sources  # all runs, with their names
    detailed_runs = [report.runs[i] for i in report.detailed]  # the runs with charts and items
    if labels.question_noun(sources[0].results) == "questions":
        yield _CHOICE
    if len(detailed_runs) < len(sources):
        detailed_labels = ", ".join(sources[i].label for i in report.detailed)
        # a page on many models has no charts of a diagnostic, see `_diagnostic_plots`
        contents = "Items" if len(sources) > MOST_BESIDE else "Charts and items"
        yield f"{contents} of {detailed_labels}. The report of each run has its own."
    models = [run.results.model for run in detailed_runs]
    # word frequencies read no context at all, so the last note is not about them
    has_causal_model = any(
        model.kind == "causal" for model in models if not needs_no_context(model)
    )
    # all runs that have the task have the same rows of it
    rows_of_runs = [run.stimuli[task] for run in detailed_runs if task in run.stimuli]
    has_right_context = bool(rows_of_runs) and any(
        rows_of_runs[0].columns().get("right_context", ())
    )
    if has_causal_model and has_right_context:
        yield "A causal model reads the left context only: the right context was not read."


def _diagnostic_plots(data: TaskRuns, has_many_models: bool) -> list[Plot]:
    """Returns the charts of a diagnostic; pages leave out those that are `is_repeated`.

    A page has the figures of the headline table already, and of several runs the charts of each are
    in the report of that run; of many models it leaves out all of them.
    """
    has_several_runs = len(data.runs) > 1
    is_in_headline_table = has_several_runs or len(data.settings) == 1
    diagnostic_plots = []
    for plot in plots(data):
        is_of_one_run = has_several_runs and plot.heading != ""
        shows_headline = is_in_headline_table and plot.kind == "figures"
        is_repeated = has_many_models or shows_headline or is_of_one_run
        diagnostic_plots.append(plot._replace(is_repeated=is_repeated))
    return diagnostic_plots


def _item_lists(report: Report, task: str) -> list[ItemList]:
    """Returns the list of the items of a task for the page, as the only element."""
    data = report.tasks[task]
    models = [source.label for source in data.figures.sources]
    content = item_list(data, report.chosen_items)
    return [ItemList("item_list", content | {"task": task, "models": models})]


def _chosen_items_section(report: Report) -> Section:
    """Returns a table of the items that a user named, with the answers of each model.

    Whether the first item is a whole sentence, or a context with a blank, decides on the title.
    """
    if report.answers[0].is_whole:
        title, heading = "Surprisal in chosen sentences, bits", "sentence"
    else:
        title, heading = "Predictions for chosen items", "context"
    rows = []
    for answers in report.answers:
        texts = {}
        for source in report.figures.sources:
            answer = ", ".join(answers.by_model.get(source.label, ()))
            texts[source.label] = "\n".join(wrapped(answer, _ANSWER_WIDTH))
        rows.append(((answers.sentence,), texts))
    return Section(title, [text_grid(title, (heading,), rows)], anchor="chosen")


def _method(questions: str) -> Iterator[str]:
    """Yields how to read the figures.

    Args:
        questions: what models were asked: "contexts", "sentences" or "questions".
    """
    intervals = (
        "Intervals are 95% intervals: Wilson's for proportions, Student's for means, Fisher's z "
        "for correlations."
    )
    if questions != "sentences":
        intervals += " The data sets are small, so most intervals are wide."
    yield intervals
    yield (
        "Two runs can be compared exactly when their signatures are equal; a part “model:” at the "
        "end does not count."
    )
    if questions == "sentences":
        yield (
            "Surprisal is −log₂ of a probability, in bits: a difference of 1 bit means twice as "
            "probable. The darker a word, the higher its surprisal. – marks a word without a "
            "probability."
        )
    elif questions == "contexts":
        yield (
            "Sensitivity compares probabilities, not log-probabilities: a model can prefer the "
            "good word in every item, but never by the threshold."
        )
        yield (
            "In the lists of top words, ## marks an item that would continue the word before the "
            "blank."
        )


def _headline_legend(
    grids: Sequence[Grid], questions: str, *, n: int, are_models_rows: bool
) -> str:
    """Returns what the headline figures and the marks beside them mean, in sentences.

    For example, "Percent with 95% intervals. The dashed line is chance: the expected figure of a
    model that guesses.". A sentence is left out if no table has what it is about.

    Args:
        grids: tables of the figures.
        questions: what models were asked: "contexts", "sentences" or "questions".
        n: number of models.
        are_models_rows: whether models are the rows of the tables, whose cells are shaded, and not
            the columns of a table with a scale.
    """
    rows = [row for grid in grids for row in grid.rows]
    cells = [cell for row in rows for cell in row.cells]
    figures = [cell.figure for cell in cells if cell.figure]
    has_percent = any(figure.is_percent for figure in figures)
    has_other_units = any(not figure.is_percent for figure in figures)
    has_star = any("*" in cell.value for row in rows if row.is_published for cell in row.cells)
    names = {heading.label for grid in grids for heading in grid.headings}
    names |= {label for row in rows for label in row.labels}
    has_reference = any(f"{name}, {PUBLISHED}" in names for name in REFERENCES.values())
    units = "surprisal in bits"
    if questions != "sentences":
        units += ", and rank as the place among all words"
    this_model = "a" if n > 1 else "this"
    chance = "Chance is" if are_models_rows else "The dashed line is chance:"
    has_chance = any(figure.chance is not None for figure in figures)
    signs = chance_legend(figures)
    is_needed = {
        "A cell is the darker, the higher its value.": are_models_rows,
        f"{units.capitalize()}, with 95% intervals.": not has_percent,
        f"Percent with 95% intervals; {units}.": has_percent and has_other_units,
        "Percent with 95% intervals.": has_percent and not has_other_units,
        f"◇ is the published figure of {this_model} model.":
            not are_models_rows and any(cell.published for cell in cells),
        "* lies outside the 95% interval.": has_star,
        "The figures of BERT are those of Ettinger (2020).": has_reference,
        "❘ is the human baseline.": not are_models_rows and any(row.human for row in rows),
        f"{chance} the expected figure of a model that guesses.": has_chance,
        f"{signs}.": has_chance and signs != "",
    }  # fmt: skip
    return " ".join(sentence for sentence in is_needed if is_needed[sentence])


def _size_column(results: Sequence[Results], trends: Sequence[Plot]) -> dict[str, Any]:
    """Returns the column of a table of many models with layer, training step or parameters.

    Args:
        results: of the models.
        trends: charts of the figures against what orders the models; their kind says what it is.

    Returns:
        the heading of the column, and for each model the number that sorts the column and its text:
        {"size_heading": "parameters", "sizes": [(124439808, "124M")]}.
    """
    models = [run_results.model for run_results in results]
    kind = trends[0].kind if trends else ""
    if kind == "layers":
        layers = [run_results.layer or 0 for run_results in results]
        return {"size_heading": "layer", "sizes": [(layer, str(layer)) for layer in layers]}
    if kind == "steps":
        steps = [model.training_step or 0 for model in models]
        return {"size_heading": "step", "sizes": [(step, f"{step:,}") for step in steps]}
    counts = [model.n_parameters for model in models]
    # a server does not tell the number of parameters
    sizes = [(n, numbers.count(n)) if n else ("", numbers.UNDEFINED) for n in counts]
    return {"size_heading": "parameters", "sizes": sizes}


def _sample_lines(figures: ReportFigures) -> list[str]:
    """Returns a line for each diagnostic of which a sample of the rows was asked."""
    lines = []
    for task in figures.tasks:
        results = figures.runs_with(task)[0].results
        limit = results.protocol.limit
        if limit:
            title = figures.diagnostic(task).short_title
            n = results.data.tasks[task].n
            lines.append(f"{title}: a sample of {n} rows (--limit {limit}).")
    return lines
