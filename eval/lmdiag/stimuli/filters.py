"""Conditions on the values of a column, as `--filter` takes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CONDITION = re.compile(r"\s*(.+?)\s*(!=|>=|<=|=|>|<)\s*(.*?)\s*", re.DOTALL)


class Condition(NamedTuple):
    """A condition on the values of a column.

    Attributes:
        text: as it is written, e.g. "kind=a,b".
        column: name of the column.
        sign: one of = != > < >= <=.
        value: what is right of the sign.
    """

    text: str
    column: str
    sign: str
    value: str

    @classmethod
    def of(cls, text: str) -> Condition | None:
        """Returns the condition that a text is; None for another text."""
        match = _CONDITION.fullmatch(text)
        return cls(*match.group(0, 1, 2, 3)) if match else None

    @property
    def names_values(self) -> bool:
        """Whether it names values, and does not compare them by size."""
        return self.sign in ("=", "!=")

    def values(self, levels: Collection[str]) -> list[str]:
        """Returns the values that it names: one that has commas, or several between them."""
        if self.value in levels:
            return [self.value]
        return [part.strip() for part in self.value.split(",")]

    def is_met(self, levels: Sequence[str]) -> NDArray[np.bool_]:
        """Returns which rows have one of the values, or, for !=, none of them, (n rows,)."""
        import numpy as np

        wanted = {*self.values(levels)}
        return np.array([(level in wanted) == (self.sign == "=") for level in levels], dtype=bool)
