"""Whether a model fits into memory, before anything is allocated or downloaded."""

from __future__ import annotations

import copy
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import psutil
import torch
import transformers
from torch.nn.modules import module as hooks
from transformers import PretrainedConfig, PreTrainedModel
from transformers.initialization import meta_device_safe_creation_ops, no_init_weights

from lmdiag.models.loading.checkpoint import Checkpoint
from lmdiag.models.loading.errors import NotEnoughMemory, explain
from lmdiag.models.loading.kinds import AUTO_CLASSES
from lmdiag.models.loading.options import DEVICE_MAPS, LoadOptions
from lmdiag.types import BadInput, Kind

_MOST_TENSORS = 20_000
"""More parameters and buffers than this are refused while they are counted, which bounds the time
of counting to seconds. The largest models of today have a few thousand."""

_QUANTIZED_BYTES = {"8bit": 1.0, "4bit": 0.5}
"""Quantization -> bytes of a parameter."""

_FEWEST_BYTES = 0.25
"""Bytes of a parameter in a checkpoint that is itself quantized: at least two bits."""


class TooManyTensors(Exception):
    """A model has more than `_MOST_TENSORS` parameters and buffers."""


def check_memory(
    checkpoint: Checkpoint,
    config: PretrainedConfig,
    kind: Kind,
    options: LoadOptions,
    device: torch.device,
    share: float = 1.0,
) -> None:
    """Refuses a model whose parameters and buffers need more memory than there is.

    Args:
        checkpoint, config, kind, options: what is loaded.
        device: where it goes.
        share: part of the free memory that it may take.

    Raises:
        NotEnoughMemory: names the model, both sizes and the remedy.
        BadInput: the configuration describes no model.
    """
    try:
        model = outline(config, kind, options)
    except TooManyTensors as error:
        raise BadInput(
            f"model {checkpoint.id} has more than {_MOST_TENSORS:,} parameter tensors by its "
            "configuration (config.json), which lmdiag does not load: check its numbers of layers "
            "and experts"
        ) from error
    except Exception as error:  # each class checks its configuration in its own way, or not at all
        raise explain(checkpoint, f"{kind} model", error, source=" from config.json") from error
    needed = memory_needed(model, config, options, device)
    available = memory_available(device, options)
    if available is not None and needed > available * share:
        spread = options.device_map in DEVICE_MAPS
        place = "all devices and the disk together" if spread else f"device {device}"
        raise NotEnoughMemory(
            f"model {checkpoint.id} needs {needed / 2**30:,.1f} GB of memory for its weights, and "
            f"{available / 2**30:,.1f} GB are free on {place}: try --dtype bfloat16, "
            "--quantization 4bit" + ("" if spread else " or --device-map auto")
        )


def outline(config: PretrainedConfig, kind: Kind, options: LoadOptions) -> PreTrainedModel:
    """Returns the model without any weights: shapes and types on torch's meta device.

    Raises:
        TooManyTensors: see `_MOST_TENSORS`.
        Exception: anything that the model's class raises for its configuration.
    """
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen > _MOST_TENSORS:
            raise TooManyTensors

    arguments = {} if options.attention is None else {"attn_implementation": options.attention}
    with ExitStack() as stack:
        stack.enter_context(torch.device("meta"))
        stack.enter_context(meta_device_safe_creation_ops())
        stack.enter_context(no_init_weights())
        stack.callback(hooks.register_module_parameter_registration_hook(count).remove)
        stack.callback(hooks.register_module_buffer_registration_hook(count).remove)
        model: PreTrainedModel = getattr(transformers, AUTO_CLASSES[kind]).from_config(
            copy.deepcopy(config), trust_remote_code=options.trust_remote_code, **arguments
        )
    model.tie_weights()
    return model


def memory_needed(
    model: PreTrainedModel, config: PretrainedConfig, options: LoadOptions, device: torch.device
) -> int:
    """Returns the bytes that a model's parameters and buffers need at least."""
    if options.quantization is not None:
        size = _QUANTIZED_BYTES[options.quantization]
    elif getattr(config, "quantization_config", None):
        size = _FEWEST_BYTES
    else:
        name = options.dtype
        if name == "auto" and device.type == "cpu" and options.device_map is None:
            name = "float32"
        dtype = config.dtype if name == "auto" else getattr(torch, name)
        size = (dtype if isinstance(dtype, torch.dtype) else torch.float16).itemsize
    parameters = sum(parameter.numel() for parameter in model.parameters())
    buffers = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
    shares = int(os.environ.get("WORLD_SIZE", "1")) if options.tp else 1
    return int(parameters * size / shares) + buffers


def memory_available(device: torch.device, options: LoadOptions) -> int | None:
    """Returns the free bytes of the place where a model goes; None if that is not known.

    With a device map, layers that fit on no accelerator go to the processor's memory, and from
    there to the disk.
    """
    if options.device_map not in DEVICE_MAPS:
        return _free_on(device)
    accelerators = sum(_free_on(accelerator) or 0 for accelerator in _accelerators())
    return accelerators + _free_in_main_memory() + shutil.disk_usage(".").free


def _accelerators() -> list[torch.device]:
    kind = torch.accelerator.current_accelerator(check_available=True)
    if kind is None:
        return []
    return [torch.device(kind.type, index) for index in range(torch.accelerator.device_count())]


def _free_on(device: torch.device) -> int | None:
    if device.type == "cpu":
        return _free_in_main_memory()
    try:
        return int(torch.accelerator.get_memory_info(device)[0])
    except (RuntimeError, AttributeError, NotImplementedError, ValueError):
        return None  # a backend that does not tell


def _free_in_main_memory() -> int:
    """Returns the bytes that this process can still get, within the limits of a container."""
    free = int(psutil.virtual_memory().available)
    limited = _free_in_group()
    return free if limited is None else min(free, limited)


def _free_in_group(root: Path = Path("/")) -> int | None:
    """Returns what the limit of a control group (version 2) leaves; None without a limit.

    Memory that holds copies of files counts as free: the system gives it up when it is needed.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text("ascii").splitlines()
        own = next((group for group in groups if group.startswith("0::/")), "0::/")
        folder = root / "sys/fs/cgroup" / own.removeprefix("0::/")
        limit = int((folder / "memory.max").read_text("ascii"))
        used = int((folder / "memory.current").read_text("ascii"))
        lines = (folder / "memory.stat").read_text("ascii").splitlines()
        cached = {name: int(size) for name, size in (line.split() for line in lines)}
    except (OSError, ValueError):
        return None
    return limit - used + cached.get("inactive_file", 0) + cached.get("active_file", 0)
