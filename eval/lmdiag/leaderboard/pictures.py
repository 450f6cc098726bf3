"""Stub."""

from typing import Any


def pictures(rows: Any) -> list[Any]:
    return []
