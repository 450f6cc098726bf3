"""Does a submission say what its predictions say? Every figure is computed again.

`verify` returns what was verified; nothing else of a submission is shown or stored. A submission
is refused if it is incomplete, of another protocol, on other data, or if its figures do not follow
from its predictions. Each reason is one line that a submitter can act on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import diagnostics, evaluation
from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.bounded import Refused, decode, parse_results, refuse
from lmdiag.hub.plausible import implausible
from lmdiag.protocol import Predictions, Protocol
from lmdiag.results import (
    EW_AND_MW,
    PREDICTIONS,
    RESULTS,
    Figure,
    Results,
    TaskData,
    combine,
    signature,
)
from lmdiag.text import first_few, visible
from lmdiag.types import AGREEMENT, DIAGNOSTICS, BadInput, Kind

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

_TOLERANCE = 1e-9
"""By how much the arithmetic of two machines may change a figure."""

_COMPARED = ("value", "n", "ci_low", "ci_high", "chance", "sd", "runs")
"""Attributes of a figure that are compared; runs of earlier versions have no chance level."""


@dataclass(frozen=True)
class Verified:
    """A submission that was verified.

    Attributes:
        results: the known fields of its `results.json`, with the figures as computed here.
        predictions: task -> its predictions, in the order of the rows.
    """

    results: Results
    predictions: Mapping[str, Predictions]


def verify(files: Mapping[str, bytes], benchmark: Benchmark) -> Verified:
    """Verifies a submission.

    Args:
        files: name -> content of the files of a run directory, from anyone.
        benchmark: the data that the run must have been made on.

    Raises:
        Refused: with the reasons.
        BadInput: the benchmark itself cannot be loaded.
    """
    claimed = parse_results(files[RESULTS])
    refuse(_protocol_reasons(claimed.protocol))
    rows = {task: benchmark.stimuli(task) for task in claimed.protocol.tasks}
    verbs = len(benchmark.verbs()) if AGREEMENT in rows else None
    refuse(_data_reasons(claimed, rows, verbs))
    predictions = _read_predictions(files, rows, claimed.model.kind)
    model, protocol = claimed.model, claimed.protocol
    refuse(
        f"{task}: {reason}"
        for task, part in predictions.items()
        for reason in implausible(rows[task].columns(), part, cased=model.cased, top=protocol.top)
    )
    computed = _recomputed(claimed, rows, predictions)
    refuse(_figure_reasons(claimed, computed))
    return Verified(computed, predictions)


def _recomputed(
    claimed: Results, rows: Mapping[str, Stimuli], predictions: Mapping[str, Predictions]
) -> Results:
    """Returns the results with the figures that follow from the predictions."""
    model, protocol = claimed.model, claimed.protocol
    data, tasks = {}, {}
    for task, part in predictions.items():
        stimuli = rows[task]
        figures = evaluation.evaluate(stimuli, [part], protocol, model.cased, model.kind)
        tasks[task] = {"none": replace(figures, signature=signature(protocol, stimuli.fingerprint))}
        data[task] = TaskData(stimuli.fingerprint, len(stimuli), stimuli.form)
    return replace(claimed, data=replace(claimed.data, tasks=data), tasks=tasks)


def _protocol_reasons(protocol: Protocol) -> Iterator[str]:
    """The leaderboard's protocol is the default one; other published diagnostics may be added."""
    tasks = protocol.tasks
    if missing := [task for task in DIAGNOSTICS if task not in tasks]:
        yield f"the run is partial: it lacks {', '.join(missing)}"
    if set(tasks) - diagnostics.built_in().keys() or len(set(tasks)) != len(tasks):
        yield f"its tasks are not those of the benchmark: {first_few(tasks, 9)}"
    if foreign := [task for task in tasks if not diagnostics.get(task).in_data_set]:
        yield f"the benchmark does not contain {', '.join(foreign)}: submit a run without it"
    if protocol.limit is not None:
        rows = protocol.limit
        yield f"the run is partial: a sample of {rows} rows of each task was asked (--limit)"
    if protocol.perturb:
        yield f"the run is perturbed ({first_few(protocol.perturb, 6)}): submit a plain one"
    judged_above = {"tasks", "limit", "perturb", "verbs"}
    for name in (field.name for field in fields(Protocol) if field.name not in judged_above):
        ours, theirs = getattr(Protocol(), name), getattr(protocol, name)
        if ours != theirs:
            a, b = ("none" if value == "" else visible(str(value)) for value in (theirs, ours))
            yield f"another protocol: {name} is {a}, the leaderboard's is {b}"


