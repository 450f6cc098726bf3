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
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from lmdiag.models.answers import look_up, of_distributions, refuse_nan
from lmdiag.models.forward.probing import is_precise
from lmdiag.models.forward.reader import Reader
from lmdiag.models.forward.reuse import Continue, choose_reuse
from lmdiag.models.tokens.boundaries import Boundaries
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import EncodedQuestion, PartialWord
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.models.whole_words.frontier import Frontier, Node, SearchRules
from lmdiag.spacing import ends_unspaced
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, ModelInfo, Question


@dataclass(eq=False)
class WordSearch:
    """Answers questions in unit `word`, of models that compute in float32 or better.

    The search multiplies probabilities of many distributions that it reads in batches of changing
    size. In half precision these vary by up to a tenth of a nat with the rest of the batch, and so
    would the words of the list.

    Attributes:
        encoder: turns questions into rows.
        reader: turns rows into distributions.
        vocabulary: its items.
        info: of the model.
        lengths: most pieces of a word that is looked for with a masked model.
        most_nodes: nodes of a blank that are read before the search is given up.
        width: continuations of a node that are opened at first, the most probable ones.
        reuse: what the continuations of a blank reuse, see `forward.reuse`.
    """

    encoder: QuestionEncoder
    reader: Reader
    vocabulary: Vocabulary
    info: ModelInfo
    lengths: int = 3
    most_nodes: int = 2_000
    width: int = 128

    def __post_init__(self) -> None:
        if not is_precise(self.reader):
            raise BadInput(
                f"model {self.info.id}: with {self.info.quantization or self.info.dtype} weights "
                "the probabilities of unit word depend on what else is in a batch: use --dtype "
                "float32 without --quantization, or --unit token"
            )
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
        """Returns the rows that every search begins with, shorter partial words first.

        There is one for the blank, and one for each partial word of the candidates.
        """
        encoded = self.encoder.encode(question)
        if not encoded.rows:
            return encoded
        if not self.encoder.masked and ends_unspaced(encoded.query.context):
            raise BadInput(
                f"the context {truncated(encoded.text)!r} ends in a script without spaces, in "
                "which nothing tells where a word ends: use --unit token"
            )
        end = not (self.encoder.masked or self.boundaries.certain)  # read after a word, too
        partials = [PartialWord((), total) for total in range(1, self.longest + 1)]
        partials = partials or [PartialWord(())]
        for pieces in filter(None, encoded.words.values()):
            partials += encoded.blank.partial_words(pieces, end=end)
        partials = sorted(dict.fromkeys(partials), key=lambda partial: len(partial.pieces))
        rows = tuple(encoded.blank.row(partial) for partial in partials)
        self.encoder.check_length(rows, question.query)
        return replace(encoded, rows=rows, partials=tuple(partials))

    def answer(
        self,
        batch: Sequence[EncodedQuestion],
        top: int,
        verbs: Sequence[tuple[int, int]] | None = None,
    ) -> list[Answer]:
        """Returns the answers to a batch of questions, in their order.

        Args:
            batch, top: see `Model.answer`.
            verbs: (singular, plural) ids, for EW and MW of questions with a `number`; or None.

        Raises:
            BadInput: NaN or infinite logits; a search that reaches `most_nodes`, since the model
                hardly prefers any word to others; a word too long for the model.
        """
        continue_from = self.reuse(self.reader, [encoded.rows[0] for encoded in batch])
        rules = SearchRules(self.boundaries, self.encoder.spell, self.longest, self.width)
        frontiers = [Frontier(rules, encoded, top, number) for number, encoded in enumerate(batch)]
        of_blanks: list[tuple[tuple[float | None, ...] | None, float | None]] = []
        nodes = [(f, Node(0.0, f.encoded.partials[0], self.width)) for f in frontiers]
        for log_probs in self._read(nodes, continue_from):
            questions = batch[len(of_blanks) : len(of_blanks) + len(log_probs)]
            of_blanks += of_distributions(questions, log_probs, verbs)
        nodes = [
            (frontier, Node(0.0, partial, self.width))
            for frontier in frontiers
            for partial in frontier.encoded.partials[1:]
        ]
        while nodes := nodes + [(f, node) for f in frontiers for node in f.next()]:
            for _ in self._read(nodes, continue_from):
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
            frontier.answer(*of_blank)
            for frontier, of_blank in zip(frontiers, of_blanks, strict=True)
        ]

    def _read(
        self, nodes: Sequence[tuple[Frontier, Node]], continue_from: Continue
    ) -> Iterator[torch.Tensor]:
        """Reads nodes, each with its search, and tells the frontiers.

        Yields (nodes, vocabulary) log-probabilities of as many nodes as fit into memory.
        """
        size = max(1, self.reader.sizes.searched // self.info.vocab_size)
        for start in range(0, len(nodes), size):
            chunk = nodes[start : start + size]
            requests = [(f.number, f.encoded.blank.row(node.partial)) for f, node in chunk]
            queries = [frontier.encoded.question.query for frontier, _ in chunk]
            for (_, row), query in zip(requests, queries, strict=True):
                self.encoder.check_length([row], query)
            log_probs = continue_from(requests)
            refuse_nan(queries, log_probs, self.info)
            self._update_frontiers(chunk, log_probs)
            yield log_probs

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
        piece_log_probs = iter(look_up(log_probs, pairs))
        for number, (frontier, node) in enumerate(nodes):
            if ends[number] == -math.inf and not node.partial.pieces:
                context = truncated(frontier.encoded.question.query.context)
                raise BadInput(
                    f"model {self.info.id} gives no probability to the beginning of a word after "
                    f"{context!r}: use --unit token"
                )
            best = (some[number, : node.width].tolist() for some in (tokens, values))
            log_prob_of = {piece: next(piece_log_probs) for piece in wanted[number]}
            frontier.read(node, ends[number], zip(*best, strict=True), log_prob_of)
