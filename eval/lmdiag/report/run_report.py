"""What is shown of one run, or of several on the same rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

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

_WORDS = 40
"""Characters in a line of the words of a chosen item."""

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
        detailed: positions of the runs whose items and charts of items are shown.
        chosen: ids of items that are shown in tables.
        answers: of the models to these.
        across: keys of `KNOBS` in which they may differ.
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
        """Puts the runs in order.

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
        order = labels.order_of([run.results for run in selected_runs])
        if order and order.name == "layer":
            across = [*across, "layer"]
        self.runs = [
            selected_runs[i]
            for i in labels.positions_in_order([run.results for run in selected_runs])
        ]
        self.figures = ReportFigures.of([run.results for run in self.runs])
        self.detailed = detailed_positions(self.runs)
        self._design = design
        self.across = across
        self.are_layers = order is not None and order.name == "layer"
        self._measures = measures
        self.chosen = items
        self.answers = answers_to_items(self.runs, items) if items else []

    @cached_property
    def comparisons(self) -> list[RunPair]:
        """Of pairs of the runs; `BadInput` if they differ in data or protocol."""
        return run_pairs(self.runs, self.figures.sources, self.across, self._measures)

    @cached_property
    def designs(self) -> list[Section]:
        """The conditions of own data; `BadInput` if there is no such region."""
        return designs_of(self.runs, self._design)

    @cached_property
    def sections(self) -> list[Section]:
        """The tables of each task, with the formulas of suites."""
        columns = {task: rows.columns() for run in self.runs for task, rows in run.stimuli.items()}
        return sections(self.figures, columns)

    @cached_property
    def tasks(self) -> dict[str, TaskRuns]:
        """Task -> the detailed runs that have it, with their items and figures."""
        tasks = {}
        for task in self.figures.tasks:
            positions = [i for i in self.detailed if task in self.runs[i].results.tasks]
            runs = [self.runs[i] for i in positions]
            task_items = [items(run, task) for run in runs]
            # a model has the same colour and mark in all tasks; a single one needs none
            looks = {self.figures.sources[i].label: self.detailed.index(i) for i in positions}
            if len(runs) == 1:
                looks = {}
            tasks[task] = TaskRuns(
                task, runs, self.figures.select_runs(positions), task_items, looks
            )
        return tasks

    @cached_property
    def trends(self) -> list[Plot]:
        """The headline figures against training step or model size."""
        return trend_plots(self.figures)

    @cached_property
    def ranked(self) -> list[Plot]:
        """A chart per headline figure of many models."""
        return ranked_plots(self.figures) if len(self.runs) > MOST_BESIDE else []


def runs_output(report: Report) -> Output:
    """Returns what is shown of runs; of people's responses, these beside what models expect."""
    output = _runs_output(report)
    forms = {tuple(rows.form for rows in run.stimuli.values()) for run in report.runs}
    if forms != {("cloze",)}:
        return output
    norms_output = cloze_output(ClozeNorms(report.runs, report.across))
    item_sections = [_chosen_items(report)] if report.chosen else []
    return replace(
        output, sections=[*norms_output.sections, *item_sections], findings=norms_output.findings
    )


def _runs_output(report: Report) -> Output:
    """Returns what is shown of runs.

    Its sections: conditions of own data, trends over training or size, headline figures,
    differences between the runs, then one per diagnostic.
    """
    figures = report.figures
    results = [source.results for source in figures.sources]
    detailed_labels = [figures.sources[i].label for i in report.detailed]
    signatures = cited_signatures(run.signature for run in results)
    facts = []
    for source in figures.sources:
        has_look = source.label in detailed_labels and len(results) > 1
        look = detailed_labels.index(source.label) + 1 if has_look else 0
        facts.append(labels.model_fact(source.results)._replace(name=source.label, look=look))
    details = {
        source.label: labels.run_facts(source.results) | {"Signature": source.results.signature}
        for source in figures.sources
    }
    documents = [run.results for run in report.runs]
    return Output(
        kind="comparison" if len(results) > 1 else "report", title=_title(report),
        facts=facts, signatures=signatures, details=details,
        findings=Deferred(lambda: _findings(report)),
        sections=Deferred(lambda: _sections(report)),
        method=[*_method(labels.question_noun(results[0]))],
        frame=lambda: figures_of_runs(documents),
        document=lambda: documents[0].to_json() if len(documents) == 1
        else [of.to_json() for of in documents],
        files=["results.json", "predictions.parquet"],
    )  # fmt: skip


