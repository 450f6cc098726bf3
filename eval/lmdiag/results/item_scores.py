"""The value of every item in every measure, which follows from rows and predictions.

Figures are estimates over these scores, a comparison joins those of two runs on the item, and
tables, lists and charts of items join them with the rows and the predictions. They are computed
when they are asked for (`Run.scores_of`) and stored nowhere: a stored copy could contradict the
predictions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag.asking.protocol import Predictions, Protocol
from lmdiag.measures import MeasureName, is_human, is_pooled
from lmdiag.measures.scores import Flags, Floats, Scores, object_array
from lmdiag.stats import MEANS, Estimate, estimate
from lmdiag.stimuli.perturbations import NONE, PerturbedContexts
from lmdiag.types import BadInput, Fold, Kind

if TYPE_CHECKING:
    from lmdiag.diagnostics import Diagnostic
    from lmdiag.stimuli import Stimuli

MeasureScores = Mapping[str, Scores]
"""Measure -> its per-item scores."""


def item_scores(
    stimuli: Stimuli,
    predictions: Predictions,
    protocol: Protocol,
    folds: Collection[Fold] = (),
    kind: Kind = "masked",
) -> dict[str, Scores]:
    """Returns measure -> its per-item scores; of perturbed rows, without the human baseline.

    Args:
        stimuli: the rows, unperturbed.
        predictions: of them, in the order of the rows; otherwise `BadInput` is raised.
        protocol: of which `k`, `threshold` and, in shuffled settings, `seed` are used.
        folds: differences between words that do not count, see `lmdiag.measures.fold_word`.
        kind: of the model; a causal model saw the left context alone.
    """
    is_perturbed = predictions.perturbation != NONE
    rows: dict[str, Sequence[Any]] = dict(stimuli.columns())
    if is_perturbed:
        rows["context"] = PerturbedContexts(
            stimuli, predictions.perturbation, predictions.run, protocol.seed
        )
    if list(rows["id"]) != predictions.id:
        raise BadInput(
            f"predictions of {stimuli.task} are not in the order of its rows: "
            "align them by `lmdiag.results.predictions.align`"
        )
    all_scores = stimuli.diagnostic.score(
        rows, vars(predictions), k=protocol.k, threshold=protocol.threshold, folds=folds,
        left_only=kind == "causal", levels=stimuli.levels,
    )  # fmt: skip
    return {
        scores.name: scores for scores in all_scores if not (is_perturbed and is_human(scores.name))
    }


def estimate_of(scores: Scores, diagnostic: Diagnostic) -> Estimate:
    """Returns value, n and interval of a measure.

    The bounds of the interval are NaN for a mean over fewer items than the diagnostic asks for, and
    for pooled measures, which are over parts of items: these depend on each other.
    """
    estimate_of_items = estimate(scores.values, scores.statistic)
    is_mean = scores.statistic in MEANS
    has_few_items = is_mean and len(scores.items) < diagnostic.interval_from
    if is_pooled(scores.name) or has_few_items:
        return replace(estimate_of_items, ci_low=np.nan, ci_high=np.nan)
    return estimate_of_items


def without_curves(scores: MeasureScores) -> dict[str, Scores]:
    """Returns the measures that are not points of curves over cut-offs, as `ew@top=0.1` is."""
    return {
        name: measure for name, measure in scores.items() if not MeasureName.of(name).is_curve_point
    }


def mean_scores(shuffles: Sequence[MeasureScores]) -> MeasureScores:
    """Returns measure -> the mean scores over shuffles, of the items that all shuffles have.

    The mean of an item leaves out the shuffles in which it is tied; if it is tied in all of them,
    its mean is 0, and it is tied.

    Args:
        shuffles: measure -> its scores, for each shuffle.
    """
    if not shuffles:
        return {}
    if len(shuffles) == 1:
        return shuffles[0]
    means = {}
    for name, first_scores in shuffles[0].items():
        scores_of_shuffles = [scores[name] for scores in shuffles if name in scores]
        items, values = on_common_items(scores_of_shuffles)
        # values of 0 and 1 are a proportion; their means over shuffles are shares in between
        is_proportion = first_scores.statistic == "proportion"
        statistic = "share" if is_proportion else first_scores.statistic
        if first_scores.tied is None:
            means[name] = Scores(name, object_array(items), np.mean(values, axis=0), statistic)
            continue
        # a row per shuffle, a column per item
        is_tied = np.zeros((len(scores_of_shuffles), len(items)), dtype=bool)
        for shuffle, scores in enumerate(scores_of_shuffles):
            tied_items = set(scores.tied_items)
            is_tied[shuffle] = [item in tied_items for item in items]
        n_untied = np.maximum((~is_tied).sum(axis=0), 1)  # at least 1, since it is a divisor
        mean = np.where(is_tied, 0.0, values).sum(axis=0) / n_untied
        always_tied: Flags = np.logical_and.reduce(is_tied, axis=0)
        means[name] = Scores(name, object_array(items), mean, statistic, tied=always_tied)
    return means


def on_common_items(scores: Sequence[Scores]) -> tuple[list[str], list[Floats]]:
    """Returns the items that all of several scores have, and the values of each on these items.

    The items are in the order of the first scores. For example, scores with the items a, b and c,
    and others with c and a, give ["a", "c"] and two arrays of two values.
    """
    first_items = scores[0].items
    if all(np.array_equal(part.items, first_items) for part in scores):
        return list(first_items), [part.values for part in scores]
    positions = [{item: i for i, item in enumerate(part.items)} for part in scores]
    items = [item for item in first_items if all(item in position for position in positions)]
    values = []
    for part, position in zip(scores, positions, strict=True):
        rows = [position[item] for item in items]
        values.append(part.values[rows])
    return items, values
