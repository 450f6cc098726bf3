"""One run: a model, the stimuli in all their settings, the files of SPEC 5."""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import diagnostics, perturb, results, summary
from lmdiag.collector import uncollected
from lmdiag.controls import control_warning
from lmdiag.journal import Journal, NoJournal
from lmdiag.queries import Key, Setting, collect, spread
from lmdiag.report.progress import Progress
from lmdiag.results import predictions
from lmdiag.schema import Answer, BadInput, Kind, Predictions, Protocol
from lmdiag.scoring import ask
from lmdiag.writing import write_atomically

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.processes import Processes
    from lmdiag.stimuli import Stimuli

PACKAGES = ("lmdiag", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


@dataclass(frozen=True)
class Material:
    """All that is asked of every model of a command.

    Attributes:
        stimuli: task -> its rows, unperturbed.
        settings: the rows in every setting, task by task.
        verbs: (singular, plural) forms for EW and MW; empty without agreement.
        protocol: what decides the numbers.
    """

    stimuli: Mapping[str, Stimuli]
    settings: Sequence[Setting]
    verbs: Sequence[tuple[str, str]]
    protocol: Protocol

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all tasks' data."""
        return results.combine({task: rows.fingerprint for task, rows in self.stimuli.items()})


def gather_material(
    data: str, protocol: Protocol, *, revision: str | None = None, verbs: str | None = None
) -> Material:
    """Loads the stimuli of the protocol's tasks and makes all settings of them.

    Raises:
        BadInput: unknown data set or task, rows that break the contract, a perturbation that fits
            none of the tasks, row ids that two tasks share.
    """
    from lmdiag import stimuli

    loaded = {
        task: stimuli.load(data, task, revision=revision, limit=protocol.limit, seed=protocol.seed)
        for task in protocol.tasks
    }
    _refuse_shared_ids(loaded)
    for name in protocol.perturb:
        tasks = perturb.tasks_with(name)
        if not loaded.keys() & set(tasks):
            raise BadInput(
                f"--perturb {name} is made for {' and '.join(tasks)}, which is not among the "
                f"tasks ({', '.join(loaded)}): add it to --tasks or leave {name} out"
            )
    settings = [
        Setting(
            rows if name == "none" else perturb.perturb(rows, name, run, protocol.seed), name, run
        )
        for task, rows in loaded.items()
        for name, run in perturb.settings(task, protocol.perturb, protocol.shuffles)
    ]
    pairs = (
        stimuli.load_verbs(verbs or data, revision=revision)
        if any(diagnostics.get(task).has_verbs for task in loaded)
        else []
    )
    return Material(loaded, settings, pairs, replace(protocol, verbs=len(pairs) or None))


def _refuse_shared_ids(loaded: Mapping[str, Stimuli]) -> None:
    owner: dict[str, str] = {}
    for task, rows in loaded.items():
        for row in rows.columns()["id"]:
            if owner.setdefault(row, task) != task:
                raise BadInput(f"id {row} stands in {owner[row]} and in {task}: rename it in one")


def run_model(
    model_id: str,
    options: LoadOptions,
    material: Material,
    *,
    processes: Processes,
    output: Path,
    name: str | None = None,
    batch_size: int | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> tuple[Path, results.Results | None]:
    """Runs one model; a finished run is read back, an interrupted one resumed.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: how the model is loaded.
        material: what is asked.
        processes: those that share the run.
        output: folder of all runs.
        name: what to call the model in its folder and in tables; None for its id.
        batch_size: contexts in a batch; None for what suits the device.
        overwrite: discard an earlier run of the same model and protocol.
        quiet: no progress bar.

    Returns:
        The run directory and, on the first process, its results (elsewhere None).

    Raises:
        BadInput: see `models.load`, `RunDirectory.open` and `scoring.ask`.
    """
    started = time.monotonic()
    model = _load(model_id, options, processes)
    model.info = replace(model.info, name=name)
    loaded = time.monotonic()
    folder = results.RunDirectory(
        output
        / results.model_slug(model_id, options.revision, name)
        / results.protocol_slug(material.protocol)
    )
    try:
        if _open(folder, model, material, processes, overwrite=overwrite):
            return folder.path, _read_back(folder, material) if processes.first else None
        answers = _ask_all(model, material, folder, processes, batch_size, quiet)
        if not processes.first:
            return folder.path, None
        seconds = {"load": loaded - started, "ask": time.monotonic() - loaded}
        return folder.path, _write(folder, model, material, answers, processes, seconds)
    finally:
        folder.close()
        gc.unfreeze()


def _read_back(folder: results.RunDirectory, material: Material) -> results.Results:
    """Returns the results of a finished run; a report that is missing is written again."""
    facts = results.read_results(folder.path)
    if not (folder.path / results.REPORT).exists():
        _write_report(folder, facts, material)
    return facts


def _write_report(folder: results.RunDirectory, facts: results.Results, material: Material) -> None:
    try:
        from lmdiag.report.html import render
    except ImportError:  # until the report page is converted to the new records
        return

    page = render(results.Run(folder.path, facts, dict(material.stimuli)))
    write_atomically(folder.path / results.REPORT, page.encode())


def _load(model_id: str, options: LoadOptions, processes: Processes) -> Model:
    """Loads the model on every process, or on none: one that fails fails all."""
    from lmdiag import models

    gc.collect()  # the model before, if there was one
    with processes.shared_errors(), uncollected():
        model = models.load(model_id, options)
        gc.freeze()  # what was loaded stays while the run lasts, and is not looked through
    return model


def _open(
    folder: results.RunDirectory,
    model: Model,
    material: Material,
    processes: Processes,
    *,
    overwrite: bool,
) -> bool:
    """Opens the run directory on the first process; every process learns how that went."""
    finished = False
    with processes.shared_errors():
        if processes.first:
            identity = results.identity(model.info, material.protocol, material.fingerprint)
            finished = folder.open(identity, overwrite=overwrite)
    return bool(processes.share(finished))


def _ask_all(
    model: Model,
    material: Material,
    folder: results.RunDirectory,
    processes: Processes,
    batch_size: int | None,
    quiet: bool,
) -> dict[Key, Answer]:
    """Asks every distinct question of the material, or takes its answer from the journal."""
    if material.verbs:
        model.set_verbs(list(material.verbs))
    if processes.first and (line := control_warning(model, material.settings)):
        print(f"lmdiag: warning: {line}", file=sys.stderr)
    questions = collect(material.settings, kind=model.info.kind, cased=model.info.cased)
    keeps = processes.first or not processes.together
    owner = json.dumps(results.identity(model.info, material.protocol, material.fingerprint))
    with Journal(folder.journal, processes.rank, owner) if keeps else NoJournal() as journal:
        answers = ask(
            model,
            questions,
            top=material.protocol.top,
            batch_size=batch_size,
            journal=journal,
            processes=processes,
            progress=partial(
                Progress, label=model.info.name or model.info.id, quiet=quiet or not processes.first
            ),
        )
    return {(q.query, q.number): answer for q, answer in zip(questions, answers, strict=True)}


def _write(
    folder: results.RunDirectory,
    model: Model,
    material: Material,
    answers: Mapping[Key, Answer],
    processes: Processes,
    seconds: dict[str, float],
) -> results.Results:
    """Writes predictions, the results that are computed from them as read back, the report."""
    kind, cased = model.info.kind, model.info.cased
    found = [spread(setting, answers, kind=kind, cased=cased) for setting in material.settings]
    predictions.write_run(folder.path, found, material.settings, kind=kind)
    read_back = predictions.read_run(folder.path, material.stimuli, kind)
    first = next(iter(material.stimuli.values()))
    facts = results.Results(
        signature=results.signature(material.protocol, material.fingerprint),
        identity=results.identity(model.info, material.protocol, material.fingerprint),
        model=model.info,
        data=results.DataInfo(
            first.source,
            first.revision,
            material.fingerprint,
            {
                task: results.TaskData(rows.fingerprint, len(rows))
                for task, rows in material.stimuli.items()
            },
        ),
        protocol=material.protocol,
        versions={name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        device=results.Device(model.device, processes.count),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        n_contexts=len({query for query, _ in answers}),
        tasks=evaluate(read_back, material.stimuli, material.protocol, cased=cased, kind=kind),
        files=results.digests(folder.path),
    ).redacted()
    folder.finish(facts)
    _write_report(folder, facts, material)
    return facts


def evaluate(
    found: Mapping[str, Mapping[tuple[str, int], Predictions]],
    stimuli: Mapping[str, Stimuli],
    protocol: Protocol,
    *,
    cased: bool,
    kind: Kind,
) -> dict[str, dict[str, results.SettingResults]]:
    """Returns task -> setting -> its figures."""
    measured: dict[str, dict[str, results.SettingResults]] = {}
    for task, runs in found.items():
        rows = stimuli[task]
        by_setting: dict[str, list[Predictions]] = {}
        for (name, _), part in sorted(runs.items(), key=lambda item: item[0][1]):
            by_setting.setdefault(name, []).append(part)
        measured[task] = {
            name: replace(
                summary.evaluate(rows, parts, protocol, cased=cased, kind=kind),
                signature=results.signature(protocol, rows.fingerprint),
            )
            for name, parts in by_setting.items()
        }
    return measured
