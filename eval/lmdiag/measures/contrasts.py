"""Measures that compare the rows of a contrast, for models and for the human baseline."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmdiag.measures.registry import register
from lmdiag.measures.scores import (
    TIE,
    Floats,
    Scores,
    Trials,
    exceeds,
    float_array,
    number_text,
    positions_by_label,
)

_BOOST = 0.01
"""Difference of probabilities from which a within-category word counts as boosted."""


@register("word", "sensitivity")
def sensitivity(trials: Trials, threshold: float) -> list[Scores]:
    """Returns sensitivity and sensitivity@threshold, over contrasts.

    sensitivity: the good row is more probable than every bad row; sensitivity@t: more probable by
    more than t, a difference of probabilities. A contrast with an unscorable row is left out.
    Without a threshold log-probabilities are compared, which does not make ties of very small
    probabilities. A contrast whose highest log-probability two rows share is tied, see
    `Contrasts.are_tied`. Guessing gives 1 / number of rows of a contrast.

    Args:
        trials: rows, and what a model predicted for them.
        threshold: t, e.g. 0.01.

    Source: Ettinger (2020), tables 5, 9, 12 and 14; t = 0.01 in its section 7.2.
    """
    if "contrast" not in trials.rows or not trials.has("log_prob"):
        return []
    contrasts = trials.contrasts
    tied = contrasts.are_tied(trials.log_prob)
    name = f"sensitivity@{number_text(threshold)}"
    probabilities = np.exp(trials.log_prob)
    return [
        contrasts.share_with_good_highest("sensitivity", trials.log_prob, tied=tied),
        contrasts.share_with_good_highest(name, probabilities, by=threshold, tied=tied),
    ]


@register(
    ("sentences", "minimal_pairs"), "sensitivity", sensitivity_mean="sensitivity, mean per token"
)
def sentence_measures(trials: Trials) -> list[Scores]:
    """Returns the measures of contrasts between whole sentences; [] where rows have no contrasts.

    sensitivity: the good sentence has a higher log-probability than every bad one.
    sensitivity_mean: it has a higher log-probability per token, which does not favour short ones.

    Skips contrasts with a word that the tokenizer cannot represent, whose log-probability is NaN,
    or with two equal sentences.

    Source: Warstadt et al. (2020); Lau et al. (2017) for the mean.
    """
    if not trials.has("log_prob") or "contrast" not in trials.rows:
        return []
    contrasts = trials.contrasts
    scores = [contrasts.share_with_good_highest("sensitivity", trials.log_prob)]
    if trials.has("n_tokens"):
        n_tokens = float_array(trials.predictions["n_tokens"])
        means = trials.log_prob / np.where(n_tokens > 0, n_tokens, np.nan)  # per token
        scores.append(contrasts.share_with_good_highest("sensitivity_mean", means))
    return scores


@register(("role88", "role1500"), "probability_difference")
def probability_difference(trials: Trials) -> list[Scores]:
    """Returns the mean of p(good) - p(bad) over contrasts, to compare with `cloze_difference`."""
    if not trials.has("log_prob"):
        return []
    probabilities = np.exp(trials.log_prob)
    return [trials.contrasts.mean_difference("probability_difference", probabilities)]


@register("cprag102", within_category_boost="within-category boost")
def within_category_boost(trials: Trials) -> list[Scores]:
    """Returns the share of contrasts with p(within_category) - p(between_category) > 0.01.

    A contrast has a row with the `condition` "within_category" and one with "between_category".
    For example, probabilities of 0.05 and 0.02 count as boosted. A contrast without one of the two
    rows is left out; [] is returned if no row at all has one of the two conditions.

    Source: the comparison of Federmeier and Kutas (1999) that CPRAG-102 is made for.
    """
    conditions = trials.rows["condition"]
    has_both = "within_category" in conditions and "between_category" in conditions
    if not trials.has("log_prob") or not has_both:
        return []
    probability_of: dict[tuple[str, str], float] = {}
    probabilities = np.exp(trials.log_prob)
    for contrast, condition, probability in zip(
        trials.rows["contrast"], conditions, probabilities, strict=True
    ):
        probability_of[contrast, condition] = probability
    ids = trials.contrasts.ids
    within = [probability_of.get((contrast, "within_category"), np.nan) for contrast in ids]
    between = [probability_of.get((contrast, "between_category"), np.nan) for contrast in ids]
    is_boosted = exceeds(np.array(within), np.array(between), by=_BOOST)
    return [trials.contrasts.build_scores("within_category_boost", is_boosted)]


@register("choice", "sensitivity", position_bias="position bias", labels_mass="mass on labels")
def choice_measures(trials: Trials) -> list[Scores]:
    """Returns the measures of forced choices (`lmdiag.asking.elicitation`), over contrasts.

    Each contrast is asked in several orders of its rows, in which they have the labels 1, 2, ...

    sensitivity: the good row has the highest log-probability, a mean over the orders of its labels.

    position_bias: the share of orders in which the model answers with the first label. Its answer
    is the label with the highest log-probability; if two labels are tied, the order counts half.
    For example, 1 for a model that answers "1" in both orders of a contrast of two rows.

    For both, guessing gives 1 / number of rows of a contrast.

    labels_mass: the probability of all labels together, a mean over orders: how far the model
    answers in the form that is asked for.

    Source: Zheng et al. (2024) for the bias.
    """
    contrasts = trials.contrasts
    bias = np.full(len(contrasts.ids), np.nan)
    mass = np.full(len(contrasts.ids), np.nan)
    for number, log_probs in enumerate(_label_log_probs(trials)):  # (orders, labels)
        if not np.isnan(log_probs).any() and not contrasts.has_equal_rows[number]:
            # the label that the model answers with in each order; tied labels are all answers
            is_answer = log_probs >= log_probs.max(axis=1, keepdims=True) - TIE
            bias[number] = np.mean(is_answer[:, 0] / is_answer.sum(axis=1))
            mass[number] = np.exp(log_probs).sum(axis=1).mean()
    return [
        contrasts.share_with_good_highest("sensitivity", trials.log_prob),
        contrasts.build_scores("position_bias", bias, "share", with_chance=True),
        contrasts.build_scores("labels_mass", mass, "share"),
    ]


def _label_log_probs(trials: Trials) -> Iterator[Floats]:
    """Yields the log-probability of each label in each order of a contrast, (orders, labels).

    Contrasts are in order of first appearance. A contrast of n rows was asked in n orders, so that
    each row had each label once. The prediction `labels` of a row has the log-probability of label
    1 in the order in which the row had label 1, that of label 2 in the order in which the row had
    label 2, and so on.

    For example, rows a and b were asked in the orders "1. a, 2. b" and "1. b, 2. a". With [-0.1,
    -2.0] as `labels` of a, and [-0.3, -1.5] of b, the first order has [-0.1, -1.5], the second
    [-0.3, -2.0].
    """
    ids = trials.rows["id"]
    labels = trials.predictions["labels"]
    for positions in positions_by_label(trials.rows["contrast"]).values():
        # questions list the rows of a contrast in the order of their ids, or rotated
        rows = sorted(positions, key=lambda row: ids[row])
        n_rows = len(rows)
        log_probs_of_rows = [labels[row] or [None] * n_rows for row in rows]
        # in the order that begins with row i, label j is that of row i + j
        log_probs = [
            [log_probs_of_rows[(i + j) % n_rows][j] for j in range(n_rows)] for i in range(n_rows)
        ]
        yield float_array(log_probs)  # type: ignore[arg-type]
