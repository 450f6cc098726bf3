"""Which pictures each diagnostic gets, the most telling first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lmdiag.report.agreement import constructions, curved
from lmdiag.report.diagnostic import Diagnostic, Picture
from lmdiag.report.scenes import against_cloze, broken_down, measured, scattered, shuffled


def pictures(diagnostic: Diagnostic) -> list[Picture]:
    """Returns the pictures of a task, in the order of the page."""
    draw = TASKS.get(diagnostic.task, of_any)
    return list(draw(diagnostic))


def of_any(diagnostic: Diagnostic) -> Iterator[Picture]:
    """The pictures of a diagnostic of one's own."""
    yield from measured(diagnostic)
    yield from scattered(diagnostic)


def of_cprag102(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Constraint and shuffles beside what every diagnostic has."""
    yield from measured(diagnostic)
    yield from scattered(diagnostic)
    yield from broken_down(
        diagnostic, "constraint", ("high", "low"), "", "By constraint of the context"
    )
    yield from shuffled(diagnostic)


def of_role88(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Cloze, of the target and of the expected word."""
    yield from measured(diagnostic)
    yield from scattered(diagnostic)
    yield from against_cloze(diagnostic)
    quartiles = ("1", "2", "3", "4")
    words = "Accuracy by cloze of the expected word"
    yield from broken_down(diagnostic, "cloze_quartile", quartiles, "accuracy@", words)


def of_neg136(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Affirmative and negative sentences apart: their difference is the point."""
    polarities = ("affirmative", "negative")
    simp = [f"simp/{polarity}" for polarity in polarities]
    nat = [
        f"{level}/{polarity}" for level in ("natural", "less_natural") for polarity in polarities
    ]
    yield from broken_down(diagnostic, "subset/polarity", simp, "sensitivity", "Sensitivity, SIMP")
    yield from broken_down(diagnostic, "natural/polarity", nat, "sensitivity", "Sensitivity, NAT")
    for polarity in polarities:
        yield from scattered(diagnostic, polarity, f"{polarity.title()} sentences. ")
    levels = ("simp", "nat")
    words = "Accuracy in affirmative sentences"
    yield from broken_down(diagnostic, "subset", levels, "accuracy@", words)


def of_agreement(diagnostic: Diagnostic) -> Iterator[Picture]:
    """The curves, the constructions, and the density of so many pairs."""
    yield from curved(diagnostic)
    yield from constructions(diagnostic)
    yield from scattered(diagnostic)


TASKS: Mapping[str, Callable[[Diagnostic], Iterator[Picture]]] = {
    "cprag102": of_cprag102,
    "role88": of_role88,
    "neg136": of_neg136,
    "agreement": of_agreement,
}
