"""Running out of memory, which is an answer to how large a batch may be."""

from __future__ import annotations

import gc


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that the memory of the processor or an accelerator is used up."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return any(sign in text for sign in ("out of memory", "not enough memory", "can't allocate"))


def release() -> None:
    """Gives memory that is no longer held back to the device."""
    import torch

    gc.collect()
    if torch.accelerator.is_available():
        torch.accelerator.empty_cache()