def brief_output(report: Report) -> Output:
    """Returns what is printed of new runs: of one its first sections, of several the main figures.

    Lines at the end say how the further tables of one run are shown.
    """
    output = runs_output(report)
    figures = report.figures
    headline = overview(figures)
    if len(report.runs) > 1:
        is_table = len(report.runs) > MOST_BESIDE
        order = labels.order_of([run.results for run in report.runs])
        title = headline.title if is_table or order else ""  # the columns name the models
        return replace(output, facts=(), sections=[headline._replace(title=title)])
    headline = headline._replace(title="", further=())
    designs = []
    for design in report.designs[:_MOST_DESIGNS]:
        remarks = design.remarks[: None if design.tables else 1]  # one line says why
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
    """Returns what is shown of the measures of one task in one setting, which no run has.

    `name` is that of the model, `rule` how words were compared.
    """
    (task,) = results.tasks
    (content,) = results.tasks[task].values()
    figures = ReportFigures.of([results])
    section, *_ = sections(figures)

    def plots() -> Iterator[Plot]:
        from lmdiag.report.charts.kinds import measures_plot

        with suppress(BadInput):  # no measure is a proportion
            yield measures_plot(name or section.title, results)

    headline_section = overview(figures)
    section = section._replace(plots=Deferred(plots))
    asks_words = results.diagnostic(task).asks == "word"
    warnings = [f"{task}: words are compared {rule}"] if rule and asks_words else []
    return Output(
        kind="measures", title=name or section.title, warnings=warnings,
        findings=[
            *without_any_figure(results, name or "The model"),
            *run_findings(results, name or "The model"),
        ],
        sections=[section, Section("", signatures=headline_section.signatures)],
        frame=lambda: figures_of_runs([results]).assign(**{"model": name} if name else {}),
        document=lambda: {"task": task, **({"match": rule} if rule else {}), **content.to_json()},
    )  # fmt: skip


def _findings(report: Report) -> Iterator[str]:
    """Yields the sentences above the tables.

    First stands why a run has no figure. Then follow: of one run on test suites, the share of
    predictions that hold; the effects of own conditions; of one run or the last layer, figures
    against chance; of a few runs, their differences; of many, how many models are above and below
    chance.
    """
    for source in report.figures.sources:
        yield from without_any_figure(source.results, source.label)
    if len(report.runs) == 1:
        yield from prediction_findings(report.runs[0].results)
    for design in report.designs:
        yield from design.findings
    if len(report.runs) == 1:
        yield from run_findings(report.runs[0].results)
        return
    if report.are_layers:
        last = report.runs[-1].results
        yield from run_findings(last, f"{model_label(last.model)}, after layer {last.layer},")
    elif len(report.runs) <= MOST_BESIDE:
        with suppress(BadInput):  # runs of other data or protocols, which only pages refuse
            is_beside = [needs_no_context(run.results.model) for run in report.runs]
            if is_beside == [False, True]:
                yield from findings_beside_frequency(report.runs[0].results, report.comparisons[0])
            else:
                yield from pair_findings(report.comparisons)
    if len(report.runs) > MOST_BESIDE:
        results = [run.results for run in report.runs]
        order = labels.order_of(results)
        yield from models_findings(results, order.plural if order else "models")


# ---- the sections of runs ------------------------------------------------------------------------


def _sections(report: Report) -> Iterator[Section]:
    """All sections in order.

    Layers of a model begin with their curves, and are not tested against each other.
    """
    are_curves_first = report.are_layers and not _has_response(report)
    if are_curves_first:
        yield from _trends(report)
    if not report.figures.precede_conditions:
        yield from _conditions(report)
    yield _headline(report)
    if not are_curves_first:
        yield from _trends(report)
    if report.figures.precede_conditions:
        yield from _conditions(report)
    if len(report.runs) > 1 and not report.are_layers:
        yield _differences(report)
    for number, section in enumerate(report.sections, start=1):
        yield _diagnostic(report, section, number)
    if report.chosen:
        yield _chosen_items(report)


