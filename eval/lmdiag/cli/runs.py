"""What is done with finished runs: `lmdiag score`, `compare`, `report`, `items` and `analyse`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

import lmdiag
from lmdiag.cli import options, say
from lmdiag.files import clear_drafts, is_folder, write_atomically
from lmdiag.protocol import KNOBS, Predictions, Protocol
from lmdiag.text import csv_cell, suggest, visible
from lmdiag.types import BadInput, DesignOptions

if TYPE_CHECKING:
    from lmdiag.results import Run

_IMAGES = ("svg", "pdf", "png")
_TABLE_OF_ITEMS = options.TablesOfItems()


def score_command(
    *,
    task: str,
    predictions: Path,
    data: str | None = None,
    scoring: Annotated[options.Scoring, options.RECORD] = options.Scoring(),
    cased: Annotated[bool | None, Parameter(negative="--uncased")] = None,
    measures: tuple[str, ...] = (),
    setting: str = "none",
    allow_duplicates: bool = False,
    as_json: options.Json = False,
) -> None:
    """Scores and prints, also what cannot be computed and why.

    Args:
        task: config of the data set
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
    from lmdiag import evaluation, results, stimuli
    from lmdiag.measures import folds_for, match_rule
    from lmdiag.report.terminal import print_results
    from lmdiag.results.original_code import is_original_output
    from lmdiag.results.predictions import read_external

    missing: list[str] = []
    notes: list[str] = []
    if is_folder(predictions) and not is_original_output(predictions):
        run = results.load_run(predictions, data)
        shuffles = _shuffles(run, predictions, task, setting)
        protocol = _protocol_of(run, predictions, scoring)
        rows = run.stimuli[task]
    else:
        rows = stimuli.load(data or "lmdiag", task, allow_duplicates=allow_duplicates)
        shuffles, missing, notes = read_external(predictions, rows, setting)
        protocol = scoring.of(Protocol(tasks=(task,)))
    model = shuffles[0].model  # of predictions of another program, none
    kind = model.kind if model else "masked"
    folds = folds_for(model, cased)
    rule = match_rule(folds)
    measured = evaluation.evaluate_complete(
        rows, shuffles, protocol, folds, kind, missing=missing, asked=measures, where=predictions
    )
    for line in notes:
        say(f"lmdiag: {line}")
    if as_json:
        for line in measured.not_computed:  # the tables say it, too
            say(f"lmdiag: not computed: {line}")
        document = {"task": task, "match": rule, **measured.to_json()}
        print(json.dumps(document, allow_nan=False))
    else:
        if rows.asks_words:
            print(f"{task}: words are compared {rule}")
        print_results(results.of_setting(rows, setting, measured))


def _shuffles(run: Run, path: Path, task: str, setting: str) -> list[Predictions]:
    """The predictions of a setting: one for each of its shuffles."""
    tasks = run.results.tasks
    settings = tasks.get(task, {})
    if setting not in settings:
        suggestion = suggest(setting, settings) if settings else suggest(task, tasks)
        choices = ", ".join(f"{name} ({' '.join(parts)})" for name, parts in tasks.items())
        raise BadInput(
            f"{path} has no {task} in setting {setting}{suggestion}: choose from {choices}"
        )
    return [part for (name, _), part in sorted(run.predictions[task].items()) if name == setting]


def _protocol_of(run: Run, path: Path, scoring: options.Scoring) -> Protocol:
    """The protocol of a run with other options of the measures, which its lists must allow."""
    protocol = scoring.of(run.results.protocol)
    k = max(protocol.k)
    top = run.results.protocol.top
    if k > top:
        raise BadInput(
            f"--k {k}: {path} keeps the first {top} words only; run the model again with --k {k}"
        )
    return protocol


Across = Annotated[
    options.Names, Parameter(help=f"options in which the runs may differ: {', '.join(KNOBS)}")
]


Width = Annotated[float, Parameter(validator=Number(gte=4, lte=60))]


