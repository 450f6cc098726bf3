"""How well surprisals predict human measures: delta log-likelihood of each model, and compared."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pandas import DataFrame, Series
from pandas.api.types import is_numeric_dtype
from pydantic_core import to_jsonable_python

from lmdiag import __version__, stats
from lmdiag.analysis.human import HumanTable, SurprisalSource
from lmdiag.analysis.linear import LinearFit, nested_test
from lmdiag.analysis.procedures import SURPRISAL
from lmdiag.analysis.regression import evaluate_terms, fit_formula, is_mixed, names_in, sides
from lmdiag.analysis.selection import Selection
from lmdiag.presentable import Presentable
from lmdiag.results.model_labels import NO_CONTEXT
from lmdiag.stats import Values
from lmdiag.types import BadInput

_LEAST_LEFT = 1e-10
"""Share of the variance of a surprisal below which what a control leaves of it is rounding."""

_Z = 1.96
"""Normal quantile of 95% intervals, rounded as in the procedure of Wilcox et al. (2023)."""


@dataclass(frozen=True)
class ModelFit:
    """How well one model's surprisals predict the response.

    Attributes:
        name: of the model; with several predictors, and of those that are tested.
        source: of the model.
        layer: after which the model answered, of several; None for one answer.
        n: number of rows.
        delta_log_likelihood: log-likelihood of the full model less that of the baseline.
        per_word: delta_log_likelihood / n.
        ci_low, ci_high: held out, per_word -+ 1.96 standard errors over rows; else NaN.
        test, statistic, df, p: of the full model against the baseline on all rows, in sample, see
            `lmdiag.analysis.linear.nested_test`.
        published_p: of the test of the profile, where it has one of its own; else NaN.
        aic, baseline_aic: of both models, in sample.
        mean_surprisal: of the rows, bits.
        terms: of the full model in sample, per unit of the surprisals that were read.
        predictor_sd: standard deviation of the column of each term.
        per_bit: coefficient of the current word's surprisal, units of the response per bit, also
            where both are scaled; NaN without this term.
        pearson, spearman: correlation of response and surprisal, with intervals by Fisher's z.
        left_out: reason -> number of rows.
        warning: what makes the estimates unreliable, or "".
        words: a row per fitted row: its place in the table from 0 (index), surprisal (bits),
            response; residual of the full model in sample and delta of the log density, which are
            None for mixed models; and `shares_token`, where a token covers two words: "next" for a
            word whose surprisal is that of both.
    """

    name: str
    source: str
    layer: int | None
    n: int
    delta_log_likelihood: float
    per_word: float
    ci_low: float
    ci_high: float
    test: Literal["F", "LR"]
    statistic: float
    df: tuple[int, ...]
    p: float
    published_p: float
    aic: float
    baseline_aic: float
    mean_surprisal: float
    terms: DataFrame
    predictor_sd: Series
    per_bit: float
    pearson: stats.Estimate
    spearman: stats.Estimate
    left_out: Mapping[str, int]
    warning: str
    words: DataFrame

    def figures(self) -> dict[str, str | float]:
        """Returns the fields that are single values, by name; `layer` only where there is one."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, str | int | float)
        }


