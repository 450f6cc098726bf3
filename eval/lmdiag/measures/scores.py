"""The record of a measure: one value per item, and the same for each level of a break-down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, Sequence[Any]]
"""Column name -> one value per row."""

Statistic = Literal["proportion", "share", "mean", "median", "spearman", "pearson"]
"""How the values of the items become one number.

proportion: mean of values that are 0 or 1; share: mean of values in [0, 1]; mean, median: of any
values; spearman, pearson: correlation of the two columns of the values.
"""

Floats = NDArray[np.float64]
Items = NDArray[np.object_]
Where = NDArray[Any] | Sequence[int]
"""Some items, by positions or by a mask."""

Labels = Sequence[str | None]
"""Level of each item in a break-down; None for an item that is in none of its levels."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A measure as its per-item values.

    Attributes:
        name: e.g. "accuracy@1", "sensitivity@0.01".
        items: ids of what was counted, (n,): rows, contrasts, or the first row of a context.
        values: one value per item, (n,), or (n, 2) for correlations.
        statistic: how the values become one number.
        by: break-down -> level -> the scores of that level, without break-downs of their own.
        left_out: ids of items that could not be scored (an unscorable word, no verb kept).
        chance: probability that guessing counts an item as right, (n,); None for a measure without
            a chance level.
        equal: number of contrasts that were left out because their rows ask the same.
        not_defined: why no item has a value, for readers; "" where some have or may have one.
    """

    name: str
    items: Items
    values: Floats
    statistic: Statistic
    by: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    chance: Floats | None = None
    equal: int = 0
    not_defined: str = ""

    def take(self, where: Where) -> Scores:
        """Returns the scores of some items, without break-downs."""
        chance = None if self.chance is None else self.chance[where]
        return Scores(
            self.name, self.items[where], self.values[where], self.statistic, chance=chance
        )


def build(
    name: str,
    items: Items,
    values: Floats,
    statistic: Statistic,
    levels: Mapping[str, Labels] | None = None,
    chance: Floats | None = None,
) -> Scores:
    """Returns scores of the items whose value is defined; items with NaN are left out."""
    defined = np.all(~np.isnan(np.atleast_2d(values.T)), axis=0)
    kept = Scores(name, items, values, statistic, chance=chance).take(defined)
    by = {
        column: {level: kept.take(where) for level, where in positions(labels, defined).items()}
        for column, labels in (levels or {}).items()
    }
    by = {column: parts for column, parts in by.items() if parts}
    return replace(kept, by=by, left_out=tuple(items[~defined]))


def positions(labels: Labels, where: Where | None = None) -> dict[str, NDArray[np.intp]]:
    """Returns level -> positions of its items, in order of first appearance.

    Args:
        labels: level of each item.
        where: restricts the items; the positions are then among these.
    """
    places: dict[str, list[int]] = {}
    for position, label in enumerate(labels if where is None else objects(labels)[where]):
        if label is not None:
            places.setdefault(label, []).append(position)
    return {level: np.array(place, dtype=np.intp) for level, place in places.items()}


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
    known = ~np.isnan(numbers)
    if not known.any():
        return [None] * len(numbers)
    bins = np.searchsorted(np.percentile(numbers[known], [25, 50, 75]), numbers, side="left") + 1
    return [str(number) if is_known else None for number, is_known in zip(bins, known, strict=True)]
