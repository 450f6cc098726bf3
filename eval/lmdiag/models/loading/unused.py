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

_EXPECTED_UNUSED = {
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

_FUTURE_TOKEN_LAYER = re.compile(r"(.*\.\d+\.)(eh_proj|enorm|hnorm)\.")
"""Name of a weight that only layers for multi-token prediction have; group 1 names the layer.

Such a layer is trained to predict the token after the next one. Checkpoints of DeepSeek-V3 and
GLM-4.5 number it as a further layer of the network, for example "model.layers.61." of a network
with the layers 0 to 60. Nothing of it is needed to predict the next token.
"""


def check_unused(model_id: str, model: PreTrainedModel, names: Iterable[str]) -> str | None:
    """Refuses unused weights that the model could have; returns a warning of others, or None.

    Refused are weights of a layer beyond those of the configuration, and parameters that the
    configuration turns off, as biases. Those of quantized checkpoints are warned of: their formats
    have biases of zeros. Weights that many published checkpoints carry unused are ignored, among
    them layers for multi-token prediction, which are numbered beyond the configuration's layers,
    but are not part of the network that predicts the next token.

    Args:
        model_id: for messages.
        model: the model as it was made from the configuration.
        names: weights of the checkpoint that it does not use, as transformers reports them.
    """
    is_expected = re.compile("|".join(_EXPECTED_UNUSED))
    unused_names = []
    # Layers for multi-token prediction, as beginnings of names, for example "model.layers.61.": a
    # few of their weights tell them, and then all weights of such a layer are ignored.
    future_layers = []
    for name in sorted(names):
        if is_expected.search(name) or _is_computed(model, name):
            continue
        unused_names.append(name)
        match = _FUTURE_TOKEN_LAYER.match(name)
        if match:
            future_layers.append(match[1])
    unused_names = [name for name in unused_names if not name.startswith(tuple(future_layers))]
    names_of_model = [name for name in unused_names if _is_left_out(model, name)]
    # Weights that the configuration leaves out are an error, all others a warning.
    if names_of_model and not getattr(model, "is_quantized", False):
        raise BadInput(
            f"model {model_id}: its checkpoint has {len(names_of_model)} weights of layers or "
            f"biases that its configuration leaves out (first: {names_of_model[0]}), and without "
            "them it is another model: correct config.json"
        )
    if not unused_names:
        return None
    return (
        f"model {model_id} does not use {len(unused_names)} weights of its checkpoint (first: "
        f"{unused_names[0]}): check that its config.json belongs to them"
    )


def _is_left_out(model: PreTrainedModel, name: str) -> bool:
    """Whether a weight is of a layer beyond the model's, or of a part that it has as None.

    PyTorch registers a part that a configuration turns off, for example a bias, as None.
    """
    parent, attribute = _innermost_module(model, name)
    if isinstance(parent, torch.nn.ModuleList | torch.nn.Sequential):
        return attribute.isdecimal()  # number of a layer
    # `model` stands for an attribute that does not exist: anything but None
    return getattr(parent, attribute, model) is None


def _is_computed(model: PreTrainedModel, name: str) -> bool:
    """Whether a weight is a buffer that the model computes itself, as causal masks."""
    parent, attribute = _innermost_module(model, name)
    return attribute in dict(parent.named_buffers(recurse=False))


def _innermost_module(model: PreTrainedModel, name: str) -> tuple[torch.nn.Module, str]:
    """Returns the innermost module of a model on the way to a weight, and the name's next part.

    For example, of "layers.12.bias" in a model with 12 layers the list `layers` and "12". Many
    checkpoints were saved without the head; their names begin below the base model.
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
