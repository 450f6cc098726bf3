"""What measures are computed from: rows with a model's predictions, and the rows' contrasts."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.scores import (
    Columns,
    Floats,
    Items,
    Labels,
    Scores,
    Statistic,
    build,
    floats,
    objects,
)

SAME_QUESTION = (
    "the good row and a bad row of each contrast have the same context and the same target, "
    "so there is nothing to compare"
)
"""Why a comparison is not defined, as with both nouns of ROLE-88 replaced (`-Both`)."""

SAME_SENTENCE = "the good sentence and a bad one of each contrast are the same"
"""Why a comparison of sentences is not defined."""

_UNSEEN = ("Mn", "Cf")
"""Categories of accents and of characters without width."""

_ROUNDING = 1e-4
"""Nats by which two log-probabilities of the same tokens may differ: rounding of float32."""


@dataclass(frozen=True, eq=False)
class Trials:
    """Rows and what a model predicted for them, in the same order.

    Attributes:
        rows: the core columns, with the contexts that the model was asked, and further columns.
        predictions: `log_prob` (nats, None where unscorable), `rank`, `n_tokens`, `top_words`,
            `agreement`, `words`; each may be missing or all None.
        levels: break-down -> level of each row.
        left_only: whether the model saw the left context alone, which decides what contexts are
            distinct.
        cased: whether the tokenizer distinguishes capital letters, likewise.
    """

    rows: Columns
    predictions: Columns
    levels: Mapping[str, Labels]
    left_only: bool = False
    cased: bool = True

    def has(self, name: str) -> bool:
        """Returns whether a column of the predictions has any value."""
        return any(value is not None for value in self.predictions.get(name, ()))

    @cached_property
    def ids(self) -> Items:
        """Ids of the rows, (n,)."""
        return objects(self.rows["id"])

    @cached_property
    def log_prob(self) -> Floats:
        """Log-probability of each target in nats, (n,); NaN where unscorable."""
        return floats(self.predictions["log_prob"])

    @cached_property
    def contrasts(self) -> Contrasts:
        """The contrasts of the rows.

        Raises:
            ValueError: a contrast has several good rows.
        """
        return Contrasts.of(self)


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Which rows are compared with each other.

    Attributes:
        ids: contrast ids in order of first appearance, (n,).
        good: position of the good row of each contrast, -1 where it is not among the rows, (n,).
        bad: positions of all bad rows, (m,).
        bad_of: position in `ids` of the contrast of each bad row, (m,).
        levels: break-down -> level of each contrast.
        same: whether a bad row asks the model exactly what the good row asks, (n,), as texts or as
            tokens. Such a contrast is not a comparison: its rows have the same probability by
            construction.
        why_same: says so, for readers.
    """

    ids: Items
    good: NDArray[np.intp]
    bad: NDArray[np.intp]
    bad_of: NDArray[np.intp]
    levels: Mapping[str, Labels]
    same: NDArray[np.bool_]
    why_same: str = SAME_QUESTION

    @classmethod
    def of(cls, trials: Trials) -> Contrasts:
        """Groups rows by their `contrast`.

        Raises:
            ValueError: a contrast has several good rows.
        """
        rows, place = trials.rows, dict[str, int]()
        group = np.array([place.setdefault(name, len(place)) for name in rows["contrast"]])
        group = group.astype(np.intp)
        is_good = np.array(rows["good"], dtype=bool)
        several = np.bincount(group[is_good], minlength=len(place)) > 1
        if several.any():
            name = objects(list(place))[several][0]
            raise ValueError(f"contrast {name!r} has several good rows; it must have one")
        good = np.full(len(place), -1, dtype=np.intp)
        good[group[is_good]] = np.flatnonzero(is_good)
        bad = np.flatnonzero(~is_good)
        return cls(
            ids=objects(list(place)),
            good=good,
            bad=bad,
            bad_of=group[bad],
            levels=_contrast_levels(trials.levels, group, good),
            same=_same_question(trials, good, bad, group[bad]),
            why_same=SAME_QUESTION if "target" in rows else SAME_SENTENCE,
        )

    @property
    def chance(self) -> Floats:
        """Probability that guessing puts the good row first: 1 / number of rows, (n,)."""
        return 1 / (1 + np.bincount(self.bad_of, minlength=len(self.ids)))

    def pairs(self, values: Floats) -> tuple[Floats, Floats]:
        """Returns the value of the good row and the highest of the bad rows, (n,) each.

        NaN where a row has none or is missing, as at the end of a table that was cut short, and
        where the contrast is not a comparison (`same`).
        """
        good = np.where((self.good < 0) | self.same, np.nan, values[self.good])
        highest = np.full(len(self.ids), -np.inf)
        with np.errstate(invalid="ignore"):  # an unscorable row makes its contrast NaN
            np.maximum.at(highest, self.bad_of, values[self.bad])
        no_bad_row = np.bincount(self.bad_of, minlength=len(self.ids)) == 0
        return good, np.where(no_bad_row | self.same, np.nan, highest)

    def build(
        self,
        name: str,
        values: Floats,
        statistic: Statistic = "proportion",
        chance: Floats | None = None,
    ) -> Scores:
        """Returns scores over the contrasts whose value (for a proportion 1 or 0) is not NaN."""
        scores = build(name, self.ids, values, statistic, self.levels, chance)
        scores = replace(scores, equal=int(self.same.sum()))
        if len(scores.items) or not len(self.ids) or not self.same.all():
            return scores
        return replace(scores, not_defined=self.why_same)

    def verdicts(self, name: str, values: Floats, by: float | None = None) -> Scores:
        """Returns the share of contrasts whose good row has a higher value than every bad row.

        Args:
            name: of the measure.
            values: of the rows, (n,).
            by: how much higher; None for any difference. Only then is there a chance level: with a
                threshold it depends on how a model spreads its probability over the vocabulary.
        """
        values = higher(*self.pairs(values), by=by or 0.0)
        return self.build(name, values, chance=self.chance if by is None else None)

    def differences(self, name: str, values: Floats) -> Scores:
        """Returns the mean difference of the good row and the bad row with the highest value."""
        good, bad = self.pairs(values)
        return self.build(name, good - bad, "mean")


