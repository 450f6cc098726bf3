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
from lmdiag.results.predictions import ids_text
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

    A figure that is not defined has the value None. Figures of a shuffled setting are means over
    its shuffles, with `sd`, their standard deviation, and `runs`, the number of shuffles.

    Args:
        stimuli: the rows, unperturbed.
        predictions: in the order of the rows; one for each shuffle of a shuffled setting.
        protocol, folds, kind: see `item_scores`.
        scores: measure -> its per-item scores, for each of the predictions; () to compute them.
        model: the model that answered, for the signature; None if it is not known.
    """
    scores = scores or [item_scores(stimuli, part, protocol, folds, kind) for part in predictions]
    figures_of_shuffles = [
        {name: _figure(measure, stimuli.diagnostic) for name, measure in shuffle.items()}
        for shuffle in scores
    ]
    figures = figures_of_shuffles[0]
    if is_shuffled(stimuli.task, predictions[0].perturbation):
        for name in figures:
            # a measure that no item of a shuffle allows is missing in this shuffle
            shuffles = [shuffle[name] for shuffle in figures_of_shuffles if name in shuffle]
            figures[name] = _mean_figure(shuffles)
    shuffle_number = min(part.run for part in predictions)  # 0 but for a single shuffle
    # the first words of sentences: before them stands nothing that a causal model could read
    first_words = [words[0] for part in predictions for words in part.words if words]
    n_without_first = sum(word.log_prob is None and word.n_tokens > 0 for word in first_words)
    # contrasts that are left out, of each measure; the largest number is shown
    equal_contrasts = [measure.equal for shuffle in scores for measure in shuffle.values()]
    line = signature(
        protocol,
        stimuli.fingerprint,
        run=shuffle_number,
        asks_words=stimuli.asks_words,
        model=model,
    )
    return SettingResults(
        measures=figures,
        unscorable=_words_in_state(stimuli.columns(), predictions, "unscorable"),
        signature=line,
        censored=_words_in_state(stimuli.columns(), predictions, "censored"),
        shared_tokens=_words_sharing_tokens(stimuli.columns(), predictions),
        without_first=n_without_first,
        # the first shuffle stands for all: sentences are not shuffled, and all lack the same values
        first_word_contrasts=_n_first_word_contrasts(stimuli.columns(), predictions[0]),
        equal_contrasts=max(equal_contrasts, default=0),
        not_computed=_not_computed(stimuli, predictions[0], protocol, scores[0]),
    )


def _figure(scores: Scores, diagnostic: Diagnostic) -> Figure:
    """Returns the figure of a measure over all items, with the figures of each level in `by`.

    Levels are in the order in which the diagnostic shows them.
    """
    by: dict[str, dict[str, Figure]] = {}
    for column, levels in scores.levels.items():
        by[column] = {}
        for level in diagnostic.levels_in_order(column, levels):
            by[column][level] = _figure(scores.at(column, level), diagnostic)
    estimate = vars(estimate_of(scores, diagnostic))  # value, n, ci_low and ci_high
    return Figure(
        **{name: None if np.isnan(number) else number for name, number in estimate.items()},
        chance=_chance(scores),
        n_tied=None if scores.tied is None else int(scores.tied.sum()),
        not_defined=scores.not_defined or None,
        statistic=scores.statistic,
        by=by,
    )


def _chance(scores: Scores) -> float | None:
    """Returns the mean chance level of the items that are not tied; None without chance levels.

    The test against chance is over the items that are not tied, too. If all items are tied, the
    mean is over all of them.
    """
    if scores.chance is None or not len(scores.chance):
        return None
    chance = scores.chance
    if scores.tied is not None and not scores.tied.all():
        chance = chance[~scores.tied]
    return float(np.mean(chance))


def _mean_figure(shuffles: Sequence[Figure]) -> Figure:
    """Returns the figure of a shuffled setting, from the figures of its shuffles.

    Value, chance level and the bounds of the interval are means over the shuffles; the interval is
    therefore that over the items of a typical shuffle. `sd`, the standard deviation of the values
    (population), says how far the order of the words changes the figure. `n` is the smallest of the
    shuffles; `n_tied` is the mean, rounded down. Levels of break-downs get means in the same way:
    shuffles have the same rows, and therefore the levels of the first one.
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
    means["by"] = {}
    for by, levels in shuffles[0].by.items():
        means["by"][by] = {}
        for level in levels:
            figures = [shuffle.at(by, level) for shuffle in shuffles]
            defined = [figure for figure in figures if figure is not None]
            means["by"][by][level] = _mean_figure(defined)
    # why one shuffle has no value does not hold for all of them
    return replace(shuffles[0], **means, runs=len(shuffles), not_defined=None)


