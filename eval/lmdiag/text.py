"""Small helpers for messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(name: str, choices: Iterable[str]) -> str:
    """Returns a hint at the most similar of the allowed names, to be appended to a message.

    >>> suggest("allways", ("auto", "always", "never"))
    " (did you mean 'always'?)"
    >>> suggest("xyz", ("auto", "always", "never"))
    ''
    """
    near = difflib.get_close_matches(name, list(choices), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
