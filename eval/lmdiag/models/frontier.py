"""Best-first search for the most probable words at one blank.

Pieces at the blank are a node; no word that begins with them is more probable than they are. So the
most probable open node is always read next, and once the k-th word found comes before every open
node, in the order of the list (probability, then token ids), the list is exact: no other word can
enter it. A word counts as the tokenizer spells it: other pieces with the same letters are none.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from lmdiag.models.boundary import Boundaries
from lmdiag.models.words import Pieces

WIDTH = 128
"""Continuations of a node that are opened at first, the most probable ones."""

WIDER = 8
"""How many times as many are opened each time those are used up."""

FEWEST, MOST = 4, 32
"""Nodes that are read at once: as many as before, since the further a search has come the less
likely is it that they are read in vain."""


class State(NamedTuple):
    """Pieces at a blank.

    Attributes:
        filled: the pieces.
        total: pieces of the whole word, where the model is told (masked); else 0.
    """

    filled: Pieces
    total: int = 0


class Node(NamedTuple):
    """A state to be read, in the order of the search.

    Attributes:
        cost: minus the log-probability of its most probable continuation that is not open yet.
        state: the state.
        width: continuations to open.
    """

    cost: float
    state: State
    width: int


class Found(NamedTuple):
    """A word, in the order of the list.

    Attributes:
        cost: minus its log-probability.
        pieces: its token ids.
        word: its characters.
    """

    cost: float
    pieces: Pieces
    word: str


class Reading(NamedTuple):
    """What a model says after a state.

    Attributes:
        end: log-probability that a word ends there; 0 where that is not asked.
        tokens: the most probable items that may follow, best first.
        log_probs: theirs.
        asked: log-probabilities of single items, for candidate words.
    """

    end: float
    tokens: Sequence[int]
    log_probs: Sequence[float]
    asked: Mapping[int, float]


class Frontier:
    """The search at one blank.

    Args:
        boundaries: of words.
        spell: from a word to its pieces at this blank.
        opening: whether the blank opens the text.
        top: length of the list.
        known: states that are read in any case: those without pieces, from which the search begins,
            and those of candidate words.
        start: log-probability of the states without pieces.
        longest: largest `total` of the words that are looked for.
        width: continuations of a node that are opened at first.

    Attributes:
        words: the most probable words so far, at most `top`.
        n_read: nodes that were handed out.
    """

    def __init__(
        self,
        boundaries: Boundaries,
        spell: Callable[[str], Pieces | None],
        *,
        opening: bool,
        top: int,
        known: Collection[State],
        start: float,
        longest: int,
        width: int = WIDTH,
    ) -> None:
        self.words: list[Found] = []
        self.n_read = 0
        self._boundaries = boundaries
        self._spell = spell
        self._opening = opening
        self._top = top
        self._longest = longest
        self._width = width
        self._reached = {State((), state.total): start for state in known}
        self._ended: dict[State, float] = {}
        self._seen = set(known)
        self._open: list[Node] = []

    @property
    def is_exact(self) -> bool:
        """Whether no open node can change the list."""
        return not self._open or self._is_late(*self._open[0][:2])

    def next(self) -> list[Node]:
        """Takes the nodes to be read next off the frontier; none once the list is exact."""
        nodes: list[Node] = []
        at_most = min(max(FEWEST, self.n_read), MOST)
        while len(nodes) < at_most and not self.is_exact:
            nodes.append(heappop(self._open))
        self.n_read += len(nodes)
        return nodes

    def read(self, state: State, width: int, reading: Reading) -> None:
        """Takes in what the model says after a state, whose predecessors have been read."""
        first = state not in self._ended
        if first:
            self._ended[state] = reading.end
            if not state.filled and not state.total and not self._opening:
                self._reached[state] -= reading.end  # given that a word begins here
        reached = self._reached[state]
        for token, log_prob in reading.asked.items():
            self._reached[self._child(state, token)] = reached + log_prob
        if state.total > self._longest:
            return
        if first and state.filled and not state.total:
            self._offer(reached + reading.end, state)
        for token, log_prob in zip(reading.tokens, reading.log_probs, strict=True):
            if not self._open_child(self._child(state, token), reached + log_prob):
                return
        if len(reading.tokens) == width:
            self._push(Node(-(reached + reading.log_probs[-1]), state, width * WIDER))

    def log_prob(self, state: State) -> float:
        """Returns the log-probability of a word, all of whose beginnings were known."""
        return self._reached[state] + self._ended.get(state, 0.0)

    def rank(self, log_prob: float) -> int | None:
        """Returns 1 + the number of words more probable than this; None where it is not known.

        It is known down to the last word of the list, and everywhere if the list has all words.
        """
        if len(self.words) == self._top and log_prob < -self.words[-1].cost:
            return None
        return 1 + sum(-found.cost > log_prob for found in self.words)

    def _child(self, state: State, token: int) -> State:
        return State((*state.filled, token), state.total)

    def _open_child(self, child: State, log_prob: float) -> bool:
        """Opens a state, or offers the word that it is; returns whether less probable ones matter.

        Where the pieces alone tell where a word ends, it need not be read to be offered.
        """
        if log_prob == -math.inf or self._is_late(-log_prob, State((), 0)):
            return False
        if child in self._seen:
            return True
        self._seen.add(child)
        if len(child.filled) == child.total or (not child.total and self._boundaries.certain):
            self._offer(log_prob, child)
        prefix = self._boundaries.look(child.filled, opening=self._opening)
        if prefix.open and len(child.filled) != child.total:
            self._reached[child] = log_prob
            self._push(Node(-log_prob, child, self._width))
        return True

    def _push(self, node: Node) -> None:
        if not self._is_late(node.cost, node.state):
            heappush(self._open, node)

    def _offer(self, log_prob: float, state: State) -> None:
        """Puts a state into the list if it is a word and belongs there."""
        if log_prob == -math.inf or self._is_late(-log_prob, state):
            return
        word = self._boundaries.look(state.filled, opening=self._opening).word
        if word is not None and self._spell(word) == state.filled:
            insort(self.words, Found(-log_prob, state.filled, word))
            del self.words[self._top :]

    def _is_late(self, cost: float, state: State) -> bool:
        """Whether nothing that begins with a state can come before the list's last word."""
        last = self.words[-1] if len(self.words) == self._top else None
        return last is not None and (cost, state.filled) >= last[:2]
