"""Sentences on how models agree with cloze norms, the words that people gave at blanks."""

from __future__ import annotations

import math

from lmdiag.measures import MeasureName
from lmdiag.report import numbers
from lmdiag.report.comparison_findings import findings_on_pairs
from lmdiag.report.numbers import interval_in_sentence, percent
from lmdiag.report.reported_tests import ReportedTest
from lmdiag.studies.cloze_norms import ClozeNorms
from lmdiag.studies.comparison import IN_PERCENT, Comparison
from lmdiag.text import visible


def cloze_findings(norms: ClozeNorms) -> list[str]:
    """Returns sentences on how models agree with people, and on the differences between models.

    The first ones say in how many items the top word of a model is that of people, and how probable
    all human responses are together; then follow the tests of the first model against each other.
    """
    sentences = []
    for model, table in norms.figures.groupby("model", sort=False):  # a row per measure
        figures = {row.measure: row for row in table.itertuples() if not math.isnan(row.value)}
        top_agreement = figures.get("top_agrees")  # share of items with the same top word
        mass = figures.get("mass")  # probability of all human responses of an item together
        name = visible(str(model))
        parts = []
        if top_agreement:
            n = top_agreement.n
            count = f"{round(top_agreement.value * n)} of {n} items"
            share = f"{percent(top_agreement.value)}{interval_in_sentence(top_agreement, 'share')}"
            what = f"The top word of {name} is people's most frequent response"
            parts.append(f"{what} in {count} ({share})")
        if mass:
            value = f"{percent(mass.value)}{interval_in_sentence(mass, 'share')}"
            parts.append(f"{name} gives all human responses together a probability of {value}")
        if parts:
            sentences.append(f"{', and '.join(parts)}.")
    tests_of_model: dict[str, list[ReportedTest]] = {}
    for comparison in norms.comparisons:  # one per measure and model but the first
        tests = tests_of_model.setdefault(norms.models[comparison.number], [])
        if comparison.n:
            tests.append(_test_of_measure(comparison))
    return [*sentences, *findings_on_pairs(norms.models[0], tests_of_model)]


def _test_of_measure(comparison: Comparison) -> ReportedTest:
    """Returns the test of a difference between two models as sentences need it.

    For example, with the subject "KL divergence" and the text "−0.412 bits".
    """
    label = MeasureName.of(comparison.measure).label
    text = numbers.signed(comparison.difference, comparison.statistic)
    if comparison.statistic in IN_PERCENT:
        text += " points"
    elif label.endswith(", bits"):
        text += " bits"
    return ReportedTest(
        subject=label.removesuffix(", bits"), text=text, value=comparison.difference,
        p=comparison.p_adjusted, n_tests=comparison.n_tests, n=comparison.n,
    )  # fmt: skip
