"""Weights that a checkpoint has and its model does not use: known ones, errors, and warnings.

A configuration with too few layers, or with biases turned off, makes another model of the weights,
whose numbers look plausible. Published checkpoints carry weights that no language model needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch
from transformers import PreTrainedModel

from lmdiag.types import BadInput

_KNOWN = {
    r"(^|\.)pooler\.": "BERT and its relatives: for the classification of sentences",
    r"seq_relationship\.|sop_classifier\.": "BERT, ALBERT: next sentence, order of sentences",
    r"(^|\.)position_ids$": "BERT and its relatives, saved by older versions: 0, 1, 2, ...",
    r"inv_freq$": "Llama, GPT-NeoX, Falcon, saved by older versions: follows from config.json",
    r"\.(masked_bias|causal_mask)$": "GPT-2, GPT-Neo, GPT-NeoX, CodeGen: parts of causal masks",
    r"(^|\.)version$": "BART, OPT: the version of fairseq's format",
    r"(^|[._])mtp[._]": "Qwen3-Next, MiMo, ERNIE 4.5, LongCat: multi-token prediction",
    r"EncDecAttention\.relative_attention_bias": "T5, Switch: no layer reads it",
    r"(^|\.)(vision|audio)_(model|tower)\.|(^|\.)(visual|multi_modal_projector)\.": "Llama 4 and "
    "others: images and sound, in checkpoints that are loaded as models of text",
}
"""Regular expression -> which published checkpoints carry such weights unused, and what they are.

Source: the `_keys_to_ignore_on_load_unexpected` of the families' classes in transformers 4.20 to 5.
Version 5 reports none that those of a model's own class match.
"""

_OF_FUTURE_TOKENS = re.compile(r"(.*\.\d+\.)(eh_proj|enorm|hnorm)\.")
"""Layers for multi-token prediction that are numbered as further layers (DeepSeek-V3, GLM-4.5)."""


def check_unused(model_id: str, model: PreTrainedModel, names: Iterable[str]) -> str | None:
    """Refuses unused weights that the model could have; returns a warning of others, or None.

    Refused are weights of a layer beyond those of the configuration, and parameters that the
    configuration turns off, as biases. Those of quantized checkpoints are warned of: their formats
    have biases of zeros.

    Args:
        model_id: for messages.
        model: the model as it was made from the configuration.
        names: weights of the checkpoint that it does not use, as transformers reports them.
    """
    is_usual = re.compile("|".join(_KNOWN))
    names = sorted(x for x in names if not is_usual.search(x) and not _is_computed(model, x))
    future_layers = tuple({found[1] for found in map(_OF_FUTURE_TOKENS.match, names) if found})
    names = (
        [name for name in names if not name.startswith(future_layers)] if future_layers else names
    )
    of_model = [name for name in names if _belongs_to(model, name)]
    if of_model and not getattr(model, "is_quantized", False):
        raise BadInput(
            f"model {model_id}: its checkpoint has {len(of_model)} weights of layers or biases "
            f"that its configuration leaves out (first: {of_model[0]}), and without them it is "
            "another model: correct config.json"
        )
    if not names:
        return None
    return (
        f"model {model_id} does not use {len(names)} weights of its checkpoint (first: {names[0]}):"
        " check that its config.json belongs to them"
    )


def _belongs_to(model: PreTrainedModel, name: str) -> bool:
    """Whether a weight is of a layer beyond the model's, or of a part that it has as None."""
    parent, child = _nearest(model, name)
    if isinstance(parent, torch.nn.ModuleList | torch.nn.Sequential):
        return child.isdecimal()
    return getattr(parent, child, model) is None


def _is_computed(model: PreTrainedModel, name: str) -> bool:
    """Whether a weight is a buffer that the model computes itself, as causal masks."""
    parent, child = _nearest(model, name)
    return child in dict(parent.named_buffers(recurse=False))


def _nearest(model: PreTrainedModel, name: str) -> tuple[torch.nn.Module, str]:
    """Returns the innermost module of the model around a weight, and what it lacks there.

    Many checkpoints were saved without the head, whose names lack the base model's prefix.
    """
    parent: torch.nn.Module = model
    parts = name.split(".")
    if not hasattr(model, parts[0]):
        parent = model.base_model
    for part in parts:
        child = getattr(parent, part, None)
        if not isinstance(child, torch.nn.Module):
            return parent, part
        parent = child
    return parent, ""