def _conditions(report: Report) -> Iterator[Section]:
    """The conditions of own data."""
    for number, design in enumerate(report.designs):
        title = design.title if len(report.designs) > 1 else "Conditions"
        anchor = f"conditions{f'-{number}' if number else ''}"
        yield design._replace(title=title, anchor=anchor)


def _trends(report: Report) -> Iterator[Section]:
    """The headline figures of checkpoints, or of models of several sizes."""
    if len(report.runs) > 1:
        order = labels.order_of([run.results for run in report.runs])
        if order is None:
            title, short_title = "By number of parameters", "By size"
        elif order.name == "layer":
            title, short_title = "By layer", "By layer"
        else:
            title, short_title = "Over training", "Training"
        plots = Deferred(lambda: report.trends)
        is_folded = report.are_layers and _has_response(report)  # means over all conditions
        yield Section(
            title, plots=plots, short_title=short_title, anchor="trends", is_folded=is_folded
        )


def _headline(report: Report) -> Section:
    """Returns the first section of a report: the headline figures of each diagnostic."""
    figures = report.figures
    section = overview(figures)
    is_table = len(report.runs) > MOST_BESIDE
    n = len(report.runs)
    title, short_title = "Main figures", "Figures"
    if is_table:
        title, short_title = f"Main figures of {n} models", "Models"
    is_further = _has_response(report) and not is_table
    if is_further:
        title, short_title = "Further measures", "Further"
    return section._replace(
        title=title, short_title=short_title, is_folded=is_further,
        remarks=[*section.remarks, *(against_chance(figures) if n > 1 else ())],
        anchor="headline", layout="headline",
        content=lambda: _headline_content(report, section.tables),
        plots=Deferred(lambda: report.ranked),
    )  # fmt: skip


def _title(report: Report) -> str:
    """The names of the models; of one run on own sentences, the file and the response."""
    if len(report.runs) == 1 and len(report.designs) == 1 and _has_response(report):
        return report.designs[0].title
    return labels.title([source.results for source in report.figures.sources])


def _has_response(report: Report) -> bool:
    """Whether every task has own sentences with conditions, and no figure in percent.

    Then the response, as surprisal, is the main figure, and its tables stand first.
    """
    with_tables = [design for design in report.designs if design.tables]
    figures = report.figures
    tables = [headlines(task, figures) for task in figures.tasks]
    has_shares = any(table["is_percent"].any() for table in tables)
    return len(with_tables) == len(figures.tasks) and not has_shares


def _headline_content(report: Report, grids: Sequence[Grid]) -> dict[str, Any]:
    """Returns what the page shows of the headline figures.

    Args:
        grids: their tables.
    """
    figures = report.figures
    results = [source.results for source in figures.sources]
    is_table = len(results) > MOST_BESIDE
    legend = _headline_legend(
        grids, labels.question_noun(results[0]), n=len(results), is_table=is_table
    )
    content = {"samples": _samples(figures), "legend": legend, "is_table": is_table, "grids": grids}
    if not is_table:
        looks = {figures.sources[i].label: look for look, i in enumerate(report.detailed, start=1)}
        cells = [cell for grid in grids for row in grid.rows for cell in row.cells]
        has_scale = any(cell.figure.is_percent for cell in cells if cell.figure)
        return content | {"looks": looks, "has_scale": has_scale}
    titles = {
        diagnostic.title: diagnostic.short_title
        for diagnostic in map(figures.diagnostic, figures.tasks)
    }
    rows: dict[str, dict[int, GridRow]] = {}  # label -> number of a table -> its row there
    for number, grid in enumerate(grids):
        for row in grid.rows:
            rows.setdefault(row.labels[0], {})[number] = row
    return content | {
        "ranked": [plot for plot in report.ranked if not plot.is_repeated],
        "titles": titles, "rows": rows,
        "models": [source.label for source in figures.sources],
        **_sizes(results, report.trends),
    }  # fmt: skip


