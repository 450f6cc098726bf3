"""Refusals of what would run foreign code, or give wrong numbers without any error.

The weights must be safetensors files in the folder itself, so that no pickle is read and the digest
in `Checkpoint.commit` covers them, and what the configuration asks for must not change the numbers.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil
import torch

from lmdiag.files.reading import MAX_INDEX
from lmdiag.models.demo import DEMO_NAMES, demo_folder
from lmdiag.models.loading.checkpoint import Checkpoint
from lmdiag.models.loading.errors import first_line
from lmdiag.models.loading.load_options import DEVICE_MAPS, LoadOptions
from lmdiag.models.loading.unused import check_unused
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from transformers import (
        PretrainedConfig,
        PreTrainedModel,
        PreTrainedTokenizerBase,
        PreTrainedTokenizerFast,
    )


_MASKED_CLASS = "AutoModelForMaskedLM"
"""Class of transformers, by which a model's own code names its masked head."""


def check_model_files(checkpoint: Checkpoint, options: LoadOptions) -> None:
    """Refuses a checkpoint whose configuration or weight index cannot or must not be read.

    Refused are an adapter, an implementation that would be fetched from another repository, an
    unknown quantization, and weight files outside the folder or in other formats than are allowed.
    """
    head = f"model {checkpoint.id}"
    in_config = f"{head}: in its configuration (config.json),"
    config = _read_object(checkpoint, "config.json")
    if config is None:
        raise BadInput(f"{head} has no config.json: is it a transformers model?")
    if checkpoint.file("adapter_config.json") is not None:  # ignored without peft, applied with it
        raise BadInput(
            f"{head} has an adapter (adapter_config.json) beside its weights: merge it into the "
            "weights (merge_and_unload in peft) and save the model, or remove the file"
        )
    # implementations from another repository
    for field, name in _fields(config):  # transformers would fetch and run "owner/name"
        if field.endswith(("attn_implementation", "experts_implementation")) and "/" in str(name):
            raise BadInput(
                f"{in_config} {field} must be a part of transformers, such as sdpa or eager, not "
                f"{reprlib.repr(name)}"
            )
    _check_quantization(config.get("quantization_config"), in_config)
    # weight files: the one that the configuration names, and those that an index names
    index_names = ["model.safetensors.index.json"]
    if options.allow_pickle:
        index_names.append("pytorch_model.bin.index.json")
    weights_name = config.get("transformers_weights")
    if weights_name is not None:
        _check_weight_file(head, "config.json", weights_name, options)
        if weights_name.endswith(".index.json"):
            index_names.append(weights_name)
    for index_name in index_names:
        index = _read_object(checkpoint, index_name) or {}
        file_of_weight = index.get("weight_map", {})
        is_index = isinstance(file_of_weight, dict) and isinstance(index.get("metadata"), dict)
        if index and not is_index:
            raise BadInput(f"{head}: its {index_name} must hold weight_map and metadata")
        # each file once; a name that is not a text may not be hashable
        distinct_names = {str(name): name for name in file_of_weight.values()}
        for name in distinct_names.values():
            _check_weight_file(head, index_name, name, options)


def _check_quantization(quantization: Any, in_config: str) -> None:
    """Refuses a `quantization_config` that transformers does not know; None is not quantized.

    Transformers would read its weights as if they were not quantized. `in_config` begins the
    message.
    """
    if quantization is None:
        return
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING as CONFIG_OF_METHOD

    settings = quantization if isinstance(quantization, dict) else {}
    method = settings.get("quant_method")
    is_known = isinstance(method, str) and method in CONFIG_OF_METHOD
    # bitsandbytes may be named by one of these instead of the method
    if is_known or settings.get("load_in_8bit") or settings.get("load_in_4bit"):
        return
    methods = ", ".join(sorted(CONFIG_OF_METHOD))
    raise BadInput(
        f"{in_config} quantization_config.quant_method must be one of {methods}, not "
        f"{reprlib.repr(method if settings else quantization)}"
    )


