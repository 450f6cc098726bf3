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
    batch_limit = budget * _FULL_BATCH if packed else budget
    if packed and not causal:
        total = sum(question.length for question in encoded)
        n_batches = max(1, math.ceil(len(order) / count if count else total / batch_limit))
        # Every n-th question by length: each batch gets rows of all lengths, and short ones fill
        # the packs of long ones.
        batches = [order[first::n_batches] for first in range(min(n_batches, len(order)))]
    else:
        if packed:
            # In the order of their tokens, so that neighbours share beginnings. A sentence of one
            # token with nothing before it has no rows.
            order.sort(key=lambda number: [row.ids for row in encoded[number].rows[:1]])
        batches = [[]]
        tree = Pack(shares=True)  # of the open batch: its size is what the batch would take
        n_long_tokens = 0
        for number in order:
            shares = packed and encoded[number].length <= batch_limit  # a long text fills a batch
            # The tree is built anew in a new batch, where the first questions share nothing.
            for _ in range(2):
                for row in encoded[number].rows if shares else ():
                    tree.add(row.ids)
                n_long_tokens += 0 if shares else encoded[number].length
                is_full = (
                    len(batches[-1]) >= count
                    if count
                    else len(tree.ids) + n_long_tokens > batch_limit
                )
                if not (batches[-1] and is_full):
                    break
                batches.append([])
                tree = Pack(shares=True)
                n_long_tokens = 0
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
    fewest_tokens = math.inf
    best_packs: list[list[int]] = []
    # A narrower pack may leave fewer gaps: all packs are as wide as the fullest one.
    for pack_width in range(width, max(width // 2, *lengths) - 1, -1):
        members, pack_sizes = _fill_packs(lengths, paths, order, pack_width)
        n_tokens = len(pack_sizes) * max(pack_sizes)
        if n_tokens < fewest_tokens:
            fewest_tokens = n_tokens
            best_packs = members
        if sum(pack_sizes) >= _FULL * n_tokens:
            break
    packs = []
    packed_at: list[tuple[int, list[int]]] = [(0, [])] * len(contexts)
    for index, numbers in enumerate(best_packs):
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


def _fill_packs(
    lengths: Sequence[int], paths: Sequence[Sequence[int]], order: Sequence[int], pack_width: int
) -> tuple[list[list[int]], list[int]]:
    """Puts each context into the first of those packs with room that have its longest prefix.

    Args:
        lengths: tokens of each context.
        paths: for each context the numbers of its prefixes; empty if contexts do not share them.
        order: numbers of the contexts.
        pack_width: tokens that a pack holds.

    Returns:
        for each pack the numbers of its contexts, and its tokens.
    """
    contexts_of_pack: list[list[int]] = []
    pack_sizes: list[int] = []
    packs_with: dict[int, list[int]] = {}  # number of a prefix -> packs
    for number in order:
        path = paths[number]
        n_shared = next((n for n, prefix in enumerate(path) if prefix not in packs_with), len(path))
        packs_with_room: list[int] = []
        # Shorter and shorter prefixes, until a pack that has one has room for the rest.
        while n_shared and not packs_with_room:
            n_new = lengths[number] - n_shared
            packs = packs_with[path[n_shared - 1]]
            packs_with_room = [pack for pack in packs if pack_sizes[pack] + n_new <= pack_width]
            if not packs_with_room:
                n_shared -= 1
        n_new = lengths[number] - n_shared
        if not packs_with_room:
            packs_with_room = [
                pack for pack, count in enumerate(pack_sizes) if count + n_new <= pack_width
            ]
        index = min(packs_with_room, default=len(pack_sizes))
        if index == len(pack_sizes):
            contexts_of_pack.append([])
            pack_sizes.append(0)
        contexts_of_pack[index].append(number)
        pack_sizes[index] += n_new
        for prefix in path[n_shared:]:
            packs_with.setdefault(prefix, []).append(index)
    return contexts_of_pack, pack_sizes
