"""Columns of judgments, and the options that compare good sentences with bad ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import numpy as np

from lmdiag.stimuli.values.codes import combine_codes
from lmdiag.stimuli.values.kinds import DistinctValues

# levels of judgments; those of a column of any name, and those of a column that is named so
_GOOD = frozenset(("good", "ok", "okay", "correct", "grammatical", "gram", "acceptable", "✓"))
_BAD = frozenset(("bad", "incorrect", "wrong", "ungrammatical", "ungram", "unacceptable"))
_BAD |= {"*", "**", "?", "??", "?*", "*?", "#", "%"}
_TRUE = frozenset(("1", "true", "yes", "y", "t", "+", "g"))
_FALSE = frozenset(("0", "false", "no", "n", "f", "-", "ug", "b"))
_names_judgment = re.compile(r"gram|accept|judg|good|correct|label|status|formed|\bok\b").search


def comparing_options(
    columns: Mapping[str, DistinctValues],
    items: DistinctValues,
    item: Sequence[str],
    conditions: Sequence[str],
) -> str:
    """Returns `--good` and `--contrast` for a column that says which row is good; "" for none.

    For example, "--good grammatical=yes --contrast item number": each item has, at each level of
    number, one row with "yes" in the column grammatical, and at least one row with "no". Rows are
    compared within items alone, within items and each condition, or within items and all
    conditions; the first of these choices that gives one good row and bad rows is returned.

    Args:
        columns: of the table.
        items: of the rows.
        item: columns that name the items.
        conditions: columns that are conditions.
    """
    for name, values in columns.items():
        good_level = _good_level(name, values)
        if good_level is None:
            continue
        levels = [*values.levels, ""]  # the last one is for code -1
        is_good = np.array([level == good_level for level in levels])[values.codes]
        for keys in _contrast_keys([other for other in conditions if other != name]):
            # number of the contrast of each row, as of an item at one level of number
            contrasts = combine_codes(items.codes, *(columns[key].codes for key in keys))
            is_filled = contrasts >= 0
            n_rows = np.bincount(contrasts[is_filled])
            n_good = np.bincount(contrasts[is_filled & is_good], minlength=len(n_rows))
            # each contrast has one good row, and other rows, which are bad
            if len(n_rows) and (n_good == 1).all() and (n_rows > 1).all():
                contrast = " ".join(quote(key) for key in (*item, *keys))
                return f"--good {quote(f'{name}={good_level}')} --contrast {contrast}"
    return ""


def _contrast_keys(conditions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields the columns that may tell contrasts of an item apart: none, each one, and all."""
    yield ()
    for name in conditions:
        yield (name,)
    if len(conditions) > 1:
        yield tuple(conditions)


def _good_level(name: str, values: DistinctValues) -> str | None:
    """Returns the one level of good rows, of a column whose other levels are bad; None for others.

    An empty cell counts as good, as beside * for a bad sentence: the level is then "".
    """
    good_words = _GOOD
    bad_words = _BAD
    if _names_judgment(name.casefold()):
        good_words |= _TRUE
        bad_words |= _FALSE
    good_levels = [level for level in values.levels if level.strip().casefold() in good_words]
    other_levels = [level for level in values.levels if level not in good_levels]
    if (values.codes < 0).any():
        good_levels.append("")
    if len(good_levels) != 1 or not other_levels:
        return None
    are_bad = all(level.strip().casefold() in bad_words for level in other_levels)
    return good_levels[0] if are_bad else None
