"""What several ways of asking say of models: sentences."""

from __future__ import annotations

from collections.abc import Mapping

from lmdiag import diagnostics
from lmdiag.report.run_findings import VERDICTS
from lmdiag.results.results import VersusChance
from lmdiag.studies.multiverse import Multiverse
from lmdiag.text import listing, listing_of_first, visible

_SIDES: Mapping[VersusChance, str] = {
    "above": "is above chance in", "below": "is below chance in",
    "not distinguishable": "cannot be told from chance in",
}  # fmt: skip


def multiverse_findings(multiverse: Multiverse) -> list[str]:
    """Returns which figures are on one side of chance in all ways of asking a model, and which not.

    A model that was asked in one way has no sentence.
    """
    sentences = []
    for model in multiverse.models:
        n = len(multiverse.numbers_of(model))
        verdicts = _verdicts_of_ways(multiverse, model) if n > 1 else {}
        parts = [
            f"{_SIDES[verdict]} {listing_of_first(labels)}"
            for verdict in VERDICTS
            if (labels := [label for label, found in verdicts.items() if found == {verdict}])
        ]
        changing = [label for label, found in verdicts.items() if len(found) > 1]
        rest = f"the result in {listing_of_first(changing)} depends on the way of asking" * bool(
            changing
        )
        name = visible(model)
        if parts:
            text = f"In all {n} ways of asking, {name} {listing(parts)}"
            sentences.append(f"{'; '.join(filter(None, (text, rest)))}.")
        elif rest:
            sentences.append(f"For {name}, asked in {n} ways, {rest}.")
    return sentences


def _verdicts_of_ways(multiverse: Multiverse, model: str) -> dict[str, set[VersusChance]]:
    """Label of a figure with a chance level -> its results against chance in all ways."""
    runs = [multiverse.runs[number] for number in multiverse.numbers_of(model)]
    several = len({headline.task for headline in multiverse.figures}) > 1
    verdicts = {}
    for headline in multiverse.figures:
        figures = [run.results.figure(headline.key) for run in runs]
        found = {x.versus_chance for x in figures if x and x.versus_chance is not None}
        # where all contrasts are tied in one way, there is no result of all ways
        is_untested = any(x.n_tied and x.n_tied == x.n for x in figures if x)
        diagnostic = diagnostics.get(headline.task, multiverse.forms.get(headline.task, ""))
        if found and not (is_untested and len(found) == 1):
            verdicts[f"{diagnostic.short_title} " * several + headline.label] = found
    return verdicts
