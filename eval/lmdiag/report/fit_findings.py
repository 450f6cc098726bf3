"""Sentences on what the tests of a fit of surprisals to human measures (reading times) say.

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
from lmdiag.report.reported_tests import ReportedTest, p_below_alpha
from lmdiag.stimuli.values.names import is_time
from lmdiag.text import MOST_NAMED, capital, listing, visible

_LEAST_MILLISECONDS = 20
"""Median of times from which they are in milliseconds, and not in seconds."""


def response_unit(fit: HumanFit) -> str:
    """Returns what the response is counted in: "ms", or the response itself, as in "RT per bit".

    It is "ms" for a column with a known name of times whose values are too large for seconds. The
    unit of a scaled response, `scale(RT)`, is that of the response, as its slope is.
    """
    response = sides(fit.full)[0].strip()
    scaled = re.fullmatch(r"scale\((.*)\)", response)
    column = (scaled[1] if scaled else response).strip("` ")
    if not is_time(column) or column not in fit.table.frame:
        return visible(column)
    values = to_numeric(fit.table.frame[column], errors="coerce")
    return "ms" if values.median() >= _LEAST_MILLISECONDS else visible(column)


class _Gain(NamedTuple):
    """The gain in log-likelihood by a predictor of one model, with the record of its test.

    The value of the test is the gain per word or row; its subject is the name of the model.
    """

    fit: ModelFit
    test: ReportedTest

    @property
    def is_supported(self) -> bool:
        """Whether there is a gain, and the test rejects."""
        return self.test.is_clear and self.test.value > 0

    @property
    def is_lost_held_out(self) -> bool:
        """Whether the test rejects on all rows, but there is no gain on held-out rows."""
        return self.test.is_clear and self.test.value <= 0

    @property
    def test_text(self) -> str:
        """Statistic, degrees of freedom and p: "F(1, 90) = 12.30, p < .001"."""
        name = "F" if self.fit.test == "F" else "chi-squared"
        df = ", ".join(map(str, self.fit.df))
        return f"{name}({df}) = {numbers.decimals(self.fit.statistic)}, {self.p_text}"

    @property
    def p_text(self) -> str:
        """The p of the test in a sentence: "p = .012" or "p < .001"."""
        return numbers.p_in_sentence(self.test.p)


def fit_findings(fit: HumanFit) -> list[str]:
    """Returns sentences on the models for which each predictor predicts the response.

    Of several predictors, each is tested beyond the baseline with all other predictors.
    """
    labels = [*fit.table.procedure.regressions()]
    predictors = fit.table.procedure.predictors
    gains_of = {}
    for number, label in enumerate(labels):
        # the regressions of each model follow each other in the order of the labels
        fits_of_label = fit.models[number :: len(labels)]
        gains_of[label] = [_gain(fit, model) for model in fits_of_label]
    if len(predictors) == 1:
        (gains,) = gains_of.values()
        return [*_predictor_sentences(fit, predictors[0], "the baseline", gains)]
    # several predictors: only the regressions that test a predictor beyond all others
    sentences: list[str] = []
    for predictor in predictors:
        others = [other for other in predictors if other != predictor]
        baseline = f"the baseline with {listing(others)}"
        label_start = f"{predictor} beyond "  # see `Procedure.regressions`
        [gains] = [gains for label, gains in gains_of.items() if label.startswith(label_start)]
        sentences += _predictor_sentences(fit, predictor, baseline, gains)
    return sentences


def _gain(fit: HumanFit, model: ModelFit) -> _Gain:
    """Returns the gain in log-likelihood of one of the regressions of a fit, with its test.

    The value of the test is the gain per row or word, as the text "0.01234 per word".
    """
    unit = "row" if fit.is_mixed else "word"
    text = f"{numbers.decimals(model.per_word, 5)} per {unit}"
    subject = visible(model.source)
    test = ReportedTest(subject, text, value=model.per_word, p=model.p, n=model.n)
    return _Gain(model, test)


def _predictor_sentences(
    fit: HumanFit, predictor: str, baseline: str, gains: Sequence[_Gain]
) -> Iterator[str]:
    """Yields sentences on whether a predictor improves the fit, for all models together.

    They name, in this order, models with a gain that the test supports, models whose gain cannot be
    told from chance, models whose test rejects although held-out words are not predicted better,
    and models without a test. A last sentence names the model with the largest gain.

    Args:
        fit: the fit that is reported.
        predictor: its name in sentences, e.g. "surprisal".
        baseline: what the model without it has, in words.
        gains: of each model, its gain and test.
    """
    response = visible(names_in(sides(fit.full)[0])[0])  # the column, without functions of it
    if len(gains) == 1:
        (gain,) = gains
        yield from _single_model_sentence(predictor, baseline, response, response_unit(fit), gain)
        return
    n = len(gains)
    noun = noun_of([gain.test.subject for gain in gains])
    supported = [gain for gain in gains if gain.is_supported]
    if supported:
        what = f"{capital(predictor)} predicts {response} beyond {baseline}"
        p = p_below_alpha([gain.test for gain in supported])
        yield f"{what} for {_model_names(supported, n, noun)}, {p}."
    unclear = [gain for gain in gains if gain.test.is_tested and not gain.test.is_clear]
    if unclear:
        which = _model_names(unclear, n, noun)
        if len(unclear) == n:
            which = f"any of the {n} {noun}" if n > 2 else f"either of the 2 {noun}"
        what = f"No gain of {predictor} for {response} beyond {baseline}"
        yield f"{what} can be told from chance for {which}."
    lost_held_out = [gain for gain in gains if gain.is_lost_held_out]
    for gain in lost_held_out[:MOST_NAMED]:
        yield (
            f"The test of {predictor} of {gain.test.subject} rejects on all words "
            f"({gain.p_text}), but there is no gain on held-out ones ({gain.test.text})."
        )
    untested = [gain for gain in gains if not gain.test.is_tested]
    if untested:
        yield f"{listing([gain.test.subject for gain in untested])}: no test of {predictor}."
    if supported or lost_held_out:
        yield from _largest_gain_sentence(predictor, gains, noun)


def _single_model_sentence(
    predictor: str, baseline: str, response: str, unit: str, gain: _Gain
) -> Iterator[str]:
    """Yields the sentence on a predictor in a fit with one model; nothing if it has no test.

    For example, "Surprisal of gpt2 predicts rt beyond the baseline: F(1, 90) = 12.30, p < .001;
    2.41 ms per bit.".

    Args:
        predictor, baseline, response: in words, e.g. "surprisal", "the baseline" and "rt".
        unit: of the response, e.g. "ms".
        gain: in log-likelihood by the predictor, with its test.
    """
    subject = predictor
    if gain.test.subject != SURPRISAL:  # the column of this name does not tell the model
        subject += f" of {gain.test.subject}"
    if gain.is_supported:
        slope = gain.fit.per_bit
        per_bit = "" if math.isnan(slope) else f"; {numbers.decimals(slope)} {unit} per bit"
        predicts = f"{capital(subject)} predicts {response} beyond {baseline}"
        yield f"{predicts}: {gain.test_text}{per_bit}."
    elif gain.is_lost_held_out:
        yield (
            f"{capital(subject)} has no gain for {response} on held-out words "
            f"({gain.test.text}), although the test rejects: {gain.test_text} on all words."
        )
    elif gain.test.is_tested:
        no_gain = f"No gain of {subject} for {response} beyond {baseline}"
        yield f"{no_gain} can be told from chance: {gain.test_text}."


def _model_names(gains: Sequence[_Gain], n: int, noun: str) -> str:
    """Returns the models of some gains: "gpt2 and bert", or of many "5 of 12 models".

    Args:
        n: number of all models.
        noun: what they are, in the plural.
    """
    if len(gains) <= MOST_NAMED:
        return listing([gain.test.subject for gain in gains])
    return f"all {n} {noun}" if len(gains) == n else f"{len(gains)} of {n} {noun}"


def _largest_gain_sentence(predictor: str, gains: Sequence[_Gain], noun: str) -> Iterator[str]:
    """Yields which model has the largest gain; nothing if two models do, or if none has a gain.

    Gains are compared as the table shows them, with five decimals.
    """
    best = max(gains, key=lambda gain: gain.test.value)
    gain_texts = [numbers.decimals(gain.test.value, 5) for gain in gains]
    is_tied = gain_texts.count(numbers.decimals(best.test.value, 5)) > 1
    if best.test.value <= 0 or is_tied:
        return
    text = best.test.text
    if not best.test.is_clear:
        text += f" ({best.p_text})"
    if noun == "layers":
        text += f"; these rows chose it among {len(gains)} layers, so that its p is too small"
    what = f"The gain in log-likelihood of {predictor}"
    yield f"{what} is largest for {best.test.subject}: {text}."
