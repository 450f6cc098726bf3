"""Many continuations of a few blanks, without reading the text around each blank again.

What can be reused depends on the model: a causal one keeps the keys and values of the context, an
encoder-decoder the output of its encoder; a masked one can reuse nothing, since every token sees
the others. As with layouts, it is tried once per model whether that leaves the numbers unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from lmdiag.models.forward.layers import ORDINARY, Layer
from lmdiag.models.forward.probing import agree, attention_window, probe_questions
from lmdiag.models.forward.reader import Reader, select_sources
from lmdiag.models.tokens.encoded_questions import PartialWord, TokenRow
from lmdiag.models.tokens.encoders import QuestionEncoder

Request = tuple[int, TokenRow]
"""Number of a blank, and a row that begins as the blank's root does and has one read, its last."""


class Continue(Protocol):
    """Reads continuations of blanks, once for all layers."""

    def __call__(
        self, requests: Sequence[Request], layers: Sequence[Layer], /
    ) -> Iterator[torch.Tensor]:
        """Yields (requests, vocabulary) log-probabilities after each layer, as `Reader.read`."""


class Reuse(Protocol):
    """Reads blanks, and returns what reads their continuations without reading the blanks again."""

    __name__: str

    def __call__(
        self, reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer], /
    ) -> Continue:
        """Reads the roots, and returns what reads their continuations.

        Args:
            reader: of the model.
            roots: for each blank its row without a word.
            layers: all layers after which continuations will be read.
        """


def no_reuse(reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]) -> Continue:
    """Returns a function that reads every row from its first token, in the reader's layout.

    The arguments are those of `Reuse`; nothing is read yet.
    """

    def read(requests: Sequence[Request], layers: Sequence[Layer]) -> Iterator[torch.Tensor]:
        """Yields log-probabilities after each layer, a row per request."""
        return reader.read_layers([row for _, row in requests], layers)

    return read


def reuse_sources(reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]) -> Continue:
    """Runs the encoder of an encoder-decoder on the sentences around the blanks.

    Returns a function that reads continuations with the decoder alone; see `Reuse`.
    """
    encoded = reader.encode([root.source for root in roots])

    def read(requests: Sequence[Request], layers: Sequence[Layer]) -> Iterator[torch.Tensor]:
        """Yields log-probabilities after each layer, a row per request.

        Only the decoder runs: `encoded` has the encoder's output for the sentence of each blank.
        """
        decoder_inputs = reader.fill([row.ids for _, row in requests])
        inputs: dict[str, Any] = {
            f"decoder_{name}": tensor for name, tensor in decoder_inputs.items()
        }
        inputs |= select_sources(encoded, [blank for blank, _ in requests])
        last_positions = [(n, len(row.ids) - 1) for n, (_, row) in enumerate(requests)]
        network_pass = reader.network(inputs, last_positions, layers)
        return reader.log_probs(network_pass, layers)

    return read


def reuse_keys_and_values(
    reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]
) -> Continue:
    """Reads the roots with a causal model, and keeps their keys and values.

    Returns a function that reads continuations; see `Reuse`.
    """
    return _CachedRoots(reader, roots, layers).read


