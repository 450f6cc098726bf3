"""`lmdiag run`, also by `accelerate launch eval/run.py`, and `lmdiag multiverse`: ask models."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmdiag.asking.protocol import KNOBS, Asks, Knob, Protocol, QueryOptions, query_options
from lmdiag.asking.rules import ROWS, Case, applicable_knobs, refusal, required_options
from lmdiag.cli import ERROR, say
from lmdiag.cli import command_options as options
from lmdiag.files.writing import clear_drafts, write_atomically
from lmdiag.models.loading.load_options import Loading, LoadOptions, Serving
from lmdiag.options import DataOptions, Running
from lmdiag.text import suggest, visible
from lmdiag.types import (
    AS_IT_IS,
    FOUND_DESIGN,
    BadInput,
    DesignOptions,
    FactorOptions,
    TableOptions,
)

if TYPE_CHECKING:
    from lmdiag.report.run_report import Report
    from lmdiag.results import Run
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.processes import Processes
    from lmdiag.runs.run_model import RunOptions


@dataclass(frozen=True, kw_only=True)
@options.with_parameters(shuffles=options.WHOLE, limit=options.WHOLE)
class CommandData(options.CommandSeed, DataOptions):
    """What of a data set is asked of every model."""

    table: Annotated[TableOptions, options.TABLE] = AS_IT_IS

    def load(
        self,
        data: str,
        query: QueryOptions,
        scoring: options.Scoring,
        design: DesignOptions = FOUND_DESIGN,
    ) -> Inputs:
        """Loads the rows in every setting that is run, with the protocol of the run.

        Args:
            data: file of own rows, or another data set.
            query: how models are asked.
            scoring: ranks and threshold of the measures.
            design: the conditions and items of own data.
        """
        from lmdiag.runs.inputs import load_inputs

        protocol = Protocol(
            tasks=self.tasks, perturb=self.perturb, shuffles=self.shuffles, seed=self.seed,
            limit=self.limit, **query_options(query),
        )  # fmt: skip
        return load_inputs(
            data, scoring.of(protocol), verbs=self.verbs,
            allow_duplicates=self.allow_duplicates, design=design, table=self.table,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CommandRunning(options.CommandRecording, Running):
    """How runs proceed, and where their results go."""

    tp: bool = False
    """split each layer of a model over the processes (tensor parallelism)"""

    def for_model(self, name: str | None) -> RunOptions:
        """Returns the options of the run of one model.

        Args:
            name: what to call the model in folders and tables; None for its id.
        """
        from lmdiag.runs.run_model import RunOptions

        # without `tp`, which is an option of how the model is loaded
        fields = {field: getattr(self, field) for field in Running.__dataclass_fields__}
        return RunOptions(name=name, **fields)


def run_command(
    data: options.DataSet = options.DATA,
    *,
    models: Annotated[options.Models, options.section("Models")] = options.Models(),
    rows: Annotated[CommandData, options.section("Data")] = CommandData(),
    design: Annotated[FactorOptions, options.DESIGN] = FactorOptions(),
    scoring: Annotated[options.Scoring, options.section("Scoring")] = options.Scoring(),
    query: Annotated[
        options.QueryOfLayers, options.section("How models are asked")
    ] = options.QueryOfLayers(),
    loading: Annotated[Loading, options.section("Loading the model")] = Loading(),
    serving: Annotated[Serving, options.section("A model behind a server")] = Serving(),
    running: Annotated[CommandRunning, options.section("Running")] = CommandRunning(),
    as_json: options.Json = False,
) -> int:
    """Runs every model at every revision and writes reports; returns the exit code.

    A model that fails does not stop the others.

    accelerate or torchrun may start several processes, of which each runs this whole function. All
    of them read the data, and ask their part of the questions about each model. Only the first one
    gets runs, so that it alone prints and writes. Errors of one process are raised on all of them
    (`Processes.shared_errors`), so that all go on with the same model.
    """
    from lmdiag.results import model_slug, record_failure
    from lmdiag.runs.processes import Processes

    # a knob whose value is a text, as --prompt, may be given as the name of a file with the text
    text_names = [knob.name for knob in KNOBS.values() if knob.is_text]
    texts: dict[str, Any] = {
        name: options.text_or_file(getattr(query, name)) for name in text_names
    }
    query_of_texts = QueryOptions(**query_options(query) | texts)
    load_options = LoadOptions(
        tp=running.tp, **vars(query_of_texts), **vars(loading), **vars(serving)
    )
    runs: list[Run] = []  # stays empty on all processes but the first
    failures: list[str] = []
    with Processes(together=running.tp) as processes:  # imports torch if there are several
        with processes.shared_errors():
            requested = models.requested(running.output, data)
            inputs = rows.load(data, query_of_texts, scoring, DesignOptions(**design.stored()))
            if processes.is_first:
                _print_designs(inputs, quiet=running.quiet)
                if query_of_texts.unit == "token" and not (query.layers or serving.server):
                    _warn_of_tokens(inputs)
        requested = processes.share(requested)  # processes may get different lists from the Hub
        for model, revision, name in requested:
            model_options = replace(load_options, revision=revision, device=processes.device)
            run_options = running.for_model(name)
            problem = ""
            try:
                runs_of_model = _runs_of_model(
                    model, model_options, query.layers, inputs, run_options, processes
                )
                if len(runs_of_model) == 1:  # several layers have one page that compares them
                    _finish_run(runs_of_model[0], is_shown=len(requested) == 1, as_json=as_json)
                runs += runs_of_model
            except BadInput as error:  # does not stop the other models
                if len(requested) == 1:  # there are no others: the error ends the command
                    raise
                failed_model = f"{model} at {revision}" if revision else model
                failures.append(failed_model)
                problem = (
                    f"{failed_model}: {error}"  # a text; the error itself would keep the model
                )
                if processes.is_first:
                    say(f"lmdiag: {failed_model} failed: {error}")
            if processes.is_first:
                # "" removes the record of an earlier failure
                record_failure(running.output / model_slug(model, revision, name), problem)
    options_that_differ = ("layer",) if query.layers else ()
    _finish_runs(
        runs, running.output, options_that_differ, has_failures=bool(failures), as_json=as_json
    )
    if not failures or not processes.is_first:  # the first process speaks for all
        return 0
    sys.stdout.flush()  # so that the tables stand before the next line
    say(f"lmdiag: {len(failures)} of {len(requested)} runs failed: {', '.join(failures)}")
    return ERROR


def _runs_of_model(
    model: str,
    model_options: LoadOptions,
    layers: Sequence[str],
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes,
) -> list[Run]:
    """Runs one model; returns its run, or with layers the run of each layer.

    Args:
        layers: what was typed for --layers; () for the last layer alone.
        model, model_options, inputs, run_options, processes: see `run_model`.

    Returns:
        the finished runs; [] on all processes but the first.
    """
    from lmdiag.runs.run_model import run_layers, run_model

    if layers:
        return run_layers(model, model_options, layers, inputs, run_options, processes)
    run = run_model(model, model_options, inputs, run_options, processes)
    return [run] if run else []  # None on all processes but the first


def _print_designs(inputs: Inputs, *, quiet: bool) -> None:
    """Prints how own rows are read, their design, and what looks wrong in them.

    `quiet` leaves out the first row as models read it, and the design.
    """
    for task, rows in inputs.stimuli.items():
        for note in rows.notes:
            say(f"lmdiag: {task}: {note}")
    for task, design in inputs.designs().items():
        if not quiet:
            for row in design.rows:
                say(f"lmdiag: {task}: reads {row}")
            say(f"lmdiag: {task}: {design.summary()}")
        for warning in design.warnings:
            say(f"lmdiag: warning: {task}: {warning}")


def _warn_of_tokens(inputs: Inputs) -> None:
    """Prints a warning for responses of people that would be compared with tokens.

    A response is a whole word, of which a token may be a part; `lmdiag cloze` asks whole words.
    """
    for task, rows in inputs.stimuli.items():
        if rows.form == "cloze":
            problem = "words that people gave are compared with tokens"
            remedy = "--unit word asks whole words, as `lmdiag cloze` does"
            say(f"lmdiag: warning: {task}: {problem}: {remedy}")


def _finish_run(run: Run, *, is_shown: bool, as_json: bool) -> None:
    """Writes the page of a run, if it is not there, and prints what is said when the run has ended.

    Without --json, that is the figures, if `is_shown`, and the names of the files. With --json,
    `_finish_runs` prints the figures of all runs at the end of the command. This function then
    prints on standard error what the document does not say in words: why there are no figures, and
    what was not computed.

    Args:
        run: the finished run.
        is_shown: whether the figures are printed: only if the user requested one run. Those of
            several runs are printed side by side at the end.
        as_json: whether the command prints one JSON document.
    """
    from lmdiag.report.formats.terminal import print_output
    from lmdiag.report.run_report import Report, brief_output
    from lmdiag.results import PREDICTIONS, REPORT, RESULTS
    from lmdiag.results.without_figures import without_any_figure

    report = Report(run)
    if not (run.path / REPORT).exists():
        _write_page(run.path / REPORT, report)
    if not as_json:
        if is_shown:
            print_output(brief_output(report))
            print()
        saved = [name for name in (RESULTS, PREDICTIONS, REPORT) if (run.path / name).exists()]
        print(f"Saved in {visible(str(run.path))}: {', '.join(saved)}")
        return
    for source in report.figures.sources:
        for line in without_any_figure(source.results, source.label):
            say(f"lmdiag: {line}")
    for task, settings in run.results.tasks.items():
        lines = [line for content in settings.values() for line in content.not_computed]
        for line in dict.fromkeys(lines):  # each once
            say(f"lmdiag: {task}: not computed: {line}")


def _finish_runs(
    runs: Sequence[Run], output: Path, across: Sequence[str], *, has_failures: bool, as_json: bool
) -> None:
    """Prints the results of all runs of a command, and writes the pages that compare them.

    With --json, one document is printed: the results of the run, or a list of the results of each
    run. Without it, the figures of several runs are printed side by side. Those of a single run
    were printed by `_finish_run` when it ended, unless other models were requested, too, and
    failed: `_finish_run` did not know of that, and they are printed here.

    Args:
        runs: the runs of the models that did not fail; empty on all processes but the first.
        output: the folder of all runs.
        across: names of the options in which the runs may differ: ("layer",) if models answered
            after several layers, and otherwise ().
        has_failures: whether a model failed.
        as_json: whether the command prints one JSON document.
    """
    if not runs:
        return
    from lmdiag.report.formats.terminal import print_output
    from lmdiag.report.run_report import Report, brief_output

    if as_json:
        documents = [run.results.to_json() for run in runs]
        print(json.dumps(documents if len(runs) > 1 else documents[0], indent=1))
    if len(runs) > 1:
        _write_comparison(runs, output, across, as_json=as_json)
    elif has_failures and not as_json:  # one run of several models: its figures were not printed
        print_output(brief_output(Report(runs[0])))


def _write_page(path: Path, report: Report) -> None:
    """Writes the page of a report into the file `path`, which is replaced."""
    from lmdiag.report.formats import write_files
    from lmdiag.report.run_report import runs_output

    write_files(runs_output(report), [path], width=8.0)


def _write_comparison(
    runs: Sequence[Run], output: Path, across: Sequence[str], *, as_json: bool
) -> None:
    """Writes the pages that compare runs; prints their figures, and commands that show more.

    Args:
        runs: two or more; checkpoints and layers are shown in their order.
        output: the folder of all runs.
        across: names of the options in which the runs may differ, as ("layer",); () for none.
        as_json: whether the command prints one JSON document, and no figures here.
    """
    from lmdiag.report import labels
    from lmdiag.report.charts import MOST_BESIDE
    from lmdiag.report.formats.terminal import print_output
    from lmdiag.report.run_report import Report, brief_output

    runs = [runs[i] for i in labels.positions_in_order([run.results for run in runs])]
    results = [run.results for run in runs]
    report = Report(runs, across=across)
    if not as_json:
        print_output(brief_output(report), is_undivided=True)
    pages = _comparison_pages(runs, output, across)
    try:
        for page, runs_of_page in pages.items():
            has_all_runs = len(runs_of_page) == len(runs)  # the report above is used again
            _write_page(page, report if has_all_runs else Report(runs_of_page, across=across))
    except BadInput as error:  # the runs differ in an option that has no effect on one of them
        say(f"lmdiag: no comparison was written: {error}")
        return
    if not as_json:
        paths = [visible(shlex.quote(str(run.path))) for run in runs]
        # of checkpoints and layers, the first is compared with the last
        compared_path = paths[-1 if labels.order_of(results) else 1]
        # a command with the folder of all runs, if the directories of the runs are too many
        paths_shown = paths if len(paths) <= MOST_BESIDE else [visible(shlex.quote(str(output)))]
        may_differ = f" --across {','.join(across)}" if across else ""
        print()
        for page in pages:
            print(f"Comparison: open {visible(str(page))} in a browser")
        print(f"Differences: lmdiag compare {paths[0]} {compared_path}{may_differ}")
        print(f"All tables: lmdiag report {' '.join(paths_shown)} --format text{may_differ}")


def _comparison_pages(
    runs: Sequence[Run], output: Path, across: Sequence[str]
) -> dict[Path, list[Run]]:
    """Returns file of a page -> the runs that it compares.

    If models answered after several layers (`across` is ("layer",)), the layers of each model have
    a page in the folder of the model, for example "results/gpt2/layers-role88-token.html". All runs
    together have a page in `output`, "results/comparison-role88-token.html", unless they are the
    layers of one model. For checkpoints, its name begins with the model, so that checkpoints of
    another model do not replace the page.
    """
    from lmdiag.asking.training_steps import trained_model
    from lmdiag.report import labels
    from lmdiag.results import model_slug

    runs_of_model: dict[Path, list[Run]] = {}  # folder of a model -> its layers; {} without layers
    for run in runs if across else ():
        runs_of_model.setdefault(run.path.parent, []).append(run)
    pages = {
        folder / f"layers-{layer_runs[-1].path.name}.html": layer_runs
        for folder, layer_runs in runs_of_model.items()
        if len(layer_runs) > 1
    }
    if len(runs_of_model) == 1:  # all runs are layers of one model, which has a page already
        return pages
    name = runs[0].path.name
    if labels.order_of([run.results for run in runs]):  # checkpoints of one model
        model = runs[0].results.model
        name = f"{model_slug(trained_model(model.id, model.revision), None, model.name)}-{name}"
    pages[output / f"comparison-{name}.html"] = [*runs]
    return pages


DEFAULT_KNOBS = tuple(option for option, knob in KNOBS.items() if knob.varies)
"""Knobs that vary unless others are named."""

_OTHER_KNOBS = ", ".join(option for option, knob in KNOBS.items() if not knob.varies)


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """What varies."""

    knobs: Annotated[
        options.Names,
        Parameter(
            help=f"what varies (default: all that apply of {', '.join(DEFAULT_KNOBS)}; also "
            f"{_OTHER_KNOBS})"
        ),
    ] = DEFAULT_KNOBS
    prompt: tuple[str, ...] = ()
    """texts for prompt, or files with them, beside none; see run"""
    choice_prompt: tuple[str, ...] = ()
    """texts for choice-prompt, or files with them, beside none; see run"""
    layers: options.Numbers = ()
    """numbers of layers for layer, beside the last; see run"""
    chat: bool = False
    """ask in the assistant's turn of the model's chat template, too"""
    instruction: str = ""
    """with chat, the user's turn before it (default: Complete the sentence.)"""

    def values(self, asks: Asks) -> dict[str, list[dict[str, Any]]]:
        """Returns knob -> its values, the default first, each as fields of `LoadOptions`.

        There are three kinds of knobs. Choices vary over all their values, as `unit` in
        {"unit": [{"unit": "token"}, {"unit": "word"}]}. Texts, as `prompt`, and layers vary over
        the default and what the user typed: {"layer": [{"layer": None}, {"layer": 6}]}.

        The result has the knobs that the user names, in this order. If the user names none, some of
        `DEFAULT_KNOBS` may not apply to the rows: `run_members` leaves these out.

        `BadInput` for a knob that does not apply to the rows, and for a text or layer of a knob
        that does not vary.

        Args:
            asks: what the rows ask, "word" or "sentence".
        """
        self._check_names(asks)
        values = {}
        # all knobs, also those that do not vary: a text or layer that is typed for them is refused
        for name, knob in KNOBS.items():
            if knob.values:  # a choice, whose type has all values
                values[name] = [{knob.name: value} for value in knob.values]
                continue
            if knob.is_text:
                typed_values = self._text_values(knob)
            else:
                typed_values = [{knob.name: layer} for layer in self.layers]
            if typed_values and name not in applicable_knobs(asks):
                raise BadInput(refusal(Case(given=typed_values[0].keys(), asks=asks)))
            if typed_values and name not in self.knobs:
                option = _typed_option(name, knob, typed_values[0])
                raise BadInput(f"{option} varies {name}: leave it out, or add {name} to --knobs")
            values[name] = [{knob.name: knob.default}, *typed_values]
        return {name: values[name] for name in self.knobs}

    def _check_names(self, asks: Asks) -> None:
        """Raises `BadInput` for an unknown knob, and for a knob that does not apply to the rows.

        If the user names no knobs, those of `DEFAULT_KNOBS` that do not apply raise no error.
        """
        knobs = applicable_knobs(asks)
        for name in self.knobs:
            if name not in KNOBS:
                suggestion = suggest(name, KNOBS)
                raise BadInput(f"--knobs {name}{suggestion}: choose from {', '.join(KNOBS)}")
            if name not in knobs and self.knobs != DEFAULT_KNOBS:
                choice = ", ".join(knobs)
                raise BadInput(
                    f"--knobs {name} does not apply to {ROWS[asks]}: choose from {choice}"
                )

    def _text_values(self, knob: Knob) -> list[dict[str, Any]]:
        """Returns the typed values of a knob of texts, each as fields of `LoadOptions`.

        For example [{"prompt": "Q: {context}"}, {"chat": True, "instruction": ""}] for the knob
        "prompt". With `chat`, the prompt that the model's chat template makes is the last value.
        `BadInput` for a value that cannot be asked.
        """
        texts = dict.fromkeys(map(options.text_or_file, getattr(self, knob.name, ())))
        choices: list[dict[str, Any]] = [{knob.name: text} for text in texts]
        if knob.template:
            fields: dict[str, Any] = {"chat": self.chat, "instruction": self.instruction}
            LoadOptions(**fields)  # raises `BadInput` for an instruction without chat
            if self.chat:
                choices.append(fields)
        values_of_field = {knob.name: knob.values for knob in KNOBS.values()}
        # A knob may be refused without another option, as choice_prompt without elicitation. It is
        # checked together with that option, at its last value, which is not the default: together
        # with {"elicitation": "choice"}. For the prompt, `needed_options` is {}.
        needed_options = {name: values_of_field[name][-1] for name in required_options(knob.name)}
        for fields in choices:
            LoadOptions(**needed_options | fields)  # raises `BadInput` for options that do not fit
        return choices


