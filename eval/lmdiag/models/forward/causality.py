"""Whether a causal model sees only what is left of a token: tried once per model.

Candidates of several pieces are read in rows that continue with their pieces, and contexts share
rows. Both are correct only if a token never changes the distributions before it. Some models that
transformers lists as causal read both sides (XLNet), and prefix language models read both sides of
their prompt: their numbers would depend on which other words are scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from lmdiag.models.forward.reader import Reader
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.types import BadInput

_FINE, _COARSE = 100.0, 4.0
"""Tolerance in units of the dtype's epsilon, times the mean size of a log-probability: for float32
or better, and for half precision."""

_LONGEST = 1024
"""Tokens up to which a model with sparse attention for long inputs is tried on long inputs, too."""


def check_causality(
    reader: Reader, rows: Sequence[TokenRow], wholes: Sequence[torch.Tensor], model_id: str
) -> None:
    """Refuses a model that sees to the right.

    The first text is cut after two tokens and in its middle, and its last token is replaced: none
    of this may change the earlier distributions by more than the rounding of the model's dtype. A
    text that begins alike and is read already replaces the cut in the middle, unless the model
    reads long texts differently.

    Args:
        reader: has the model; without a gate.
        rows: texts; the first has four tokens or more.
        wholes: (tokens, vocabulary) log-probabilities of each row.
        model_id: for the message.

    Raises:
        BadInput: an earlier distribution changes.
    """
    row, whole = rows[0], wholes[0]
    alike = [(_shared(row, other), nats) for other, nats in zip(rows[1:], wholes[1:], strict=True)]
    known = [each for each in alike if each[0] > 1 and reader.short_limit is None]
    for shared, log_probs in known:
        _compare(reader, whole, log_probs, shared, model_id)
    for text, cuts in _texts(row, reader.short_limit):
        expected = whole if text == row else reader.whole(text)
        other = next((token for token in reversed(text.ids) if token != text.ids[-1]), 0)
        lengths = cuts[:1] if known else cuts
        for ids in (*(text.ids[:cut] for cut in lengths), (*text.ids[:-1], other)):
            log_probs = reader.whole(replace(text, ids=ids))
            _compare(reader, expected, log_probs, min(len(ids), len(text.ids) - 1), model_id)


def _shared(one: TokenRow, other: TokenRow) -> int:
    """Returns how many tokens two texts have in common before they differ; 0 if none differs."""
    if one.source != other.source:
        return 0
    pairs = enumerate(zip(one.ids, other.ids, strict=False))
    return next((place for place, (left, right) in pairs if left != right), 0)


def _compare(
    reader: Reader, expected: torch.Tensor, log_probs: torch.Tensor, earlier: int, model_id: str
) -> None:
    """Refuses a model whose distributions at the first positions of two texts differ."""
    change = _largest_change(expected[:earlier], log_probs[:earlier])
    if change > _tolerance(reader, expected):
        raise BadInput(
            f"model {model_id} ({type(reader.model).__name__}) is not causal: a token changes the "
            f"distributions before it (by {change:.1g} nats on average over the vocabulary), so "
            "that scores would depend on the other words asked; choose a left-to-right model, or "
            "--kind masked if it was trained with a mask token"
        )


def _texts(row: TokenRow, limit: int | None) -> Iterator[tuple[TokenRow, Sequence[int]]]:
    """Yields the text, and a long one if long inputs are read differently, with lengths to try."""
    ids = row.ids if limit is None else row.ids[:limit]
    yield replace(row, ids=ids), (2, len(ids) // 2)
    if limit is not None and limit < _LONGEST:
        copies = 1 + (limit + 2) // len(row.ids)
        yield replace(row, ids=(row.ids * copies)[: limit + 2]), (limit + 1,)


def _largest_change(one: torch.Tensor, other: torch.Tensor) -> float:
    """Returns the largest mean absolute difference at a position, in nats; 0 if not finite."""
    finite = one.isfinite() & other.isfinite()
    return float(torch.where(finite, (one - other).abs(), 0.0).mean(-1).max())


def _tolerance(reader: Reader, log_probs: torch.Tensor) -> float:
    fine, coarse = torch.finfo(torch.float32).eps, torch.finfo(torch.bfloat16).eps
    quantized = getattr(reader.model, "is_quantized", False)
    epsilon = max(torch.finfo(reader.model.dtype).eps, coarse if quantized else fine)
    size = float(log_probs[log_probs.isfinite()].abs().mean())
    return (_FINE if epsilon == fine else _COARSE) * epsilon * max(1.0, size)
