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


_MASKED = "AutoModelForMaskedLM"
"""Class of transformers, by which a model's own code names its masked head."""


def check_model_files(checkpoint: Checkpoint, options: LoadOptions) -> None:
    """Refuses a checkpoint whose configuration or weight index cannot or must not be read."""
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
    for field, name in _fields(config):  # transformers would fetch and run "owner/name"
        if field.endswith(("attn_implementation", "experts_implementation")) and "/" in str(name):
            raise BadInput(
                f"{in_config} {field} must be a part of transformers, such as sdpa or eager, not "
                f"{reprlib.repr(name)}"
            )
    if (value := config.get("quantization_config")) is not None:
        from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING as KNOWN

        settings = value if isinstance(value, dict) else {}
        method = settings.get("quant_method")
        is_known = isinstance(method, str) and method in KNOWN
        if not is_known and not settings.get("load_in_8bit") and not settings.get("load_in_4bit"):
            raise BadInput(  # transformers would read the weights as if they were not quantized
                f"{in_config} quantization_config.quant_method must be one of "
                f"{', '.join(sorted(KNOWN))}, not {reprlib.repr(method if settings else value)}"
            )
    indexes = ["model.safetensors.index.json"]
    if options.allow_pickle:
        indexes.append("pytorch_model.bin.index.json")
    if (weights_file := config.get("transformers_weights")) is not None:
        _check_weight_file(head, "config.json", weights_file, options)
        if weights_file.endswith(".index.json"):
            indexes.append(weights_file)
    for index in indexes:
        content = _read_object(checkpoint, index) or {}
        names = content.get("weight_map", {})
        if content and not (isinstance(names, dict) and isinstance(content.get("metadata"), dict)):
            raise BadInput(f"{head}: its {index} must hold weight_map and metadata")
        for name in {str(name): name for name in names.values()}.values():
            _check_weight_file(head, index, name, options)


def _read_object(checkpoint: Checkpoint, name: str) -> dict[str, Any] | None:
    """Returns the JSON object in a file; None if there is no such file."""
    path = checkpoint.file(name)
    if path is None:
        return None
    what = "configuration (config.json)" if name == "config.json" else name
    head = f"model {checkpoint.id}: its {what}"
    if (size := path.stat().st_size) > MAX_INDEX:
        raise BadInput(f"{head} has {size:,} bytes; at most {MAX_INDEX:,} are read")
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise BadInput(f"{head} cannot be read as JSON: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise BadInput(f"{head} must be a JSON object, not {reprlib.repr(content)}")
    return content


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields all fields of a JSON value and of what is in it."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _fields(inner)


def _check_weight_file(head: str, by: str, name: Any, options: LoadOptions) -> None:
    """Refuses a weight file by its name; `by` is the file that names it."""
    head = f"{head}: its {by} names the weights {reprlib.repr(name)}"
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
    """Refuses a model of the Hub whose weights are not in the cache, without a network."""
    from huggingface_hub import constants

    config = checkpoint.file("config.json")
    if checkpoint.revision is None or config is None or not constants.HF_HUB_OFFLINE:
        return
    if not any([*config.parent.glob("*.safetensors"), *config.parent.glob("*.bin")]):
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
    if own_classes and has_mask and _MASKED not in own_classes:
        raise BadInput(
            f"model {model_id} is a masked diffusion model, as LLaDA and Dream are: it fills masks "
            f"in any order, and its code has no {_MASKED}; lmdiag reads those that have it, with "
            "--kind masked, or mntp if they answer one place before the mask"
        )


def check_memory(checkpoint: Checkpoint, options: LoadOptions, device: torch.device) -> None:
    """Refuses weights whose files are larger than the free memory of their device.

    Weights that are spread over devices, quantized or not downloaded yet are not checked.
    """
    if options.device_map in DEVICE_MAPS or options.quantization or options.tp:
        return
    config = checkpoint.file("config.json")
    files = config.parent.glob("model*.safetensors") if config else ()
    needed = sum(path.stat().st_size for path in files if path.is_file())
    if options.dtype in ("bfloat16", "float16"):
        needed //= 2  # the files may have float32
    free = psutil.virtual_memory().available
    if device.type != "cpu":
        # a backend that does not tell, as one that shares the memory; torch before 2.10
        with suppress(RuntimeError, AttributeError):
            free = int(torch.accelerator.get_memory_info(device)[0])
    if needed > free:
        raise BadInput(
            f"model {checkpoint.id} has {needed / 2**30:,.1f} GB of weights, and "
            f"{free / 2**30:,.1f} GB of memory are free on device {device}: try --device-map auto "
            "or --quantization 4bit"
        )


def warn_of_version(model_id: str, config: PretrainedConfig) -> str | None:
    """Returns a warning of a configuration that a newer transformers wrote; None without one.

    What an older version does not know in it is passed over in silence. The demo models were
    tried with every version of setup.cfg.
    """
    number = re.compile(r"(\d{1,4})\.(\d{1,4})")
    written = number.match(str(getattr(config, "transformers_version", None)))
    installed = number.match(version("transformers"))
    is_demo = Path(model_id) in map(demo_folder, DEMO_NAMES)
    if written is None or installed is None or is_demo:
        return None
    if [*map(int, written.groups())] <= [*map(int, installed.groups())]:
        return None
    return (
        f"model {model_id} was saved by transformers {written[0]}, and {installed[0]}, which is "
        "installed, may read its configuration in another way: upgrade transformers, or compare "
        "the figures with those of a newer version"
    )


def check_tokenizer(
    model_id: str, tokenizer: PreTrainedTokenizerBase, kind: Kind
) -> PreTrainedTokenizerFast:
    """Refuses a tokenizer that cannot tell its pieces' characters, is empty, or has no mask."""
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

    Added tokens that no text and no template contains may lie beyond (gemma-3's image token does).
    `report` is transformers' own, on the weights that the checkpoint lacks, and on others.

    Returns:
        a warning of unused weights; None for none.
    """
    missing = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if missing:
        raise BadInput(
            f"model {model_id} lacks {len(missing)} weights of a {kind} model (first: "
            f"{missing[0]}), which would be random: it was not saved with that head; see --kind"
        )
    rows = len(cast("torch.Tensor", model.get_input_embeddings().weight))
    roles = ("bos", "eos", "unk", "sep", "cls", "mask")
    used = {getattr(tokenizer, f"{role}_token_id") for role in roles}
    unused = set(tokenizer.added_tokens_decoder) - used
    largest = max(id for id in tokenizer.get_vocab().values() if id not in unused)
    if largest >= rows:
        raise BadInput(
            f"model {model_id}: its tokenizer has ids up to {largest} but the model only "
            f"{rows} embeddings: the tokenizer belongs to another model"
        )
    return check_unused(model_id, model, report["unexpected_keys"])
