"""One line for whatever transformers, torch and the libraries below them raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmdiag.files import without_secrets
from lmdiag.models.loading.checkpoint import Checkpoint
from lmdiag.text import shortened
from lmdiag.types import BadInput


def explain(
    checkpoint: Checkpoint, what: str, error: BaseException, *, source: str = ""
) -> BadInput:
    """Puts an exception of transformers into one line that names the model and the remedy.

    `what` is the part that could not be loaded, `source` where it was to come from, as in
    " from config.json".
    """
    text = str(error)
    says = f": cannot load its {what}{source}: {first_line(error)}"
    if is_out_of_memory(error):
        says = (
            " does not fit into the device's memory: try --dtype bfloat16, --device-map auto or "
            "--quantization 4bit"
        )
    elif type(error).__name__ == "SafetensorError":
        says = (
            f": its safetensors weights are damaged ({first_line(error)}): fetch or save them again"
        )
    elif "trust_remote_code" in text:
        says = " brings its own code: read it, and add --trust-remote-code if you trust it"
    elif "file named" in text and "safetensors" in text:
        pickles = Path(checkpoint.location).glob("pytorch_model*.bin*")  # unknown on the Hub
        if "pytorch_model.bin" in text or (checkpoint.revision is None and not any(pickles)):
            says = " has no weights: put model.safetensors beside its config.json"
        else:
            says = (
                " has no safetensors weights; pickled ones (pytorch_model.bin) can run code when "
                "they are read: add --allow-pickle if you trust their source"
            )
    elif "Unrecognized configuration class" in text:
        says = f" has no {what} in transformers: choose another --kind"
    elif "ignore_mismatched_sizes" in text:
        says = ": its weights do not have the shapes that its config.json says"
    return BadInput(f"model {checkpoint.id}{says}")


@contextmanager
def one_line_errors(model_id: str) -> Iterator[None]:
    """Turns any exception of a model that is tried for the first time into one line.

    Raises:
        BadInput: instead of the exception; names the model and the remedy.
    """
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # models and unusual tokenizers raise exceptions of any type
        problem = (
            f"cannot be queried ({first_line(error)}): check that its config.json and its "
            "tokenizer belong to its weights, or try another --kind or --attention eager"
        )
        if is_out_of_memory(error):
            problem = (
                "runs out of memory on a short text: use a smaller --dtype, --device-map auto, or "
                "another device"
            )
        raise BadInput(f"model {model_id} {problem}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that the memory of the processor or an accelerator is used up."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return any(sign in text for sign in ("out of memory", "not enough memory", "can't allocate"))


def first_line(error: BaseException) -> str:
    """Returns the first line of an exception's text, without secrets.

    A first line that ends in a colon is followed by the next one. An exception whose text may not
    be a sentence (a KeyError has only the key) is named by its type.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    line = " ".join(lines[:2] if lines and lines[0].rstrip().endswith(":") else lines[:1])
    if not isinstance(error, ValueError | OSError | ImportError):
        line = f"{type(error).__name__}: {line}"
    return shortened(without_secrets(line[:2000]), 200)
