"""Linear models: least squares, in sample or held out, and mixed models by `mixedlm`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmdiag.stats import LEVEL, Values
from lmdiag.text import in_order
from lmdiag.types import BadInput, Coding

if TYPE_CHECKING:
    from pandas import DataFrame, Series


@dataclass(frozen=True)
class Term:
    """A coefficient of a linear model.

    Attributes:
        term: a column, columns joined by ":", or the intercept; a level of a column of text is
            written "column[level]" if there are more than two.
        estimate, se: coefficient and its standard error, in units of the response.
        df: degrees of freedom; by Satterthwaite's approximation in a mixed model.
        t, p: estimate / se, and the two-sided p of a t distribution with df degrees of freedom.
    """

    term: str
    estimate: float
    se: float
    df: float
    t: float
    p: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval, by the t distribution."""
        from scipy.special import stdtrit

        margin = float(stdtrit(self.df, (1 + LEVEL) / 2)) * self.se
        return self.estimate - margin, self.estimate + margin


@dataclass(frozen=True, kw_only=True)
class LinearFit:
    """A fitted linear model.

    Attributes:
        formula: in lme4's notation; "" for least squares.
        n: number of rows that the model was fitted to.
        left_out: number of rows without a value in a column of the formula.
        terms: the coefficients; of a mixed model, the fixed effects.
        log_likelihood: maximum, or restricted maximum; over folds, of the held-out rows.
        aic: 2 k - 2 log-likelihood in sample, as R and lme4 have it; k counts coefficients,
            variances and covariances.
        random_sd: grouping column -> term -> standard deviation, in units of the response.
        groups: grouping column -> number of groups.
        residual_sd: standard deviation of the residuals.
        warning: "" or what makes the estimates unreliable: a singular fit, no convergence.
        densities: (n,), log density of each row; None for a mixed model.
        residuals: (n,), in sample; None for a mixed model.
    """

    n: int
    terms: tuple[Term, ...]
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

    @property
    def residual_df(self) -> int:
        """Rows less coefficients, of least squares."""
        return self.n - len(self.terms)


@dataclass(frozen=True)
class NestedTest:
    """Whether a full model fits the rows better than a part of it.

    Attributes:
        test: "F" of least squares, "LR" of mixed models (likelihood ratio).
        statistic: F, or twice the difference of the log-likelihoods.
        df: (further coefficients, residual) of F; (further parameters,) of LR.
        p: of the F or chi-squared distribution; NaN where the full model has nothing further.
    """

    test: Literal["F", "LR"]
    statistic: float
    df: tuple[int, ...]
    p: float


def nested_test(full: LinearFit, part: LinearFit) -> NestedTest:
    """Returns the test of two nested models on the same rows, in sample.

    With RSS the residual sum of squares, p the numbers of coefficients and n that of the rows,

        F = ((RSS_part - RSS_full) / (p_full - p_part)) / (RSS_full / (n - p_full))

    The likelihood ratio is conservative where variances of random effects are tested as well.
    """
    from scipy.special import chdtrc, fdtrc

    if full.densities is None:  # AIC = 2 parameters - 2 log-likelihood
        delta = full.log_likelihood - part.log_likelihood
        further = round((full.aic - part.aic) / 2 + delta)
        p = float(chdtrc(further, 2 * delta)) if further > 0 else math.nan
        return NestedTest("LR", 2 * delta, (further,), p)
    df = part.residual_df - full.residual_df, full.residual_df
    if not {term.term for term in part.terms} < {term.term for term in full.terms}:
        return NestedTest("F", math.nan, df, math.nan)
    rest = full.residual_sd**2
    statistic = (part.residual_sd**2 * part.residual_df - rest * df[1]) / df[0] / rest
    return NestedTest("F", statistic, df, float(fdtrc(*df, statistic)))


# ---- mixed models --------------------------------------------------------------------------------


