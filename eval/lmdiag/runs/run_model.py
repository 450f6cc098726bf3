"""One run: a model is asked all questions, and the answers become the files of a run directory."""

from __future__ import annotations

import gc
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import __version__, results
from lmdiag.asking.protocol import Predictions, bos_remark, text_digest
from lmdiag.asking.rules import Case, refusal, reset_ineffective
from lmdiag.files.reading import exists, real_path, user_path
from lmdiag.files.secrets import without_secrets
from lmdiag.options import Running
from lmdiag.results import Results, Run, evaluation
from lmdiag.results.predictions import read_run, write
from lmdiag.runs.answers_of_run import answers_of_run, refuse_other_rows
from lmdiag.runs.asking import (
    control_warning,
    predict,
    predict_layers,
    row_texts,
    start_warning,
)
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes
from lmdiag.text import change_texts
from lmdiag.types import FOUND_DESIGN, BadInput, OnProgress, as_parameters

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.runs.inputs import Inputs

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")


@dataclass(frozen=True, kw_only=True)
class RunOptions(Running):
    """How the run of a model is made. Nothing here changes more than the last bits of its numbers.

    Attributes:
        name: what to call the model in its folder and in tables; None for its id
        on_progress: see `lmdiag.types.OnProgress`
    """

    name: str | None = None
    on_progress: OnProgress | None = None


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
    """Runs one model and returns the run.

    If the directory has the finished run already, it is read; if it has an interrupted one, the run
    goes on where it was.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: how the model is loaded.
        inputs: what is asked.
        run_options: how the run is made.
        processes: the processes that share the run; None for this one alone.
        loaded: the model with these options, on every process; None to load it.
        journal: a journal that the run shares with other runs, as in a multiverse; None for a
            journal in its own directory.
        warns: print warnings of contexts with control tokens, of `bos` and of the model.

    Returns:
        the finished run; None on all processes but the first.
    """
    processes = processes or Processes(alone=True)
    if loaded is None:  # what can be refused before the model is loaded
        with processes.shared_errors():
            _refuse_options_of_blanks(inputs)
            if processes.is_first and not run_options.overwrite:
                slug = results.model_slug(model_id, options.revision, run_options.name)
                refuse_other_rows(run_options.output / slug, inputs)
    started = time.monotonic()
    model = loaded or load_everywhere(model_id, options, processes)
    load_seconds = time.monotonic() - started
    model.info = replace(model.info, name=run_options.name)
    inputs = _effective_inputs(inputs, model, warns=warns, prints=processes.is_first)

    def ask(directory: results.RunDirectory) -> tuple[list[list[Predictions]], int]:
        """Returns the predictions of each setting, as those of one run; see `_make_runs`."""
        owner = json.dumps(inputs.identity(model.info))
        own_journal = journal or Journal(directory.journal, processes.rank, owner)
        predictions, n_contexts = _ask(
            predict, model, inputs, run_options, processes, own_journal, warns=warns
        )
        return [predictions], n_contexts

    runs = _make_runs(model, [inputs], run_options, processes, ask, load_seconds)
    return runs[0] if runs else None


def _refuse_options_of_blanks(inputs: Inputs) -> None:
    """Raises `BadInput` for an option that does not apply to whole sentences, as --prompt.

    All options apply to rows with a blank.
    """
    if inputs.protocol.elicitation == "probability":  # a choice is asked in words
        problem = refusal(Case(given=inputs.protocol.stored(), asks=inputs.asks))
        if problem:
            raise BadInput(problem)


