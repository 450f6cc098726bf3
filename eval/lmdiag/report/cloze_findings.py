"""What cloze norms say of models: sentences."""

from __future__ import annotations

import math

from lmdiag.measures import MeasureName
from lmdiag.report import numbers
from lmdiag.report.comparison_findings import findings_on_pairs
from lmdiag.report.numbers import percent, within
from lmdiag.report.reported_tests import ReportedTest
from lmdiag.studies.cloze_norms import ClozeNorms
from lmdiag.studies.comparison import IN_PERCENT
from lmdiag.text import capital, visible


def cloze_findings(norms: ClozeNorms) -> list[str]:
    """Returns how often the top words of people and models agree, and what sets models apart."""
    sentences = []
    for model, table in norms.figures.groupby("model", sort=False):
        figures = {row.measure: row for row in table.itertuples() if not math.isnan(row.value)}
        agrees = figures.get("top_agrees")
        mass = figures.get("mass")
        name = visible(str(model))
        parts = []
        if agrees:
            count = f"{round(agrees.value * agrees.n)} of {agrees.n} items"
            share = f"({percent(agrees.value)}{within(agrees, 'share')})"
            what = f"the top word of {name} is people's most frequent response"
            parts.append(f"{what} in {count} {share}")
        if mass:
            value = f"{percent(mass.value)}{within(mass, 'share')}"
            parts.append(f"{name} gives all human responses together a probability of {value}")
        if parts:
            text = ", and ".join(parts)
            sentences.append(f"{capital(text) if agrees else text}.")
    pairs: dict[str, list[ReportedTest]] = {}
    for x in norms.comparisons:
        label = MeasureName.of(x.measure).label
        text = numbers.signed(x.difference, x.statistic)
        if x.statistic in IN_PERCENT:
            text += " points"
        elif label.endswith(", bits"):
            text += " bits"
        name = label.removesuffix(", bits")
        test = ReportedTest(name, text, x.difference, x.p_adjusted, x.n_tests, x.n)
        of_pair = pairs.setdefault(norms.models[x.number], [])
        of_pair += [test] if x.n else []
    return [*sentences, *findings_on_pairs(norms.models[0], pairs)]
