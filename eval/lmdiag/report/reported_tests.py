"""The record of a test from which sentences are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from lmdiag.studies.comparison import ALPHA
from lmdiag.text import listing

Direction = Literal["higher", "lower"]
"""On which side of zero a value lies: above or below."""

DIRECTIONS: tuple[Direction, ...] = ("higher", "lower")
"""In the order of sentences."""


class ReportedTest(NamedTuple):
    """A difference, or another quantity with a sign, and the test of it.

    Sentences claim a direction only where `is_clear`. They never claim that there is no difference,
    and of a value without a test they say that it has none.

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
        """Whether there is a test of the value, and so a p."""
        return not math.isnan(self.p)

    @property
    def is_clear(self) -> bool:
        """Whether the test rejects: p is below .05."""
        return self.p < ALPHA

    @property
    def direction(self) -> Direction | Literal[""]:
        """On which side of zero the value lies; "" for zero and for an undefined value."""
        if self.value == 0 or math.isnan(self.value):
            return ""
        return "higher" if self.value > 0 else "lower"

    @property
    def subject_with_value(self) -> str:
        """The subject and its value in brackets: "sensitivity (+12.5 points)"."""
        return f"{self.subject} ({self.text})"


def clear_tests(tests: Sequence[ReportedTest], direction: Direction) -> list[ReportedTest]:
    """Returns the tests that reject with a value above zero ("higher") or below ("lower")."""
    return [test for test in tests if test.is_clear and test.direction == direction]


def untested_values(tests: Sequence[ReportedTest]) -> str:
    """Returns the values without a test as part of a sentence: "SUBJECT: VALUE, no test; ...".

    "" if all were tested.
    """
    untested = [test for test in tests if not test.is_tested]
    return "; ".join(f"{test.subject}: {test.text}, no test" for test in untested)


def untested_item_values(tests: Sequence[ReportedTest]) -> str:
    """Returns `untested_values` where they are means over items, as part of a sentence.

    Such a value has no test since it is the same in every item, or there is only one item:
    "gpt2: +1.20 in every item, no test; ...".
    """
    tests_with_items = []
    for test in tests:
        sign = "+" if test.value > 0 else ""
        where = "in the one item" if test.n == 1 else "in every item"
        tests_with_items.append(test._replace(text=f"{sign}{test.text} {where}"))
    return untested_values(tests_with_items)


def p_below_alpha(tests: Sequence[ReportedTest], how_adjusted: str = "") -> str:
    """Returns the p of tests that reject in words: "p < .05 (Holm)", of several "each p < .05".

    Args:
        how_adjusted: what stands behind p, with a blank before it.
    """
    start = "each " if len(tests) > 1 else ""
    return f"{start}p < .05{how_adjusted}"


def subjects_with_values(tests: Sequence[ReportedTest], n: int, noun: str) -> str:
    """Returns the subjects of tests with their values as a list in a sentence.

    If these are all of n, with their number: "both models: A (1.2) and B (0.8)".

    Args:
        n: number of all subjects.
        noun: what the subjects are, in the plural.
    """
    names = listing([test.subject_with_value for test in tests])
    if len(tests) < n or n == 1:
        return names
    number = "both" if n == 2 else f"all {n}"
    return f"{number} {noun}: {names}"
