"""Measures that compare the rows of a contrast, for models and for the human baseline."""

from __future__ import annotations

import numpy as np

from lmdiag.measures.scores import Scores, build, floats, number_text
from lmdiag.measures.trials import Trials, higher

BOOST = 0.01
"""Smallest difference in probability that counts for within_category_boost."""


def sensitivity(trials: Trials, threshold: float) -> list[Scores]:
    """Returns sensitivity and sensitivity@threshold, over contrasts.

    sensitivity: the good row is more probable than every bad row; sensitivity@t: more probable by
    more than t, a difference of probabilities. A contrast with an unscorable row is left out.
    Without a threshold log-probabilities are compared, which is equivalent and does not make ties
    of very small probabilities.

    A model that guesses has a sensitivity of 1 / number of rows of a contrast: 1/2 with one bad
    row, 1/3 with two. With a threshold there is no chance level: it depends on how the model
    spreads its probability over the whole vocabulary.

    Source: Ettinger (2020), tables 5, 9, 12 and 14; t = 0.01 in its section 7.2.
    """
    if "contrast" not in trials.rows or not trials.has("log_prob"):
        return []
    contrasts = trials.contrasts
    plain = higher(*contrasts.pairs(trials.log_prob))
    above = higher(*contrasts.pairs(np.exp(trials.log_prob)), by=threshold)
    return [
        contrasts.build("sensitivity", plain, chance=contrasts.chance),
        contrasts.build(f"sensitivity@{number_text(threshold)}", above),
    ]


def human(trials: Trials, threshold: float) -> list[Scores]:
    """Returns the human sensitivity on rows with a cloze probability of their targets.

    The same comparison as for a model, on `target_cloze` instead of the probability of a model; and
    `cloze_difference`, the mean of cloze(good) - cloze(bad). Rows without the column give nothing.
    """
    if "target_cloze" not in trials.rows:
        return []
    contrasts = trials.contrasts
    good, bad = contrasts.pairs(floats(trials.rows["target_cloze"]))
    return [
        contrasts.build("human_sensitivity", higher(good, bad), chance=contrasts.chance),
        contrasts.build(
            f"human_sensitivity@{number_text(threshold)}", higher(good, bad, by=threshold)
        ),
        contrasts.build("cloze_difference", good - bad, "mean"),
    ]


def probability_difference(trials: Trials) -> list[Scores]:
    """Returns the mean of p(good) - p(bad) over contrasts, to compare with `cloze_difference`.

    The bad row is the most probable one where there are several.
    """
    if not trials.has("log_prob"):
        return []
    good, bad = trials.contrasts.pairs(np.exp(trials.log_prob))
    return [trials.contrasts.build("probability_difference", good - bad, "mean")]


def correlations(trials: Trials) -> list[Scores]:
    """Returns Spearman and Pearson of the target's log-probability with its cloze probability.

    Over rows; the values are (n, 2), log-probability in nats. A probability of zero has no finite
    log-probability, so such rows are left out of Pearson, and have the lowest rank in Spearman.
    """
    if not trials.has("log_prob"):
        return []
    cloze = floats(trials.rows["target_cloze"])
    finite = np.where(np.isinf(trials.log_prob), np.nan, trials.log_prob)
    return [
        build("spearman", trials.ids, np.column_stack([trials.log_prob, cloze]), "spearman"),
        build("pearson", trials.ids, np.column_stack([finite, cloze]), "pearson"),
    ]


def within_category_boost(trials: Trials) -> list[Scores]:
    """Returns the share of contrasts with p(within_category) - p(between_category) > 0.01.

    It measures how far a model still expects the right category where the word is wrong, as the
    N400 amplitude of human readers does.

    Source: the comparison of Federmeier and Kutas (1999) that CPRAG-102 is made for.
    """
    conditions = trials.rows["condition"]
    if not trials.has("log_prob") or not {"within_category", "between_category"} <= set(conditions):
        return []
    place = {name: i for i, name in enumerate(trials.contrasts.ids)}
    probability = np.exp(trials.log_prob)
    pair = {name: np.full(len(place), np.nan) for name in ("within_category", "between_category")}
    for i, (condition, contrast) in enumerate(
        zip(conditions, trials.rows["contrast"], strict=True)
    ):
        if condition in pair:
            pair[condition][place[contrast]] = probability[i]
    boosted = higher(pair["within_category"], pair["between_category"], by=BOOST)
    return [trials.contrasts.build("within_category_boost", boosted)]
