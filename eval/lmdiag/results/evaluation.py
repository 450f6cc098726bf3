"""From rows and predictions to figures: the only way, for runs, `score` and the metric."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import measures
from lmdiag.asking.protocol import Predictions, Protocol
from lmdiag.results.item_scores import MeasureScores, estimate_of, item_scores
from lmdiag.results.predictions import ids
from lmdiag.results.results import Figure, SettingResults, UnscoredWord
from lmdiag.results.signatures import signature
from lmdiag.stimuli.perturbations import is_shuffled
from lmdiag.text import suggest, truncated
from lmdiag.types import BadInput, Fold, Kind, ModelInfo, WordSpan, WordState

if TYPE_CHECKING:
    from lmdiag.diagnostics import Diagnostic
    from lmdiag.measures import Columns, Scores
    from lmdiag.stimuli import Stimuli

_AVERAGED = ("value", "ci_low", "ci_high", "chance")
"""Fields of the figure of a shuffled setting that are means over its shuffles."""


def evaluate(
    stimuli: Stimuli,
    predictions: Sequence[Predictions],
    protocol: Protocol,
    folds: Collection[Fold] = (),
    kind: Kind = "masked",
    scores: Sequence[MeasureScores] = (),
    model: ModelInfo | None = None,
) -> SettingResults:
    """Returns the figures of one task in one setting, with the signature of these rows.

    Undefined is None. A shuffled setting has means over its shuffles, with `sd` and `runs`.

    Args:
        stimuli: the rows, unperturbed.
        predictions: in the order of the rows; one for each shuffle of a shuffled setting.
        protocol, folds, kind: see `item_scores`.
        scores: of these predictions, where they are known.
        model: that answered, for the signature; None if it is not known.
    """
    scores = scores or [item_scores(stimuli, part, protocol, folds, kind) for part in predictions]
    figures = [
        {name: _figure(measure, stimuli.diagnostic) for name, measure in shuffle.items()}
        for shuffle in scores
    ]
    measures = figures[0]
    if is_shuffled(stimuli.task, predictions[0].perturbation):
        measures = {
            name: _mean_figure([x[name] for x in figures if name in x]) for name in measures
        }
    shuffle_number = min(part.run for part in predictions)  # 0 but for a single shuffle
    first_words = [words[0] for part in predictions for words in part.words if words]
    line = signature(
        protocol,
        stimuli.fingerprint,
        run=shuffle_number,
        asks_words=stimuli.asks_words,
        model=model,
    )
    return SettingResults(
        measures,
        _words_in_state(stimuli.columns(), predictions, "unscorable"),
        line,
        censored=_words_in_state(stimuli.columns(), predictions, "censored"),
        shared_tokens=_sharing_tokens(stimuli.columns(), predictions),
        without_first=sum(word.log_prob is None and word.n_tokens > 0 for word in first_words),
        first_word_contrasts=_first_word_contrasts(stimuli.columns(), predictions[0]),
        equal_contrasts=max((x.equal for shuffle in scores for x in shuffle.values()), default=0),
        not_computed=_not_computed(stimuli, predictions[0], protocol, scores[0]),
    )


def _figure(scores: Scores, diagnostic: Diagnostic) -> Figure:
    """Returns the figure of a measure with its break-downs, their levels in order."""
    estimate = vars(estimate_of(scores, diagnostic))
    n_tied = None if scores.tied is None else int(scores.tied.sum())
    by = {
        column: {
            level: _figure(scores.at(column, level), diagnostic)
            for level in diagnostic.levels_in_order(column, levels)
        }
        for column, levels in scores.levels.items()
    }
    return Figure(
        **{name: None if np.isnan(value) else value for name, value in estimate.items()},
        chance=_chance(scores),
        n_tied=n_tied,
        not_defined=scores.not_defined or None,
        statistic=scores.statistic,
        by=by,
    )


def _chance(scores: Scores) -> float | None:
    """The mean chance level of the items that are tested: those that are not tied, if there are."""
    if scores.chance is None or not len(scores.chance):
        return None
    chance = scores.chance
    if scores.tied is not None and not scores.tied.all():
        chance = chance[~scores.tied]
    return float(np.mean(chance))


def _mean_figure(shuffles: Sequence[Figure]) -> Figure:
    """Returns the figure of a shuffled setting: means over its shuffles, with standard deviation.

    The bounds are means of the bounds, an interval over the items of a typical shuffle. `sd`
    (population) says how far the order of the words changes the figure. n is the smallest of the
    shuffles; n_tied is the mean, rounded down.
    """
    means: dict[str, Any] = {}
    for field in _AVERAGED:
        values = [figure[field] for figure in shuffles]
        means[field] = None if None in values else statistics.fmean(values)
    if means["value"] is not None:
        means["sd"] = statistics.pstdev(figure["value"] for figure in shuffles)
    means["n"] = min(figure.n or 0 for figure in shuffles)
    if shuffles[0].n_tied is not None:
        means["n_tied"] = int(statistics.fmean(figure.n_tied or 0 for figure in shuffles))
    means["by"] = {
        by: {level: _mean_level(shuffles, by, level) for level in levels}
        for by, levels in shuffles[0].by.items()
    }
    return replace(shuffles[0], **means, runs=len(shuffles), not_defined=None)


def _mean_level(shuffles: Sequence[Figure], by: str, level: str) -> Figure:
    """The mean over the shuffles that have a figure at a level of a break-down."""
    figures = [shuffle.at(by, level) for shuffle in shuffles]
    return _mean_figure([figure for figure in figures if figure is not None])


def chosen_measures(asked: Sequence[str], available: Iterable[str]) -> list[str]:
    """Returns the measures that some names stand for, in their own order.

    `accuracy` stands for every `accuracy@k`, and `sensitivity`, which is a measure itself, for this
    one alone. `BadInput` if a name stands for no measure.
    """
    names = list(available)
    chosen: set[str] = set()
    for name in asked:
        matches = {measure for measure in names if measure == name}
        matches = matches or {measure for measure in names if measure.startswith(f"{name}@")}
        if not matches:
            choices = f"{suggest(name, names)}: choose from {', '.join(names)}"
            raise BadInput(f"there is no measure {name}{choices}")
        chosen |= matches
    return [name for name in names if name in chosen]


def evaluate_complete(
    stimuli: Stimuli,
    runs: Sequence[Predictions],
    protocol: Protocol,
    folds: Collection[Fold],
    kind: Kind,
    *,
    missing: Sequence[str],
    asked: Sequence[str],
    where: object,
) -> SettingResults:
    """Returns the figures of the measures that need no missing prediction; see `evaluate`.

    Args:
        missing: ids of the rows that have no prediction.
        asked: see `chosen_measures`; all if empty. `BadInput` if one cannot be computed, or none.
        where: names the predictions in messages.
    """
    measured = evaluate(stimuli, runs, protocol, folds, kind)
    reasons = [*measured.not_computed]
    names = [*measured.measures]
    incomplete = set[str]()
    if missing or asked:
        n_all = _n_items_of_measures(stimuli, (), protocol, kind)
        n_present = _n_items_of_measures(stimuli, missing, protocol, kind)
        incomplete = {name for name, n in n_all.items() if n > n_present.get(name, 0)}
        names = [*dict.fromkeys([*n_all, *names])]
    if incomplete:
        needing = ", ".join(name for name in names if name in incomplete)
        reasons.insert(0, f"{needing}: {ids(missing)} missing, and they need these rows")
    chosen = chosen_measures(asked, names) if asked else names
    complete = {
        name: figure
        for name, figure in measured.measures.items()
        if name in chosen and name not in incomplete
    }
    not_computable = [name for name in chosen if name not in complete]
    if (asked and not_computable) or all(map(measures.is_human, complete)):
        problem = f"{', '.join(not_computable)} cannot" if asked else "no measure can"
        raise BadInput(f"{where}: {problem} be computed: {'; '.join(reasons)}")
    unscorable = [word for word in measured.unscorable if word.id not in missing]
    reasons = [] if asked else reasons
    return replace(measured, measures=complete, unscorable=unscorable, not_computed=reasons)


def _n_items_of_measures(
    stimuli: Stimuli, missing: Collection[str], protocol: Protocol, kind: Kind
) -> dict[str, int]:
    """Returns measure -> its number of items if all rows but the missing ones have a prediction.

    They are counted on invented predictions: what a measure leaves out is decided by its own code
    alone.
    """
    rows = stimuli.columns()
    regions = rows["regions"] if stimuli.diagnostic.has_regions else []
    spans = [tuple(WordSpan(r["start"], r["end"], -1.0, 1) for r in parts) for parts in regions]
    one_if_present = [None if row in missing else 1 for row in rows["id"]]
    predictions = Predictions(
        id=list(rows["id"]), log_prob=[is_present and -20.0 for is_present in one_if_present],
        rank=one_if_present, n_tokens=one_if_present,
        top_words=[["-"] * protocol.top if x else None for x in one_if_present],
        top_log_probs=[None] * len(one_if_present),
        words=[words if x else None for x, words in zip(one_if_present, spans, strict=False)],
    )  # fmt: skip
    scores = item_scores(stimuli, predictions, protocol, kind=kind)
    return {name: len(measure.items) for name, measure in scores.items()}


def _words_in_state(
    rows: Columns, predictions: Sequence[Predictions], state: WordState
) -> list[UnscoredWord]:
    """The rows whose word is in a state without a log-probability, each once.

    Of a sentence, the words are named that the tokenizer cannot represent, or its beginning.
    Predictions with neither a log-probability nor a number of tokens say nothing of any word.
    """
    informative = [part for part in predictions if {*part.log_prob, *part.n_tokens} - {None}]
    unscored = []
    positions = {i for part in informative for i in range(len(part.id)) if part.state(i) == state}
    for i in sorted(positions):
        name = rows["target" if "target" in rows else "sentence"][i]
        if "target" not in rows:
            spans = [span for part in informative if part.words for span in part.words[i] or ()]
            unscored_spans = [span for span in spans if span.log_prob is None and not span.n_tokens]
            words = dict.fromkeys(name[span.start : span.end] for span in unscored_spans)
            name = truncated(", ".join(words) or name)
        unscored.append(UnscoredWord(rows["id"][i], name))
    return unscored


def _sharing_tokens(rows: Columns, predictions: Sequence[Predictions]) -> list[UnscoredWord]:
    """The words of sentences without a token of their own; see `words_sharing_tokens`."""
    first = predictions[0]  # all shuffles have the same sentences
    return [
        UnscoredWord(rows["id"][row], truncated(words))
        for row, spans in enumerate(first.words)
        for words in measures.words_sharing_tokens(rows["sentence"][row], spans or ())
    ]


def _first_word_contrasts(rows: Columns, predictions: Predictions) -> int:
    """The contrasts whose sentences differ in first words that have no probability."""
    if "contrast" not in rows:
        return 0
    first_words: dict[str, set[str]] = {}
    for row, words in enumerate(predictions.words):
        if words and words[0].log_prob is None and words[0].n_tokens:
            first = rows["sentence"][row][words[0].start : words[0].end]
            first_words.setdefault(rows["contrast"][row], set()).add(first)
    return sum(len(different) > 1 for different in first_words.values())


def _not_computed(
    stimuli: Stimuli, predictions: Predictions, protocol: Protocol, scores: Mapping[str, Scores]
) -> list[str]:
    """A line for each measure that rows and predictions do not allow to compute, and why."""
    if predictions.labels:  # choices have no other measures
        return []
    has_words = stimuli.diagnostic.asks == "word"
    has_regions = stimuli.diagnostic.has_regions
    has_verbs = stimuli.diagnostic.has_verbs
    is_compared = stimuli.compared
    columns = ("log_prob", "n_tokens", "top_words")
    lacks = {name for name in columns if not any(x is not None for x in getattr(predictions, name))}
    ranks = zip(predictions.log_prob, predictions.rank, strict=True)
    n_unranked = sum(p is not None and rank is None for p, rank in ranks)
    suites = scores.get("prediction_accuracy")
    n_left_out = len(suites.left_out) if suites else 0
    n_items = n_left_out + len(suites.items) if suites else 0
    too_short = too_short_lists(stimuli.columns(), predictions, protocol.k) if has_words else []
    reasons = {
        "all measures of probabilities: the predictions have no log_prob": (
            "log_prob" in lacks and "n_tokens" in lacks
        ),
        "all measures of probabilities: no row has one": (
            "log_prob" in lacks and "n_tokens" not in lacks
        ),
        "sensitivity_mean: the predictions have no n_tokens": (
            not has_words and is_compared and "n_tokens" in lacks
        ),
        "formulas on regions: the predictions have no words, which `lmdiag run` has": (
            has_regions and not any(predictions.words)
        ),
        f"prediction_accuracy: {n_left_out} of {n_items} predictions on items read a region "
        "without a probability": n_left_out > 0,
        f"rank: {n_unranked} of {len(predictions.id)} words have none; in unit word and on a "
        "server, only words of the top list have one": (
            has_words and not is_compared and n_unranked > 0
        ),
        "all measures of the top words: the predictions have no top_words": (
            has_words and "top_words" in lacks
        ),
        **dict.fromkeys(too_short, True),
        "tse: the predictions have no n_tokens": has_verbs and "n_tokens" in lacks,
        "ew and mw: they need the whole distribution, which only a local run has": (
            has_verbs and not any(predictions.agreement)
        ),
    }
    return [line for line, applies in reasons.items() if applies]


def too_short_lists(rows: Columns, predictions: Predictions, k: Sequence[int]) -> list[str]:
    """Returns a line for the accuracy@k that the lists of top words are too short for, if any."""
    lists = [(predictions.top_words[row], row) for row in measures.rows_with_expected(rows)]
    lengths = [(len(words), row) for words, row in lists if words is not None]
    n, row = min(lengths, default=(max(k), 0))
    names = ", ".join(f"accuracy@{rank}" for rank in k if rank > n)
    shortest = f"{rows['id'][row]} has {n} top word{'s' if n != 1 else ''} only"
    return [f"{names}: {shortest}; each row needs {max(k)}"] if names else []
