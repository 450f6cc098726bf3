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
from lmdiag.models.forward.probing import attention_window, probe_questions, same
from lmdiag.models.forward.reader import Reader, select_sources
from lmdiag.models.tokens.encoded_questions import PartialWord, TokenRow
from lmdiag.models.tokens.encoders import QuestionEncoder

Request = tuple[int, TokenRow]
"""Number of a blank, and a row that begins as the blank's root does and has one read, its last."""


class Continue(Protocol):
    """Reads requests once for all layers."""

    def __call__(
        self, requests: Sequence[Request], layers: Sequence[Layer], /
    ) -> Iterator[torch.Tensor]:
        """Yields (requests, vocabulary) log-probabilities after each layer, as `Reader.read`."""


class Reuse(Protocol):
    """Opens blanks."""

    __name__: str

    def __call__(
        self, reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer], /
    ) -> Continue:
        """Returns what reads their continuations.

        Args:
            reader: of the model.
            roots: of each blank its row without a word.
            layers: all that continuations are read after.
        """


def no_reuse(reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]) -> Continue:
    """Reads every row from its first token, in the reader's layout."""
    return lambda requests, layers: reader.read_layers([row for _, row in requests], layers)


def reuse_sources(reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]) -> Continue:
    """Reads the sentences around the blanks once: for encoder-decoders."""
    encoded = reader.encode([root.source for root in roots])

    def read(requests: Sequence[Request], layers: Sequence[Layer]) -> Iterator[torch.Tensor]:
        """Yields log-probabilities after each layer, a row per request; only the decoder runs."""
        decoder = reader.fill([row.ids for _, row in requests])
        inputs: dict[str, Any] = {f"decoder_{name}": tensor for name, tensor in decoder.items()}
        inputs |= select_sources(encoded, [blank for blank, _ in requests])
        reads = [(n, len(row.ids) - 1) for n, (_, row) in enumerate(requests)]
        done = reader.network(inputs, reads, layers)
        return reader.log_probs(done, layers)

    return read


def reuse_keys_and_values(
    reader: Reader, roots: Sequence[TokenRow], layers: Sequence[Layer]
) -> Continue:
    """Reads the roots once and keeps their keys and values: for causal models."""
    window = attention_window(reader.model.config)  # padding counts in it, too
    lengths = [len(root.ids) for root in roots]
    cache = DynamicCache()  # keeps all tokens, also for layers with a sliding window
    inputs = reader.fill([root.ids for root in roots])
    mask = inputs["attention_mask"]
    positions = reader.positions(inputs["input_ids"])
    inputs |= {"position_ids": positions}
    # of each root the position after its last token: its padding stands to the right
    next_positions = (positions * mask).amax(1) + 1
    last_positions = [(number, length - 1) for number, length in enumerate(lengths)]
    root_pass = reader.network(inputs | {"past_key_values": cache}, last_positions, layers)
    ordinary_log_probs = (
        None if root_pass.logits is None else next(reader.log_probs(root_pass, ORDINARY))
    )

    def read(requests: Sequence[Request], layers: Sequence[Layer]) -> Iterator[torch.Tensor]:
        """Yields log-probabilities after each layer, a row per request in their order."""
        numbers = range(len(requests))
        longer = [n for n in numbers if len(requests[n][1].ids) > lengths[requests[n][0]]]
        if len(longer) == len(requests):
            yield from read_longer(requests, layers)
            return
        # requests without a piece were answered when the roots were read
        at_roots = [n for n in numbers if n not in longer]
        roots = [requests[n][0] for n in at_roots]
        order = torch.tensor([*at_roots, *longer]).argsort()
        continued = read_longer([requests[n] for n in longer], layers) if longer else iter(())
        inner = reader.log_probs(root_pass, [layer for layer in layers if layer is not None], roots)
        for layer in layers:
            if layer is None and ordinary_log_probs is not None:
                log_probs = ordinary_log_probs[roots]
            else:
                log_probs = next(inner)
            if longer:
                log_probs = torch.cat([log_probs, next(continued)])[order.to(log_probs.device)]
            yield log_probs

    def read_longer(requests: Sequence[Request], layers: Sequence[Layer]) -> Iterator[torch.Tensor]:
        """Yields the same of requests with pieces after their root, whose states are reused."""
        blanks = torch.tensor([blank for blank, _ in requests])
        pieces = [row.ids[lengths[blank] :] for blank, row in requests]
        inputs = reader.fill(pieces)
        width = inputs["input_ids"].shape[1]
        if window is not None and mask.shape[1] + width > window:
            # a cache of all tokens would show a layer more than its window
            return reader.read_layers([row for _, row in requests], layers)
        inputs |= {
            "attention_mask": torch.cat([mask[blanks], inputs["attention_mask"]], dim=1),
            "position_ids": next_positions[blanks, None] + torch.arange(width),
        }
        # A copy, since a pass adds its own tokens to the cache; the tensors themselves are shared.
        past = copy.copy(cache)
        past.layers = [copy.copy(layer) for layer in cache.layers]
        past.batch_select_indices(blanks)
        last_positions = [(number, len(word) - 1) for number, word in enumerate(pieces)]
        done = reader.network(inputs | {"past_key_values": past}, last_positions, layers)
        return reader.log_probs(done, layers)

    return read


def choose_reuse(reader: Reader, encoder: QuestionEncoder) -> Reuse:
    """Returns the way to reuse a context's states that leaves a model's numbers as they are.

    It is tried on a few questions against reading every row anew: if the log-probabilities differ,
    or the model fails, nothing is reused. The reader's layout must be chosen before.
    """
    if encoder.masked or reader.layout == "alone":
        return no_reuse
    try:
        probes = [encoder.encode(question) for question in probe_questions(reader, encoder)]
        roots = [probe.blank.row(PartialWord(())) for probe in probes]
        requests = []
        for number, probe in enumerate(probes):
            words = [pieces or () for pieces in probe.words.values()]
            partials = {
                partial for word in words for partial in probe.blank.partial_words(word, end=True)
            }
            requests += [(number, probe.blank.row(partial)) for partial in sorted(partials)]
        reuse = reuse_sources if roots[0].source else reuse_keys_and_values
        expected = next(no_reuse(reader, roots, ORDINARY)(requests, ORDINARY))
        reused = next(reuse(reader, roots, ORDINARY)(requests, ORDINARY))
        agrees = same(reader, reused, expected)
    except Exception:  # of a model that keeps its past in another form, or has few positions
        return no_reuse
    return reuse if agrees else no_reuse
