"""Measures that compare the rows of a contrast, and the human row that goes the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.levels import Levels, contrast_levels
from lmdiag.measures.scores import (
    Columns,
    Floats,
    Items,
    Labels,
    Scores,
    Statistic,
    build,
    floats,
    known,
    label,
    objects,
)

BOOST = 0.01
"""Smallest difference in probability that counts for within_category_boost (SPEC 4)."""

SAME_QUESTION = (
    "the good row and a bad row of each contrast have the same context and the same target, "
    "so there is nothing to compare"
)
"""Why a comparison is not defined, as for both nouns of ROLE-88 replaced (`-Both`)."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Which rows are compared with which.

    Attributes:
        ids: contrast ids in order of first appearance, (n,).
        good: position of each contrast's good row, -1 where it is not among the rows, (n,).
        bad: positions of all bad rows, (m,).
        bad_of: position in `ids` of each bad row's contrast, (m,).
        levels: break-down -> level of each contrast.
        same: whether a bad row asks the model exactly what the good row asks, (n,). Such a contrast
            is not a comparison: its rows have one probability by construction.
    """

    ids: Items
    good: NDArray[np.intp]
    bad: NDArray[np.intp]
    bad_of: NDArray[np.intp]
    levels: Mapping[str, Labels]
    same: NDArray[np.bool_]

    @classmethod
    def of(
        cls, rows: Columns, levels: Levels | None = None, *, left_only: bool = False
    ) -> Contrasts:
        """Groups the rows by their `contrast`.

        Args:
            rows: the core columns, with the contexts that the model was asked, and further ones.
            levels: break-down -> level of each row; None for no break-downs.
            left_only: whether the model saw the left context alone.

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
        same = same_question(rows, good, bad, group[bad], left_only=left_only)
        return cls(ids, good, bad, group[bad], of_contrasts, same)

    @property
    def chance(self) -> Floats:
        """Probability of the good row to be the first by guessing: 1 / number of rows, (n,)."""
        return 1 / (1 + np.bincount(self.bad_of, minlength=len(self.ids)))

    def pairs(self, values: Floats) -> tuple[Floats, Floats]:
        """Returns each contrast's value of the good row and the highest of its bad rows, (n,) each.

        NaN where a row has none or is not there, as at the end of a table that was cut short, and
        where the contrast is not a comparison (`same`).
        """
        good = np.where((self.good < 0) | self.same, np.nan, values[self.good])
        worst = np.full(len(self.ids), -np.inf)
        with np.errstate(invalid="ignore"):  # NaN is what an unscorable row is meant to bring
            np.maximum.at(worst, self.bad_of, values[self.bad])
        alone = np.bincount(self.bad_of, minlength=len(self.ids)) == 0
        return good, np.where(alone | self.same, np.nan, worst)

    def build(
        self,
        name: str,
        values: Floats,
        statistic: Statistic = "proportion",
        chance: Floats | None = None,
    ) -> Scores:
        """Returns scores over the contrasts whose value (for a proportion 1 or 0) is not NaN."""
        scores = build(name, self.ids, values, statistic, self.levels, chance)
        if len(scores.items) or not len(self.ids) or not self.same.all():
            return scores
        return replace(scores, not_defined=SAME_QUESTION)


def same_question(
    rows: Columns,
    good: NDArray[np.intp],
    bad: NDArray[np.intp],
    bad_of: NDArray[np.intp],
    *,
    left_only: bool,
) -> NDArray[np.bool_]:
    """Returns which contrasts have a bad row with the good row's contexts and target."""
    columns = [rows[name] for name in ("target", "context", "right_context")]
    asked = columns[:2] if left_only else columns
    same = np.zeros(len(good), dtype=bool)
    for row, contrast in zip(bad.tolist(), bad_of.tolist(), strict=True):
        other = good[contrast]
        if other >= 0 and all(column[row] == column[other] for column in asked):
            same[contrast] = True
    return same


def higher(good: Floats, bad: Floats, by: float = 0.0) -> Floats:
    """Returns 1.0 where good is above bad by more than `by`, else 0.0; NaN where either is."""
    undefined = np.isnan(good) | np.isnan(bad)
    with np.errstate(invalid="ignore"):
        above = good > bad if by == 0 else good - bad > by
    return np.where(undefined, np.nan, above)


def sensitivity(
    rows: Columns,
    predictions: Columns,
    levels: Levels,
    *,
    threshold: float,
    left_only: bool = False,
) -> list[Scores]:
    """Returns sensitivity and sensitivity@threshold, over contrasts.

    sensitivity: the good row is more probable than every bad one; sensitivity@t: by more than t, in
    probability. A contrast with an unscorable row is left out. Log-probabilities are compared
    without threshold, which says the same and does not make ties of very small probabilities.

    A model that guesses has a sensitivity of 1 / number of rows of a contrast: 1/2 with one bad
    row, 1/3 with two. With a threshold there is no such level: it depends on how the model spreads
    its probability over the whole vocabulary.

    Source: Ettinger (2020), tables 5, 9, 12 and 14; t = 0.01 in its section 7.2.
    """
    if "contrast" not in rows or not known(predictions, "log_prob"):
        return []
    contrasts = Contrasts.of(rows, levels, left_only=left_only)
    log_prob = floats(predictions["log_prob"])
    plain = higher(*contrasts.pairs(log_prob))
    above = higher(*contrasts.pairs(np.exp(log_prob)), by=threshold)
    return [
        contrasts.build("sensitivity", plain, chance=contrasts.chance),
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
        contrasts.build("human_sensitivity", higher(*pairs), chance=contrasts.chance),
        contrasts.build(f"human_sensitivity@{label(threshold)}", higher(*pairs, by=threshold)),
        contrasts.build("cloze_difference", pairs[0] - pairs[1], "mean"),
    ]


def probability_difference(
    rows: Columns, predictions: Columns, levels: Levels, *, left_only: bool = False
) -> list[Scores]:
    """Returns the mean of p(good) - p(bad) over contrasts, to stand beside `cloze_difference`.

    The bad row is the most probable one where there are several.
    """
    if not known(predictions, "log_prob"):
        return []
    contrasts = Contrasts.of(rows, levels, left_only=left_only)
    good, bad = contrasts.pairs(np.exp(floats(predictions["log_prob"])))
    return [contrasts.build("probability_difference", good - bad, "mean")]


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
