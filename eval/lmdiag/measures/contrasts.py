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
    floats,
    higher,
    number_text,
    positions,
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

    Source: Ettinger (2020), tables 5, 9, 12 and 14; t = 0.01 in its section 7.2.
    """
    if "contrast" not in trials.rows or not trials.has("log_prob"):
        return []
    contrasts = trials.contrasts
    tied = contrasts.are_tied(trials.log_prob)
    name = f"sensitivity@{number_text(threshold)}"
    return [
        contrasts.verdicts("sensitivity", trials.log_prob, tied=tied),
        contrasts.verdicts(name, np.exp(trials.log_prob), threshold, tied=tied),
    ]


@register(
    ("sentences", "minimal_pairs"), "sensitivity", sensitivity_mean="sensitivity, mean per token"
)
def sentence_measures(trials: Trials) -> list[Scores]:
    """Returns the measures of contrasts between whole sentences; none where rows are not compared.

    sensitivity: the good sentence has a higher log-probability than every bad one.
    sensitivity_mean: it has a higher log-probability per token, which does not favour short ones.

    Skips contrasts with a word that the tokenizer cannot represent or with two equal sentences.

    Source: Warstadt et al. (2020); Lau et al. (2017) for the mean.
    """
    if not trials.has("log_prob") or "contrast" not in trials.rows:
        return []
    scores = [trials.contrasts.verdicts("sensitivity", trials.log_prob)]
    if trials.has("n_tokens"):
        n_tokens = floats(trials.predictions["n_tokens"])
        means = trials.log_prob / np.where(n_tokens > 0, n_tokens, np.nan)
        scores.append(trials.contrasts.verdicts("sensitivity_mean", means))
    return scores


@register(("role88", "role1500"), "probability_difference")
def probability_difference(trials: Trials) -> list[Scores]:
    """Returns the mean of p(good) - p(bad) over contrasts, to compare with `cloze_difference`."""
    if not trials.has("log_prob"):
        return []
    return [trials.contrasts.differences("probability_difference", np.exp(trials.log_prob))]


@register("cprag102", within_category_boost="within-category boost")
def within_category_boost(trials: Trials) -> list[Scores]:
    """Returns the share of contrasts with p(within_category) - p(between_category) > 0.01.

    Source: the comparison of Federmeier and Kutas (1999) that CPRAG-102 is made for.
    """
    conditions = trials.rows["condition"]
    is_there = {"within_category", "between_category"} <= {*conditions}
    if not trials.has("log_prob") or not is_there:
        return []
    pairs = zip(trials.rows["contrast"], conditions, strict=True)
    row_of = {pair: row for row, pair in enumerate(pairs)}
    p = np.append(np.exp(trials.log_prob), np.nan)  # at -1, for a row that is missing
    contrasts = trials.contrasts.ids
    within = p[[row_of.get((contrast, "within_category"), -1) for contrast in contrasts]]
    between = p[[row_of.get((contrast, "between_category"), -1) for contrast in contrasts]]
    is_boosted = higher(within, between, by=_BOOST)
    return [trials.contrasts.build("within_category_boost", is_boosted)]


@register("choice", "sensitivity", position_bias="position bias", labels_mass="mass on labels")
def choice_measures(trials: Trials) -> list[Scores]:
    """Returns the measures of forced choices (`lmdiag.asking.elicitation`), over contrasts.

    sensitivity: the good row has the highest log-probability, a mean over the orders of its labels.
    position_bias: the share of orders whose answer, the label with the highest log-probability, is
    the first one; labels that are tied there have equal parts of the order, as guessing has.
    Guessing gives 1 / number of rows of a contrast for both.
    labels_mass: the probability of all labels together, a mean over orders: how far the model
    answers in the form that is asked for.

    Source: Zheng et al. (2024) for the bias.
    """
    contrasts = trials.contrasts
    bias = np.full(len(contrasts.ids), np.nan)
    mass = np.full(len(contrasts.ids), np.nan)
    for number, orders in enumerate(_orders(trials)):
        if not np.isnan(orders).any() and not contrasts.is_equal[number]:
            # the label that the model answers with in each order; tied labels are all answers
            is_answer = orders >= orders.max(axis=1, keepdims=True) - TIE
            bias[number] = np.mean(is_answer[:, 0] / is_answer.sum(axis=1))
            mass[number] = np.exp(orders).sum(axis=1).mean()
    return [
        contrasts.verdicts("sensitivity", trials.log_prob),
        contrasts.build("position_bias", bias, "share", with_chance=True),
        contrasts.build("labels_mass", mass, "share"),
    ]


def _orders(trials: Trials) -> Iterator[Floats]:
    """Yields log-probabilities of each contrast in order of first appearance, (orders, labels)."""
    ids = trials.rows["id"]
    labels = trials.predictions["labels"]
    for rows in positions(trials.rows["contrast"]).values():
        size = len(rows)
        labels_of_rows = [
            labels[row] or [None] * size for row in sorted(rows, key=lambda row: ids[row])
        ]
        # in the order that begins with row i, label j is that of row i + j
        log_probs_in_order = [
            [labels_of_rows[(i + j) % size][j] for j in range(size)] for i in range(size)
        ]
        yield floats(log_probs_in_order)  # type: ignore[arg-type]
