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

_FULL_PACKS = 0.99
"""Share of the packs that is filled, from which on no further width is tried."""

_FULL_BATCH = 15 / 16
"""Share of a batch's packs that can be filled: contexts do not add up to their width."""


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
    longest_first = sorted(range(len(encoded)), key=lambda n: (-encoded[n].longest, n))
    batch_limit = budget * _FULL_BATCH if packed else budget
    if packed and not causal:
        n_tokens = sum(question.length for question in encoded)
        n_parts = len(encoded) / count if count else n_tokens / batch_limit
        n_batches = max(1, math.ceil(n_parts))
        # Every n-th question by length: each batch gets rows of all lengths, and short ones fill
        # the packs of long ones.
        batches = [longest_first[start::n_batches] for start in range(n_batches)]
    else:
        order = longest_first
        if packed:
            # In the order of their tokens, so that neighbours share beginnings. A sentence of one
            # token with nothing before it has no rows.
            order.sort(key=lambda n: [row.ids for row in encoded[n].rows[:1]])
        batches = _batches_of_neighbours(
            encoded, order, batch_limit=batch_limit, count=count, packed=packed
        )
    batches = [batch for batch in batches if batch]
    return sorted(batches, key=lambda batch: -sum(encoded[number].length for number in batch))


def _batches_of_neighbours(
    encoded: Sequence[Encoded],
    order: Sequence[int],
    *,
    batch_limit: float,
    count: int | None,
    packed: bool,
) -> list[list[int]]:
    """Divides questions in a given order into batches, each as full as possible.

    Tokens at the beginning that packed rows share count once.

    Args:
        encoded: the questions.
        order: their numbers.
        batch_limit: tokens in a batch.
        count: questions in a batch; None to go by the tokens.
        packed: whether rows share their prefixes.
    """
    batches: list[list[int]] = [[]]
    tree = Pack(shares=True)  # of the open batch: its size is what the batch would take
    n_long_tokens = 0  # of questions that are not in the tree
    for number in order:
        question = encoded[number]
        is_in_tree = packed and question.length <= batch_limit  # a long text fills a batch
        # If the open batch is full, the question is added again, to the new tree of a new batch.
        for _ in range(2):
            if is_in_tree:
                for row in question.rows:
                    tree.add(row.ids)
            else:
                n_long_tokens += question.length
            if count:
                is_full = len(batches[-1]) >= count
            else:
                is_full = len(tree.ids) + n_long_tokens > batch_limit
            if not is_full or not batches[-1]:  # one question is never too much for a new batch
                break
            batches.append([])
            tree = Pack(shares=True)
            n_long_tokens = 0
        batches[-1].append(number)
    return batches


