"""Masked, causal and encoder-decoder language models that answer questions about blanks.

`load` returns a `Model` (`model.py` declares what a run asks of it); nothing heavy is imported
before it is called. A new kind of model is a module with its own `load` function and an entry in
`_LOADERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.model import Model
from lmdiag.schema import BadInput

__all__ = ["LoadOptions", "Model", "load"]

_LOADERS: Mapping[str, str] = {"demo:": "lmdiag.models.demo", "": "lmdiag.models.local"}
"""How the name of a model begins -> the module with its `load(name, options)`."""


def load(model_id: str, options: LoadOptions | None = None) -> Model:
    """Loads a model from the Hub, a folder, or as one of the demo models.

    Args:
        model_id: Hub id, folder, or `demo:masked` / `demo:causal`.
        options: how it is loaded and queried; see `LoadOptions`.

    Raises:
        BadInput: it cannot be loaded or queried; names the model and the remedy.
    """
    module = next(name for prefix, name in _LOADERS.items() if model_id.startswith(prefix))
    try:
        model: Model = import_module(module).load(model_id, options or LoadOptions())
    except BadInput:
        raise
    except Exception as error:  # an unusual tokenizer or configuration fails at its first use
        from lmdiag.models.loading.errors import first_line

        raise BadInput(f"model {model_id} cannot be queried: {first_line(error)}") from error
    return model