def _typed_option(name: str, knob: Knob, typed_value: Mapping[str, Any]) -> str:
    """Returns the option that gave a knob a value: "--prompt", "--chat" or "--layers".

    Args:
        name: of the knob.
        typed_value: the value, as fields of `LoadOptions`: {"prompt": "Q: {context}"} for --prompt,
            {"chat": True, "instruction": ""} for --chat, {"layer": 6} for --layers.
    """
    if knob.name not in typed_value:  # the template of the knob was chosen: --chat
        return f"--{knob.template}"
    return f"--{name}" if knob.is_text else f"--{name}s"


def multiverse_command(
    data: options.DataSet = options.DATA,
    *,
    models: Annotated[options.Models, options.section("Models")] = options.Models(),
    rows: Annotated[CommandData, options.section("Data")] = CommandData(),
    knobs: Annotated[Knobs, options.section("What varies")] = Knobs(),
    scoring: Annotated[options.Scoring, options.section("Scoring")] = options.Scoring(),
    loading: Annotated[Loading, options.section("Loading the model")] = Loading(),
    running: Annotated[CommandRunning, options.section("Running")] = CommandRunning(),
    showing: Annotated[options.ShowingAnew, options.OUTPUT] = options.ShowingAnew(),
) -> None:
    """Runs every model with every combination of knobs; writes and prints the figures of all."""
    showing.check()
    from lmdiag.runs.combinations import run_members
    from lmdiag.runs.processes import Processes

    with Processes(together=running.tp) as processes:
        with processes.shared_errors():  # bad input on one process ends all of them
            requested = models.requested(running.output, data)
            load_options = LoadOptions(tp=running.tp, device=processes.device, **vars(loading))
            # every knob at its default; `run_members` sets those of each combination
            inputs = rows.load(data, QueryOptions(), scoring)
            values = knobs.values(inputs.asks)
        requested = processes.share(requested)  # processes may get different lists from the Hub
        members = []  # of each model, a list with the knobs and the run of each combination
        for model, revision, name in requested:
            model_options = replace(load_options, revision=revision)
            members.append(
                run_members(
                    model, model_options, inputs, values, running.for_model(name), processes
                )
            )
        if processes.is_first:
            _finish_multiverse(members, running, showing)


