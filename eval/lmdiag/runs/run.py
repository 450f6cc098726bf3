"""One run: a model is asked all questions, and the answers become the files of a run directory."""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import predictions as files
from lmdiag import results, summary
from lmdiag.collector import uncollected
from lmdiag.controls import control_warning
from lmdiag.redact import redacted
from lmdiag.results import Run, RunDirectory
from lmdiag.runs.asking import predict
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes
from lmdiag.schema import ModelInfo, Predictions

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.runs.inputs import Inputs

_PACKAGES = ("lmdiag", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def run_model(
    model_id: str,
    options: LoadOptions,
    inputs: Inputs,
    *,
    output: Path,
    processes: Processes | None = None,
    name: str | None = None,
    batch_size: int | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> Run | None:
    """Runs one model; a finished run is read back, an interrupted one resumed.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: how the model is loaded.
        inputs: what is asked.
        output: folder of all runs.
        processes: the processes that share the run; None for this one alone.
        name: what to call the model in its folder and in tables; None for its id.
        batch_size: contexts in a batch; None for what suits the device.
        overwrite: discard an earlier run of the same model and protocol.
        quiet: no progress bar.

    Returns:
        the finished run; None on all processes but the first.

    Raises:
        BadInput: see `models.load`, `RunDirectory.open` and `ask`.
    """
    processes = processes or Processes(alone=True)
    started = time.monotonic()
    model = _load(model_id, options, processes)
    model.info = replace(model.info, name=name)
    seconds = {"load": time.monotonic() - started}
    model_folder = results.model_slug(model_id, options.revision, name)
    directory = RunDirectory(output / model_folder / results.protocol_slug(inputs.protocol))
    identity = results.identity(model.info, inputs.protocol, inputs.fingerprint)
    try:
        finished = False
        with processes.shared_errors():
            if processes.first:
                finished = directory.open(identity, overwrite=overwrite)
        if not processes.share(finished):
            journal = Journal(directory.journal, processes.rank, json.dumps(identity))
            predictions, n_contexts = _ask(model, inputs, journal, processes, batch_size, quiet)
            seconds["ask"] = time.monotonic() - started - seconds["load"]
            if processes.first:
                (directory.path / results.REPORT).unlink(missing_ok=True)
                facts = save(
                    directory.path, model, inputs, predictions, n_contexts,
                    processes=processes.count, seconds=seconds,
                )  # fmt: skip
                directory.finish(facts)
        if not processes.first:
            return None
        return Run(directory.path, results.read_results(directory.path), dict(inputs.stimuli))
    finally:
        directory.close()
        gc.unfreeze()


def _load(model_id: str, options: LoadOptions, processes: Processes) -> Model:
    """Loads the model on every process, or on none: an error of one is an error of all."""
    from lmdiag import models

    gc.collect()  # frees the model before, if there was one
    with processes.shared_errors(), uncollected():
        model = models.load(model_id, options)
        gc.freeze()  # the collector need not look through what was loaded while the run lasts
    return model


def _ask(
    model: Model,
    inputs: Inputs,
    journal: Journal,
    processes: Processes,
    batch_size: int | None,
    quiet: bool,
) -> tuple[list[Predictions], int]:
    if inputs.verbs:
        model.set_verbs(inputs.verbs)
    if processes.first and (line := control_warning(model, inputs.settings)):
        print(f"lmdiag: warning: {line}", file=sys.stderr)
    with journal:
        return predict(
            model,
            inputs.settings,
            top=inputs.protocol.top,
            batch_size=batch_size,
            journal=journal if processes.first or not processes.together else None,
            processes=processes,
            label=None if quiet or not processes.first else model.info.name or model.info.id,
        )


def save(
    path: Path,
    model: Model,
    inputs: Inputs,
    predictions: Sequence[Predictions],
    n_contexts: int,
    *,
    processes: int = 1,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Writes the predictions of a run and computes its results from them, as read back.

    Args:
        path: the run directory.
        model: the model that was asked.
        inputs: what was asked.
        predictions: of each setting of the inputs.
        n_contexts: number of distinct contexts.
        processes: how many processes shared the run.
        seconds: to load the model and to ask.

    Returns:
        the content of `results.json`, which is not written.
    """
    files.write_run(path, predictions, inputs.settings, kind=model.info.kind)
    facts = _circumstances(model, inputs, n_contexts, processes, seconds)
    read_back = files.read_run(path, inputs.stimuli, facts)
    facts["tasks"] = {
        task: _measure(runs, task, inputs, model.info) for task, runs in read_back.items()
    }
    return facts | {"files": results.digests(path)}


def _measure(
    runs: Mapping[tuple[str, int], Predictions], task: str, inputs: Inputs, info: ModelInfo
) -> dict[str, Any]:
    """Returns setting -> signature, measures and unscorable words of one task."""
    rows, protocol = inputs.stimuli[task], inputs.protocol
    by_setting: dict[str, list[Predictions]] = {}
    for (name, _), part in sorted(runs.items(), key=lambda item: item[0][1]):
        by_setting.setdefault(name, []).append(part)
    signature = {"signature": results.signature(protocol, rows.fingerprint)}
    return {
        name: signature | summary.evaluate(rows, parts, protocol, info.cased, info.kind)
        for name, parts in by_setting.items()
    }


def _circumstances(
    model: Model, inputs: Inputs, n_contexts: int, processes: int, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Returns all of results.json but the measures."""
    first = next(iter(inputs.stimuli.values()))
    tasks = {
        task: {"fingerprint": rows.fingerprint, "n": len(rows)}
        for task, rows in inputs.stimuli.items()
    }
    facts = {
        "schema_version": results.SCHEMA_VERSION,
        "signature": results.signature(inputs.protocol, inputs.fingerprint),
        "identity": results.identity(model.info, inputs.protocol, inputs.fingerprint),
        "model": asdict(model.info),
        "data": {
            "source": first.source,
            "revision": first.revision,
            "fingerprint": inputs.fingerprint,
            "tasks": tasks,
        },
        "protocol": json.loads(json.dumps(inputs.protocol.to_json()))
        | {"match": "exact" if model.info.cased else "case-blind"},
        "versions": {name: version(name) for name in _PACKAGES}
        | {"python": platform.python_version()},
        "device": {"name": str(model.reader.model.device), "processes": processes},
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_contexts": n_contexts,
    }
    return {name: redacted(fact) for name, fact in facts.items()}
