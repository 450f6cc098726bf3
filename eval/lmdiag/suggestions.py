"""Close matches for a misspelt name, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CUTOFF = 0.6
"""Smallest similarity (`difflib.SequenceMatcher.ratio`) of a name that is suggested."""

MOST_COMPARED = 2000
"""Of more choices than this, only those with the longest common beginning are compared."""


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
        known.sort(key=lambda choice: _shared_start(choice, name), reverse=True)
        known = known[:MOST_COMPARED]
    by_lower = {choice.lower(): choice for choice in reversed(known)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=CUTOFF)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def _shared_start(a: str, b: str) -> int:
    """Returns the number of letters that two names have in common at their beginning."""
    pairs = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))
