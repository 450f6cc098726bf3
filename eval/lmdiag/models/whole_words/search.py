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

from lmdiag.models.answers import agreement_and_entropy, look_up, refuse_nan
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
        frontiers: the search at each blank.
        blank_measures: EW and MW, and the entropy, at each blank, see `agreement_and_entropy`.
    """

    layer: Layer
    frontiers: Sequence[Frontier]
    blank_measures: list[tuple[tuple[float | None, ...] | None, float | None]] = field(
        default_factory=list
    )

    def nodes(
        self, requested: Sequence[tuple[int, PartialWord]], width: int
    ) -> list[tuple[Frontier, Node]]:
        """Returns partial words, given with the number of their question, as nodes to be read.

        Their cost is 0, since they are read in any case. `width` is `Node.width`.
        """
        return [(self.frontiers[n], Node(0.0, partial, width)) for n, partial in requested]

    def answers(self) -> list[Answer]:
        """Returns the answer to each question of the batch, at the end of the searches."""
        all_answers = []
        for frontier, measures in zip(self.frontiers, self.blank_measures, strict=True):
            agreement, entropy = measures
            all_answers.append(frontier.answer(agreement, entropy))
        return all_answers


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
        """Most pieces of a word that is looked for; 0 if the model is not told their number.

        A masked model is told it by the number of masks.
        """
        if not self.encoder.masked:
            return 0
        has_longer_words = bool(self.boundaries.continues.any())
        return self.lengths if has_longer_words else 1

    def encode(self, question: Question) -> EncodedQuestion:
        """Returns a question with the rows that its search begins with, shorter words first.

        There is one row for the blank (of a masked model, one per number of pieces), and one for
        each partial word of the candidates.

        Raises:
            BadInput: a row is too long, or nothing tells where a word ends.
        """
        encoded = self.encoder.encode(question)
        if not encoded.rows:  # all words are unscorable
            return encoded
        if not self.encoder.masked and ends_unspaced(encoded.query.context):
            raise BadInput(
                f"the context {truncated(encoded.text)!r} ends in a script without spaces, in "
                "which nothing tells where a word ends: use --unit token"
            )
        # Where the pieces do not tell, what comes after a word says whether it has ended.
        reads_after_word = not (self.encoder.masked or self.boundaries.certain)
        partials = [PartialWord(())]
        if self.longest:
            partials = [PartialWord((), total) for total in range(1, self.longest + 1)]
        for pieces in filter(None, encoded.words.values()):
            partials += encoded.blank.partial_words(pieces, end=reads_after_word)
        distinct_partials = dict.fromkeys(partials)
        partials = sorted(distinct_partials, key=lambda partial: len(partial.pieces))
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
        """Returns for each layer the answers to a batch of questions, in their order.

        The blanks are read once for all layers, the partial words of candidates once for all inner
        layers; then each layer has a search of its own, which reads as far as this layer.

        Args:
            batch: the questions.
            top: length of the list of the most probable words.
            verbs: (singular, plural) ids, for EW and MW of questions with a `number`; or None.
            layers: after which the model answers.

        Raises:
            BadInput: NaN or infinite logits; a search that reaches `most_nodes`, since the model
                hardly prefers any word to others; a word too long for the model.
        """
        blank_rows = [encoded.rows[0] for encoded in batch]
        continue_from = self.reuse(self.reader, blank_rows, layers)  # reads what follows a blank
        # a search for each layer, with a frontier for each blank
        rules = SearchRules(self.boundaries, self.encoder.spell, self.longest, self.width)
        searches = []
        for layer in layers:
            frontiers = [Frontier(rules, encoded, top, n) for n, encoded in enumerate(batch)]
            searches.append(_LayerSearch(layer, frontiers))
        # The blanks are read once for all layers. The first partial word of a question has no
        # pieces: after it the distribution at the blank is read.
        blank_partials = [(n, encoded.partials[0]) for n, encoded in enumerate(batch)]
        for chunk, log_probs_by_layer in self._read(batch, blank_partials, continue_from, layers):
            questions = [batch[number] for number, _ in chunk]
            for search, log_probs in zip(searches, log_probs_by_layer, strict=True):
                search.blank_measures += agreement_and_entropy(questions, log_probs, verbs)
                self._update_frontiers(search.nodes(chunk, self.width), log_probs)
        # Candidates are read once for all inner layers, which are projected together. The last
        # layer (None) reads them below, in the first round of its search.
        candidate_partials = [
            (n, partial) for n, encoded in enumerate(batch) for partial in encoded.partials[1:]
        ]
        inner_searches = [search for search in searches if search.layer is not None]
        inner_layers = [search.layer for search in inner_searches]
        shared_partials = candidate_partials if inner_searches else []
        for chunk, log_probs_by_layer in self._read(
            batch, shared_partials, continue_from, inner_layers
        ):
            for search, log_probs in zip(inner_searches, log_probs_by_layer, strict=True):
                self._update_frontiers(search.nodes(chunk, self.width), log_probs)
        # from here on each layer reads partial words of its own
        for search in searches:
            unread = []
            if search.layer is None:
                unread = search.nodes(candidate_partials, self.width)
            self._search(batch, search, unread, continue_from)
        return [search.answers() for search in searches]

    def _search(
        self,
        batch: Sequence[EncodedQuestion],
        search: _LayerSearch,
        unread: list[tuple[Frontier, Node]],
        continue_from: Continue,
    ) -> None:
        """Reads open partial words after one layer until the lists of all blanks are exact.

        The frontiers of `search` are changed. `unread` are partial words of candidates, which are
        read in the first round in any case; `continue_from` reads the rows of partial words.

        Raises:
            BadInput: a blank needs more than `most_nodes` partial words.
        """
        frontiers = search.frontiers
        # Each round reads the next nodes of all blanks together, in parts, in their order. A blank
        # with an exact list has no next nodes.
        while nodes := unread + [(f, node) for f in frontiers for node in f.next()]:
            unread = []
            n_read = 0
            requested = [(frontier.number, node.partial) for frontier, node in nodes]
            for chunk, log_probs_by_layer in self._read(
                batch, requested, continue_from, [search.layer]
            ):
                nodes_read = nodes[n_read : n_read + len(chunk)]
                log_probs = next(log_probs_by_layer)  # of the only layer
                self._update_frontiers(nodes_read, log_probs)
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

        Args:
            batch: the questions.
            requested: number of a question and its partial word.
            continue_from: reads the rows of partial words.
            layers: after which they are read.

        Yields:
            a part of `requested`, and for each layer the (partial words, vocabulary)
            log-probabilities of this part.
        """
        size = max(1, self.reader.sizes.searched // self.info.vocab_size)  # distributions at a time
        for start in range(0, len(requested), size):
            chunk = requested[start : start + size]
            requests = [(number, batch[number].blank.row(partial)) for number, partial in chunk]
            queries = [batch[number].question.query for number, _ in chunk]
            for (_, row), query in zip(requests, queries, strict=True):
                self.encoder.check_length([row], query)
            yield chunk, self._without_nan(queries, continue_from(requests, layers))

    def _without_nan(
        self, queries: Sequence[Query], log_probs_by_layer: Iterator[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yields the log-probabilities of each layer unchanged, or raises `BadInput` for NaN.

        `queries` are those of the rows of log-probabilities, for the message.
        """
        for log_probs in log_probs_by_layer:
            refuse_nan(queries, log_probs, self.info)
            yield log_probs

    def _update_frontiers(
        self, nodes: Sequence[tuple[Frontier, Node]], log_probs: torch.Tensor
    ) -> None:
        """Gives frontiers the few numbers of each distribution that the search needs.

        These are the log-probabilities of the most probable items that may follow a partial word,
        of the end of the word there, and of the pieces of candidate words.

        Args:
            nodes: partial words that were read, with the frontier that each belongs to.
            log_probs: (nodes, vocabulary) log-probabilities after them.

        Raises:
            BadInput: no word can begin at a blank.
        """
        may_follow = torch.stack(  # (nodes, vocabulary)
            [
                self.boundaries.may_follow(node.partial.pieces, bare=frontier.encoded.bare)
                for frontier, node in nodes
            ]
        ).to(log_probs.device)
        width = min(max(node.width for _, node in nodes), log_probs.shape[-1])
        # Only the most probable items leave the accelerator, not whole distributions.
        values, tokens = log_probs.masked_fill(~may_follow, -torch.inf).topk(width)
        values, tokens = values.cpu(), tokens.cpu()
        if self.encoder.masked:  # the number of masks says where a word ends
            end_nats = [0.0] * len(nodes)
        else:
            end_nats = self.boundaries.end_log_prob(log_probs).tolist()
        wanted_pieces = [frontier.encoded.wanted.get(node.partial, ()) for frontier, node in nodes]
        pairs = [(number, piece) for number, pieces in enumerate(wanted_pieces) for piece in pieces]
        piece_log_probs = iter(look_up(log_probs, pairs))  # taken below in the order of `pairs`
        for number, (frontier, node) in enumerate(nodes):
            if end_nats[number] == -math.inf and not node.partial.pieces:
                context = truncated(frontier.encoded.question.query.context)
                raise BadInput(
                    f"model {self.info.id} gives no probability to the beginning of a word after "
                    f"{context!r}: use --unit token"
                )
            best_tokens = tokens[number, : node.width].tolist()
            best_values = values[number, : node.width].tolist()
            log_prob_of_piece = {piece: next(piece_log_probs) for piece in wanted_pieces[number]}
            following = zip(best_tokens, best_values, strict=True)
            frontier.read(node, end_nats[number], following, log_prob_of_piece)
