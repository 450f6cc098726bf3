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
        """Returns the scores of some items, by positions or a mask, without break-downs."""
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
        """Returns the scores of all other items, without break-downs."""
        return self.take(np.array([item not in items for item in self.items], dtype=bool))

    def levels_of(self, by: str) -> Collection[str]:
        """Returns the levels of a break-down; of no break-down (""), the level "" of all items."""
        return self.levels.get(by, {}).keys() if by else ("",)

    def at(self, by: str, level: str) -> Scores:
        """Returns the scores of a level of a break-down; of no break-down (""), all of them."""
        if not by:
            return self
        return self.take(self.levels.get(by, {}).get(level, np.array([], dtype=np.intp)))


def build(
    name: str,
    items: Items,
    values: Floats,
    statistic: Statistic,
    labels: Mapping[str, Labels] | None = None,
    chance: Floats | None = None,
    over: str = "id",
    tied: Flags | None = None,
) -> Scores:
    """Returns scores of the items whose value is not NaN; the others are `left_out`.

    Args:
        values: one per item, (n,), or (n, 2) for correlations.
        labels: break-down -> level of each item.
        chance, over, tied: see `Scores`.
    """
    defined = np.all(~np.isnan(np.atleast_2d(values.T)), axis=0)
    scores = Scores(name, items, values, statistic, over=over, chance=chance, tied=tied)
    defined_scores = scores.take(defined)
    levels = {
        by: positions(objects(labels_of_items)[defined])
        for by, labels_of_items in (labels or {}).items()
    }
    levels = {by: where for by, where in levels.items() if where}
    return replace(defined_scores, levels=levels, left_out=tuple(items[~defined]))


def positions(labels: Labels | Items) -> dict[str, NDArray[np.intp]]:
    """Returns level -> positions of its items, in order of first appearance."""
    positions_of: dict[str, list[int]] = {}
    for position, label in enumerate(labels):
        if label is not None:
            positions_of.setdefault(label, []).append(position)
    return {level: np.array(where, dtype=np.intp) for level, where in positions_of.items()}


