"""Formulas of regressions, least squares in sample and held out, and mixed models by `mixed`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lmdiag.analysis.mixed import MixedTerm, fit_mixed
from lmdiag.stats import LEVEL, Values
from lmdiag.types import BadInput

_FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "scale": lambda x: (x - x.mean()) / x.std(ddof=1),
}
"""Functions of columns in formulas; `scale` is over the fitted rows, with ddof 1 as R has it."""

_CALL = re.compile(rf"\b(?:{'|'.join(_FUNCTIONS)})\((?:[^()]|\([^()]*\))*\)")
_NAME = re.compile(r"`([^`]+)`|([^\W\d][\w.]*)")


class Rows(Protocol):
    """The rows that a model is fitted to."""

    def numbers(self, column: str) -> Values:
        """Returns the values of a column, (n,), all finite."""

    def labels(self, column: str) -> list[str]:
        """Returns the values of a column as text."""

    def where(self, row: int) -> str:
        """Returns what to call a row, from 0, in a message."""


@dataclass(frozen=True)
class Regression:
    """A fitted model of a response.

    Attributes:
        terms: the fixed effects in sample, "Intercept" first.
        log_likelihood: maximum, natural logarithm; over folds, of the held-out rows.
        aic: 2 k - 2 log-likelihood in sample; k counts the residual variance, as in R.
        densities: (n,), log density of each row; None for mixed models.
        residuals: (n,), in sample; None for mixed models.
        warning: what makes the estimates unreliable, or "".
    """

    terms: tuple[MixedTerm, ...]
    log_likelihood: float
    aic: float
    densities: Values | None
    residuals: Values | None
    warning: str = ""


# ---- formulas -----------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Returns a column as a formula has it: names that are not plain stand in backticks."""
    return name if _NAME.fullmatch(name) else f"`{name}`"


def names_in(formula: str) -> list[str]:
    """Returns the columns that a formula names."""
    names = [match[1] or match[2] for match in _NAME.finditer(formula)]
    return list(dict.fromkeys(name for name in names if name not in _FUNCTIONS))


def grouping_factors(formula: str) -> set[str]:
    """Returns the columns behind bars, as `subject` in `(1 | subject)`."""
    parts = formula.split("|")[1:]
    return {name for part in parts for name in names_in(part.partition(")")[0])}


def sides(formula: str) -> tuple[str, str]:
    """Returns the response and the terms of a formula.

    Raises:
        BadInput: it is not of the form `y ~ a + b`.
    """
    left, tilde, right = formula.partition("~")
    if not (tilde and left.strip() and right.strip()) or "~" in right:
        raise BadInput(f"formula {formula!r}: write it as in time ~ surprisal + length")
    if formula.count("(") != formula.count(")"):
        raise BadInput(f"formula {formula!r}: a parenthesis is missing")
    return left.strip(), right.strip()


def without_terms(formula: str, pattern: str) -> str:
    """Returns a formula without the terms that name a column that a pattern matches.

    Terms of random slopes are removed, too. What remains is at least an intercept.
    """
    left, right = sides(formula)
    kept = []
    for term in _split(right, "+"):
        inner = re.fullmatch(r"\((.*?)(\|\|?)(.*)\)", term)
        if inner:
            slopes = _keep(_split(inner[1], "+"), pattern) or ["1"]
            kept.append(f"({' + '.join(slopes)} {inner[2]} {inner[3].strip()})")
        else:
            kept += _keep([term], pattern)
    return f"{left} ~ {' + '.join(kept) or '1'}"


def _keep(terms: Sequence[str], pattern: str) -> list[str]:
    return [
        term for term in terms if not any(re.fullmatch(pattern, name) for name in names_in(term))
    ]


