"""From rows and predictions to the measures of `results.json`.

This is the one way there, for run, score and metric alike. The form is that of SPEC 8: name ->
value, n, ci_low, ci_high, chance, and `by`, the same for each level of each break-down. Undefined
is None; where a measure makes no sense at all, `not_defined` says why. The settings that were
shuffled several times additionally have `sd` and `runs`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import measures, stats
from lmdiag.perturb import NONE, SHUFFLED, perturb
from lmdiag.schema import AGREEMENT, BadInput, Kind, Predictions, Protocol

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Scores
    from lmdiag.stimuli import Stimuli

ABOUT_PEOPLE = ("human_", "cloze_difference")
"""Measures of what people said to the rows as they are; they say nothing of perturbed ones."""


def evaluate(
    stimuli: Stimuli,
    runs: Sequence[Predictions],
    protocol: Protocol,
    cased: bool,
    kind: Kind = "masked",
) -> dict[str, Any]:
    """Returns {"measures": ..., "unscorable": ...} of one task in one setting.

    Args:
        stimuli: the rows.
        runs: their predictions, in the rows' order; several in a shuffled setting.
        protocol: `k`, `threshold` and, for shuffled settings, `seed` count here.
        cased: compare words with `expected` exactly, else case-blind.
        kind: of the model; a causal one saw the left context alone.

    Raises:
        BadInput: predictions do not belong to the rows.
    """
    found = [measure(scores(stimuli, run, protocol, cased, kind)) for run in runs]
    return conclude(stimuli.columns(), runs, found)


def summarise(
    task: str,
    rows: Columns,
    runs: Sequence[Predictions],
    *,
    k: Sequence[int],
    threshold: float,
    cased: bool,
    kind: Kind = "masked",
) -> dict[str, Any]:
    """Returns {"measures": ..., "unscorable": ...} from plain columns; see `evaluate`.

    Args:
        rows: with the contexts that the model was asked.
    """
    found = [
        measure(run_scores(task, rows, run, k=k, threshold=threshold, cased=cased, kind=kind))
        for run in runs
    ]
    return conclude(rows, runs, found)


def conclude(
    rows: Columns, runs: Sequence[Predictions], found: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns what `evaluate` returns from the measures of each run."""
    shuffled = bool(runs) and runs[0].perturbation in SHUFFLED
    return {
        "measures": over_runs(found) if shuffled else dict(found[0]),
        "unscorable": unscorable(rows, runs),
    }


def scores(
    stimuli: Stimuli,
    run: Predictions,
    protocol: Protocol,
    cased: bool,
    kind: Kind = "masked",
) -> list[Scores]:
    """Returns the per-item scores behind `evaluate`, for plots, the bootstrap and comparisons."""
    knobs: dict[str, Any] = {"k": protocol.k, "threshold": protocol.threshold}
    rows = as_asked(stimuli, run, protocol.seed)
    return run_scores(stimuli.task, rows, run, **knobs, cased=cased, kind=kind)


def as_asked(stimuli: Stimuli, run: Predictions, seed: int) -> Columns:
    """Returns the columns with the contexts that the model was asked in a run."""
    if run.perturbation == NONE:
        return stimuli.columns()
    return perturb(stimuli, run.perturbation, run.run, seed).columns()


def run_scores(
    task: str, rows: Columns, run: Predictions, *, kind: Kind, **knobs: Any
) -> list[Scores]:
    """Returns the scores of one run, without those on people where the rows were perturbed."""
    if list(rows["id"]) != run.id:
        raise BadInput(
            f"predictions of {task} are not in the order of its rows: "
            "align them by `lmdiag.predictions.align`"
        )
    found = measures.score(task, rows, vars(run), left_only=kind == "causal", **knobs)
    about_people = ABOUT_PEOPLE if run.perturbation != "none" else ()
    return [scores for scores in found if not scores.name.startswith(about_people)]


def measure(found: Sequence[Scores]) -> dict[str, Any]:
    """Returns name -> cell with break-downs."""
    return {
        scores.name: cell(scores)
        | {
            "by": {
                column: {level: cell(levels[level]) for level in measures.in_order(levels)}
                for column, levels in scores.by.items()
            }
        }
        for scores in found
    }