def run_layers(
    model_id: str,
    options: LoadOptions,
    layers: Sequence[str | int],
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes | None = None,
    *,
    loaded: Model | None = None,
) -> list[Run]:
    """Runs one model after each of some layers, in one pass over the questions.

    The directories of the runs are in the folder of the model. The run of the last layer is the
    same as the run without layers. Finished runs are read, and interrupted ones resumed.

    Args:
        layers: numbers, or "all".
        model_id, options, inputs, run_options, processes, loaded: see `run_model`.

    Returns:
        the finished runs by layer; [] on all processes but the first.
    """
    processes = processes or Processes(alone=True)
    if loaded is None:
        with processes.shared_errors():
            _refuse_options_of_blanks(inputs)
    started = time.monotonic()
    model = loaded or load_everywhere(model_id, options, processes)
    load_seconds = time.monotonic() - started
    model.info = replace(model.info, name=run_options.name)
    info = model.info
    with processes.shared_errors():
        layers_model = model.at_layers(layers)
    inputs = _effective_inputs(inputs, layers_model, warns=True, prints=processes.is_first)
    inputs_of_layers = [inputs.at_layer(layer) for layer in layers_model.layers]
    owner = json.dumps([inputs.identity(info), layers_model.layer_numbers])
    folder = run_options.output / results.model_slug(info.id, info.revision, info.name)
    shared_journal = Journal(folder / f"layers-{text_digest(owner)}", processes.rank, owner)
    if run_options.overwrite and processes.is_first:
        shutil.rmtree(shared_journal.folder, ignore_errors=True)

    def ask(_: results.RunDirectory) -> tuple[list[list[Predictions]], int]:
        """Returns the predictions of each layer and setting; see `_make_runs`.

        The directory of the first run is not needed: the runs of all layers share a journal, which
        is in the folder of the model.
        """
        return _ask(
            predict_layers, layers_model, inputs, run_options, processes, shared_journal, warns=True
        )

    runs = _make_runs(layers_model, inputs_of_layers, run_options, processes, ask, load_seconds)
    if processes.is_first:
        shutil.rmtree(shared_journal.folder, ignore_errors=True)
    return runs


def _make_runs(
    model: Model,
    inputs_of_runs: Sequence[Inputs],
    run_options: RunOptions,
    processes: Processes,
    ask: Callable[[results.RunDirectory], tuple[list[list[Predictions]], int]],
    load_seconds: float,
) -> list[Run]:
    """Returns the finished runs of a model on inputs that differ in knobs alone.

    Args:
        model: the model that is asked.
        inputs_of_runs: the inputs of each run.
        run_options, processes: see `run_model`.
        ask: gets the directory of the first run, and returns two values: for each run a list with
            the predictions of each setting, and the number of contexts.
        load_seconds: how long the model took to load.

    Returns:
        the runs; [] on all processes but the first.
    """
    info = model.info
    folder = run_options.output / results.model_slug(info.id, info.revision, info.name)
    paths = [results.run_folder(folder, inputs.protocol) for inputs in inputs_of_runs]
    directories = [results.RunDirectory(path) for path in paths]
    with ExitStack() as opened:
        finished = []
        for directory, inputs in zip(directories, inputs_of_runs, strict=True):
            opened.callback(directory.close)
            with processes.shared_errors():
                is_finished = processes.is_first and _open_directory(
                    directory, model, inputs, overwrite=run_options.overwrite
                )
            finished.append(is_finished)
        finished = processes.share(finished)  # only the first process has opened the directories
        if not all(finished):
            started = time.monotonic()
            verbs = inputs_of_runs[0].verbs  # the same for all, as the rows are
            n_verbs = model.set_verbs(verbs) if verbs else None
            predictions, n_contexts = ask(directories[0])
            if not processes.is_first:  # only the first one has predictions
                return []
            seconds = {"load": load_seconds, "ask": time.monotonic() - started}
            all_runs = zip(directories, inputs_of_runs, predictions, finished, strict=True)
            for directory, inputs, predictions_of_run, is_finished in all_runs:
                if is_finished:  # its files stay as they are
                    continue
                # the page of an earlier run does not show these results
                (directory.path / results.REPORT).unlink(missing_ok=True)
                saved = save(
                    directory.path, model, inputs, predictions_of_run, n_contexts,
                    processes.count, seconds,
                )  # fmt: skip
                directory.finish(inputs.record(replace(saved, n_verbs=n_verbs), model.warning))
        if not processes.is_first:
            return []
        pairs = zip(directories, inputs_of_runs, strict=True)
        return [_read_back(directory, inputs, model.warning) for directory, inputs in pairs]


