"""Many continuations of a few blanks, without reading the text around each blank again.

What can be reused depends on the model: a causal one keeps the keys and values of the context, an
encoder-decoder the output of its encoder; a masked one can reuse nothing, since every token sees
the others. As with layouts, it is tried once per model whether that leaves the numbers unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from lmdiag.models.forward.probing import PROBES, reach, same
from lmdiag.models.forward.reader import Reader, select_sources
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import TokenRow

Request = tuple[int, TokenRow]
"""Number of a blank, and a row that begins as the blank's root does and has one read, its last."""


class Continuations(Protocol):
    """Reads rows that continue the roots (rows without a word) of a few blanks."""

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns (requests, vocabulary) log-probabilities, see `Reader.read`."""
        ...


Reuse = Callable[[Reader, Sequence[TokenRow]], Continuations]
"""Given the reader and the root of each blank, opens the blanks."""


class NoReuse:
    """Reads every row from its first token, in the reader's layout."""

    def __init__(self, reader: Reader, roots: Sequence[TokenRow]) -> None:
        self._reader = reader

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns (requests, vocabulary) log-probabilities, nats."""
        return self._reader.read([row for _, row in requests])


class KeyValueReuse:
    """Reads the roots once and keeps their keys and values: for causal models."""

    def __init__(self, reader: Reader, roots: Sequence[TokenRow]) -> None:
        self._reader = reader
        self._window = reach(reader.model.config)  # padding counts in it, too
        self._lengths = torch.tensor([len(root.ids) for root in roots])
        self._cache = DynamicCache()  # keeps all tokens, also for layers with a sliding window
        inputs = reader.fill([root.ids for root in roots])
        self._mask = inputs["attention_mask"]
        positions = reader.first_position + torch.arange(self._mask.shape[1])
        self._roots = reader.run(
            inputs
            | {"position_ids": positions.expand_as(self._mask), "past_key_values": self._cache},
            [(index, len(root.ids) - 1) for index, root in enumerate(roots)],
        )

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns (requests, vocabulary) log-probabilities, nats."""
        lengths = self._lengths.tolist()
        log_probs = self._roots[[blank for blank, _ in requests]]
        longer = [n for n, (blank, row) in enumerate(requests) if len(row.ids) > lengths[blank]]
        if longer:
            log_probs[longer] = self._continue([requests[n] for n in longer])
        return log_probs

    def _continue(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns the log-probabilities after pieces that follow the roots of some blanks."""
        blanks = torch.tensor([blank for blank, _ in requests])
        starts = self._lengths[blanks].tolist()
        pieces = [row.ids[start:] for (_, row), start in zip(requests, starts, strict=True)]
        width = self._mask.shape[1] + max(map(len, pieces))
        if self._window is not None and width > self._window:
            return self._reader.read([row for _, row in requests])
        inputs = self._reader.fill(pieces)
        steps = torch.arange(inputs["input_ids"].shape[1])
        cache = copy.copy(self._cache)
        cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        cache.batch_select_indices(blanks)
        inputs |= {
            "attention_mask": torch.cat([self._mask[blanks], inputs["attention_mask"]], dim=1),
            "position_ids": self._reader.first_position + self._lengths[blanks, None] + steps,
        }
        last = [(index, len(some) - 1) for index, some in enumerate(pieces)]
        return self._reader.run(inputs | {"past_key_values": cache}, last)


class EncoderReuse:
    """Reads the sentences around the blanks once: for encoder-decoders."""

    def __init__(self, reader: Reader, roots: Sequence[TokenRow]) -> None:
        self._reader = reader
        self._encoded = reader.encode([root.source for root in roots])

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns (requests, vocabulary) log-probabilities, nats."""
        decoder = self._reader.fill([row.ids for _, row in requests])
        inputs: dict[str, Any] = {f"decoder_{name}": tensor for name, tensor in decoder.items()}
        inputs |= select_sources(self._encoded, [blank for blank, _ in requests])
        last = [(index, len(row.ids) - 1) for index, (_, row) in enumerate(requests)]
        return self._reader.run(inputs, last)


def choose_reuse(reader: Reader, encoder: QuestionEncoder) -> Reuse:
    """Returns what reuses most without changing a model's numbers.

    Args:
        reader: has the model, its layout chosen.
        encoder: makes rows of the probes.
    """
    if encoder.masked or reader.layout == "alone":
        return NoReuse
    blanks = [encoder.blank(question.query) for question in PROBES]
    requests = []
    for number, question in enumerate(PROBES):
        spelt = [encoder.spell(word, question.query) or () for word in question.words]
        prefixes = {pieces[:n] for pieces in spelt for n in range(len(pieces) + 1)}
        requests += [(number, blanks[number].row(filled)) for filled in sorted(prefixes)]
    roots = [blank.row(()) for blank in blanks]
    reuse: Reuse = EncoderReuse if roots[0].source else KeyValueReuse
    try:
        together = reuse(reader, roots).read(requests)
        expected = reader.read([row for _, row in requests])
    except Exception:  # of a model that keeps its past in another form, or has few positions
        return NoReuse
    return reuse if same(reader, together, expected) else NoReuse
