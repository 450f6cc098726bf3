"""Which questions go through the model together.

Batches are a function of the questions and the batch size alone, so that every process, and a run
that continues an interrupted one, computes identical batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from lmdiag.models.forward.packing import PrefixTree
from lmdiag.models.tokens.questions import EncodedQuestion
from lmdiag.models.tokens.sentences import EncodedSentence

_FULL_BATCH = 15 / 16
"""Part of a batch's packs that can be filled: contexts do not add up to their width."""


def plan_batches(
    encoded: Sequence[EncodedQuestion | EncodedSentence],
    *,
    budget: int,
    count: int | None,
    packed: bool,
    causal: bool,
    short_limit: int | None = None,
) -> list[list[int]]:
    """Deals questions out to batches, the one with the most tokens first.

    If that one fits into memory, so do the others. Padded rows go with rows of similar length,
    packed rows with rows of all lengths, which fills the packs, and packed rows of causal models
    with rows that begin alike, which share their beginning.

    Args:
        encoded: the questions.
        budget: tokens in a batch, padding included.
        count: questions in a batch, whatever their length; None to go by the budget.
        packed: whether rows are packed.
        causal: whether packed rows share their beginnings.
        short_limit: see `Reader`; questions with longer rows have batches of their own.

    Returns:
        for each batch, the numbers of its questions; every number is in exactly one.
    """
    order = sorted(range(len(encoded)), key=lambda number: (-encoded[number].longest, number))
    if packed and causal:
        # A sentence of one token with nothing before it has no rows.
        order.sort(key=lambda number: [row.ids for row in encoded[number].rows[:1]])
    limit = math.inf if short_limit is None else short_limit
    long = [number for number in order if encoded[number].longest > limit]
    short = [number for number in order if encoded[number].longest <= limit]
    dealt: list[list[int]] = []
    for some in filter(None, (long, short)):
        if packed and causal:
            dealt += _cut(encoded, some, budget * _FULL_BATCH, count, _tree_size)
        elif packed:
            total = sum(encoded[number].length for number in some)
            wanted = len(some) / count if count else total / (budget * _FULL_BATCH)
            n_batches = max(1, math.ceil(wanted))
            dealt += [some[first::n_batches] for first in range(min(n_batches, len(some)))]
        else:
            dealt += _cut(encoded, some, budget, count, _padded_size)
    return sorted(dealt, key=lambda batch: -sum(encoded[number].length for number in batch))


def _cut(
    encoded: Sequence[EncodedQuestion | EncodedSentence],
    order: Sequence[int],
    budget: float,
    count: int | None,
    sizes: Callable[[], Callable[[EncodedQuestion | EncodedSentence], int]],
) -> Iterator[list[int]]:
    """Cuts the order where a batch reaches the budget or the count."""
    batch: list[int] = []
    size = sizes()
    for number in order:
        tokens = size(encoded[number])
        if batch and (len(batch) >= count if count else tokens > budget):
            yield batch
            batch, size = [], sizes()
            size(encoded[number])
        batch.append(number)
    if batch:
        yield batch


def _tree_size() -> Callable[[EncodedQuestion | EncodedSentence], int]:
    """Returns a function that adds a question and returns the tokens of the prefix tree of all."""
    tree = PrefixTree(causal=True)

    def add(question: EncodedQuestion | EncodedSentence) -> int:
        for row in question.rows:
            tree.add(row.ids)
        return len(tree)

    return add


def _padded_size() -> Callable[[EncodedQuestion | EncodedSentence], int]:
    """Returns a function that adds a question and returns the tokens of all rows, padded."""
    rows, width = 0, 0

    def add(question: EncodedQuestion | EncodedSentence) -> int:
        nonlocal rows, width
        rows, width = rows + len(question.rows), max(width, question.longest)
        return rows * width

    return add
