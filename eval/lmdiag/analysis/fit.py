"""How well surprisals predict human measures: delta log-likelihood of each model, and compared."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmdiag import stats
from lmdiag.analysis.human import HumanTable, SurprisalSource
from lmdiag.analysis.mixed import MixedTerm
from lmdiag.analysis.procedures import SURPRISAL, Procedure
from lmdiag.analysis.regression import (
    Regression,
    least_squares,
    mixed_model,
    names_in,
    sides,
    term_interval,
    term_values,
)
from lmdiag.analysis.selection import Selection
from lmdiag.stats import Values
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

_Z = 1.96
"""Standard errors on either side of a mean delta, as Wilcox et al. (2023) have it."""


@dataclass(frozen=True)
class ModelFit:
    """How well one model's surprisals predict the response.

    Attributes:
        name: of the model.
        n: number of rows.
        delta_log_likelihood: log-likelihood of the full model less that of the baseline.
        per_word: delta_log_likelihood / n.
        ci_low, ci_high: per_word -+ 1.96 standard errors over rows; NaN for mixed models.
        p: sign-flip test over rows that per_word is 0; NaN for mixed models.
        aic, baseline_aic: of both models, in sample.
        mean_surprisal: of the rows, bits.
        terms: of the full model in sample, per unit of the surprisals that were read.
        per_bit: coefficient of the current word's surprisal, units of the response per bit, also
            where both are scaled; NaN without this term.
        pearson, spearman: correlation of response and surprisal, with intervals by Fisher's z.
        left_out: reason -> number of rows.
        warning: what makes the estimates unreliable, or "".
        rows: (n,), numbers of the rows in the table, from 0.
        surprisal: (n,), bits.
        response, residuals: (n,), residuals of the full model in sample; None for mixed models.
        deltas: (n,), delta of the log density of each row; None for mixed models.
    """

    name: str
    n: int
    delta_log_likelihood: float
    per_word: float
    ci_low: float
    ci_high: float
    p: float
    aic: float
    baseline_aic: float
    mean_surprisal: float
    terms: tuple[MixedTerm, ...]
    per_bit: float
    pearson: stats.Estimate
    spearman: stats.Estimate
    left_out: Mapping[str, int]
    warning: str
    rows: NDArray[np.intp]
    surprisal: Values
    response: Values
    residuals: Values | None
    deltas: Values | None


@dataclass(frozen=True)
class DeltaComparison:
    """Two models on the same rows, paired by row.

    Attributes:
        first, second: names of the models.
        difference: mean of first less second delta log density per row.
        ci_low, ci_high: difference -+ 1.96 standard errors.
        p: sign-flip test; p_adjusted: by Holm's method over all comparisons.
    """

    first: str
    second: str
    difference: float
    ci_low: float
    ci_high: float
    p: float
    p_adjusted: float


@dataclass(frozen=True)
class HumanFit:
    """The fits of some models to one response.

    Attributes:
        signature: equal for fits of the same rows by the same procedure.
        procedure: what was fitted.
        full, baseline: formulas.
        models: a fit for each model.
        comparisons: of the first model with each of the others; none for mixed models.
        notes: what was computed or averaged, for readers.
        table: the human measures.
    """

    signature: str
    procedure: Procedure
    full: str
    baseline: str
    models: Sequence[ModelFit]
    comparisons: Sequence[DeltaComparison]
    notes: Sequence[str]
    table: HumanTable

    def to_json(self) -> dict[str, Any]:
        """Returns all figures as plain values; undefined is None."""
        models = []
        for fit in self.models:
            figures = {
                name: value
                for name, value in vars(fit).items()
                if isinstance(value, str | int | float) or name == "left_out"
            }
            figures["coefficients"] = {term.term: term.estimate for term in fit.terms}
            figures |= {n: asdict(getattr(fit, n)) for n in ("pearson", "spearman")}
            figures["intervals"] = {term.term: list(term_interval(term)) for term in fit.terms}
            models.append(figures)
        plain: dict[str, Any] = _plain({
            "signature": self.signature, "full": self.full, "baseline": self.baseline,
            "units": self.procedure.units or "bits", "models": models,
            "comparisons": [asdict(compared) for compared in self.comparisons],
            "notes": list(self.notes),
        })  # fmt: skip
        return plain

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per model."""
        from pandas import DataFrame

        return DataFrame(
            [
                {name: v for name, v in vars(fit).items() if isinstance(v, str | int | float)}
                for fit in self.models
            ]
        )

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fit_surprisals(
    table: HumanTable, sources: Sequence[SurprisalSource], procedure: Procedure
) -> HumanFit:
    """Fits the response with and without each model's surprisals, on the same rows.

    Args:
        table: the human measures.
        sources: surprisals of each model; names must differ.
        procedure: how.

    Raises:
        BadInput: a column is missing, not numeric, infinite or constant on the fitted rows; too few
            rows are left; the response is not defined.
    """
    names = [source.name for source in sources]
    if doubled := [name for name in names if names.count(name) > 1]:
        raise BadInput(f"two sets of surprisals are called {doubled[0]}: rename one")
    full, baseline = procedure.formulas()
    if sides(full)[0] != sides(baseline)[0]:
        raise BadInput(f"the baseline {baseline!r} must have the response of {full!r}")
    used = names_in(f"{full} {baseline}")
    if SURPRISAL not in used and f"{SURPRISAL}_prev_1" not in used:
        raise BadInput(f"formula {full!r} has no term {SURPRISAL}, which stands for the surprisals")
    selections = [Selection(table, procedure, source, used) for source in sources]
    common = np.logical_and.reduce([selection.kept for selection in selections])
    for selection in selections:
        selection.leave_out("no surprisal of another model", ~common)
    fits = [_fit(selection, full, baseline) for selection in selections]
    notes = dict.fromkeys(note for rows in selections for note in rows.notes.values())
    signature = "|".join(
        [
            "lmdiag:fit", f"human:{table.fingerprint}", f"full:{full}", f"baseline:{baseline}",
            f"units:{procedure.units or 'bits'}",
            *(f"{name}:{value}" for name, value in _knobs(procedure)),
        ]
    )  # fmt: skip
    return HumanFit(signature, procedure, full, baseline, fits, _compare(fits), list(notes), table)


