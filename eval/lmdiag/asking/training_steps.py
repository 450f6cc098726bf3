"""Reads training steps from the names of checkpoints: Hub revisions and folders.

A run records the step of its model (`ModelInfo.training_step`); runs of several steps of one model
are shown as curves.
"""

from __future__ import annotations

import re
from pathlib import PurePath

_STEPS = (
    re.compile(
        r"(?<![a-z])(?:global_?)?(?:steps?|checkpoint|ckpt|iter|iteration)[-_ ]?(\d+)([km]?)"
        r"(?![a-z\d])",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![a-z\d])(\d+)([km]?)[-_ ]?steps?(?![a-z\d])", re.IGNORECASE),
)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def training_step(name: str) -> int | None:
    """Returns the training step in the name of a revision or folder; None if it names none.

    >>> [training_step(n) for n in ("step1000", "checkpoint-500", "1000-steps", "step_20k", "main")]
    [1000, 500, 1000, 20000, None]
    """
    match = _find_step(name)
    if match is None:
        return None
    return int(match[1]) * _UNITS[match[2].lower()]


def trained_model(model_id: str, revision: str | None) -> str:
    """Returns the id of the model that a checkpoint belongs to: its own id without the step.

    The id stays as it is if it has no step, or if the revision names the step.

    >>> trained_model("runs/tiny/checkpoint-500", None)
    'runs/tiny'
    >>> trained_model("runs/tiny-step500", None)
    'runs/tiny'
    >>> trained_model("EleutherAI/pythia-70m", "step1000")
    'EleutherAI/pythia-70m'
    """
    path = PurePath(model_id)
    match = _find_step(path.name)
    if match is None or training_step(revision or "") is not None:
        return model_id
    name = path.name[: match.start()] + path.name[match.end() :]
    name = re.sub(r"[-_. ]{2,}", "-", name).strip("-_. ")  # signs on both sides of the step
    return str(path.with_name(name) if name else path.parent)


def _find_step(name: str) -> re.Match[str] | None:
    """Returns the match of a training step in a name: digits, then "k", "m" or ""; None without."""
    for pattern in _STEPS:
        match = pattern.search(name)
        if match:
            return match
    return None
