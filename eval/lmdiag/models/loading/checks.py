"""Refusals of what would give wrong numbers without any error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lmdiag.models.loading.checkpoint import Checkpoint
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast


def check_tokenizer(
    checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, kind: Kind
) -> PreTrainedTokenizerFast:
    """Refuses a tokenizer that cannot tell its pieces' characters, is empty, or has no mask."""
    head = f"model {checkpoint.id}"
    if not tokenizer.is_fast:
        raise BadInput(
            f"{head}: its tokenizer ({type(tokenizer).__name__}) has no fast version, which lmdiag "
            "needs for the characters behind each token"
        )
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise BadInput(
            f"{head} comes without a tokenizer's vocabulary: put the tokenizer's files beside the "
            "weights"
        )
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise BadInput(
            f"{head}: its tokenizer has no mask token, so it cannot be queried as a masked model; "
            "try --kind causal"
        )
    return cast("PreTrainedTokenizerFast", tokenizer)


def check_report(checkpoint: Checkpoint, kind: Kind, report: dict[str, Any]) -> None:
    """Refuses weights that are random because the checkpoint lacks them."""
    missing = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if missing:
        raise BadInput(
            f"model {checkpoint.id} lacks {len(missing)} weights of a {kind} model (first: "
            f"{missing[0]}), which would be random: it was not saved with that head; see --kind"
        )


def check_vocabulary(
    checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel
) -> None:
    """Refuses a tokenizer that can produce ids without an embedding.

    Added tokens that no text and no template contains may lie beyond (gemma-3's image token does).
    """
    rows = len(cast("torch.Tensor", model.get_input_embeddings().weight))
    roles = ("bos", "eos", "unk", "sep", "cls", "mask")
    used = {getattr(tokenizer, f"{role}_token_id") for role in roles}
    unused = set(tokenizer.added_tokens_decoder) - used
    largest = max(id for id in tokenizer.get_vocab().values() if id not in unused)
    if largest >= rows:
        raise BadInput(
            f"model {checkpoint.id}: its tokenizer has ids up to {largest} but the model only "
            f"{rows} embeddings: the tokenizer belongs to another model"
        )


def check_precision(model: PreTrainedModel, model_id: str) -> None:
    """Refuses unit `word` for models that compute in half precision or with quantized weights.

    The search multiplies probabilities of many distributions that it reads in batches of changing
    size. In half precision these vary by up to a tenth of a nat with the rest of the batch, and so
    would the words of the list.
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
