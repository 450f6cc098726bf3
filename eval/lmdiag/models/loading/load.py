"""From the name of a model to its weights and tokenizer, or to one line that says why not.

What would give wrong numbers is refused (`loading.checks`), not only warned of.
"""

from __future__ import annotations

import logging
import os
import reprlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, NamedTuple

import torch
import transformers
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.models.auto import modeling_auto
from transformers.utils import logging as transformers_logging

from lmdiag.models.loading.checkpoint import Checkpoint, resolve
from lmdiag.models.loading.errors import one_line_errors
from lmdiag.models.loading.load_options import DEVICE_MAPS, LoadOptions
from lmdiag.models.loading.model_checks import (
    check_cached,
    check_memory,
    check_model_files,
    check_not_diffusion,
    check_tokenizer,
    check_weights,
    warn_of_version,
)
from lmdiag.models.loading.tokenizer_file import check_offsets, use_tokenizer_file
from lmdiag.types import BadInput, Kind


class _KindOfModel(NamedTuple):
    """How transformers loads a kind of model.

    Attributes:
        auto_class: name of the class that loads it.
        class_of_type: type of a model, as in its config.json -> name of its class of this kind.
    """

    auto_class: str
    class_of_type: dict[str, str]


_KINDS: dict[Kind, _KindOfModel] = {
    "masked": _KindOfModel("AutoModelForMaskedLM", modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
    "mntp": _KindOfModel("AutoModelForMaskedLM", {}),  # no configuration says that a model is mntp
    "causal": _KindOfModel("AutoModelForCausalLM", modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    "seq2seq": _KindOfModel(
        "AutoModelForSeq2SeqLM", modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    ),
}

_CONFIGURATION = "configuration (config.json)"
_TOKENIZER = "tokenizer (tokenizer.json, tokenizer_config.json)"


@dataclass(frozen=True)
class Parts:
    """A loaded model.

    Attributes:
        model: in evaluation mode, without gradients, on its device.
        tokenizer: a fast one, which knows the character offsets of its tokens.
        kind: see `lmdiag.types.Kind`.
        commit: see `Checkpoint`.
        training_step: step of a training checkpoint if revision or folder name one.
        warning: of what its files may mean otherwise, or have for nothing; None for no warning.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    kind: Kind
    commit: str
    training_step: int | None
    warning: str | None = None


def load_parts(model_id: str, options: LoadOptions | None = None) -> Parts:
    """Loads a model and its tokenizer from the Hub or a folder.

    The files are checked before the weights are read. A thread computes the digest of a folder at
    the same time.

    Args:
        model_id: Hub id or folder.
        options: how it is loaded.

    Raises:
        BadInput: it cannot be loaded, or would give wrong numbers; see `model_checks`.
    """
    options = options or LoadOptions()
    checkpoint = resolve(model_id, options.revision)
    device = _device(checkpoint, options)
    # Without this, transformers asks a service on the Hub to convert pickled weights.
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
    with quiet():
        digesting = Thread(target=_compute_commit, args=(checkpoint,), daemon=True)
        digesting.start()  # takes a second per 1.5 GB
        check_model_files(checkpoint, options)
        config = _load_part(transformers.AutoConfig, _CONFIGURATION, checkpoint, options)
        kind = detect(model_id, config) if options.kind == "auto" else options.kind
        if config.model_type in _KINDS["masked"].class_of_type:
            # the same classes mask what is right of a token exactly if they are told to be decoders
            config.is_decoder = kind == "causal"
        check_not_diffusion(model_id, config)
        tokenizer, tokenizer_warning = _load_tokenizer(checkpoint, options, kind)
        check_cached(checkpoint)
        check_memory(checkpoint, options, device)
        model, report = _load_weights(checkpoint, config, kind, options, device)
    unused_warning = check_weights(model_id, kind, model, tokenizer, report)
    version_warning = warn_of_version(model_id, config)
    digesting.join()
    model_warnings = filter(None, (tokenizer_warning, version_warning, unused_warning))
    warning = "; ".join(model_warnings) or None
    return Parts(model, tokenizer, kind, checkpoint.commit, checkpoint.training_step, warning)


def _compute_commit(checkpoint: Checkpoint) -> None:
    """Computes `checkpoint.commit`, a cached property, in a thread.

    An error is suppressed here, and raised again where `load_parts` reads the property.
    """
    with suppress(BadInput):
        _ = checkpoint.commit


def load_tokenizer(
    model_id: str, options: LoadOptions
) -> tuple[PreTrainedTokenizerFast, str | None]:
    """Loads the tokenizer of a causal model alone, from the Hub or a folder.

    Returns:
        the tokenizer, and a warning of how it reads texts; None for no warning.
    """
    with quiet():
        return _load_tokenizer(resolve(model_id), options, "causal")


def detect(model_id: str, config: PretrainedConfig) -> Kind:
    """Returns the kind that the checkpoint was trained as: masked, causal or seq2seq.

    The architecture in the configuration decides (BertLMHeadModel is causal, BertForMaskedLM is
    not); if it names another head (BertForPreTraining), the heads that transformers has for the
    type decide.

    Raises:
        BadInput: it has none of the three heads.
    """
    architectures = set(config.architectures or [])
    classes_of_own_code = set(getattr(config, "auto_map", None) or {})  # "AutoModelFor..."
    # kinds whose head the configuration names; "mntp" is masked, and no configuration tells it
    possible: list[Kind] = []
    for kind, (auto_class, class_of_type) in _KINDS.items():
        has_class = bool(architectures & set(class_of_type.values()))
        if kind != "mntp" and (has_class or auto_class in classes_of_own_code):
            possible.append(kind)
    if not possible:  # kinds whose head transformers has for the type of the model
        possible = [
            kind for kind, entry in _KINDS.items() if config.model_type in entry.class_of_type
        ]
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
    # Of several kinds, for example of BERT, which has a masked and a causal class.
    if config.is_encoder_decoder:
        return "seq2seq"
    is_causal = getattr(config, "is_decoder", False) or getattr(config, "causal", False)
    return "causal" if is_causal else "masked"


@contextmanager
def quiet() -> Iterator[None]:
    """Silences log messages, warnings and progress bars while a model is loaded and tried.

    Exceptions are raised as usual. Progress bars of transformers stay off afterwards.
    """
    level_before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(level_before)


def _load_part(auto_class: Any, part: str, checkpoint: Checkpoint, options: LoadOptions) -> Any:
    """Loads configuration or tokenizer of a checkpoint; any error becomes `BadInput`.

    `auto_class` is `AutoConfig` or `AutoTokenizer`, and `part` what messages call it.
    """
    with one_line_errors(checkpoint.id, part):
        return auto_class.from_pretrained(
            checkpoint.location,
            revision=checkpoint.revision,
            trust_remote_code=options.trust_remote_code,
        )


def _load_tokenizer(
    checkpoint: Checkpoint, options: LoadOptions, kind: Kind
) -> tuple[PreTrainedTokenizerFast, str | None]:
    """Returns a checkpoint's tokenizer, which reads texts as its tokenizer.json says.

    The second value is a warning where transformers had made another tokenizer of the file, or its
    offsets were repaired; else None. Raises `BadInput` for a tokenizer that cannot be used.
    """
    tokenizer_of_class = _load_part(transformers.AutoTokenizer, _TOKENIZER, checkpoint, options)
    tokenizer = check_tokenizer(checkpoint.id, tokenizer_of_class, kind)
    with one_line_errors(checkpoint.id, _TOKENIZER):
        file = checkpoint.file("tokenizer.json")
        file_warning = use_tokenizer_file(checkpoint.id, tokenizer, file)
        offsets_warning = check_offsets(checkpoint.id, tokenizer)
    warning = "; ".join(filter(None, (file_warning, offsets_warning))) or None
    return tokenizer, warning


def _load_weights(
    checkpoint: Checkpoint,
    config: PretrainedConfig,
    kind: Kind,
    options: LoadOptions,
    device: torch.device,
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Returns the network on its device, and transformers' report on missing and unused weights.

    The class that loads it follows from `kind`. `device` is for a model that the options do not
    spread over several devices.
    """
    dtype: str = options.dtype  # "auto" is the checkpoint's own for transformers
    on_processor = device.type == "cpu" and options.device_map is None
    if dtype == "auto" and (on_processor or options.unit == "word"):
        dtype = "float32"
    arguments: dict[str, Any] = {
        "revision": checkpoint.revision,
        "trust_remote_code": options.trust_remote_code,
        # None reads pickled weights where there are no safetensors
        "use_safetensors": None if options.allow_pickle else True,
        "dtype": dtype,
        "device_map": options.device_map,
    }
    if options.quantization is not None:
        bits = {f"load_in_{options.quantization}": True}  # load_in_8bit or load_in_4bit
        arguments["quantization_config"] = transformers.BitsAndBytesConfig(**bits)  # type: ignore[no-untyped-call]
        arguments["device_map"] = options.device_map or {"": device}  # "" is the whole model
    if options.tp:
        arguments["distributed_config"] = _tensor_parallel(checkpoint.id, config)
    auto_class = getattr(transformers, _KINDS[kind].auto_class)
    with one_line_errors(checkpoint.id, f"{kind} model"):
        model, report = auto_class.from_pretrained(
            checkpoint.location, config=config, output_loading_info=True, **arguments
        )
        # a device map and a tensor-parallel plan have put it on its devices already
        if arguments["device_map"] is None and not options.tp:
            model = model.to(device)
    model.eval().requires_grad_(False)
    return model, report


def _device(checkpoint: Checkpoint, options: LoadOptions) -> torch.device:
    """Returns the device that the options name, or else the accelerator or the CPU.

    Raises `BadInput` if there is no such device. A model that is spread over several devices by
    `device_map` begins on the one returned.
    """
    name = options.device
    remedy = "leave device out"
    if options.device_map not in (None, *DEVICE_MAPS):  # the name of a device
        name = options.device_map
        remedy = "leave --device-map out or give auto"
    if name is None:
        accelerator = None
        if torch.accelerator.is_available():
            accelerator = torch.accelerator.current_accelerator()
        return accelerator or torch.device("cpu")
    with suppress(Exception):  # every backend has its own error for a missing device
        device = torch.empty(0, device=name).device
        if device.type != "meta":  # torch's name for shapes without memory
            return device
    raise BadInput(f"model {checkpoint.id}: there is no device {reprlib.repr(name)} here: {remedy}")


def _tensor_parallel(model_id: str, config: PretrainedConfig) -> DistributedConfig:
    """Returns the plan that splits each layer over all processes (tensor parallel).

    Raises `BadInput` if there is one process, or the attention heads cannot be shared evenly.
    """
    n_processes = int(os.environ.get("WORLD_SIZE", "1"))  # set by torchrun
    if n_processes < 2:
        raise BadInput(
            f"model {model_id}: --tp splits it over several processes, but there is one: "
            "start with torchrun or accelerate launch --num_processes N"
        )
    text_config = config.get_text_config()
    n_heads: int = getattr(text_config, "num_key_value_heads", 0)
    n_heads = n_heads or getattr(text_config, "num_attention_heads", 0)
    if n_heads % n_processes:
        raise BadInput(
            f"model {model_id}: its {n_heads} key-value heads cannot be shared evenly by "
            f"{n_processes} processes: start a number of processes that divides them"
        )
    return DistributedConfig(tp_plan="auto")
