"""Measures that compare the rows of a contrast, and the human row that goes the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.levels import Levels, contrast_levels
from lmdiag.measures.scores import (
    Columns,
    Floats,
    Items,
    Labels,
    Scores,
    build,
    floats,
    known,
    label,
    objects,
)

BOOST = 0.01
"""Smallest difference in probability that counts for within_category_boost (SPEC 4)."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Which rows are compared with which.

    Attributes:
        ids: contrast ids in order of first appearance, (n,).
        good: position of each contrast's good row, -1 where it is not among the rows, (n,).
        bad: positions of all bad rows, (m,).
        bad_of: position in `ids` of each bad row's contrast, (m,).
        levels: break-down -> level of each contrast.
    """

    ids: Items
    good: NDArray[np.intp]
    bad: NDArray[np.intp]
    bad_of: NDArray[np.intp]
    levels: Mapping[str, Labels]

    @classmethod
    def of(cls, rows: Columns, levels: Levels | None = None) -> Contrasts:
        """Groups the rows by their `contrast`.

        Args:
            rows: `contrast` and `good`.
            levels: break-down -> level of each row; None for no break-downs.

        Raises:
            ValueError: a contrast has several good rows.
        """
        place: dict[str, int] = {}
        group = np.array(
            [place.setdefault(name, len(place)) for name in rows["contrast"]], dtype=np.intp
        )
        is_good = np.array(rows["good"], dtype=bool)
        good = np.full(len(place), -1, dtype=np.intp)
        good[group[is_good]] = np.flatnonzero(is_good)
        ids = objects(list(place))
        several = np.bincount(group[is_good], minlength=len(place)) > 1
        if several.any():
            raise ValueError(
                f"contrast {ids[several][0]!r} has several good rows; it must have one"
            )
        bad = np.flatnonzero(~is_good)
        of_contrasts = contrast_levels(levels or {}, group, good, len(place))
        return cls(ids, good, bad, group[bad], of_contrasts)

    def pairs(self, values: Floats) -> tuple[Floats, Floats]:
        """Returns each contrast's value of the good row and the highest of its bad rows, (n,) each.

        NaN where a row has none or is not there, as at the end of a table that was cut short.
        """
        good = np.where(self.good < 0, np.nan, values[self.good])
        worst = np.full(len(self.ids), -np.inf)
        with np.errstate(invalid="ignore"):  # NaN is what an unscorable row is meant to bring
            np.maximum.at(worst, self.bad_of, values[self.bad])
        alone = np.bincount(self.bad_of, minlength=len(self.ids)) == 0
        return good, np.where(alone, np.nan, worst)

    def build(self, name: str, verdict: Floats) -> Scores:
        """Returns a proportion over the contrasts whose verdict (1, 0) is not NaN."""
        return build(name, self.ids, verdict, "proportion", self.levels)


def higher(good: Floats, bad: Floats, by: float = 0.0) -> Floats:
    """Returns 1.0 where good is above bad by more than `by`, else 0.0; NaN where either is."""
    undefined = np.isnan(good) | np.isnan(bad)
    with np.errstate(invalid="ignore"):
        above = good > bad if by == 0 else good - bad > by
    return np.where(undefined, np.nan, above)


def sensitivity(
    rows: Columns, predictions: Columns, levels: Levels, *, threshold: float
) -> list[Scores]:
    """Returns sensitivity and sensitivity@threshold, over contrasts.

    sensitivity: the good row is more probable than every bad one; sensitivity@t: by more than t, in
    probability. A contrast with an unscorable row is left out. Log-probabilities are compared
    without threshold, which says the same and does not make ties of very small probabilities.

    Source: Ettinger (2020), tables 5, 9, 12 and 14; t = 0.01 in its section 7.2.
    """
    if "contrast" not in rows or not known(predictions, "log_prob"):
        return []
    contrasts = Contrasts.of(rows, levels)
    log_prob = floats(predictions["log_prob"])
    plain = higher(*contrasts.pairs(log_prob))
    above = higher(*contrasts.pairs(np.exp(log_prob)), by=threshold)
    return [
        contrasts.build("sensitivity", plain),
        contrasts.build(f"sensitivity@{label(threshold)}", above),
    ]


def human(rows: Columns, levels: Levels | None = None, *, threshold: float) -> list[Scores]:
    """Returns people's own sensitivity on ROLE-88, which has the cloze probability of its targets.

    The same comparison as for a model, on `target_cloze` instead of a model's probability. Rows
    without it give nothing.
    """
    if "target_cloze" not in rows:
        return []
    contrasts = Contrasts.of(rows, levels)
    pairs = contrasts.pairs(floats(rows["target_cloze"]))
    return [
        contrasts.build("human_sensitivity", higher(*pairs)),
        contrasts.build(f"human_sensitivity@{label(threshold)}", higher(*pairs, by=threshold)),
        build("cloze_difference", contrasts.ids, pairs[0] - pairs[1], "mean", contrasts.levels),
    ]


def probability_difference(rows: Columns, predictions: Columns, levels: Levels) -> list[Scores]:
    """Returns the mean of p(good) - p(bad) over contrasts, to stand beside `cloze_difference`.

    The bad row is the most probable one where there are several.
    """
    if not known(predictions, "log_prob"):
        return []
    contrasts = Contrasts.of(rows, levels)
    good, bad = contrasts.pairs(np.exp(floats(predictions["log_prob"])))
    return [build("probability_difference", contrasts.ids, good - bad, "mean", contrasts.levels)]


def correlations(rows: Columns, predictions: Columns) -> list[Scores]:
    """Returns Spearman and Pearson of the target's log-probability with its cloze probability.

    Over rows; the values are (n, 2), log-probability in nats. A probability of zero has no
    log-probability to correlate (Pearson), so such rows are left out of that one, and only rank
    lowest in the other.
    """
    if not known(predictions, "log_prob"):
        return []
    items = objects(rows["id"])
    log_prob = floats(predictions["log_prob"])
    cloze = floats(rows["target_cloze"])
    finite = np.where(np.isinf(log_prob), np.nan, log_prob)
    return [
        build("spearman", items, np.column_stack([log_prob, cloze]), "spearman"),
        build("pearson", items, np.column_stack([finite, cloze]), "pearson"),
    ]


def within_category_boost(rows: Columns, predictions: Columns, levels: Levels) -> list[Scores]:
    """Returns the share of contrasts with p(within_category) - p(between_category) > 0.01.

    How far a model keeps expecting the right category where the word is wrong, as the N400 does.

    Source: the comparison of Federmeier and Kutas (1999) that CPRAG-102 is made for.
    """
    if not known(predictions, "log_prob"):
        return []
    within = positions_of(rows["condition"], "within_category")
    between = positions_of(rows["condition"], "between_category")
    if not len(within) or not len(between):
        return []
    contrasts = Contrasts.of(rows, levels)
    place = {name: i for i, name in enumerate(contrasts.ids)}
    probability = np.exp(floats(predictions["log_prob"]))
    pair = np.full((2, len(place)), np.nan)
    for side, where in enumerate((within, between)):
        pair[side, [place[rows["contrast"][i]] for i in where]] = probability[where]
    return [contrasts.build("within_category_boost", higher(pair[0], pair[1], by=BOOST))]


def positions_of(conditions: Sequence[str], condition: str) -> NDArray[np.intp]:
    """Returns the positions of the rows of a condition."""
    return np.array([i for i, name in enumerate(conditions) if name == condition], dtype=np.intp)
