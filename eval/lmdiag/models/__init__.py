"""Masked, causal and encoder-decoder language models that answer questions about blanks.

`load` returns a `Model` (`model.py`, what a run asks); nothing heavy is imported before it is
called. A new kind of model is a subclass in a module of its own, and its line in `load`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.models.loading.load_options import LoadOptions
from lmdiag.types import WORD_COUNTS, BadInput

if TYPE_CHECKING:
    from lmdiag.models.model import Model as Model

__all__ = ["LoadOptions", "load"]


def load(model_id: str, options: LoadOptions | None = None) -> Model:
    """Loads a model: from the Hub, a folder, a server, a file of n-grams, or as a demo model.

    Args:
        model_id: Hub id, folder, `demo:masked` or `demo:causal`, or a model of word counts,
            `frequency:LANGUAGE` or `ngram:FILE`; with the option `server`, the
            server's name for it.
        options: how it is loaded and queried; see `LoadOptions`.

    Raises:
        BadInput: it cannot be loaded or queried; names the model and the remedy.
    """
    options = options or LoadOptions()
    if model_id.startswith(WORD_COUNTS):  # "frequency:" or "ngram:"
        from lmdiag.models.word_counts import load_counts

        return load_counts(model_id, options)
    from lmdiag.models.demo import demo_folder
    from lmdiag.models.loading.errors import one_line_errors

    with one_line_errors(model_id):
        if options.server is not None:
            from lmdiag.models.server.load import load_served

            return load_served(model_id, options)
        location = model_id
        if model_id.startswith("demo:"):
            location = str(demo_folder(model_id.removeprefix("demo:")))
        from lmdiag.models.loading.load import load_parts
        from lmdiag.models.local import assemble

        try:
            parts = load_parts(location, options)
        except BadInput as error:  # the message of a demo model names its folder, not its id
            raise BadInput(str(error).replace(location, model_id)) from error
        return assemble(model_id, parts, options)