def fit_mixed(
    formula: str, table: DataFrame, *, reml: bool = True, coding: Coding = "treatment"
) -> LinearFit:
    """Fits a linear mixed model by `mixedlm` (the extra `lmdiag[mixed]`).

    Args:
        formula: in lme4's notation, e.g. "surprisal ~ a * b + (1 + a || subject) + (1 | item)".
        table: its columns; rows without a value in one of them are left out.
        reml: restricted maximum likelihood, as lme4 does by default; else maximum likelihood, which
            AIC and likelihood ratios of models with different fixed effects need.
        coding: of categories and columns of text, whose levels are in alphabetical order without
            regard to case and accents; see
            `lmdiag.types.Coding`.

    Raises:
        BadInput: `mixedlm` is not installed; the formula cannot be read, names an unknown column,
            or cannot be fitted to the table.

    Source: Bates et al. (2015), Fitting linear mixed-effects models using lme4; Kuznetsova et al.
    (2017), lmerTest.
    """
    try:
        import mixedlm
    except ImportError:
        raise BadInput(
            "a formula needs the package mixedlm: install it with `pip install 'lmdiag[mixed]'`"
        ) from None
    from pandas.api.types import is_numeric_dtype

    try:
        parsed = mixedlm.parse_formula(formula)
    except ValueError as error:
        raise BadInput(
            f"formula {formula!r}: {error}; write it as lme4 has it, as in y ~ a * b + (1 | item), "
            "with functions such as log computed as columns first"
        ) from None
    names = sorted(parsed.all_variables)
    if missing := [name for name in names if name not in table.columns]:
        known = ", ".join(map(str, table.columns))
        raise BadInput(f"formula {formula!r}: no column {missing[0]!r}; choose from {known}")
    used = table[names].dropna()
    texts = [name for name in names if not is_numeric_dtype(used[name])]
    factors = [name for name in texts if name not in parsed.grouping_factors]
    used, labels = _coded(used, factors, coding)
    contrasts: dict[str, Any] = {
        x: successive_differences(used[x].nunique()) if coding == "difference" else coding
        for x in factors
        if not is_numeric_dtype(used[x])
    }
    control = mixedlm.lmerControl(check_rankX="stop", check_nlev_gtreq_5="ignore")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in `LinearFit.warning`
            fit = mixedlm.lmer(parsed, used, REML=reml, contrasts=contrasts, control=control)
            effects = mixedlm.tidy(fit, effects="fixed")
    except Exception as error:  # the library raises errors of many types
        raise BadInput(f"formula {formula!r} cannot be fitted: {error}") from None
    for random in fit.matrices.random_structures:  # as lme4 checks it
        if (n := random.n_levels * random.n_terms) >= len(used):
            raise BadInput(
                f"formula {formula!r} cannot be fitted: {len(used)} rows for {n} random effects of "
                f"{random.grouping_factor}; simplify the random effects"
            )
    problems = {
        "singular fit: a variance is estimated as 0 or a correlation as 1 or -1; simplify the "
        "random effects": fit.isSingular(),
        f"the fit did not converge ({fit.message}): simplify or rescale it": not fit.converged,
    }

    def label(term: str) -> str:
        return ":".join(labels.get(part, part) for part in term.split(":"))

    statistics = effects[["estimate", "std.error", "df", "statistic", "p.value"]].to_numpy(float)
    random_sd: dict[str, dict[str, float]] = {}
    for group in fit.VarCorr().groups.values():
        sds = {label(term): sd for term, sd in group.stddev.items()}
        random_sd.setdefault(group.grouping_factor, {}).update(sds)
    return LinearFit(
        formula=formula,
        n=len(used),
        left_out=len(table) - len(used),
        terms=tuple(
            Term(label(term), *numbers)
            for term, numbers in zip(effects["term"], statistics.tolist(), strict=True)
        ),
        random_sd=random_sd,
        residual_sd=float(fit.sigma),
        groups={name: int(n) for name, n in fit.ngrps().items()},
        log_likelihood=float(fit.logLik().value),
        aic=float(fit.AIC()),
        warning="; ".join(problem for problem, occurs in problems.items() if occurs),
    )


def _coded(
    table: DataFrame, factors: Sequence[str], coding: Coding
) -> tuple[DataFrame, dict[str, str]]:
    """The table with factors of two levels as numbers, and the names of coefficients of others.

    `mixedlm` numbers the coefficients of a factor c as c.1, c.2; they are called c[level].
    """
    from pandas import Categorical

    labels: dict[str, str] = {}
    coded = table.copy()
    for name in factors:
        levels = _levels(table[name])
        if len(levels) == 2:
            upper = 1.0 if coding == "treatment" else 0.5
            is_second = (table[name] == levels[1]).astype(float)
            coded[name] = is_second + upper - 1
            continue
        coded[name] = Categorical(table[name], levels)
        shown = levels[:-1] if coding == "sum" else levels[1:]
        if coding == "difference":
            shown = [f"{high} - {low}" for low, high in pairwise(levels)]
        labels |= {f"{name}.{i}": f"{name}[{level}]" for i, level in enumerate(shown, start=1)}
    return coded, labels


