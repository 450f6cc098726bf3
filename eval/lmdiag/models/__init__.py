"""Masked, causal and encoder-decoder language models that answer questions about blanks.

`load` returns a `Model` (`model.py` declares what a run asks of it); nothing heavy is imported
before it is called. A new kind of model is a module with a function that loads it and an
entry in `_LOADERS`; a model behind a server is one that the options name a server for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.model import Model, Reusable
from lmdiag.types import BadInput

__all__ = ["LoadOptions", "Model", "Reusable", "load", "load_ahead"]

_LOADERS = {"demo:": "lmdiag.models.demo:load_demo", "": "lmdiag.models.local:load_local"}
"""How the name of a model begins -> module and name of its `load(model_id, options)`."""

_SERVED = "lmdiag.models.server.loading:load_served"

_AHEAD = {
    "demo:": "lmdiag.models.demo:load_demo_ahead",
    "": "lmdiag.models.local:load_local_ahead",
}
"""The same for `load_ahead(model_id, options, beside=...)`; other models are loaded in turn."""


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
    with _one_line(model_id):
        path = _SERVED if options.server else _LOADERS[_start_of(model_id)]
        _begin(model_id, options)
        model: Model = _imported(path)(model_id, options)
    return model


def load_ahead(model_id: str, options: LoadOptions, *, beside: bool) -> Callable[[], Model]:
    """Does in a thread what of `load` can be done there.

    Args:
        model_id, options: see `load`.
        beside: whether another model is being asked meanwhile: half of the free memory is left to
            it, and nothing is printed.

    Returns:
        a function that does the rest, for the main thread; its model is the one that `load` gives.

    Raises:
        NotEnoughMemory: there may be enough when the other model is gone.
        BadInput: see `load`.
    """
    if options.server or (path := _AHEAD.get(_start_of(model_id))) is None:
        return partial(load, model_id, options)
    with _silent_downloads() if beside else nullcontext(), _one_line(model_id):
        _begin(model_id, options)
        rest = _imported(path)(model_id, options, beside=beside)
    return partial(_finished, model_id, rest)


def _begin(model_id: str, options: LoadOptions) -> None:
    """Begins what does not wait for the imports of loading."""
    if not options.server and not _start_of(model_id):
        from lmdiag.models.loading.checkpoint import begin_digest

        begin_digest(model_id)


def _finished(model_id: str, rest: Callable[[], Model]) -> Model:
    with _one_line(model_id):
        return rest()


def _start_of(model_id: str) -> str:
    """How the names of models of this kind begin."""
    return next(start for start in _LOADERS if model_id.startswith(start))


def _imported(path: str) -> Any:
    """Returns a function of a module that is imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@contextmanager
def _one_line(model_id: str) -> Iterator[None]:
    """Turns any other exception than `BadInput` into one that names the model."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # an unusual tokenizer or configuration fails at its first use
        from lmdiag.models.loading.errors import first_line

        raise BadInput(f"model {model_id} cannot be queried: {first_line(error)}") from error


@contextmanager
def _silent_downloads() -> Iterator[None]:
    """Hides what the Hub's client prints, which would run into the progress of a run.

    That is the progress of downloads, and notices of tries that failed; the last failure is raised.
    """
    from huggingface_hub.utils import logging as hub_logging
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    with ExitStack() as stack:
        stack.callback(hub_logging.set_verbosity, hub_logging.get_verbosity())
        hub_logging.set_verbosity(logging.ERROR)
        if not are_progress_bars_disabled():
            stack.callback(enable_progress_bars)
            disable_progress_bars()
        yield