def select_measures(asked: Sequence[str], available: Iterable[str]) -> list[str]:
    """Returns the available measures that the names `asked` stand for, in the order of `available`.

    `accuracy` stands for every `accuracy@k`, and `sensitivity`, which is a measure itself, for this
    one alone. `BadInput` if a name stands for no measure.

    >>> select_measures(["accuracy"], ["accuracy@1", "accuracy@5", "sensitivity"])
    ['accuracy@1', 'accuracy@5']
    """
    choices = list(available)
    chosen: set[str] = set()
    for name in asked:
        matches = [measure for measure in choices if measure == name]
        if not matches:
            matches = [measure for measure in choices if measure.startswith(f"{name}@")]
        if not matches:
            advice = f"{suggest(name, choices)}: choose from {', '.join(choices)}"
            raise BadInput(f"there is no measure {name}{advice}")
        chosen.update(matches)
    return [measure for measure in choices if measure in chosen]


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
        stimuli, protocol, folds, kind: see `evaluate`.
        runs: the predictions, with None for the rows that have none.
        missing: ids of the rows that have no prediction.
        asked: names of measures as `select_measures` takes them; () for all that can be computed.
        where: names the predictions in messages.

    Raises:
        BadInput: a measure that is asked for cannot be computed, or no measure at all can.
    """
    # all measures on the rows that have predictions, and which of them lose items
    evaluated = evaluate(stimuli, runs, protocol, folds, kind)
    reasons = list(evaluated.not_computed)
    names = list(evaluated.measures)
    incomplete = set[str]()  # measures that lose items, since a row has no prediction
    if missing or asked:
        n_with_all_rows = _n_items_of_measures(stimuli, (), protocol, kind)
        n_without_missing = _n_items_of_measures(stimuli, missing, protocol, kind)
        incomplete = {
            name for name, n in n_with_all_rows.items() if n > n_without_missing.get(name, 0)
        }
        # a measure may be asked for that only all rows would allow
        names = list(dict.fromkeys([*n_with_all_rows, *names]))
    if incomplete:
        names_text = ", ".join(name for name in names if name in incomplete)
        reasons.insert(0, f"{names_text}: {ids_text(missing)} missing, and they need these rows")
    # the figures of those that are asked for and lose no item
    chosen = select_measures(asked, names) if asked else names
    complete = {
        name: figure
        for name, figure in evaluated.measures.items()
        if name in chosen and name not in incomplete
    }
    not_computable = [name for name in chosen if name not in complete]
    # without any figure, or with those of people alone, nothing is known of the model
    has_model_figures = not all(measures.is_human(name) for name in complete)
    if (asked and not_computable) or not has_model_figures:
        problem = f"{', '.join(not_computable)} cannot" if asked else "no measure can"
        raise BadInput(f"{where}: {problem} be computed: {'; '.join(reasons)}")
    unscorable = [word for word in evaluated.unscorable if word.id not in missing]
    if asked:  # what else cannot be computed was not asked for
        reasons = []
    return replace(evaluated, measures=complete, unscorable=unscorable, not_computed=reasons)


def _n_items_of_measures(
    stimuli: Stimuli, missing: Collection[str], protocol: Protocol, kind: Kind
) -> dict[str, int]:
    """Returns measure -> its number of items if all rows but the missing ones have a prediction.

    The measures are computed on invented predictions, and their items are counted: so the code of a
    measure alone decides which items it leaves out.

    Args:
        stimuli: the rows.
        missing: ids of the rows that have no prediction.
        protocol, kind: see `item_scores`.
    """
    rows = stimuli.columns()
    is_present = [row_id not in missing for row_id in rows["id"]]
    # the values do not matter, as long as they are possible
    words: list[tuple[WordSpan, ...] | None] = []
    if stimuli.diagnostic.has_regions:  # each region as one word
        for present, regions in zip(is_present, rows["regions"], strict=True):
            spans = [WordSpan(region["start"], region["end"], -1.0, 1) for region in regions]
            words.append(tuple(spans) if present else None)
    one_if_present = [1 if present else None for present in is_present]
    predictions = Predictions(
        id=list(rows["id"]), log_prob=[-20.0 if present else None for present in is_present],
        rank=one_if_present, n_tokens=one_if_present,
        top_words=[["-"] * protocol.top if present else None for present in is_present],
        top_log_probs=[None] * len(is_present),
        words=words,
    )  # fmt: skip
    scores = item_scores(stimuli, predictions, protocol, kind=kind)
    return {name: len(measure.items) for name, measure in scores.items()}


def _words_in_state(
    rows: Columns, predictions: Sequence[Predictions], state: WordState
) -> list[UnscoredWord]:
    """Returns the rows whose word is in a state without a log-probability, each once.

    A row with a blank has its target as the word. A sentence has the words that the tokenizer
    cannot represent, as "naïve, café", or its beginning if there are no such words.

    Args:
        rows: the columns by name.
        predictions: one for each shuffle.
        state: "unscorable" or "censored".
    """
    # predictions with neither a log-probability nor a number of tokens say nothing of any word
    informative = [
        part
        for part in predictions
        if any(value is not None for value in (*part.log_prob, *part.n_tokens))
    ]
    positions: set[int] = set()
    for part in informative:
        positions.update(i for i in range(len(part.id)) if part.state(i) == state)
    unscored = []
    for i in sorted(positions):
        if "target" in rows:
            name = rows["target"][i]
        else:
            sentence = rows["sentence"][i]
            spans = [span for part in informative if part.words for span in part.words[i] or ()]
            unscored_spans = [span for span in spans if span.log_prob is None and not span.n_tokens]
            words = dict.fromkeys(sentence[span.start : span.end] for span in unscored_spans)
            name = truncated(", ".join(words) or sentence)
        unscored.append(UnscoredWord(rows["id"][i], name))
    return unscored


def _words_sharing_tokens(rows: Columns, predictions: Sequence[Predictions]) -> list[UnscoredWord]:
    """Returns the words of sentences that have no token of their own, with the id of the row.

    Each is shown after the word before it, whose last token covers both, for example "is a".
    """
    words_of_rows = predictions[0].words  # all shuffles have the same sentences
    shared = []
    for row, spans in enumerate(words_of_rows):
        for words in measures.words_sharing_tokens(rows["sentence"][row], spans or ()):
            shared.append(UnscoredWord(rows["id"][row], truncated(words)))
    return shared


def _n_first_word_contrasts(rows: Columns, predictions: Predictions) -> int:
    """Returns the number of contrasts whose sentences differ in a first word without probability.

    A causal model that reads nothing before a sentence gives its first word no probability. The
    sums over the sentences leave this word out, and then do not compare what differs.
    """
    if "contrast" not in rows:
        return 0
    first_words_of: dict[str, set[str]] = {}  # by contrast
    for row, words in enumerate(predictions.words):
        if words and words[0].log_prob is None and words[0].n_tokens:
            first_word = rows["sentence"][row][words[0].start : words[0].end]
            first_words_of.setdefault(rows["contrast"][row], set()).add(first_word)
    return sum(len(first_words) > 1 for first_words in first_words_of.values())


def _not_computed(
    stimuli: Stimuli, predictions: Predictions, protocol: Protocol, scores: Mapping[str, Scores]
) -> list[str]:
    """Returns a line for each measure that rows and predictions do not allow to compute, and why.

    For example, "tse: the predictions have no n_tokens".

    Args:
        stimuli: the rows.
        predictions: of a run, or of another program, whose columns may be None in all rows.
        protocol: has the ranks k of accuracy@k.
        scores: the measures that were computed.
    """
    if predictions.labels:  # choices have no other measures
        return []

    def has_values(column: Sequence[object]) -> bool:
        return any(value is not None for value in column)

    # what measures of probabilities need
    has_log_probs = has_values(predictions.log_prob)
    has_n_tokens = has_values(predictions.n_tokens)
    lines = []
    if not has_log_probs and not has_n_tokens:
        lines.append("all measures of probabilities: the predictions have no log_prob")
    if not has_log_probs and has_n_tokens:
        lines.append("all measures of probabilities: no row has one")
    has_words = stimuli.diagnostic.asks == "word"
    if not has_words and stimuli.compared and not has_n_tokens:
        lines.append("sensitivity_mean: the predictions have no n_tokens")
    if stimuli.diagnostic.has_regions and not any(predictions.words):
        lines.append("formulas on regions: the predictions have no words, which `lmdiag run` has")
    # items that lack a probability
    suites = scores.get("prediction_accuracy")
    if suites and len(suites.left_out):
        n_left_out = len(suites.left_out)
        n_items = n_left_out + len(suites.items)
        reads = f"{n_left_out} of {n_items} predictions on items read"
        lines.append(f"prediction_accuracy: {reads} a region without a probability")
    ranks = zip(predictions.log_prob, predictions.rank, strict=True)
    n_unranked = sum(log_prob is not None and rank is None for log_prob, rank in ranks)
    if has_words and not stimuli.compared and n_unranked > 0:
        lines.append(
            f"rank: {n_unranked} of {len(predictions.id)} words have none; in unit word and on a "
            "server, only words of the top list have one"
        )
    # what measures of top words and of verbs need
    if has_words and not has_values(predictions.top_words):
        lines.append("all measures of the top words: the predictions have no top_words")
    if has_words:
        lines += short_list_lines(stimuli.columns(), predictions, protocol.k)
    if stimuli.diagnostic.has_verbs:
        if not has_n_tokens:
            lines.append("tse: the predictions have no n_tokens")
        if not any(predictions.agreement):
            lines.append("ew and mw: they need the whole distribution, which only a local run has")
    return lines


def short_list_lines(rows: Columns, predictions: Predictions, k: Sequence[int]) -> list[str]:
    """Returns a line on the accuracy@k for which a list of top words is too short; [] without any.

    For example, ["accuracy@5: role88-1 has 3 top words only; each row needs 5"].

    Args:
        rows: the columns by name.
        predictions: in the order of the rows.
        k: the ranks up to which top words count.
    """
    lengths = []  # of each row with an expected word: the length of its list, and its number
    for row in measures.rows_with_expected(rows):
        top_words = predictions.top_words[row]
        if top_words is not None:
            lengths.append((len(top_words), row))
    if not lengths:
        return []
    n, row = min(lengths)
    names = [f"accuracy@{rank}" for rank in k if rank > n]
    if not names:
        return []
    noun = "top word" if n == 1 else "top words"
    shortest = f"{rows['id'][row]} has {n} {noun} only"
    return [f"{', '.join(names)}: {shortest}; each row needs {max(k)}"]
