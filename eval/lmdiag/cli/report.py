"""`lmdiag report`: the tables and charts of one or several runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from lmdiag.cli.options import RECORD
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.report.formats.grid import Grid

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
    data: str | None = None
    """data set of the runs, if it has been moved since, or its id on the Hub (default: the one they
    were made on)"""


def main(options: Options) -> int:
    """Writes the report; returns the exit code."""
    from lmdiag.files import clear_drafts, write_atomically
    from lmdiag.results import run_folders
    from lmdiag.text import visible

    if not _is_multiverse(options.runs):
        options = replace(options, runs=tuple(run_folders(options.runs)))
    if options.figures or options.format in _FIGURES:
        return _figures(options)
    if _is_multiverse(options.runs):
        text, file = _multiverse(options)
    elif options.format in (None, "html"):
        text, file = _page(options)
    else:
        text, file = _tables(options), None
    if (out := options.out or file) is None:
        sys.stdout.write(text)
        return 0
    clear_drafts(out.parent)
    write_atomically(out, text.encode())
    print(f"Saved in {visible(str(out))}")
    return 0


def _is_multiverse(paths: Sequence[Path]) -> bool:
    """Whether a single path is that of a multiverse, and not of a run."""
    from lmdiag.results.multiverse import MULTIVERSE

    return len(paths) == 1 and (paths[0] / MULTIVERSE).is_file()


def _page(options: Options) -> tuple[str, Path]:
    """Returns the page of runs, and where it is written by default."""
    from lmdiag.report.html import render
    from lmdiag.results import REPORT, load_run

    folder = options.runs[0] if len(options.runs) == 1 else Path()
    runs = [load_run(path, options.data) for path in options.runs]
    return render(runs, chosen=options.items, region=options.region), folder / REPORT


def _multiverse(options: Options) -> tuple[str, Path]:
    """Returns the page of a multiverse, and where it is written by default."""
    from lmdiag.report.multiverse import render
    from lmdiag.results.multiverse import MULTIVERSE_PAGE, Multiverse

    if options.format not in (None, "html") or options.items:
        raise BadInput(
            f"{options.runs[0]} is a multiverse, which has a page and charts only: leave out "
            "--format and --items, or name one of its runs"
        )
    return render(Multiverse.read(options.runs[0])), options.runs[0] / MULTIVERSE_PAGE


def _figures(options: Options) -> int:
    """Writes the charts as files."""
    from lmdiag.report.charts.output import write_figures
    from lmdiag.report.html import charts
    from lmdiag.report.multiverse import multiverse_plots
    from lmdiag.results import load_run
    from lmdiag.results.multiverse import Multiverse
    from lmdiag.text import visible

    kind = options.format or "svg"
    if not options.figures or kind not in _FIGURES:
        raise BadInput(
            "figures need a directory and one of the formats svg, pdf, png: give --figures DIR "
            "--format svg"
        )
    if _is_multiverse(options.runs):
        plots = multiverse_plots(Multiverse.read(options.runs[0]))
    else:
        plots = charts([load_run(path, options.data) for path in options.runs], options.region)
    paths = write_figures(plots, options.figures, kind, options.width)
    print(f"Saved {len(paths)} figures in {visible(str(options.figures))}")
    return 0


def _tables(options: Options) -> str:
    """The tables as text. They need no data set; the top words of chosen items do."""
    from lmdiag.report.formats import render_tables
    from lmdiag.report.labels import training_order
    from lmdiag.report.listing import choose
    from lmdiag.results import load_run, read_results
    from lmdiag.results.run import joined_results, joined_runs

    results = joined_results([read_results(path) for path in options.runs])
    order = training_order(results)
    chosen = []
    if options.items:
        runs = joined_runs([load_run(path, options.data) for path in options.runs])
        chosen = choose([runs[i] for i in order], options.items)
    grids = [] if options.format == "csv" else _design_grids(options)
    return render_tables(options.format or "csv", [results[i] for i in order], chosen, grids)


def _design_grids(options: Options) -> list[Grid]:
    """The tables of effects and cells of own data with a design, where the data are found."""
    from lmdiag import diagnostics
    from lmdiag.report.designs import designs_of
    from lmdiag.results import load_run, read_results

    own = [path for path in options.runs if {*read_results(path).tasks} - {*diagnostics.built_in()}]
    try:
        runs = [load_run(path, options.data) for path in own]
    except BadInput:
        if options.region:
            raise
        return []
    return [grid for design in designs_of(runs, options.region) for grid in design.grids]
