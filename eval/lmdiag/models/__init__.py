"""Masked, causal and encoder-decoder language models that answer questions about blanks.

`load` returns a `Model` (`model.py` declares what a run asks of it); nothing heavy is imported
before it is called. A new kind of model is a module with a function that loads it and an
entry in `_LOADERS`; a model behind a server is one that the options name a server for.
"""

from __future__ import annotations

from importlib import import_module

from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.model import Model

__all__ = ["LoadOptions", "Model", "load"]

_LOADERS = {"demo:": "lmdiag.models.demo:load_demo", "": "lmdiag.models.local:load_local"}
"""How the name of a model begins -> module and name of its `load(model_id, options)`."""

_SERVED = "lmdiag.models.server.served:load_served"


def load(model_id: str, options: LoadOptions | None = None) -> Model:
    """Loads a model from the Hub, a folder, or as one of the demo models.

    Args:
        model_id: Hub id, folder, or `demo:masked` / `demo:causal`; with the option `server`, the
            server's name for it.
        options: how it is loaded and queried; see `LoadOptions`.

    Raises:
        BadInput: it cannot be loaded or queried; names the model and the remedy.
    """
    options = options or LoadOptions()
    start = next(start for start in _LOADERS if model_id.startswith(start))
    module, _, name = (_SERVED if options.server else _LOADERS[start]).partition(":")
    from lmdiag.models.loading.errors import one_line_errors

    with one_line_errors(model_id):
        model: Model = getattr(import_module(module), name)(model_id, options)
    return model
