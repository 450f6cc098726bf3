"""Finished runs with perturbations, of models that never were, on the demo data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hub.runs import FILLERS, describe, invent, model_info

from lmdiag import evaluation, predictions, results, stimuli
from lmdiag.perturb import perturb, settings
from lmdiag.queries import Setting
from lmdiag.schema import DIAGNOSTICS, Predictions, Protocol

PROTOCOL = Protocol(perturb=("shuf", "trunc", "shuf_trunc", "obj", "sub", "both"), shuffles=3)
PLAIN = Protocol()
ONE_TASK = Protocol(tasks=("role88",))
ALL = Protocol(tasks=(*DIAGNOSTICS, "agreement"))


def write_run(
    folder: Path,
    data: Path,
    *,
    protocol: Protocol = PROTOCOL,
    skill: float = 2.0,
    seed: int = 0,
    unscorable: int = 0,
    fillers: Sequence[str] = FILLERS,
    **model: Any,
) -> Path:
    """Writes the run directory of a made-up model.

    Args:
        folder: where.
        data: of the data set.
        protocol: what was asked.
        skill, seed, fillers: see `hub.runs.invent`.
        unscorable: rows of each task, from the first on, that have no log-probability.
        model: facts on the model.
    """
    info = model_info(**model)
    rows = {task: stimuli.load(str(data), task) for task in protocol.tasks}
    asked, said = [], []
    for task in rows:
        for name, run in settings(task, protocol.perturb, protocol.shuffles):
            changed = rows[task] if name == "none" else perturb(rows[task], name, run, 0)
            part = replace(
                invent(changed, skill, seed, fillers=fillers), perturbation=name, run=run
            )
            asked.append(Setting(changed, name, run))
            said.append(without_scores(part, unscorable))
    folder.mkdir(parents=True)
    predictions.write_run(folder, said, asked, kind=info.kind)
    first = {part.stimuli.task: answer for part, answer in zip(asked, said, strict=True)}
    record = describe(info, protocol, rows, first)
    found = predictions.read_run(folder, rows, record)
    for task, runs in found.items():
        for name in dict.fromkeys(name for name, _ in runs):
            parts = [part for (there, _), part in sorted(runs.items()) if there == name]
            record["tasks"][task][name] = {
                "signature": results.signature(protocol, rows[task].fingerprint)
            } | evaluation.evaluate(rows[task], parts, protocol, info.cased, info.kind)
    (folder / results.RESULTS).write_text(json.dumps(record, allow_nan=False))
    return folder


def without_scores(part: Predictions, rows: int) -> Predictions:
    """The predictions with the first words unscorable."""
    kept = part.log_prob[rows:]
    return replace(part, log_prob=[*[None] * (len(part.log_prob) - len(kept)), *kept])
