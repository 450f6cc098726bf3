"""Several contexts in one row: a few full rows take less time than many short ones.

Each token attends to the tokens of its own context only, by a mask, and has its position in its own
context. A pack of a causal model is the prefix tree of its contexts: a common prefix is read once.
Masked models read both sides of a token, so that nothing can be shared: a pack is a row of blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from lmdiag.models.tokens.spelling import Pieces

PACK_WIDTH = 64
"""Tokens in the longest packs. Longer ones gain less, since attention grows with the square."""

_STEP = 4
"""Difference between the widths that are tried."""


class PrefixTree:
    """Numbers the prefixes of contexts: equal prefixes have one number.

    Args:
        shares: whether contexts share their common prefixes; else no two prefixes are equal.
    """

    def __init__(self, *, shares: bool) -> None:
        self._shares = shares
        self._children: dict[tuple[int, int], int] = {}
        self._size = 0

    def __len__(self) -> int:
        """Number of different prefixes: tokens that have to be read."""
        return self._size

    def add(self, ids: Pieces) -> list[int]:
        """Adds a context and returns the number of its prefix up to each token."""
        path, parent = [], -1
        for token in ids:
            key = (parent, token) if self._shares else (-1, self._size)
            parent = self._children.setdefault(key, self._size)
            self._size += parent == self._size
            path.append(parent)
        return path


class Pack:
    """Contexts side by side in one row.

    Attributes:
        ids: tokens of the row.
        depths: each token's position in its context, from 0.
        places: for each context, the places of its tokens in the row.
    """

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.depths: list[int] = []
        self.places: list[list[int]] = []
        self._place_of: dict[int, int] = {}

    def n_shared(self, path: Sequence[int]) -> int:
        """Returns how many tokens at the beginning of a context the pack has already."""
        return bisect_left(path, True, key=lambda prefix: prefix not in self._place_of)

    def add(self, ids: Pieces, path: Sequence[int]) -> list[int]:
        """Adds a context and returns the places of its tokens.

        Args:
            ids: its tokens.
            path: what `PrefixTree.add` returned for it.
        """
        for depth in range(self.n_shared(path), len(ids)):
            self._place_of[path[depth]] = len(self.ids)
            self.ids.append(ids[depth])
            self.depths.append(depth)
        self.places.append([self._place_of[prefix] for prefix in path])
        return self.places[-1]

    def mask(self, width: int, *, causal: bool) -> np.ndarray:
        """Returns which token attends to which: (width, width) booleans, [i, j] where i sees j.

        Places beyond the last token see themselves, since a softmax over nothing is NaN.
        """
        sees = np.eye(width, dtype=bool)
        for places in self.places:
            inside = np.ones((len(places), len(places)), dtype=bool)
            sees[np.ix_(places, places)] |= np.tril(inside) if causal else inside
        return sees


def pack_contexts(
    contexts: Sequence[Pieces], width: int, *, causal: bool
) -> tuple[list[Pack], list[tuple[int, list[int]]]]:
    """Puts contexts into packs, with the fewest gaps over several widths.

    All packs are as wide as the widest when they go through the model.

    Args:
        contexts: token ids of each.
        width: tokens that a pack holds at most; no context is longer.
        causal: whether contexts share their common prefixes.

    Returns:
        The packs, and for each context the number of its pack and the places of its tokens there.
    """
    tree = PrefixTree(shares=causal)
    paths = [tree.add(ids) for ids in contexts]
    narrowest = max(width // 2, *map(len, contexts))
    tried = [_fill(contexts, paths, size) for size in range(width, narrowest - 1, -_STEP)]
    return min(tried, key=lambda packed: len(packed[0]) * max(len(pack.ids) for pack in packed[0]))


def _fill(
    contexts: Sequence[Pieces], paths: Sequence[Sequence[int]], width: int
) -> tuple[list[Pack], list[tuple[int, list[int]]]]:
    """Puts each context, the longest first, into the first pack of those that have most of it."""
    packs: list[Pack] = []
    placed: list[tuple[int, list[int]]] = [(0, [])] * len(contexts)
    for number in sorted(range(len(contexts)), key=lambda n: (-len(contexts[n]), contexts[n])):
        ids, path = contexts[number], paths[number]
        shared = [pack.n_shared(path) for pack in packs]
        fitting = [
            (-n_shared, index)
            for index, n_shared in enumerate(shared)
            if len(packs[index].ids) + len(ids) - n_shared <= width
        ]
        index = min(fitting)[1] if fitting else len(packs)
        if not fitting:
            packs.append(Pack())
        placed[number] = (index, packs[index].add(ids, path))
    return packs, placed
