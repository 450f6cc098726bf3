"""Language models asked rightly: masked, causal, encoder-decoder.

`load` is the way in. Nothing heavy is imported before it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.models.options import LoadOptions
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    from lmdiag.models.model import Model

__all__ = ["LoadOptions", "Model", "load"]


def load(model_id: str, options: LoadOptions | None = None) -> Model:
    """Loads a model from the Hub, a folder, or as one of the demo models.

    Args:
        model_id: Hub id, folder, or `demo:masked` / `demo:causal`.
        options: how it is loaded and asked; see `LoadOptions`.

    Raises:
        BadInput: it cannot be loaded, or not be asked rightly; names the model and the remedy.
    """
    from lmdiag.models.assemble import assemble
    from lmdiag.models.checks import first_line
    from lmdiag.models.loading import load_parts

    options = options or LoadOptions()
    folder = model_id
    if model_id.startswith("demo:"):
        from lmdiag.models.demo import demo_folder

        folder = str(demo_folder(model_id.removeprefix("demo:")))
    try:
        return assemble(model_id, load_parts(folder, options), options)
    except BadInput:
        raise
    except Exception as error:  # what a strange tokenizer or configuration breaks in the first use
        raise BadInput(f"model {model_id} cannot be queried: {first_line(error)}") from error


def __getattr__(name: str) -> object:
    if name == "Model":
        from lmdiag.models.model import Model

        return Model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
