"""The diagnostics, one file each, and `custom` for a user's own items.

A module of this package with a `Diagnostic` named `DIAGNOSTIC` is a diagnostic: nothing else has to
know of it.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

from lmdiag.diagnostics.base import (
    CORE_COLUMNS,
    NEEDED_COLUMNS,
    Chart,
    Column,
    Diagnostic,
    LeaderboardColumn,
    Line,
    Perturbation,
    TableShape,
)
from lmdiag.diagnostics.custom import DIAGNOSTIC as CUSTOM

__all__ = [
    "CORE_COLUMNS", "NEEDED_COLUMNS", "Chart", "Column", "Diagnostic", "LeaderboardColumn", "Line",
    "Perturbation", "TableShape", "built_in", "get",
]  # fmt: skip


@cache
def built_in() -> dict[str, Diagnostic]:
    """Returns name -> diagnostic for all built-in ones, in their order."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    declared = [module.DIAGNOSTIC for module in modules if hasattr(module, "DIAGNOSTIC")]
    ordered = sorted(declared, key=lambda diagnostic: (diagnostic.position, diagnostic.name))
    return {diagnostic.name: diagnostic for diagnostic in ordered if diagnostic.name != "custom"}


def get(task: str) -> Diagnostic:
    """Returns the diagnostic of a task; `custom`, under the name of the task, for any other."""
    return built_in().get(task) or replace(CUSTOM, name=task, title=task, short_title=task)
