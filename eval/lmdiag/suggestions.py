"""Close matches for a misspelt name, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CUTOFF = 0.6
"""Smallest similarity (`difflib.SequenceMatcher.ratio`) of a name that is suggested."""

MOST_COMPARED = 2000
"""Of more choices than this, only those that start with the same letters are compared."""


def suggest(name: str, choices: Iterable[str]) -> str:
    """Returns ` (did you mean 'x'?)` for the choice closest to a name; "" where none is close.

    Letter case does not count.

    >>> suggest("wrod", ["token", "word"])
    " (did you mean 'word'?)"
    >>> suggest("anything", ["token", "word"])
    ''
    """
    known = sorted(set(choices))
    if len(known) > MOST_COMPARED:
        known = [choice for choice in known if choice[:3] == name[:3]][:MOST_COMPARED]
    by_lower = {choice.lower(): choice for choice in reversed(known)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=CUTOFF)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""
