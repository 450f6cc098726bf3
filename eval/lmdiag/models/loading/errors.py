"""One line for whatever transformers, torch and the libraries below them raise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lmdiag.files.secrets import without_secrets
from lmdiag.text import shortened
from lmdiag.types import BadInput

_PROBLEM_OF_PATTERN = {
    "SafetensorError": ": its safetensors weights are damaged ({line}): fetch or save them again",
    "trust_remote_code": " brings its own code: read it, and add --trust-remote-code if you trust "
    "it",
    r"file named .*pytorch_model\.bin": " has no weights: put model.safetensors beside its "
    "config.json",
    r"file named .*safetensors": " has no safetensors weights: put model.safetensors beside its "
    "config.json; pickled ones (pytorch_model.bin) can run code when they are read: add "
    "--allow-pickle if you trust their source",
    "Unrecognized configuration class": " has no {part} in transformers: choose another --kind",
    "ignore_mismatched_sizes": ": its weights do not have the shapes that its config.json says",
}
"""Regular expression for type or text of an exception -> what is wrong and what to do."""

_OF_DTYPE = re.compile("dtype|scalar type|double|half|bfloat16|without overflow", re.IGNORECASE)
"""In the text of an exception of an operation that a data type does not have."""


@contextmanager
def one_line_errors(model_id: str, part: str = "", dtype: str = "float32") -> Iterator[None]:
    """Turns any exception of a model that is loaded, or tried for the first time, into one line.

    Args:
        model_id: what the message calls the model.
        part: what is loaded, e.g. "tokenizer (tokenizer.json)"; "" for a model that is tried.
        dtype: of the weights of a model that is tried.
    """
    try:
        yield
    except BadInput:
        raise
    except BaseException as error:  # models and unusual tokenizers raise exceptions of any type
        # PanicException of tokenizers and CheckpointException of torch are not an `Exception`
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise BadInput(f"model {model_id}{_meaning_and_remedy(error, part, dtype)}") from error
        # Only torch's CheckpointException, of weights that were saved in shards, has `failures`.
        failures = getattr(error, "failures", None)  # process -> (exception, traceback)
        if not failures:  # for example KeyboardInterrupt
            raise
        first_failure = next(iter(failures.values()))
        problem = _meaning_and_remedy(first_failure[0], f"{part} from shard-*.safetensors")
        raise BadInput(f"model {model_id}{problem}") from error


def _meaning_and_remedy(error: BaseException, part: str, dtype: str = "float32") -> str:
    """Returns what an exception means for a model, and what to do; follows "model ID".

    `part` and `dtype` are those of `one_line_errors`. For example, " does not run in float16
    (...): use --dtype float32".
    """
    line = first_line(error)
    if is_out_of_memory(error):
        return (
            " does not fit into the device's memory: try --dtype bfloat16, --device-map auto, "
            "--quantization 4bit or another device"
        )
    if isinstance(error, ImportError) or "No module named" in str(error):
        return f" needs a Python module that is not installed ({line}): install it and run again"
    type_and_text = f"{type(error).__name__}: {error}"
    for pattern, problem in _PROBLEM_OF_PATTERN.items():
        if re.search(pattern, type_and_text, re.DOTALL):
            return problem.format(line=line, part=part)
    if part:
        return f": cannot load its {part}: {line}"
    if dtype != "float32" and _OF_DTYPE.search(str(error)):
        return f" does not run in {dtype} ({line}): use --dtype float32"
    return (
        f" cannot be queried ({line}): check that its config.json and its tokenizer belong to its "
        "weights, or try another --kind"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that the memory of the processor or an accelerator is used up."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return any(sign in text for sign in ("out of memory", "not enough memory", "can't allocate"))


def first_line(error: BaseException) -> str:
    """Returns the first line of an exception's text, without secrets, at most 200 characters.

    A first line that ends in a colon is followed by the next one. An exception whose text may not
    be a sentence (a KeyError has only the key) is named by its type.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    continues = bool(lines) and lines[0].rstrip().endswith(":")
    line = " ".join(lines[: 2 if continues else 1])
    if not isinstance(error, ValueError | OSError | ImportError):
        line = f"{type(error).__name__}: {line}"
    return shortened(without_secrets(line[:2000]), 200)  # the first cut bounds the work