def _finish_multiverse(
    models: list[list[tuple[dict[str, str], Run]]],
    running: CommandRunning,
    showing: options.Showing,
) -> None:
    """Writes `multiverse.json`, its page and the pages of all runs; prints the tables.

    Args:
        models: for each model a list with an entry for each combination: knob -> its value, as
            {"unit": "word", "bos": "never"}, and the run.
        running: has the folder of all runs, `output`; nothing else of it is used.
        showing: which tables are printed and written.
    """
    from pandas import concat

    from lmdiag.report.formats import write_files
    from lmdiag.report.formats.terminal import output_console
    from lmdiag.report.labels import run_labels
    from lmdiag.report.multiverses import multiverse_output
    from lmdiag.report.run_report import Report
    from lmdiag.report.selections import ReportFigures, headlines
    from lmdiag.results import REPORT
    from lmdiag.results.model_labels import needs_no_context
    from lmdiag.results.results import with_digest
    from lmdiag.studies.multiverse import MULTIVERSE, MULTIVERSE_PAGE, multiverse_of

    output = running.output
    # word frequencies stand last; any run of a model tells what the model is, here the first one
    models = sorted(models, key=lambda members: needs_no_context(members[0][1].results.model))
    runs = [run for members in models for _, run in members]
    for run in runs:
        if not (run.path / REPORT).exists():
            _write_page(run.path / REPORT, Report(run))
    labels = run_labels([members[0][1].results for members in models])
    figures = ReportFigures.of([run.results for run in runs])
    headline_rows = concat([headlines(task, figures) for task in figures.tasks])
    multiverse = multiverse_of(dict(zip(labels, models, strict=True)), headline_rows, output)
    clear_drafts(output)
    write_atomically(output / MULTIVERSE, with_digest(multiverse.to_json()))
    write_files(multiverse_output(multiverse), [output / MULTIVERSE_PAGE], width=8.0)
    showing.show(multiverse)
    if showing.printed:  # with --format or --json, standard output has the result alone
        return
    console = output_console()
    saved = f"\nSaved in {visible(str(output))}: {MULTIVERSE}, {MULTIVERSE_PAGE}"
    console.print(saved, markup=False, soft_wrap=True)
