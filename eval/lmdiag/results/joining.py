"""Runs of one model on different tasks as one run, so that their figures stand in one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

from lmdiag.protocol import Predictions, Protocol
from lmdiag.results.results import DataInfo, Results
from lmdiag.results.run import Run
from lmdiag.results.signatures import combine, signature

_MAY_DIFFER = ("tasks", "perturb", "verbs")
"""Fields of a protocol that follow from the tasks; in runs to be joined all others are equal."""


@dataclass(frozen=True, repr=False)
class _JoinedRun(Run):
    """Runs on different tasks as one.

    Attributes:
        parts: the runs.
    """

    parts: Sequence[Run]

    @cached_property
    def predictions(self) -> dict[str, dict[tuple[str, int], Predictions]]:
        """See `Run.predictions`."""
        return {task: own for part in self.parts for task, own in part.predictions.items()}


def joined_runs(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs, those of one model on different tasks as one; see `joined_results`."""
    together = []
    for group in _groups([run.results for run in runs]):
        parts = [runs[i] for i in group]
        run = parts[0]
        if len(parts) > 1:
            stimuli = {task: rows for part in parts for task, rows in part.stimuli.items()}
            run = _JoinedRun(run.path, _together([p.results for p in parts]), stimuli, parts)
        together.append(run)
    return together


def joined_results(results: Sequence[Results]) -> list[Results]:
    """Returns the results, those of one model on different tasks as one, in the order given.

    They are joined if the model is the same (commit and dtype included), no task is in two of them,
    and their protocols differ in tasks, perturbations and verbs alone.
    """
    return [_together([results[i] for i in group]) for group in _groups(results)]


def _groups(results: Sequence[Results]) -> list[list[int]]:
    """Positions of the results that are joined, group by group."""
    groups: list[list[int]] = []
    for i, each in enumerate(results):
        for group in groups:
            if all(_fit(results[j], each) for j in group):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _fit(a: Results, b: Results) -> bool:
    shared = [each.name for each in fields(Protocol) if each.name not in _MAY_DIFFER]
    return (
        a.model == b.model
        and a.tasks.keys().isdisjoint(b.tasks)
        and all(getattr(a.protocol, name) == getattr(b.protocol, name) for name in shared)
    )


def _together(parts: Sequence[Results]) -> Results:
    """The parts as one; what was recorded once per run is added up, or taken from the first."""
    first = parts[0]
    if len(parts) == 1:
        return first
    protocol = replace(
        first.protocol,
        tasks=tuple(task for part in parts for task in part.protocol.tasks),
        perturb=tuple(dict.fromkeys(name for part in parts for name in part.protocol.perturb)),
        verbs=next((part.protocol.verbs for part in parts if part.protocol.verbs), None),
    )
    facts = {task: facts for part in parts for task, facts in part.data.tasks.items()}
    fingerprint = combine({task: each.fingerprint for task, each in facts.items()})
    asks_words = any(part.diagnostic(task).asks == "word" for part in parts for task in part.tasks)
    sources = dict.fromkeys(part.data.source for part in parts)
    revision = first.data.revision if len(sources) == 1 else None
    steps = dict.fromkeys(step for part in parts for step in part.seconds)
    return replace(
        first,
        signature=signature(protocol, fingerprint, asks_words=asks_words),
        data=DataInfo(", ".join(sources), revision, fingerprint, facts),
        protocol=protocol,
        seconds={step: sum(part.seconds.get(step, 0.0) for part in parts) for step in steps},
        finished=max(part.finished for part in parts),
        n_contexts=sum(part.n_contexts for part in parts),
        tasks={task: settings for part in parts for task, settings in part.tasks.items()},
        identity={},
        files={},
    )
