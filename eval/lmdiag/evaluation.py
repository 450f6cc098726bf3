"""From rows and predictions to figures: the one way, for run, score, verification and metric."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import diagnostics, measures, stats
from lmdiag.perturb import NONE, is_shuffled, perturb
from lmdiag.protocol import Predictions, Protocol
from lmdiag.results import Figure, Measure, SettingResults, UnscoredWord
from lmdiag.text import suggest, truncated
from lmdiag.types import BadInput, Kind, WordSpan, WordState

if TYPE_CHECKING:
    from lmdiag.diagnostics import Diagnostic
    from lmdiag.measures import Columns, Scores
    from lmdiag.stimuli import Stimuli

_LONGEST_NAME = 60
"""Characters that name a sentence without a log-probability."""

HUMAN_MEASURES = ("human_", "cloze_difference")
"""Beginnings of the measures of the human baseline, which say nothing of perturbed rows."""


def evaluate(
    stimuli: Stimuli,
    runs: Sequence[Predictions],
    protocol: Protocol,
    cased: bool,
    kind: Kind = "masked",
) -> SettingResults:
    """Returns the figures of one task in one setting, without a signature.

    Undefined is None. A shuffled setting has means over its runs, with `sd` and `runs`.

    Args:
        stimuli: the rows.
        runs: their predictions, in the order of the rows; several in a shuffled setting.
        protocol: of which `k`, `threshold` and, in shuffled settings, `seed` are used.
        cased: compare words with `expected` exactly, else case-blind.
        kind: of the model; a causal model saw the left context alone.

    Raises:
        BadInput: predictions do not belong to the rows.
    """
    of_runs = [scores(stimuli, run, protocol, cased, kind) for run in runs]
    return summarise(stimuli.task, stimuli.columns(), runs, of_runs, form=stimuli.form)


def summarise(
    task: str,
    rows: Columns,
    runs: Sequence[Predictions],
    of_runs: Sequence[Sequence[Scores]],
    *,
    form: str = "",
) -> SettingResults:
    """Returns the figures of one setting from the scores of its runs; see `evaluate`."""
    diagnostic = diagnostics.get(task, form)
    measured = [{each.name: measure_of(each, diagnostic) for each in scores} for scores in of_runs]
    shuffled = bool(runs) and is_shuffled(task, runs[0].perturbation)
    return SettingResults(
        _over_runs(measured) if shuffled else measured[0],
        _unscored(rows, runs, "unscorable"),
        censored=_unscored(rows, runs, "censored"),
        without_first=_without_first(runs),
        equal_contrasts=max((each.equal for scores in of_runs for each in scores), default=0),
    )


def scores(
    stimuli: Stimuli, run: Predictions, protocol: Protocol, cased: bool, kind: Kind = "masked"
) -> list[Scores]:
    """Returns the per-item scores behind `evaluate`, for charts, the bootstrap and comparisons."""
    if run.perturbation != NONE:
        stimuli = perturb(stimuli, run.perturbation, run.run, protocol.seed)
    return scores_of_run(
        stimuli.task,
        stimuli.columns(),
        run,
        k=protocol.k,
        threshold=protocol.threshold,
        cased=cased,
        kind=kind,
        form=stimuli.form,
    )


def scores_of_run(
    task: str,
    rows: Columns,
    run: Predictions,
    *,
    k: Sequence[int],
    threshold: float,
    cased: bool,
    kind: Kind,
    form: str = "",
) -> list[Scores]:
    """Returns the scores of one run, without the human baseline where the rows were perturbed.

    Args:
        task: name of the config.
        rows: with the contexts that the model was asked.
        run: predictions in the order of the rows.
        k, threshold, cased, kind: see `evaluate`.
        form: of the data, see `Stimuli`.

    Raises:
        BadInput: predictions do not belong to the rows.
    """
    if list(rows["id"]) != run.id:
        raise BadInput(
            f"predictions of {task} are not in the order of its rows: "
            "align them by `lmdiag.results.predictions.align`"
        )
    computed = diagnostics.get(task, form).score(
        rows, vars(run), k=k, threshold=threshold, cased=cased, left_only=kind == "causal"
    )
    left_out = () if run.perturbation == NONE else HUMAN_MEASURES
    return [each for each in computed if not each.name.startswith(left_out)]


def measure_of(scores: Scores, diagnostic: Diagnostic) -> Measure:
    """Returns the figure of a measure, with the figures of its break-downs."""
    by = {
        column: {
            level: figure_of(levels[level]) for level in diagnostic.levels_in_order(column, levels)
        }
        for column, levels in scores.by.items()
    }
    return Measure(**vars(figure_of(scores)), by=by)


def figure_of(scores: Scores) -> Figure:
    """Returns value, n, interval and chance level; None where undefined."""
    estimate = asdict(stats.estimate(scores.values, scores.statistic))
    defined: dict[str, Any] = {
        name: None if np.isnan(value) else value for name, value in estimate.items()
    }
    has_chance = scores.chance is not None and len(scores.chance)
    return Figure(
        **defined,
        chance=statistics.fmean(scores.chance) if has_chance else None,  # type: ignore[arg-type]
        not_defined=scores.not_defined or None,
        statistic=scores.statistic,
    )


# ---- shuffled settings ---------------------------------------------------------------------------


def _over_runs(runs: Sequence[Mapping[str, Measure]]) -> dict[str, Measure]:
    """The measures of a shuffled setting: means over its runs."""
    merged = {}
    for name, first in runs[0].items():
        of_runs = [run[name] for run in runs if name in run]
        by = {
            column: {
                level: _mean([run.by[column][level] for run in of_runs if run.at(column, level)])
                for level in levels
            }
            for column, levels in first.by.items()
        }
        merged[name] = Measure(**vars(_mean(of_runs)) | {"by": by})
    return merged


def _mean(figures: Sequence[Figure]) -> Figure:
    """The mean of the figures of several runs, with their standard deviation (population).

    The bounds are means of the bounds: the interval over items of a typical run; `sd` is how far
    the order of the words changes the figure. n is that of a run.
    """
    values = [each.value for each in figures]
    return replace(
        figures[0],
        value=_mean_or_none(values),
        n=min(each.n or 0 for each in figures),
        ci_low=_mean_or_none([each.ci_low for each in figures]),
        ci_high=_mean_or_none([each.ci_high for each in figures]),
        chance=_mean_or_none([each.chance for each in figures]),
        sd=None if None in values else statistics.pstdev(values),  # type: ignore[type-var]
        runs=len(figures),
        not_defined=None,
    )


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


# ---- which measures ------------------------------------------------------------------------------


def chosen_measures(asked: Sequence[str], known: Iterable[str]) -> list[str]:
    """Returns the known measures that the names stand for, in their own order.

    Args:
        asked: names of measures; `accuracy` stands for every `accuracy@k`, and `sensitivity`,
            which is a measure itself, for this one alone.
        known: measures to choose from.

    Raises:
        BadInput: a name stands for no measure.
    """
    names = list(known)
    chosen: set[str] = set()
    for name in asked:
        found = {name} & set(names) or {each for each in names if each.startswith(f"{name}@")}
        if not found:
            raise BadInput(
                f"there is no measure {name}{suggest(name, names)}: choose from {', '.join(names)}"
            )
        chosen |= found
    return [name for name in names if name in chosen]


def measures_needing(
    stimuli: Stimuli, missing: Collection[str], protocol: Protocol, kind: Kind = "masked"
) -> dict[str, bool]:
    """Returns every measure of the rows, and whether it needs a prediction for a missing row.

    A measure needs a row if one of its items is lost with the prediction for this row.

    Args:
        stimuli: the rows.
        missing: ids of the rows that have no prediction.
        protocol, kind: see `evaluate`.
    """
    counts = [
        {each.name: len(each.items) for each in scores(stimuli, run, protocol, True, kind)}
        for run in (_any_answers(stimuli, (), protocol), _any_answers(stimuli, missing, protocol))
    ]
    return {name: n > counts[1].get(name, 0) for name, n in counts[0].items()}


def _any_answers(stimuli: Stimuli, missing: Collection[str], protocol: Protocol) -> Predictions:
    """Predictions of all values for all rows but the missing ones."""
    rows = stimuli.columns()
    given = [row not in missing for row in rows["id"]]

    def column(value: Any) -> list[Any]:
        return [value if is_given else None for is_given in given]

    regions = rows["regions"] if stimuli.diagnostic.has_regions else [()] * len(given)
    words = [
        tuple(WordSpan(each["start"], each["end"], -1.0, 1) for each in parts) if is_given else None
        for parts, is_given in zip(regions, given, strict=True)
    ]
    return Predictions(
        id=list(rows["id"]),
        log_prob=column(-1.0),
        rank=column(1),
        n_tokens=column(1),
        top_words=column(["-"] * protocol.top),
        top_log_probs=column(None),
        words=words if stimuli.diagnostic.has_regions else [],
    )


# ---- what is missing -----------------------------------------------------------------------------


def _unscored(rows: Columns, runs: Sequence[Predictions], state: WordState) -> list[UnscoredWord]:
    """The rows whose word is in a state without a log-probability, each once.

    Predictions with neither a log-probability nor a number of tokens say nothing of any word.
    """
    said = [
        run for run in runs if any(value is not None for value in (*run.log_prob, *run.n_tokens))
    ]
    where = {i for run in said for i in range(len(run.id)) if run.state(i) == state}
    name = rows["target"].__getitem__ if "target" in rows else partial(_unknown_words, rows, said)
    return [UnscoredWord(rows["id"][i], name(i)) for i in sorted(where)]


def _unknown_words(rows: Columns, runs: Sequence[Predictions], row: int) -> str:
    """The words of a sentence that the tokenizer cannot represent; if not known, its beginning."""
    text = rows["sentence"][row]
    words = dict.fromkeys(
        text[word.start : word.end]
        for run in runs
        if run.words
        for word in run.words[row] or ()
        if word.log_prob is None and not word.n_tokens
    )
    return truncated(", ".join(words) or text, _LONGEST_NAME)


def _without_first(runs: Sequence[Predictions]) -> int:
    """Number of sentences whose first word has no probability, since nothing stands before it."""
    return sum(
        words[0].log_prob is None and words[0].n_tokens > 0
        for run in runs
        for words in run.words
        if words
    )


def beyond_lists(rows: Columns, run: Predictions, k: Sequence[int]) -> list[str]:
    """Returns a line for the accuracy@k that the lists of top words are too short for, if any."""
    where = [i for i in measures.with_expected(rows) if run.top_words[i] is not None]
    if not where:
        return []
    first = min(where, key=lambda i: len(run.top_words[i] or ()))
    n = len(run.top_words[first] or ())
    if not (names := [f"accuracy@{rank}" for rank in k if rank > n]):
        return []
    words = "1 top word" if n == 1 else f"{n} top words"
    return [f"{', '.join(names)}: {rows['id'][first]} has {words} only; give {max(k)} for each row"]


def not_computed(stimuli: Stimuli, run: Predictions, protocol: Protocol) -> list[str]:
    """Returns a line for each measure that the predictions do not allow to compute, and why."""
    lines = []
    if not stimuli.compared and not stimuli.diagnostic.has_regions:
        lines.append(
            "sensitivity: the rows have no columns good and contrast, so no rows are compared"
        )
    if all(value is None for value in run.log_prob):
        lines.append("all measures of probabilities: the predictions have no log_prob")
    if stimuli.diagnostic.asks == "sentence":
        return lines + _not_computed_of_sentences(stimuli, run)
    return lines + _not_computed_of_words(stimuli, run, protocol)


def _not_computed_of_words(stimuli: Stimuli, run: Predictions, protocol: Protocol) -> list[str]:
    lines = []
    pairs = list(zip(run.log_prob, run.rank, strict=True))
    lacking = sum(p is not None and rank is None for p, rank in pairs)
    if lacking and not stimuli.compared:
        lines.append(
            f"rank: {lacking} of {len(pairs)} words have none; in unit word, only words of the "
            "top list have one"
        )
    if all(words is None for words in run.top_words):
        lines.append("all measures of the top words: the predictions have no top_words")
    elif not any(stimuli.columns()["expected"]):
        lines.append(f"accuracy: no row of {stimuli.task} has expected words")
    lines += beyond_lists(stimuli.columns(), run, protocol.k)
    if stimuli.diagnostic.has_verbs:
        if all(value is None for value in run.n_tokens):
            lines.append("tse: the predictions have no n_tokens")
        if not any(run.agreement):
            lines.append("ew and mw: they need the whole distribution, which `lmdiag run` has")
    return lines


def _not_computed_of_sentences(stimuli: Stimuli, run: Predictions) -> list[str]:
    lines = []
    if stimuli.compared and all(value is None for value in run.n_tokens):
        lines.append("sensitivity_mean: the predictions have no n_tokens")
    if stimuli.diagnostic.has_regions:
        if not any(run.words):
            lines.append(
                "formulas on regions: the predictions have no words, which `lmdiag run` has"
            )
        for each in stimuli.diagnostic.score(stimuli.columns(), vars(run)):
            if each.name == "prediction_accuracy" and (left_out := len(each.left_out)):
                total = len(each.items) + left_out
                lines.append(
                    f"prediction_accuracy: {left_out} of {total} predictions on items read a "
                    "region without a probability"
                )
    return lines