def _read_object(checkpoint: Checkpoint, name: str) -> dict[str, Any] | None:
    """Returns the JSON object in a file of a checkpoint; None if there is no such file.

    Raises `BadInput` for a file that is too large, or is not a JSON object.
    """
    path = checkpoint.file(name)
    if path is None:
        return None
    shown_name = "configuration (config.json)" if name == "config.json" else name
    head = f"model {checkpoint.id}: its {shown_name}"
    size = path.stat().st_size
    if size > MAX_INDEX:
        raise BadInput(f"{head} has {size:,} bytes; at most {MAX_INDEX:,} are read")
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise BadInput(f"{head} cannot be read as JSON: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise BadInput(f"{head} must be a JSON object, not {reprlib.repr(content)}")
    return content


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, value) of all fields of a JSON object or list, at any depth."""
    inner_values = value
    if isinstance(value, dict):
        yield from value.items()
        inner_values = value.values()
    for inner_value in inner_values:
        if isinstance(inner_value, dict | list):
            yield from _fields(inner_value)


def _check_weight_file(head: str, named_in: str, name: Any, options: LoadOptions) -> None:
    """Refuses a weight file that is outside the model's folder or in a format that can run code.

    `head` begins the message, and `named_in` is the file that names the weight file `name`.
    """
    head = f"{head}: its {named_in} names the weights {reprlib.repr(name)}"
    if not isinstance(name, str) or not name or any(sign in name for sign in "/\\:"):
        raise BadInput(
            f"{head}, which the digest of the model does not cover: put *.safetensors files into "
            "the model's folder itself and name them there"
        )
    if not name.endswith((".safetensors", ".safetensors.index.json")) and not options.allow_pickle:
        raise BadInput(
            f"{head}, which are not safetensors; reading pickled weights can run code: "
            "add --allow-pickle if you trust their source"
        )


def check_cached(checkpoint: Checkpoint) -> None:
    """Refuses a model of the Hub whose weights are not in the cache if the network is forbidden."""
    from huggingface_hub import constants

    config = checkpoint.file("config.json")
    if checkpoint.revision is None or config is None or not constants.HF_HUB_OFFLINE:
        return
    cache_folder = config.parent
    weight_files = [*cache_folder.glob("*.safetensors"), *cache_folder.glob("*.bin")]
    if not weight_files:
        raise BadInput(
            f"model {checkpoint.id}: its weights are not in the cache, and HF_HUB_OFFLINE forbids "
            "the network: load it once without HF_HUB_OFFLINE"
        )


def check_not_diffusion(model_id: str, config: PretrainedConfig) -> None:
    """Refuses a masked diffusion model that transformers cannot load as a masked one.

    Its own code has no class with a masked head, and its configuration names the mask token.
    """
    own_classes = getattr(config, "auto_map", None) or {}
    has_mask = getattr(config, "mask_token_id", None) is not None
    if own_classes and has_mask and _MASKED_CLASS not in own_classes:
        raise BadInput(
            f"model {model_id} is a masked diffusion model, as LLaDA and Dream are: it fills masks "
            f"in any order, and its code has no {_MASKED_CLASS}; lmdiag reads those that have it, "
            "with --kind masked, or mntp if they answer one place before the mask"
        )


def check_memory(checkpoint: Checkpoint, options: LoadOptions, device: torch.device) -> None:
    """Refuses weights whose files are larger than the free memory of their device.

    Weights that are spread over devices, quantized or not downloaded yet are not checked.
    """
    if options.device_map in DEVICE_MAPS or options.quantization or options.tp:
        return
    config = checkpoint.file("config.json")
    files = config.parent.glob("model*.safetensors") if config else ()
    n_bytes = sum(path.stat().st_size for path in files if path.is_file())
    if options.dtype in ("bfloat16", "float16"):
        n_bytes //= 2  # the files may have float32
    free_bytes = psutil.virtual_memory().available
    if device.type != "cpu":
        # fails for a backend that does not tell, as one that shares the memory; torch before 2.10
        with suppress(RuntimeError, AttributeError):
            free_bytes = int(torch.accelerator.get_memory_info(device)[0])
    if n_bytes > free_bytes:
        raise BadInput(
            f"model {checkpoint.id} has {n_bytes / 2**30:,.1f} GB of weights, and "
            f"{free_bytes / 2**30:,.1f} GB of memory are free on device {device}: try "
            "--device-map auto or --quantization 4bit"
        )


def warn_of_version(model_id: str, config: PretrainedConfig) -> str | None:
    """Returns a warning if a newer transformers than the installed one wrote a configuration.

    Otherwise None. An older version ignores the fields that it does not know. Demo models are not
    warned of: they were tried with every version that setup.cfg allows.
    """
    major_and_minor = re.compile(r"(\d{1,4})\.(\d{1,4})")
    written = major_and_minor.match(str(getattr(config, "transformers_version", None)))
    installed = major_and_minor.match(version("transformers"))
    is_demo = Path(model_id) in map(demo_folder, DEMO_NAMES)
    if written is None or installed is None or is_demo:
        return None
    written_version = int(written[1]), int(written[2])
    installed_version = int(installed[1]), int(installed[2])
    if written_version <= installed_version:
        return None
    return (
        f"model {model_id} was saved by transformers {written[0]}, and {installed[0]}, which is "
        "installed, may read its configuration in another way: upgrade transformers, or compare "
        "the figures with those of a newer version"
    )


def check_tokenizer(
    model_id: str, tokenizer: PreTrainedTokenizerBase, kind: Kind
) -> PreTrainedTokenizerFast:
    """Returns the tokenizer unchanged, or refuses it.

    Refused are one that cannot tell which characters its tokens stand for, one without ordinary
    tokens, and, for masked models, one without a mask token.
    """
    head = f"model {model_id}"
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
    if kind in ("masked", "mntp") and tokenizer.mask_token_id is None:
        raise BadInput(
            f"{head}: its tokenizer has no mask token, so it cannot be queried as a masked model; "
            "try --kind causal"
        )
    return cast("PreTrainedTokenizerFast", tokenizer)


def check_weights(
    model_id: str,
    kind: Kind,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: dict[str, Any],
) -> str | None:
    """Refuses weights that are random or left out, and ids of a tokenizer without an embedding.

    `report` is transformers' own: weights that the checkpoint lacks ("missing_keys"), has in
    another shape ("mismatched_keys"), or has in addition ("unexpected_keys").

    Returns:
        a warning of unused weights; None for none.
    """
    # transformers gives (name, shape in the checkpoint, shape in the model)
    wrong_shapes = [mismatch[0] for mismatch in report["mismatched_keys"]]
    missing = sorted({*report["missing_keys"], *wrong_shapes})
    if missing:
        raise BadInput(
            f"model {model_id} lacks {len(missing)} weights of a {kind} model (first: "
            f"{missing[0]}), which would be random: it was not saved with that head; see --kind"
        )
    n_embeddings = len(cast("torch.Tensor", model.get_input_embeddings().weight))
    # Added tokens without a role may have no embedding: no text and no template contains them
    # (gemma-3's image token is one).
    roles = ("bos", "eos", "unk", "sep", "cls", "mask")
    ids_with_role = {getattr(tokenizer, f"{role}_token_id") for role in roles}
    unused_ids = set(tokenizer.added_tokens_decoder) - ids_with_role
    largest = max(id for id in tokenizer.get_vocab().values() if id not in unused_ids)
    if largest >= n_embeddings:
        raise BadInput(
            f"model {model_id}: its tokenizer has ids up to {largest} but the model only "
            f"{n_embeddings} embeddings: the tokenizer belongs to another model"
        )
    return check_unused(model_id, model, report["unexpected_keys"])
