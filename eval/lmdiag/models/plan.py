"""Which questions go through the model together.

Batches are a function of the questions and the size asked for alone, so that every process, and a
run that goes on where another stopped, comes to the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lmdiag.models.packing import Pack
from lmdiag.models.rows import Encoded

FULL = 15 / 16
"""Part of a batch's packs that can be filled: contexts do not add up to their width."""


def batches(
    encoded: Sequence[Encoded],
    *,
    budget: int,
    count: int | None,
    packed: bool,
    causal: bool,
    short_limit: int | None = None,
) -> list[list[int]]:
    """Deals questions out to batches, the one with the most tokens first.

    If that one fits into memory, so do the others. What goes together depends on how rows are laid
    out: questions of like length where the shorter ones are filled up; questions of all lengths
    where rows are packed, which fills the packs; questions that begin alike where packs share what
    their rows have in common.

    Args:
        encoded: the questions.
        budget: tokens in a batch, filled-up places included.
        count: questions in a batch, whatever their length; None to go by the budget.
        packed: whether rows are packed.
        causal: whether packed rows share their beginnings.
        short_limit: longest input in tokens that the model reads as a short one; questions with
            longer ones have batches of their own. None where the length makes no difference.

    Returns:
        for each batch, the numbers of its questions; every number is in exactly one.
    """
    order = sorted(range(len(encoded)), key=lambda number: (-encoded[number].longest, number))
    if packed and causal:
        order.sort(key=lambda number: encoded[number].rows[0].ids)
    dealt: list[list[int]] = []
    for some in _by_length(encoded, order, short_limit):
        if packed and causal:
            dealt += _alike(encoded, some, budget * FULL, count)
        elif packed:
            dealt += _mixed(encoded, some, budget * FULL, count)
        else:
            dealt += _padded(encoded, some, budget, count)
    return sorted(dealt, key=lambda batch: -sum(encoded[number].length for number in batch))


def _by_length(
    encoded: Sequence[Encoded], order: Sequence[int], short_limit: int | None
) -> list[list[int]]:
    """Returns the order, or what is long and what is short in it."""
    if short_limit is None:
        return [list(order)]
    long = [number for number in order if encoded[number].longest > short_limit]
    short = [number for number in order if encoded[number].longest <= short_limit]
    return [some for some in (long, short) if some]


def _mixed(
    encoded: Sequence[Encoded], order: Sequence[int], budget: float, count: int | None
) -> list[list[int]]:
    """Deals the order out like cards: batches of like size, each with all lengths."""
    total = sum(encoded[number].length for number in order)
    n_batches = math.ceil(len(order) / count if count else total / budget)
    return [list(order[first::n_batches]) for first in range(min(n_batches, len(order)))]


def _alike(
    encoded: Sequence[Encoded], order: Sequence[int], budget: float, count: int | None
) -> Iterator[list[int]]:
    """Cuts the order where a batch's rows, what they share counted once, reach the budget."""
    batch: list[int] = []
    together = Pack(causal=True)
    for number in order:
        for row in encoded[number].rows:
            together.add(row.ids)
        if batch and (len(batch) >= count if count else len(together.ids) > budget):
            yield batch
            batch, together = [], Pack(causal=True)
            for row in encoded[number].rows:
                together.add(row.ids)
        batch.append(number)
    if batch:
        yield batch


def _padded(
    encoded: Sequence[Encoded], order: Sequence[int], budget: float, count: int | None
) -> Iterator[list[int]]:
    """Cuts the order where a batch's rows, all as long as its longest, reach the budget."""
    batch: list[int] = []
    rows, width = 0, 0
    for number in order:
        rows += len(encoded[number].rows)
        width = max(width, encoded[number].longest)
        if batch and (len(batch) >= count if count else rows * width > budget):
            yield batch
            batch, rows, width = [], len(encoded[number].rows), encoded[number].longest
        batch.append(number)
    if batch:
        yield batch
