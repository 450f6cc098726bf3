"""Many continuations of a few blanks, without reading the text around each blank again.

What can be reused depends on the model: a causal one keeps the keys and values of the context, an
encoder-decoder the output of its encoder; a masked one can reuse nothing, since every token sees
the others. As with layouts, it is tried once per model whether that leaves the numbers unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import DynamicCache

from lmdiag.models.forward.probing import attention_window, probe_questions, same
from lmdiag.models.forward.reader import Reader, select_sources
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import PartialWord, TokenRow

Request = tuple[int, TokenRow]
"""Number of a blank, and a row that begins as the blank's root does and has one read, its last."""

Continue = Callable[[Sequence[Request]], torch.Tensor]
"""Returns (requests, vocabulary) log-probabilities, see `Reader.read`."""

Reuse = Callable[[Reader, Sequence[TokenRow]], Continue]
"""Given the reader and the root of each blank (its row without a word), opens the blanks."""


def no_reuse(reader: Reader, roots: Sequence[TokenRow]) -> Continue:
    """Reads every row from its first token, in the reader's layout."""
    return lambda requests: reader.read([row for _, row in requests])


def reuse_sources(reader: Reader, roots: Sequence[TokenRow]) -> Continue:
    """Reads the sentences around the blanks once: for encoder-decoders."""
    encoded = reader.encode([root.source for root in roots])

    def read(requests: Sequence[Request]) -> torch.Tensor:
        decoder = reader.fill([row.ids for _, row in requests])
        inputs: dict[str, Any] = {f"decoder_{name}": tensor for name, tensor in decoder.items()}
        inputs |= select_sources(encoded, [blank for blank, _ in requests])
        return reader.run(inputs, [(n, len(row.ids) - 1) for n, (_, row) in enumerate(requests)])

    return read


def reuse_keys_and_values(reader: Reader, roots: Sequence[TokenRow]) -> Continue:
    """Reads the roots once and keeps their keys and values: for causal models."""
    window = attention_window(reader.model.config)  # padding counts in it, too
    lengths = [len(root.ids) for root in roots]
    cache = DynamicCache()  # keeps all tokens, also for layers with a sliding window
    inputs = reader.fill([root.ids for root in roots])
    mask = inputs["attention_mask"]
    positions = reader.positions(inputs["input_ids"])
    inputs |= {"position_ids": positions}
    next_positions = (positions * mask).amax(1) + 1  # words contain no padding
    last = [(number, length - 1) for number, length in enumerate(lengths)]
    at_roots = reader.run(inputs | {"past_key_values": cache}, last)

    def read(requests: Sequence[Request]) -> torch.Tensor:
        log_probs = at_roots[[blank for blank, _ in requests]]
        longer = [n for n, (blank, row) in enumerate(requests) if len(row.ids) > lengths[blank]]
        if not longer:
            return log_probs
        blanks = torch.tensor([requests[n][0] for n in longer])
        pieces = [requests[n][1].ids[lengths[requests[n][0]] :] for n in longer]
        inputs = reader.fill(pieces)
        width = inputs["input_ids"].shape[1]
        if window is not None and mask.shape[1] + width > window:
            log_probs[longer] = reader.read([requests[n][1] for n in longer])
            return log_probs
        inputs |= {
            "attention_mask": torch.cat([mask[blanks], inputs["attention_mask"]], dim=1),
            "position_ids": next_positions[blanks, None] + torch.arange(width),
        }
        past = copy.copy(cache)
        past.layers = [copy.copy(layer) for layer in cache.layers]
        past.batch_select_indices(blanks)
        last = [(number, len(word) - 1) for number, word in enumerate(pieces)]
        log_probs[longer] = reader.run(inputs | {"past_key_values": past}, last)
        return log_probs

    return read


def choose_reuse(reader: Reader, encoder: QuestionEncoder) -> Reuse:
    """Returns what reuses most without changing a model's numbers; its layout is chosen before."""
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
        expected = no_reuse(reader, roots)(requests)
        agrees = same(reader, reuse(reader, roots)(requests), expected)
    except Exception:  # of a model that keeps its past in another form, or has few positions
        return no_reuse
    return reuse if agrees else no_reuse
