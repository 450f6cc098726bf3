"""What is done with finished runs: `lmdiag score`, `compare`, `report`, `items` and `analyse`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import lmdiag
from lmdiag.asking.protocol import KNOBS, Predictions, Protocol
from lmdiag.cli import LOSS, say
from lmdiag.cli import command_options as options
from lmdiag.files.reading import is_folder
from lmdiag.report.formats import FORMATS
from lmdiag.text import suggest, visible
from lmdiag.types import BadInput, DesignOptions

if TYPE_CHECKING:
    from lmdiag.results import Run

_TABLE_OF_ITEMS = options.TablesOfItems()


def score_command(
    predictions: Path,
    *,
    task: str = "",
    data: str | None = None,
    scoring: Annotated[options.Scoring, options.RECORD] = options.Scoring(),
    cased: Annotated[bool | None, Parameter(negative="--uncased")] = None,
    measures: tuple[str, ...] = (),
    setting: str = "none",
    allow_duplicates: bool = False,
    showing: Annotated[options.Showing, options.OUTPUT] = options.Showing(),
) -> None:
    """Prints the measures of predictions, and what cannot be computed and why; writes files.

    Args:
        task: config of the data set (default: the only one)
        predictions: JSON lines or Parquet file with id, top_words and log_prob, a run directory, or
            a folder with files modelpreds-... and modeltgtprobs-... of the original code
        data: data set: a built directory, a Hub id (ID@REVISION for a branch, tag or commit) or a
            file of your own (default: lmdiag; for a run, the data it was made on)
        cased: compare words with the expected words exactly, or without case and accents (default:
            exactly; for a run, what its tokenizer reads alike)
        measures: measures to compute, e.g. accuracy or sensitivity@0.01; each must be possible
            (default: all that are possible)
        setting: perturbation of the run to score
        allow_duplicates: keep one of identical rows of own data, instead of an error
    """
    showing.check()
    from lmdiag import results, stimuli
    from lmdiag.measures import folds_for, match_rule
    from lmdiag.results import evaluation
    from lmdiag.results.original_code import is_original_output
    from lmdiag.results.predictions import read_external

    missing: list[str] = []  # ids of rows without a prediction
    notes: list[str] = []  # how predictions of another program were read
    if is_folder(predictions) and not is_original_output(predictions):  # a run directory
        run = results.load_run(predictions, data)
        task = task or stimuli.only_task([*run.results.tasks], str(predictions))
        shuffles = _predictions_of_setting(run, predictions, task, setting)
        protocol = _protocol_with_scoring(run, predictions, scoring)
        rows = run.stimuli[task]
    else:  # predictions of any program
        data = data or "lmdiag"
        task = task or stimuli.only_task(stimuli.tasks(data), data)
        rows = stimuli.load(data, task, allow_duplicates=allow_duplicates)
        shuffles, missing, notes = read_external(predictions, rows, setting)
        protocol = scoring.of(Protocol(tasks=(task,)))
    # The model is unknown if another program made the predictions. It then counts as a masked one,
    # which sees the texts on both sides of a blank.
    model = shuffles[0].model
    kind = model.kind if model else "masked"
    folds = folds_for(model, cased)
    rule = match_rule(folds)
    measured = evaluation.evaluate_complete(
        rows, shuffles, protocol, folds, kind, missing=missing, asked=measures, where=predictions
    )
    for line in notes:
        say(f"lmdiag: {line}")
    if showing.printed == "json":
        for line in measured.not_computed:  # for other formats, the tables have these lines
            say(f"lmdiag: not computed: {line}")
    from lmdiag.report.run_report import measures_output

    setting_results = results.results_of_setting(rows, setting, measured)
    showing.show(measures_output(setting_results, rule=rule))


def _predictions_of_setting(run: Run, path: Path, task: str, setting: str) -> list[Predictions]:
    """Returns the predictions of a task in a setting: one record, or one for each shuffle.

    `BadInput` if the run does not have them.

    Args:
        path: the directory of the run, for the message.
        setting: "none", or the name of a perturbation.
    """
    tasks = run.results.tasks
    settings = tasks.get(task, {})
    if setting not in settings:
        suggestion = suggest(setting, settings) if settings else suggest(task, tasks)
        choices = ", ".join(f"{name} ({' '.join(parts)})" for name, parts in tasks.items())
        raise BadInput(
            f"{path} has no {task} in setting {setting}{suggestion}: choose from {choices}"
        )
    # sorted by setting, then by number of the shuffle
    numbered = sorted(run.predictions[task].items())
    return [predictions for (name, _), predictions in numbered if name == setting]


def _protocol_with_scoring(run: Run, path: Path, scoring: options.Scoring) -> Protocol:
    """Returns the protocol of a run with other ranks and another threshold, if they are given.

    `BadInput` for a rank beyond the lists of top words of the run; `path` names it in the message.
    """
    protocol = scoring.of(run.results.protocol)
    largest_k = max(protocol.k)
    n_top_words = run.results.protocol.top
    if largest_k > n_top_words:
        raise BadInput(
            f"--k {largest_k}: {path} keeps the first {n_top_words} words only; run the model "
            f"again with --k {largest_k}"
        )
    return protocol


Across = Annotated[
    options.Names,
    Parameter(help=f"options in which the runs may differ: {', '.join(KNOBS)}"),
]


def compare_command(
    runs: tuple[Path, ...],
    /,
    *,
    data: options.DataOfRuns = None,
    across: Across = (),
    tasks: tuple[str, ...] = (),
    measures: tuple[str, ...] = (),
    seeded: Annotated[options.CommandSeed, options.RECORD] = options.CommandSeed(),
    fail_on_loss: Annotated[tuple[float, ...] | None, Parameter(consume_multiple=(0, 1))] = None,
    showing: Annotated[options.ShowingWide, options.OUTPUT] = options.ShowingWide(),
) -> int:
    """Compares runs on the same rows; prints the result, writes files, returns the exit code.

    Differences are new minus base.

    Args:
        runs: run directories on the same data, or folders that have them: BASE NEW...; the first
            run is the base, with which each of the others is compared
        tasks: tasks to compare; p-values are adjusted over what is compared (default: all)
        measures: measures to compare, e.g. accuracy or sensitivity@0.01, or all (default: the
            headline figures)
        fail_on_loss: end with exit code 1 if a figure in percent of the new run is lower by more
            than so many points; without a number, if it is lower with an adjusted p below .05
    """
    showing.check()
    from lmdiag.studies.comparison import not_compared

    loaded_runs = options.runs_in(runs, data)
    if len(loaded_runs) == 1:
        where = " ".join(map(str, runs))
        raise BadInput(f"{where} is one run: name another one, lmdiag compare BASE NEW")
    comparisons = lmdiag.compare(
        *loaded_runs, across=across, tasks=tasks, measures=measures, **vars(seeded)
    )
    for line in not_compared(loaded_runs):
        say(f"lmdiag: not compared: {line}")
    # `--fail-on-loss` alone is (), with a number of points it is (POINTS,)
    losses = None if fail_on_loss is None else comparisons.losses(*fail_on_loss)
    comparisons.points = fail_on_loss[0] if fail_on_loss else None
    showing.show(comparisons)
    for line in losses or ():
        say(f"lmdiag: loss: {line}")
    return LOSS if losses else 0


def report_command(
    runs: tuple[Path, ...],
    /,
    *,
    tasks: tuple[str, ...] = (),
    measures: tuple[str, ...] = (),
    items: tuple[str, ...] = (),
    across: Across = (),
    design: Annotated[DesignOptions, options.RECORD] = DesignOptions(),
    data: options.DataOfRuns = None,
    showing: Annotated[options.Showing, options.OUTPUT] = options.Showing(),
) -> None:
    """Writes the report: without --out and --format, the page `report.html` in the run directory.

    Of several runs, the page is in the current directory.

    Args:
        runs: run directory, or several, which are compared (checkpoints of one model: shown as
            curves; runs of one model on different tasks: as one run), or folders that have them, or
            a directory of `lmdiag multiverse`
        tasks: tasks to show (default: all)
        measures: measures to show, e.g. accuracy or sensitivity@0.01 (default: all)
        items: ids of what to show in detail, e.g. role88-68: rows, contrasts or items of suites,
            with the top words at each blank, and sentences word by word
    """
    from lmdiag.report.run_report import Report
    from lmdiag.results import REPORT
    from lmdiag.studies.multiverse import MULTIVERSE, MULTIVERSE_PAGE, Multiverse

    showing.check()
    folder = runs[0]
    result: Multiverse | Report
    if len(runs) == 1 and (folder / MULTIVERSE).is_file():
        if items or tasks or measures or across or data or design.stored():
            raise BadInput(
                f"{folder} is a multiverse: leave out --items, --tasks, --measures, --across, "
                "--data and the options of designs, or name one of its runs"
            )
        result = Multiverse.read(folder)
        page = folder / MULTIVERSE_PAGE
    else:
        paths = options.finished_runs(runs)
        page = (paths[0] if len(paths) == 1 else Path()) / REPORT
        loaded_runs = _runs_of_report(
            paths,
            data,
            showing.formats,
            has_design=bool(design.stored()),  # `stored` has the options that were given
            has_items=bool(items),
        )
        result = Report(loaded_runs, design, across, tasks, measures, items)
    is_printed = showing.printed is not None  # None without --format and --json
    if not showing.out and not is_printed:  # nothing is asked for: the page is written
        showing = replace(showing, out=(page,))
    showing.show(result, prints=is_printed)


_FORMATS_OF_FIGURES = {
    name for name, format in FORMATS.items() if format.has in ("frame", "document")
}
"""Formats that have the figures of runs alone."""

_FORMATS_OF_TABLES = {name for name, format in FORMATS.items() if format.has == "tables"}
"""Formats that have the figures of runs, and the effects of conditions if there are rows."""


def _runs_of_report(
    paths: list[Path], data: str | None, formats: set[str], *, has_design: bool, has_items: bool
) -> list[Run]:
    """Returns the runs in some directories.

    The data of a run may not be there any more. The run then has figures and no rows, which is an
    error if the report needs rows; otherwise one line is printed.

    Args:
        paths: run directories.
        data: where the data set is now; None for where it was when the runs were made.
        formats: names of the formats that are written; empty for the page, which needs rows.
        has_design: whether the user gives a design, whose conditions are columns of the rows.
        has_items: whether the report shows items, which are rows.
    """
    from lmdiag.results import load_runs

    has_only_figures = bool(formats) and formats <= _FORMATS_OF_FIGURES
    if has_only_figures and has_items:
        raise BadInput("csv has the figures: `lmdiag items RUNS --out FILE` writes the items")
    may_lack_rows = bool(formats) and formats <= _FORMATS_OF_FIGURES | _FORMATS_OF_TABLES
    needs_rows = has_items or has_design or not may_lack_rows
    # formats that have figures alone need no rows, also with a design
    refuses_runs_without_rows = needs_rows and not has_only_figures
    return load_runs(paths, data, without_data=None if refuses_runs_without_rows else say)


def items_command(
    runs: tuple[Path, ...],
    /,
    *,
    out: tuple[Path, ...],
    per: Literal["row", "sentence", "region", "word"] = "row",
    task: str = "",
    data: options.DataOfRuns = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Writes the items of runs as one table.

    Args:
        runs: run directories; their items are in one table
        out: files to write; their names must end in .csv, .tsv or .parquet
        per: a row per row of the data (with the critical word of --critical), or per whole
            sentence, region or word
        task: one of the tasks of the runs (default: all)
    """
    from lmdiag.analysis.items import items_of
    from lmdiag.tables.table_files import WRITTEN_SUFFIXES, write_table

    for file in out:
        options.check_new_file(file, WRITTEN_SUFFIXES, overwrite=overwrite)
    table = items_of(options.runs_in(runs, data), task=task, per=per)
    for file in out:
        write_table(table, file)
        print(f"{len(table):,} rows and {len(table.columns)} columns in {visible(str(file))}")