class _CachedRoots:
    """Rows of blanks that a causal model has read, with their keys and values.

    Args:
        reader: of the model.
        roots: for each blank its row without a word.
        layers: all layers after which continuations will be read.
    """

    def __init__(self, reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]) -> None:
        self._reader = reader
        self._window = attention_window(reader.model.config)  # padding counts in it, too
        self._lengths = [len(root.ids) for root in roots]
        self._cache = DynamicCache()  # keeps all tokens, also for layers with a sliding window
        inputs: dict[str, Any] = dict(reader.fill([root.ids for root in roots]))
        self._mask = inputs["attention_mask"]
        positions = reader.positions(inputs["input_ids"])
        # of each root the position after its last token: its padding stands to the right
        self._next_positions = (positions * self._mask).amax(1) + 1
        last_positions = [(number, length - 1) for number, length in enumerate(self._lengths)]
        inputs |= {"position_ids": positions, "past_key_values": self._cache}
        self._pass = reader.network(inputs, last_positions, layers)
        # log-probabilities at the blanks after the last layer, if it is one of the layers
        self._ordinary: torch.Tensor | None = None
        if self._pass.logits is not None:
            self._ordinary = next(reader.log_probs(self._pass, ORDINARY))

    def read(
        self, requests: Sequence[Request], layers: Sequence[Layer], /
    ) -> Iterator[torch.Tensor]:
        """Yields log-probabilities after each layer, a row per request in their order.

        Requests whose row is the root of their blank are answered from the pass over the roots.
        """
        root_numbers = []  # of requests that are a root
        longer_numbers = []  # of all others
        for number, (blank, row) in enumerate(requests):
            if len(row.ids) > self._lengths[blank]:
                longer_numbers.append(number)
            else:
                root_numbers.append(number)
        if not root_numbers:
            yield from self._read_longer(requests, layers)
            return
        root_blanks = [requests[number][0] for number in root_numbers]
        longer_requests = [requests[number] for number in longer_numbers]
        # roots come first below, then all others; this puts them back into the requests' order
        order = torch.tensor([*root_numbers, *longer_numbers]).argsort()
        longer_log_probs: Iterator[torch.Tensor] = iter(())
        if longer_requests:
            longer_log_probs = self._read_longer(longer_requests, layers)
        inner_layers = [layer for layer in layers if layer is not None]
        inner_log_probs = self._reader.log_probs(self._pass, inner_layers, root_blanks)
        for layer in layers:
            # `_ordinary` is there if None is among the layers for which the roots were read
            if layer is None and self._ordinary is not None:
                log_probs = self._ordinary[root_blanks]
            else:
                log_probs = next(inner_log_probs)
            if longer_requests:
                both = torch.cat([log_probs, next(longer_log_probs)])
                log_probs = both[order.to(both.device)]
            yield log_probs

    def _read_longer(
        self, requests: Sequence[Request], layers: Sequence[Layer]
    ) -> Iterator[torch.Tensor]:
        """Yields the same for requests with pieces after their root, reading the pieces alone."""
        blanks = torch.tensor([blank for blank, _ in requests])
        pieces = [row.ids[self._lengths[blank] :] for blank, row in requests]
        inputs: dict[str, Any] = dict(self._reader.fill(pieces))
        width = inputs["input_ids"].shape[1]
        if self._window is not None and self._mask.shape[1] + width > self._window:
            # a cache of all tokens would show a layer more than its window
            return self._reader.read_layers([row for _, row in requests], layers)
        # A copy, since a pass adds its own tokens to the cache; the tensors themselves are shared.
        past = copy.copy(self._cache)
        past.layers = [copy.copy(layer) for layer in self._cache.layers]
        past.batch_select_indices(blanks)  # the keys and values of the blank of each request
        inputs |= {
            "attention_mask": torch.cat([self._mask[blanks], inputs["attention_mask"]], dim=1),
            "position_ids": self._next_positions[blanks, None] + torch.arange(width),
            "past_key_values": past,
        }
        last_positions = [(number, len(word) - 1) for number, word in enumerate(pieces)]
        network_pass = self._reader.network(inputs, last_positions, layers)
        return self._reader.log_probs(network_pass, layers)


def choose_reuse(reader: Reader, encoder: QuestionEncoder) -> Reuse:
    """Returns `reuse_sources`, `reuse_keys_and_values` or `no_reuse`, as the model allows.

    What suits the kind of model is compared with `no_reuse` on a few questions: if the
    log-probabilities differ, or the model fails, nothing is reused. The reader's layout must be
    chosen before.
    """
    # In the layout "alone", the model does not read several rows side by side as reuse does.
    if encoder.masked or reader.layout == "alone":
        return no_reuse
    try:
        probes = [encoder.encode(question) for question in probe_questions(reader, encoder)]
        roots = [probe.blank.row(PartialWord(())) for probe in probes]
        requests = []
        for number, probe in enumerate(probes):
            partials: set[PartialWord] = set()
            for pieces in probe.words.values():
                partials.update(probe.blank.partial_words(pieces or (), end=True))
            requests += [(number, probe.blank.row(partial)) for partial in sorted(partials)]
        reuse = reuse_sources if roots[0].source else reuse_keys_and_values
        read_without_reuse = no_reuse(reader, roots, ORDINARY)
        expected = next(read_without_reuse(requests, ORDINARY))
        read_with_reuse = reuse(reader, roots, ORDINARY)
        reused = next(read_with_reuse(requests, ORDINARY))
        is_exact = agree(reader, reused, expected)
    except Exception:  # of a model that keeps its past in another form, or has few positions
        return no_reuse
    return reuse if is_exact else no_reuse
