"""The records of measures: rows with a model's predictions, their contrasts, a score per item."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lmdiag.text import listing
from lmdiag.types import UNCASED, Fold, ModelInfo

SAME_QUESTION = (
    "the good row and a bad row of each contrast have the same context and the same target, "
    "so there is nothing to compare"
)
"""Why a comparison is not defined, as with both nouns of ROLE-88 replaced (`-Both`)."""

SAME_SENTENCE = "the good sentence and a bad one of each contrast are the same"
"""Why a comparison of sentences is not defined."""

_LONGEST_WORD = 40
"""Characters up to which what is compared of a text is kept."""

_ROUNDING = 1e-4
"""Nats by which two log-probabilities of the same tokens may differ: rounding of float32."""

_THRESHOLD_ROUNDING = 1e-9
"""A difference of probabilities that exceeds a threshold by less is equal to it."""

TIE = 1e-6
"""Nats by which the highest log-probabilities of a contrast differ where they are tied, at most."""

Columns = Mapping[str, Sequence[Any]]
"""Column name -> one value per row."""

Statistic = Literal[
    "proportion", "share", "mean", "mean_correlation", "median", "spearman", "pearson"
]
"""How the values of the items become one number.

proportion: mean of values that are 0 or 1; share: mean of values in [0, 1]; mean_correlation: mean
of a correlation of each item; mean, median: of any values; spearman, pearson: correlation of the
two columns of the values.
"""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Items = NDArray[np.object_]

Labels = Sequence[str | None]
"""Level of each item in a break-down; None for an item that is in none of its levels."""

LevelPositions = Mapping[str, Mapping[str, NDArray[np.intp]]]
"""Break-down -> level -> positions of its items; an item is in one level, in several or none."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A measure as its per-item values.

    Attributes:
        name: e.g. "sensitivity@0.01".
        items: ids of what was counted, (n,): rows, contrasts, or the first row of a context.
        values: one value per item, (n,), or (n, 2) for correlations.
        statistic, levels: see `Statistic` and `LevelPositions`.
        over: column of the rows that has the ids, or "prediction".
        left_out: ids of items that could not be scored (an unscorable word, no verb kept).
        chance: probability that guessing counts an item as right, (n,); None for a measure without
            a chance level.
        tied: whether an item is tied, (n,): it counts as not right in the figure, and as nothing in
            a test; None for a measure without ties.
        equal: number of contrasts that were left out because their rows ask the same.
        not_defined: why no item has a value, for readers; "" where some have or may have one.
    """

    name: str
    items: Items
    values: Floats
    statistic: Statistic
    levels: LevelPositions = field(default_factory=dict)
    over: str = "id"
    left_out: tuple[str, ...] = ()
    chance: Floats | None = None
    tied: Flags | None = None
    equal: int = 0
    not_defined: str = ""

    def take(self, where: NDArray[Any]) -> Scores:
        """Returns the scores of some items alone, without break-downs.

        Args:
            where: positions of the items, or a mask with a truth value for each item.
        """
        chance = None if self.chance is None else self.chance[where]
        tied = None if self.tied is None else self.tied[where]
        values = self.values[where]
        return Scores(
            self.name, self.items[where], values, self.statistic, over=self.over, chance=chance,
            tied=tied,
        )  # fmt: skip

    @property
    def tied_items(self) -> list[str]:
        """The ids of the items that are tied."""
        return [] if self.tied is None else self.items[self.tied].tolist()

    def without(self, items: Collection[str]) -> Scores:
        """Returns the scores of all items but those with the given ids, without break-downs."""
        return self.take(np.array([item not in items for item in self.items], dtype=bool))

    def levels_of(self, by: str) -> Collection[str]:
        """Returns the levels of a break-down; for `by` = "" (no break-down) the one level ""."""
        return self.levels.get(by, {}).keys() if by else ("",)

    def at(self, by: str, level: str) -> Scores:
        """Returns the scores of the items in one level of a break-down.

        For `by` = "" these are all scores; of an unknown level, none.
        """
        if not by:
            return self
        no_positions = np.array([], dtype=np.intp)
        return self.take(self.levels.get(by, {}).get(level, no_positions))


def build_scores(
    name: str,
    items: Items,
    values: Floats,
    statistic: Statistic,
    labels: Mapping[str, Labels] | None = None,
    chance: Floats | None = None,
    over: str = "id",
    tied: Flags | None = None,
) -> Scores:
    """Returns the scores of one measure; items whose value is NaN are in `left_out` alone.

    Args:
        name: of the measure, e.g. "accuracy@5".
        items: ids of all items, (n,).
        values: one per item, (n,), or (n, 2) for correlations; NaN where undefined.
        statistic: how the values become one number, e.g. "mean".
        labels: break-down -> level of each item; None for an item that is in none of its levels.
        chance, over, tied: see `Scores`.
    """
    # (n,) values become (1, n), and the pairs of a correlation (2, n): an item of a correlation is
    # defined where both of its values are
    is_defined = np.all(~np.isnan(np.atleast_2d(values.T)), axis=0)
    scores = Scores(name, items, values, statistic, over=over, chance=chance, tied=tied)
    levels = {}
    for by, labels_of_items in (labels or {}).items():
        defined_labels = object_array(labels_of_items)[is_defined]
        positions_of_level = positions_by_label(defined_labels)
        if positions_of_level:
            levels[by] = positions_of_level
    return replace(scores.take(is_defined), levels=levels, left_out=tuple(items[~is_defined]))


def positions_by_label(labels: Labels | Items) -> dict[str, NDArray[np.intp]]:
    """Returns label -> positions of the items that have it, labels in order of first appearance.

    Items with the label None are left out. For example, ["a", None, "a"] gives {"a": [0, 2]}.
    """
    positions_of: dict[str, list[int]] = {}
    for position, label in enumerate(labels):
        if label is not None:
            positions_of.setdefault(label, []).append(position)
    return {label: np.array(places, dtype=np.intp) for label, places in positions_of.items()}


def object_array(values: Sequence[Any]) -> Items:
    """Returns the values as a numpy array of Python objects, (n,), also if they are sequences."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def float_array(column: Sequence[float | None]) -> Floats:
    """Returns the column as float64, (n,), with NaN for None."""
    return np.array(column, dtype=np.float64)


