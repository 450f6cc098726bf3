"""`lmdiag fit`: how well surprisals predict human measures."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from lmdiag.analysis.procedures import Procedure
from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Json, Overwrite, TextOptions, check_new_file, section


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Human measures, and surprisals of models that predict them."""

    human: str
    """table with a row per word, or per word and reader (csv, tab-separated without quotes, or
    Parquet); or a run directory, whose items are the rows"""
    surprisal: tuple[str, ...] = ()
    """columns of the table, or files, with surprisals that were made elsewhere: a table with a
    column surprisal and columns of the human table that tell its rows, or JSON, text -> sentences
    -> numbers (default: the column surprisal, if no model is asked)"""
    model: tuple[str, ...] = ()
    """models that are asked: Hub ids, local folders, demo:masked or demo:causal"""
    profile: Literal["wilcox2023", "kuribayashi2024", "michaelov2024"] | None = None
    """published procedure; options below change it"""
    format: Literal["table", "csv", "latex", "markdown"] = "table"
    """what is printed"""
    json: Json = False
    report: Path | None = None
    """write a page with charts, e.g. fit.html"""
    figures: Path | None = None
    """write every chart as an SVG file into this directory"""
    residuals: Path | None = None
    """write a csv file with a row per model and word: surprisal, response, residual, delta"""
    output: Path = Path("results")
    """directory that keeps the models' answers: what was interrupted resumes"""
    overwrite: Overwrite = False
    procedure: Annotated[Procedure, section("Procedure")] = Procedure()
    reading: Annotated[TextOptions, RECORD] = TextOptions()


def main(options: Options) -> int:
    """Fits, prints and writes."""
    for file, suffix in ((options.report, ".html"), (options.residuals, ".csv")):
        if file:
            check_new_file(file, (suffix,), overwrite=options.overwrite)
    from lmdiag.api import fit, load_model
    from lmdiag.files import write_atomically
    from lmdiag.report import human
    from lmdiag.report.charts.output import write_figures
    from lmdiag.report.formats.terminal import output_console, print_fit

    result = fit(
        options.human,
        surprisal=options.surprisal,
        # each is loaded when its turn comes
        models=(load_model(name, **options.reading.keywords()) for name in options.model),
        profile=options.profile,
        output=options.output,
        **vars(options.reading.batching),
        **vars(options.procedure),
    )
    if options.json:
        print(json.dumps(result.to_json(), ensure_ascii=False))
    elif options.format == "table":
        print_fit(result, output_console())
    else:
        sys.stdout.write(human.as_text(result, options.format))
    if options.report:
        write_atomically(options.report, human.human_page(result).encode())
        say(f"Saved in {options.report}")
    if options.residuals:
        write_atomically(options.residuals, human.words_as_csv(result).encode())
        say(f"Saved in {options.residuals}")
    if options.figures:
        paths = write_figures(human.human_plots(result), options.figures, "svg", 8.0)
        say(f"Saved {len(paths)} figures in {options.figures}")
    return 0
