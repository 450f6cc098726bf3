"""The diagnostics, each in a file with its extended sets, and `own_data` for data of any name.

Every `Diagnostic` that a module of this package defines is one: nothing else has to know of it.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

from lmdiag.diagnostics.base import (
    CHOICE_HEADLINES,
    CORE,
    SENTENCES,
    Chart,
    Column,
    Diagnostic,
    FigureSelection,
    Finding,
    TableShape,
)

__all__ = [
    "CHOICE_HEADLINES", "CORE", "SENTENCES", "Chart", "Column", "Diagnostic", "FigureSelection",
    "Finding", "TableShape", "built_in", "declared", "get", "word_columns",
]  # fmt: skip


@cache
def declared() -> dict[str, Diagnostic]:
    """Returns name -> diagnostic for all modules of this package, in the order of reports.

    Every `Diagnostic` at the top of a module counts: a new one needs no list of names.
    """
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    values = [value for module in modules for value in vars(module).values()]
    diagnostics = [value for value in values if isinstance(value, Diagnostic)]
    ordered = sorted(diagnostics, key=lambda diagnostic: (diagnostic.position, diagnostic.name))
    return {diagnostic.name: diagnostic for diagnostic in ordered}


def built_in() -> dict[str, Diagnostic]:
    """Returns name -> diagnostic for all built-in ones, in their order."""
    return {name: diagnostic for name, diagnostic in declared().items() if not diagnostic.is_form}


@cache
def word_columns() -> frozenset[str]:
    """Returns the names of all columns whose values are lists of words."""
    names: set[str] = set()
    for diagnostic in declared().values():
        columns = (*diagnostic.core, *diagnostic.columns)
        names.update(column.name for column in columns if column.type == "words")
    return frozenset(names)


def forms() -> list[str]:
    """Returns the forms of own data that have a name: all but rows with a word at a blank.

    Those have the form "", and the declaration `custom`.
    """
    return [
        name for name, diagnostic in declared().items() if diagnostic.is_form and name != "custom"
    ]


def get(task: str, form: str = "") -> Diagnostic:
    """Returns what is declared of a task: its rows, measures, tables and charts.

    A built-in diagnostic has the name of its task. A user's own task has none: it gets a copy of
    the declaration of its form of data (words at blanks, sentences, pairs ...), with the name of
    the task as its name and titles.

    Args:
        task: name of the task.
        form: of own data, see `lmdiag.stimuli.Stimuli.form`; "" for rows with a blank, and for the
            tasks of built-in diagnostics.
    """
    if not form and task in built_in():
        return built_in()[task]
    form_of_data = declared()[form or "custom"]
    return replace(form_of_data, name=task, title=task, short_title=task)
