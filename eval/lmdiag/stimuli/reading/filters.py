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

_WHOLE_NUMBER = re.compile(r"\A(\d+)\.0+\Z")
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
        """Whether it names values by = or !=; the other signs compare values by size."""
        return self.sign in ("=", "!=")

    def is_met(self, values: Sequence[str]) -> NDArray[np.bool_]:
        """Returns which values of a column meet the condition, (n rows,); a missing one is "".

        The sign is = or !=. `BadInput` names the first value that no row has, and those that rows
        have.
        """
        import numpy as np

        named_levels = {*self._named_levels(dict.fromkeys(values))}
        is_named = np.array([value in named_levels for value in values], dtype=bool)
        return is_named if self.sign == "=" else ~is_named

    def _named_levels(self, levels: Collection[str]) -> Iterator[str]:
        """Yields the levels of the column that the value of the condition names.

        Commas separate levels, and may stand in a level, too: for the levels "a,b" and "c", the
        value "a,b,c" names both. So the longest text up to a comma that is a level is taken, and
        then the rest of the value is read in the same way. `BadInput` if a text is not a level.
        """
        parts = self.value.split(",")  # texts between commas that are still to be read
        while parts:
            for n in range(len(parts), 0, -1):  # of the first n parts, joined again
                level = _level_like(",".join(parts[:n]).strip(), levels)
                if level is not None:
                    break
            else:
                existing = [repr(x) if "," in x else shortened(x) for x in levels if x]
                if "" in levels:
                    existing.append("empty cells")
                has = f"in {self.column}, which has {', '.join(existing):.600}"
                raise BadInput(f"no row has {parts[0].strip()!r} {has}")
            yield level
            parts = parts[n:]


def _level_like(text: str, levels: Collection[str]) -> str | None:
    """The level that is this text, or else the only one that is spelled like it; else None.

    >>> _level_like("true", ["TRUE", "FALSE"]), _level_like("1", ["1.0", "2.0"])
    ('TRUE', '1.0')
    >>> _level_like("1", ["01", "1.10"]) is None
    True
    """
    if text in levels:
        return text
    spellings = [level for level in levels if _plain(level) == _plain(text)]
    return spellings[0] if len(spellings) == 1 else None


def _plain(level: str) -> str:
    """A level without letter case, outer blanks and .0, to compare spellings.

    Truth values are numbers: "TRUE" and "1.0" are "1"; "NA" and other missing values are "".
    """
    text = unicodedata.normalize("NFC", level).strip()
    text = _WHOLE_NUMBER.sub(r"\1", text)
    if text in MISSING:
        return ""
    return str(TRUTH.get(text, text)).casefold()
