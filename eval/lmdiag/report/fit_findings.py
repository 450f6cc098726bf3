"""What the tests of a fit to human measures say: sentences.

Each predictor has sentences by its own test. A model whose test rejects, but whose held-out words
have no gain, predicts nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pandas import to_numeric

from lmdiag.analysis.fit import HumanFit, ModelFit
from lmdiag.analysis.procedures import SURPRISAL
from lmdiag.analysis.regression import names_in, sides
from lmdiag.report import numbers
from lmdiag.report.labels import noun_of
from lmdiag.report.reported_tests import ReportedTest, each_p
from lmdiag.stimuli.values.names import is_time
from lmdiag.text import MOST_NAMED, capital, listing, visible

_LEAST_MILLISECONDS = 20
"""Median of times from which they are in milliseconds, and not in seconds."""


def response_unit(fit: HumanFit) -> str:
    """Returns what the response is counted in: ms for times with a known name, or itself.

    The slope of a scaled response is that of the response.
    """
    left = sides(fit.full)[0].strip()
    scaled = re.fullmatch(r"scale\((.*)\)", left)
    measure = (scaled[1] if scaled else left).strip("` ")
    if not is_time(measure) or measure not in fit.table.frame:
        return visible(measure)
    values = to_numeric(fit.table.frame[measure], errors="coerce")
    return "ms" if values.median() >= _LEAST_MILLISECONDS else visible(measure)


class _Gain(NamedTuple):
    """The gain of a predictor of one model, with the record of its test."""

    fit: ModelFit
    test: ReportedTest

    @property
    def predicts(self) -> bool:
        """Whether the test rejects, and there is a gain."""
        return self.test.is_clear and self.test.value > 0

    @property
    def is_lost(self) -> bool:
        """Whether the test rejects on all rows, without a gain on held-out ones."""
        return self.test.is_clear and self.test.value <= 0

    @property
    def test_text(self) -> str:
        """Statistic, degrees of freedom and p."""
        name = "F" if self.fit.test == "F" else "chi-squared"
        df = ", ".join(map(str, self.fit.df))
        return f"{name}({df}) = {numbers.decimals(self.fit.statistic)}, {self.p_text}"

    @property
    def p_text(self) -> str:
        """The p of the test."""
        p = numbers.p_value(self.test.p)
        return f"p {p}" if p.startswith("<") else f"p = {p}"


def fit_findings(fit: HumanFit) -> list[str]:
    """Returns for which models each predictor predicts the response beyond the baseline."""
    labels = [*fit.table.procedure.regressions()]
    predictors = fit.table.procedure.predictors
    gains_of = {
        label: [_gain(fit, model) for model in fit.models[number :: len(labels)]]
        for number, label in enumerate(labels)
    }
    if len(predictors) == 1:
        (gains,) = gains_of.values()
        return [*_sentences(fit, predictors[0], "the baseline", gains)]
    sentences: list[str] = []
    for name in predictors:  # their labels are "NAME beyond OTHERS", see `Procedure.regressions`
        others = [other for other in predictors if other != name]
        [label] = [label for label in gains_of if label.startswith(f"{name} beyond ")]
        gains = gains_of[label]
        sentences += _sentences(fit, name, f"the baseline with {listing(others)}", gains)
    return sentences


def _gain(fit: HumanFit, model: ModelFit) -> _Gain:
    """Returns the gain of a predictor in one model, with its test."""
    unit = "row" if fit.is_mixed else "word"
    text = f"{numbers.decimals(model.per_word, 5)} per {unit}"
    test = ReportedTest(visible(model.source), text, model.per_word, model.p, n=model.n)
    return _Gain(model, test)


def _sentences(
    fit: HumanFit, predictor: str, baseline: str, gains: Sequence[_Gain]
) -> Iterator[str]:
    """Yields sentences on whether a predictor improves the fit, for all models together.

    Models with a gain that the test supports, models where nothing can be told, models whose test
    rejects although held-out words are not predicted better, and models without a test.

    Args:
        fit: the fit that is reported.
        predictor: its name in sentences, e.g. "surprisal".
        baseline: what the model without it has, in words.
        gains: of each model, its gain and test.
    """
    response = visible(names_in(sides(fit.full)[0])[0])
    predicts = [gain for gain in gains if gain.predicts]
    lost = [gain for gain in gains if gain.is_lost]
    unclear = [gain for gain in gains if gain.test.is_tested and not gain.test.is_clear]
    untested = [gain for gain in gains if not gain.test.is_tested]
    if len(gains) == 1:
        yield from _sentences_of_one(predictor, baseline, response, response_unit(fit), gains[0])
        return
    n = len(gains)
    noun = noun_of([gain.test.subject for gain in gains])
    if predicts:
        what = f"{capital(predictor)} predicts {response} beyond {baseline}"
        each = each_p([gain.test for gain in predicts])
        yield f"{what} for {_names(predicts, n, noun)}, {each}."
    if unclear:
        which = _names(unclear, n, noun)
        if len(unclear) == n:
            which = f"any of the {n} {noun}" if n > 2 else f"either of the 2 {noun}"
        what = f"No gain of {predictor} for {response} beyond {baseline}"
        yield f"{what} can be told from chance for {which}."
    for gain in lost[:MOST_NAMED]:
        yield (
            f"The test of {predictor} of {gain.test.subject} rejects on all words "
            f"({gain.p_text}), but there is no gain on held-out ones ({gain.test.text})."
        )
    if untested:
        yield f"{listing([gain.test.subject for gain in untested])}: no test of {predictor}."
    if predicts or lost:
        yield from _largest(predictor, gains, noun)


def _sentences_of_one(
    predictor: str, baseline: str, response: str, unit: str, gain: _Gain
) -> Iterator[str]:
    """Yields the one sentence for a fit with a single model; see `_sentences` for the cases."""
    what = predictor  # surprisals in the column of this name are of no model that is named
    if gain.test.subject != SURPRISAL:
        what += f" of {gain.test.subject}"
    if gain.predicts:
        what = f"{capital(what)} predicts {response} beyond {baseline}"
        slope = gain.fit.per_bit
        per_bit = "" if math.isnan(slope) else f"; {numbers.decimals(slope)} {unit} per bit"
        yield f"{what}: {gain.test_text}{per_bit}."
    elif gain.is_lost:
        rejects = f"{gain.test_text} on all words"
        yield (
            f"{capital(what)} has no gain for {response} on held-out words "
            f"({gain.test.text}), although the test rejects: {rejects}."
        )
    elif gain.test.is_tested:
        no_gain = f"No gain of {what} for {response} beyond {baseline}"
        yield f"{no_gain} can be told from chance: {gain.test_text}."


def _names(gains: Sequence[_Gain], n: int, noun: str) -> str:
    """Returns the names of the models of some gains; their number of all `n` if they are many.

    `noun` is what is counted: "3 of 12 models".
    """
    if len(gains) > MOST_NAMED:
        return f"all {n} {noun}" if len(gains) == n else f"{len(gains)} of {n} {noun}"
    return listing([gain.test.subject for gain in gains])


def _largest(predictor: str, gains: Sequence[_Gain], noun: str) -> Iterator[str]:
    """Yields the largest gain of those that the table shows, where it is alone and is a gain."""
    shown = [numbers.decimals(gain.test.value, 5) for gain in gains]
    best = max(gains, key=lambda gain: gain.test.value)
    if best.test.value <= 0 or shown.count(numbers.decimals(best.test.value, 5)) > 1:
        return
    p = "" if best.test.is_clear else f" ({best.p_text})"
    chosen = ""
    if noun == "layers":
        chosen = f"; these rows chose it among {len(gains)} layers, so that its p is too small"
    what = f"The gain in log-likelihood of {predictor}"
    yield f"{what} is largest for {best.test.subject}: {best.test.text}{p}{chosen}."
