"""Sentences on what the adjusted tests of a comparison of models say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lmdiag.report.reported_tests import DIRECTIONS, ReportedTest, clear_tests, untested_values
from lmdiag.text import MOST_NAMED, capital, listing, listing_of_first, visible

_LAYER_OR_STEP = re.compile(r"(layer|step) \d+")
"""Matches what layers and checkpoints are called; other names are those of models."""


def findings_on_pair(new: str, base: str, tests: Sequence[ReportedTest]) -> Iterator[str]:
    """Yields sentences on the figures of two models: which are higher, lower, unclear and equal.

    For example: "B is higher than A in sensitivity (+12.5 points) (adjusted p < .05).", "The
    difference in accuracy cannot be told from chance.", "In rank, they do not differ in any item."
    More than three figures are counted, not named.

    Args:
        new, base: names of the models.
        tests: one per figure; the value is the figure of the new model minus that of the base. A
            figure that does not differ in any item has no test, and its value is 0.
    """
    if not tests:
        return
    # names of models stay as they are at the beginning of a sentence
    subject = capital(new) if _LAYER_OR_STEP.fullmatch(new) else visible(new)
    base = visible(base)
    names = f"{visible(new)} and {base}"
    n = len(tests)
    all_figures = f"the {n} compared figures" if n > 1 else tests[0].subject
    # without a test and with a value of 0: equal in every item
    equal_figures = [test.subject for test in tests if not test.is_tested and not test.value]
    if len(equal_figures) == n:
        yield f"In {all_figures}, {names} do not differ in any item."
        return
    differences = []
    for direction in DIRECTIONS:
        clear = sorted(clear_tests(tests, direction), key=lambda test: test.p)
        if clear:
            figures = listing_of_first([test.subject_with_value for test in clear])
            differences.append(f"{direction} than {base} in {figures}")
    if differences:
        yield f"{subject} is {listing(differences)} (adjusted p < .05)."
    unclear_figures = [test.subject for test in tests if test.is_tested and not test.is_clear]
    n_unclear = len(unclear_figures)
    if n_unclear and not any(test.is_clear for test in tests):
        if n_unclear == n:
            where = all_figures if n == 1 else f"any of {all_figures}"
        elif n_unclear > MOST_NAMED:
            where = f"any of the {n_unclear} figures in which they differ"
        else:
            where = listing(unclear_figures)
        yield f"No difference between {names} can be told from chance in {where}."
    elif n_unclear:
        where = listing(unclear_figures)
        if n_unclear > MOST_NAMED:
            where = f"{n_unclear} other figures"
        yield f"The difference in {where} cannot be told from chance."
    if equal_figures:
        where = listing(equal_figures)
        if len(equal_figures) > MOST_NAMED:
            where = f"the other {len(equal_figures)} figures"
        they = "they" if differences or n_unclear else names  # named in a sentence before
        yield f"In {where}, {they} do not differ in any item."
    if untested_text := untested_values([test for test in tests if test.value]):
        yield f"{untested_text}."


def findings_on_pairs(base: str, pairs: Mapping[str, Sequence[ReportedTest]]) -> Iterator[str]:
    """Yields a sentence on how many figures of each model are higher or lower than the base's.

    For example: "Against A, of the 3 compared figures B is higher in 2 and C is not distinguishable
    in any (adjusted p < .05)." For a single model, see `findings_on_pair`.

    Args:
        base: name of the model that the others are compared with.
        pairs: name of each other model -> its tests against the base, one per figure.
    """
    if len(pairs) == 1:
        for new, tests in pairs.items():
            yield from findings_on_pair(new, base, tests)
        return
    counts = []
    for new, tests in pairs.items():
        sides = []
        for direction in DIRECTIONS:
            if n_clear := len(clear_tests(tests, direction)):
                sides.append(f"{direction} in {n_clear}")
        counts.append(f"{visible(new)} is {listing(sides or [_without_clear_test(tests)])}")
    n = max((len(tests) for tests in pairs.values()), default=0)
    if n:
        figures = f"the {n} compared figures" if n > 1 else "the compared figure"
        yield f"Against {visible(base)}, of {figures} {listing(counts)} (adjusted p < .05)."


def _without_clear_test(tests: Sequence[ReportedTest]) -> str:
    """Returns what stands after "MODEL is" in a sentence on a model none of whose tests rejects.

    For example "not distinguishable in any", of "Against A, of the 3 compared figures B is not
    distinguishable in any (adjusted p < .05).".

    Args:
        tests: one per figure. A figure that is equal in every item has no test and the value 0. A
            figure that differs by the same in every item has no test, but a value.
    """
    if not tests:
        return "not compared"
    is_equal = not any(test.is_tested or test.value for test in tests)
    return "the same in every item" if is_equal else "not distinguishable in any"
