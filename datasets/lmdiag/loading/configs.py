"""The configs of the data set: their parsers and their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.diagnostics import CORE, built_in

from .agreement import agreement, verbs
from .diagnostics import cprag102, neg136, role88
from .lines import Row

if TYPE_CHECKING:
    import datasets

PARSERS: dict[str, Callable[..., Iterator[Row]]] = {
    parser.__name__: parser for parser in (cprag102, role88, neg136, agreement, verbs)
}
"""Config -> parser; its arguments are the config's source files, in `sources.json`'s order."""


def rows(config: str, paths: tuple[Path, ...]) -> Iterator[Row]:
    """Yields the rows of a config from its source files."""
    return PARSERS[config](*paths)


def features(config: str) -> datasets.Features:
    """Returns the features of a config: the columns that the package declares for it."""
    from datasets import Features, List, Value

    if config == "verbs":
        return Features(dict.fromkeys(("singular", "plural"), Value("string")))
    types = {
        "text": Value("string"),
        "number": Value("float64"),
        "boolean": Value("bool"),
        "words": List(Value("string")),
    }
    columns = (*CORE, *built_in()[config].columns)
    return Features({column.name: types[column.type] for column in columns})
