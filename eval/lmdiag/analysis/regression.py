"""Formulas of regressions: their columns, their terms, and the linear models that they name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
from pandas import DataFrame

from lmdiag.analysis.linear import LinearFit, fit_least_squares, fit_mixed, labelled
from lmdiag.stats import Values
from lmdiag.types import BadInput

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


def is_mixed(formula: str) -> bool:
    """Returns whether a formula has random effects, as `(1 | subject)`."""
    return bool(_BARS.search(sides(formula)[1]))


def sides(formula: str) -> tuple[str, str]:
    """Returns the response and the terms of a formula; `BadInput` for signs that it cannot have."""
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

    left, right = sides(formula)

    def kept(terms: str) -> str:
        with _one_line(formula):
            factors = [term.factors for term in Formula(terms, _ordering="none")]
        texts = [
            ":".join(quoted(f.expr) if f.eval_method.name == "LOOKUP" else f.expr for f in term)
            for term in factors
        ]
        others = [t for t in texts if not any(re.fullmatch(pattern, name) for name in names_in(t))]
        return " + ".join(others if "1" in texts else ["0", *others])

    parts = [(kept(slopes), bar, group.strip()) for slopes, bar, group in _BARS.findall(right)]
    random = [f"({' '.join(part)})" for part in parts if part[0] != "0"]
    fixed = kept(re.sub(rf"\+?\s*{_BARS.pattern}", "", right)).removeprefix("1 + ")
    return f"{left} ~ {' + '.join([fixed, *random])}"


def evaluated(terms: str, rows: DataFrame) -> DataFrame:
    """Returns the values of terms without bars, a column for each; `1` is called Intercept.

    `BadInput` for a value that is not finite names its row by the index.

    Args:
        terms: e.g. "1 + log(length) * surprisal"; without "0 + " there is an intercept.
        rows: their columns.
    """
    from formulaic import model_matrix

    with _one_line(terms), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = model_matrix(terms, rows, context={**FUNCTIONS}, na_action="ignore")
    bad = np.argwhere(~np.isfinite(values.to_numpy(float)))
    if bad.size:
        row, column = bad[0]
        raise BadInput(f"{rows.index[row]}: {values.columns[column]} is not a finite number")
    return values


@contextmanager
def _one_line(formula: str) -> Iterator[None]:
    """Names a formula that the library cannot read."""
    from formulaic.errors import FormulaicError

    try:
        yield
    except FormulaicError as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"formula {formula!r} cannot be read: {reason}") from None


def fit_formula(formula: str, rows: DataFrame, folds: int = 0) -> LinearFit:
    """Fits a linear model by least squares; a mixed model, in sample, by maximum likelihood.

    Args:
        formula: e.g. "time ~ surprisal + length"; with bars it is a mixed model.
        rows: its columns, numbers and, behind bars, text; messages have the index.
        folds: see `fit_least_squares`; 0 for a mixed model.
    """
    left, right = sides(formula)
    if not is_mixed(formula):
        y = evaluated(f"0 + {left}", rows).to_numpy(float)[:, 0]
        return fit_least_squares(evaluated(right, rows), y, folds)
    if folds:
        raise BadInput("folds are for least squares: a mixed model is fitted in sample, --folds 0")
    # functions of columns become columns, since `fit_mixed` has no functions
    names = {part: re.sub(r"\W+", "_", part).strip("_") for part in _COMPUTED.findall(formula)}
    values = {name: evaluated(f"0 + {part}", rows).iloc[:, 0] for part, name in names.items()}
    plain = _COMPUTED.sub(lambda match: names[match[0]], formula)
    fit = fit_mixed(plain, rows.assign(**values).reset_index(drop=True), reml=False)
    terms = {name: part for part, name in names.items()} | {"(Intercept)": "Intercept"}
    return replace(fit, terms=fit.terms.rename(index=partial(labelled, labels=terms)))
