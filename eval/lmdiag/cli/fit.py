"""`lmdiag fit`: how well surprisals predict human measures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lmdiag.analysis.procedures import Procedure
from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Batching, check_new_file, section
from lmdiag.models.loading.options import Loading, LoadOptions, Serving
from lmdiag.protocol import Conventions

if TYPE_CHECKING:
    from lmdiag.analysis.fit import HumanFit
    from lmdiag.api import LanguageModel


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
    revision: str | None = None
    """branch, tag or commit of the models"""
    profile: Literal["wilcox2023", "kuribayashi2024", "michaelov2024"] | None = None
    """published procedure; options below change it"""
    format: Literal["table", "csv", "latex", "markdown"] = "table"
    """what is printed"""
    json: bool = False
    """print one JSON document, nothing else"""
    report: Path | None = None
    """write a page with charts, e.g. fit.html"""
    figures: Path | None = None
    """write every chart as an SVG file into this directory"""
    residuals: Path | None = None
    """write a csv file with a row per model and word: surprisal, response, residual, delta"""
    output: Path = Path("results")
    """directory that keeps the models' answers: what was interrupted resumes"""
    overwrite: bool = False
    """replace existing files"""
    procedure: Annotated[Procedure, section("Procedure")] = Procedure()
    conventions: Annotated[Conventions, section("Scoring")] = Conventions()
    loading: Annotated[Loading, section("Loading the model")] = Loading()
    serving: Annotated[Serving, section("A model behind a server")] = Serving()
    batching: Annotated[Batching, section("Running")] = Batching()


def main(options: Options) -> int:
    """Fits, prints and writes.

    Raises:
        BadInput: the table, the surprisals, the models or an output file cannot be used.
    """
    for file, suffix in ((options.report, ".html"), (options.residuals, ".csv")):
        if file:
            check_new_file(file, (suffix,), overwrite=options.overwrite)
    from lmdiag import api

    result = api.fit(
        options.human,
        surprisal=options.surprisal,
        models=_loaded(options),
        profile=options.profile,
        output=options.output,
        batch_size=options.batching.batch_size,
        quiet=options.batching.quiet,
        **vars(options.procedure),
    )
    if options.json:
        print(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        _print(result, options.format)
    _write(result, options)
    return 0


def stopped(options: Options) -> str:
    """Says what is left of an interrupted fit."""
    return f"answers of models are kept in {options.output}; the same command continues"


def _loaded(options: Options) -> Iterator[LanguageModel]:
    """Loads the models, each when its turn comes."""
    from lmdiag.api import load_model

    records = options.conventions, options.loading, options.serving
    chosen: dict[str, Any] = {name: value for part in records for name, value in vars(part).items()}
    for name in options.model:
        yield load_model(name, **vars(LoadOptions(revision=options.revision, **chosen)))


def _print(result: HumanFit, form: str) -> None:
    from lmdiag.report.formats.terminal import output_console, print_fit
    from lmdiag.report.human import as_text

    if form == "table":
        print_fit(result, output_console())
    else:
        sys.stdout.write(as_text(result, form))


def _write(result: HumanFit, options: Options) -> None:
    """Writes the files that were asked for."""
    from lmdiag.files import write_atomically
    from lmdiag.report.charts.output import write_figures
    from lmdiag.report.human import human_page, human_plots, words_as_csv

    if options.report:
        write_atomically(options.report, human_page(result).encode())
        say(f"Saved in {options.report}")
    if options.residuals:
        write_atomically(options.residuals, words_as_csv(result).encode())
        say(f"Saved in {options.residuals}")
    if options.figures:
        paths = write_figures(human_plots(result), options.figures, "svg", 8.0)
        say(f"Saved {len(paths)} figures in {options.figures}")
