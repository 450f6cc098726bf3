"""What would quietly give wrong numbers, and what transformers says when it cannot load a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from lmdiag.models.checkpoint import Checkpoint
from lmdiag.models.memory import is_out_of_memory
from lmdiag.schema import BadInput, Kind

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast


def check_tokenizer(
    checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, kind: Kind
) -> PreTrainedTokenizerFast:
    """Refuses a tokenizer that cannot tell its pieces' characters, is empty, or has no mask."""
    if not tokenizer.is_fast:
        raise BadInput(
            f"model {checkpoint.id}: its tokenizer ({type(tokenizer).__name__}) has no fast "
            "version, which lmdiag needs for the characters behind each token"
        )
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise BadInput(
            f"model {checkpoint.id} comes without a tokenizer's vocabulary: "
            "put the tokenizer's files beside the weights"
        )
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise BadInput(
            f"model {checkpoint.id}: its tokenizer has no mask token, so it cannot be asked as a "
            "masked model; try --kind causal"
        )
    return cast("PreTrainedTokenizerFast", tokenizer)


def check_report(checkpoint: Checkpoint, kind: Kind, report: dict[str, Any]) -> None:
    """Refuses weights that were made up because the checkpoint lacks them."""
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

    Added tokens that stand in no text and around none may lie beyond (gemma-3's image token does).
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


def explain(checkpoint: Checkpoint, what: str, error: Exception, *, source: str = "") -> BadInput:
    """Puts an exception of transformers into one line that names the model and the remedy.

    Args:
        checkpoint: the folder or Hub repository.
        what: the part that could not be loaded.
        error: the exception.
        source: where the part was to come from, e.g. " from config.json".
    """
    text = str(error)
    head = f"model {checkpoint.id}"
    if is_out_of_memory(error):
        return BadInput(
            f"{head} does not fit into the device's memory: try --dtype bfloat16, --device-map "
            "auto or --quantization 4bit"
        )
    if "trust_remote_code" in text:
        return BadInput(
            f"{head} brings its own code: read it, and add --trust-remote-code if you trust it"
        )
    if "file named" in text and "safetensors" in text:
        if "pytorch_model.bin" in text or not checkpoint.may_be_pickled:
            return BadInput(f"{head} has no weights: put model.safetensors beside its config.json")
        return BadInput(
            f"{head} has no safetensors weights; pickled ones (pytorch_model.bin) can run code "
            "when they are read: add --allow-pickle if you trust where they are from"
        )
    if "Unrecognized configuration class" in text:
        return BadInput(f"{head} has no {what} in transformers: choose another --kind")
    if "ignore_mismatched_sizes" in text:
        return BadInput(f"{head}: its weights do not have the shapes that its config.json says")
    return BadInput(f"{head}: cannot load its {what}{source}: {first_line(error)}")


def first_line(error: Exception) -> str:
    """Returns the first line of an exception's text, without anything that looks like a token.

    A first line that ends in a colon is followed by the next one. An exception that may have no
    sentence as its text (a KeyError has the key alone) is named by its type.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    line = " ".join(lines[:2] if lines and lines[0].rstrip().endswith(":") else lines[:1])
    if not isinstance(error, ValueError | OSError | ImportError):
        line = f"{type(error).__name__}: {line}"
    line = re.sub(r"\bhf_\w{8,}|(?<=//)[^/@\s]+@", "***", line)
    line = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    return line if len(line) <= 200 else line[:197] + "..."