class Pack:
    """Contexts side by side in one row.

    For example, the contexts (1, 2) and (1, 3) that share prefixes are the row [1, 2, 3], with the
    offsets [0, 1] and [0, 2].

    Args:
        shares: whether contexts share their common prefixes.

    Attributes:
        ids: tokens of the row.
        offsets: for each context, those of its tokens in the row.
    """

    def __init__(self, *, shares: bool) -> None:
        self.ids: list[int] = []  # the row
        self.offsets: list[list[int]] = []  # for each context, where its tokens are in the row
        self._shares = shares
        # (offset of a token, or -1 for none; the token after it) -> offset of the latter
        self._next_offset: dict[tuple[int, int], int] = {}

    def shared_offsets(self, ids: Pieces) -> list[int]:
        """Returns the offsets of the first tokens of a context, as far as the pack has them.

        None are shared if contexts do not share prefixes. `ids` are the tokens of the context.
        """
        offsets: list[int] = []
        if not self._shares:
            return offsets
        before = -1  # offset of the token before; -1 for the first token
        for token in ids:
            offset = self._next_offset.get((before, token))
            if offset is None:
                break
            offsets.append(offset)
            before = offset
        return offsets

    def add(self, ids: Pieces) -> list[int]:
        """Adds a context, and returns the offsets of all its tokens, also of shared ones."""
        offsets = self.shared_offsets(ids)
        before = offsets[-1] if offsets else -1
        for token in ids[len(offsets) :]:
            offset = len(self.ids)
            self._next_offset[before, token] = offset
            offsets.append(offset)
            self.ids.append(token)
            before = offset
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
    longest_first = sorted(range(len(contexts)), key=lambda n: (-len(contexts[n]), contexts[n]))
    lengths = [len(context) for context in contexts]
    prefixes: Sequence[Sequence[int]] = [()] * len(contexts)
    if causal:
        prefixes = _prefix_numbers(contexts)
    fewest_tokens = math.inf
    best_packs: list[list[int]] = []
    # A narrower pack may leave fewer gaps: all packs are as wide as the fullest one. Widths are
    # tried from `width` down to its half, none of which is narrower than the longest context.
    for pack_width in range(width, max(width // 2, *lengths) - 1, -1):
        contexts_of_pack, pack_sizes = _fill_packs(lengths, prefixes, longest_first, pack_width)
        n_tokens = len(pack_sizes) * max(pack_sizes)
        if n_tokens < fewest_tokens:
            fewest_tokens = n_tokens
            best_packs = contexts_of_pack
        if sum(pack_sizes) >= _FULL_PACKS * n_tokens:
            break
    # the packs of the best width, context by context
    packs = []
    packed_at: list[tuple[int, list[int]]] = [(0, [])] * len(contexts)
    for index, numbers in enumerate(best_packs):
        pack = Pack(shares=causal)
        packs.append(pack)
        for number in numbers:
            packed_at[number] = (index, pack.add(contexts[number]))
    return packs, packed_at


def _prefix_numbers(contexts: Sequence[Pieces]) -> list[list[int]]:
    """Returns for each context a number of each of its prefixes, the same for equal ones.

    For example, the contexts (7, 8) and (7, 9) have the prefixes [0, 1] and [0, 2].
    """
    # (number of a prefix, or -1 for none; the token after it) -> number of the longer prefix
    numbers: dict[tuple[int, int], int] = {}
    prefixes_of_contexts = []
    for ids in contexts:
        prefixes: list[int] = []
        before = -1
        for token in ids:
            before = numbers.setdefault((before, token), len(numbers))
            prefixes.append(before)
        prefixes_of_contexts.append(prefixes)
    return prefixes_of_contexts


def _fill_packs(
    lengths: Sequence[int],
    prefixes_of_contexts: Sequence[Sequence[int]],
    order: Sequence[int],
    pack_width: int,
) -> tuple[list[list[int]], list[int]]:
    """Puts each context into the first of those packs with room that have its longest prefix.

    Args:
        lengths: tokens of each context.
        prefixes_of_contexts: for each context the numbers of its prefixes, the shortest first;
            empty if contexts do not share them.
        order: numbers of the contexts, in the order in which they are put into packs.
        pack_width: tokens that a pack holds.

    Returns:
        for each pack the numbers of its contexts, and its tokens.
    """
    contexts_of_pack: list[list[int]] = []
    pack_sizes: list[int] = []
    packs_with: dict[int, list[int]] = {}  # number of a prefix -> packs
    for number in order:
        prefixes = prefixes_of_contexts[number]
        n_shared = 0  # tokens of the longest prefix that some pack has
        while n_shared < len(prefixes) and prefixes[n_shared] in packs_with:
            n_shared += 1
        packs_with_room: list[int] = []
        # Shorter and shorter prefixes, until a pack that has one has room for the rest.
        while n_shared and not packs_with_room:
            n_new = lengths[number] - n_shared
            packs = packs_with[prefixes[n_shared - 1]]
            packs_with_room = [pack for pack in packs if pack_sizes[pack] + n_new <= pack_width]
            if not packs_with_room:
                n_shared -= 1
        n_new = lengths[number] - n_shared
        if not packs_with_room:  # no pack with a common prefix
            packs_with_room = [
                pack for pack, size in enumerate(pack_sizes) if size + n_new <= pack_width
            ]
        # the first pack with room, else a new one
        index = min(packs_with_room, default=len(pack_sizes))
        if index == len(pack_sizes):
            contexts_of_pack.append([])
            pack_sizes.append(0)
        contexts_of_pack[index].append(number)
        pack_sizes[index] += n_new
        for prefix in prefixes[n_shared:]:  # the pack has the shorter ones already
            packs_with.setdefault(prefix, []).append(index)
    return contexts_of_pack, pack_sizes
