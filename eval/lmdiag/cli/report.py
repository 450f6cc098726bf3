"""`lmdiag report`: the tables and charts of one or several runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lmdiag.cli.parser import add_data_of_runs
from lmdiag.report.formats import format_names
from lmdiag.schema import BadInput

_FIGURES = ("svg", "pdf", "png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN",
        help="run directory, or several, which are compared (checkpoints of one model: shown as "
        "curves; runs of one model on different tasks: as one run), or a directory of "
        "`lmdiag multiverse`",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("html", *format_names(), *_FIGURES),
        help="html (default): full report with charts; markdown, latex, csv: tables only",
    )  # fmt: skip
    parser.add_argument(
        "--items", nargs="+", default=[], metavar="ID",
        help="ids of rows, contrasts or items of suites to show with top words, or sentences word "
        "by word, e.g. role88-68",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help="output file (default: html to report.html in the run directory, for several runs "
        "in the current directory; other formats to standard output)",
    )  # fmt: skip
    parser.add_argument(
        "--figures", type=Path, metavar="DIR",
        help="write every chart as a file into this directory, with its caption as text beside it; "
        "--format is then svg (default), pdf or png",
    )  # fmt: skip
    parser.add_argument(
        "--width", type=_width, default=8.0, metavar="CM",
        help="width of the figures in cm: 8 fits one column, 17 two (default: %(default)g)",
    )  # fmt: skip
    add_data_of_runs(parser)


def main(args: argparse.Namespace) -> int:
    """Writes the report; returns the exit code."""
    from lmdiag.text import visible
    from lmdiag.writing import clear_drafts, write_atomically

    if args.figures or args.format in _FIGURES:
        return _figures(args)
    if _is_multiverse(args.runs):
        text, file = _multiverse(args)
    elif args.format in (None, "html"):
        text, file = _page(args)
    else:
        text, file = _tables(args), None
    if (out := args.out or file) is None:
        sys.stdout.write(text)
        return 0
    clear_drafts(out.parent)
    write_atomically(out, text.encode())
    print(f"Saved in {visible(str(out))}")
    return 0


def _width(text: str) -> float:
    """A width of a figure in cm; argparse names the option in its message."""
    if not 4 <= (width := float(text)) <= 60:
        raise argparse.ArgumentTypeError("must be between 4 and 60 cm")
    return width


def _is_multiverse(paths: Sequence[Path]) -> bool:
    """Whether a single path is that of a multiverse, and not of a run."""
    from lmdiag.results.multiverse import MULTIVERSE

    return len(paths) == 1 and (paths[0] / MULTIVERSE).is_file()


def _page(args: argparse.Namespace) -> tuple[str, Path]:
    """Returns the page of runs, and where it is written by default."""
    from lmdiag.report.html import render
    from lmdiag.results import REPORT, load_run

    folder = args.runs[0] if len(args.runs) == 1 else Path()
    runs = [load_run(path, args.data) for path in args.runs]
    return render(runs, chosen=args.items), folder / REPORT


def _multiverse(args: argparse.Namespace) -> tuple[str, Path]:
    """Returns the page of a multiverse, and where it is written by default."""
    from lmdiag.report.multiverse import render
    from lmdiag.results.multiverse import MULTIVERSE_PAGE, Multiverse

    if args.format not in (None, "html") or args.items:
        raise BadInput(
            f"{args.runs[0]} is a multiverse, which has a page and charts only: leave out --format "
            "and --items, or name one of its runs"
        )
    return render(Multiverse.read(args.runs[0])), args.runs[0] / MULTIVERSE_PAGE


def _figures(args: argparse.Namespace) -> int:
    """Writes the charts as files."""
    from lmdiag.report.charts.output import write_figures
    from lmdiag.report.html import charts
    from lmdiag.report.multiverse import multiverse_plots
    from lmdiag.results import load_run
    from lmdiag.results.multiverse import Multiverse
    from lmdiag.text import visible

    kind = args.format or "svg"
    if not args.figures or kind not in _FIGURES:
        raise BadInput(
            "figures need a directory and one of the formats svg, pdf, png: give --figures DIR "
            "--format svg"
        )
    if _is_multiverse(args.runs):
        plots = multiverse_plots(Multiverse.read(args.runs[0]))
    else:
        plots = charts([load_run(path, args.data) for path in args.runs])
    paths = write_figures(plots, args.figures, kind, args.width)
    print(f"Saved {len(paths)} figures in {visible(str(args.figures))}")
    return 0


def _tables(args: argparse.Namespace) -> str:
    """The tables as text. They need no data set; the top words of chosen items do."""
    from lmdiag.report.formats import render_tables
    from lmdiag.report.labels import training_order
    from lmdiag.report.listing import choose
    from lmdiag.results import load_run, read_results
    from lmdiag.results.joining import joined_results, joined_runs

    results = joined_results([read_results(path) for path in args.runs])
    order = training_order(results)
    chosen = []
    if args.items:
        runs = joined_runs([load_run(path, args.data) for path in args.runs])
        chosen = choose([runs[i] for i in order], args.items)
    return render_tables(args.format, [results[i] for i in order], chosen)