def cell(scores: Scores) -> dict[str, Any]:
    """Returns value, n, interval and chance level; None where undefined."""
    estimate = asdict(stats.estimate(scores.values, scores.statistic))
    known: dict[str, Any] = {name: none_if_nan(value) for name, value in estimate.items()}
    chance = () if scores.chance is None else scores.chance
    known["chance"] = statistics.fmean(chance) if len(chance) else None
    return known | ({"not_defined": scores.not_defined} if scores.not_defined else {})


def none_if_nan(value: float) -> float | None:
    """Returns the value, or None for NaN, which JSON does not have."""
    return None if np.isnan(value) else value


def over_runs(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the measures of a shuffled setting: means over its runs."""
    merged = {}
    for name, first in runs[0].items():
        there = [run[name] for run in runs if name in run]
        by = {
            column: {
                level: merge(
                    [
                        run["by"][column][level]
                        for run in there
                        if level in run["by"].get(column, {})
                    ]
                )
                for level in levels
            }
            for column, levels in first["by"].items()
        }
        merged[name] = merge(there) | {"by": by}
    return merged


def merge(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the mean of the runs' cells, with the standard deviation (population) over runs.

    The bounds are means of the runs' bounds: the interval over items of a typical run. How far the
    order of the words moves the figure is what `sd` says. n is that of a run.
    """
    values = [cell["value"] for cell in cells]
    undefined = None in values
    return {
        "value": None if undefined else statistics.fmean(values),
        "n": min(cell["n"] for cell in cells),
        **{
            key: mean_or_none([cell[key] for cell in cells])
            for key in ("ci_low", "ci_high", "chance")
        },
        "sd": None if undefined else statistics.pstdev(values),
        "runs": len(cells),
    }


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """Returns the mean; None where any value is."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def unscorable(rows: Columns, runs: Sequence[Predictions]) -> list[dict[str, str]]:
    """Returns the rows whose word the tokenizer cannot spell, as id and word; each once.

    Predictions that have no log-probability at all say nothing of any word.
    """
    missing = {
        i: None
        for run in runs
        if any(value is not None for value in run.log_prob)
        for i, value in enumerate(run.log_prob)
        if value is None
    }
    return [{"id": rows["id"][i], "word": rows["target"][i]} for i in sorted(missing)]


def beyond_lists(rows: Columns, run: Predictions, k: Sequence[int]) -> list[str]:
    """Returns a line for the accuracy@k that the lists of top words are too short for, if any."""
    where = measures.expecting(rows)
    known = [i for i in where if run.top_words[i] is not None]
    if not known:
        return []
    first = min(known, key=lambda i: len(run.top_words[i] or ()))
    n = len(run.top_words[first] or ())
    if not (names := [f"accuracy@{rank}" for rank in k if rank > n]):
        return []
    words = "1 top word" if n == 1 else f"{n} top words"
    return [f"{', '.join(names)}: {rows['id'][first]} has {words} only; give {max(k)} for each row"]


def not_computed(stimuli: Stimuli, run: Predictions, protocol: Protocol) -> list[str]:
    """Returns a line for each thing that predictions do not allow to compute, and why."""
    lines = []
    if not stimuli.compared:
        lines.append("sensitivity: no rows are compared, there are no columns good and contrast")
        pairs = list(zip(run.log_prob, run.rank, strict=True))
        if lacking := sum(p is not None and rank is None for p, rank in pairs):
            lines.append(
                f"rank: {lacking} of {len(pairs)} words have none; in unit word, only words of the "
                "top list have one"
            )
    if all(value is None for value in run.log_prob):
        lines.append("all that compares probabilities: the predictions have no log_prob")
    lengths = [len(words) for words in run.top_words if words is not None]
    if not lengths:
        lines.append("all that looks at the top words: the predictions have no top_words")
    elif not any(stimuli.columns()["expected"]):
        lines.append(f"accuracy: no row of {stimuli.task} has expected words")
    lines += beyond_lists(stimuli.columns(), run, protocol.k)
    if stimuli.task == AGREEMENT and all(value is None for value in run.n_tokens):
        lines.append("tse: the predictions have no n_tokens")
    if stimuli.task == AGREEMENT and not any(run.agreement):
        lines.append("ew and mw: they need the whole distribution, as `lmdiag run` has it")
    return lines