def _levels(column: Series) -> list[str]:
    """The levels that occur, in the order of the categories; of texts, in alphabetical order."""
    if hasattr(column, "cat"):
        return [*column.cat.remove_unused_categories().cat.categories]
    return [*in_order(column.unique())]


def successive_differences(n_levels: int) -> Values:
    """Returns the contrast matrix (k, k - 1) by which a coefficient is a level less the one before.

    Source: Venables and Ripley (2002), `contr.sdif` of MASS.
    """
    rows, columns = np.indices((n_levels, n_levels - 1))
    return np.where(rows > columns, columns + 1, columns + 1 - n_levels) / n_levels


# ---- least squares -------------------------------------------------------------------------------


def fit_least_squares(x: DataFrame, y: Values, folds: int = 0) -> LinearFit:
    """Fits a linear model by least squares, in sample or held out.

    In sample, the log density of a row is log N(y; y_hat, s) with s^2 = RSS / n; held out, y_hat
    and s^2 = RSS / (n_train - p) come from the rows of all other folds, p being the number of
    coefficients. Folds are contiguous: R's `cut(1:n, folds)`.

    Args:
        x: the predictors, (n, p); a column "Intercept" is constant.
        y: the response, (n,).
        folds: number of folds; 0 for in sample.

    Raises:
        BadInput: a predictor is constant or a combination of others, or there are too few rows.
    """
    from scipy.special import stdtr

    (n, p), names = x.shape, list(x.columns)
    if n - math.ceil(n / (folds or n + 1)) <= p:
        raise BadInput(f"{n} rows are too few for {p} coefficients: {', '.join(names)}")
    for name in names:
        if name != "Intercept" and np.ptp(x[name]) == 0:
            value = x[name].iloc[0]
            raise BadInput(f"column {name} is constant ({value:g}) on the fitted rows: drop it")
    # columns on a common scale, so that their products are well conditioned
    scale = np.sqrt((x**2).mean().to_numpy())
    scaled = x.to_numpy(float) / scale
    diagonal = np.abs(np.diag(np.linalg.qr(scaled, mode="r"))) / math.sqrt(n)
    if (dependent := np.flatnonzero(diagonal < 1e-10)).size:
        name = names[int(dependent[0])]
        raise BadInput(f"column {name} repeats predictors before it on the fitted rows: drop it")

    def solved(rows: NDArray[np.bool_]) -> tuple[Values, Values, float]:
        """Coefficients, the residuals of all rows, and RSS of the rows that were fitted."""
        beta = np.asarray(np.linalg.lstsq(scaled[rows], y[rows], rcond=None)[0], np.float64)
        residuals = y - scaled @ beta
        return beta, residuals, float((residuals[rows] ** 2).sum())

    def densities(residuals: Values, variance: float) -> Values:
        return -0.5 * (math.log(2 * math.pi * variance) + residuals**2 / variance)

    beta, residuals, rss = solved(np.ones(n, bool))
    in_sample = held_out = densities(residuals, rss / n)
    if folds:
        held_out, fold = np.empty(n), fold_numbers(n, folds)
        for test in (fold == number for number in range(folds)):
            _, errors, rest = solved(~test)
            held_out[test] = densities(errors[test], rest / (n - test.sum() - p))
    se = np.sqrt(np.diag(np.linalg.inv(scaled.T @ scaled)) * rss / (n - p)) / scale
    t = beta / scale / se
    columns = (beta / scale, se, np.full(p, n - p), t, 2 * stdtr(n - p, -np.abs(t)))
    return LinearFit(
        n=n,
        terms=tuple(map(Term, names, *(column.tolist() for column in columns))),
        log_likelihood=float(held_out.sum()),
        aic=2 * (p + 1) - 2 * float(in_sample.sum()),
        residual_sd=math.sqrt(rss / (n - p)),
        densities=held_out,
        residuals=residuals,
    )


def fold_numbers(n: int, folds: int) -> NDArray[np.intp]:
    """Returns the number, from 0, of the contiguous fold of each of n rows.

    R's `cut(1:n, folds, labels = FALSE)`: row i is in the fold whose interval (a, b] holds i, the
    bounds being equally spaced from 1 to n.
    """
    inner = 1 + np.arange(1, folds) * ((n - 1) / folds)
    return np.searchsorted(inner, np.arange(1, n + 1), side="left")
