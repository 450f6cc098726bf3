"""`lmdiag analyse`: effects of conditions over items, cell means, mixed models."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmdiag.cli.options import RECORD, DataOfRuns, Json, Overwrite, check_new_file


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """What is analysed, and how."""

    runs: tuple[Path, ...] = field(kw_only=False)
    """run directories, or tables with a row per item and condition (csv, tsv, Parquet) and a column
    item; several models are compared"""
    response: str = ""
    """surprisal, probability, log_odds, correct, or a column of numbers (default: the left side of
    the formula, else surprisal)"""
    conditions: tuple[str, ...] = ()
    """columns of the conditions (default: those with 2 to 6 levels that differ within items)"""
    formula: str = ""
    """mixed model in lme4's notation, e.g. "surprisal ~ a * b + (1 | item)" """
    coding: Literal["sum", "treatment"] = "sum"
    """of conditions in the formula: -0.5 and 0.5, or 0 and 1"""
    region: str = ""
    """number or name of the region whose surprisal is the response"""
    task: str = ""
    """one of the tasks of the runs"""
    data: DataOfRuns = None
    chart: Path | None = None
    """write the condition means as a figure into this file (.svg, .pdf or .png)"""
    overwrite: Overwrite = False
    json: Json = False


def main(options: Options) -> int:
    """Analyses and prints."""
    if options.chart:
        check_new_file(options.chart, (".svg", ".pdf", ".png"), overwrite=options.overwrite)
    from lmdiag.analysis.designs import analyse_table
    from lmdiag.analysis.items import ITEM_SUFFIXES, items_of
    from lmdiag.results import load_run, run_folders

    sources = [
        path if path.suffix in ITEM_SUFFIXES else load_run(path, options.data)
        for path in run_folders(options.runs)
    ]
    per: Literal["region", "row"] = "region" if options.region else "row"
    analysis = analyse_table(
        items_of(sources, task=options.task, per=per),
        response=options.response,
        conditions=options.conditions,
        formula=options.formula,
        region=options.region,
        coding=options.coding,
    )
    if options.chart:
        from lmdiag.files import write_atomically
        from lmdiag.report.charts.conditions import condition_plot
        from lmdiag.report.charts.output import figure_file

        plot = condition_plot("conditions", {options.region: analysis})
        write_atomically(options.chart, figure_file(plot.spec, options.chart.suffix[1:], 8.0))
    if options.json:
        print(json.dumps(analysis.to_json(), allow_nan=False))
        return 0

    from lmdiag.report.terminal import output_console, print_analysis

    print_analysis(analysis, output_console())
    return 0