def objects(values: Sequence[Any]) -> Items:
    """Returns the values as an array of objects, (n,)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def floats(column: Sequence[float | None]) -> Floats:
    """Returns the column as float64, with NaN for None."""
    return np.array(column, dtype=np.float64)


def number_text(number: float) -> str:
    """Returns the shortest text of a number that reads back the same, for names of measures.

    >>> number_text(0.01), number_text(1.0), number_text(1e-05)
    ('0.01', '1', '1e-05')
    """
    return repr(float(number)).removesuffix(".0")


def quartiles(values: Sequence[float | None]) -> Labels:
    """Returns the quartile of each value, "1" to "4"; None for a missing value.

    The bounds are the 25th, 50th and 75th percentile (linear interpolation) of the values, and the
    bins are closed on the right, as in table 8 of Ettinger (2020).
    """
    numbers = floats(values)
    is_missing = np.isnan(numbers)
    if is_missing.all():
        return [None] * len(numbers)
    bounds = np.percentile(numbers[~is_missing], [25, 50, 75])
    bins = np.searchsorted(bounds, numbers, side="left") + 1
    return [
        None if missing else str(number) for number, missing in zip(bins, is_missing, strict=True)
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
        """The rows grouped by their `contrast`."""
        return Contrasts(self)

    def asks_the_same(self, row: int, other: int) -> bool:
        """Whether two rows ask a model the same, as far as texts and log-probabilities show it.

        Texts that differ by `folds` alone are the same tokens; so are texts that differ in case,
        accents or white space alone and have the same log-probability.
        """
        targets = self.rows.get("target")
        # targets first, which differ in most contrasts: perturbed contexts are slow to make
        if targets and without_differences(targets[row]) != without_differences(targets[other]):
            return False
        names = ["sentence"]
        if targets:
            names = (
                ["target", "context"] if self.left_only else ["target", "context", "right_context"]
            )
        columns = [self.rows[name] for name in names]
        pairs = ((column[row], column[other]) for column in columns)
        if all(a == b or fold_word(a, self.folds) == fold_word(b, self.folds) for a, b in pairs):
            return True
        if not self.has("log_prob"):
            return False
        is_same = is_tied(*self.log_prob[[row, other]])
        return is_same and all(
            without_differences(column[row]) == without_differences(column[other])
            for column in columns
        )


class Contrasts:
    """Which rows are compared with each other; a `ValueError` if a contrast has several good rows.

    Attributes:
        ids: contrast ids in order of first appearance, (n,).
        good: position of the good row of each contrast, -1 where it is not among the rows, (n,).
        bad: positions of all bad rows, (m,).
        bad_of: position in `ids` of the contrast of each bad row, (m,).
        levels: break-down -> level of each contrast: the one that all its rows share, or that of
            the good row for `condition`, which differs between the rows by its nature.
        is_equal: whether a bad row asks the model exactly what the good row asks, as texts or as
            tokens, (n,). Such a contrast is not a comparison.
        why_equal: says so, for readers.
    """

    def __init__(self, trials: Trials) -> None:
        position_of = dict[str, int]()
        numbers = [
            position_of.setdefault(name, len(position_of)) for name in trials.rows["contrast"]
        ]
        contrast_of_row = np.array(numbers, dtype=np.intp)
        is_good = np.array(trials.rows["good"], dtype=bool)
        self.ids = objects([*position_of])
        has_several_good = np.bincount(contrast_of_row[is_good], minlength=len(position_of)) > 1
        if has_several_good.any():
            name = self.ids[has_several_good][0]
            raise ValueError(f"contrast {name!r} has several good rows; it must have one")
        self.good = np.full(len(position_of), -1, dtype=np.intp)
        self.good[contrast_of_row[is_good]] = np.flatnonzero(is_good)
        self.bad = np.flatnonzero(~is_good)
        self.bad_of = contrast_of_row[self.bad]
        self.levels: dict[str, Labels] = {}
        for by, labels in trials.levels.items():
            # a break-down in which the rows of a contrast differ has no level for it
            shared_labels: dict[int, str | None] = {}
            for contrast, label in zip(numbers, labels, strict=True):
                shared_labels[contrast] = (
                    label if shared_labels.setdefault(contrast, label) == label else None
                )
            good_labels = [None if row < 0 else labels[row] for row in self.good.tolist()]
            contrast_labels: Labels = (
                good_labels if by == "condition" else [*shared_labels.values()]
            )
            if any(contrast_labels):
                self.levels[by] = contrast_labels
        self.is_equal = np.zeros(len(position_of), dtype=bool)
        for row, contrast in zip(self.bad.tolist(), self.bad_of.tolist(), strict=True):
            good = self.good[contrast]
            self.is_equal[contrast] |= good >= 0 and trials.asks_the_same(row, good)
        self.why_equal = SAME_QUESTION if "target" in trials.rows else SAME_SENTENCE

    def pairs(self, values: Floats) -> tuple[Floats, Floats]:
        """Returns the value of the good row and the highest of the bad rows, (n,) each.

        NaN where a row has none or is missing, and where the contrast is not a comparison.
        """
        good = np.where((self.good < 0) | self.is_equal, np.nan, values[self.good])
        highest = np.full(len(self.ids), -np.inf)
        with np.errstate(invalid="ignore"):  # an unscorable row makes its contrast NaN
            np.maximum.at(highest, self.bad_of, values[self.bad])
        no_bad_row = np.bincount(self.bad_of, minlength=len(self.ids)) == 0
        return good, np.where(no_bad_row | self.is_equal, np.nan, highest)

    def are_tied(self, values: Floats) -> Flags:
        """Returns whether the highest value of each contrast is that of two rows or more, (n,).

        So are values that differ by `TIE` at most. Of three rows, the two may both be bad ones: a
        guess between all rows is right in 1/3 of the contrasts that are not tied only if ties
        between bad rows are left out as well.
        """
        good, bad = self.pairs(values)
        highest = np.fmax(good, bad)
        with np.errstate(invalid="ignore"):  # a contrast that is left out has NaN, and no tie
            is_high = values[self.bad] >= highest[self.bad_of] - TIE
            n_high = np.bincount(self.bad_of, is_high, minlength=len(self.ids))
            return n_high + (good >= highest - TIE) > 1

    def build(
        self,
        name: str,
        values: Floats,
        statistic: Statistic = "proportion",
        *,
        with_chance: bool = False,
        tied: Flags | None = None,
    ) -> Scores:
        """Returns scores over the contrasts whose value is not NaN.

        The chance level is that guessing puts the good row first: 1 / rows of the contrast.
        """
        n_rows = 1 + np.bincount(self.bad_of, minlength=len(self.ids))
        chance = 1 / n_rows if with_chance else None
        scores = build(name, self.ids, values, statistic, self.levels, chance, "contrast", tied)
        are_all_equal = len(self.ids) > 0 and bool(self.is_equal.all())
        reason = self.why_equal if are_all_equal and not len(scores.items) else ""
        return replace(scores, equal=int(self.is_equal.sum()), not_defined=reason)

    def verdicts(
        self, name: str, values: Floats, by: float | None = None, *, tied: Flags | None = None
    ) -> Scores:
        """Returns the share of contrasts whose good row is higher than every bad row, or by `by`.

        With such a threshold there is no chance level: it depends on how a model spreads its
        probability over the vocabulary. `tied` is whether each contrast is tied, where this does
        not follow from the same values.
        """
        tied = self.are_tied(values) if tied is None else tied
        verdicts = higher(*self.pairs(values), by=by or 0.0)
        verdicts = np.where(tied & ~np.isnan(verdicts), 0.0, verdicts)
        return self.build(name, verdicts, with_chance=by is None, tied=tied)

    def differences(self, name: str, values: Floats) -> Scores:
        """Returns the mean difference of the good row and the bad row with the highest value."""
        good, bad = self.pairs(values)
        return self.build(name, good - bad, "mean")


def higher(good: Floats, bad: Floats, by: float = 0.0) -> Floats:
    """Returns 1.0 where good is above bad by more than `by`, else 0.0; NaN where either is NaN.

    A difference that is equal to `by` within 1e-9 is not above it, however it was rounded.
    """
    undefined = np.isnan(good) | np.isnan(bad)
    with np.errstate(invalid="ignore"):  # -inf less -inf
        above = good > bad if by == 0 else good - bad > by + _THRESHOLD_ROUNDING
    return np.where(undefined, np.nan, above)


def fold_word(text: str, folds: Collection[Fold]) -> str:
    """Returns a word or text without the differences that do not count, in Unicode's form C.

    Two words are the same for a model where this gives the same for both.

    >>> fold_word("V\u00fc", ("case", "accents")), fold_word("V\u00fc", ("case",))
    ('vu', 'v\u00fc')
    """
    # the same words come in thousands of rows, and long texts would fill the memory
    fold = _folded_word if len(text) <= _LONGEST_WORD else _folded
    return fold(text, tuple(folds))


def _folded(text: str, folds: tuple[Fold, ...]) -> str:
    if text.isascii():  # has neither accents nor other forms
        return text.lower() if "case" in folds else text
    # composed and decomposed letters (é) are one word, whatever the tokenizer makes of them
    """Returns a text without the differences that `folds` name; see `fold_word`."""
    text = unicodedata.normalize("NFKC" if "forms" in folds else "NFC", text)
    if "case" in folds:
        text = text.lower()
    if "accents" in folds:
        letters = (c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = unicodedata.normalize("NFC", "".join(letters))
    return text


_folded_word = lru_cache(maxsize=2**16)(_folded)
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
    *others, last = names
    return f"without {', '.join(others)} and {last}" if others else f"without {last}"


def is_tied(log_prob: float, other: float) -> bool:
    """Returns whether two log-probabilities are the same but for rounding; NaN is not."""
    return math.isclose(log_prob, other, rel_tol=0, abs_tol=_ROUNDING)


def without_differences(text: str) -> str:
    """Returns a text without what tokenizers may remove.

    That is what `fold_word` says, characters without width, and blanks.

    >>> without_differences("The  Caf\u00e9") == without_differences("the cafe")
    True
    """
    alike = _alike_word if len(text) <= _LONGEST_WORD else _alike
    return alike(text)


def _alike(text: str) -> str:
    """Returns a text without what tokenizers may remove; see `without_differences`."""
    folded = fold_word(text, get_args(Fold))
    if folded.isascii():
        return " ".join(folded.split())
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


_alike_word = lru_cache(maxsize=2**16)(_alike)
