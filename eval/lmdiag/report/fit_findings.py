"""What the tests of a fit to human measures say: sentences."""

from __future__ import annotations

import math

from lmdiag.analysis.fit import HumanFit, ModelFit
from lmdiag.analysis.regression import names_in, sides
from lmdiag.report import numbers
from lmdiag.studies.comparison import ALPHA
from lmdiag.text import MOST_NAMED, capital, listing, visible


def fit_findings(fit: HumanFit) -> list[str]:
    """Returns for which models surprisal predicts the response beyond the baseline, by the test."""
    response = visible(names_in(sides(fit.full)[0])[0])
    what = " and ".join(fit.table.procedure.predictors)
    tested = [model for model in fit.models if not math.isnan(model.p)]
    if len(fit.models) == 1:
        return [_fit_sentence(model, what, response) for model in tested]
    clear = [model for model in tested if model.p < ALPHA]
    if not clear:
        models = f"any of the {len(tested)} models"
        return [f"No gain of {what} for {response} can be told from chance for {models}."]
    best = max(clear, key=lambda model: model.per_word)
    names = listing([visible(model.name) for model in clear[:MOST_NAMED]])
    if len(clear) > MOST_NAMED:
        names = f"{len(clear)} of {len(tested)} models"
    unit = "row" if fit.is_mixed else "word"
    gain = numbers.decimals(best.per_word, 5)
    return [
        f"{capital(what)} predicts {response} beyond the baseline for {names} (each p < .05).",
        f"The gain in log-likelihood is largest for {visible(best.name)}: {gain} per {unit}.",
    ]


def _fit_sentence(model: ModelFit, what: str, response: str) -> str:
    """The test of one model."""
    name = "F" if model.test == "F" else "chi-squared"
    df = ", ".join(map(str, model.df))
    p = numbers.p_value(model.p)
    p = p if p.startswith("<") else f"= {p}"
    test = f"{name}({df}) = {numbers.decimals(model.statistic)}, p {p}"
    model_name = visible(model.name)
    if model.p < ALPHA:
        return f"{capital(what)} of {model_name} predicts {response} beyond the baseline: {test}."
    return f"No gain of {what} of {model_name} for {response} can be told from chance: {test}."
