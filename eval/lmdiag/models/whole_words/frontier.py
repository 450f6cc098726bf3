"""Best-first search for the most probable words at one blank.

Pieces at the blank are a node; no word that begins with them is more probable than they are. So the
most probable open node is always read next, and once the k-th word comes before every open node, in
the order of the list (probability, then token ids), the list is exact: no other word can enter it.
A word counts only as the tokenizer spells it, not as other pieces with the same letters.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from lmdiag.models.tokens.boundaries import Boundaries
from lmdiag.models.tokens.encoded_questions import EncodedQuestion, PartialWord
from lmdiag.models.tokens.spelling import Pieces
from lmdiag.types import Answer, Query, WordScore

_WIDTH_FACTOR = 8
"""By how much `Node.width` grows each time all continuations of a node are opened."""

_FEWEST_AT_ONCE = 4
_MOST_AT_ONCE = 32
"""Bounds of the number of nodes that are read at once. Between them, as many are read as before:
the further the search has come, the less likely they are read in vain."""


class Node(NamedTuple):
    """A partial word to be read, in the order of the search.

    Attributes:
        cost: minus the log-probability of its most probable continuation that is not open yet.
        partial: its first pieces.
        width: continuations to open.
    """

    cost: float
    partial: PartialWord
    width: int


class SearchRules(NamedTuple):
    """What the searches at all blanks of a model share.

    Attributes:
        boundaries: where words begin and end in the vocabulary.
        spell: word and query -> its pieces as the tokenizer makes them, None if it cannot.
        longest: most pieces of a word that is looked for; 0 if the model is not told their number.
        width: continuations of a node that are opened at first, the most probable ones.
    """

    boundaries: Boundaries
    spell: Callable[[str, Query], Pieces | None]
    longest: int
    width: int


class ListedWord(NamedTuple):
    """A word, in the order of the list: minus its log-probability, its token ids, its text."""

    cost: float
    pieces: Pieces
    word: str


@dataclass(eq=False)
class Frontier:
    """The search at one blank.

    Attributes:
        rules: see `SearchRules`.
        encoded: the question. Its partial words are read in any case: those without pieces, from
            which the search begins, and those of candidate words.
        top: length of the list.
        number: of the question in its batch.
        words: the most probable words so far, at most `top`.
        n_read: nodes that were handed out.
    """

    rules: SearchRules
    encoded: EncodedQuestion
    top: int
    number: int

    def __post_init__(self) -> None:
        self.words: list[ListedWord] = []
        self.n_read = 0
        partials = self.encoded.partials
        # A masked model is told the number of pieces, and all numbers are equally likely before it
        # answers. A causal model is told nothing: its start is log 1.
        start = -math.log(self.rules.longest or 1)
        self._is_after_space = self.encoded.is_after_space
        # log-probability of the pieces of a partial word, and of the end of the word after them
        self._partial_nats = {PartialWord((), partial.total): start for partial in partials}
        self._end_nats: dict[PartialWord, float] = {}
        # partial words that need not be opened again: those at which the search starts are read
        # first, before anything is taken from the heap
        self._opened = set(partials)
        self._open: list[Node] = []  # a heap of what may be read next, the most probable first

    @property
    def is_exact(self) -> bool:
        """Whether no open node can change the list: the best of them cannot enter it."""
        if not self._open:
            return True
        best_node = self._open[0]
        return self._cannot_enter_list(best_node.cost, best_node.partial)

    def next(self) -> list[Node]:
        """Removes and returns the nodes to be read next; none once the list is exact."""
        nodes: list[Node] = []
        # Nodes are read in vain if the list turns out to be exact before them.
        at_most = min(max(_FEWEST_AT_ONCE, self.n_read), _MOST_AT_ONCE)
        while len(nodes) < at_most and not self.is_exact:
            nodes.append(heappop(self._open))
        self.n_read += len(nodes)
        return nodes

    def read(
        self,
        node: Node,
        end: float,
        following: Iterable[tuple[int, float]],
        wanted: Mapping[int, float],
    ) -> None:
        """Takes in what the model says after a partial word; shorter ones have been read before.

        The partial word is offered to the list as a word that ends there, and its most probable
        continuations are opened. A partial word may be read again with a greater width.

        Args:
            node: the partial word.
            end: log-probability that a word ends there; 0 where that is not asked.
            following: the `node.width` most probable items that may follow, best first, and their
                log-probabilities; all items if there are fewer.
            wanted: token id -> log-probability of the pieces of candidate words there.
        """
        partial = node.partial
        is_new = partial not in self._end_nats
        if is_new:
            self._end_nats[partial] = end
            if not partial.pieces and not partial.total and self._is_after_space:
                # `end` is here the log-probability that the word before the blank has ended, so
                # that a word begins: all words are given that one does
                self._partial_nats[partial] -= end
        partial_nats = self._partial_nats[partial]
        for token, log_prob in wanted.items():
            longer_partial = PartialWord((*partial.pieces, token), partial.total)
            self._partial_nats[longer_partial] = partial_nats + log_prob
        if partial.total > self.rules.longest:
            return  # a candidate word longer than the words that are searched
        # of a masked model, `_open_child` offers words, since the masks tell their end
        if is_new and partial.pieces and not partial.total:
            self._offer(partial_nats + end, partial)
        n_unopened = node.width
        for token, log_prob in following:
            child = PartialWord((*partial.pieces, token), partial.total)
            if not self._open_child(child, partial_nats + log_prob):
                return  # those after it are less probable
            n_unopened -= 1
        if not n_unopened:  # there may be more: the node waits with the cost of its last child
            cost = -(partial_nats + log_prob)
            heappush(self._open, Node(cost, partial, node.width * _WIDTH_FACTOR))

    def answer(self, agreement: tuple[float | None, ...] | None, entropy: float | None) -> Answer:
        """Returns the answer once the search is at its end, with `Answer.agreement` and `entropy`.

        All partial words of the candidates were read. A rank is 1 + the number of words more
        probable; it is known down to the last word of the list, and everywhere if the list has all
        words.
        """
        scores = dict.fromkeys(self.encoded.words, WordScore(None, None, 0))
        for word, pieces in self.encoded.words.items():
            if pieces is not None:
                complete = self.encoded.blank.partial_words(pieces, end=True)[-1]
                # 0.0, the log of 1, where the pieces or the masks tell that the word has ended
                log_prob = self._partial_nats[complete] + self._end_nats.get(complete, 0.0)
                # Without the word: read again in another batch, it differs from itself by rounding.
                other_words = [listed for listed in self.words if listed.pieces != pieces]
                rank: int | None = 1 + sum(-listed.cost > log_prob for listed in other_words)
                if len(other_words) == self.top and log_prob < -other_words[-1].cost:
                    rank = None  # below the list
                # A sum of rounded numbers may come out above log 1.
                scores[word] = WordScore(min(log_prob, 0.0), rank, len(pieces))
        return Answer(
            words=scores,
            top_words=tuple(listed.word for listed in self.words),
            top_log_probs=tuple(min(-listed.cost, 0.0) for listed in self.words),
            agreement=agreement,
            entropy=entropy,
        )

    def _open_child(self, child: PartialWord, log_prob: float) -> bool:
        """Opens a partial word, which is to be read, or offers it to the list if it is a word.

        If the pieces alone tell where a word ends, it is offered without being read.

        Args:
            child: its pieces; `total` is 0 where the model is not told the number of pieces.
            log_prob: of these pieces at the blank.

        Returns:
            False where neither it nor a less probable one can enter the list, so that the caller,
            who goes from the most probable down, can stop; else True.
        """
        # The empty partial word comes before all others in the list: a tie does not end the search,
        # since a later one that is as probable may have smaller token ids.
        if log_prob == -math.inf or self._cannot_enter_list(-log_prob, PartialWord(())):
            return False
        if child in self._opened:
            return True
        self._opened.add(child)
        # of a masked model, whose masks are used up; never where `total` is 0
        has_all_pieces = len(child.pieces) == child.total
        tells_end = not child.total and self.rules.boundaries.certain
        if has_all_pieces or tells_end:
            self._offer(log_prob, child)
        if has_all_pieces:
            return True
        if self.rules.boundaries.parse_prefix(child.pieces, bare=self.encoded.bare).open:
            self._partial_nats[child] = log_prob
            heappush(self._open, Node(-log_prob, child, self.rules.width))
        return True

    def _offer(self, log_prob: float, partial: PartialWord) -> None:
        """Puts a partial word into the list if it spells a word and is probable enough.

        `log_prob` is that of the complete word.
        """
        if log_prob == -math.inf or self._cannot_enter_list(-log_prob, partial):
            return
        word = self.rules.boundaries.parse_prefix(partial.pieces, bare=self.encoded.bare).word
        # Other pieces with the same letters are not how the model read the word in training.
        if word is not None and self.rules.spell(word, self.encoded.query) == partial.pieces:
            insort(self.words, ListedWord(-log_prob, partial.pieces, word))
            del self.words[self.top :]

    def _cannot_enter_list(self, cost: float, partial: PartialWord) -> bool:
        """Whether the list is full and no word that starts with these pieces can enter it.

        `cost` is minus their log-probability; a word comes before another if its cost is smaller,
        or if it is equal and its token ids come first.
        """
        if len(self.words) < self.top:
            return False
        last_listed = self.words[-1]
        return (cost, partial.pieces) >= (last_listed.cost, last_listed.pieces)
