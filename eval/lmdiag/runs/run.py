"""One run: a model is asked all questions, and the answers become the files of a run directory."""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import evaluation, results
from lmdiag.controls import control_warning
from lmdiag.protocol import Asking, Predictions, without_effect
from lmdiag.results import (
    DataInfo,
    Device,
    Results,
    Run,
    RunDirectory,
    SettingResults,
    TaskData,
)
from lmdiag.results.predictions import read_run, write_run
from lmdiag.runs.asking import predict
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes
from lmdiag.types import ModelInfo

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.runs.inputs import Inputs

_PACKAGES = ("lmdiag", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


@dataclass(frozen=True)
class RunOptions:
    """How a run is made: nothing here changes its numbers, but for the batches their last bits.

    Attributes:
        output: folder of all runs.
        name: what to call the model in its folder and in tables; None for its id.
        batch_size: contexts or sentences in a batch; None for what suits the device.
        overwrite: discard an earlier run of the same model and protocol.
        quiet: no progress bar.
    """

    output: Path
    name: str | None = None
    batch_size: int | None = None
    overwrite: bool = False
    quiet: bool = False


def run_model(
    model_id: str,
    options: LoadOptions,
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes | None = None,
) -> Run | None:
    """Runs one model; a finished run is read back, an interrupted one resumed.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: how the model is loaded.
        inputs: what is asked.
        run_options: how the run is made.
        processes: the processes that share the run; None for this one alone.

    Returns:
        the finished run; None on all processes but the first.

    Raises:
        BadInput: see `models.load`, `RunDirectory.open` and `ask`.
    """
    from lmdiag import models

    processes = processes or Processes(alone=True)
    started = time.monotonic()
    model = load_everywhere(partial(models.load, model_id, options), processes)
    seconds = time.monotonic() - started
    return run_loaded(model, inputs, run_options, processes, seconds=seconds)


def load_everywhere(load: Callable[[], Model], processes: Processes) -> Model:
    """Loads a model on every process.

    Args:
        load: gives the model.
        processes: on which it is called.

    Raises:
        BadInput: see `models.load`; on every process.
    """
    gc.collect()  # frees the model before, if there was one
    with processes.shared_errors():
        return load()


def run_loaded(
    model: Model,
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes,
    *,
    journal: Journal | None = None,
    warns: bool = True,
    seconds: float = 0.0,
) -> Run | None:
    """Runs a model that is loaded; see `run_model`.

    Args:
        model: on every process; its options are those of the protocol.
        inputs, run_options, processes: see `run_model`.
        journal: that the run shares with others; None for one in its directory.
        warns: print a warning of contexts with control tokens.
        seconds: that loading took.
    """
    started = time.monotonic()
    name = run_options.name
    model.info = replace(model.info, name=name)
    # only the model knows what its chat template puts around a context
    protocol = replace(inputs.protocol, prompt=model.prompt)
    idle = without_effect(protocol, model.info, inputs.asks)
    defaults = {name: getattr(Asking(), name) for name in idle}
    inputs = replace(inputs, protocol=replace(protocol, **defaults))
    if processes.first:
        for line in idle.values():
            print(f"lmdiag: {line}", file=sys.stderr)
    model_folder = results.model_slug(model.info.id, model.info.revision, name)
    directory = RunDirectory(
        run_options.output / model_folder / results.protocol_slug(inputs.protocol)
    )
    identity = results.identity(
        model.info, inputs.protocol, inputs.fingerprint, asks_words=inputs.asks_words
    )
    facts: Results | None = None
    try:
        with processes.shared_errors():
            if processes.first and directory.open(identity, overwrite=run_options.overwrite):
                facts = results.read_results(directory.path)
        if not processes.share(facts is not None):
            journal = journal or Journal(directory.journal, processes.rank, json.dumps(identity))
            answers = _ask(model, inputs, journal, processes, run_options, warns=warns)
            took = {"load": seconds, "ask": time.monotonic() - started}
            if processes.first:
                (directory.path / results.REPORT).unlink(missing_ok=True)
                facts = save(directory.path, model, inputs, *answers, processes.count, took)
                directory.finish(facts)
        return Run(directory.path, facts, dict(inputs.stimuli)) if facts else None
    finally:
        directory.close()


def _ask(
    model: Model,
    inputs: Inputs,
    journal: Journal,
    processes: Processes,
    run_options: RunOptions,
    *,
    warns: bool,
) -> tuple[list[Predictions], int]:
    if inputs.verbs:
        model.set_verbs(inputs.verbs)
    if processes.first and warns and (line := control_warning(model, inputs.settings)):
        print(f"lmdiag: warning: {line}", file=sys.stderr)
    is_shown = processes.first and not run_options.quiet
    with journal:
        return predict(
            model,
            inputs.settings,
            top=inputs.protocol.top,
            batch_size=run_options.batch_size,
            journal=journal if processes.first or not processes.together else None,
            processes=processes,
            label=(model.info.name or model.info.id) if is_shown else None,
        )


def save(
    path: Path,
    model: Model,
    inputs: Inputs,
    predictions: Sequence[Predictions],
    n_contexts: int,
    n_processes: int,
    seconds: Mapping[str, float],
) -> Results:
    """Writes the predictions of a run and returns its results, computed from them as read back.

    Args:
        path: the run directory.
        model, inputs: what was asked.
        predictions: of each setting of the inputs.
        n_contexts, n_processes: numbers of distinct contexts and of processes.
        seconds: step -> duration.
    """
    info, protocol, fingerprint = model.info, inputs.protocol, inputs.fingerprint
    write_run(path, predictions, inputs.settings, kind=info.kind)
    read_back = read_run(path, inputs.stimuli, info.kind)
    first = next(iter(inputs.stimuli.values()))
    data = {
        task: TaskData(rows.fingerprint, len(rows), rows.form)
        for task, rows in inputs.stimuli.items()
    }
    versions = {name: version(name) for name in _PACKAGES}
    return Results(
        signature=results.signature(protocol, fingerprint, asks_words=inputs.asks_words),
        identity=results.identity(info, protocol, fingerprint, asks_words=inputs.asks_words),
        model=info,
        data=DataInfo(first.source, first.revision, fingerprint, data),
        protocol=protocol,
        versions=versions | {"python": platform.python_version()},
        device=Device(model.device, n_processes),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        n_contexts=n_contexts,
        tasks=_figures(read_back, inputs, info),
        files=results.digests(path),
    ).redacted()


def _figures(
    predictions: Mapping[str, Mapping[tuple[str, int], Predictions]],
    inputs: Inputs,
    info: ModelInfo,
) -> dict[str, dict[str, SettingResults]]:
    """Returns task -> setting -> its figures; in a shuffled setting they are over its runs."""
    tasks: dict[str, dict[str, SettingResults]] = {}
    for task, rows in inputs.stimuli.items():
        runs = sorted(predictions[task].items(), key=lambda item: item[0][1])
        signature = results.signature(inputs.protocol, rows.fingerprint, asks_words=rows.asks_words)
        tasks[task] = {}
        for setting in dict.fromkeys(name for (name, _), _ in runs):
            parts = [part for (name, _), part in runs if name == setting]
            figures = evaluation.evaluate(rows, parts, inputs.protocol, info.cased, info.kind)
            tasks[task][setting] = replace(figures, signature=signature)
    return tasks
