"""What kind of language model a configuration describes: masked, causal or encoder-decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from transformers import PretrainedConfig

AUTO_CLASSES: dict[Kind, str] = {
    "masked": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
}
"""Kind -> the class of transformers that loads it."""


def detect(model_id: str, config: PretrainedConfig) -> Kind:
    """Returns the kind that the checkpoint was trained as.

    The architecture in the configuration decides (BertLMHeadModel is causal, BertForMaskedLM is
    not); if it names another head (BertForPreTraining), the heads that transformers has for the
    type decide.

    Raises:
        BadInput: it is not a language model; names the model and its architecture.
    """
    named = set(config.architectures or [])
    remote = set(getattr(config, "auto_map", None) or {})
    possible: list[Kind] = [
        kind
        for kind, classes in _classes().items()
        if named & set(classes.values()) or AUTO_CLASSES[kind] in remote
    ]
    if not possible:
        possible = [kind for kind, classes in _classes().items() if config.model_type in classes]
        if config.is_encoder_decoder:  # its decoder is listed as causal too, as a model of its own
            possible = [kind for kind in possible if kind != "causal"]
    if not possible:
        names = ", ".join(config.architectures or [config.model_type])
        raise BadInput(
            f"model {model_id} ({names}) is not a language model that lmdiag can query: it has no "
            "masked, causal or encoder-decoder head; --kind overrides"
        )
    if len(possible) == 1:
        return possible[0]
    if config.is_encoder_decoder:
        return "seq2seq"
    causal = getattr(config, "is_decoder", False) or getattr(config, "causal", False)
    return "causal" if causal else "masked"


def needs_decoder_flag(config: PretrainedConfig) -> bool:
    """Whether a type attends to both sides unless its configuration calls it a decoder (BERT)."""
    return config.model_type in _classes()["masked"]


def _classes() -> dict[Kind, dict[str, str]]:
    """Kind -> transformers' own list {model type: class name}."""
    from transformers.models.auto import modeling_auto as auto

    return {
        "masked": auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "causal": auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        "seq2seq": auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }
