"""Formulas, linear regression by least squares in sample and held out, mixed models by `mixed`."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmdiag.analysis.mixed import MixedTerm, fit_mixed
from lmdiag.stats import LEVEL, Values
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "scale": lambda x: (x - x.mean()) / x.std(ddof=1),
}
"""Functions of columns in formulas; `scale` is over the fitted rows, with ddof 1 as R has it."""

_COMPUTED = re.compile(r"\b\w+\((?:[^()|]|\([^()|]*\))*\)|`[^`]+`")
_BARS = re.compile(r"\(((?:[^()|]|\((?:[^()]|\([^()]*\))*\))*)(\|\|?)([^()|]+)\)")
_NAME = re.compile(r"`([^`]+)`|([^\W\d][\w.]*)")
_FOREIGN = re.compile(r"[^\w\s.~+:*/()|-]|\*\*")


@dataclass(frozen=True)
class Regression:
    """A fitted model of a response.

    Attributes:
        terms: the fixed effects in sample.
        log_likelihood: maximum, natural logarithm; over folds, of the held-out rows.
        aic: 2 k - 2 log-likelihood in sample; k counts the residual variance, as in R.
        densities: (n,), log density of each row; None for mixed models.
        residuals: (n,), in sample; None for mixed models.
        warning: what makes the estimates unreliable, or "".
    """

    terms: tuple[MixedTerm, ...]
    log_likelihood: float
    aic: float
    densities: Values | None = None
    residuals: Values | None = None
    warning: str = ""


# ---- formulas -----------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Returns a column as a formula has it: names that are not plain stand in backticks."""
    return name if _NAME.fullmatch(name) else f"`{name}`"


def names_in(formula: str) -> list[str]:
    """Returns the columns that a formula names, that of the response first."""
    names = [match[1] or match[2] for match in _NAME.finditer(formula)]
    return list(dict.fromkeys(name for name in names if name not in FUNCTIONS))


def grouping_columns(formula: str) -> list[str]:
    """Returns the columns behind bars, as `subject` in `(1 | subject)`."""
    return names_in(" ".join(group for _, _, group in _BARS.findall(formula)))


def sides(formula: str) -> tuple[str, str]:
    """Returns the response and the terms of a formula.

    Raises:
        BadInput: it is not of the form `y ~ a + b`, or has other signs or functions.
    """
    left, tilde, right = formula.partition("~")
    if not (tilde and left.strip() and right.strip()) or "~" in right:
        raise BadInput(f"formula {formula!r}: write it as in time ~ surprisal + length")
    foreign = [match[0] for match in _FOREIGN.finditer(re.sub("`[^`]*`", "", formula))]
    foreign += [call for call in re.findall(r"\b(\w+)\(", formula) if call not in FUNCTIONS]
    if foreign:
        raise BadInput(
            f"formula {formula!r}: cannot read {foreign[0]!r}; write columns, "
            f"{', '.join(FUNCTIONS)} of columns, and + : * between them"
        )
    return left.strip(), right.strip()


def without_terms(formula: str, pattern: str) -> str:
    """Returns a formula without the terms that name a column that a pattern matches.

    Slopes of random terms are removed, too. What remains is at least an intercept.
    """
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    left, right = sides(formula)

    def kept(terms: str) -> str:
        try:
            factors = [term.factors for term in Formula(terms, _ordering="none")]
        except FormulaicError as error:
            raise _unreadable(formula, error) from None
        texts = [
            ":".join(quoted(f.expr) if f.eval_method.name == "LOOKUP" else f.expr for f in term)
            for term in factors
        ]
        gone = re.compile(pattern)
        others = [text for text in texts if not any(map(gone.fullmatch, names_in(text)))]
        return " + ".join(others if "1" in texts else ["0", *others])

    parts = [(kept(slopes), bar, group.strip()) for slopes, bar, group in _BARS.findall(right)]
    random = [f"({' '.join(part)})" for part in parts if part[0] != "0"]
    fixed = kept(re.sub(rf"\+?\s*{_BARS.pattern}", "", right)).removeprefix("1 + ")
    return f"{left} ~ {' + '.join([fixed, *random])}"


def evaluated(terms: str, rows: DataFrame) -> DataFrame:
    """Returns the values of terms without bars, a column for each; `1` is called Intercept.

    Args:
        terms: e.g. "1 + log(length) * surprisal"; without "0 + " there is an intercept.
        rows: their columns; the index tells what to call a row in a message.

    Raises:
        BadInput: the terms cannot be read, or a value is not finite.
    """
    from formulaic import model_matrix
    from formulaic.errors import FormulaicError

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            values = model_matrix(terms, rows, context={**FUNCTIONS}, na_action="ignore")
    except FormulaicError as error:
        raise _unreadable(terms, error) from None
    if (bad := np.argwhere(~np.isfinite(values.to_numpy(float)))).size:
        row, column = bad[0]
        raise BadInput(f"{rows.index[row]}: {values.columns[column]} is not a finite number")
    return values


def _unreadable(formula: str, error: Exception) -> BadInput:
    return BadInput(f"formula {formula!r} cannot be read: {str(error).partition(chr(10))[0]}")


# ---- models -------------------------------------------------------------------------------------


