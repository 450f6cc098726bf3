"""Columns of judgments, and the options that compare good sentences with bad ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import numpy as np

from lmdiag.stimuli.values.codes import combined
from lmdiag.stimuli.values.kinds import Distinct

# levels of judgments; those of a column of any name, and those of a column that is named so
_GOOD = frozenset(("good", "ok", "okay", "correct", "grammatical", "gram", "acceptable", "✓"))
_BAD = frozenset(("bad", "incorrect", "wrong", "ungrammatical", "ungram", "unacceptable"))
_BAD |= {"*", "**", "?", "??", "?*", "*?", "#", "%"}
_TRUE = frozenset(("1", "true", "yes", "y", "t", "+", "g"))
_FALSE = frozenset(("0", "false", "no", "n", "f", "-", "ug", "b"))
_IS_JUDGMENT = re.compile(r"gram|accept|judg|good|correct|label|status|formed|\bok\b").search


def comparing_options(
    columns: Mapping[str, Distinct], items: Distinct, item: Sequence[str], conditions: Sequence[str]
) -> str:
    """Returns `--good` and `--contrast` for a column that says which row is good; "" for none.

    The rows of an item, or of an item and a level of a condition, have one good row and some that
    are bad.

    Args:
        columns: of the table.
        items: of the rows.
        item: columns that name the items.
        conditions: columns that are conditions.
    """
    for name, values in columns.items():
        good = _good_level(name, values)
        if good is None:
            continue
        levels = [*values.levels, ""]
        is_good = np.array([level == good for level in levels])[values.codes]
        for keys in _keys([x for x in conditions if x != name]):
            cells = combined(items.codes, *(columns[key].codes for key in keys))
            n_rows = np.bincount(cells[cells >= 0])
            n_good = np.bincount(cells[(cells >= 0) & is_good], minlength=len(n_rows))
            if len(n_rows) and (n_good == 1).all() and (n_rows > 1).all():
                contrast = " ".join(map(quote, (*item, *keys)))
                return f"--good {quote(f'{name}={good}')} --contrast {contrast}"
    return ""


def _keys(conditions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields the columns that may tell contrasts of an item apart."""
    yield ()
    yield from ((name,) for name in conditions)
    if len(conditions) > 1:
        yield tuple(conditions)


def _good_level(name: str, values: Distinct) -> str | None:
    """The one level of good rows, of a column whose other levels are bad; "" for empty cells."""
    good, bad = _GOOD, _BAD
    if _IS_JUDGMENT(name.casefold()):
        good, bad = _GOOD | _TRUE, _BAD | _FALSE
    found = [level for level in values.levels if level.strip().casefold() in good]
    others = [level for level in values.levels if level not in found]
    if (values.codes < 0).any():
        found.append("")
    if len(found) != 1 or not others:
        return None
    return found[0] if all(level.strip().casefold() in bad for level in others) else None