def _differences(report: Report) -> Section:
    """The differences between the runs, which are compared when a format asks for them.

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
        with suppress(BadInput):
            yield from difference_tables(report.comparisons)

    def remarks() -> Iterator[str]:
        try:
            tests = [c for pair in report.comparisons for c in pair.comparisons.values()]
        except BadInput as error:
            yield f"no differences: {error}"
        else:
            yield from comparison_notes(tests) + not_compared(report.runs)

    def plots() -> Iterator[Plot]:
        are_several = len(report.comparisons) > 1
        for pair in report.comparisons:
            yield from (plot._replace(is_repeated=are_several) for plot in pair.plots)

    return Section(
        "Compared, item by item", Deferred(tables), Deferred(remarks), short_title="Compared",
        anchor="compared", about=[about], plots=Deferred(plots),
    )  # fmt: skip


def _diagnostic(report: Report, section: Section, number: int) -> Section:
    """Returns the section of a diagnostic, with its charts and items where the rows are there.

    Args:
        section: with its tables.
        number: of the section in the page, from 1.
    """
    figures = report.figures
    diagnostic = figures.diagnostic(section.task)
    detailed_labels = [figures.sources[i].label for i in report.detailed]
    about = [diagnostic.about] if diagnostic.about else []
    lines = []
    if labels.question_noun(figures.sources[0].results) == "questions":
        lines.append(_CHOICE)
    if len(figures.sources) > len(detailed_labels):
        contents = "Items" if len(figures.sources) > MOST_BESIDE else "Charts and items"
        lines.append(
            f"{contents} of {', '.join(detailed_labels)}. The report of each run has its own."
        )
    runs = [report.runs[i] for i in report.detailed]
    models = [run.results.model for run in runs if not needs_no_context(run.results.model)]
    is_causal = any(model.kind == "causal" for model in models)
    rows = next((run.stimuli[section.task] for run in runs if section.task in run.stimuli), None)
    if is_causal and rows and any(rows.columns().get("right_context", ())):
        lines.append("A causal model reads the left context only: the right context was not read.")
    is_in_conditions = _has_response(report)  # which the section of the conditions has
    if is_in_conditions:
        about = []
    if is_in_conditions or len(figures.sources) > MOST_BESIDE:
        section = section._replace(tables=(), further=[*section.tables, *section.further])
    return section._replace(
        short_title=diagnostic.short_title, about=about, notes=lines, anchor=str(number),
        plots=Deferred(lambda: _plots(report.tasks[section.task], len(report.runs) > MOST_BESIDE)),
        lists=Deferred(lambda: _lists(report, section.task)), is_folded=len(report.runs) > 1,
    )  # fmt: skip


def _plots(data: TaskRuns, is_many: bool) -> list[Plot]:
    """Returns the charts of a diagnostic; pages leave out those that are `is_repeated`.

    A page has the figures of the headline table already, and of several runs the charts of each are
    in the report of that run; of many models it leaves out all of them.
    """
    are_several = len(data.runs) > 1
    repeated_kind = "figures" if are_several or len(data.settings) == 1 else ""
    return [
        plot._replace(
            is_repeated=is_many
            or plot.kind == repeated_kind
            or (are_several and bool(plot.heading))
        )
        for plot in plots(data)
    ]


def _lists(report: Report, task: str) -> list[ItemList]:
    """Returns the list of the items of a diagnostic, as the page has it."""
    data = report.tasks[task]
    models = [source.label for source in data.figures.sources]
    content = item_list(data, report.chosen)
    return [ItemList("item_list", content | {"task": task, "models": models})]


def _chosen_items(report: Report) -> Section:
    """The items that a user named: the answers of each model."""
    is_sentence = report.answers[0].is_whole
    rows = []
    for answers in report.answers:
        texts = {}
        for source in report.figures.sources:
            words = ", ".join(answers.by_model.get(source.label, ()))
            texts[source.label] = "\n".join(wrapped(words, _WORDS))
        rows.append(((answers.sentence,), texts))
    title = "Surprisal in chosen sentences, bits" if is_sentence else "Predictions for chosen items"
    heading = "sentence" if is_sentence else "context"
    return Section(title, [text_grid(title, (heading,), rows)], anchor="chosen")


def _method(asked: str) -> Iterator[str]:
    """Yields how to read the figures.

    Args:
        asked: "contexts", "sentences" or "questions".
    """
    intervals = (
        "Intervals are 95% intervals: Wilson's for proportions, Student's for means, Fisher's z "
        "for correlations."
    )
    few = " The data sets are small, so most intervals are wide."
    yield intervals + (few if asked != "sentences" else "")
    yield (
        "Two runs can be compared exactly when their signatures are equal; a part “model:” at the "
        "end does not count."
    )
    if asked == "sentences":
        yield (
            "Surprisal is −log₂ of a probability, in bits: a difference of 1 bit means twice as "
            "probable. The darker a word, the higher its surprisal. – marks a word without a "
            "probability."
        )
    elif asked == "contexts":
        yield (
            "Sensitivity compares probabilities, not log-probabilities: a model can prefer the "
            "good word in every item, but never by the threshold."
        )
        yield (
            "In the lists of top words, ## marks an item that would continue the word before the "
            "blank."
        )


def _headline_legend(grids: Sequence[Grid], asks: str, *, n: int, is_table: bool) -> str:
    """What the headline figures of `n` models, and the marks beside them, mean.

    `asks` is what the models are asked; many models are in the rows of a table.
    """
    rows = [row for grid in grids for row in grid.rows]
    cells = [cell for row in rows for cell in row.cells]
    figures = [cell.figure for cell in cells if cell.figure]
    is_percent = {figure.is_percent for figure in figures}
    names = {heading.label for grid in grids for heading in grid.headings}
    names |= {label for row in rows for label in row.labels}
    units = "surprisal in bits"
    if asks != "sentences":
        units += ", and rank as the place among all words"
    chance = "Chance is" if is_table else "The dashed line is chance:"
    has_chance = any(figure.chance is not None for figure in figures)
    legend = chance_legend(figures)
    sentences = {
        "A cell is the darker, the higher its value.": is_table,
        f"{units.capitalize()}, with 95% intervals.": True not in is_percent,
        f"Percent with 95% intervals; {units}.": is_percent == {True, False},
        "Percent with 95% intervals.": is_percent == {True},
        f"◇ is the published figure of {'a' if n > 1 else 'this'} model.":
            not is_table and any(cell.published for cell in cells),
        "* lies outside the 95% interval.":
            any("*" in cell.value for row in rows if row.is_published for cell in row.cells),
        "The figures of BERT are those of Ettinger (2020).":
            any(f"{name}, {PUBLISHED}" in names for name in REFERENCES.values()),
        "❘ is the human baseline.": not is_table and any(row.human for row in rows),
        f"{chance} the expected figure of a model that guesses.": has_chance,
        f"{legend}.": has_chance and legend != "",
    }  # fmt: skip
    return " ".join(sentence for sentence, is_needed in sentences.items() if is_needed)


def _sizes(results: Sequence[Results], trends: Sequence[Plot]) -> dict[str, Any]:
    """Returns the heading of the column that orders many models, and its cells.

    A cell is the number that sorts the column, and its text: layer, training step or parameters.
    """
    models = [run.model for run in results]
    if trends and trends[0].kind == "layers":
        layers = [run.layer or 0 for run in results]
        return {"size_heading": "layer", "sizes": [(layer, str(layer)) for layer in layers]}
    if trends and trends[0].kind == "steps":
        steps = [model.training_step or 0 for model in models]
        return {"size_heading": "step", "sizes": [(step, f"{step:,}") for step in steps]}
    counts = [model.n_parameters for model in models]
    # a server does not tell the number of parameters
    sizes = [(n, numbers.count(n)) if n else ("", numbers.UNDEFINED) for n in counts]
    return {"size_heading": "parameters", "sizes": sizes}


def _samples(figures: ReportFigures) -> list[str]:
    """Returns a line for each diagnostic of which a sample of the rows was asked."""
    results = {task: figures.runs_with(task)[0].results for task in figures.tasks}
    return [
        f"{figures.diagnostic(task).short_title}: a sample of {run.data.tasks[task].n} rows "
        f"(--limit {run.protocol.limit})."
        for task, run in results.items()
        if run.protocol.limit
    ]