def analyse_command(
    runs: tuple[Path, ...],
    /,
    *,
    response: str = "",
    design: Annotated[DesignOptions, options.RECORD] = DesignOptions(),
    formula: str = "",
    table: Annotated[options.TablesOfItems, options.TABLE] = _TABLE_OF_ITEMS,
    task: str = "",
    data: options.DataOfRuns = None,
    showing: Annotated[options.Showing, options.OUTPUT] = options.Showing(),
) -> None:
    """Analyses the conditions of items; prints the result and writes its files.

    Args:
        runs: run directories, or tables (csv, tsv, xlsx, JSON lines, Parquet) with a row per item
            and condition and a column item; several models are compared
        response: surprisal, probability, log_odds, correct, or a column of numbers (default: the
            left side of the formula, else surprisal)
        formula: mixed model in lme4's notation, e.g. "surprisal ~ a * b + (1 | item)"
        task: one of the tasks of the runs
    """
    showing.check()
    from lmdiag.analysis.items import is_table_file

    tables = [path for path in runs if is_table_file(path)]
    sources = [
        *tables,
        *options.runs_in([path for path in runs if path not in tables], data),
    ]
    analysis = lmdiag.analyse(
        sources, task=task, response=response, formula=formula, **design.given(), **table.stored()
    )
    showing.show(analysis)
