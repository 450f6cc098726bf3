"""Measures of people's words and shares: the human baseline, and how a model agrees with it."""

from __future__ import annotations

import numpy as np

from lmdiag.measures.registry import register
from lmdiag.measures.scores import (
    Columns,
    Floats,
    Items,
    Scores,
    Trials,
    build_scores,
    float_array,
    number_text,
)


@register(
    "role88",
    spearman="Spearman, log p and cloze",
    pearson="Pearson, log p and cloze",
)
def correlations(trials: Trials) -> list[Scores]:
    """Returns the correlations of the target's log-probability with its cloze probability."""
    if not trials.has("log_prob"):
        return []
    cloze = float_array(trials.rows["target_cloze"])
    return cloze_correlations(trials.ids, trials.log_prob, cloze)


def cloze_correlations(ids: Items, log_prob: Floats, cloze: Floats) -> list[Scores]:
    """Returns Spearman's and Pearson's correlation of log-probability and cloze probability.

    A word with the value NaN is left out. A model's probability of zero has the lowest rank in
    Spearman's correlation, and is left out of Pearson's.

    Args:
        ids: of the words, (n,).
        log_prob: the model's log-probability of each word, (n,).
        cloze: the share of people who gave each word, (n,).
    """
    finite_log_prob = np.where(np.isinf(log_prob), np.nan, log_prob)
    return [
        build_scores("spearman", ids, np.column_stack([log_prob, cloze]), "spearman"),
        build_scores("pearson", ids, np.column_stack([finite_log_prob, cloze]), "pearson"),
    ]


@register("role88", "human_sensitivity", "cloze_difference", is_human=True)
def human(trials: Trials, threshold: float) -> list[Scores]:
    """Returns the human baseline over contrasts, from people's cloze probabilities of the targets.

    human_sensitivity: the good target was given more often than every bad one, with and without a
    threshold of the difference. cloze_difference: the mean of cloze(good) - cloze(bad).
    """
    if "target_cloze" not in trials.rows:
        return []
    cloze = float_array(trials.rows["target_cloze"])
    contrasts = trials.contrasts
    tied = contrasts.are_tied(cloze)
    name = f"human_sensitivity@{number_text(threshold)}"
    return [
        contrasts.share_with_good_highest("human_sensitivity", cloze, tied=tied),
        contrasts.share_with_good_highest(name, cloze, by=threshold, tied=tied),
        contrasts.mean_difference("cloze_difference", cloze),
    ]


def human_shares(rows: Columns) -> Floats | None:
    """Returns the column `human`, people's shares, as numbers, (n,); NaN for a row without one.

    None if there is no such column, and if it has texts or truth values, since it then groups items
    and does not measure people.

    >>> human_shares({"human": [0.2, None]}), human_shares({"human": ["yes", "no"]})
    (array([0.2, nan]), None)
    """
    values = rows.get("human", ())
    if not len(values) or any(isinstance(value, bool) for value in values):
        return None
    try:
        return float_array(values)
    except (TypeError, ValueError):
        return None


@register(
    ("custom", "sentences", "minimal_pairs"), spearman_human="Spearman, shares of model and people"
)
def share_correlation(trials: Trials) -> list[Scores]:
    """Returns Spearman's correlation of a model's shares with people's, over contrasts.

    The model's share of a contrast is the probability of its good row over that of all its rows;
    people's share is the number in the column `human` of the good row. [] without this column.

    Source: the wug tests of the BabyLM challenge (2025).
    """
    shares_of_rows = human_shares(trials.rows)
    if shares_of_rows is None or "contrast" not in trials.rows or not trials.has("log_prob"):
        return []
    contrasts = trials.contrasts
    # the second value is that of the highest bad row
    good_log_prob, _ = contrasts.good_and_highest_bad(trials.log_prob)
    total_log_prob = good_log_prob.copy()  # becomes that of all rows of each contrast
    with np.errstate(invalid="ignore"):  # probabilities of 0 have no share
        bad_log_prob = trials.log_prob[contrasts.bad]
        np.logaddexp.at(total_log_prob, contrasts.contrast_of_bad, bad_log_prob)
    model_shares = np.exp(good_log_prob - total_log_prob)
    people_shares, _ = contrasts.good_and_highest_bad(shares_of_rows)
    values = np.column_stack([model_shares, people_shares])
    return [contrasts.build_scores("spearman_human", values, "spearman")]
