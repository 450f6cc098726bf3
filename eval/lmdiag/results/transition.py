"""Access to records by keys, until every room uses attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class AsMapping:
    """Reads attributes as keys."""

    def __getitem__(self, key: str) -> Any:
        try:
            return getattr(self, key)
        except AttributeError:
            raise KeyError(key) from None

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)

    def keys(self) -> Iterator[str]:
        return iter(vars(self))

    def items(self) -> Any:
        return vars(self).items()

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and hasattr(self, key)
