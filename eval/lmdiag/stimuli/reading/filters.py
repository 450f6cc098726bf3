"""Conditions on the values of a column, as `--filter` takes them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.tables.table_files import MISSING, TRUTH
from lmdiag.text import shortened
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WHOLE = re.compile(r"\A(\d+)\.0+\Z")
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

    def is_met(self, values: Sequence[str]) -> NDArray[np.bool_]:
        """Returns which of the values of a column meet it, (n rows,); a missing one is "".

        `BadInput` names the first value that no row has, and those that rows have.
        """
        import numpy as np

        named = {*self._levels(dict.fromkeys(values))}
        return np.array([(value in named) == (self.sign == "=") for value in values], dtype=bool)

    def _levels(self, levels: Collection[str]) -> Iterator[str]:
        """Yields the levels that it names, which stand between commas, and may have some."""
        parts = self.value.split(",")
        while parts:
            for n in range(len(parts), 0, -1):
                level = _level(",".join(parts[:n]).strip(), levels)
                if level is not None:
                    break
            else:
                there = [repr(x) if "," in x else shortened(x) for x in levels if x]
                there += ["empty cells"] if "" in levels else []
                has = f"in {self.column}, which has {', '.join(there):.600}"
                raise BadInput(f"no row has {parts[0].strip()!r} {has}")
            yield level
            parts = parts[n:]


def _level(text: str, levels: Collection[str]) -> str | None:
    """The level that a text is, or else is a spelling of; None for none, or several.

    >>> _level("true", ["TRUE", "FALSE"]), _level("1", ["1.0", "2.0"]), _level("1", ["01", "1.10"])
    ('TRUE', '1.0', None)
    """
    if text in levels:
        return text
    alike = [level for level in levels if _plain(level) == _plain(text)]
    return alike[0] if len(alike) == 1 else None


def _plain(level: str) -> str:
    """A level without letter case, outer blanks and .0; truth values as numbers, "" if missing."""
    text = unicodedata.normalize("NFC", level).strip()
    text = _WHOLE.sub(r"\1", text)
    return "" if text in MISSING else str(TRUTH.get(text, text)).casefold()
