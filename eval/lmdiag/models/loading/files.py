"""What the files of a checkpoint say, checked before transformers reads them.

The weights must be safetensors files in the folder itself, so that no pickle is read and the digest
in `Checkpoint.commit` covers them, and what the configuration asks for must not change the numbers
without an error.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator
from typing import Any

import psutil
import torch

from lmdiag.models.loading.checkpoint import Checkpoint
from lmdiag.models.loading.errors import first_line
from lmdiag.models.loading.options import DEVICE_MAPS, LoadOptions
from lmdiag.types import BadInput


def check_model_files(checkpoint: Checkpoint, options: LoadOptions) -> None:
    """Refuses a checkpoint whose configuration or weight index cannot or must not be read.

    Raises:
        BadInput: names the model, the file and, if known, the field.
    """
    config = _read_object(checkpoint, "config.json")
    if config is None:
        raise BadInput(f"model {checkpoint.id} has no config.json: is it a transformers model?")
    if checkpoint.file("adapter_config.json") is not None:  # ignored without peft, applied with it
        raise BadInput(
            f"model {checkpoint.id} has an adapter (adapter_config.json) beside its weights: merge "
            "it into the weights (merge_and_unload in peft) and save the model, or remove the file"
        )
    _check_code(checkpoint, config)
    _check_quantization(checkpoint, config.get("quantization_config"))
    indexes = ["model.safetensors.index.json"]
    if options.allow_pickle:
        indexes.append("pytorch_model.bin.index.json")
    if (named := config.get("transformers_weights")) is not None:
        _check_weight_file(checkpoint, "config.json", named, options)
        indexes += [named] * named.endswith(".index.json")
    for index in indexes:
        content = _read_object(checkpoint, index) or {}
        names = content.get("weight_map", {})
        if content and not (isinstance(names, dict) and isinstance(content.get("metadata"), dict)):
            raise BadInput(f"model {checkpoint.id}: its {index} must hold weight_map and metadata")
        for name in {str(name): name for name in names.values()}.values():
            _check_weight_file(checkpoint, index, name, options)


def check_memory(checkpoint: Checkpoint, options: LoadOptions, device: torch.device) -> None:
    """Refuses weights whose files are larger than the free memory of their device.

    Weights that are spread over devices or quantized are not checked, nor are those that are not
    downloaded yet.
    """
    if options.device_map in DEVICE_MAPS or options.quantization or options.tp:
        return
    config = checkpoint.file("config.json")
    files = config.parent.glob("model*.safetensors") if config else ()
    needed = sum(path.stat().st_size for path in files if path.is_file())
    if options.dtype in ("bfloat16", "float16"):
        needed //= 2  # the files may have float32
    try:
        free = psutil.virtual_memory().available
        if device.type != "cpu":
            free = int(torch.accelerator.get_memory_info(device)[0])
    except RuntimeError:
        return  # a backend that does not tell
    if needed > free:
        raise BadInput(
            f"model {checkpoint.id} has {needed / 2**30:,.1f} GB of weights, and "
            f"{free / 2**30:,.1f} GB of memory are free on device {device}: try --device-map auto "
            "or --quantization 4bit"
        )


def _read_object(checkpoint: Checkpoint, name: str) -> dict[str, Any] | None:
    """Returns the JSON object in a file; None if there is no such file."""
    path = checkpoint.file(name)
    if path is None:
        return None
    what = "configuration (config.json)" if name == "config.json" else name
    head = f"model {checkpoint.id}: its {what}"
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise BadInput(f"{head} cannot be read as JSON: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise BadInput(f"{head} must be a JSON object, not {reprlib.repr(content)}")
    return content


def _check_code(checkpoint: Checkpoint, config: dict[str, Any]) -> None:
    """Refuses code on the Hub, which transformers would fetch and run for a name with an owner."""
    for field, name in _fields(config):
        if field.endswith(("attn_implementation", "experts_implementation")) and "/" in str(name):
            raise BadInput(
                f"model {checkpoint.id}: in its configuration (config.json), {field} must be a "
                f"part of transformers, such as sdpa or eager, not {reprlib.repr(name)}"
            )


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields all fields of a JSON value and of what is in it."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _fields(inner)


def _check_quantization(checkpoint: Checkpoint, value: Any) -> None:
    """Refuses quantized weights that transformers would read as if they were not."""
    if value is None:
        return
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    given = value if isinstance(value, dict) else {}
    method = given.get("quant_method")
    known = isinstance(method, str) and method in AUTO_QUANTIZATION_CONFIG_MAPPING
    if not known and not given.get("load_in_8bit") and not given.get("load_in_4bit"):
        methods = ", ".join(sorted(AUTO_QUANTIZATION_CONFIG_MAPPING))
        raise BadInput(
            f"model {checkpoint.id}: in its configuration (config.json), "
            f"quantization_config.quant_method must be one of {methods}, not "
            f"{reprlib.repr(method if given else value)}"
        )


def _check_weight_file(checkpoint: Checkpoint, by: str, name: Any, options: LoadOptions) -> None:
    """Refuses a weight file by its name; `by` is the file that names it."""
    head = f"model {checkpoint.id}: its {by} names the weights {reprlib.repr(name)}"
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
