"""What is saved of a run: figures, predictions, and the directory of both.

- `figure`: `Figure`, a value with its interval; `Place`, its address.
- `results`: `Results`, the content of `results.json`.
- `predictions`: `predictions.parquet`; `external`: predictions of other programs.
- `folder`: the directory of a run; `run`: a finished run, read back.
- `signatures`: what makes two runs comparable, and the names of directories.
- `published`: figures of the papers.
"""

from __future__ import annotations

from lmdiag.results.figure import (
    CHANCE_LEGEND,
    CHANCE_SIGNS,
    Figure,
    Measure,
    Place,
    SettingResults,
    UnscoredWord,
)
from lmdiag.results.folder import (
    PREDICTIONS,
    REPORT,
    RESULTS,
    RunDirectory,
    check_files,
    digests,
    read_results,
    run_folders,
    saved_files,
)
from lmdiag.results.results import DataInfo, Device, Results, TaskData, of_setting
from lmdiag.results.run import Run, frame_of, load_run
from lmdiag.results.signatures import combine, identity, model_slug, protocol_slug, signature

__all__ = [
    "CHANCE_LEGEND", "CHANCE_SIGNS", "PREDICTIONS", "REPORT", "RESULTS",
    "DataInfo", "Device",
    "Figure", "Measure", "Place", "Results", "Run", "RunDirectory", "SettingResults", "TaskData",
    "UnscoredWord", "check_files", "combine", "digests", "frame_of", "identity", "load_run",
    "model_slug", "of_setting", "protocol_slug", "read_results", "run_folders", "saved_files",
    "signature",
]  # fmt: skip