def compare_command(
    runs: tuple[Path, ...],
    /,
    *,
    data: options.DataOfRuns = None,
    across: Across = (),
    tasks: tuple[str, ...] = (),
    measures: tuple[str, ...] = (),
    seed: options.Seed = 0,
    format: Literal["text", "markdown", "latex", "csv"] = "text",
    width: Width = 17.0,
    as_json: options.Json = False,
) -> None:
    """Compares and prints.

    Differences are new minus base.

    Args:
        runs: run directories on the same data, or folders that have them: BASE NEW...; the first
            run is the base, with which each of the others is compared
        tasks: tasks to compare; p-values are adjusted over what is compared (default: all)
        measures: measures to compare, e.g. accuracy or sensitivity@0.01, or all (default: the
            headline figures)
        seed: random seed of signs and permutations
        format: text: as on a terminal; markdown, latex, csv: tables for a paper
        width: width of LaTeX tables in cm
    """
    from lmdiag.comparison import not_compared
    from lmdiag.report.comparisons import comparison_sections
    from lmdiag.report.formats import render_tables
    from lmdiag.report.terminal import output_console

    loaded = options.runs_in(runs, data)
    compared = lmdiag.compare(*loaded, seed=seed, across=across, tasks=tasks, measures=measures)
    for line in not_compared(loaded):
        say(f"lmdiag: not compared: {line}")
    if as_json:
        document = _comparison_document(compared, loaded, across, seed)
        print(json.dumps(document, allow_nan=False))
    elif format == "csv":
        table = compared.to_frame().map(lambda x: csv_cell(x) if isinstance(x, str) else x)
        print(table.to_csv(index=False, lineterminator="\n"), end="")
    elif format != "text":
        sections = comparison_sections(compared, compared.headings, compared.signatures)
        print(render_tables(format, sections, width=width), end="")
    else:
        compared.show(output_console())


def _comparison_document(
    compared: lmdiag.api.Comparisons, runs: Sequence[Run], across: Sequence[str], seed: int
) -> Any:
    """What `lmdiag compare --json` prints."""
    from pydantic_core import to_jsonable_python

    facts = ("commit", "dtype", "quantization", "server")
    described = [
        {"name": name, "model": run.results.model.id}
        | {fact: value for fact in facts if (value := getattr(run.results.model, fact)) is not None}
        for name, run in zip(compared.names, runs, strict=True)
    ]
    records = []
    for record in map(asdict, compared):
        new = compared.names[record.pop("number")]
        records.append({"base_model": compared.names[0], "new_model": new} | record)
    document = {
        "signature": compared.signatures[0], "models": described,
        **({"across": across, "signatures": compared.signatures} if across else {}),
        "seed": seed, "direction": "new minus base",
        "comparisons": records,
    }  # fmt: skip
    return to_jsonable_python(document, inf_nan_mode="null")


def report_command(
    runs: tuple[Path, ...],
    /,
    *,
    format: Literal["html", "text", "markdown", "latex", "csv", "svg", "pdf", "png"] | None = None,
    tasks: tuple[str, ...] = (),
    measures: tuple[str, ...] = (),
    items: tuple[str, ...] = (),
    out: Path | None = None,
    figures: Path | None = None,
    across: Across = (),
    design: Annotated[DesignOptions, options.RECORD] = DesignOptions(),
    width: Width = 8.0,
    data: options.DataOfRuns = None,
) -> None:
    """Writes the report.

    Args:
        runs: run directory, or several, which are compared (checkpoints of one model: shown as
            curves; runs of one model on different tasks: as one run), or folders that have them, or
            a directory of `lmdiag multiverse`
        format: html (default): full report with charts; text: all tables as on a terminal;
            markdown, latex, csv: tables for a paper; svg, pdf, png: charts
        tasks: tasks to show (default: all)
        measures: measures to show, e.g. accuracy or sensitivity@0.01 (default: all)
        items: ids of rows, contrasts or items of suites to show with top words, or sentences word
            by word, e.g. role88-68
        out: output file (default: html to report.html in the run directory, for several runs in the
            current directory; other formats to standard output)
        figures: write every chart as a file into this directory, with its caption as text beside
            it; the format is then svg (default), pdf or png
        width: width of figures and LaTeX tables in cm: 8 fits one column, 17 two
    """
    from lmdiag.multiverse import MULTIVERSE, MULTIVERSE_PAGE, Multiverse
    from lmdiag.report import multiverse
    from lmdiag.report.charts.output import write_images
    from lmdiag.report.html import Report
    from lmdiag.results import REPORT, run_folders

    folder = runs[0]
    is_multiverse = len(runs) == 1 and (folder / MULTIVERSE).is_file()
    if figures or format in _IMAGES:
        if not figures or format not in (None, *_IMAGES):
            raise BadInput("figures are svg, pdf or png files: give --figures DIR --format svg")
        if is_multiverse:
            plots = [plot for _, plot in multiverse.multiverse_plots(Multiverse.read(folder))]
        else:
            plots = Report(options.runs_in(runs, data), design, across, tasks, measures).charts()
        written = write_images(plots, figures, format or "svg", width)
        print(f"Saved {len(written)} figures in {visible(str(figures))}")
        return
    paths = run_folders(runs)
    if is_multiverse:
        if items or format not in (None, "html"):
            raise BadInput(
                f"{folder} is a multiverse, which has a page and charts only: leave out --format "
                "and --items, or name one of its runs"
            )
        text = multiverse.render(Multiverse.read(folder))
        out = out or folder / MULTIVERSE_PAGE
    elif format in (None, "html"):
        text = Report(options.runs_in(paths, data), design, across, tasks, measures).page(items)
        out = out or (paths[0] if len(paths) == 1 else Path()) / REPORT
    else:
        chosen = {"tasks": tasks, "measures": measures}
        text = _tables(paths, format, items, design, data, width, chosen)
    if out is None:
        sys.stdout.write(text)
        return
    clear_drafts(out.parent)
    write_atomically(out, text.encode())
    print(f"Saved in {visible(str(out))}")


