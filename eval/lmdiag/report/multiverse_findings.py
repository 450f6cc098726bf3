"""Sentences on what models do in all ways of asking them, the protocols of a multiverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lmdiag import diagnostics
from lmdiag.report.run_findings import VERDICTS
from lmdiag.results.results import VersusChance
from lmdiag.studies.multiverse import Multiverse
from lmdiag.text import listing, listing_of_first, visible

_VERBS: Mapping[VersusChance, tuple[str, str]] = {
    "above": ("is above chance in", "are above chance in"),
    "below": ("is below chance in", "are below chance in"),
    "not distinguishable": ("cannot be told from chance in",) * 2,
}
"""Verdict -> its words for one model and for several."""


class _Pattern(NamedTuple):
    """Where the figures of a model lie against chance over all ways of asking it.

    Attributes:
        same_verdict: pairs of a verdict and the figures that have it in all ways.
        varying: figures whose verdict depends on the way of asking.
    """

    same_verdict: tuple[tuple[VersusChance, tuple[str, ...]], ...]
    varying: tuple[str, ...]


def multiverse_findings(multiverse: Multiverse) -> list[str]:
    """Returns which figures are on one side of chance in all ways of asking a model, and which not.

    Models with the same pattern share a sentence. Models that were asked in one way are left out.
    """
    n_ways_by_pattern: dict[_Pattern, dict[str, int]] = {}  # -> model -> number of its ways
    for model in multiverse.models:
        n_ways = len(multiverse.numbers_of(model))
        if n_ways == 1:
            continue
        verdicts_of = _verdicts_of_figures(multiverse, model)
        same_verdict = []
        for verdict in VERDICTS:
            figures = [name for name, verdicts in verdicts_of.items() if verdicts == {verdict}]
            if figures:
                same_verdict.append((verdict, tuple(figures)))
        varying = tuple(name for name, verdicts in verdicts_of.items() if len(verdicts) > 1)
        if same_verdict or varying:
            pattern = _Pattern(tuple(same_verdict), varying)
            n_ways_by_pattern.setdefault(pattern, {})[visible(model)] = n_ways
    return [_pattern_sentence(pattern, n_ways) for pattern, n_ways in n_ways_by_pattern.items()]


def _pattern_sentence(pattern: _Pattern, n_ways: Mapping[str, int]) -> str:
    """Returns the sentence on the figures of models with the same pattern.

    For example, "In all 8 ways of asking, gpt2 is above chance in accuracy; the result in
    sensitivity depends on the way of asking.".

    Args:
        n_ways: model -> number of ways in which it was asked.
    """
    varying_text = ""
    if pattern.varying:
        figures = listing_of_first(pattern.varying)
        varying_text = f"the result in {figures} depends on the way of asking"
    if not pattern.same_verdict:
        models = listing([f"{model}, asked in {n} ways" for model, n in n_ways.items()])
        return f"For {models}, {varying_text}."
    counts = [*dict.fromkeys(n_ways.values())]
    ways = f"In all {counts[0]} ways of asking"
    if len(counts) > 1:
        n_of_models = listing([f"{n} of {model}" for model, n in n_ways.items()])
        ways = f"In all ways of asking ({n_of_models})"
    verdict_texts = []
    for verdict, figures_of_verdict in pattern.same_verdict:
        verb_of_one, verb_of_several = _VERBS[verdict]
        verb = verb_of_one if len(n_ways) == 1 else verb_of_several
        verdict_texts.append(f"{verb} {listing_of_first(figures_of_verdict)}")
    text = f"{ways}, {listing([*n_ways])} {listing(verdict_texts)}"
    return f"{text}; {varying_text}." if varying_text else f"{text}."


def _verdicts_of_figures(multiverse: Multiverse, model: str) -> dict[str, set[VersusChance]]:
    """Returns label of a figure -> its distinct verdicts against chance in all ways of asking.

    For example, {"accuracy": {"above"}, "sensitivity": {"above", "not distinguishable"}}. Figures
    without a test against chance are left out. So is a figure with one verdict that was not tested
    in all ways, since all its contrasts are tied in some: it does not have the verdict in all ways.
    """
    runs = [multiverse.runs[number] for number in multiverse.numbers_of(model)]
    has_several_tasks = len({headline.task for headline in multiverse.figures}) > 1
    verdicts_of = {}
    for headline in multiverse.figures:
        results = [run.results.figure(headline.key) for run in runs]
        figures = [figure for figure in results if figure]
        verdicts = {figure.versus_chance for figure in figures if figure.versus_chance is not None}
        is_untested_in_a_way = any(
            figure.n_tied and figure.n_tied == figure.n for figure in figures
        )
        if verdicts and not (is_untested_in_a_way and len(verdicts) == 1):
            label = headline.label
            if has_several_tasks:
                form = multiverse.forms.get(headline.task, "")
                label = f"{diagnostics.get(headline.task, form).short_title} {label}"
            verdicts_of[label] = verdicts
    return verdicts_of
