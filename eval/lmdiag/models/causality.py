"""Whether a model that is read from left to right sees only what lies left: tried once per model.

Candidates of several pieces are read in rows that go on with their pieces, and contexts share rows.
Both are right only where a token never changes the distributions before it. Some models that
transformers lists as causal read both sides (XLNet), and prefix language models read both sides of
their prompt: their numbers would depend on which other words are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmdiag.models.rows import Row
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    import torch

    from lmdiag.models.forward import Reader

FINE, COARSE = 100.0, 4.0
"""Tolerance in units of the dtype's epsilon, by the mean size of a log-probability.

For float32 or better, and for half precision, where texts of unlike length are rounded unlike.
"""

LONGEST = 1024
"""Tokens up to which a model with sparse attention for long inputs is tried on those, too."""


def check_causality(reader: Reader, row: Row, whole: torch.Tensor, model_id: str) -> None:
    """Refuses a model that sees to the right.

    A text is cut after two tokens and in its middle, and its last token is exchanged: none of this
    may change the distributions before by more than the model's dtype rounds.

    Args:
        reader: has the model; without a gate.
        row: a text of four tokens or more.
        whole: (tokens, vocabulary) log-probabilities of the row.
        model_id: for the message.

    Raises:
        BadInput: an earlier distribution changes.
    """
    for text, cuts in _texts(row, reader.short_limit):
        right = whole if text == row else reader.whole(text)
        other = next((token for token in reversed(text.ids) if token != text.ids[-1]), 0)
        for ids in (*(text.ids[:cut] for cut in cuts), (*text.ids[:-1], other)):
            earlier = min(len(ids), len(text.ids) - 1)
            found = reader.whole(replace(text, ids=ids))
            change = _largest_change(right[:earlier], found[:earlier])
            if change > _tolerance(reader, right):
                raise BadInput(_refusal(f"{model_id} ({type(reader.model).__name__})", change))


def _refusal(model: str, change: float) -> str:
    return (
        f"model {model} is not causal: a token changes the distributions before it (by {change:.1g}"
        " nats on average over the vocabulary), so that scores would depend on the other words "
        "asked; choose a left-to-right model, or --kind masked if it was trained with a mask token"
    )


def _texts(row: Row, limit: int | None) -> Iterator[tuple[Row, Sequence[int]]]:
    """Yields the text, and a long one for models that read long inputs differently.

    With each come the lengths that it may be cut to without changing sides.
    """
    ids = row.ids if limit is None else row.ids[:limit]
    yield replace(row, ids=ids), (2, len(ids) // 2)
    if limit is not None and limit < LONGEST:
        copies = 1 + (limit + 2) // len(row.ids)
        yield replace(row, ids=(row.ids * copies)[: limit + 2]), (limit + 1,)


def _largest_change(one: torch.Tensor, other: torch.Tensor) -> float:
    """Returns the largest of the positions' mean absolute differences, in nats.

    Where a value is not finite, there is nothing to compare: such models are refused with the
    context that they cannot answer.
    """
    import torch

    finite = one.isfinite() & other.isfinite()
    return float(torch.where(finite, (one - other).abs(), 0.0).mean(-1).max())


def _tolerance(reader: Reader, log_probs: torch.Tensor) -> float:
    import torch

    fine, coarse = torch.finfo(torch.float32).eps, torch.finfo(torch.bfloat16).eps
    quantized = getattr(reader.model, "is_quantized", False)
    epsilon = max(torch.finfo(reader.model.dtype).eps, coarse if quantized else fine)
    size = float(log_probs[log_probs.isfinite()].abs().mean())
    return (FINE if epsilon == fine else COARSE) * epsilon * max(1.0, size)
