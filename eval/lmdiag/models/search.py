"""Unit `word`: the most probable complete words at a blank, and probabilities of complete words.

What a word is, and where it ends, is said in `boundary`. In the formulas c is the context, w a word
of the pieces w1 ... wn, and E(x) the probability that the item after x ends a word.

**From left to right** (causal models, the decoders of encoder-decoders), with the word-boundary
correction of Pimentel & Meister (2024) and Oh & Schuler (2024):

    P(w | c) = p(w1 | c) ... p(wn | c w1 ... wn-1) * E(c w) / E(c)

A vocabulary that marks where words start says only after a word's last piece that it was the last
one: E(c w) takes off what goes to longer words (`bird` against `birds`). The same factor belongs to
the context: its own last word is over, since the question is what comes next, so that mass which
would have continued it is divided away. The product telescopes over a text. Each way to go on from
c counts for one word at most, so that the words' probabilities sum to at most 1; what is missing
from 1 is punctuation, the end of the text, and pieces that are no words. At the beginning of a text
E(c) = 1. Where the pieces themselves tell where a word ends, E = 1 everywhere: vocabularies that
mark ends, and those whose items are all words.

**Masked models** see how many masks there are, and both ends of the word by the text around it, so
that there is no boundary to correct. n masks give a distribution over words of n pieces: each piece
given those before it, left to right within the word (Kauf & Ivanova 2023). All lengths from 1 to N
are taken to be equally likely beforehand:

    P(w | c) = 1/N * p(w1 | c, n masks) ... p(wn | c, w1 ... wn-1, 1 mask)

So the probabilities of all words of up to N pieces sum to at most 1, and words of any lengths
compare as they do in unit `token`, whose log-probabilities are log N higher. N is `LENGTHS`, or 1
where no item of the vocabulary continues a word. A candidate of more than N pieces has the same
weight 1/N, and is not looked for.

Where all items are words, unit `word` is unit `token`, and both are the paper's.

The search (`frontier`) is exact. Open prefixes of all blanks of a batch are read together, a few of
each a round, and share what `prefixes` finds that they may. EW and MW are about single tokens in
both units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lmdiag.models.answers import ew_and_mw, refuse_nan
from lmdiag.models.boundary import Boundaries
from lmdiag.models.frontier import WIDTH, Frontier, Node, Reading, State
from lmdiag.models.prefixes import Prefixes, sharing
from lmdiag.models.rows import Asker, check_length, shorten
from lmdiag.models.whole import WholeWords, whole_words
from lmdiag.schema import Answer, BadInput, ModelInfo, Question, WordScore

if TYPE_CHECKING:
    import torch

    from lmdiag.models.forward import Reader
    from lmdiag.models.verbs import Verbs
    from lmdiag.models.vocabulary import Vocabulary

LENGTHS = 3
"""Most pieces of a word that is looked for with a masked model."""

MOST_NODES = 2_000
"""Nodes of a blank that are read before the search is given up."""

ELEMENTS = {"cpu": 2**23}
"""Log-probabilities that are held at a time, by type of device."""

MORE_ELEMENTS = 2**28
"""The same on accelerators."""


Numbered = tuple[int, Node]
"""A node, and the number of its question in the batch."""


class WordSearch:
    """Answers questions in unit `word`.

    Args:
        asker: turns questions into rows.
        reader: turns rows into distributions.
        vocabulary: its items.
        info: of the model.
        lengths: most pieces of a word that is looked for with a masked model.
        most_nodes: of a blank, before the search is given up.
        width: continuations of a node that are opened at first.

    Attributes:
        share: what the prefixes at a blank share, see `prefixes`.
    """

    def __init__(
        self,
        asker: Asker,
        reader: Reader,
        vocabulary: Vocabulary,
        info: ModelInfo,
        *,
        lengths: int = LENGTHS,
        most_nodes: int = MOST_NODES,
        width: int = WIDTH,
    ) -> None:
        self._asker = asker
        self._reader = reader
        self._vocabulary = vocabulary
        self._info = info
        self._lengths = lengths
        self._most_nodes = most_nodes
        self._width = width
        self._chained = info.kind != "masked"
        self.share = sharing(reader, asker, chained=self._chained)

    @cached_property
    def boundaries(self) -> Boundaries:
        """Where words begin and end in the vocabulary."""
        return Boundaries(self._vocabulary, self._info.vocab_size)

    @cached_property
    def longest(self) -> int:
        """Most pieces of a word that is looked for; 0 where the model is not told their number."""
        if self._chained:
            return 0
        return self._lengths if bool(self.boundaries.continues.any()) else 1

    def encode(self, question: Question) -> WholeWords:
        """Returns the rows that every search begins with: the blank and the candidates' pieces.

        Raises:
            BadInput: the context is longer than the model reads, or empty where it must not be.
        """
        whole = whole_words(
            question,
            self._asker,
            masks=range(1, self.longest + 1),
            ends=self._chained and not self.boundaries.certain,
        )
        check_length(whole.rows, self._info.max_length, question.query, self._info.id)
        return whole

    def answer(
        self, batch: Sequence[WholeWords], top: int, verbs: Verbs | None = None
    ) -> list[Answer]:
        """Returns the answers to a batch of questions, in their order.

        Args:
            batch: the questions.
            top: length of the list of the most probable words.
            verbs: for EW and MW of questions with a `number`; None outside agreement.

        Raises:
            BadInput: NaN or infinite logits; a search that does not come to an end, since the
                model hardly prefers any word to others; a word too long for the model.
        """
        prefixes = self.share(self._reader, [encoded.rows[0] for encoded in batch])
        frontiers = [self._frontier(encoded, top) for encoded in batch]
        blanks = [(n, Node(0.0, encoded.states[0], self._width)) for n, encoded in enumerate(batch)]
        agreement: list[tuple[float | None, ...] | None] = []
        for some in self._chunks(blanks):
            log_probs = self._read(batch, frontiers, prefixes, some)
            agreement += ew_and_mw([batch[n] for n, _ in some], log_probs, verbs)
        nodes = [
            (n, Node(0.0, state, self._width))
            for n, encoded in enumerate(batch)
            for state in encoded.states[1:]
        ]
        while nodes := nodes + [
            (n, node) for n, frontier in enumerate(frontiers) for node in frontier.next()
        ]:
            for some in self._chunks(nodes):
                self._read(batch, frontiers, prefixes, some)
            self._refuse_endless(batch, frontiers)
            nodes = []
        return [_answer(*each) for each in zip(batch, frontiers, agreement, strict=True)]

    def _frontier(self, encoded: WholeWords, top: int) -> Frontier:
        query = encoded.question.query
        return Frontier(
            self.boundaries,
            partial(self._asker.spell, query=query),
            opening=not query.context,
            top=top,
            known=encoded.states,
            start=-math.log(self.longest or 1),
            longest=self.longest,
            width=self._width,
        )

    def _chunks(self, nodes: Sequence[Numbered]) -> Iterator[Sequence[Numbered]]:
        """Cuts nodes where their distributions would take too much memory."""
        held = ELEMENTS.get(self._reader.device.type, MORE_ELEMENTS)
        size = max(1, held // self._info.vocab_size)
        for start in range(0, len(nodes), size):
            yield nodes[start : start + size]

    def _read(
        self,
        batch: Sequence[WholeWords],
        frontiers: Sequence[Frontier],
        prefixes: Prefixes,
        nodes: Sequence[Numbered],
    ) -> torch.Tensor:
        """Reads nodes and tells the frontiers; returns (nodes, vocabulary) log-probabilities."""
        requests = [(n, batch[n].blank.row(*node.state)) for n, node in nodes]
        queries = [batch[n].question.query for n, _ in nodes]
        for (_, row), query in zip(requests, queries, strict=True):
            check_length([row], self._info.max_length, query, self._info.id)
        log_probs = prefixes.read(requests)
        refuse_nan(queries, log_probs, self._info.id)
        for (n, node), reading in zip(nodes, self._readings(batch, nodes, log_probs), strict=True):
            if reading.end == -math.inf and not node.state.filled:
                raise BadInput(
                    f"model {self._info.id} gives no probability to the beginning of a word after "
                    f"{shorten(batch[n].question.query.context)!r}: use --unit token"
                )
            frontiers[n].read(node.state, node.width, reading)
        return log_probs

    def _readings(
        self, batch: Sequence[WholeWords], nodes: Sequence[Numbered], log_probs: torch.Tensor
    ) -> list[Reading]:
        """Returns the few numbers of each distribution that the search wants."""
        import torch

        words = self.boundaries
        ends = words.end(log_probs).tolist() if self._chained else [0.0] * len(nodes)
        may_follow = torch.stack(
            [
                words.may_follow(node.state.filled, opening=not batch[n].question.query.context)
                for n, node in nodes
            ]
        ).to(log_probs.device)
        width = min(max(node.width for _, node in nodes), log_probs.shape[-1])
        values, tokens = log_probs.masked_fill(~may_follow, -torch.inf).topk(width)
        asked = _look_up(log_probs, [batch[n].asked.get(node.state, ()) for n, node in nodes])
        return [
            Reading(end, tokens[: node.width], values[: node.width], found)
            for (_, node), end, tokens, values, found in zip(
                nodes, ends, tokens.tolist(), values.tolist(), asked, strict=True
            )
        ]

    def _refuse_endless(self, batch: Sequence[WholeWords], frontiers: Sequence[Frontier]) -> None:
        """Raises `BadInput` for a search that has read too many nodes and is not at its end."""
        for encoded, frontier in zip(batch, frontiers, strict=True):
            if frontier.n_read > self._most_nodes and not frontier.is_exact:
                raise BadInput(
                    f"model {self._info.id} hardly prefers any word to others after "
                    f"{shorten(encoded.question.query.context)!r}: {self._most_nodes} beginnings "
                    "of words do not settle which are the most probable; use --unit token"
                )


def _look_up(log_probs: torch.Tensor, asked: Sequence[Sequence[int]]) -> list[dict[int, float]]:
    """Returns the log-probabilities of some items of each distribution."""
    import torch

    pairs = [(row, token) for row, tokens in enumerate(asked) for token in tokens]
    places = torch.tensor(pairs, dtype=torch.long, device=log_probs.device).view(-1, 2)
    values = iter(log_probs[places[:, 0], places[:, 1]].tolist())
    return [{token: next(values) for token in tokens} for tokens in asked]


def _answer(
    encoded: WholeWords, frontier: Frontier, agreement: tuple[float | None, ...] | None
) -> Answer:
    """Returns the answer of a question whose search is at its end."""
    return Answer(
        words={word: _score(frontier, encoded, word) for word in encoded.words},
        top_words=tuple(found.word for found in frontier.words),
        top_log_probs=tuple(min(-found.cost, 0.0) for found in frontier.words),
        agreement=agreement,
    )


def _score(frontier: Frontier, encoded: WholeWords, word: str) -> WordScore:
    steps = encoded.words[word]
    if steps is None:
        return WordScore(None, None, 0)
    pieces = tuple(step.token for step in steps)
    log_prob = frontier.log_prob(State(pieces, encoded.states[steps[0].read].total))
    return WordScore(min(log_prob, 0.0), frontier.rank(log_prob), len(pieces))
