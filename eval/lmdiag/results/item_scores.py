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
    rows: dict[str, Sequence[Any]] = {**stimuli.columns()}
    if is_perturbed:
        setting = predictions.perturbation, predictions.run, protocol.seed
        rows["context"] = PerturbedContexts(stimuli, *setting)
    if list(rows["id"]) != predictions.id:
        raise BadInput(
            f"predictions of {stimuli.task} are not in the order of its rows: "
            "align them by `lmdiag.results.predictions.align`"
        )
    computed = stimuli.diagnostic.score(
        rows, vars(predictions), k=protocol.k, threshold=protocol.threshold, folds=folds,
        left_only=kind == "causal", levels=stimuli.levels,
    )  # fmt: skip
    return {
        scores.name: scores for scores in computed if not (is_perturbed and is_human(scores.name))
    }


def estimate_of(scores: Scores, diagnostic: Diagnostic) -> Estimate:
    """Returns value, n and interval of a measure, NaN where the diagnostic gives no interval."""
    estimated = estimate(scores.values, scores.statistic)
    is_mean = scores.statistic in MEANS
    is_small = is_mean and len(scores.items) < diagnostic.interval_from
    if is_pooled(scores.name) or is_small:
        return replace(estimated, ci_low=np.nan, ci_high=np.nan)
    return estimated


def without_curves(scores: MeasureScores) -> dict[str, Scores]:
    """Returns the measures that are not points of curves over cut-offs."""
    return {
        name: measure for name, measure in scores.items() if not MeasureName.of(name).is_curve_point
    }


def mean_scores(shuffles: Sequence[MeasureScores]) -> MeasureScores:
    """Returns measure -> the mean over shuffles of each item that all of them have.

    An item is tied where it is tied in all of them; those in which it is tied are left out of its
    mean.
    """
    if len(shuffles) < 2:
        return shuffles[0] if shuffles else {}
    means = {}
    for name, of_first in shuffles[0].items():
        scores_of_shuffles = [scores[name] for scores in shuffles if name in scores]
        items, values = on_common_items(scores_of_shuffles)
        statistic = "share" if of_first.statistic == "proportion" else of_first.statistic
        if of_first.tied is None:
            means[name] = Scores(name, object_array(items), np.mean(values, axis=0), statistic)
            continue
        tied_items = [set(scores.tied_items) for scores in scores_of_shuffles]
        tied = np.array([[item in of for item in items] for of in tied_items], dtype=bool)
        n_untied = np.maximum((~tied).sum(axis=0), 1)
        mean = np.where(tied, 0.0, values).sum(axis=0) / n_untied
        always_tied: Flags = np.logical_and.reduce(tied, axis=0)
        means[name] = Scores(name, object_array(items), mean, statistic, tied=always_tied)
    return means


def on_common_items(several: Sequence[Scores]) -> tuple[list[str], list[Floats]]:
    """Returns the items that all scores have, in the order of the first, and the values of each."""
    in_order = several[0].items
    if all(np.array_equal(scores.items, in_order) for scores in several):
        return list(in_order), [scores.values for scores in several]
    positions_of_item = [{item: i for i, item in enumerate(scores.items)} for scores in several]
    items = [item for item in in_order if all(item in positions for positions in positions_of_item)]
    rows_of = [[positions[item] for item in items] for positions in positions_of_item]
    return items, [scores.values[rows] for scores, rows in zip(several, rows_of, strict=True)]
