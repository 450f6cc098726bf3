"""Linear models: least squares, in sample or held out, and mixed models by `mixedlm`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pandas import CategoricalDtype, DataFrame, Series, cut
from pandas.api.types import is_numeric_dtype
from scipy.special import chdtrc, fdtrc, stdtr, stdtrit

from lmdiag.stats import LEVEL, Values
from lmdiag.text import backticks_hint, in_order, without_copies
from lmdiag.types import BadInput, Coding


@dataclass(frozen=True, kw_only=True)
class LinearFit:
    """A fitted linear model.

    Attributes:
        formula: in lme4's notation; "" for least squares.
        n: number of rows that the model was fitted to.
        left_out: number of rows without a value in a column of the formula.
        terms: a row per coefficient; of a mixed model, per fixed effect. The index is the term: a
            column, columns joined by ":", or the intercept; a level of a column of text is written
            "column[level]" if there are more than two. Columns: estimate and se in units of the
            response; df, in a mixed model by Satterthwaite's approximation; t = estimate / se; p,
            two-sided; ci_low and ci_high (95%) by the t distribution.
        log_likelihood: maximum, or restricted maximum; over folds, of the held-out rows.
        aic: 2 k - 2 log-likelihood in sample, as R and lme4 have it; k counts coefficients,
            variances and covariances.
        random_sd: grouping column -> term -> standard deviation, in units of the response.
        groups: grouping column -> number of groups.
        residual_sd: standard deviation of the residuals.
        warning: "" or what makes the estimates unreliable: a singular fit, no convergence.
        densities: (n,), log density of each row; None for a mixed model.
        residuals: (n,), in sample; None for a mixed model.
        predictor_sd: standard deviation of the column of each term; 0 for the intercept.
    """

    n: int
    terms: DataFrame
    log_likelihood: float
    aic: float
    residual_sd: float
    formula: str = ""
    left_out: int = 0
    random_sd: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    warning: str = ""
    densities: Values | None = None
    residuals: Values | None = None
    predictor_sd: Series = field(default_factory=Series)


def t_tests(estimate: Series, se: Series, df: Series | int) -> DataFrame:
    """Returns the t test and the 95% interval of each estimate, a row each.

    Columns: estimate, se (standard error), df (degrees of freedom), ci_low, ci_high, t, p
    (two-sided). For example, an estimate of 2 with a standard error of 1 and 10 degrees of freedom
    has t = 2, p = .073 and the interval from -0.23 to 4.23.

    Args:
        estimate, se: parallel.
        df: of each estimate, or of all.
    """
    margin = stdtrit(df, (1 + LEVEL) / 2) * se
    t = estimate / se
    table = DataFrame({"estimate": estimate, "se": se, "df": df})
    return table.assign(
        ci_low=estimate - margin, ci_high=estimate + margin, t=t, p=2 * stdtr(df, -t.abs())
    )


def nested_test(full: LinearFit, part: LinearFit) -> dict[str, Any]:
    """Returns the test of two nested models on the same rows, in sample.

    With RSS the residual sum of squares, p the numbers of coefficients and n that of the rows,

        F = ((RSS_part - RSS_full) / (p_full - p_part)) / (RSS_full / (n - p_full))

    The likelihood ratio is conservative where variances of random effects are tested as well.

    Args:
        full: the fit of the larger model; both are least squares, or both are mixed models.
        part: the fit of the model that has some of its terms.

    Returns:
        test: "F" of least squares, "LR" of mixed models (likelihood ratio).
        statistic: F, or twice the difference of the log-likelihoods.
        df: (further coefficients, residual) of F; (further parameters,) of LR.
        p: of the F or chi-squared distribution; NaN where the full model has nothing further.
    """
    is_mixed_model = full.densities is None
    if is_mixed_model:
        delta = full.log_likelihood - part.log_likelihood
        # AIC = 2 parameters - 2 log-likelihood
        n_further = round((full.aic - part.aic) / 2 + delta)
        p = float(chdtrc(n_further, 2 * delta)) if n_further > 0 else math.nan
        return {"test": "LR", "statistic": 2 * delta, "df": (n_further,), "p": p}
    n_further = len(full.terms) - len(part.terms)
    residual_df = full.n - len(full.terms)
    statistic = math.nan
    if {*part.terms.index} < {*full.terms.index}:  # has all terms of the smaller model, and others
        # residual_sd squared is the RSS by the residual degrees of freedom
        rss = full.residual_sd**2 * residual_df
        rss_of_part = part.residual_sd**2 * (residual_df + n_further)
        statistic = (rss_of_part - rss) / n_further / full.residual_sd**2
    p = float(fdtrc(n_further, residual_df, statistic))
    return {"test": "F", "statistic": statistic, "df": (n_further, residual_df), "p": p}


# ---- mixed models --------------------------------------------------------------------------------


def fit_mixed(
    formula: str, table: DataFrame, *, reml: bool = True, coding: Coding = "treatment"
) -> LinearFit:
    """Fits a linear mixed model by the package `mixedlm` (the extra `mixed`).

    Args:
        formula: in lme4's notation, e.g. "surprisal ~ a * b + (1 + a || subject) + (1 | item)".
        table: has the columns of the formula; rows without a value in one of them are left out.
        reml: restricted maximum likelihood, as lme4 does by default; else maximum likelihood, which
            AIC and likelihood ratios of models with different fixed effects need.
        coding: of categories and columns of text, whose levels are in alphabetical order without
            regard to case and accents; see `lmdiag.types.Coding`.

    Raises:
        BadInput: `mixedlm` is not installed; the formula cannot be read, names an unknown column,
            or cannot be fitted to the table.

    Source: Bates et al. (2015), Fitting linear mixed-effects models using lme4; Kuznetsova et al.
    (2017), lmerTest.
    """
    parsed = _parse(formula, table)
    complete_rows = table[sorted(parsed.all_variables)].dropna()
    coded = _code_factors(complete_rows, parsed.grouping_factors, coding)
    fit, fixed_effects = _fit_by_mixedlm(
        formula, parsed, coded.rows, reml=reml, contrasts=coded.contrasts
    )
    problems = []
    if fit.isSingular():
        problems.append(
            "singular fit: a variance is estimated as 0 or a correlation as 1 or -1; simplify the "
            "random effects"
        )
    if not fit.converged:
        problems.append(f"the fit did not converge ({fit.message}): simplify or rescale it")
    random_sd: dict[str, dict[str, float]] = {}
    for group in fit.VarCorr().groups.values():
        sd_of_term = {with_labels(term, coded.labels): sd for term, sd in group.stddev.items()}
        # terms of one grouping column that are not correlated are in several groups
        random_sd.setdefault(group.grouping_factor, {}).update(sd_of_term)
    terms = fixed_effects.rename(index=partial(with_labels, labels=coded.labels))
    return LinearFit(
        formula=formula,
        n=len(complete_rows),
        left_out=len(table) - len(complete_rows),
        terms=terms,
        predictor_sd=Series(fit.matrices.X.std(axis=0, ddof=1), terms.index),
        random_sd=random_sd,
        residual_sd=float(fit.sigma),
        groups={name: int(n) for name, n in fit.ngrps().items()},
        log_likelihood=float(fit.logLik().value),
        aic=float(fit.AIC()),
        warning="; ".join(problems),
    )


def _parse(formula: str, table: DataFrame) -> Any:
    """Returns the formula as `mixedlm` reads it.

    The result has `all_variables` (the columns that the formula names) and `grouping_factors`
    (those behind "|"). `BadInput` if the formula cannot be read, or names an unknown column.
    """
    try:
        import mixedlm
    except ImportError:
        raise BadInput(
            "a formula needs the package mixedlm: `pip install '.[mixed]'` in a clone of lmdiag"
        ) from None
    try:
        parsed = mixedlm.parse_formula(formula)
    except ValueError as error:
        remedy = backticks_hint(formula, table.columns) or (
            "; write it as lme4 has it, as in y ~ a * b + (1 | item), with functions such as log "
            "computed as columns first"
        )
        raise BadInput(f"formula {formula!r}: {error}{remedy}") from None
    unknown_variables = sorted(parsed.all_variables - {*table.columns})
    if unknown_variables:
        names = ", ".join(without_copies(table.columns))
        problem = f"no column {unknown_variables[0]!r}; choose from {names}"
        raise BadInput(f"formula {formula!r}: {problem}")
    return parsed


def with_labels(term: str, labels: Mapping[str, str]) -> str:
    """Returns a term with labels instead of its factors.

    For example, "a:c[z]" for the term "a:c.2" and the labels {"c.2": "c[z]"}.
    """
    return ":".join(labels.get(factor, factor) for factor in term.split(":"))


class _CodedFactors(NamedTuple):
    """Rows whose factors are coded as a regression needs them.

    Attributes:
        rows: factors of two levels are numbers, others are categories.
        contrasts: factor of more than two levels -> the name of its coding, or its matrix.
        labels: coefficient as mixedlm numbers it, "factor.1" -> "factor[level]".
    """

    rows: DataFrame
    contrasts: dict[str, Any]
    labels: dict[str, str]


def _code_factors(rows: DataFrame, grouping: Collection[str], coding: Coding) -> _CodedFactors:
    """Codes columns of text and categories: two levels as numbers, more levels as categories.

    For example, with treatment coding a column of "a" and "b" becomes 0.0 and 1.0; a column of "x",
    "y" and "z" stays a category, and the labels are {"name.1": "name[y]", "name.2": "name[z]"}.

    Args:
        rows: the columns of a formula.
        grouping: columns that name the groups of random effects, which are left as they are.
        coding: "treatment", "sum" or "difference".
    """
    coded = rows.copy()
    contrasts: dict[str, Any] = {}
    labels = {}
    for name in rows.columns:
        if name in grouping or is_numeric_dtype(rows[name]):
            continue
        column = rows[name]
        if not isinstance(column.dtype, CategoricalDtype):
            column = column.astype(CategoricalDtype(in_order(column.unique())))
        coded[name] = column.cat.remove_unused_categories()
        levels = [*coded[name].cat.categories]
        if len(levels) == 2:
            # 0 and 1, or ±0.5: in either case the coefficient is the second less the first level
            is_second = (rows[name] == levels[1]).astype(float)
            coded[name] = is_second if coding == "treatment" else is_second - 0.5
            continue
        # sum coding has no coefficient for the last level, treatment coding none for the first one
        coefficient_labels = levels[:-1] if coding == "sum" else levels[1:]
        contrasts[name] = coding
        if coding == "difference":
            from formulaic.transforms.contrasts import DiffContrasts

            coefficient_labels = [f"{high} - {low}" for low, high in pairwise(levels)]
            matrix = DiffContrasts().get_coding_matrix(levels, sparse=False)
            contrasts[name] = matrix.to_numpy()
        # mixedlm numbers coefficients from 1
        for number, label in enumerate(coefficient_labels, start=1):
            labels[f"{name}.{number}"] = f"{name}[{label}]"
    return _CodedFactors(coded, contrasts, labels)


def _fit_by_mixedlm(
    formula: str, parsed: Any, rows: DataFrame, *, reml: bool, contrasts: Mapping[str, Any]
) -> tuple[Any, DataFrame]:
    """Returns a mixed model fitted by mixedlm, and a table of its fixed effects with their tests.

    Args:
        formula: as the user gave it, for messages.
        parsed: the same, as mixedlm reads it.
        rows: the data.
        reml: whether variances are estimated by restricted maximum likelihood.
        contrasts: factor -> its coding.
    """
    import mixedlm

    # columns that repeat others are an error; groups of fewer than five levels are not
    control = mixedlm.lmerControl(check_rankX="stop", check_nlev_gtreq_5="ignore")
    options = {"REML": reml, "contrasts": contrasts, "control": control}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in `LinearFit.warning`
            fit = mixedlm.lmer(parsed, rows, **options)
            effects = mixedlm.tidy(fit, effects="fixed")
    except Exception as error:  # the library raises errors of many types
        raise BadInput(f"formula {formula!r} cannot be fitted: {error}") from None
    # lme4 refuses as many random effects as rows, too
    for random_term in fit.matrices.random_structures:
        n_effects = random_term.n_levels * random_term.n_terms
        if n_effects >= len(rows):
            raise BadInput(
                f"formula {formula!r} cannot be fitted: {len(rows)} rows for {n_effects} random "
                f"effects of {random_term.grouping_factor}; simplify the random effects"
            )
    effects = effects.rename(columns={"std.error": "se", "statistic": "t", "p.value": "p"})
    effects = effects.set_index("term")[["estimate", "se", "df", "t", "p"]]
    tests = t_tests(effects["estimate"], effects["se"], effects["df"])
    return fit, effects.join(tests[["ci_low", "ci_high"]])


# ---- least squares -------------------------------------------------------------------------------


def fit_least_squares(x: DataFrame, y: Values, folds: int = 0) -> LinearFit:
    """Fits a linear model by least squares, in sample or held out.

    The log-likelihood is the sum of the log densities of the rows, log N(y; y_hat, s). In sample,
    y_hat and s^2 = RSS / n are of all rows, with RSS the residual sum of squares. Held out, y_hat
    and s^2 = RSS / (n_train - p) of a row come from a fit to the rows of all other folds, with p
    the number of coefficients. Folds are contiguous, as those of R's `cut(1:n, folds)`: of 6 rows,
    two folds are the first three and the last three.

    Args:
        x: the predictors, (n, p); a column "Intercept" is constant.
        y: the response, (n,).
        folds: number of folds; 0 for in sample.
    """
    n, p = x.shape
    scale = _check_predictors(x, folds)  # root mean square of each predictor
    scaled = x.to_numpy(float) / scale  # predictors of very different sizes lose digits

    def fit_rows(is_fitted: NDArray[np.bool_]) -> tuple[Values, Values, float]:
        """Fits some rows; returns the coefficients, the residuals of all rows, and one number.

        The number is the residual sum of squares (RSS) of the rows that are fitted.
        """
        solution = np.linalg.lstsq(scaled[is_fitted], y[is_fitted], rcond=None)
        beta = np.asarray(solution[0], np.float64)
        residuals = y - scaled @ beta
        return beta, residuals, float((residuals[is_fitted] ** 2).sum())

    # in sample: coefficients and their errors are of all rows, also if densities are held out
    beta, residuals, rss = fit_rows(np.ones(n, bool))
    in_sample_densities = _log_densities(residuals, rss / n)
    densities = in_sample_densities
    if folds:
        densities = np.empty(n)
        fold_of_row = cut(np.arange(1, n + 1), folds, labels=False)
        for fold in range(folds):
            is_test = fold_of_row == fold
            _, errors, training_rss = fit_rows(~is_test)
            variance = training_rss / (n - is_test.sum() - p)
            densities[is_test] = _log_densities(errors[is_test], variance)
    # standard errors of the coefficients of scaled predictors
    scaled_se = np.sqrt(np.diag(np.linalg.inv(scaled.T @ scaled)) * rss / (n - p))
    names = x.columns.rename("term")
    return LinearFit(
        n=n,
        terms=t_tests(Series(beta / scale, names), Series(scaled_se / scale, names), n - p),
        log_likelihood=float(densities.sum()),
        # the residual variance is a parameter, too
        aic=2 * (p + 1) - 2 * float(in_sample_densities.sum()),
        residual_sd=math.sqrt(rss / (n - p)),
        densities=densities,
        residuals=residuals,
        predictor_sd=x.std(),
    )


def _check_predictors(x: DataFrame, folds: int) -> Values:
    """Refuses predictors whose coefficients cannot be estimated.

    Returns the root mean square of each predictor, (p,), by which they are scaled: products of
    scaled columns are well conditioned.

    Args:
        x: the predictors, (n, p).
        folds: number of folds; 0 for in sample.
    """
    n, p = x.shape
    # rows that the smallest training set lacks; in sample, two degrees of freedom must be left
    n_left_out = math.ceil(n / folds) if folds else 1
    if n - n_left_out <= p:
        raise BadInput(f"{n} rows are too few for {p} coefficients: {', '.join(x.columns)}")
    for name in x.columns.drop("Intercept", errors="ignore"):
        if np.ptp(x[name]) == 0:
            value = x[name].iloc[0]
            raise BadInput(f"column {name} is constant ({value:g}) on the fitted rows: drop it")
    scale = np.sqrt((x**2).mean().to_numpy(float))
    # of a QR decomposition, the diagonal of R has what earlier columns leave of each column
    r = np.linalg.qr(x.to_numpy(float) / scale, mode="r")
    # the length of a scaled column is sqrt(n)
    share_left = np.abs(np.diag(r)) / math.sqrt(n)
    dependent = np.flatnonzero(share_left < 1e-10)  # nothing but rounding
    if dependent.size:
        name = x.columns[dependent[0]]
        raise BadInput(f"column {name} repeats predictors before it on the fitted rows: drop it")
    return np.asarray(scale, np.float64)


def _log_densities(residuals: Values, variance: float) -> Values:
    """Returns the log density of each residual under a normal distribution with mean 0."""
    return -0.5 * (math.log(2 * math.pi * variance) + residuals**2 / variance)
