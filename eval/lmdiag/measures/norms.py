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
    build,
    floats,
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
    return cloze_correlations(trials.ids, trials.log_prob, floats(trials.rows["target_cloze"]))


def cloze_correlations(ids: Items, log_prob: Floats, cloze: Floats) -> list[Scores]:
    """Returns Spearman and Pearson of log-probability and cloze probability, over words, (n,) each.

    The values are (n, 2). A probability of zero is left out of Pearson, and has the lowest rank in
    Spearman; NaN is left out.
    """
    finite = np.where(np.isinf(log_prob), np.nan, log_prob)
    return [
        build("spearman", ids, np.column_stack([log_prob, cloze]), "spearman"),
        build("pearson", ids, np.column_stack([finite, cloze]), "pearson"),
    ]


@register("role88", "human_sensitivity", "cloze_difference", is_human=True)
def human(trials: Trials, threshold: float) -> list[Scores]:
    """Returns sensitivity on `target_cloze`, and the mean of cloze(good) - cloze(bad)."""
    if "target_cloze" not in trials.rows:
        return []
    cloze = floats(trials.rows["target_cloze"])
    contrasts = trials.contrasts
    tied = contrasts.are_tied(cloze)
    name = f"human_sensitivity@{number_text(threshold)}"
    return [
        contrasts.verdicts("human_sensitivity", cloze, tied=tied),
        contrasts.verdicts(name, cloze, threshold, tied=tied),
        contrasts.differences("cloze_difference", cloze),
    ]


def human_shares(rows: Columns) -> Floats | None:
    """Returns the column `human` as numbers, (n,); None without it, and where it has other values.

    NaN for a row without a number. A column of texts or truth values is a break-down.
    """
    values = rows.get("human", ())
    try:
        shares = floats(values)
    except (TypeError, ValueError):
        return None
    is_number = len(values) and not any(isinstance(value, bool) for value in values)
    return shares if is_number else None


@register(
    ("custom", "sentences", "minimal_pairs"), spearman_human="Spearman, shares of model and people"
)
def share_correlation(trials: Trials) -> list[Scores]:
    """Returns Spearman's correlation of a model's shares with people's, over contrasts.

    The share of a contrast is the probability of the good row over that of all its rows; people's
    is the number in the column `human` of the good row. Rows without the column give nothing.

    Source: the wug tests of the BabyLM challenge (2025).
    """
    people = human_shares(trials.rows)
    if people is None or "contrast" not in trials.rows or not trials.has("log_prob"):
        return []
    contrasts = trials.contrasts
    good, _ = contrasts.pairs(trials.log_prob)
    total = good.copy()
    with np.errstate(invalid="ignore"):  # probabilities of 0 have no share
        np.logaddexp.at(total, contrasts.bad_of, trials.log_prob[contrasts.bad])
    shares, _ = contrasts.pairs(people)
    values = np.column_stack([np.exp(good - total), shares])
    return [contrasts.build("spearman_human", values, "spearman")]
