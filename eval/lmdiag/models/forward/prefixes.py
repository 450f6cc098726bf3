"""Many beginnings of words at a few blanks, without reading the text around each blank again.

What can be shared depends on the model: a causal one keeps the keys and values of the context, an
encoder-decoder the output of its encoder; a masked one can share nothing, since every token sees
the others. As with layouts, it is tried once per model whether sharing leaves the numbers
unchanged; otherwise every row is read from its beginning.

For the shape of gpt2 and the contexts of the diagnostics, sharing takes 23% off the CPU time of
unit `word` (one thread).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from lmdiag.models.forward.layout import PROBES, reach, same
from lmdiag.models.forward.reader import Reader, select_sources
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import TokenRow

Request = tuple[int, TokenRow]
"""Number of a blank, and a row that begins as the blank's root does and has one read, its last."""


class Prefixes(Protocol):
    """Reads rows that continue the roots (rows without a word) of a few blanks."""

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns (requests, vocabulary) log-probabilities, see `Reader.read`."""
        ...


Share = Callable[[Reader, Sequence[TokenRow]], Prefixes]
"""Given the reader and the root of each blank, opens the blanks."""


class Rereading:
    """Reads every row from its beginning, in the reader's layout."""

    def __init__(self, reader: Reader, roots: Sequence[TokenRow]) -> None:
        self._reader = reader

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """See `Prefixes.read`."""
        return self._reader.read([row for _, row in requests])


class KeyValues:
    """Reads the roots once and keeps their keys and values: for causal models."""

    def __init__(self, reader: Reader, roots: Sequence[TokenRow]) -> None:
        self._reader = reader
        limits = (reach(reader.model.config), reader.short_limit)
        self._window = min(limit or math.inf for limit in limits)  # padding counts in it, too
        self._lengths = torch.tensor([len(root.ids) for root in roots])
        self._cache = DynamicCache()  # keeps all tokens, also for layers with a sliding window
        inputs = reader.fill([root.ids for root in roots])
        self._mask = inputs["attention_mask"]
        if self._mask.shape[1] > (reader.short_limit or math.inf):
            self._roots = reader.read(roots)
            return
        positions = reader.first_position + torch.arange(self._mask.shape[1])
        self._roots = reader.run(
            inputs
            | {"position_ids": positions.expand_as(self._mask), "past_key_values": self._cache},
            [(index, len(root.ids) - 1) for index, root in enumerate(roots)],
        )

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """See `Prefixes.read`."""
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
        if self._mask.shape[1] + max(map(len, pieces)) > self._window:
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


class Sources:
    """Reads the sentences around the blanks once: for encoder-decoders."""

    def __init__(self, reader: Reader, roots: Sequence[TokenRow]) -> None:
        self._reader = reader
        self._encoded = reader.encode([root.source for root in roots])

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """See `Prefixes.read`."""
        decoder = self._reader.fill([row.ids for _, row in requests])
        inputs: dict[str, Any] = {f"decoder_{name}": tensor for name, tensor in decoder.items()}
        inputs |= select_sources(self._encoded, [blank for blank, _ in requests])
        last = [(index, len(row.ids) - 1) for index, (_, row) in enumerate(requests)]
        return self._reader.run(inputs, last)


def choose_sharing(reader: Reader, encoder: QuestionEncoder) -> Share:
    """Returns what shares most among the prefixes of a model without changing its numbers.

    Args:
        reader: has the model, its layout chosen.
        encoder: makes rows of the probes.
    """
    if encoder.masked or reader.layout in ("equal", "alone"):
        return Rereading
    blanks = [encoder.blank(question.query) for question in PROBES]
    requests = []
    for number, question in enumerate(PROBES):
        spelt = [encoder.spell(word, question.query) or () for word in question.words]
        beginnings = {pieces[:n] for pieces in spelt for n in range(len(pieces) + 1)}
        requests += [(number, blanks[number].row(filled)) for filled in sorted(beginnings)]
    roots = [blank.row(()) for blank in blanks]
    share: Share = Sources if roots[0].source else KeyValues
    try:
        together = share(reader, roots).read(requests)
    except Exception:  # whatever a model raises that keeps its past in another form
        return Rereading
    expected = reader.read([row for _, row in requests])
    return share if same(reader, together, expected) else Rereading
