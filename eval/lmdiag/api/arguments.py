"""Checks of the arguments of functions of the Python API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmdiag.types import BadInput


def check_type(name: str, value: object, types: type | tuple[type, ...], description: str) -> None:
    """Raises `BadInput` if an argument of a function has none of the types.

    Args:
        name: name of the argument, for the message.
        description: what the argument must be, for the message, e.g. "a file or a DataFrame".
    """
    if not isinstance(value, types):
        raise BadInput(f"{name} must be {description}, not {type(value).__name__}")


def as_names(names: str | Sequence[Any]) -> tuple[Any, ...]:
    """Returns one name or several as a tuple: "item" becomes ("item",)."""
    return (names,) if isinstance(names, str) else tuple(names)
