"""Several contexts in one row: a few full rows take less time than many short ones.

Packing takes 15 to 25% off the CPU time of asking the three diagnostics (with and without shuffles)
for the shape of gpt2, and 10% for that of bert-base, measured in one thread.

Each token sees only the tokens of its own context, by a mask, and has its position in its own
context. For causal models a pack is the prefix tree of its contexts: a token sees its ancestors,
and a common beginning of contexts is read once. Masked models read both sides, so that nothing can
be shared: a pack is a row of blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from lmdiag.models.tokens.spelling import Pieces

PACK_WIDTH = 64
"""Tokens in the longest packs. Longer ones gain less, since attention grows with the square."""

_FULL_PACKS = 31 / 32
"""Packs that are filled to this part on average are good enough."""


class PrefixTree:
    """Numbers the beginnings of contexts: equal ones have one number.

    Args:
        causal: whether contexts share their common beginnings.
    """

    def __init__(self, *, causal: bool) -> None:
        self._causal = causal
        self._children: dict[tuple[int, int], int] = {}
        self._size = 0

    def __len__(self) -> int:
        """Number of different beginnings: tokens that have to be read."""
        return self._size

    def add(self, ids: Pieces) -> Sequence[int]:
        """Adds a context and returns the number of its beginning up to each token."""
        path, parent = [], -1
        for token in ids:
            key = (parent, token) if self._causal else (-1, self._size)
            parent = self._children.setdefault(key, self._size)
            self._size += parent == self._size
            path.append(parent)
        return path


class Pack:
    """Contexts side by side.

    Args:
        causal: whether they share their common beginnings.

    Attributes:
        ids: tokens.
        depths: each token's position in its context, from 0.
    """

    def __init__(self, *, causal: bool) -> None:
        self.causal = causal
        self.ids: list[int] = []
        self.depths: list[int] = []
        self._parents: list[int] = []
        self._places: dict[int, int] = {}
        self._block_starts: list[int] = []

    def shared(self, path: Sequence[int]) -> int:
        """Returns how many tokens at a context's beginning the pack has already."""
        return bisect_left(path, True, key=lambda node: node not in self._places)

    def add(self, ids: Pieces, path: Sequence[int]) -> list[int]:
        """Adds a context and returns the places of its tokens.

        Args:
            ids: its tokens.
            path: what `PrefixTree.add` returned for it.
        """
        start, shared = len(self.ids), self.shared(path)
        new = range(start, start + len(ids) - shared)
        places = [self._places[node] for node in path[:shared]] + [*new]
        self.ids += ids[shared:]
        self.depths += range(shared, len(ids))
        self._block_starts += [start] * len(new)
        if self.causal:
            self._places |= zip(path[shared:], new, strict=True)
            self._parents += [
                places[depth - 1] if depth else -1 for depth in range(shared, len(ids))
            ]
        return places

    def sees(self, width: int) -> np.ndarray:
        """Returns which token sees which: (width, width) booleans, [i, j] where i sees j.

        Places beyond the last token see themselves, since a softmax over nothing is NaN.
        """
        table = np.eye(width, dtype=bool)
        if not self.causal:
            starts = np.array(self._block_starts)
            table[: len(starts), : len(starts)] = starts[:, None] == starts
        for place, parent in enumerate(self._parents):
            if parent >= 0:
                table[place] |= table[parent]
        return table


def pack(
    contexts: Sequence[Pieces], width: int, *, causal: bool
) -> tuple[list[Pack], list[tuple[int, list[int]]]]:
    """Puts contexts into packs of the width, at most as given, that leaves the fewest gaps.

    All packs are as wide as the widest when they go through the model.

    Args:
        contexts: token ids of each.
        width: tokens that a pack holds; no context is longer.
        causal: see `Pack`.

    Returns:
        The packs, and for each context the number of its pack and the places of its tokens there.
    """
    tree = PrefixTree(causal=causal)
    order = sorted(range(len(contexts)), key=lambda n: (-len(contexts[n]), contexts[n]))
    paths = [tree.add(ids) for ids in contexts]
    longest_first = [paths[number] for number in order]
    narrowest = max(width // 2, *map(len, contexts))
    best = indices, sizes = _fill(longest_first, width, causal=causal)
    while sum(sizes) < _FULL_PACKS * _area(sizes):
        width = max(sizes) - 1
        if width < narrowest:
            break
        indices, sizes = _fill(longest_first, width, causal=causal)
        if _area(sizes) < _area(best[1]):
            best = indices, sizes
    packs = [Pack(causal=causal) for _ in best[1]]
    placed: list[tuple[int, list[int]]] = [(0, [])] * len(contexts)
    for number, index in zip(order, best[0], strict=True):
        placed[number] = (index, packs[index].add(contexts[number], paths[number]))
    return packs, placed


def _area(sizes: Sequence[int]) -> int:
    """Returns how many tokens go through the model, gaps included."""
    return len(sizes) * max(sizes)


def _fill(
    paths: Sequence[Sequence[int]], width: int, *, causal: bool
) -> tuple[list[int], list[int]]:
    """Puts each context into the first pack of those that have most of it already.

    Args:
        paths: what `PrefixTree.add` returned for each, the longest first.
        width: tokens that a pack holds.
        causal: whether they share their common beginnings.

    Returns:
        the number of each context's pack, and the tokens in each pack.
    """
    if not causal:
        return _first_fit([*map(len, paths)], width)
    indices: list[int] = []
    sizes: list[int] = []
    packs_with: dict[int, list[int]] = {}  # beginning of a context -> the packs that have it
    for path in paths:
        for shared in range(len(path), -1, -1):
            some = packs_with.get(path[shared - 1], ()) if shared else range(len(sizes))
            room = width - len(path) + shared
            if fitting := [n for n in some if sizes[n] <= room]:
                break
        index = min(fitting, default=len(sizes))
        if index == len(sizes):
            sizes.append(0)
        sizes[index] += len(path) - shared
        indices.append(index)
        for node in path[shared:]:
            packs_with.setdefault(node, []).append(index)
    return indices, sizes


def _first_fit(lengths: Sequence[int], width: int) -> tuple[list[int], list[int]]:
    """Puts each length, in descending order, into the first pack that has room; see `_fill`."""
    indices: list[int] = []
    sizes: list[int] = []
    index, previous = 0, 0
    for length in lengths:
        if length != previous:
            index, previous = 0, length
        while index < len(sizes) and sizes[index] + length > width:  # nor will it fit later
            index += 1
        if index == len(sizes):
            sizes.append(0)
        sizes[index] += length
        indices.append(index)
    return indices, sizes
