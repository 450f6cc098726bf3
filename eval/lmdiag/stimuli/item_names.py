"""Names of items that have their condition in them, as 1_sg and 1_pl."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.stimuli.kinds import MOST_LABELS, RELATED, Distinct, shared_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEPARATORS = ("_", "-", ".", "/", " ", "")


class _Parts(NamedTuple):
    """Names of items in two parts.

    Attributes:
        split: how `--split` divides them.
        items: number of the first part of each name, or of the second, (n names,).
        levels: number of the other part, the condition.
    """

    split: str
    items: NDArray[np.intp]
    levels: NDArray[np.intp]

    def is_crossed(self) -> bool:
        """Whether there are 2 to 6 levels, of which most items have several."""
        import numpy as np

        sizes = np.bincount(self.items)
        n_levels = int(self.levels.max()) + 1
        return 2 <= n_levels <= MOST_LABELS and len(sizes) > 1 and bool((sizes > 1).mean() > 0.5)


def level_parts(level: str, separator: str, n: int = 0) -> list[str]:
    """Returns the parts of a level.

    Without a separator these are its characters, or, if they are not `n`, its numbers and what
    stands between them.

    >>> level_parts("Gram_Match", "_"), level_parts("12a", "", 2)
    (['Gram', 'Match'], ['12', 'a'])
    """
    if separator:
        return [part.strip() for part in level.split(separator)]
    return [*level] if n in (0, len(level)) else re.findall(r"\d+|\D+", level)


def split_of_names(
    items: Distinct,
    texts: Sequence[str] | None,
    others: Mapping[str, Distinct],
    column: str = "item",
) -> str:
    """Returns which names of items have a condition in them and what divides them; "" for none.

    The condition is one of two parts of a name. It has 2 to 6 levels, of which most items have
    several. Texts of these have words in common; in a table without texts, another column names the
    same levels.

    Args:
        items: names of the rows' items.
        texts: of the rows; None in a table of responses.
        others: the columns of the table beside these.
        column: of the names.
    """
    import numpy as np

    for parts in _readings(items.levels):
        if not parts.is_crossed():
            continue
        if texts is None:
            is_divided = any(_names_levels(x, items, parts.levels) for x in others.values())
        else:
            of_rows = np.where(items.codes < 0, -1, parts.items[items.codes])
            within, across = shared_words(texts, of_rows)
            is_divided = within >= RELATED and within > across
        if is_divided:
            first = int(np.flatnonzero(np.bincount(parts.items)[parts.items] > 1)[0])
            names = [
                items.levels[n] for n in np.flatnonzero(parts.items == parts.items[first]).tolist()
            ]
            has = f"names of items have a condition in them, as {names[0]} and {names[1]}"
            return f"{has}: --split {quote(f'{column}={parts.split}')} divides them"
    return ""


def _readings(names: Sequence[str]) -> Iterator[_Parts]:
    """Yields how names are divided into two parts, of which either is the item."""
    import numpy as np
    from pandas import factorize

    for separator in _SEPARATORS:
        if len(names) > 1 and all(len(level_parts(name, separator, 2)) == 2 for name in names):
            parts = zip(*(level_parts(name, separator, 2) for name in names), strict=True)
            first, second = (factorize(np.array(part, dtype=object))[0] for part in parts)
            yield _Parts(f"{separator}:item,factor_2", first, second)
            yield _Parts(f"{separator}:factor_1,item", second, first)


def _names_levels(column: Distinct, items: Distinct, levels: NDArray[np.intp]) -> bool:
    """Whether a column has one value for each of the levels in names of items."""
    is_filled = (items.codes >= 0) & (column.codes >= 0)
    pairs = {*zip(levels[items.codes[is_filled]], column.codes[is_filled], strict=True)}
    return len(pairs) == len(column.levels) == int(levels.max()) + 1
