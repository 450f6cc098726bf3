"""Why a submission is refused: a few short lines, whatever the submission holds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from lmdiag.schema import BadInput
from lmdiag.text import shortened

MAX_REASONS = 10
"""Reasons that are listed for one submission."""


class Refused(BadInput):
    """A submission cannot be accepted.

    Attributes:
        reasons: each one line of at most 300 visible characters; at most `MAX_REASONS`.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(map(shortened, islice(reasons, MAX_REASONS)))
        super().__init__("; ".join(self.reasons))


def refuse(reasons: Iterable[str]) -> None:
    """Raises `Refused` if there are any reasons."""
    if listed := list(reasons):
        raise Refused(listed)
