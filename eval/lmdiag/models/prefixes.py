"""Many prefixes of words at a few blanks, read without reading the text around each blank again.

What can be shared depends on the model: a causal one keeps the keys and values of the context, an
encoder-decoder what its encoder makes of the sentence, a masked one nothing, since every token sees
the others. As with layouts, it is tried once per model whether sharing leaves the numbers alone;
where it does not, or the model cannot, every row is read from its beginning.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lmdiag.models.forward import select
from lmdiag.models.layout import PROBES, reach, same
from lmdiag.models.rows import Asker, Row

if TYPE_CHECKING:
    import torch

    from lmdiag.models.forward import Reader

Request = tuple[int, Row]
"""Number of a blank, and a row that begins as the blank's root does and has one read, its last."""


class Prefixes(Protocol):
    """Reads rows that go on from the roots of a few blanks."""

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns (requests, vocabulary) log-probabilities, see `Reader.read`."""
        ...


Share = Callable[["Reader", Sequence[Row]], Prefixes]
"""Given the reader and the root of each blank (the row without a word), opens the blanks."""


class Rereading:
    """Reads every row from its beginning, in the reader's layout."""

    def __init__(self, reader: Reader, roots: Sequence[Row]) -> None:
        self._reader = reader

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """See `Prefixes.read`."""
        return self._reader.read([row for _, row in requests])


class KeyValues:
    """Reads the roots once and keeps their keys and values: for causal models."""

    def __init__(self, reader: Reader, roots: Sequence[Row]) -> None:
        import torch
        from transformers import DynamicCache

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
        positions = torch.arange(self._mask.shape[1]).expand_as(self._mask)
        self._roots = reader.run(
            inputs
            | {"position_ids": reader.first_position + positions, "past_key_values": self._cache},
            [(index, len(root.ids) - 1) for index, root in enumerate(roots)],
        )

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """See `Prefixes.read`."""
        lengths = self._lengths.tolist()
        found = self._roots[[blank for blank, _ in requests]]
        longer = [n for n, (blank, row) in enumerate(requests) if len(row.ids) > lengths[blank]]
        if longer:
            found[longer] = self._go_on([requests[n] for n in longer])
        return found

    def _go_on(self, requests: Sequence[Request]) -> torch.Tensor:
        """Returns the log-probabilities after pieces that follow the roots of some blanks."""
        import torch

        owners = torch.tensor([blank for blank, _ in requests])
        starts = self._lengths[owners].tolist()
        pieces = [row.ids[start:] for (_, row), start in zip(requests, starts, strict=True)]
        if self._mask.shape[1] + max(map(len, pieces)) > self._window:
            return self._reader.read([row for _, row in requests])
        inputs = self._reader.fill(pieces)
        steps = torch.arange(inputs["input_ids"].shape[1])
        cache = copy.copy(self._cache)
        cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        cache.batch_select_indices(owners)
        further = {
            "attention_mask": torch.cat([self._mask[owners], inputs["attention_mask"]], dim=1),
            "position_ids": self._reader.first_position + self._lengths[owners, None] + steps,
            "past_key_values": cache,
        }
        last = [(index, len(some) - 1) for index, some in enumerate(pieces)]
        return self._reader.run(inputs | further, last)


class Sources:
    """Reads the sentences around the blanks once: for encoder-decoders."""

    def __init__(self, reader: Reader, roots: Sequence[Row]) -> None:
        self._reader = reader
        self._encoded = reader.encode([root.source for root in roots])

    def read(self, requests: Sequence[Request]) -> torch.Tensor:
        """See `Prefixes.read`."""
        decoder = self._reader.fill([row.ids for _, row in requests])
        inputs: dict[str, Any] = {f"decoder_{name}": tensor for name, tensor in decoder.items()}
        inputs |= select(self._encoded, [blank for blank, _ in requests])
        last = [(index, len(row.ids) - 1) for index, (_, row) in enumerate(requests)]
        return self._reader.run(inputs, last)


def sharing(reader: Reader, asker: Asker, *, chained: bool) -> Share:
    """Returns what shares most among the prefixes of a model without changing its numbers.

    Args:
        reader: has the model, its layout settled.
        asker: makes rows of the probes.
        chained: whether the model goes on from left to right.
    """
    if not chained or reader.layout in ("equal", "alone"):
        return Rereading
    roots, requests = _probes(asker)
    share: Share = Sources if roots[0].source else KeyValues
    rows = [row for _, row in requests]
    try:
        together = share(reader, roots).read(requests)
    except Exception:  # whatever a model raises that keeps its past otherwise: it cannot share
        return Rereading
    return share if same(reader, together, reader.read(rows)) else Rereading


def _probes(asker: Asker) -> tuple[list[Row], list[Request]]:
    """Returns the roots of the probes' blanks, and rows that go on with pieces of their words."""
    blanks = [asker.blank(question.query) for question in PROBES]
    requests = []
    for number, question in enumerate(PROBES):
        spelt = [asker.spell(word, question.query) or () for word in question.words]
        prefixes = {pieces[:n] for pieces in spelt for n in range(len(pieces) + 1)}
        requests += [(number, blanks[number].row(filled, 0)) for filled in sorted(prefixes)]
    return [blank.row((), 0) for blank in blanks], requests