def fit_regression(formula: str, rows: DataFrame, folds: int = 0) -> Regression:
    """Fits a linear model by least squares, or a mixed model by maximum likelihood.

    In sample, the log density of a row is log N(y; y_hat, s) with s^2 = RSS / n; held out, y_hat
    and s^2 = RSS / (n_train - p) come from the rows of all other folds, p being the number of
    coefficients. Folds are contiguous: R's `cut(1:n, folds)`.

    Args:
        formula: e.g. "time ~ surprisal + length"; with bars it is a mixed model.
        rows: its columns, numbers and, behind bars, text; the index tells what to call a row in a
            message.
        folds: number of folds; 0 for in sample.

    Raises:
        BadInput: a predictor is constant or a combination of others, a value is not finite, there
            are too few rows, or there are folds for a mixed model; see also `fit_mixed`.
    """
    left, right = sides(formula)
    if "|" not in right:
        y = evaluated(f"0 + {left}", rows).to_numpy()[:, 0]
        x = evaluated(right, rows)
        return _least_squares(x.to_numpy(float), y, list(x.columns), folds)
    if folds:
        raise BadInput("folds are for least squares: a mixed model is fitted in sample, --folds 0")
    # functions of columns become columns, since `fit_mixed` has no functions
    names = {part: re.sub(r"\W+", "_", part).strip("_") for part in _COMPUTED.findall(formula)}
    values = {name: evaluated(f"0 + {part}", rows).iloc[:, 0] for part, name in names.items()}
    plain = _COMPUTED.sub(lambda match: names[match[0]], formula)
    fit = fit_mixed(plain, rows.assign(**values).reset_index(drop=True), reml=False)
    shown = {name: part for part, name in names.items()} | {"(Intercept)": "Intercept"}
    terms = tuple(
        replace(term, term=":".join(shown.get(part, part) for part in term.term.split(":")))
        for term in fit.terms
    )
    return Regression(terms, fit.log_likelihood, fit.aic, warning=fit.warning)


def _least_squares(x: Values, y: Values, names: Sequence[str], folds: int) -> Regression:
    from scipy.special import stdtr

    n, p = x.shape
    if n - math.ceil(n / (folds or n + 1)) <= p:
        raise BadInput(f"{n} rows are too few for {p} coefficients: {', '.join(names)}")
    _check_rank(x, names)
    # columns on a common scale, so that their products are well conditioned
    scale = np.sqrt((x**2).mean(axis=0))
    x = x / scale
    beta, rss = _solve(x, y)
    residuals = y - x @ beta
    densities = in_sample = _log_normal(residuals, rss / n)
    if folds:
        densities, fold = np.empty(n), fold_numbers(n, folds)
        for test in (fold == number for number in range(folds)):
            trained, left = _solve(x[~test], y[~test])
            variance = left / (n - test.sum() - p)
            densities[test] = _log_normal(y[test] - x[test] @ trained, variance)
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * rss / (n - p)) / scale
    return Regression(
        terms=tuple(
            MixedTerm(name, value, se, n - p, value / se, 2 * float(stdtr(n - p, -abs(value / se))))
            for name, value, se in zip(names, (beta / scale).tolist(), errors.tolist(), strict=True)
        ),
        log_likelihood=float(densities.sum()),
        aic=2 * (p + 1) - 2 * float(in_sample.sum()),
        densities=densities,
        residuals=residuals,
    )


def term_interval(term: MixedTerm) -> tuple[float, float]:
    """Returns the 95% interval of a coefficient, by the t distribution."""
    from scipy.special import stdtrit

    margin = float(stdtrit(term.df, (1 + LEVEL) / 2)) * term.se
    return term.estimate - margin, term.estimate + margin


def fold_numbers(n: int, folds: int) -> NDArray[np.intp]:
    """Returns the number, from 0, of the contiguous fold of each of n rows.

    R's `cut(1:n, folds, labels = FALSE)`: row i is in the fold whose interval (a, b] holds i, the
    bounds being equally spaced from 1 to n.
    """
    inner = 1 + np.arange(1, folds) * ((n - 1) / folds)
    return np.searchsorted(inner, np.arange(1, n + 1), side="left")


def _solve(x: Values, y: Values) -> tuple[Values, float]:
    """Returns the coefficients and the residual sum of squares."""
    beta = np.asarray(np.linalg.lstsq(x, y, rcond=None)[0], np.float64)
    return beta, float(((y - x @ beta) ** 2).sum())


def _log_normal(residuals: Values, variance: float) -> Values:
    """Returns log N(residual; 0, variance)."""
    return -0.5 * (math.log(2 * math.pi * variance) + residuals**2 / variance)


def _check_rank(x: Values, names: Sequence[str]) -> None:
    """Refuses a predictor that is constant, or a combination of those before it."""
    for i, name in enumerate(names):
        if name != "Intercept" and np.ptp(x[:, i]) == 0:
            raise BadInput(f"column {name} is constant ({x[0, i]:g}) on the fitted rows: drop it")
    diagonal = np.abs(np.diag(np.linalg.qr(x / np.linalg.norm(x, axis=0), mode="r")))
    if (dependent := np.flatnonzero(diagonal < 1e-10)).size:
        name = names[int(dependent[0])]
        raise BadInput(f"column {name} repeats predictors before it on the fitted rows: drop it")
