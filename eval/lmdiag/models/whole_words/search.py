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
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from lmdiag.models.answers import look_up, of_distributions, refuse_nan
from lmdiag.models.forward.layers import ORDINARY, Layer
from lmdiag.models.forward.probing import is_precise
from lmdiag.models.forward.reader import Reader
from lmdiag.models.forward.reuse import Continue, choose_reuse
from lmdiag.models.tokens.boundaries import Boundaries
from lmdiag.models.tokens.encoded_questions import EncodedQuestion, PartialWord
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.models.whole_words.frontier import Frontier, Node, SearchRules
from lmdiag.spacing import ends_unspaced
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, ModelInfo, Query, Question


@dataclass
class _LayerSearch:
    """The searches at all blanks of a batch, after one layer.

    Attributes:
        layer: after which the model answers.
        frontiers: of the blanks.
        of_blanks: EW and MW, and the entropy, of each, see `of_distributions`.
    """

    layer: Layer
    frontiers: Sequence[Frontier]
    of_blanks: list[tuple[tuple[float | None, ...] | None, float | None]] = field(
        default_factory=list
    )

    def nodes(
        self, requested: Sequence[tuple[int, PartialWord]], width: int
    ) -> list[tuple[Frontier, Node]]:
        """Returns partial words of questions as nodes that are read first."""
        return [(self.frontiers[n], Node(0.0, partial, width)) for n, partial in requested]

    def answers(self) -> list[Answer]:
        """Returns the answers at the end of the searches."""
        pairs = zip(self.frontiers, self.of_blanks, strict=True)
        return [frontier.answer(*of_blank) for frontier, of_blank in pairs]


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
        # Where the pieces do not tell, what comes after a word says whether it has ended.
        end = not (self.encoder.masked or self.boundaries.certain)
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
        layers: Sequence[Layer] = ORDINARY,
    ) -> list[list[Answer]]:
        """Returns the answers after each layer to a batch of questions, in their order.

        The partial words of candidates are read once for all inner layers; then each layer has a
        search of its own, which reads as far as this layer.

        Args:
            batch, top: see `Model.answer`.
            verbs: (singular, plural) ids, for EW and MW of questions with a `number`; or None.
            layers: after which the model answers.

        Raises:
            BadInput: NaN or infinite logits; a search that reaches `most_nodes`, since the model
                hardly prefers any word to others; a word too long for the model.
        """
        roots = [encoded.rows[0] for encoded in batch]
        continue_from = self.reuse(self.reader, roots, layers)
        rules = SearchRules(self.boundaries, self.encoder.spell, self.longest, self.width)
        searches = [
            _LayerSearch(
                layer, [Frontier(rules, encoded, top, n) for n, encoded in enumerate(batch)]
            )
            for layer in layers
        ]
        blank_partials = [(n, encoded.partials[0]) for n, encoded in enumerate(batch)]
        for chunk, log_probs_of in self._read(batch, blank_partials, continue_from, layers):
            questions = [batch[number] for number, _ in chunk]
            for search, log_probs in zip(searches, log_probs_of, strict=True):
                search.of_blanks += of_distributions(questions, log_probs, verbs)
                self._update_frontiers(search.nodes(chunk, self.width), log_probs)
        candidate_partials = [
            (n, partial) for n, encoded in enumerate(batch) for partial in encoded.partials[1:]
        ]
        inner_searches = [search for search in searches if search.layer is not None]
        inner_layers = [search.layer for search in inner_searches]
        shared_partials = candidate_partials if inner_searches else []
        # inner layers are projected together: what all of them need is read once, before they part
        for chunk, log_probs_of in self._read(batch, shared_partials, continue_from, inner_layers):
            for search, log_probs in zip(inner_searches, log_probs_of, strict=True):
                self._update_frontiers(search.nodes(chunk, self.width), log_probs)
        for search in searches:
            unread = (
                [] if search.layer is not None else search.nodes(candidate_partials, self.width)
            )
            self._search(batch, search, unread, continue_from)
        return [search.answers() for search in searches]

    def _search(
        self,
        batch: Sequence[EncodedQuestion],
        search: _LayerSearch,
        unread: list[tuple[Frontier, Node]],
        continue_from: Continue,
    ) -> None:
        """Reads the open partial words of a layer, `unread` first, until its lists are exact."""
        frontiers = search.frontiers
        while nodes := unread + [(f, node) for f in frontiers for node in f.next()]:
            unread = []
            n_read = 0
            requested = [(frontier.number, node.partial) for frontier, node in nodes]
            for chunk, log_probs_of in self._read(batch, requested, continue_from, [search.layer]):
                nodes_read = nodes[n_read : n_read + len(chunk)]
                self._update_frontiers(nodes_read, next(log_probs_of))
                n_read += len(chunk)
            for frontier in frontiers:
                if frontier.n_read > self.most_nodes and not frontier.is_exact:
                    context = truncated(frontier.encoded.question.query.context)
                    where = "" if search.layer is None else f" at layer {search.layer}"
                    raise BadInput(
                        f"model {self.info.id}: the word search after {context!r}{where} did not "
                        f"converge after {self.most_nodes:,} prefixes, since no word is much more "
                        "probable than others: use --unit token"
                    )

    def _read(
        self,
        batch: Sequence[EncodedQuestion],
        requested: Sequence[tuple[int, PartialWord]],
        continue_from: Continue,
        layers: Sequence[Layer],
    ) -> Iterator[tuple[Sequence[tuple[int, PartialWord]], Iterator[torch.Tensor]]]:
        """Reads partial words of questions, as many at a time as fit into memory.

        Yields:
            numbers of questions and their partial words, and (partial words, vocabulary)
            log-probabilities after each layer.
        """
        size = max(1, self.reader.sizes.searched // self.info.vocab_size)
        for start in range(0, len(requested), size):
            chunk = requested[start : start + size]
            requests = [(number, batch[number].blank.row(partial)) for number, partial in chunk]
            queries = [batch[number].question.query for number, _ in chunk]
            for (_, row), query in zip(requests, queries, strict=True):
                self.encoder.check_length([row], query)
            yield chunk, self._without_nan(queries, continue_from(requests, layers))

    def _without_nan(
        self, queries: Sequence[Query], log_probs_of: Iterator[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yields the same log-probabilities; `BadInput` for NaN and infinite logits."""
        for log_probs in log_probs_of:
            refuse_nan(queries, log_probs, self.info)
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
        # Only the most probable items leave the accelerator, not whole distributions.
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
            best_tokens = tokens[number, : node.width].tolist()
            best_values = values[number, : node.width].tolist()
            log_prob_of = {piece: next(piece_log_probs) for piece in wanted[number]}
            following = zip(best_tokens, best_values, strict=True)
            frontier.read(node, ends[number], following, log_prob_of)
