"""Answers about whole sentences: the log-probability of every word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import cast

import torch

from lmdiag.models.answers import entropies
from lmdiag.models.forward.reader import Reader
from lmdiag.models.tokens.boundaries import Boundaries
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.models.tokens.sentences import EncodedSentence
from lmdiag.text import truncated
from lmdiag.types import BadInput, SentenceAnswer, WordSpan

ELEMENTS_ON_CPU, ELEMENTS = 2**26, 2**29
"""Logits that are held at a time, on processors and on accelerators."""

_OVERFULL = 1.25
"""Rows of more than this many times the tokens of a usual batch are read in parts."""


@dataclass(frozen=True)
class SentenceScorer:
    """Answers questions about sentences.

    Attributes:
        reader: turns rows into probabilities.
        model_id: for messages.
        vocab_size: items over which the softmax runs.
        boundaries: of words, for the boundary correction of causal models in unit `word`; None
            without.
    """

    reader: Reader
    model_id: str
    vocab_size: int
    boundaries: Boundaries | None = None

    @property
    def most_reads(self) -> int:
        """Distributions that are held at a time."""
        elements = ELEMENTS_ON_CPU if self.reader.device.type == "cpu" else ELEMENTS
        return max(1, elements // self.vocab_size)

    def answer(self, batch: Sequence[EncodedSentence], budget: int) -> list[SentenceAnswer]:
        """Returns the answers to a batch of sentences, in their order.

        Args:
            batch: the sentences.
            budget: tokens that go through the model together.

        Raises:
            BadInput: NaN or infinite logits; a boundary without any probability in unit `word`.
        """
        rows, ids, starts = list[TokenRow](), list[int](), [0]
        for encoded in batch:
            some = encoded.rows
            rows += some
            # the token of each read; after the last token none, for which 0 stands
            tokens = [encoded.ids[number] for number in encoded.scored]
            starts.append(starts[-1] + sum(len(row.reads) for row in some))
            ids += tokens + [0] * (starts[-1] - len(ids) - len(tokens))
        entropy = any(encoded.sentence.entropy for encoded in batch)
        values: list[list[float]] = []
        for chunk in filter(None, self._chunks(rows, len(batch), budget)):
            stop = len(values) + sum(len(row.reads) for row in chunk)
            values += self._read(chunk, ids[len(values) : stop], entropy)
        return [
            self._answer(encoded, values[start:stop])
            for encoded, (start, stop) in zip(batch, pairwise(starts), strict=True)
        ]

    def _read(self, rows: Sequence[TokenRow], ids: Sequence[int], bits: bool) -> list[list[float]]:
        """Returns for each token its log-probability, in unit `word` that of its boundary, and, if
        `bits` are wanted, the entropy before it."""
        wanted = torch.tensor(ids, device=self.reader.device)

        def pick(
            log_probs: torch.Tensor, reads: torch.Tensor, numbers: Sequence[int]
        ) -> torch.Tensor:
            found = [log_probs[reads, wanted[numbers].to(reads.device)]]
            if self.boundaries is not None:
                found.append(self.boundaries.whitespace_log_prob(log_probs)[reads])
            if bits:
                found.append(entropies(log_probs)[reads])
            return torch.stack(found, dim=1)

        return cast("list[list[float]]", self.reader.read(rows, pick).tolist())

    def _chunks(
        self, rows: Sequence[TokenRow], n_sentences: int, budget: int
    ) -> Iterator[Sequence[TokenRow]]:
        """Cuts rows where they would take too much memory.

        A batch of several sentences of a causal model was planned to fit, common beginnings counted
        once. What may not fit are a long text, and the many rows of masked models.
        """
        if self.reader.causal and n_sentences > 1:
            yield rows
            return
        most, parts = self.most_reads, list[TokenRow]()
        for row in rows:
            for start in range(0, len(row.reads), most):
                reads = row.reads[start : start + most]
                is_whole = len(reads) == len(row.reads)  # as all rows of masked models are
                parts.append(row if is_whole else TokenRow(row.ids[: reads[-1] + 1], reads))
        total = sum(len(row.ids) for row in parts)
        enough = total / math.ceil(total / (_OVERFULL * budget)) if parts else 0
        chunk: list[TokenRow] = []
        tokens = 0
        for row in parts:
            if chunk and tokens + len(row.ids) > enough:
                yield chunk
                chunk, tokens = [], 0
            chunk.append(row)
            tokens += len(row.ids)
        yield chunk

    def _answer(
        self, encoded: EncodedSentence, values: Sequence[Sequence[float]]
    ) -> SentenceAnswer:
        """Returns the words of a sentence.

        The boundary correction of a word, or its share of it where it is cut, is that of Pimentel &
        Meister (2024), with words that end at white space alone.

        Args:
            encoded: the sentence.
            values: of each scored token its log-probability, and in unit `word` that of the event
                that white space stands there; where it is asked for, the entropy before it; last,
                the same after the last token.
        """
        text, offset = encoded.sentence.text, encoded.scored.start
        if any(map(math.isnan, chain.from_iterable(values))):
            raise BadInput(
                f"model {self.model_id} gives NaN or infinite logits for the sentence "
                f"{truncated(text)!r}: nothing can be scored; try --dtype float32"
            )
        edges = {span.first for span in encoded.spans if span.opens} | {len(encoded.ids)}
        words = []
        for span in encoded.spans:
            log_prob: float | None = None
            n_tokens = span.last - span.first if span.spelled else 0
            if span.spelled and (span.first >= offset or not n_tokens):
                first, last = span.first - offset, span.last - offset
                log_prob = sum((nats for nats, *_ in values[first:last]), 0.0)
                if self.boundaries is not None and n_tokens:
                    after = values[last][1] if span.last in edges else 0.0
                    begins = span.first in edges and span.first > 0
                    before = values[first][1] if begins else 0.0
                    if -math.inf in (before, after):
                        raise BadInput(
                            f"model {self.model_id} gives no probability to a boundary of the word "
                            f"{text[span.start : span.end]!r} in {truncated(text)!r}: use --unit "
                            "token"
                        )
                    log_prob += after - before
                log_prob = min(log_prob, 0.0)
            words.append(WordSpan(span.start, span.end, log_prob, n_tokens))
        if not encoded.sentence.entropy:
            return SentenceAnswer(tuple(words))
        firsts = [span.first - offset if span.last > span.first else -1 for span in encoded.spans]
        bits = (values[first][-1] if first >= 0 else None for first in firsts)
        return SentenceAnswer(tuple(words), tuple(bits))