def _data_reasons(
    claimed: Results, rows: Mapping[str, Stimuli], verbs: int | None
) -> Iterator[str]:
    """Made on the benchmark's rows, and signed for them."""
    for task, stimuli in rows.items():
        said = claimed.data.tasks.get(task)
        if said is None or said.fingerprint != stimuli.fingerprint:
            yield f"{task} was made on other data than the benchmark's ({stimuli.fingerprint})"
        elif said.n != len(stimuli):
            yield f"{task} has {len(stimuli)} rows, not {said.n}"
    if claimed.protocol.verbs != verbs:
        yield f"its list has {claimed.protocol.verbs} verbs, the benchmark's {verbs}"
    fingerprint = combine({task: stimuli.fingerprint for task, stimuli in rows.items()})
    if claimed.data.fingerprint != fingerprint:
        yield f"the fingerprint of its data is not the benchmark's ({fingerprint})"
    expected = signature(claimed.protocol, fingerprint)
    if claimed.signature != expected:
        yield f"its signature is not that of its protocol and data, {expected}"
    if set(claimed.tasks) != set(rows):
        yield f"it has figures for {first_few(sorted(claimed.tasks), 9)}, not for its tasks"


def _read_predictions(
    files: Mapping[str, bytes], rows: Mapping[str, Stimuli], kind: Kind
) -> dict[str, Predictions]:
    """Returns task -> its unperturbed predictions, in the order of the rows.

    Raises:
        Refused: missing, doubled or unknown ids, columns of another type, other settings, or a file
            that is too large.
    """
    from lmdiag.results import predictions

    total, values = sum(map(len, rows.values())), None
    table = decode(files[PREDICTIONS], PREDICTIONS, predictions.schema(), total)
    try:
        settings = predictions.by_setting(table, Path(PREDICTIONS))
        if perturbed := [f"{name} {run}" for name, run in sorted(settings.keys() - {("none", 0)})]:
            raise Refused([f"{PREDICTIONS} holds perturbed rows: {first_few(perturbed)}"])
        if AGREEMENT in rows:
            if EW_AND_MW not in files:
                raise Refused([f"{EW_AND_MW} is missing"])
            schema, n = predictions.agreement_schema(), len(rows[AGREEMENT])
            values = predictions.by_context(decode(files[EW_AND_MW], EW_AND_MW, schema, n))
        runs = predictions.by_row(settings, values, rows, kind, Path())
    except BadInput as error:
        raise error if isinstance(error, Refused) else Refused([str(error)]) from None
    return {task: parts["none", 0] for task, parts in runs.items()}


def _figure_reasons(claimed: Results, computed: Results) -> Iterator[str]:
    """Compares every figure, count and unscorable word with the ones computed here."""
    for task, settings in computed.tasks.items():
        said = claimed.tasks[task].get("none")
        if said and said.signature != settings["none"].signature:
            yield f"{task} none signature is {said.signature[:60]}"
        for name in ("unscorable", "censored"):
            if said and getattr(said, name) != getattr(settings["none"], name):
                yield f"{task} none: its {name} words are not those of its predictions"
    theirs, ours = dict(claimed.figures()), dict(computed.figures())
    for place in {**ours, **theirs}:
        if difference := _difference(theirs.get(place), ours.get(place)):
            by = f" by {place.by} {place.level}" if place.by else ""
            yield f"{place.task} {place.setting} {place.measure[:60]}{by[:60]}: {difference}"


def _difference(said: Figure | None, computed: Figure | None) -> str | None:
    if computed is None:
        return "does not follow from its predictions"
    if said is None:
        return "is missing from its figures"
    for name in _COMPARED:
        theirs, ours = getattr(said, name), getattr(computed, name)
        if name == "chance" and theirs is None:
            continue
        if not is_close(theirs, ours, _TOLERANCE):
            return f"{name} is {_short(theirs)}, its predictions give {_short(ours)}"
    return None


def is_close(one: float | None, other: float | None, most: float) -> bool:
    """Returns whether two numbers differ by at most so much; a missing one equals a missing one."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= most


def _short(value: float | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
