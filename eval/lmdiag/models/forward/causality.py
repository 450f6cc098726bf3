"""Whether a causal model sees only what is left of a token: tried once per model.

Candidates of several pieces are read in rows that continue with their pieces, and contexts share
rows. Both are correct only if a token never changes the distributions before it. Some models that
transformers lists as causal read both sides (XLNet), and prefix language models read both sides of
their prompt: their numbers would depend on which other words are scored.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from lmdiag.models.forward.reader import Reader
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.types import BadInput

_FINE, _COARSE = 100.0, 4.0
"""Tolerance in units of the dtype's epsilon, times the mean size of a log-probability: for float32
or better, and for half precision."""


def check_causality(reader: Reader, row: TokenRow, whole: torch.Tensor, model_id: str) -> None:
    """Refuses a model that sees to the right.

    A text is cut after two tokens and in its middle, and its last token is replaced: none of this
    may change the earlier distributions by more than the rounding of the model's dtype.

    Args:
        reader: has the model; without a gate.
        row: a text of four tokens or more.
        whole: its (tokens, vocabulary) log-probabilities, nats.
        model_id: for the message.

    Raises:
        BadInput: an earlier distribution changes.
    """
    last, n_tokens = row.ids[-1], len(row.ids)
    other = next((token for token in reversed(row.ids) if token != last), 0)
    for ids in (row.ids[:2], row.ids[: n_tokens // 2], (*row.ids[:-1], other)):
        earlier = min(len(ids), n_tokens - 1)
        log_probs = reader.whole(replace(row, ids=ids))
        change = _largest_change(whole[:earlier], log_probs[:earlier])
        if change > _tolerance(reader, whole):
            raise BadInput(
                f"model {model_id} ({type(reader.model).__name__}) is not causal: a token changes "
                f"the distributions before it (by {change:.1g} nats on average over the "
                "vocabulary), so that scores would depend on the other words asked; choose a "
                "left-to-right model, or --kind masked if it was trained with a mask token"
            )


def _largest_change(before: torch.Tensor, after: torch.Tensor) -> float:
    """Returns the largest mean absolute difference at a position, in nats; 0 if not finite."""
    finite = before.isfinite() & after.isfinite()
    return float(torch.where(finite, (before - after).abs(), 0.0).mean(-1).max())


def _tolerance(reader: Reader, log_probs: torch.Tensor) -> float:
    fine, coarse = torch.finfo(torch.float32).eps, torch.finfo(torch.bfloat16).eps
    quantized = getattr(reader.model, "is_quantized", False)
    epsilon = max(torch.finfo(reader.model.dtype).eps, coarse if quantized else fine)
    size = float(log_probs[log_probs.isfinite()].abs().mean())
    return (_FINE if epsilon == fine else _COARSE) * epsilon * max(1.0, size)
