"""What the options of several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter, Token

from lmdiag.files import is_file, read_text, user_path
from lmdiag.protocol import Protocol, checked_ranks, checked_threshold
from lmdiag.types import BadInput

RECORD = Parameter(name="*")
"""Marks a dataclass whose fields are options of a command, or a part of them."""


def section(title: str) -> Parameter:
    """Returns the mark of a record whose options stand below a title in the help."""
    return Parameter(name="*", group=Group.create_ordered(title))


def whole_number(_: Any, tokens: Sequence[Token], least: int = 1) -> int:
    """Returns a whole number from 1 up."""
    text = tokens[0].value
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"must be a whole number of at least {least}, not {text!r}")
    return int(text)


def _whole_numbers(_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    return tuple(whole_number(int, [token]) for token in tokens)


def _integer(_: Any, tokens: Sequence[Token]) -> int:
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"must be a whole number, not {tokens[0].value!r}") from None


def _batch_size(_: Any, tokens: Sequence[Token]) -> int | None:
    return None if tokens[0].value == "auto" else whole_number(int, tokens)


def comma_separated(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Returns the names of a list such as `unit,prompt`, or of several."""
    return tuple(name for token in tokens for name in token.value.split(","))


Count = Annotated[int, Parameter(converter=whole_number)]
Ranks = Annotated[tuple[int, ...], Parameter(converter=_whole_numbers)]
Seed = Annotated[int, Parameter(converter=_integer)]
Names = Annotated[tuple[str, ...], Parameter(converter=comma_separated)]


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
