"""What the files of a checkpoint say, checked before transformers reads them.

A model folder may come from anywhere. The files that it names must be data (no code, no pickle) and
must be in the folder, so that the digest in `Checkpoint.commit` covers them; its sizes must not
make anything loop or allocate without end.
"""

from __future__ import annotations

import fnmatch
import json
import math
import os
import re
import reprlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from lmdiag.models.loading.checkpoint import MODEL_FILES, Checkpoint
from lmdiag.models.loading.options import LoadOptions
from lmdiag.types import BadInput

_LARGEST_FILE = 16 * 2**20
"""Bytes of the largest config.json that is read; an index may have ten times as many."""

_LAYERS = (
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
    "num_encoder_layers", "num_decoder_layers", "num_hidden_groups", "inner_group_num",
)  # fmt: skip
_SIZES = (
    "hidden_size", "n_embd", "d_model", "embedding_size", "vocab_size", "intermediate_size",
    "ffn_dim", "d_ff", "d_kv", "encoder_ffn_dim", "decoder_ffn_dim", "head_dim",
    "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
    "decoder_attention_heads", "num_key_value_heads",
)  # fmt: skip
_COUNTS = (
    "num_labels", "num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts",
    "moe_num_experts", "type_vocab_size",
)  # fmt: skip

_BOUNDS = (
    dict.fromkeys(_LAYERS, (0, 500))
    | dict.fromkeys(_SIZES, (1, 2**31))
    | dict.fromkeys(_COUNTS, (0, 100_000))
)
"""Field of config.json -> its smallest and largest value. transformers loops over layers, experts
and labels; the product of the sizes is bounded by the memory (`loading.memory`)."""


def check_model_files(checkpoint: Checkpoint, options: LoadOptions) -> None:
    """Refuses a checkpoint whose configuration or weight index cannot or must not be read.

    Raises:
        BadInput: names the model, the file and, if known, the field.
    """
    config = _read_object(checkpoint, "config.json", _LARGEST_FILE)
    if config is None:
        raise BadInput(f"model {checkpoint.id} has no config.json: is it a transformers model?")
    _read_object(checkpoint, "tokenizer_config.json", _LARGEST_FILE)
    if checkpoint.file("adapter_config.json") is not None:  # ignored without peft, applied with it
        raise BadInput(
            f"model {checkpoint.id} has an adapter (adapter_config.json) beside its weights: merge "
            "it into the weights (merge_and_unload in peft) and save the model, or remove the file"
        )
    _check_names(checkpoint, config)
    for name, field, value in _entries(config):
        _check_entry(checkpoint, name, field, value)
    _check_weights(checkpoint, config, options)


def _read_object(checkpoint: Checkpoint, name: str, largest: int) -> dict[str, Any] | None:
    """Returns a JSON object of at most so many bytes; None if there is no such file."""
    path = checkpoint.file(name)
    if path is None:
        return None
    what = "configuration (config.json)" if name == "config.json" else name
    head = f"model {checkpoint.id}: its {what}"
    try:
        if path.stat().st_size > largest:
            raise BadInput(f"{head} is larger than {largest // 2**20} MB: not a transformers file")
        content = json.loads(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{head} is not UTF-8 text (byte {error.start}): fetch it again") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadInput(f"{head} is not valid JSON ({where}: {error.msg})") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{head} is nested too deeply or has a number too long to read") from error
    except OSError as error:
        raise BadInput(f"{head} cannot be read: {error.strerror}") from error
    if not isinstance(content, dict):
        raise BadInput(f"{head} must be a JSON object, not {reprlib.repr(content)}")
    return content


def _wrong(checkpoint: Checkpoint, field: str, expected: str, value: object) -> BadInput:
    """Returns the error for a field of config.json."""
    shown = field if re.fullmatch(r"[\w.-]{1,100}", field) else reprlib.repr(field)
    return BadInput(
        f"model {checkpoint.id}: in its configuration (config.json), {shown} must be {expected}, "
        f"not {reprlib.repr(value)}"
    )


