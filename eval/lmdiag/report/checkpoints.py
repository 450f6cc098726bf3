"""Runs of one model at several steps of its training, which a report shows as curves."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.results import Results
from lmdiag.training_steps import trained_model


def are_checkpoints(runs: Sequence[Results]) -> bool:
    """Returns whether the runs are several training steps of one model."""
    steps = {run.model.training_step for run in runs} - {None}
    models = {trained_model(run.model.id, run.model.revision) for run in runs}
    return len(runs) > 1 and len(steps) == len(runs) and len(models) == 1


def training_order(runs: Sequence[Results]) -> list[int]:
    """Returns the positions of checkpoints in the order of training; of other runs, as given."""
    positions = list(range(len(runs)))
    if are_checkpoints(runs):
        positions.sort(key=lambda i: runs[i].model.training_step or 0)
    return positions
