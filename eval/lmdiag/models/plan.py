"""Which questions go through the model together.

Batches are a function of the questions and the size asked for alone, so that every process, and a
run that goes on where another stopped, comes to the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmdiag.models.packing import Pack
from lmdiag.models.rows import Encoded


def batches(
    encoded: Sequence[Encoded], *, budget: int, count: int | None, packed: bool, causal: bool
) -> list[list[int]]:
    """Deals questions out to batches, the one with the most tokens first.

    If that one fits into memory, so do the others, and the small ones at the end let several
    processes finish together. Questions of like length go together, or, where what they have in
    common at their beginning is read once, questions that begin alike.

    Args:
        encoded: the questions.
        budget: tokens in a batch, filled-up places included.
        count: questions in a batch, whatever their length; None to go by the budget.
        packed: whether rows are packed.
        causal: whether packed rows share their beginnings.

    Returns:
        for each batch, the numbers of its questions; every number is in exactly one.
    """
    order = sorted(range(len(encoded)), key=lambda number: (-encoded[number].longest, number))
    if packed and causal:
        order.sort(key=lambda number: encoded[number].rows[0].ids)
    if count is not None:
        dealt = [order[start : start + count] for start in range(0, len(order), count)]
    elif packed:
        dealt = list(_packed(encoded, order, budget, causal=causal))
    else:
        dealt = list(_padded(encoded, order, budget))
    return sorted(dealt, key=lambda batch: -sum(encoded[number].length for number in batch))


def _packed(
    encoded: Sequence[Encoded], order: Sequence[int], budget: int, *, causal: bool
) -> Iterator[list[int]]:
    """Cuts the order where a batch's rows, put into one pack, reach the budget."""
    batch: list[int] = []
    together = Pack(causal=causal)
    for number in order:
        for row in encoded[number].rows:
            together.add(row.ids)
        if batch and len(together.ids) > budget:
            yield batch
            batch, together = [], Pack(causal=causal)
            for row in encoded[number].rows:
                together.add(row.ids)
        batch.append(number)
    if batch:
        yield batch


def _padded(encoded: Sequence[Encoded], order: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Cuts the order where a batch's rows, all as long as its longest, reach the budget."""
    batch: list[int] = []
    rows, width = 0, 0
    for number in order:
        rows += len(encoded[number].rows)
        width = max(width, encoded[number].longest)
        if batch and rows * width > budget:
            yield batch
            batch, rows, width = [], len(encoded[number].rows), encoded[number].longest
        batch.append(number)
    if batch:
        yield batch