def _open_directory(
    directory: results.RunDirectory, model: Model, inputs: Inputs, *, overwrite: bool
) -> bool:
    """Takes the directory of a run; returns whether it has the finished run.

    The directory may have a run that asked the same questions, although its rows were read in
    another way, for example with another critical word. The results of the new run are then
    computed from the answers of that run. `BadInput` if a server has another model now.
    """
    earlier_run = None
    if not overwrite:
        earlier_run = answers_of_run(directory.path, inputs, model.info)
    if earlier_run is not None:  # `open` would refuse its directory, as that of other data
        directory.take()
    elif not directory.open(inputs.identity(model.info), overwrite=overwrite):
        return False  # the directory is empty, or has a run that was interrupted
    if model.check_key:  # of a model behind a server
        if earlier_run is not None:
            earlier_results = earlier_run.results
        else:
            earlier_results = results.read_results(directory.path)
        check_log_probs = earlier_results.model.check_log_probs
        if check_log_probs is not None:  # None in files of earlier versions
            model.refuse_other_model(check_log_probs)
    if earlier_run is not None:
        _finish_with_kept_answers(directory, model, inputs, earlier_run.results)
    return True


def _finish_with_kept_answers(
    directory: results.RunDirectory, model: Model, inputs: Inputs, earlier: Results
) -> None:
    """Writes the results of a run whose questions an earlier run in the directory answered.

    The rows of the two runs are read in different ways, for example with another critical word, but
    the questions are the same. The file of predictions stays, and the results are replaced at once:
    if the process is killed, the directory has either the earlier run or the new one.

    Args:
        directory: of both runs.
        model: the loaded model.
        inputs: what the new run asks.
        earlier: results of the earlier run.
    """
    path = directory.path
    print(
        f"lmdiag: {path} has the answers to the same questions: figures are computed from them",
        file=sys.stderr,
    )
    n_processes = earlier.device.processes
    computed = results_of(path, model, inputs, earlier.n_contexts, n_processes, earlier.seconds)
    computed = replace(computed, n_verbs=earlier.n_verbs)
    warning = earlier.model_warnings[0] if earlier.model_warnings else None
    (path / results.REPORT).unlink(missing_ok=True)
    directory.finish(inputs.record(computed, warning))


def _read_back(directory: results.RunDirectory, inputs: Inputs, warning: str | None) -> Run:
    """Returns a finished run from its directory.

    The user may give another design this time, which changes no answer: the results then get this
    design, and the page is removed, so that it is written again.

    Args:
        directory: of the run.
        inputs: what the user asks now.
        warning: of the model; None if it has none.
    """
    finished = results.read_results(directory.path)
    if inputs.design not in (finished.design, FOUND_DESIGN):
        (directory.path / results.REPORT).unlink(missing_ok=True)
        if not warning and finished.model_warnings:
            # a model that answered nothing in this process has no warning yet
            warning = finished.model_warnings[0]
        finished = inputs.record(finished, warning)
        directory.finish(finished)
    return results.open_run(directory.path, finished, inputs.stimuli)


def _effective_inputs(inputs: Inputs, model: Model, *, warns: bool, prints: bool) -> Inputs:
    """Returns the inputs with the protocol by which this model is really asked.

    The protocol gets the prompt of the model, and options that have no effect on the model get
    their default. For each of these options a line is printed on standard error.

    Args:
        inputs: what the user asks.
        model: the loaded model.
        warns: whether to print also what looks wrong with the beginning-of-sequence token, and the
            warning of the model.
        prints: whether this process prints lines at all, as only the first one does.
    """
    # only the model knows what its chat template puts around a context
    protocol = replace(inputs.protocol, prompt=model.prompt)
    protocol, lines = reset_ineffective(protocol, model.info, inputs.asks)
    if warns:
        remarks = (bos_remark(protocol, model.info, inputs.asks), model.warning)
        lines += [f"warning: {remark}" for remark in remarks if remark]
    if prints:
        for line in lines:
            # the lines name options as a command has them, and in Python parameters are meant
            print(f"lmdiag: {as_parameters(line)}", file=sys.stderr)
    return replace(inputs, protocol=protocol)