def higher(good: Floats, bad: Floats, by: float = 0.0) -> Floats:
    """Returns 1.0 where good is above bad by more than `by`, else 0.0; NaN where either is NaN."""
    undefined = np.isnan(good) | np.isnan(bad)
    with np.errstate(invalid="ignore"):  # -inf less -inf
        above = good > bad if by == 0 else good - bad > by
    return np.where(undefined, np.nan, above)


def _same_question(
    trials: Trials, good: NDArray[np.intp], bad: NDArray[np.intp], bad_of: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which contrasts have a bad row that asks what the good row asks.

    Tokens are not known here. They are the same where the texts are, for a tokenizer without
    capital letters where the texts differ in these alone, and where the texts differ in case,
    accents or white space alone and the log-probabilities are the same.
    """
    names = ("target", "context", "right_context")[: 2 if trials.left_only else 3]
    asked = [trials.rows[n] for n in (names if "target" in trials.rows else ("sentence",))]
    log_prob = trials.log_prob if trials.has("log_prob") else np.full(len(trials.ids), np.nan)
    same = np.zeros(len(good), dtype=bool)
    for row, contrast in zip(bad.tolist(), bad_of.tolist(), strict=True):
        other = good[contrast]
        if other < 0:
            continue
        pairs = [(column[row], column[other]) for column in asked]
        tied = math.isclose(log_prob[row], log_prob[other], rel_tol=0, abs_tol=_ROUNDING)
        if all(a == b or (not trials.cased and a.lower() == b.lower()) for a, b in pairs) or (
            tied and all(_plain(a) == _plain(b) for a, b in pairs)
        ):
            same[contrast] = True
    return same


def _plain(text: str) -> str:
    """A text without what tokenizers may remove: case, accents, characters without width, blanks.

    >>> _plain("The  Caf\u00e9") == _plain("the cafe")
    True
    """
    kept = (
        c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in _UNSEEN
    )
    return " ".join("".join(kept).casefold().split())


def _contrast_levels(
    levels: Mapping[str, Labels], group: NDArray[np.intp], good: NDArray[np.intp]
) -> dict[str, Labels]:
    """Break-down -> level of each contrast: the level that all its rows share.

    `condition` differs between the rows of a contrast by its nature; there the good row decides.
    """
    of_contrasts: dict[str, Labels] = {}
    for name, labels in levels.items():
        common: dict[int, str | None] = {}
        for contrast, label in zip(group.tolist(), labels, strict=True):
            if common.setdefault(contrast, label) != label:
                common[contrast] = None
        shared = [common.get(contrast) for contrast in range(len(good))]
        of_good = [None if row < 0 else labels[row] for row in good]
        of_contrasts[name] = of_good if name == "condition" else shared
    return {name: labels for name, labels in of_contrasts.items() if any(labels)}
