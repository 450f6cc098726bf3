"""What the adjusted tests of a comparison say: sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lmdiag.report.reported_tests import ReportedTest, in_direction, untested
from lmdiag.text import MOST_NAMED, capital, listing, listing_of_first, visible

_PLACE = re.compile(r"(layer|step) \d+")
"""Matches what layers and checkpoints are called; other names are those of models."""


def comparison_findings(new: str, base: str, tests: Sequence[ReportedTest]) -> Iterator[str]:
    """Yields in which figures a model is higher or lower than another one, by adjusted p.

    `tests` are of figures: the new model's less that of the base. Figures that do not differ in any
    item have no test. More than three figures are counted, not named.
    """
    if not tests:
        return
    subject = capital(new) if _PLACE.fullmatch(new) else visible(new)  # names stay as they are
    base = visible(base)
    names = f"{visible(new)} and {base}"
    n = len(tests)
    figures = f"the {n} compared figures" if n > 1 else tests[0].subject
    clear = [test for test in tests if test.is_clear]
    tested = [test for test in tests if test.is_tested]
    equal = [test for test in tests if not test.is_tested and not test.value]
    if len(equal) == n:
        yield f"In {figures}, {names} do not differ in any item."
        return
    parts = []
    for direction in ("higher", "lower"):
        if group := sorted(in_direction(tests, direction), key=lambda test: test.p):
            parts.append(f"{direction} than {base} in {listing_of_first([x.named for x in group])}")
    if parts:
        yield f"{subject} is {listing(parts)} (adjusted p < .05)."
    unclear = [test.subject for test in tested if not test.is_clear]
    if unclear and not clear:
        where = figures if n == 1 else f"any of {figures}"
        if len(unclear) < n:
            where = listing(unclear)
            if len(unclear) > MOST_NAMED:
                where = f"any of the {len(unclear)} figures in which they differ"
        yield f"No difference between {names} can be told from chance in {where}."
    elif unclear:
        where = listing(unclear)
        if len(unclear) > MOST_NAMED:
            where = f"{len(unclear)} other figures"
        yield f"The difference in {where} cannot be told from chance."
    if equal:
        where = listing([test.subject for test in equal])
        if len(equal) > MOST_NAMED:
            where = f"the other {len(equal)} figures"
        they = "they" if parts or unclear else names
        yield f"In {where}, {they} do not differ in any item."
    if untested_text := untested([test for test in tests if test.value]):
        yield f"{untested_text}."


def comparisons_findings(base: str, pairs: Mapping[str, Sequence[ReportedTest]]) -> Iterator[str]:
    """Yields, for each of some models, in how many figures it is higher or lower than the base.

    Of a single one, the figures are named: see `comparison_findings`.
    """
    if len(pairs) == 1:
        for new, tests in pairs.items():
            yield from comparison_findings(new, base, tests)
        return
    counts = []
    for new, tests in pairs.items():
        n_higher = len(in_direction(tests, "higher"))
        n_lower = len(in_direction(tests, "lower"))
        sides = [f"{word} in {n}" for word, n in (("higher", n_higher), ("lower", n_lower)) if n]
        counts.append(f"{visible(new)} is {listing(sides or [_without_verdict(tests)])}")
    n = max((len(tests) for tests in pairs.values()), default=0)
    if n:
        figures = f"the {n} compared figures" if n > 1 else "the compared figure"
        yield f"Against {visible(base)}, of {figures} {listing(counts)} (adjusted p < .05)."


def _without_verdict(tests: Sequence[ReportedTest]) -> str:
    """What is said of a model that is higher or lower in no figure."""
    if not tests:
        return "not compared"
    is_equal = not any(test.is_tested or test.value for test in tests)
    return "the same in every item" if is_equal else "not distinguishable in any"