def _ask(
    predict: Callable[..., tuple[Any, int]],
    model: Model,
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes,
    journal: Journal,
    *,
    warns: bool,
) -> tuple[Any, int]:
    """Returns the predictions of a model and the number of contexts.

    Only questions whose answers the journal does not have are asked, with a progress bar.

    Args:
        predict: the function `predict` or `predict_layers`, whose values are returned.
        model, inputs, run_options, processes: see `run_model`.
        journal: has the answers of an interrupted run, and gets the new ones.
        warns: whether to print warnings of texts with control tokens and of empty texts.
    """
    label = None
    if processes.is_first:
        if warns:
            text_of_row = row_texts(inputs.stimuli.values(), model.info.kind)
            warnings = (control_warning(model, text_of_row), start_warning(model, text_of_row))
            for warning in warnings:
                if warning:
                    print(f"lmdiag: warning: {warning}", file=sys.stderr)
        if not run_options.quiet:
            label = model.info.name or model.info.id
    # Processes may ask each batch together, each with a part of the model (--tp). All of them then
    # have the same answers, and the first one saves them.
    saves = processes.is_first or not processes.together
    with journal:
        return predict(
            model, inputs.settings, top=inputs.top, batch_size=run_options.batch_size,
            journal=journal if saves else None,
            processes=processes, label=label, on_progress=run_options.on_progress,
        )  # fmt: skip


def load_everywhere(model_id: str, options: LoadOptions, processes: Processes) -> Model:
    """Returns a model that is loaded on every process.

    If a process cannot load the model, its `BadInput` is raised on all processes.
    """
    from lmdiag import models

    if "torch" in sys.modules:
        gc.collect()  # frees the memory of a model that was loaded before and is not used any more
    with processes.shared_errors():
        return models.load(model_id, options)


def _path_of_data(source: str, directory: Path) -> str:
    """Returns the path of a data set from a run directory; "" if the data set is not on the disk.

    For example "../../../items.csv". It finds the data again if both are moved together.

    Args:
        source: what the user named: a file, a folder, or a data set on the Hub.
        directory: the run directory.
    """
    path = user_path(source)
    if not exists(path):
        return ""
    try:
        return os.path.relpath(real_path(path), real_path(directory))
    except ValueError:  # on another drive of Windows
        return ""


def save(
    path: Path,
    model: Model,
    inputs: Inputs,
    predictions: Sequence[Predictions],
    n_contexts: int,
    n_processes: int,
    seconds: Mapping[str, float],
) -> Results:
    """Writes predictions, one per setting, into a run directory; returns `results_of` the file."""
    write(path / results.PREDICTIONS, predictions)
    return results_of(path, model, inputs, n_contexts, n_processes, seconds)


def results_of(
    path: Path,
    model: Model,
    inputs: Inputs,
    n_contexts: int,
    n_processes: int,
    seconds: Mapping[str, float],
) -> Results:
    """Returns the results that follow from the predictions in a run directory.

    Args:
        path: the run directory, which has `predictions.parquet`.
        model: the model that was asked.
        inputs: what was asked.
        n_contexts: number of distinct contexts.
        n_processes: number of processes that asked the model.
        seconds: step, "load" or "ask" -> how long it took.
    """
    info = model.info
    fingerprint = inputs.fingerprint
    # figures follow from the file, not from memory: whoever reads the file computes the same
    saved_predictions = read_run(path / results.PREDICTIONS, inputs.stimuli)
    data_of_task = {}
    tasks: dict[str, dict[str, results.SettingResults]] = {}
    for task, rows in inputs.stimuli.items():
        data_of_task[task] = results.TaskData(rows.fingerprint, len(rows), rows.form)
        tasks[task] = {}
        shuffles_of: dict[str, list[Predictions]] = {}  # setting -> predictions of each shuffle
        for (setting, _), shuffle in saved_predictions[task].items():
            shuffles_of.setdefault(setting, []).append(shuffle)
        for setting, shuffles in shuffles_of.items():
            tasks[task][setting] = evaluation.evaluate(
                rows, shuffles, inputs.protocol, info.word_folds, info.kind, model=info
            )
    first_task = next(iter(inputs.stimuli.values()))  # all tasks have one source
    data = results.DataInfo(
        without_secrets(first_task.source),
        first_task.revision,
        fingerprint,
        data_of_task,
        without_secrets(_path_of_data(first_task.source, path)),
    )
    versions = {"lmdiag": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _PACKAGES}
    asks_words = inputs.asks == "word"
    return Results(
        signature=results.signature(
            inputs.protocol, fingerprint, asks_words=asks_words, model=info
        ),
        identity=inputs.identity(info),
        # an address of a server may have a password
        model=replace(info, **change_texts(asdict(info), without_secrets)),
        data=data,
        protocol=inputs.protocol,
        versions=versions,
        device=results.Device(model.device, n_processes),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        n_contexts=n_contexts,
        tasks=tasks,
        files={results.PREDICTIONS: results.digest_of_predictions(path)},
    )
