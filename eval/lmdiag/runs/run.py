"""One run: a model is asked all questions, and the answers become the files of a run directory."""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import __version__, evaluation, results
from lmdiag.files import without_secrets
from lmdiag.protocol import Predictions, QueryOptions, bos_remark, without_effect
from lmdiag.results import Results, Run
from lmdiag.results.predictions import SettingKey, read_run, write
from lmdiag.results.scores import MeasureScores, item_scores, write_scores
from lmdiag.runs.asking import control_warning, predict, row_texts, start_warning
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes
from lmdiag.text import as_parameters, change_texts
from lmdiag.types import FOUND_DESIGN

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.runs.inputs import Inputs

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")


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
    *,
    loaded: Model | None = None,
    journal: Journal | None = None,
    warns: bool = True,
) -> Run | None:
    """Runs one model; a finished run is read back, an interrupted one resumed.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: how the model is loaded.
        inputs: what is asked.
        run_options: how the run is made.
        processes: the processes that share the run; None for this one alone.
        loaded: the model with these options, on every process, if it is loaded.
        journal: that the run shares with others; None for one in its directory.
        warns: print warnings of contexts with control tokens, of `bos` and of the model.

    Returns:
        the finished run; None on all processes but the first.
    """
    processes = processes or Processes(alone=True)
    beginning = time.monotonic()
    model = loaded or load_everywhere(model_id, options, processes)
    loading = time.monotonic() - beginning
    model.info = replace(model.info, name=run_options.name)
    info = model.info
    inputs = _effective_inputs(inputs, model, warns=warns, prints=processes.first)
    folder = run_options.output / results.model_slug(info.id, info.revision, info.name)
    directory = results.RunDirectory(results.run_folder(folder, inputs.protocol))
    identity = inputs.identity(info)
    try:
        with processes.shared_errors():
            overwrite = run_options.overwrite
            is_finished = processes.first and directory.open(identity, overwrite=overwrite)
        if not processes.share(is_finished):
            started = time.monotonic()
            journal = journal or Journal(directory.journal, processes.rank, json.dumps(identity))
            n_verbs = model.set_verbs(inputs.verbs) if inputs.verbs else None
            answers = _ask(model, inputs, run_options, processes, journal, warns=warns)
            took = {"load": loading, "ask": time.monotonic() - started}
            if processes.first:
                (directory.path / results.REPORT).unlink(missing_ok=True)
                made = save(directory.path, model, inputs, *answers, processes.count, took)
                directory.finish(inputs.record(replace(made, n_verbs=n_verbs), model.warning))
        if not processes.first:
            return None
        finished = results.read_results(directory.path)
        if inputs.design not in (finished.design, FOUND_DESIGN):  # the report is written anew
            (directory.path / results.REPORT).unlink(missing_ok=True)
            finished = inputs.record(finished, model.warning)
            directory.finish(finished)
        return Run(directory.path, finished, dict(inputs.stimuli))
    finally:
        directory.close()


def _effective_inputs(inputs: Inputs, model: Model, *, warns: bool, prints: bool) -> Inputs:
    """The inputs for a model: its prompt, and no options without effect, which are printed."""
    # only the model knows what its chat template puts around a context
    protocol = replace(inputs.protocol, prompt=model.prompt)
    ineffective = without_effect(protocol, model.info, inputs.asks)
    protocol = replace(protocol, **{name: getattr(QueryOptions(), name) for name in ineffective})
    lines = [*ineffective.values()]
    if warns:
        remarks = (bos_remark(protocol, model.info, inputs.asks), model.warning)
        lines += [f"warning: {remark}" for remark in remarks if remark]
    for line in lines if prints else ():
        print(f"lmdiag: {as_parameters(line)}", file=sys.stderr)
    return replace(inputs, protocol=protocol)


def _ask(
    model: Model,
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes,
    journal: Journal,
    *,
    warns: bool,
) -> tuple[list[Predictions], int]:
    """Asks what the journal does not have; returns predictions and contexts, see `predict`."""
    label = None
    if processes.first:
        texts = row_texts(inputs.stimuli.values(), model.info.kind) if warns else {}
        for warning in filter(None, (control_warning(model, texts), start_warning(model, texts))):
            print(f"lmdiag: warning: {warning}", file=sys.stderr)
        label = None if run_options.quiet else model.info.name or model.info.id
    with journal:
        return predict(
            model, inputs.settings, top=inputs.protocol.top, batch_size=run_options.batch_size,
            journal=journal if processes.first or not processes.together else None,
            processes=processes, label=label,
        )  # fmt: skip


def load_everywhere(model_id: str, options: LoadOptions, processes: Processes) -> Model:
    """Loads a model on every process."""
    from lmdiag import models

    gc.collect()  # frees the model before, if there was one
    with processes.shared_errors():
        return models.load(model_id, options)


def save(
    path: Path,
    model: Model,
    inputs: Inputs,
    predictions: Sequence[Predictions],
    n_contexts: int,
    n_processes: int,
    seconds: Mapping[str, float],
) -> Results:
    """Writes predictions, one per setting, and their scores as they read back; returns results."""
    info = model.info
    fingerprint = inputs.fingerprint
    how = inputs.protocol, info.word_folds, info.kind
    write(path / results.PREDICTIONS, predictions)
    read_back = read_run(path / results.PREDICTIONS, inputs.stimuli)
    data = {}
    scores: dict[str, dict[SettingKey, MeasureScores]] = {}
    tasks: dict[str, dict[str, results.SettingResults]] = {}
    for task, rows in inputs.stimuli.items():
        data[task] = results.TaskData(rows.fingerprint, len(rows), rows.form)
        scores[task] = {key: item_scores(rows, part, *how) for key, part in read_back[task].items()}
        tasks[task] = {}
        for setting in dict.fromkeys(name for name, _ in read_back[task]):
            shuffles = [key for key in read_back[task] if key[0] == setting]
            of_shuffles = [read_back[task][key] for key in shuffles]
            shuffle_scores = [scores[task][key] for key in shuffles]
            tasks[task][setting] = evaluation.evaluate(rows, of_shuffles, *how, shuffle_scores)
    write_scores(path / results.SCORES, scores)
    stimuli = next(iter(inputs.stimuli.values()))
    return Results(
        signature=results.signature(inputs.protocol, fingerprint, asks_words=inputs.asks == "word"),
        identity=inputs.identity(info),
        model=replace(info, **change_texts(asdict(info), without_secrets)),
        data=results.DataInfo(without_secrets(stimuli.source), stimuli.revision, fingerprint, data),
        protocol=inputs.protocol,
        versions={"lmdiag": __version__, "python": platform.python_version()}
        | {name: version(name) for name in _PACKAGES},
        device=results.Device(model.device, n_processes),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        n_contexts=n_contexts,
        tasks=tasks,
        files=results.digests(path),
    )
