"""`lmdiag report`: the tables and charts of one or several runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from lmdiag.cli.options import RECORD, DataOfRuns
from lmdiag.types import BadInput

_FIGURES = ("svg", "pdf", "png")


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Runs, and the form of their report."""

    runs: tuple[Path, ...] = field(kw_only=False)
    """run directory, or several, which are compared (checkpoints of one model: shown as curves;
    runs of one model on different tasks: as one run), or folders that have them, or a directory of
    `lmdiag multiverse`"""
    format: Literal["html", "markdown", "latex", "csv", "svg", "pdf", "png"] | None = None
    """html (default): full report with charts; markdown, latex, csv: tables only; svg, pdf, png:
    charts"""
    items: tuple[str, ...] = ()
    """ids of rows, contrasts or items of suites to show with top words, or sentences word by word,
    e.g. role88-68"""
    out: Path | None = None
    """output file (default: html to report.html in the run directory, for several runs in the
    current directory; other formats to standard output)"""
    figures: Path | None = None
    """write every chart as a file into this directory, with its caption as text beside it; the
    format is then svg (default), pdf or png"""
    region: str = ""
    """number or name of the critical region, for a design with regions"""
    width: Annotated[float, Parameter(validator=Number(gte=4, lte=60))] = 8.0
    """width of the figures in cm: 8 fits one column, 17 two"""
    data: DataOfRuns = None


def main(options: Options) -> int:
    """Writes the report; returns the exit code."""
    from lmdiag.files import clear_drafts, write_atomically
    from lmdiag.multiverse import MULTIVERSE, MULTIVERSE_PAGE, Multiverse
    from lmdiag.report import html, multiverse
    from lmdiag.report.charts.output import write_figures
    from lmdiag.results import REPORT, load_run, run_folders
    from lmdiag.text import visible

    folder = options.runs[0]
    is_multiverse = len(options.runs) == 1 and (folder / MULTIVERSE).is_file()
    if not is_multiverse:
        options = replace(options, runs=tuple(run_folders(options.runs)))
        folder = options.runs[0] if len(options.runs) == 1 else Path()
    if options.figures or options.format in _FIGURES:
        kind = options.format or "svg"
        if not options.figures or kind not in _FIGURES:
            raise BadInput(
                "figures need a directory and one of the formats svg, pdf, png: give --figures DIR "
                "--format svg"
            )
        if is_multiverse:
            plots = [plot for _, plot in multiverse.multiverse_plots(Multiverse.read(folder))]
        else:
            plots = html.charts([load_run(path, options.data) for path in options.runs],
                                options.region)  # fmt: skip
        paths = write_figures(plots, options.figures, kind, options.width)
        print(f"Saved {len(paths)} figures in {visible(str(options.figures))}")
        return 0
    out = options.out
    if is_multiverse:
        if options.format not in (None, "html") or options.items:
            raise BadInput(
                f"{folder} is a multiverse, which has a page and charts only: leave out --format "
                "and --items, or name one of its runs"
            )
        text, out = multiverse.render(Multiverse.read(folder)), out or folder / MULTIVERSE_PAGE
    elif options.format in (None, "html"):
        runs = [load_run(path, options.data) for path in options.runs]
        text = html.render(runs, chosen=options.items, region=options.region)
        out = out or folder / REPORT
    else:
        text = _tables(options)
    if out is None:
        sys.stdout.write(text)
        return 0
    clear_drafts(out.parent)
    write_atomically(out, text.encode())
    print(f"Saved in {visible(str(out))}")
    return 0


def _tables(options: Options) -> str:
    """The tables as text. They need no data set; the top words of chosen items do."""
    from lmdiag import diagnostics
    from lmdiag.report.designs import designs_of
    from lmdiag.report.formats import render_tables
    from lmdiag.report.labels import training_order
    from lmdiag.report.listing import choose
    from lmdiag.results import load_run, read_results
    from lmdiag.results.run import joined_results, joined_runs

    separate = [read_results(path) for path in options.runs]
    results = joined_results(separate)
    order = training_order(results)
    chosen, grids, rows = [], [], {}
    if options.items:
        runs = joined_runs([load_run(path, options.data) for path in options.runs])
        chosen = choose([runs[i] for i in order], options.items)
    if options.format != "csv":  # with effects and cells of own data, where the data are found
        known, paths = diagnostics.built_in().keys(), zip(options.runs, separate, strict=True)
        try:
            custom = [load_run(p, options.data) for p, facts in paths if facts.tasks.keys() - known]
            grids = [grid for design in designs_of(custom, options.region) for grid in design.grids]
            rows = {task: x.columns() for run in custom for task, x in run.stimuli.items()}
        except BadInput:
            if options.region:
                raise
    return render_tables(options.format or "csv", [results[i] for i in order], chosen, grids, rows)
