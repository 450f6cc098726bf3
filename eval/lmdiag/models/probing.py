"""What is checked of a loaded model before it is asked anything, and how failures are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmdiag.models.checks import first_line
from lmdiag.models.memory import is_out_of_memory
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@contextmanager
def probing(model_id: str) -> Iterator[None]:
    """Turns any exception of a model that reads its first texts into one line.

    Raises:
        BadInput: instead of the exception; names the model and the remedy.
    """
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # models raise whatever they like
        raise BadInput(f"model {model_id} {_explain(error)}") from error


def _explain(error: Exception) -> str:
    """Returns what happened and the remedy, as the end of a sentence about the model."""
    if is_out_of_memory(error):
        return (
            "runs out of memory on a short text: use a smaller --dtype, --device-map auto, or "
            "another device"
        )
    if "set_default_language" in str(error):
        return (
            'has an adapter for each language and no default: set "default_language" in its '
            "config.json to the language of the texts, e.g. en_XX"
        )
    return (
        f"cannot read a short text ({first_line(error)}): check that its "
        "config.json belongs to its weights, or try another --kind or --attention eager"
    )


def check_precision(model: PreTrainedModel, model_id: str) -> None:
    """Refuses unit `word` for models that compute in half precision.

    The search multiplies probabilities of many distributions that it reads in batches of changing
    size. In half precision these differ by up to a tenth of a nat with what else is in the batch,
    and so would the words that it finds.

    Raises:
        BadInput: the model computes in half precision, or is quantized.
    """
    import torch

    if getattr(model, "is_quantized", False):
        weights, remedy = "quantized weights", "leave --quantization out and use --dtype float32"
    elif torch.finfo(model.dtype).eps > torch.finfo(torch.float32).eps:
        weights, remedy = str(model.dtype).removeprefix("torch."), "use --dtype float32"
    else:
        return
    raise BadInput(
        f"model {model_id}: with {weights} the probabilities of unit word depend on what else is "
        f"in a batch: {remedy}, or --unit token"
    )
