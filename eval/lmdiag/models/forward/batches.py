"""Which questions go through the model together.

Batches are a function of the questions and the batch size alone, so that every process, and a run
that continues an interrupted one, computes identical batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lmdiag.models.forward.packing import PrefixTree
from lmdiag.models.tokens.questions import EncodedQuestion
from lmdiag.models.tokens.sentences import EncodedSentence

_FULL_BATCH = 15 / 16
"""Part of a batch's packs that can be filled: contexts do not add up to their width."""

Encoded = EncodedQuestion | EncodedSentence


def plan_batches(
    encoded: Sequence[Encoded], *, budget: int, count: int | None, packed: bool, causal: bool
) -> list[list[int]]:
    """Groups questions into batches, largest first.

    If the largest one fits into memory, so do the others. Rows of one length go together, packed
    rows with rows of all lengths, which fills the packs, and packed rows of causal models with rows
    that begin alike, which share their prefix.

    Args:
        encoded: the questions.
        budget: tokens in a batch.
        count: questions in a batch, whatever their length; None to go by the budget.
        packed: whether rows are packed.
        causal: whether packed rows share their prefixes.

    Returns:
        for each batch, the numbers of its questions; every number is in exactly one.
    """
    order = sorted(range(len(encoded)), key=lambda number: (-encoded[number].longest, number))
    limit = budget * _FULL_BATCH if packed else budget
    if packed and causal:
        # A sentence of one token with nothing before it has no rows.
        order.sort(key=lambda number: [row.ids for row in encoded[number].rows[:1]])
    if packed and not causal:
        total = sum(question.length for question in encoded)
        n_batches = max(1, math.ceil(len(order) / count if count else total / limit))
        batches = [order[first::n_batches] for first in range(min(n_batches, len(order)))]
    else:
        batches = [*_cut(encoded, order, limit, count, shares=packed)]
    return sorted(batches, key=lambda batch: -sum(encoded[number].length for number in batch))


def _cut(
    encoded: Sequence[Encoded],
    order: Sequence[int],
    limit: float,
    count: int | None,
    *,
    shares: bool,
) -> Iterator[list[int]]:
    """Cuts the order where a batch reaches the limit of tokens, or the count of questions."""
    batch: list[int] = []
    tree, total = PrefixTree(shares=True), 0
    for number in order:
        total = _add(tree, encoded[number]) if shares else total + encoded[number].length
        if batch and (len(batch) >= count if count else total > limit):
            yield batch
            batch, tree = [], PrefixTree(shares=True)
            total = _add(tree, encoded[number]) if shares else encoded[number].length
        batch.append(number)
    if batch:
        yield batch


def _add(tree: PrefixTree, question: Encoded) -> int:
    """Adds the rows of a question to a tree, and returns the tokens in it."""
    for row in question.rows:
        tree.add(row.ids)
    return len(tree)