def _split(text: str, separator: str) -> list[str]:
    """Splits at a separator outside of parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _terms(formula: str) -> Iterator[tuple[str, ...]]:
    """Yields the terms without the intercept, each a tuple of factors; `a*b` is a, b and a:b."""
    _, right = sides(formula)
    for term in _split(right, "+"):
        factors = [_split(factor, ":") for factor in _split(term, "*")]
        for size in range(1, len(factors) + 1):
            for chosen in itertools.combinations(factors, size):
                product = tuple(itertools.chain.from_iterable(chosen))
                if product != ("1",):
                    yield product


def term_values(expression: str, rows: Rows) -> Values:
    """Returns the values of a column, or of a function of one."""
    call = re.fullmatch(r"(\w+)\((.*)\)", expression)
    if call and call[1] in _FUNCTIONS:
        inner = term_values(call[2].strip(), rows)
        with np.errstate(all="ignore"):
            values = _FUNCTIONS[call[1]](inner)
        if (bad := np.flatnonzero(~np.isfinite(values))).size:
            where = rows.where(int(bad[0]))
            raise BadInput(f"{where}: {expression} of {inner[bad[0]]:g} is not a finite number")
        return values
    if not (name := _NAME.fullmatch(expression)):
        raise BadInput(
            f"formula: cannot read {expression!r}; write columns, {', '.join(_FUNCTIONS)} of "
            "columns, and + : * between them"
        )
    return rows.numbers(name[1] or name[2])


# ---- least squares ------------------------------------------------------------------------------


def least_squares(formula: str, rows: Rows, folds: int = 0) -> Regression:
    """Fits a linear regression by ordinary least squares.

    In sample, the log density of a row is log N(y; y_hat, s) with s^2 = RSS / n; held out, y_hat
    and s^2 = RSS / (n_train - p) come from the rows of all other folds, p being the number of
    coefficients. Folds are contiguous: R's `cut(1:n, folds)`.

    Args:
        formula: e.g. "time ~ surprisal + length * log_frequency".
        rows: their values.
        folds: number of folds; 0 for in sample.

    Raises:
        BadInput: a predictor is constant or a combination of others, or there are too few rows.
    """
    from scipy.special import stdtr

    y = term_values(sides(formula)[0], rows)
    n = len(y)
    predictors = {
        ":".join(factors): np.prod([term_values(f, rows) for f in factors], axis=0)
        for factors in _terms(formula)
    }
    names = ["Intercept", *predictors]
    x = np.column_stack([np.ones(n), *predictors.values()])
    p = len(names)
    if n - math.ceil(n / (folds or n + 1)) <= p:
        raise BadInput(f"{n} rows are too few for {p} coefficients: {formula}")
    _check_rank(x, names)
    beta, rss = _solve(x, y)
    residuals = y - x @ beta
    in_sample = _log_normal(residuals, rss / n)
    densities = in_sample
    if folds:
        densities = np.empty(n)
        fold = fold_numbers(n, folds)
        for number in range(folds):
            test = fold == number
            trained, left = _solve(x[~test], y[~test])
            variance = left / (n - test.sum() - p)
            densities[test] = _log_normal(y[test] - x[test] @ trained, variance)
    # the same columns on a common scale, so that their products are well conditioned
    scale = np.sqrt((x**2).mean(axis=0))
    covariance = np.linalg.inv((x / scale).T @ (x / scale)) * rss / (n - p)
    errors = np.sqrt(np.diag(covariance)) / scale
    return Regression(
        terms=tuple(
            MixedTerm(name, value, se, n - p, value / se, 2 * float(stdtr(n - p, -abs(value / se))))
            for name, value, se in zip(names, beta.tolist(), errors.tolist(), strict=True)
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
    scale = np.sqrt((x**2).mean(axis=0))
    beta = np.linalg.lstsq(x / scale, y, rcond=None)[0] / scale
    return beta, float(((y - x @ beta) ** 2).sum())


def _log_normal(residuals: Values, variance: float) -> Values:
    """Returns log N(residual; 0, variance)."""
    return -0.5 * (math.log(2 * math.pi * variance) + residuals**2 / variance)


def _check_rank(x: Values, names: Sequence[str]) -> None:
    """Refuses a predictor that is constant, or a combination of those before it."""
    for i, name in enumerate(names[1:], start=1):
        if np.ptp(x[:, i]) == 0:
            raise BadInput(f"column {name} is constant ({x[0, i]:g}) on the fitted rows: drop it")
    norms = np.linalg.norm(x, axis=0)
    diagonal = np.abs(np.diag(np.linalg.qr(x / norms, mode="r")))
    if (dependent := np.flatnonzero(diagonal < 1e-10)).size:
        i = int(dependent[0])
        same = next((o for o in range(i) if np.array_equal(x[:, o], x[:, i])), None)
        what = "predictors before it" if same is None else f"column {names[same]}"
        raise BadInput(f"column {names[i]} repeats {what} on the fitted rows: drop it")


# ---- mixed models -------------------------------------------------------------------------------


def mixed_model(formula: str, rows: Rows) -> Regression:
    """Fits a linear mixed model by maximum likelihood; functions of columns are computed first.

    Args:
        formula: in lme4's notation, with functions of columns as `scale(log(rt))`.
        rows: their values.

    Raises:
        BadInput: see `fit_mixed`.
    """
    from pandas import DataFrame

    table: dict[str, Values | list[str]] = {}
    expressions: dict[str, str] = {}

    def as_column(match: re.Match[str]) -> str:
        name = re.sub(r"\W+", "_", match[0]).strip("_")
        expressions[name] = match[0]
        table[name] = term_values(match[0], rows)
        return name

    plain = _CALL.sub(as_column, formula)
    plain = re.sub(r"`[^`]+`", as_column, plain)
    groups = grouping_factors(plain)
    for name in names_in(plain):
        if name not in table:
            table[name] = rows.labels(name) if name in groups else rows.numbers(name)
    fit = fit_mixed(plain, DataFrame(table), reml=False)

    def shown(term: str) -> str:
        if term == "(Intercept)":
            return "Intercept"
        return ":".join(expressions.get(part, part) for part in term.split(":"))

    return Regression(
        terms=tuple(replace(term, term=shown(term.term)) for term in fit.terms),
        log_likelihood=fit.log_likelihood,
        aic=fit.aic,
        densities=None,
        residuals=None,
        warning=fit.warning,
    )
