"""Does a submission say what its predictions say? Every figure is computed again.

`verify` returns what was verified: the fields that are known, the predictions, and the figures as
they were computed here. Nothing else of a submission is shown or stored. A submission that is not
complete, of another protocol, on other data, or whose figures do not follow from its predictions is
refused with its reasons, each one line that a submitter can act on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.decode import decode
from lmdiag.hub.files import Files
from lmdiag.hub.plausible import first_few, implausible
from lmdiag.hub.refusal import Refused
from lmdiag.hub.shape import parse_results
from lmdiag.hub.text import all_visible
from lmdiag.results import EW_AND_MW as AGREEMENT_FILE
from lmdiag.results import PREDICTIONS, combine, signature
from lmdiag.schema import AGREEMENT, DIAGNOSTICS, BadInput, Predictions, Protocol

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

LATER_KEYS = frozenset({"chance", "statistic"})
"""Keys of a figure that runs of an earlier version lack."""

FIGURE_TOLERANCE = 1e-9
"""What two machines' arithmetic may do to a figure."""


@dataclass(frozen=True)
class Verified:
    """A submission that was verified.

    Attributes:
        results: the known fields of its `results.json`, every text made visible and every figure
            as it was computed here.
        predictions: task -> its predictions, in the order of the rows.
        stimuli: task -> its rows.
    """

    results: dict[str, Any]
    predictions: Mapping[str, Predictions]
    stimuli: Mapping[str, Stimuli]

    def save(self, folder: Path) -> None:
        """Writes the verified predictions as the files of a run directory."""
        from lmdiag.results import predictions
        from lmdiag.queries import Setting

        folder.mkdir(parents=True)
        settings = [Setting(self.stimuli[task]) for task in self.predictions]
        kind = self.results["model"]["kind"]
        predictions.write_run(folder, list(self.predictions.values()), settings, kind=kind)


def verify(files: Files, benchmark: Benchmark) -> Verified:
    """Verifies a submission.

    Args:
        files: of a run directory, from anyone.
        benchmark: the data it must have been made on.

    Raises:
        Refused: with the reasons.
        BadInput: the benchmark itself cannot be loaded.
    """
    results = parse_results(files.results)
    refuse(protocol_reasons(results))
    rows = {task: benchmark.stimuli(task) for task in results["protocol"]["tasks"]}
    verbs = benchmark.verbs() if AGREEMENT in rows else None
    refuse(_data_reasons(results, rows, verbs))
    found = read_predictions(files, rows, results["model"]["kind"])
    refuse(_plausibility_reasons(found, rows, results))
    computed = _compute(found, rows, results)
    refuse(_figure_reasons(results["tasks"], computed))
    data = results["data"] | {
        "tasks": {task: {"fingerprint": r.fingerprint, "n": len(r)} for task, r in rows.items()}
    }
    return Verified(all_visible(results | {"data": data, "tasks": computed}), found, rows)


def refuse(reasons: Iterator[str]) -> None:
    """Raises `Refused` where there are reasons to."""
    if listed := list(reasons):
        raise Refused(listed)


def protocol_of(results: Mapping[str, Any]) -> Protocol:
    """Returns the protocol that a results.json of the right form names."""
    said = results["protocol"]
    return Protocol(
        tasks=tuple(said["tasks"]),
        perturb=tuple(said["perturb"]),
        shuffles=said["shuffles"],
        seed=said["seed"],
        unit=said["unit"],
        k=tuple(said["k"]),
        threshold=float(said["threshold"]),
        bos=said["bos"],
        limit=said["limit"],
        verbs=said["verbs"],
    )


def protocol_reasons(results: Mapping[str, Any]) -> Iterator[str]:
    """Yields what makes a run another than the leaderboard's: partial, or of another protocol.

    The leaderboard's protocol is the default one; agreement may be asked as well.

    Args:
        results: the fields of a `results.json`, of the right form.
    """
    said, wanted = protocol_of(results), Protocol()
    missing = [task for task in DIAGNOSTICS if task not in said.tasks]
    if missing:
        yield f"the run is partial: it lacks {', '.join(missing)}"
    foreign = [task for task in said.tasks if task not in (*DIAGNOSTICS, AGREEMENT)]
    if foreign or len(set(said.tasks)) != len(said.tasks):
        yield f"its tasks are not those of the benchmark: {first_few(said.tasks, 9)}"
    if said.limit is not None:
        yield f"the run is partial: a sample of {said.limit} rows of each task was asked (--limit)"
    if said.perturb:
        yield f"the run is perturbed ({first_few(said.perturb, 6)}): submit a plain one"
    for knob in ("unit", "k", "threshold", "bos", "shuffles", "seed"):
        mine, theirs = getattr(wanted, knob), getattr(said, knob)
        if mine != theirs:
            yield f"another protocol: {knob} is {theirs}, the leaderboard's is {mine}"
    match = "exact" if results["model"]["cased"] else "case-blind"
    if results["protocol"]["match"] != match:
        yield f"words were compared {results['protocol']['match']}, its tokenizer needs {match}"


