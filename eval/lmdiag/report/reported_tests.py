"""The record of a test from which sentences are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from lmdiag.studies.comparison import ALPHA
from lmdiag.text import listing


class ReportedTest(NamedTuple):
    """A difference, or another quantity with a sign, and the test of it.

    A sentence claims what the test says and nothing else: a direction where `is_clear`, no
    difference nowhere, and of what has no test that it has none.

    Attributes:
        subject: what was tested as a sentence names it: a figure, a model, a layer, a predictor.
        text: the value as tables show it, with its sign and unit.
        value: in its own unit.
        p: adjusted where there are several tests; NaN without a test.
        n_tests: tests to which p is adjusted; 1 if it is not.
        n: items, or rows.
    """

    subject: str
    text: str
    value: float
    p: float
    n_tests: int = 1
    n: int = 0

    @property
    def is_tested(self) -> bool:
        """Whether there is a test."""
        return not math.isnan(self.p)

    @property
    def is_clear(self) -> bool:
        """Whether the test rejects."""
        return self.p < ALPHA

    @property
    def direction(self) -> Literal["higher", "lower", ""]:
        """On which side of zero the value lies."""
        if self.value == 0 or math.isnan(self.value):
            return ""
        return "higher" if self.value > 0 else "lower"

    @property
    def named(self) -> str:
        """The subject with its value."""
        return f"{self.subject} ({self.text})"


def in_direction(tests: Sequence[ReportedTest], direction: str) -> list[ReportedTest]:
    """Returns the tests that reject with a value on one side of zero."""
    return [test for test in tests if test.is_clear and test.direction == direction]


def untested(tests: Sequence[ReportedTest]) -> str:
    """Returns the sentence part about values without a test, "SUBJECT: VALUE, no test; ...".

    "" if all were tested.
    """
    named = [f"{test.subject}: {test.text}, no test" for test in tests if not test.is_tested]
    return "; ".join(named)


def untested_in_items(tests: Sequence[ReportedTest]) -> str:
    """Returns the sentence part about values that are the same in every item, or have one item.

    Such values have no variance to test: "surprisal: +1.20 in every item, no test; ...".
    """
    signed = []
    for test in tests:
        sign = "+" if test.value > 0 else ""
        where = "in the one item" if test.n == 1 else "in every item"
        signed.append(test._replace(text=f"{sign}{test.text} {where}"))
    return untested(signed)


def each_p(tests: Sequence[ReportedTest], how: str = "") -> str:
    """Returns what is said of the p-values of tests that reject."""
    each = "each " if len(tests) > 1 else ""
    return f"{each}p < .05{how}"


def of_all(tests: Sequence[ReportedTest], n: int, noun: str) -> str:
    """Returns "both models: A and B" where the tests are all of n, else the names alone."""
    names = listing([test.named for test in tests])
    if len(tests) < n or n == 1:
        return names
    return f"{'both' if n == 2 else f'all {n}'} {noun}: {names}"