def _knobs(procedure: Procedure) -> list[tuple[str, str]]:
    """The fields that change figures and that the formulas do not show."""
    named = ("folds", "filter", "average", "distinct", "complete", "fill", "lags_as_text")
    return [
        (name, ",".join(value) if isinstance(value, tuple) else str(value).lower())
        for name in named
        if (value := getattr(procedure, name))
    ]


def _fit(rows: Selection, full: str, baseline: str) -> ModelFit:
    if not rows.kept.any():
        reasons = ", ".join(f"{reason} ({n:,})" for reason, n in rows.left_out.items())
        raise BadInput(f"{rows.source.name}: no row is left: {reasons}")
    folds = rows.procedure.folds or 0
    first, second = (_regression(formula, rows, folds) for formula in (full, baseline))
    in_bits = math.log(2) if rows.procedure.units == "nats" else 1.0
    bits = rows.source.values[rows.kept] / in_bits
    response = rows.numbers(rows.response)
    both = np.column_stack([bits, response])
    n = len(bits)
    delta = first.log_likelihood - second.log_likelihood
    deltas, bounds, p = None, (math.nan, math.nan), math.nan
    if first.densities is not None and second.densities is not None:
        deltas = first.densities - second.densities
        bounds, p = _interval(deltas), stats.sign_flip(deltas)
    return ModelFit(
        name=rows.source.name,
        n=n,
        delta_log_likelihood=delta,
        per_word=delta / n,
        ci_low=bounds[0],
        ci_high=bounds[1],
        p=p,
        aic=first.aic,
        baseline_aic=second.aic,
        mean_surprisal=float(np.nanmean(bits)),
        terms=first.terms,
        per_bit=_per_bit(first, rows, full, in_bits, bits),
        pearson=stats.estimate(both, "pearson"),
        spearman=stats.estimate(both, "spearman"),
        left_out=rows.left_out,
        warning=first.warning or second.warning,
        rows=np.flatnonzero(rows.kept),
        surprisal=bits,
        response=response,
        residuals=first.residuals,
        deltas=deltas,
    )


def _per_bit(
    regression: Regression, rows: Selection, full: str, in_bits: float, bits: Values
) -> float:
    """The coefficient of the surprisal of the current word, in units of the response per bit."""
    values = {term.term: term.estimate for term in regression.terms}
    slope = values.get(f"scale({SURPRISAL})", math.nan) / float(bits.std(ddof=1))
    slope = values[SURPRISAL] * in_bits if SURPRISAL in values else slope
    scaled = re.fullmatch(r"scale\((.*)\)", sides(full)[0])
    return float(slope * (term_values(scaled[1], rows).std(ddof=1) if scaled else 1.0))


def _regression(formula: str, rows: Selection, folds: int) -> Regression:
    if "|" not in formula:
        return least_squares(formula, rows, folds)
    if folds:
        raise BadInput("folds are for least squares: a mixed model is fitted in sample, --folds 0")
    return mixed_model(formula, rows)


def _interval(deltas: Values) -> tuple[float, float]:
    """Mean -+ 1.96 standard errors."""
    mean, margin = deltas.mean(), _Z * deltas.std(ddof=1) / math.sqrt(len(deltas))
    return float(mean - margin), float(mean + margin)


def _compare(fits: Sequence[ModelFit]) -> list[DeltaComparison]:
    """Compares the first model with each of the others, Holm-adjusted."""
    first, *others = fits
    pairs = [
        (other, first.deltas - other.deltas)
        for other in others
        if first.deltas is not None and other.deltas is not None
    ]
    p_values = [stats.sign_flip(difference) for _, difference in pairs]
    return [
        DeltaComparison(
            first.name, other.name, float(difference.mean()), *_interval(difference), p, adjusted
        )
        for (other, difference), p, adjusted in zip(
            pairs, p_values, stats.holm(p_values), strict=True
        )
    ]
