"""What the options of several commands share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter, Token

from lmdiag.cli.exits import say
from lmdiag.files import is_file, read_text, user_path
from lmdiag.models.loading.options import Loading, Serving
from lmdiag.protocol import Conventions, Protocol, checked_ranks, checked_threshold
from lmdiag.types import BadInput

RECORD = Parameter(name="*")
"""Marks a dataclass whose fields are options of a command, or a part of them."""


def section(title: str) -> Parameter:
    """Returns the mark of a record whose options stand below a title in the help."""
    return Parameter(name="*", group=Group.create_ordered(title))


# ---- types of options ----------------------------------------------------------------------------


def _integer(_: Any, tokens: Sequence[Token]) -> int:
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"must be a whole number, not {tokens[0].value!r}") from None


def _counts(_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    for text in (token.value for token in tokens):
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"must be a whole number of at least 1, not {text!r}")
    return tuple(int(token.value) for token in tokens)


def _count(_: Any, tokens: Sequence[Token]) -> int:
    return _counts(int, tokens)[0]


def _batch_size(_: Any, tokens: Sequence[Token]) -> int | None:
    return None if tokens[0].value == "auto" else _count(int, tokens)


def _comma_separated(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(name for token in tokens for name in token.value.split(","))


Count = Annotated[int, Parameter(converter=_count)]
Ranks = Annotated[tuple[int, ...], Parameter(converter=_counts)]
Seed = Annotated[int, Parameter(converter=_integer)]
Names = Annotated[tuple[str, ...], Parameter(converter=_comma_separated)]

DataOfRuns = Annotated[
    str | None,
    Parameter(
        help="data set of the runs, if it has been moved since, or its id on the Hub (default: the "
        "one they were made on)"
    ),
]
Overwrite = Annotated[bool, Parameter(help="replace existing files")]
Json = Annotated[bool, Parameter(help="print one JSON document, nothing else")]


# ---- records -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The options of the measures."""

    k: Ranks = ()
    """ranks k of accuracy@k (default: 1 5)"""
    threshold: float | None = None
    """probability difference P of sensitivity@P (default: 0.01)"""

    def of(self, protocol: Protocol) -> Protocol:
        """Returns the protocol with the ranks and the threshold that were given."""
        k = checked_ranks(self.k) if self.k else protocol.k
        threshold = protocol.threshold if self.threshold is None else self.threshold
        return replace(protocol, k=k, threshold=checked_threshold(threshold))


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How answers are computed."""

    batch_size: Annotated[int | None, Parameter(converter=_batch_size, show_default=False)] = None
    """contexts or sentences per batch, or auto (default)"""
    quiet: bool = False
    """do not show progress"""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How models read whole sentences."""

    revision: str | None = None
    """branch, tag or commit of the model"""
    conventions: Annotated[Conventions, section("Scoring")] = Conventions()
    loading: Annotated[Loading, section("Loading the model")] = Loading()
    serving: Annotated[Serving, section("A model behind a server")] = Serving()
    batching: Annotated[Batching, section("Running")] = Batching()

    def keywords(self) -> dict[str, Any]:
        """Returns the options of `lmdiag.load_model`."""
        records = vars(self.conventions), vars(self.loading), vars(self.serving)
        return {"revision": self.revision} | {k: v for record in records for k, v in record.items()}


# ---- files and warnings --------------------------------------------------------------------------


def text_or_file(text: str) -> str:
    """Returns a text, or the content of the file of that name, without its last end of line."""
    path = user_path(text)
    return read_text(path).removesuffix("\n") if is_file(path) else text


def check_new_file(file: Path, suffixes: Sequence[str], *, overwrite: bool) -> None:
    """Refuses a file that a command cannot write or must not replace.

    Raises:
        BadInput: its name ends in none of the suffixes, it exists, or its directory does not.
    """
    if file.suffix not in suffixes:
        raise BadInput(f"{file}: the file name must end in {', '.join(suffixes)}")
    if file.exists() and not overwrite:
        raise BadInput(f"{file} exists already: choose another name, or add --overwrite")
    if not file.parent.is_dir():
        raise BadInput(f"no directory {file.parent}: make it first")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Prints the warnings of the Python API as lines on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"lmdiag: warning: {message}")
        yield
