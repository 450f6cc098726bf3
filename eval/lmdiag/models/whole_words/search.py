"""Unit `word`: the most probable complete words at a blank, and probabilities of complete words.

`docs/specification.md` ("Units") has the formulas, and `tokens.boundaries` says what a word is and
where it ends. With the word-boundary correction each way to go on from a context counts for one
word at most, so that the probabilities of words sum to at most 1. Masked models see how many masks
there are, and the text on both sides, so that no boundary has to be corrected.

The search (`frontier`) is exact. Open partial words of all blanks of a batch are read together, a
few of each per round. EW and MW are about single tokens in both units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from lmdiag.models.answers import blank_entropies, look_up, refuse_nan, verb_agreement
from lmdiag.models.forward.reader import Reader
from lmdiag.models.forward.reuse import Continue, choose_reuse
from lmdiag.models.tokens.boundaries import Boundaries
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import Blank, EncodedQuestion, PartialWord, TokenRow
from lmdiag.models.tokens.spelling import Pieces, is_joined
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.models.whole_words.frontier import FIRST_WIDTH, Frontier, Node
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, ModelInfo, Question

LENGTHS = 3
"""Most pieces of a word that is looked for with a masked model."""

_MOST_NODES = 2_000
"""Nodes of a blank that are read before the search is given up."""

_ELEMENTS_ON_CPU, _ELEMENTS = 2**23, 2**28
"""Log-probabilities that are held at a time, on processors and on accelerators."""


@dataclass(eq=False)
class WordSearch:
    """Answers questions in unit `word`.

    Attributes:
        encoder: turns questions into rows.
        reader: turns rows into distributions.
        vocabulary: its items.
        info: of the model.
        lengths: most pieces of a word that is looked for with a masked model.
        most_nodes: of a blank, before the search is given up.
        width: continuations of a node that are opened at first.
        reuse: what the continuations of a blank reuse, see `forward.reuse`.
    """

    encoder: QuestionEncoder
    reader: Reader
    vocabulary: Vocabulary
    info: ModelInfo
    lengths: int = LENGTHS
    most_nodes: int = _MOST_NODES
    width: int = FIRST_WIDTH

    def __post_init__(self) -> None:
        self.reuse = choose_reuse(self.reader, self.encoder)

    @cached_property
    def boundaries(self) -> Boundaries:
        """Where words begin and end in the vocabulary."""
        return Boundaries(self.vocabulary, self.info.vocab_size)

    @cached_property
    def longest(self) -> int:
        """Most pieces of a word that is looked for; 0 if the model is not told their number."""
        lengths = self.lengths if bool(self.boundaries.continues.any()) else 1
        return lengths if self.encoder.masked else 0

    def encode(self, question: Question) -> EncodedQuestion:
        """Returns the rows that every search begins with: the blank and the candidates' pieces.

        Raises:
            BadInput: see `QuestionEncoder.encode`; or words are not told apart in the script of the
                context.
        """
        encoded = self.encoder.encode(question, self._rows)
        if not self.encoder.masked and is_joined(encoded.query.context):
            raise BadInput(
                f"the context {truncated(encoded.text)!r} ends in a script without spaces, in "
                "which nothing tells where a word ends: use --unit token"
            )
        return encoded

    def _rows(
        self, blank: Blank, words: Sequence[Pieces]
    ) -> tuple[list[TokenRow], list[PartialWord]]:
        """Returns a row for each partial word of the candidates, shorter ones first."""
        end = not (self.encoder.masked or self.boundaries.certain)  # read after a word, too
        partials = [PartialWord((), total) for total in range(1, self.longest + 1)]
        partials = partials or [PartialWord(())]
        for word in words:
            partials += blank.partial_words(word, end=end)
        partials = sorted(dict.fromkeys(partials), key=lambda partial: len(partial.pieces))
        return [blank.row(partial) for partial in partials], partials

    def answer(
        self,
        batch: Sequence[EncodedQuestion],
        top: int,
        verbs: Sequence[tuple[int, int]] | None = None,
    ) -> list[Answer]:
        """Returns the answers to a batch of questions, in their order.

        Args:
            batch: the questions.
            top: length of the list of the most probable words.
            verbs: (singular, plural) ids, for EW and MW of questions with a `number`; or None.

        Raises:
            BadInput: NaN or infinite logits; a search that reaches `most_nodes`, since the model
                hardly prefers any word to others; a word too long for the model.
        """
        continue_from = self.reuse(self.reader, [encoded.rows[0] for encoded in batch])
        frontiers = [
            Frontier(
                encoded=encoded,
                boundaries=self.boundaries,
                spell=self.encoder.spell,
                top=top,
                start=-math.log(self.longest or 1),
                longest=self.longest,
                width=self.width,
            )
            for encoded in batch
        ]
        nodes = [(n, Node(0.0, encoded.partials[0], self.width)) for n, encoded in enumerate(batch)]
        agreement: list[tuple[float | None, ...] | None] = []
        bits: list[float | None] = []
        for chunk, log_probs in self._read(frontiers, continue_from, nodes):
            of_chunk = [batch[n] for n, _ in chunk]
            agreement += verb_agreement(of_chunk, log_probs, verbs)
            bits += blank_entropies(of_chunk, log_probs)
        nodes = [
            (n, Node(0.0, partial, self.width))
            for n, encoded in enumerate(batch)
            for partial in encoded.partials[1:]
        ]
        while nodes := nodes + [
            (n, node) for n, frontier in enumerate(frontiers) for node in frontier.next()
        ]:
            for _ in self._read(frontiers, continue_from, nodes):
                pass
            nodes = []
            for frontier in frontiers:
                if frontier.n_read > self.most_nodes and not frontier.is_exact:
                    context = truncated(frontier.encoded.question.query.context)
                    raise BadInput(
                        f"model {self.info.id}: the word search after {context!r} did not converge "
                        f"after {self.most_nodes:,} prefixes, since no word is much more probable "
                        "than others: use --unit token"
                    )
        return [
            frontier.answer(ew_and_mw, entropy)
            for frontier, ew_and_mw, entropy in zip(frontiers, agreement, bits, strict=True)
        ]

    def _read(
        self,
        frontiers: Sequence[Frontier],
        continue_from: Continue,
        nodes: Sequence[tuple[int, Node]],
    ) -> Iterator[tuple[Sequence[tuple[int, Node]], torch.Tensor]]:
        """Reads nodes, each with the number of its search, and tells the frontiers.

        Yields:
            nodes whose distributions fit into memory, and their (nodes, vocabulary)
            log-probabilities.
        """
        elements = _ELEMENTS_ON_CPU if self.reader.device.type == "cpu" else _ELEMENTS
        size = max(1, elements // self.info.vocab_size)
        for start in range(0, len(nodes), size):
            chunk = nodes[start : start + size]
            requests = [(n, frontiers[n].encoded.blank.row(node.partial)) for n, node in chunk]
            queries = [frontiers[n].encoded.question.query for n, _ in chunk]
            for (_, row), query in zip(requests, queries, strict=True):
                self.encoder.check_length([row], query)
            log_probs = continue_from(requests)
            refuse_nan(queries, log_probs, self.info.id)
            self._update_frontiers([(frontiers[n], node) for n, node in chunk], log_probs)
            yield chunk, log_probs

    def _update_frontiers(
        self, nodes: Sequence[tuple[Frontier, Node]], log_probs: torch.Tensor
    ) -> None:
        """Tells frontiers the few numbers of each distribution that the search needs."""
        may_follow = torch.stack(
            [
                self.boundaries.may_follow(node.partial.pieces, bare=frontier.encoded.bare)
                for frontier, node in nodes
            ]
        ).to(log_probs.device)
        width = min(max(node.width for _, node in nodes), log_probs.shape[-1])
        values, tokens = log_probs.masked_fill(~may_follow, -torch.inf).topk(width)
        values, tokens = values.cpu(), tokens.cpu()
        masked = self.encoder.masked
        ends = [0.0] * len(nodes) if masked else self.boundaries.end_log_prob(log_probs).tolist()
        wanted = [frontier.encoded.wanted.get(node.partial, ()) for frontier, node in nodes]
        pairs = [(number, piece) for number, pieces in enumerate(wanted) for piece in pieces]
        of_pieces = iter(look_up(log_probs, pairs))
        for number, (frontier, node) in enumerate(nodes):
            if ends[number] == -math.inf and not node.partial.pieces:
                context = truncated(frontier.encoded.question.query.context)
                raise BadInput(
                    f"model {self.info.id} gives no probability to the beginning of a word after "
                    f"{context!r}: use --unit token"
                )
            best = (some[number, : node.width].tolist() for some in (tokens, values))
            known = {piece: next(of_pieces) for piece in wanted[number]}
            frontier.read(node, ends[number], zip(*best, strict=True), known)
