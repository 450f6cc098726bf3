"""Checks of the arguments of functions of the Python API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmdiag.types import (
    BadInput,
)

if TYPE_CHECKING:
    pass


def check_type(name: str, value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Refuses an argument of another type than `kinds`, which a message calls `what`."""
    if not isinstance(value, kinds):
        raise BadInput(f"{name} must be {what}, not {type(value).__name__}")


def as_names(names: str | Sequence[Any]) -> tuple[Any, ...]:
    """One name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)