def _tables(
    paths: list[Path],
    format: str,
    items: tuple[str, ...],
    design: DesignOptions,
    data: str | None,
    width: float,
    shown: dict[str, Any],
) -> str:
    """The tables as text, and the top words of chosen items; `shown` are tasks and measures."""
    from lmdiag.report.formats import figures_as_csv, render_tables
    from lmdiag.report.html import Report
    from lmdiag.report.items import choose
    from lmdiag.report.remarks import against_chance
    from lmdiag.report.tables import overview
    from lmdiag.report.terminal import tables_as_text
    from lmdiag.results import Run, read_results

    if format == "csv":
        if items:
            raise BadInput("csv has the figures: `lmdiag items RUNS --out FILE` writes the items")
        report = Report([Run(path, read_results(path), {}) for path in paths], **shown)
        return figures_as_csv([run.results for run in report.runs])
    needs_rows = bool(items or design.stored())
    runs = [_run_of_tables(path, data, needs_rows=needs_rows) for path in paths]
    report = Report(runs, design, **shown)
    if format == "text":
        if items:
            raise BadInput("text has the tables: choose --format markdown, latex or html for items")
        return tables_as_text([run.results for run in report.runs], report.all_tables)
    chosen = choose(report.runs, items)
    first = overview(report.figures)
    first = first._replace(remarks=[*first.remarks, *against_chance(report.figures)])
    return render_tables(format, [first, *report.all_tables], chosen, width)


def _run_of_tables(path: Path, data: str | None, *, needs_rows: bool) -> Run:
    """A run with its rows, or without them where only effects need them; a line says so."""
    from lmdiag import diagnostics
    from lmdiag.results import Run, load_run, read_results

    results = read_results(path)
    if not needs_rows and results.tasks.keys() <= diagnostics.built_in().keys():
        return Run(path, results, {})
    try:
        return load_run(path, data)
    except BadInput as error:
        if needs_rows:
            raise
        say(f"lmdiag: without effects: {error}")
        return Run(path, results, {})


def items_command(
    runs: tuple[Path, ...],
    /,
    *,
    out: Path,
    per: Literal["row", "region", "word"] = "row",
    task: str = "",
    data: options.DataOfRuns = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Writes the table.

    Args:
        runs: run directories; their items are in one table
        out: file to write; its name must end in .csv, .tsv or .parquet
        per: a row per row of the data, or per region or word of its sentences
        task: one of the tasks of the runs (default: all)
    """
    from lmdiag.analysis.items import items_of
    from lmdiag.table_files import WRITTEN_SUFFIXES, write_table

    options.check_new_file(out, WRITTEN_SUFFIXES, overwrite=overwrite)
    table = items_of(options.runs_in(runs, data), task=task, per=per)
    write_table(table, out)
    print(f"{len(table):,} rows and {len(table.columns)} columns in {visible(str(out))}")


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
    chart: Path | None = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Analyses and prints.

    Args:
        runs: run directories, or tables (csv, tsv, xlsx, JSON lines, Parquet) with a row per item
            and condition and a column item; several models are compared
        response: surprisal, probability, log_odds, correct, or a column of numbers (default: the
            left side of the formula, else surprisal)
        formula: mixed model in lme4's notation, e.g. "surprisal ~ a * b + (1 | item)"
        task: one of the tasks of the runs
        chart: write the condition means as a figure into this file (.svg, .pdf or .png)
    """
    from lmdiag.analysis.items import is_table_file
    from lmdiag.report.charts.conditions import condition_plot
    from lmdiag.report.charts.output import image_file
    from lmdiag.report.terminal import output_console

    if chart:
        options.check_new_file(chart, [f".{kind}" for kind in _IMAGES], overwrite=overwrite)
    tables = [path for path in runs if is_table_file(path)]
    sources = [*tables, *options.runs_in([path for path in runs if path not in tables], data)]
    analysed = lmdiag.analyse(
        sources, task=task, response=response, formula=formula, **design.given(), **table.stored()
    )
    if chart:
        plot = condition_plot("conditions", analysed)
        write_atomically(chart, image_file(plot.spec, chart.suffix[1:], 8.0))
        say(f"lmdiag: saved the means of conditions in {chart}")
    if as_json:
        print(json.dumps(analysed.to_json(), allow_nan=False))
    else:
        analysed.show(output_console())
