"""Answers about whole sentences: the log-probability of every word."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import torch

from lmdiag.models.answers import entropies, nan_error
from lmdiag.models.forward.layers import ORDINARY, Layer
from lmdiag.models.forward.reader import Reader
from lmdiag.models.tokens.boundaries import Boundaries
from lmdiag.models.tokens.encoded_questions import TokenRow
from lmdiag.models.tokens.encoded_sentences import EncodedSentence, TokenSpan
from lmdiag.text import truncated
from lmdiag.types import BadInput, ModelInfo, SentenceAnswer, WordSpan

_OVERFULL = 1.25
"""Rows of more than this many times the tokens of a usual batch are read in parts."""


@dataclass(frozen=True)
class SentenceScorer:
    """Answers questions about sentences with the log-probability of every word.

    Attributes:
        reader: turns rows into probabilities.
        info: of the model.
        boundaries: of words, for the boundary correction of causal models in unit `word`; None
            without.
    """

    reader: Reader
    info: ModelInfo
    boundaries: Boundaries | None = None

    @property
    def most_reads(self) -> int:
        """Distributions over the vocabulary that are held in memory at a time."""
        return max(1, self.reader.sizes.logits // self.info.vocab_size)

    def answer(
        self,
        batch: Sequence[EncodedSentence],
        report: Callable[[float], None],
        layers: Sequence[Layer] = ORDINARY,
    ) -> list[list[SentenceAnswer]]:
        """Returns for each layer the answers to a batch of sentences, in their order.

        Args:
            batch: the sentences.
            report: is called with the share of the batch that is read so far.
            layers: after which the model answers.
        """
        needs_entropy = any(encoded.sentence.entropy for encoded in batch)

        def pick(
            log_probs: torch.Tensor, reads: torch.Tensor, wanted: torch.Tensor
        ) -> torch.Tensor:
            """Returns the values of each read, (reads, 1 to 3), see `sentence_answer`.

            `log_probs` are (distributions, vocabulary); `reads` are the number of the distribution
            of each read, and `wanted` its token.
            """
            columns = [log_probs[reads, wanted]]
            if self.boundaries is not None:
                columns.append(self.boundaries.whitespace_log_prob(log_probs)[reads])
            if needs_entropy:
                columns.append(entropies(log_probs)[reads])
            return torch.stack(columns, dim=1)

        # for each layer, the values of all reads of the batch, chunk after chunk
        values_by_layer: list[list[list[float]]] = [[] for _ in layers]
        n_reads = sum(encoded.n_reads for encoded in batch)
        for chunk in self._chunks(batch):
            picked_by_layer = self.reader.read_layers(chunk, layers, pick)
            for values, picked in zip(values_by_layer, picked_by_layer, strict=True):
                values += picked.tolist()
            report(len(values_by_layer[0]) / n_reads)
        return [self._answers(batch, values) for values in values_by_layer]

    def _answers(
        self, batch: Sequence[EncodedSentence], values: Sequence[Sequence[float]]
    ) -> list[SentenceAnswer]:
        """Returns the answers to a batch after one layer.

        `values` are those of all reads of all sentences in their order, see `sentence_answer`.
        """
        answers = []
        corrects = self.boundaries is not None
        remaining = iter(values)
        for encoded in batch:
            sentence_values = list(islice(remaining, encoded.n_reads))
            if any(math.isnan(value) for value in chain.from_iterable(sentence_values)):
                raise nan_error(self.info, f"sentence {truncated(encoded.text)!r}")
            answers.append(
                sentence_answer(encoded, sentence_values, self.info.id, corrects=corrects)
            )
        return answers

    def _chunks(self, batch: Sequence[EncodedSentence]) -> Iterator[Sequence[TokenRow]]:
        """Yields the rows of a batch, as many at a time as fit into memory.

        A batch of several sentences of a causal model was planned to fit, common beginnings counted
        once. What may not fit are a long text, and the many rows of masked models, which are made
        as they are read.
        """
        rows = chain.from_iterable(encoded.encoder.rows(encoded) for encoded in batch)
        length = sum(encoded.length for encoded in batch)
        n_chunks = max(1, math.ceil(length / (_OVERFULL * self.reader.sizes.budget)))
        chunk_tokens = length / n_chunks  # chunks of about the same size
        if self.reader.causal and len(batch) > 1:
            chunk_tokens = math.inf  # one chunk
        chunk = []
        n_tokens = 0
        for row in rows:
            for part in self._parts(row):
                chunk.append(part)
                n_tokens += len(part.ids)
                if n_tokens >= chunk_tokens:
                    yield chunk
                    chunk = []
                    n_tokens = 0
        if chunk:
            yield chunk

    def _parts(self, row: TokenRow) -> Iterator[TokenRow]:
        """Yields a row in parts, none of which has more than `most_reads` reads.

        A part of a causal model ends with the token of its last read; the tokens before its first
        read are read again.
        """
        for start in range(0, len(row.reads), self.most_reads):
            reads = row.reads[start : start + self.most_reads]
            wanted = row.wanted[start : start + self.most_reads]
            ids = row.ids[: reads[-1] + 1] if self.reader.causal else row.ids
            yield TokenRow(ids, reads, wanted=wanted)


def sentence_answer(
    encoded: EncodedSentence,
    values: Sequence[Sequence[float]],
    model_id: str,
    *,
    corrects: bool = False,
) -> SentenceAnswer:
    """Returns the words of a sentence from the values of its tokens.

    A word with a token of log-probability -inf has None and no tokens, as one that the tokenizer
    cannot represent: a server gives -inf for all that is less probable than the least that it
    tells, and a sum over the other words would make the sentence too probable.

    Args:
        encoded: the sentence.
        values: for each scored token its log-probability; then, with `corrects`, that of white
            space in its place; then, where it is asked for, the entropy (bits) before it. With
            `corrects`, the last entry is of the position after the last token.
        model_id: for messages.
        corrects: make the boundary correction of unit `word`.
    """
    # the first token has no values if nothing precedes it: then numbers of tokens are indexes
    values = [(math.nan,) * 3] * encoded.scored.start + [*values]
    # the log-probability of each word, or part of a word
    word_starts = {span.first for span in encoded.spans if span.opens}
    edges = word_starts | {len(encoded.ids)}
    words = []
    for span in encoded.spans:
        nats = [token_values[0] for token_values in values[span.first : span.last]]
        is_spelled = span.spelled and -math.inf not in nats
        log_prob = sum(nats, 0.0)
        if corrects and is_spelled and nats:
            correction = _boundary_correction(span, values, edges)
            if not math.isfinite(correction):
                word = encoded.text[span.start : span.end]
                raise BadInput(
                    f"model {model_id} gives no probability to a boundary of the word {word!r} in "
                    f"{truncated(encoded.text)!r}: use --unit token"
                )
            log_prob += correction
        is_known = is_spelled and not math.isnan(log_prob)
        word_log_prob = min(log_prob, 0.0) if is_known else None  # rounding may give more than 0
        n_tokens = len(nats) if is_spelled else 0
        words.append(WordSpan(span.start, span.end, word_log_prob, n_tokens))
    if not encoded.sentence.entropy:
        return SentenceAnswer(tuple(words))
    # the entropy before the first token of each word
    word_entropies: list[float | None] = []
    for span in encoded.spans:
        has_tokens = span.last > span.first
        bits = values[span.first][-1] if has_tokens else math.nan
        word_entropies.append(None if math.isnan(bits) else bits)
    return SentenceAnswer(tuple(words), tuple(word_entropies))


def _boundary_correction(
    span: TokenSpan, values: Sequence[Sequence[float]], edges: Collection[int]
) -> float:
    """Returns what the boundaries of a word add to its log-probability, in nats.

    The correction is that of Pimentel & Meister (2024), with words that end at white space alone.
    If a word is cut into parts, the first part has what is due to the word's start, and the last
    one what is due to its end.

    Args:
        span: the word, or the part of it.
        values: of all tokens, see `sentence_answer`; item 1 is the log-probability of white space.
        edges: numbers of the tokens before which a word ends.
    """
    # p(word) = p(tokens) p(white space after them) / p(white space before them)
    end_nats = values[span.last][1] if span.last in edges else 0.0
    begins_word = span.first in edges and span.first > 0  # the text's first word is after no space
    start_nats = values[span.first][1] if begins_word else 0.0
    return end_nats - start_nats