@dataclass(frozen=True, repr=False)
class HumanFit(Presentable):
    """The fits of some models to one response.

    Attributes:
        signature: equal for fits of the same rows by the same procedure.
        full, baseline: formulas.
        models: a fit for each model.
        comparisons: of the first model, the base, with each of the others, paired by row; none for
            mixed models. Columns: base_model, new_model (names); difference (mean of new less base
            delta log density per row); ci_low, ci_high, p (of the sign-flip test);
            p_adjusted (by Holm's method over all comparisons, n_tests).
        notes: what was computed or averaged, for readers.
        table: the human measures, and how they were fitted.
    """

    signature: str
    full: str
    baseline: str
    models: Sequence[ModelFit]
    comparisons: DataFrame
    notes: Sequence[str]
    table: HumanTable

    def __repr__(self) -> str:
        """Returns the response, the models and the signature, instead of all figures."""
        names = ", ".join(model.name for model in self.models)
        return f"<HumanFit of {sides(self.full)[0]} by {names}; {self.signature}>"

    @property
    def reads(self) -> tuple[str, ...]:
        """Lines that show how the table was read: its first word, and the uses of its columns."""
        columns_of_surprisals = [model.source for model in self.models]
        return self.table.reads(columns_of_surprisals)

    @property
    def is_mixed(self) -> bool:
        """Whether the full model has random effects."""
        return is_mixed(self.full)

    def to_json(self) -> dict[str, Any]:
        """Returns all figures as plain values of JSON; an undefined figure is None."""
        models = []
        for fit in self.models:
            further_figures = {
                "pearson": fit.pearson,
                "spearman": fit.spearman,
                "left_out": fit.left_out,
                "df": fit.df,
                "coefficients": fit.terms["estimate"].to_dict(),
                "standard_errors": fit.terms["se"].to_dict(),
                "t": fit.terms["t"].to_dict(),
                # term -> [ci_low, ci_high]
                "intervals": fit.terms[["ci_low", "ci_high"]].T.to_dict("list"),
            }
            models.append(fit.figures() | further_figures)
        record = {
            "signature": self.signature,
            "full": self.full,
            "baseline": self.baseline,
            "units": self.table.procedure.units or "bits",
            "models": models,
            "comparisons": self.comparisons.to_dict("records"),
            "notes": self.notes,
        }
        values: dict[str, Any] = to_jsonable_python(record, inf_nan_mode="null")
        return values

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per model."""
        return DataFrame([fit.figures() for fit in self.models])


def fit_surprisals(table: HumanTable, sources: Sequence[SurprisalSource]) -> HumanFit:
    """Fits the response with and without each model's surprisals, on the same rows.

    A model without any row to fit is left out with a note, and so is one whose surprisal is a
    control of the baseline. Then only rows with surprisals of all models are fitted.

    Args:
        table: the human measures, and how they are fitted.
        sources: the surprisals of each model. Word frequencies are fitted after all models.
    """
    # word frequencies, whose names begin with `NO_CONTEXT`, come last; others keep their order
    sources = sorted(sources, key=lambda source: source.name.startswith(NO_CONTEXT))
    names = [source.name for source in sources]
    repeated_names = [name for name in names if names.count(name) > 1]
    if repeated_names:
        raise BadInput(f"two sets of surprisals are called {repeated_names[0]}: rename one")
    # what is fitted, and on which rows: those for which every model has a surprisal
    full, baseline = table.procedure.formulas()
    regressions = table.procedure.regressions()  # label -> full model and baseline
    _, *controls = names_in(baseline)  # the response is named first
    selections = [Selection(table, source) for source in sources]
    selections, lines_without_rows = _divide_by_rows(selections)
    selections, control_lines = _divide_by_controls(selections, controls)
    # `kept` says which rows of the table a selection has; the rows that all have are fitted
    has_all_surprisals = np.logical_and.reduce([selection.kept for selection in selections])
    for selection in selections:
        selection.leave_out("no surprisal of another model", ~has_all_surprisals)
        if not selection.kept.any():
            raise BadInput(_no_row_line(selection))
    fits = [
        _fit_selection(selection, label, *formulas)
        for selection in selections
        for label, formulas in regressions.items()
    ]
    comparisons = DataFrame()
    if not is_mixed(full):
        # With predictors a and b, each model has the regressions a, b, a + b, a beyond b, b beyond
        # a. Models are compared in the middle one of these, which has all predictors.
        n_alone = len(regressions) // 2
        comparisons = _comparisons(fits[n_alone :: len(regressions)])
    selection_notes = [note for selection in selections for note in selection.notes.values()]
    notes = [*lines_without_rows, *control_lines, *table.notes, *selection_notes]
    notes = list(dict.fromkeys([*notes, *_layer_notes(fits)]))
    version = ".".join(__version__.split(".")[:2])  # major and minor
    signature = f"lmdiag:{version}|human:{table.fingerprint()}|full:{full}|baseline:{baseline}|"
    signature += table.procedure.signature()
    return HumanFit(signature, full, baseline, fits, comparisons, notes, table)


def _divide_by_rows(selections: Sequence[Selection]) -> tuple[list[Selection], list[str]]:
    """Returns the selections that keep any row, and a line for each of the others.

    A line is, for example, "gpt2: no row is left: rt is missing (120)". `BadInput` if no selection
    keeps a row.
    """
    with_rows = [selection for selection in selections if selection.kept.any()]
    lines = [_no_row_line(selection) for selection in selections if not selection.kept.any()]
    if not with_rows:
        raise BadInput("; ".join(lines))
    return with_rows, lines


def _divide_by_controls(
    selections: Sequence[Selection], controls: Sequence[str]
) -> tuple[list[Selection], list[str]]:
    """Returns the selections whose surprisal differs from all controls, and a line for each other.

    A surprisal that equals a control adds nothing to the baseline. An example are word frequencies
    as a model: their surprisal is the control `log_frequency` with the other sign. `BadInput` if
    the surprisals of all selections are controls.

    Args:
        selections: the rows to fit, with the surprisals of a model each.
        controls: columns of the baseline.
    """
    testable = []
    lines = []
    for selection in selections:
        control = _control_equal_to_surprisal(selection, controls)
        if control:
            lines.append(
                f"{selection.source.name}: its surprisal and the control {control} of the baseline "
                "are the same but for sign and unit, so that it adds nothing: name other controls "
                "(--controls) to see its gain"
            )
        else:
            testable.append(selection)
    if not testable:
        raise BadInput("; ".join(lines))
    return testable, lines


def _control_equal_to_surprisal(selection: Selection, controls: Sequence[str]) -> str:
    """Returns the control that correlates perfectly with the surprisal; "" for none.

    Such a surprisal adds nothing to the baseline, which has the control. For example,
    "log_frequency" if the surprisal is -log2 of the same frequencies.
    """
    rows = selection.rows()
    if SURPRISAL not in rows:
        return ""
    for name in controls:
        if name == SURPRISAL:
            continue
        pair = rows[[SURPRISAL, name]]
        if all(is_numeric_dtype(column) and np.ptp(column) for _, column in pair.items()):
            r = np.corrcoef(pair.to_numpy(float).T)[0, 1]
            if 1 - r**2 < _LEAST_LEFT:  # r is 1 or -1 but for rounding
                return name
    return ""


def _no_row_line(selection: Selection) -> str:
    """Returns a line that says why no row of a model is fitted.

    For example, "gpt2: no row is left: rt is missing (120)".
    """
    reasons = ", ".join(f"{reason} ({n:,})" for reason, n in selection.left_out.items())
    return f"{selection.source.name}: no row is left: {reasons}"


def _layer_notes(fits: Sequence[ModelFit]) -> list[str]:
    """Returns a note which of several layers has the largest gain, and a warning of its test.

    [] if fewer than two layers were fitted, or none has a gain.
    """
    layer_fits = [fit for fit in fits if fit.layer is not None]
    n_layers = len({fit.source for fit in layer_fits})  # each layer is a source of its own
    if n_layers < 2:
        return []
    best = max(layer_fits, key=lambda fit: fit.per_word)
    if best.per_word <= 0:
        return []
    # layers of several models have the same numbers
    has_several_models = n_layers > len({fit.layer for fit in layer_fits})
    model_text = f" ({best.source})" if has_several_models else ""
    return [
        f"{n_layers} layers were tried; the largest gain is that of layer {best.layer}{model_text},"
        " which these rows have chosen: its interval and p are those of a layer that was chosen in "
        "advance, and too good for the best of several; test it on other rows"
    ]


def _comparisons(fits: Sequence[ModelFit]) -> DataFrame:
    """Compares the first fit with each of the others, paired by row; see `HumanFit.comparisons`.

    A word's delta is the log density of its response in the full model less that in the baseline.
    """
    reference, *others = fits
    rows = list[dict[str, Any]]()
    for other in others:
        differences = other.words["delta"].to_numpy() - reference.words["delta"].to_numpy()
        test = stats.sign_flip(differences)
        rows.append(
            {
                "base_model": reference.name, "new_model": other.name,
                "difference": differences.mean(),
                "ci_low": test.ci_low, "ci_high": test.ci_high, "p": test.p,
            }
        )  # fmt: skip
    p_adjusted = stats.holm([row["p"] for row in rows])
    return DataFrame(rows).assign(p_adjusted=p_adjusted, n_tests=len(rows))


def _fit_selection(
    selection: Selection, label: str, formula: str, baseline_formula: str
) -> ModelFit:
    """Fits two formulas to the rows that a model's selection keeps, and compares them.

    For example, "rt ~ surprisal + length" and "rt ~ length": how much better the response is
    predicted with the surprisals of the model.

    Args:
        selection: the rows of a table of human measures, with the surprisals of one model.
        label: the predictors that are tested, e.g. "surprisal beyond entropy". It is part of the
            name of the fit if the procedure has several predictors.
        formula: of the full model.
        baseline_formula: of the same without these predictors.
    """
    source = selection.source
    procedure = selection.table.procedure
    rows = selection.rows()
    fitted_rows = np.flatnonzero(selection.kept)
    n = len(fitted_rows)
    # the two fits on the same rows, and how much more probable the responses are by the first one
    full = fit_formula(formula, rows, procedure.folds or 0)
    baseline = fit_formula(baseline_formula, rows, procedure.folds or 0)
    delta = full.log_likelihood - baseline.log_likelihood
    deltas = None  # of the log density of each row
    margin = math.nan
    published_p = math.nan
    # least squares gives the log density of each row, a mixed model does not
    if full.densities is not None and baseline.densities is not None:
        deltas = full.densities - baseline.densities
        if procedure.folds:  # held out, as Wilcox et al. (2023) do
            margin = _Z * float(deltas.std(ddof=1)) / math.sqrt(len(deltas))
        if procedure.published_test:
            published_p = stats.sign_flip(deltas).p
    # surprisals are fitted in the units of the procedure, and shown in bits
    units_per_bit = math.log(2) if procedure.units == "nats" else 1.0
    bits = source.values[fitted_rows] / units_per_bit
    response = rows[selection.response].to_numpy()
    # columns of `ModelFit.words`, which charts and csv files show
    words = {"surprisal": bits, "response": response, "residual": full.residuals, "delta": deltas}
    if source.shares_token is not None:
        words["shares_token"] = source.shares_token[fitted_rows]
    pairs = np.column_stack([bits, response])
    has_several_predictors = len(procedure.predictors) > 1
    return ModelFit(
        name=f"{source.name}: {label}" if has_several_predictors else source.name,
        source=source.name,
        layer=source.layer,
        n=n,
        delta_log_likelihood=delta,
        per_word=delta / n,
        ci_low=delta / n - margin,
        ci_high=delta / n + margin,
        **nested_test(full, baseline),  # the fields test, statistic, df and p
        published_p=published_p,
        aic=full.aic,
        baseline_aic=baseline.aic,
        mean_surprisal=float(np.nanmean(bits)),
        terms=full.terms,
        predictor_sd=full.predictor_sd,
        per_bit=_slope_per_bit(full, formula, rows, bits, units_per_bit),
        pearson=stats.estimate(pairs, "pearson"),
        spearman=stats.estimate(pairs, "spearman"),
        left_out=selection.left_out,
        warning=full.warning or baseline.warning,
        words=DataFrame(words, fitted_rows),
    )


def _slope_per_bit(
    fit: LinearFit, formula: str, rows: DataFrame, bits: Values, units_per_bit: float
) -> float:
    """Returns the slope of the current word's surprisal, in units of the response per bit.

    Formulas may have scale(...) on either side; the slope is multiplied back to the original units.

    Args:
        fit: the fitted model.
        formula: its formula.
        rows: the data of the fit.
        bits: (n,) surprisal of the words.
        units_per_bit: units of the fitted surprisals in a bit: 1, or log(2) for nats.
    """
    estimates = fit.terms["estimate"]
    if SURPRISAL in estimates:
        slope = estimates[SURPRISAL] * units_per_bit
    else:  # NaN where the formula has neither term
        slope = estimates.get(f"scale({SURPRISAL})", math.nan) / float(bits.std(ddof=1))
    response, _ = sides(formula)
    scaled_response = re.fullmatch(r"scale\((.*)\)", response)
    if scaled_response:  # the slope is in standard deviations of what was scaled, e.g. of log(rt)
        slope *= float(evaluate_terms(f"0 + {scaled_response[1]}", rows).std().iloc[0])
    return float(slope)
