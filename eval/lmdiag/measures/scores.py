"""The record of a measure: one value per item, and the same for each level of a break-down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, Sequence[Any]]
"""Column name -> one value per row."""

Statistic = Literal["proportion", "mean", "median", "share", "spearman", "pearson"]
"""How the values of the items become one number.

proportion: mean of values that are each 0 or 1; share: mean of values in [0, 1]; mean, median: of
any values; spearman, pearson: correlation of the two columns of the values.
"""

Floats = NDArray[np.float64]
Where = NDArray[Any] | Sequence[int]
"""Some items, by positions or by a mask."""
Items = NDArray[np.object_]
Labels = Sequence[str | None]
"""Level of each item in some break-down; None for an item that has no place in it."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A measure as its per-item values.

    Attributes:
        name: e.g. "accuracy@1", "sensitivity@0.01".
        items: ids of what was counted, (n,): rows, contrasts, or a context's first row.
        values: one value per item, (n,), or (n, 2) for correlations.
        statistic: how the values are summed up.
        by: break-down -> level -> the scores of that level; these have no break-down themselves.
        left_out: ids of items that could not be scored (an unscorable word, no kept verb).
        chance: probability that an item is counted as right by guessing, (n,); None for a measure
            without a chance level.
        not_defined: why no item has a value, for readers; "" where some have, or may have.
    """

    name: str
    items: Items
    values: Floats
    statistic: Statistic
    by: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    chance: Floats | None = None
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
    """Returns scores of the items whose value is defined; those with NaN are the ones left out."""
    defined = np.all(~np.isnan(np.atleast_2d(values.T)), axis=0)
    kept = Scores(name, items, values, statistic, chance=chance).take(defined)
    by = {column: split(kept, select(labels, defined)) for column, labels in (levels or {}).items()}
    by = {column: parts for column, parts in by.items() if parts}
    return replace(kept, by=by, left_out=tuple(items[~defined]))


def split(scores: Scores, labels: Labels) -> dict[str, Scores]:
    """Returns level -> scores of its items, in order of first appearance."""
    return {level: scores.take(where) for level, where in positions(labels).items()}


def positions(labels: Iterable[str | None]) -> dict[str, NDArray[np.intp]]:
    """Returns level -> positions of its items; items without a level are in none."""
    found: dict[str, list[int]] = {}
    for position, label in enumerate(labels):
        if label is not None:
            found.setdefault(label, []).append(position)
    return {level: np.array(where, dtype=np.intp) for level, where in found.items()}


def select(labels: Labels, where: Where) -> Labels:
    """Returns the labels of some items."""
    chosen: list[str | None] = objects(labels)[where].tolist()
    return chosen


def objects(values: Sequence[Any]) -> Items:
    """Returns the values as an array of objects, (n,)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def floats(column: Sequence[float | None]) -> Floats:
    """Returns the column as float64, with NaN for None."""
    return np.array(column, dtype=np.float64)


def label(number: float) -> str:
    """Returns the shortest text of a number that reads back the same, as names of measures have it.

    >>> label(0.01), label(1.0), label(1e-05)
    ('0.01', '1', '1e-05')
    """
    return repr(float(number)).removesuffix(".0")


def known(columns: Columns, name: str) -> bool:
    """Returns whether a column is there and says anything at all."""
    return any(value is not None for value in columns.get(name, ()))
