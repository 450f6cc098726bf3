"""Psycholinguistic diagnostics for masked, causal and encoder-decoder language models.

`check`, `run`, `load_stimuli`, `load_model`, `measure`, `compare`, `analyse`, `fit`, `cloze`,
`load_run` and `load_multiverse` are the Python API (`lmdiag.api`); nothing is imported before it is
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmdiag.presentable import Display, register_display

if TYPE_CHECKING:
    from lmdiag.api import (
        Runs,
        analyse,
        check,
        cloze,
        compare,
        fit,
        load_model,
        load_multiverse,
        load_run,
        load_stimuli,
        measure,
        run,
    )

__version__ = "0.2.0"
__all__ = [
    "Runs", "__version__", "analyse", "check", "cloze", "compare", "fit", "load_model",
    "load_multiverse", "load_run", "load_stimuli", "measure", "run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Returns a function of the Python API, which is imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'lmdiag' has no attribute {name!r}")
    from lmdiag import api

    return getattr(api, name)


def _display() -> Display:
    """Returns the module that shows results; it is imported when the first one is shown."""
    from lmdiag.report import display

    return display


register_display(_display)


def __dir__() -> list[str]:
    """Returns the names of the Python API, for completion, before they are imported."""
    return __all__
