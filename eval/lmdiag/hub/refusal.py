"""Why a submission is refused: a few short lines, whatever the submission holds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from lmdiag.hub.text import visible
from lmdiag.schema import BadInput

MAX_REASONS = 10
"""Reasons that are listed for one submission."""

MAX_REASON = 300
"""Characters of one reason."""


class Refused(BadInput):
    """A submission cannot be accepted.

    Attributes:
        reasons: each one line of at most `MAX_REASON` visible characters; at most `MAX_REASONS`.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = bounded(reasons)
        super().__init__("; ".join(self.reasons))


def bounded(reasons: Iterable[str]) -> tuple[str, ...]:
    """Returns the first reasons, each shortened to one visible line."""
    return tuple(shorten(reason) for reason in islice(reasons, MAX_REASONS))


def shorten(text: str, most: int = MAX_REASON) -> str:
    """Returns the text on one line, with hidden characters spelled out and its end cut off."""
    # Spelling out makes the text longer, so it is cut before (the bulk) and after (to the length).
    line = visible(" ".join(text[: 2 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
