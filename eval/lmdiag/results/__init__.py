"""What is saved of a run: predictions, the figures that follow from them, and their directory."""

from __future__ import annotations

from lmdiag.results.results import (
    CHANCE_LEGEND,
    CHANCE_SIGNS,
    PREDICTIONS,
    REPORT,
    RESULTS,
    DataInfo,
    Device,
    Figure,
    FigureKey,
    Results,
    SettingResults,
    TaskData,
    UnscoredWord,
    results_of_setting,
)
from lmdiag.results.run import (
    HOW_TO_CONTINUE,
    Run,
    RunDirectory,
    Runs,
    changed_data_message,
    digest_of_predictions,
    failures,
    load_run,
    load_runs,
    open_run,
    read_results,
    record_failure,
    run_folders,
    unfinished_runs,
)
from lmdiag.results.signatures import (
    cited_signature,
    cited_signatures,
    combined_fingerprint,
    comparable_part,
    identity,
    model_slug,
    protocol_slug,
    run_folder,
    signature,
)

__all__ = [
    "CHANCE_LEGEND", "CHANCE_SIGNS", "HOW_TO_CONTINUE", "PREDICTIONS", "REPORT", "RESULTS",
    "DataInfo", "Device", "Figure", "FigureKey", "Results", "Run", "RunDirectory", "Runs",
    "SettingResults", "TaskData", "UnscoredWord", "changed_data_message", "cited_signature",
    "cited_signatures", "combined_fingerprint", "comparable_part", "digest_of_predictions",
    "failures", "identity", "load_run", "load_runs", "model_slug", "open_run", "protocol_slug",
    "read_results", "record_failure", "results_of_setting", "run_folder", "run_folders",
    "signature", "unfinished_runs",
]  # fmt: skip
