"""Close matches for a misspelt name, for error messages."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

_MIN_SIMILARITY = 0.6
"""Smallest `difflib.SequenceMatcher.ratio` of a suggested name."""

_MOST_COMPARED = 2000
"""Of more choices than this, only those with the longest common beginning are compared."""


def suggest(name: str, choices: Iterable[str]) -> str:
    """Returns ` (did you mean 'x'?)` for the choice closest to a name; "" if none is close.

    Letter case is ignored.

    >>> suggest("wrod", ["token", "word"])
    " (did you mean 'word'?)"
    >>> suggest("anything", ["token", "word"])
    ''
    """
    known = sorted(set(choices))
    if len(known) > _MOST_COMPARED:
        shared = {choice: len(os.path.commonprefix([choice, name])) for choice in known}  # noqa: RUF071
        known.sort(key=shared.__getitem__, reverse=True)
        known = known[:_MOST_COMPARED]
    by_lower = {choice.lower(): choice for choice in reversed(known)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_MIN_SIMILARITY)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""
