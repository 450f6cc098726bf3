"""What a multiverse says, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lmdiag import diagnostics
from lmdiag.report import numbers
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.results.multiverse import Contest, Curve, HeadlineCurves, Multiverse

_LONGEST_CHOICE = 40
"""Characters of a choice; of a longer prompt the beginning and the end are shown."""


def protocols(count: int) -> str:
    """Returns a number of protocols in words."""
    return "1 protocol" if count == 1 else f"{count} protocols"


def choice_label(choice: str) -> str:
    """Returns a choice as readers see it: of a long prompt its beginning and its end."""
    text = visible(" ".join(choice.split()))
    half = _LONGEST_CHOICE // 2
    return text if len(text) <= _LONGEST_CHOICE else f"{text[:half]} … {text[-half:]}"


def choices_label(choices: Mapping[str, str]) -> str:
    """Returns the choices of a member as text."""
    return ", ".join(f"{knob} {choice_label(choice)}" for knob, choice in choices.items())


def shown_choices(multiverse: Multiverse, *models: int) -> list[tuple[str, list[str]]]:
    """Returns the knobs that are open for some models, with their choices as readers see them."""
    known = multiverse.choices(*models)
    return [(knob, [choice_label(choice) for choice in known[knob]]) for knob in known]


def said(multiverse: Multiverse, figure: HeadlineCurves) -> Iterator[str]:
    """Yields a sentence for each model, and one for each comparison."""
    for curve in figure.curves:
        model = visible(multiverse.models[curve.model].label)
        yield f"{model} {range_in_words(multiverse, figure, curve)}"
    for contest in figure.contests:
        yield contest_in_words(multiverse, contest)


def range_in_words(multiverse: Multiverse, figure: HeadlineCurves, curve: Curve) -> str:
    """Returns e.g. "prefers the good word in 61.0 to 78.0 percent, depending mostly on unit"."""
    percent = curve.points[0].figure.is_percent
    statistic = curve.points[0].figure.statistic
    low, high = (numbers.number(value, statistic) for value in (curve.values[0], curve.values[-1]))
    amount = low if low == high else f"{low} to {high}"
    form = multiverse.forms.get(figure.task, "")
    word = "word" if diagnostics.get(figure.task, form).asks == "word" else "sentence"
    measure, _, at = figure.measure.partition("@")
    if measure == "sensitivity" and percent:
        by = f" by more than {at}" if at else ""
        text = f"prefers the good {word}{by} in {amount} percent"
    elif measure == "accuracy" and percent:
        first = "as its first word" if at == "1" else f"among its first {at} words"
        text = f"has an expected word {first} in {amount} percent"
    else:
        text = f"has {amount}{' percent' if percent else ''}"
    if len(curve.points) == 1:
        return f"{text} in its one protocol"
    if not curve.strongest:
        return f"{text} in all {len(curve.points)} protocols"
    return f"{text}, depending mostly on {' and '.join(curve.strongest)}"


def contest_in_words(multiverse: Multiverse, contest: Contest) -> str:
    """Returns e.g. "A is ahead of B in 11 of 12 protocols (p < .05 in 4, adjusted in 2)"."""
    a, b = (visible(multiverse.models[number].label) for number in (0, contest.second))
    counts, total = contest.counts, len(contest.pairs)
    way = "ahead" if counts["ahead"] >= counts["behind"] else "behind"
    text = f"{a} is {'ahead of' if way == 'ahead' else 'behind'} {b} in {counts[way]} of "
    text += f"{protocols(total)}{_tests(counts, way)}"
    other = "behind" if way == "ahead" else "ahead"
    if counts[other]:
        text += f", {other} in {counts[other]}{_tests(counts, other)}"
    return text + (f", equal in {counts['equal']}" if counts["equal"] else "")


def _tests(counts: Mapping[str, int], way: str) -> str:
    """In how many protocols a test rejects."""
    if not (rejected := counts[f"rejected_{way}"]):
        return " (p < .05 in none)"
    return f" (p < .05 in {rejected}, adjusted in {counts[f'adjusted_{way}'] or 'none'})"


def remarks(multiverse: Multiverse) -> Iterator[str]:
    """Yields what a reader must know of the figures."""
    asked = multiverse.questions
    runs = len(multiverse.members)
    merged = asked.combinations - runs
    yield (
        f"{asked.combinations} combinations, {asked.all:,} questions; {asked.asked:,} were asked"
        + (f": {merged} combinations ask the same as another one" if merged else "")
    )
    if multiverse.choices(*range(len(multiverse.models))):
        yield (
            "below each knob: how far it moves the figure, the largest difference between the "
            "means of two of its choices over all choices of the other knobs"
        )
    if len(multiverse.models) > 1:
        yield (
            "differences are taken within items, the first model minus the other: exact McNemar "
            "test where each item is right or wrong, sign-flip test of a mean over items, "
            "permutation test of a median or a correlation; adjusted by Holm's method over the "
            "protocols of a figure and pair of models"
        )
        yield (
            "models are compared where they share the choices of every knob that is open for both; "
            "a knob that is open for one of them takes each of its values"
        )