def _entries(config: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields (dotted name, field, value) of all entries, nested ones included."""
    pending: list[tuple[str, str, Any]] = [(key, key, value) for key, value in config.items()]
    while pending:
        name, field, value = pending.pop()
        yield name, field, value
        if isinstance(value, dict):
            pending += [(f"{name}.{key}", key, inner) for key, inner in value.items()]
        elif isinstance(value, list):
            pending += [(name, field, inner) for inner in value]


def _check_names(checkpoint: Checkpoint, config: dict[str, Any]) -> None:
    """Refuses names of types and classes that are not names."""
    names = config.get("architectures")
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if names is not None and not listed:
        raise _wrong(checkpoint, "architectures", "a list of strings", names)
    types = {"model_type": str, "dtype": str, "torch_dtype": str, "auto_map": dict}
    for field, expected in types.items():
        if not isinstance(config.get(field), expected | None):
            what = "a string" if expected is str else "an object"
            raise _wrong(checkpoint, field, what, config[field])


def _check_entry(checkpoint: Checkpoint, name: str, field: str, value: Any) -> None:
    """Refuses sizes that no model has, code from the Hub, and unknown kinds of quantization."""
    if field in _BOUNDS and not isinstance(value, list | dict | None):
        low, high = _BOUNDS[field]
        if type(value) is not int or not low <= value <= high:
            raise _wrong(checkpoint, name, f"an integer from {low} to {high}", value)
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise _wrong(checkpoint, name, "an integer of at most 64 bits", value)
    elif isinstance(value, float) and math.isnan(value):
        raise _wrong(checkpoint, name, "a JSON value", value)
    elif field.endswith(("attn_implementation", "experts_implementation")) and "/" in str(value):
        # A name with an owner is code on the Hub, which transformers would fetch and run.
        raise _wrong(checkpoint, name, "a part of transformers, such as sdpa or eager", value)
    elif field == "quantization_config" and value is not None:
        _check_quantization(checkpoint, name, value)


def _check_quantization(checkpoint: Checkpoint, name: str, value: Any) -> None:
    """Refuses quantized weights that transformers would read as if they were not."""
    if not isinstance(value, dict):
        raise _wrong(checkpoint, name, "an object", value)
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    method = value.get("quant_method")
    known = isinstance(method, str) and method in AUTO_QUANTIZATION_CONFIG_MAPPING
    if not known and not value.get("load_in_8bit") and not value.get("load_in_4bit"):
        methods = ", ".join(sorted(AUTO_QUANTIZATION_CONFIG_MAPPING))
        raise _wrong(checkpoint, f"{name}.quant_method", f"one of {methods}", method)


def _check_weights(checkpoint: Checkpoint, config: dict[str, Any], options: LoadOptions) -> None:
    """Refuses weights outside the folder, and pickled ones without --allow-pickle."""
    named = config.get("transformers_weights")
    if named is not None:
        _check_weight_file(checkpoint, "config.json", named, options)
    indexes = ["model.safetensors.index.json"]
    if options.allow_pickle:
        indexes.append("pytorch_model.bin.index.json")
    if isinstance(named, str) and named.endswith(".index.json"):
        indexes.append(named)
    for index in indexes:
        content = _read_object(checkpoint, index, 10 * _LARGEST_FILE)
        if content is None:
            continue
        if not all(isinstance(content.get(part), dict) for part in ("weight_map", "metadata")):
            raise BadInput(f"model {checkpoint.id}: its {index} must hold weight_map and metadata")
        for name in {str(name): name for name in content["weight_map"].values()}.values():
            _check_weight_file(checkpoint, index, name, options)
    if checkpoint.folder is not None:
        _check_links(checkpoint, checkpoint.folder)


def _check_weight_file(checkpoint: Checkpoint, by: str, name: Any, options: LoadOptions) -> None:
    """Refuses a weight file by its name; `by` is the file that names it."""
    head = f"model {checkpoint.id}: its {by} names the weights {reprlib.repr(name)}"
    if not isinstance(name, str) or not 0 < len(name) < 256 or not name.isprintable():
        raise BadInput(f"{head}, which is not a file name")
    path = PurePosixPath(name.replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or ":" in name
    if outside or (checkpoint.folder is not None and not _is_covered(name)):
        raise BadInput(
            f"{head}, which the digest of the model does not cover: put *.safetensors files into "
            "the model's folder itself and name them there"
        )
    if not name.endswith((".safetensors", ".safetensors.index.json")) and not options.allow_pickle:
        raise BadInput(
            f"{head}, which are not safetensors; reading pickled weights can run code: "
            "add --allow-pickle if you trust their source"
        )


def _is_covered(name: str) -> bool:
    """Whether the digest of a folder covers a file of this name."""
    return "/" not in name and any(fnmatch.fnmatchcase(name, pattern) for pattern in MODEL_FILES)


def _check_links(checkpoint: Checkpoint, folder: Path) -> None:
    """Refuses links that lead out of the folder, other than those of the Hub's cache."""
    base = folder.resolve()
    for path in base.iterdir():
        if not path.is_symlink() or not _is_covered(path.name):
            continue
        target = Path(os.path.realpath(path))
        cached = target.parent.name == "blobs" and target.parent.parent.name.startswith("models--")
        if not target.is_relative_to(base) and not cached:
            raise BadInput(
                f"model {checkpoint.id}: {path.name} is a link to {target}, outside the model's "
                "folder: copy the file there"
            )
