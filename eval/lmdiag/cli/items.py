"""`lmdiag items`: the items of runs as one table for R, Excel or pandas."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmdiag.cli.options import RECORD, DataOfRuns, Overwrite, check_new_file


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Runs, and the file to write."""

    runs: tuple[Path, ...] = field(kw_only=False)
    """run directories; their items are in one table"""
    out: Path
    """file to write; its name must end in .csv, .tsv or .parquet"""
    per: Literal["row", "region", "word"] = "row"
    """a row per row of the data, or per region or word of its sentences"""
    task: str = ""
    """one of the tasks of the runs (default: all)"""
    data: DataOfRuns = None
    overwrite: Overwrite = False


def main(options: Options) -> int:
    """Writes the table."""
    from lmdiag.analysis.items import ITEM_SUFFIXES, items_of, write_items
    from lmdiag.results import load_run, run_folders
    from lmdiag.text import visible

    check_new_file(options.out, ITEM_SUFFIXES, overwrite=options.overwrite)
    runs = [load_run(path, options.data) for path in run_folders(options.runs)]
    table = items_of(runs, task=options.task, per=options.per)
    write_items(table, options.out)
    print(f"{len(table):,} rows and {len(table.columns)} columns in {visible(str(options.out))}")
    return 0