def _data_reasons(
    results: Mapping[str, Any], rows: Mapping[str, Stimuli], verbs: int | None
) -> Iterator[str]:
    """Made on the benchmark's rows, and signed for them."""
    said = results["data"]["tasks"]
    for task, stimuli in rows.items():
        facts = said.get(task)
        if not isinstance(facts, dict) or facts.get("fingerprint") != stimuli.fingerprint:
            yield f"{task} was made on other data than the benchmark's ({stimuli.fingerprint})"
        elif facts.get("n") != len(stimuli):
            yield f"{task} has {len(stimuli)} rows, not {facts.get('n')}"
    protocol = protocol_of(results)
    if protocol.verbs != verbs:
        yield f"its list has {protocol.verbs} verbs, the benchmark's {verbs}"
    fingerprint = combine({task: stimuli.fingerprint for task, stimuli in rows.items()})
    if results["data"]["fingerprint"] != fingerprint:
        yield f"the fingerprint of its data is not the benchmark's ({fingerprint})"
    expected = signature(protocol, fingerprint)
    if results["signature"] != expected:
        yield f"its signature is not that of what it says it did, {expected}"
    if set(results["tasks"]) != set(rows):
        yield f"it has figures for {first_few(sorted(results['tasks']), 9)}, not for its tasks"


def read_predictions(
    files: Files, rows: Mapping[str, Stimuli], kind: Any
) -> dict[str, Predictions]:
    """Returns task -> its unperturbed predictions, in the order of the rows.

    Args:
        files: of the submission.
        rows: task -> its rows.
        kind: of the model.

    Raises:
        Refused: missing, doubled or foreign ids, columns of another type, other settings, or a file
            that is too large.
    """
    from lmdiag.results import predictions

    path, total = Path(PREDICTIONS), sum(map(len, rows.values()))
    table = decode(files.predictions, PREDICTIONS, predictions.schema(), total)
    for name in ("id", "perturbation", "run"):
        if table.column(name).null_count:
            raise Refused([f"{PREDICTIONS}: column {name} has empty values"])
    try:
        settings = predictions.by_setting(table, path)
        if perturbed := sorted(f"{name} {run}" for name, run in settings if name != "none" or run):
            raise Refused([f"{PREDICTIONS} holds perturbed rows: {first_few(perturbed)}"])
        parts = predictions.by_task(settings["none", 0], rows, path) if settings else {}
        found = {}
        for task, stimuli in rows.items():
            if task not in parts:
                raise Refused([f"{PREDICTIONS} has no predictions for {task}"])
            ids = stimuli.columns()["id"]
            found[task] = predictions.align(parts[task], ids, where=PREDICTIONS)
        if AGREEMENT in rows:
            _attach_agreement(found, files, rows[AGREEMENT], kind)
    except BadInput as error:
        raise error if isinstance(error, Refused) else Refused([str(error)]) from None
    return found


def _attach_agreement(
    found: dict[str, Predictions], files: Files, rows: Stimuli, kind: Any
) -> None:
    """Gives the predictions of agreement the EW and MW of their contexts."""
    from lmdiag.results import predictions

    if files.agreement is None:
        raise Refused([f"there is no {AGREEMENT_FILE}"])
    schema = predictions.agreement_schema()
    table = decode(files.agreement, AGREEMENT_FILE, schema, len(rows))
    runs = {("none", 0): found[AGREEMENT]}
    values = predictions.by_context(table)
    predictions.attach(runs, values, Path(AGREEMENT_FILE), rows, kind)
    found[AGREEMENT] = runs["none", 0]


def _plausibility_reasons(
    found: Mapping[str, Predictions], rows: Mapping[str, Stimuli], results: Mapping[str, Any]
) -> Iterator[str]:
    cased, top = results["model"]["cased"], protocol_of(results).top
    for task, predictions in found.items():
        columns = rows[task].columns()
        for reason in implausible(columns, predictions, cased=cased, top=top):
            yield f"{task}: {reason}"


def _compute(
    found: Mapping[str, Predictions], rows: Mapping[str, Stimuli], results: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns `tasks` of `results.json`, from the predictions alone."""
    from lmdiag import summary

    protocol, model = protocol_of(results), results["model"]
    computed = {
        task: {
            "none": replace(
                summary.evaluate(
                    rows[task], [part], protocol, cased=model["cased"], kind=model["kind"]
                ),
                signature=signature(protocol, rows[task].fingerprint),
            ).to_json()
        }
        for task, part in found.items()
    }
    return dict(json.loads(json.dumps(computed)))  # tuples become lists, as in a file


def _figure_reasons(said: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    """Every figure, interval, count and unscorable word against the ones computed here."""
    for task, settings in computed.items():
        different = list(differences(said[task], settings, task))
        yield from different[:3]
        if len(different) > 3:
            yield f"{task}: {len(different) - 3} more differences"


def differences(said: Any, computed: Any, path: str) -> Iterator[str]:
    """Yields where two JSON values differ, numbers by more than `FIGURE_TOLERANCE`."""
    if isinstance(computed, Mapping):
        if not isinstance(said, dict):
            yield f"{path}: there is no such break-down in its figures"
            return
        for key in computed:
            if key not in said:
                if key not in LATER_KEYS:
                    yield f"{path} {key}: is missing from its figures"
            else:
                yield from differences(said[key], computed[key], f"{path} {key}")
        for key in said:
            if key not in computed:
                yield f"{path} {key[:60]}: does not follow from its predictions"
    elif isinstance(computed, list | tuple):
        if said != list(computed):
            yield f"{path}: is not what its predictions give"
    elif not _same(said, computed):
        yield f"{path}: is {_short(said)}, its predictions give {_short(computed)}"


def _same(said: Any, computed: Any) -> bool:
    numbers = (int, float)
    if isinstance(computed, numbers) and isinstance(said, numbers) and not isinstance(said, bool):
        return abs(said - computed) <= FIGURE_TOLERANCE
    return type(said) is type(computed) and said == computed


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]
