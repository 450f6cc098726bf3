"""What several ways of asking say of models: sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lmdiag import diagnostics
from lmdiag.report.run_findings import VERDICTS
from lmdiag.results.results import VersusChance
from lmdiag.studies.multiverse import Multiverse
from lmdiag.text import capital, listing, listing_of_first, visible

_SIDES: Mapping[VersusChance, tuple[str, str]] = {
    "above": ("is above chance in", "are above chance in"),
    "below": ("is below chance in", "are below chance in"),
    "not distinguishable": ("cannot be told from chance in",) * 2,
}
"""Verdict -> its words for one model and for several."""


class _Result(NamedTuple):
    """What is so in all ways of asking a model, and what is not.

    Attributes:
        sides: verdict -> the figures that have it in all ways.
        changing: figures with different verdicts.
    """

    sides: tuple[tuple[VersusChance, tuple[str, ...]], ...]
    changing: tuple[str, ...]


def multiverse_findings(multiverse: Multiverse) -> list[str]:
    """Returns which figures are on one side of chance in all ways of asking a model, and which not.

    Models of which the same is so share a sentence. A model that was asked in one way has none.
    """
    models_with: dict[_Result, dict[str, int]] = {}  # -> model -> in how many ways it was asked
    for model in multiverse.models:
        n = len(multiverse.numbers_of(model))
        verdicts = _verdicts_of_ways(multiverse, model) if n > 1 else {}
        sides = []
        for verdict in VERDICTS:
            labels = [label for label, results in verdicts.items() if results == {verdict}]
            if labels:
                sides.append((verdict, tuple(labels)))
        changing = tuple(label for label, results in verdicts.items() if len(results) > 1)
        if sides or changing:
            models_with.setdefault(_Result(tuple(sides), changing), {})[visible(model)] = n
    return [_sentence(result, n_of) for result, n_of in models_with.items()]


def _sentence(result: _Result, n_of: Mapping[str, int]) -> str:
    """What is so in all ways of asking some models, whose numbers of ways are given."""
    names = listing([*n_of])
    counts = {*n_of.values()}
    ways = f"in all {next(iter(n_of.values()))} ways of asking"
    if len(counts) > 1:
        ways = f"in all ways of asking ({listing([f'{n} of {x}' for x, n in n_of.items()])})"
    changing_text = ""
    if result.changing:
        changing_text = (
            f"the result in {listing_of_first(result.changing)} depends on the way of asking"
        )
    if not result.sides:
        models_and_ways = listing([f"{x}, asked in {n} ways" for x, n in n_of.items()])
        return f"For {models_and_ways}, {changing_text}."
    verb_number = 0 if len(n_of) == 1 else 1
    parts = [
        f"{_SIDES[side][verb_number]} {listing_of_first(labels)}" for side, labels in result.sides
    ]
    text = f"{capital(ways)}, {names} {listing(parts)}"
    return f"{'; '.join(filter(None, (text, changing_text)))}."


def _verdicts_of_ways(multiverse: Multiverse, model: str) -> dict[str, set[VersusChance]]:
    """Label of a figure with a chance level -> its results against chance in all ways."""
    runs = [multiverse.runs[number] for number in multiverse.numbers_of(model)]
    has_tasks = len({headline.task for headline in multiverse.figures}) > 1
    verdicts = {}
    for headline in multiverse.figures:
        figures = [run.results.figure(headline.key) for run in runs]
        results = {x.versus_chance for x in figures if x and x.versus_chance is not None}
        # where all contrasts are tied in one way, there is no result of all ways
        is_untested = any(x.n_tied and x.n_tied == x.n for x in figures if x)
        diagnostic = diagnostics.get(headline.task, multiverse.forms.get(headline.task, ""))
        if results and not (is_untested and len(results) == 1):
            label = headline.label
            if has_tasks:
                label = f"{diagnostic.short_title} {label}"
            verdicts[label] = results
    return verdicts
