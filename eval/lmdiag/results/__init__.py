"""What is saved of a run: figures, predictions, and the directory of both.

- `results`: `Figure`, a value with its interval; `FigureKey`, its address; `Results`, all of a run.
- `figures`: all figures of runs as one table.
- `predictions`: `predictions.parquet`, and predictions of other programs.
- `scores`: `scores.parquet`, the value of every item in every measure.
- `models`: what models are called.
- `run`: the directory of a run; a finished run, read back.
- `signatures`: what makes two runs comparable, and the names of directories.
- `published`: figures of the papers.
"""

from __future__ import annotations

from lmdiag.results.results import (
    CHANCE_LEGEND,
    CHANCE_SIGNS,
    PREDICTIONS,
    REPORT,
    RESULTS,
    SCORES,
    DataInfo,
    Device,
    Figure,
    FigureKey,
    Results,
    SettingResults,
    TaskData,
    UnscoredWord,
    of_setting,
)
from lmdiag.results.run import Run, RunDirectory, digests, load_run, read_results, run_folders
from lmdiag.results.signatures import (
    cited_signature,
    combine,
    identity,
    model_slug,
    protocol_slug,
    run_folder,
    signature,
)

__all__ = [
    "CHANCE_LEGEND", "CHANCE_SIGNS", "PREDICTIONS", "REPORT", "RESULTS", "SCORES", "DataInfo",
    "Device", "Figure", "FigureKey", "Results", "Run", "RunDirectory", "SettingResults",
    "TaskData", "UnscoredWord", "cited_signature", "combine", "digests", "identity", "load_run",
    "model_slug", "of_setting", "protocol_slug", "read_results", "run_folder", "run_folders",
    "signature",
]  # fmt: skip
