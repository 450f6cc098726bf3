"""Measures of forced choices, see `lmdiag.elicitation`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmdiag.measures.scores import Floats, Scores, Trials, floats, positions


def choice_measures(trials: Trials) -> list[Scores]:
    """Returns the measures of forced choices, over contrasts.

    sensitivity: the good row has the highest log-probability, a mean over the orders of its labels;
    a tie counts as not. position_bias: the share of orders whose answer, the label with the highest
    log-probability, is the first one. Guessing gives 1 / number of rows of a contrast for both.
    labels_mass: the probability of all labels together, a mean over orders: how far the model
    answers in the form that is asked for.

    Source: Zheng et al. (2024) for the bias.
    """
    contrasts = trials.contrasts
    first = np.full(len(contrasts.ids), np.nan)
    mass = np.full(len(contrasts.ids), np.nan)
    for number, orders in enumerate(_orders(trials)):
        if not np.isnan(orders).any() and not contrasts.same[number]:
            first[number] = np.mean(orders[:, 0] > orders[:, 1:].max(axis=1))
            mass[number] = np.exp(orders).sum(axis=1).mean()
    return [
        contrasts.verdicts("sensitivity", trials.log_prob),
        contrasts.build("position_bias", first, "share", with_chance=True),
        contrasts.build("labels_mass", mass, "share"),
    ]


def _orders(trials: Trials) -> Iterator[Floats]:
    """Yields log-probabilities of each contrast in order of first appearance, (orders, labels)."""
    ids = trials.rows["id"]
    labels = trials.predictions["labels"]
    for rows in positions(trials.rows["contrast"]).values():
        size = len(rows)
        of_rows = [labels[row] or [None] * size for row in sorted(rows, key=lambda x: ids[x])]
        # in the order that begins with row i, label j is that of row i + j
        rotated = [[of_rows[(i + j) % size][j] for j in range(size)] for i in range(size)]
        yield floats(rotated)  # type: ignore[arg-type]
