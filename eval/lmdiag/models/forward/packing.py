"""Which questions go through the model together, and several contexts in one row.

A few full rows take less time than many short ones. Each token of a pack attends to the tokens of
its own context only, by a mask, and has its position in its own context. A pack of a causal model
is the prefix tree of its contexts: a common prefix is read once. Masked models read both sides of a
token, so that nothing can be shared: a pack is a row of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lmdiag.models.tokens.encoded_sentences import Encoded
from lmdiag.models.tokens.spelling import Pieces

_FULL = 0.99
"""Part of the packs that is filled, at which no further width is tried."""

_FULL_BATCH = 15 / 16
"""Part of a batch's packs that can be filled: contexts do not add up to their width."""


def plan_batches(
    encoded: Sequence[Encoded],
    *,
    budget: int,
    count: int | None,
    packed: bool,
    causal: bool,
) -> list[list[int]]:
    """Groups questions into batches, largest first.

    The batches are a function of the arguments alone, so that every process, and a run that
    continues an interrupted one, computes identical batches. If the largest one fits into memory,
    so do the others. Rows of one length go together, packed rows with rows of all lengths, which
    fills the packs, and packed rows of causal models with rows that begin alike, which share their
    prefix.

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
    if packed and not causal:
        total = sum(question.length for question in encoded)
        n_batches = max(1, math.ceil(len(order) / count if count else total / limit))
        # Each batch gets rows of all lengths: short ones fill the packs of long ones.
        batches = [order[first::n_batches] for first in range(min(n_batches, len(order)))]
    else:
        if packed:  # a sentence of one token with nothing before it has no rows
            order.sort(key=lambda number: [row.ids for row in encoded[number].rows[:1]])
        batches, tree, alone = [[]], Pack(shares=True), 0
        for number in order:
            shares = packed and encoded[number].length <= limit  # a long text fills a batch
            # The tree is built anew in a new batch, where the first questions share nothing.
            for _ in range(2):
                for row in encoded[number].rows if shares else ():
                    tree.add(row.ids)
                alone += 0 if shares else encoded[number].length
                is_full = len(batches[-1]) >= count if count else len(tree.ids) + alone > limit
                if not (batches[-1] and is_full):
                    break
                batches.append([])
                tree, alone = Pack(shares=True), 0
            batches[-1].append(number)
    batches = [batch for batch in batches if batch]
    return sorted(batches, key=lambda batch: -sum(encoded[number].length for number in batch))


class Pack:
    """Contexts side by side in one row.

    Args:
        shares: whether contexts share their common prefixes.

    Attributes:
        ids: tokens of the row.
        offsets: for each context, those of its tokens in the row.
    """

    def __init__(self, *, shares: bool) -> None:
        self.ids: list[int] = []
        self.offsets: list[list[int]] = []
        self._shares = shares
        self._next: dict[tuple[int, int], int] = {}  # offset and the token after it -> its offset

    def shared(self, ids: Pieces) -> list[int]:
        """Returns the offsets of the tokens at the beginning of a context that the pack has."""
        offsets: list[int] = []
        for token in ids if self._shares else ():
            offset = self._next.get((offsets[-1] if offsets else -1, token))
            if offset is None:
                break
            offsets.append(offset)
        return offsets

    def add(self, ids: Pieces) -> list[int]:
        """Adds a context and returns the offsets of its tokens."""
        offsets = self.shared(ids)
        for token in ids[len(offsets) :]:
            self._next[offsets[-1] if offsets else -1, token] = len(self.ids)
            offsets.append(len(self.ids))
            self.ids.append(token)
        self.offsets.append(offsets)
        return offsets

    def mask(self, width: int, *, causal: bool) -> np.ndarray:
        """Returns which token attends to which: (width, width) booleans, [i, j] where i sees j.

        Offsets beyond the last token see themselves, since a softmax over nothing is NaN.
        """
        sees = np.eye(width, dtype=bool)
        for offsets in self.offsets:
            inside = np.ones((len(offsets), len(offsets)), dtype=bool)
            sees[np.ix_(offsets, offsets)] |= np.tril(inside) if causal else inside
        return sees


def pack_contexts(
    contexts: Sequence[Pieces], width: int, *, causal: bool
) -> tuple[list[Pack], list[tuple[int, list[int]]]]:
    """Puts contexts into packs, with the fewest gaps over several widths.

    Each context, the longest first, goes into the first pack of those that have most of it. All
    packs are as wide as the widest when they go through the model.

    Args:
        contexts: token ids of each.
        width: tokens that a pack holds at most; no context is longer.
        causal: whether contexts share their common prefixes.

    Returns:
        The packs, and for each context the number of its pack and the offsets of its tokens there.
    """
    order = sorted(range(len(contexts)), key=lambda n: (-len(contexts[n]), contexts[n]))
    lengths = [*map(len, contexts)]
    paths = _prefix_numbers(contexts) if causal else [()] * len(contexts)
    fewest = math.inf
    chosen: list[list[int]] = []
    # A narrower pack may leave fewer gaps: all packs are as wide as the fullest one.
    for size in range(width, max(width // 2, *lengths) - 1, -1):
        members, filled = _fill(lengths, paths, order, size)
        n_tokens = len(filled) * max(filled)
        if n_tokens < fewest:
            fewest = n_tokens
            chosen = members
        if sum(filled) >= _FULL * n_tokens:
            break
    packs = []
    packed_at: list[tuple[int, list[int]]] = [(0, [])] * len(contexts)
    for index, numbers in enumerate(chosen):
        packs.append(Pack(shares=causal))
        for number in numbers:
            packed_at[number] = (index, packs[index].add(contexts[number]))
    return packs, packed_at


def _prefix_numbers(contexts: Sequence[Pieces]) -> list[list[int]]:
    """Returns for each context a number of each of its prefixes, the same for equal ones."""
    numbers: dict[tuple[int, int], int] = {}  # prefix without its last token, and that token
    paths = []
    for ids in contexts:
        path: list[int] = []
        for token in ids:
            before = path[-1] if path else -1
            path.append(numbers.setdefault((before, token), len(numbers)))
        paths.append(path)
    return paths


def _fill(
    lengths: Sequence[int], paths: Sequence[Sequence[int]], order: Sequence[int], size: int
) -> tuple[list[list[int]], list[int]]:
    """Puts each context into the first of those packs with room that have its longest prefix.

    Args:
        lengths: tokens of each context.
        paths: for each context the numbers of its prefixes; empty if contexts do not share them.
        order: numbers of the contexts.
        size: tokens that a pack holds.

    Returns:
        for each pack the numbers of its contexts, and its tokens.
    """
    members: list[list[int]] = []
    filled: list[int] = []
    packs_with: dict[int, list[int]] = {}  # number of a prefix -> packs
    for number in order:
        path = paths[number]
        n_shared = next((n for n, prefix in enumerate(path) if prefix not in packs_with), len(path))
        fitting: list[int] = []
        # Shorter and shorter prefixes, until a pack that has one has room for the rest.
        while n_shared and not fitting:
            n_new = lengths[number] - n_shared
            packs = packs_with[path[n_shared - 1]]
            fitting = [pack for pack in packs if filled[pack] + n_new <= size]
            n_shared -= not fitting
        n_new = lengths[number] - n_shared
        if not fitting:
            fitting = [pack for pack, count in enumerate(filled) if count + n_new <= size]
        index = min(fitting, default=len(filled))
        if index == len(filled):
            members.append([])
            filled.append(0)
        members[index].append(number)
        filled[index] += n_new
        for prefix in path[n_shared:]:
            packs_with.setdefault(prefix, []).append(index)
    return members, filled