def number_text(number: float) -> str:
    """Returns the shortest text of a number that reads back the same, for names of measures.

    >>> number_text(0.01), number_text(1.0), number_text(1e-05)
    ('0.01', '1', '1e-05')
    """
    return repr(float(number)).removesuffix(".0")


def quartiles(values: Sequence[float | None]) -> Labels:
    """Returns the quartile of each value, "1" to "4"; None for a missing value.

    The bounds are the 25th, 50th and 75th percentile (linear interpolation) of the values, and a
    value that equals a bound is in the lower quartile, as in table 8 of Ettinger (2020).
    """
    numbers = float_array(values)
    is_missing = np.isnan(numbers)
    if is_missing.all():
        return [None] * len(numbers)
    bounds = np.percentile(numbers[~is_missing], [25, 50, 75])
    quartile_numbers = np.searchsorted(bounds, numbers, side="left") + 1
    return [
        None if missing else str(quartile)
        for quartile, missing in zip(quartile_numbers, is_missing, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Trials:
    """Rows and what a model predicted for them, in the same order.

    Attributes:
        rows: the core columns, with the contexts that the model was asked, and further columns.
        predictions: `log_prob` (nats, None where unscorable), `rank`, `n_tokens`, `top_words`,
            `agreement`, `words`; each may be missing or all None.
        levels: break-down -> level of each row.
        left_only: whether the model saw the left context alone.
        folds: differences between words that do not count, see `fold_word`.
        accuracy_levels: levels of accuracy alone.
    """

    rows: Columns
    predictions: Columns
    levels: Mapping[str, Labels]
    left_only: bool = False
    folds: Collection[Fold] = ()
    accuracy_levels: Mapping[str, Labels] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Returns whether the column `name` of the predictions exists and has any value."""
        return any(value is not None for value in self.predictions.get(name, ()))

    @cached_property
    def ids(self) -> Items:
        """Ids of the rows, (n,)."""
        return object_array(self.rows["id"])

    @cached_property
    def log_prob(self) -> Floats:
        """Log-probability of each target in nats, (n,); NaN where unscorable."""
        return float_array(self.predictions["log_prob"])

    @cached_property
    def contrasts(self) -> Contrasts:
        """The rows grouped by their `contrast`."""
        return Contrasts(self)

    def asks_the_same(self, row: int, other: int) -> bool:
        """Returns whether the rows at two positions ask the model for the same tokens.

        Texts that differ by `folds` alone are the same tokens: "The cat" and "the cat" for a model
        that does not tell capitals from small letters. So are texts that differ in case, accents or
        white space alone and have the same log-probability.

        Args:
            row, other: positions of the rows, from 0.
        """
        targets = self.rows.get("target")
        # Targets are compared first, since they differ in most contrasts. Contexts of perturbed
        # rows are made when they are first read, which is slow.
        if targets and without_differences(targets[row]) != without_differences(targets[other]):
            return False
        if not targets:
            names = ["sentence"]
        elif self.left_only:
            names = ["target", "context"]
        else:
            names = ["target", "context", "right_context"]
        columns = [self.rows[name] for name in names]
        is_equal_folded = all(
            column[row] == column[other]  # saves folding long texts
            or fold_word(column[row], self.folds) == fold_word(column[other], self.folds)
            for column in columns
        )
        if is_equal_folded:
            return True
        if not self.has("log_prob") or not is_tied(self.log_prob[row], self.log_prob[other]):
            return False
        return all(
            without_differences(column[row]) == without_differences(column[other])
            for column in columns
        )


class Contrasts:
    """Which rows are compared with each other; a `ValueError` if a contrast has several good rows.

    Attributes:
        ids: contrast ids in order of first appearance, (n,).
        good: position of the good row of each contrast, -1 where it is not among the rows, (n,).
        bad: positions of all bad rows, (m,).
        contrast_of_bad: position in `ids` of the contrast of each bad row, (m,).
        levels: break-down -> level of each contrast: the one that all its rows share, or that of
            the good row for `condition`, which differs between the rows by its nature.
        has_equal_rows: whether a bad row asks the model exactly what the good row asks, as texts or
            as tokens, (n,). Such a contrast is not a comparison.
        why_not_compared: why such contrasts are not compared, for readers.
    """

    def __init__(self, trials: Trials) -> None:
        """Groups rows by their column `contrast`; the column `good` says which row is good.

        For example, rows with the contrasts "a", "a", "b", "b" of which the rows 0 and 3 are good
        have the `ids` ["a", "b"], `good` [0, 3], `bad` [1, 2] and `contrast_of_bad` [0, 1].
        """
        names = trials.rows["contrast"]
        number_of: dict[str, int] = {}  # in order of first appearance
        contrast_of_row = np.array(
            [number_of.setdefault(name, len(number_of)) for name in names], dtype=np.intp
        )
        n_contrasts = len(number_of)
        is_good = np.array(trials.rows["good"], dtype=bool)
        self.ids = object_array([*number_of])
        has_several_good = np.bincount(contrast_of_row[is_good], minlength=n_contrasts) > 1
        if has_several_good.any():
            name = self.ids[has_several_good][0]
            raise ValueError(f"contrast {name!r} has several good rows; it must have one")
        self.good = np.full(n_contrasts, -1, dtype=np.intp)  # stays -1 without a good row
        self.good[contrast_of_row[is_good]] = np.flatnonzero(is_good)
        self.bad = np.flatnonzero(~is_good)
        self.contrast_of_bad = contrast_of_row[self.bad]
        self.levels: dict[str, Labels] = {}
        for by, labels in trials.levels.items():
            contrast_labels = _shared_labels(contrast_of_row, labels)
            if by == "condition":  # the rows of a contrast differ in it: the good row's counts
                contrast_labels = [None if row < 0 else labels[row] for row in self.good.tolist()]
            if any(contrast_labels):
                self.levels[by] = contrast_labels
        self.has_equal_rows = np.zeros(n_contrasts, dtype=bool)
        for row, contrast in zip(self.bad.tolist(), self.contrast_of_bad.tolist(), strict=True):
            good_row = self.good[contrast]
            if good_row >= 0 and trials.asks_the_same(row, good_row):
                self.has_equal_rows[contrast] = True
        self.why_not_compared = SAME_QUESTION if "target" in trials.rows else SAME_SENTENCE

    def good_and_highest_bad(self, values: Floats) -> tuple[Floats, Floats]:
        """Returns, of each contrast, the value of its good row and the highest of its bad rows.

        For example, 5 and 3 for a contrast whose good row has the value 5, and its bad rows 2 and
        3. Both arrays are (n contrasts,); they have NaN where such a row is missing or has the
        value NaN, and where the good and a bad row ask the same.

        Args:
            values: one per row, e.g. log-probabilities.
        """
        # `values[-1]` of a contrast without a good row is replaced by NaN
        good = np.where((self.good < 0) | self.has_equal_rows, np.nan, values[self.good])
        highest = np.full(len(self.ids), -np.inf)
        with np.errstate(invalid="ignore"):  # an unscorable row makes its contrast NaN
            np.maximum.at(highest, self.contrast_of_bad, values[self.bad])
        has_no_bad_row = np.bincount(self.contrast_of_bad, minlength=len(self.ids)) == 0
        return good, np.where(has_no_bad_row | self.has_equal_rows, np.nan, highest)

    def are_tied(self, values: Floats) -> Flags:
        """Returns whether the highest value of each contrast is that of two rows or more, (n,).

        Values that differ by `TIE` at most count as the same: of a contrast with the values -1, -1
        and -3 two rows have the highest one. Both may be bad rows. Such a contrast counts as tied
        as well, since a guess between three rows is right in 1/3 of the contrasts without ties only
        if all kinds of ties are left out.

        Args:
            values: one per row, e.g. log-probabilities.
        """
        good, bad = self.good_and_highest_bad(values)
        highest = np.fmax(good, bad)
        with np.errstate(invalid="ignore"):  # a contrast that is left out has NaN, and no tie
            is_high = values[self.bad] >= highest[self.contrast_of_bad] - TIE
            n_high_bad = np.bincount(self.contrast_of_bad, is_high, minlength=len(self.ids))
            return n_high_bad + (good >= highest - TIE) > 1

    def build_scores(
        self,
        name: str,
        values: Floats,
        statistic: Statistic = "proportion",
        *,
        with_chance: bool = False,
        tied: Flags | None = None,
    ) -> Scores:
        """Returns the scores of a measure over contrasts, without those whose value is NaN.

        Args:
            name: of the measure.
            values: one per contrast, (n,), or (n, 2) for correlations.
            statistic: how the values become one number.
            with_chance: whether guessing has a chance level, which is 1 / rows of the contrast.
            tied: whether each contrast is tied, (n,); None for a measure without ties.
        """
        n_rows = 1 + np.bincount(self.contrast_of_bad, minlength=len(self.ids))
        chance = 1 / n_rows if with_chance else None
        scores = build_scores(
            name, self.ids, values, statistic, self.levels, chance, over="contrast", tied=tied
        )
        are_all_equal = len(self.ids) > 0 and bool(self.has_equal_rows.all())
        reason = self.why_not_compared if are_all_equal and not len(scores.items) else ""
        return replace(scores, equal=int(self.has_equal_rows.sum()), not_defined=reason)

    def share_with_good_highest(
        self, name: str, values: Floats, by: float | None = None, *, tied: Flags | None = None
    ) -> Scores:
        """Returns the share of contrasts whose good row has a higher value than every bad row.

        Args:
            name: of the measure.
            values: one per row.
            by: threshold that the difference must exceed; None for any difference. With a threshold
                there is no chance level: it depends on how a model spreads its probability over the
                vocabulary.
            tied: whether each contrast is tied and so not right; None if it follows from `values`.
        """
        tied = self.are_tied(values) if tied is None else tied
        good, bad = self.good_and_highest_bad(values)
        is_right = exceeds(good, bad, by=by or 0.0)
        is_right = np.where(tied & ~np.isnan(is_right), 0.0, is_right)
        return self.build_scores(name, is_right, with_chance=by is None, tied=tied)

    def mean_difference(self, name: str, values: Floats) -> Scores:
        """Returns the mean difference of the good row and the bad row with the highest value."""
        good, bad = self.good_and_highest_bad(values)
        return self.build_scores(name, good - bad, "mean")


def _shared_labels(contrast_of_row: NDArray[np.intp], labels: Labels) -> Labels:
    """Returns, for each contrast, the label that all of its rows share; None where they differ.

    For example, the contrasts [0, 0, 1, 1] with the labels ["a", "a", "a", "b"] have ["a", None].

    Args:
        contrast_of_row: number of the contrast of each row, in order of first appearance from 0.
        labels: of the rows.
    """
    label_of: dict[int, str | None] = {}
    for contrast, label in zip(contrast_of_row.tolist(), labels, strict=True):
        if label_of.setdefault(contrast, label) != label:
            label_of[contrast] = None
    return [*label_of.values()]


def exceeds(good: Floats, bad: Floats, by: float = 0.0) -> Floats:
    """Returns 1.0 where good is above bad by more than `by`, else 0.0; NaN where either is NaN.

    A difference that is equal to `by` within 1e-9 is not above it, however it was rounded.

    >>> exceeds(np.array([0.5, 0.5, np.nan]), np.array([0.4, 0.495, 0.1]), by=0.01).tolist()
    [1.0, 0.0, nan]
    """
    is_undefined = np.isnan(good) | np.isnan(bad)
    with np.errstate(invalid="ignore"):  # -inf less -inf
        is_above = good > bad if by == 0 else good - bad > by + _THRESHOLD_ROUNDING
    return np.where(is_undefined, np.nan, is_above)


def fold_word(text: str, folds: Collection[Fold]) -> str:
    """Returns a word or text without the differences that do not count, in Unicode's form C.

    Two words are the same for a model where this gives the same for both.

    >>> fold_word("V\u00fc", ("case", "accents")), fold_word("V\u00fc", ("case",))
    ('vu', 'v\u00fc')
    """
    # the same words come in thousands of rows, and long texts would fill the memory
    if len(text) <= _LONGEST_WORD:
        return _fold_cached(text, tuple(folds))
    return _fold(text, tuple(folds))


def _fold(text: str, folds: tuple[Fold, ...]) -> str:
    """Returns a text without the differences that `folds` name: "case", "accents", "forms".

    For example, "Vü" -> "vü" without case, "Vu" without accents; "ﬁ" -> "fi" without forms.
    """
    if text.isascii():  # has neither accents nor other forms
        return text.lower() if "case" in folds else text
    # composed and decomposed letters (é) are one word, whatever the tokenizer makes of them
    text = unicodedata.normalize("NFKC" if "forms" in folds else "NFC", text)
    if "case" in folds:
        text = text.lower()
    if "accents" in folds:
        decomposed_text = unicodedata.normalize("NFD", text)
        letters = (c for c in decomposed_text if unicodedata.category(c) != "Mn")  # Mn: accents
        text = unicodedata.normalize("NFC", "".join(letters))
    return text


_fold_cached = lru_cache(maxsize=2**16)(_fold)
"""The same for words, of which many rows have the same; long texts are not kept in memory."""


def folds_for(model: ModelInfo | None, cased: bool | None = None) -> tuple[Fold, ...]:
    """Returns the differences between words that do not count for a model.

    Args:
        model: that made the predictions; None if another program made them.
        cased: compare words exactly, or without case and accents; None for what the model's
            tokenizer reads alike, and exactly without one.
    """
    if cased is None:
        return model.word_folds if model else ()
    return () if cased else UNCASED


def match_rule(folds: Collection[Fold]) -> str:
    """Returns how words are compared, for readers.

    >>> match_rule(()), match_rule(("case", "accents"))
    ('exactly', 'without case and accents')
    """
    if not folds:
        return "exactly"
    names = ["compatibility forms" if fold == "forms" else fold for fold in folds]
    return f"without {listing(names)}"


def is_tied(log_prob: float, other: float) -> bool:
    """Returns whether two log-probabilities are the same but for rounding; NaN equals nothing."""
    return math.isclose(log_prob, other, rel_tol=0, abs_tol=_ROUNDING)


def without_differences(text: str) -> str:
    """Returns a text without what tokenizers may remove, to find texts that may be the same tokens.

    That is case, accents, compatibility forms, characters without width, and repeated white space.

    >>> without_differences("The  Caf\u00e9") == without_differences("the cafe")
    True
    """
    # the same words come in thousands of rows, and long texts would fill the memory
    if len(text) <= _LONGEST_WORD:
        return _simplify_cached(text)
    return _simplify(text)


def _simplify(text: str) -> str:
    """Returns a text without what tokenizers may remove; see `without_differences`."""
    text = fold_word(text, get_args(Fold))
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")  # Cf: without width
    return " ".join(text.split())


_simplify_cached = lru_cache(maxsize=2**16)(_simplify)
