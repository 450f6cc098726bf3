"""Runs of one model at several steps of its training, which a report shows as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.training_steps import trained_model

Results = Mapping[str, Any]
"""A `results.json`."""


def trained(results: Results) -> str:
    """Returns the id of the model that a run's checkpoint belongs to."""
    model = results["model"]
    return trained_model(model["id"], model.get("revision"))


def are_checkpoints(runs: Sequence[Results]) -> bool:
    """Returns whether the runs are several training steps of one model."""
    steps = {run["model"].get("training_step") for run in runs} - {None}
    return len(runs) > 1 and len(steps) == len(runs) and len(set(map(trained, runs))) == 1


def training_order(runs: Sequence[Results]) -> list[int]:
    """Returns the places of checkpoints in the order of training; of other runs, as they are."""
    places = list(range(len(runs)))
    if are_checkpoints(runs):
        places.sort(key=lambda i: int(runs[i]["model"]["training_step"]))
    return places
