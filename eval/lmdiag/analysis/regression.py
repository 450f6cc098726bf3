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

from lmdiag.analysis.linear import LinearFit, fit_least_squares, fit_mixed, with_labels
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

# log(rt), scale(log(rt)), `column name`
_COMPUTED = re.compile(r"\b\w+\((?:[^()|]|\([^()|]*\))*\)|`[^`]+`")
# (1 + scale(a) || subject): "1 + scale(a) ", "||" and " subject"
_RANDOM_TERM = re.compile(r"\(((?:[^()|]|\((?:[^()]|\([^()]*\))*\))*)(\|\|?)([^()|]+)\)")
_NAME = re.compile(r"`([^`]+)`|([^\W\d][\w.]*)")
_FOREIGN_SIGN = re.compile(r"[^\w\s.~+:*/()|-]|\*\*")


def quoted(name: str) -> str:
    """Returns a column as a formula has it: a name that is not a plain word stands in backticks.

    >>> quoted("rt"), quoted("reading time")
    ('rt', '`reading time`')
    """
    return name if _NAME.fullmatch(name) else f"`{name}`"


def names_in(formula: str) -> list[str]:
    """Returns the columns that a formula names, that of the response first.

    >>> names_in("log(rt) ~ surprisal + `word length`")
    ['rt', 'surprisal', 'word length']
    """
    names = [match[1] or match[2] for match in _NAME.finditer(formula)]
    return list(dict.fromkeys(name for name in names if name not in FUNCTIONS))


def grouping_columns(formula: str) -> list[str]:
    """Returns the columns behind bars, whose values are the groups of random effects.

    >>> grouping_columns("rt ~ length + (1 | subject) + (1 + length | item)")
    ['subject', 'item']
    """
    groups = [group for _, _, group in _RANDOM_TERM.findall(formula)]
    return names_in(" ".join(groups))


def is_mixed(formula: str) -> bool:
    """Returns whether a formula has random effects, as `(1 | subject)`."""
    _, terms = sides(formula)
    return bool(_RANDOM_TERM.search(terms))


def sides(formula: str) -> tuple[str, str]:
    """Returns the response and the terms of a formula, the texts on the left and right of "~".

    `BadInput` for a formula without both, and for signs and functions that it cannot have.

    >>> sides("log(rt) ~ surprisal + length")
    ('log(rt)', 'surprisal + length')
    """
    left, tilde, right = formula.partition("~")
    if not (tilde and left.strip() and right.strip()) or "~" in right:
        raise BadInput(f"formula {formula!r}: write it as in time ~ surprisal + length")
    without_quoted_names = re.sub("`[^`]*`", "", formula)
    unreadable = [match[0] for match in _FOREIGN_SIGN.finditer(without_quoted_names)]
    unreadable += [call for call in re.findall(r"\b(\w+)\(", formula) if call not in FUNCTIONS]
    if unreadable:
        raise BadInput(
            f"formula {formula!r}: cannot read {unreadable[0]!r}; write columns, "
            f"{', '.join(FUNCTIONS)} of columns, and + : * between them"
        )
    return left.strip(), right.strip()


def without_terms(formula: str, pattern: str) -> str:
    """Returns a formula without the terms that name a column whose whole name a pattern matches.

    Slopes of random terms are removed, too. What remains is at least an intercept. For example, the
    pattern "a" makes `rt ~ a + b + (a | s)` to `rt ~ b + (1 | s)`.
    """
    from formulaic import Formula

    response, terms = sides(formula)

    def remaining(terms: str) -> str:
        """Returns the terms that stay, joined by "+", with "0" first if there is no intercept.

        For example, of "a + b" without the column a it is "1 + b".
        """
        with _errors_in_one_line(formula):
            # in the order given; an intercept is "1", and an interaction has several factors
            parsed_terms = [term.factors for term in Formula(terms, _ordering="none")]
        texts = []
        for factors in parsed_terms:
            names = []
            for factor in factors:
                is_column = factor.eval_method.name == "LOOKUP"  # and no function or number
                names.append(quoted(factor.expr) if is_column else factor.expr)
            texts.append(":".join(names))
        kept = [
            text
            for text in texts
            if not any(re.fullmatch(pattern, name) for name in names_in(text))
        ]
        return " + ".join(kept if "1" in texts else ["0", *kept])

    random_terms = []
    for slopes, bar, group in _RANDOM_TERM.findall(terms):
        remaining_slopes = remaining(slopes)
        if remaining_slopes != "0":  # a random term with neither slope nor intercept is removed
            random_terms.append(f"({remaining_slopes} {bar} {group.strip()})")
    # the fixed terms are what stays without random terms; their intercept is not written
    fixed_terms = remaining(re.sub(rf"\+?\s*{_RANDOM_TERM.pattern}", "", terms))
    return f"{response} ~ {' + '.join([fixed_terms.removeprefix('1 + '), *random_terms])}"


def evaluate_terms(terms: str, rows: DataFrame) -> DataFrame:
    """Returns the values of the terms of a formula, a column for each; `1` is called Intercept.

    For example, "1 + log(length)" gives the columns "Intercept" (all 1) and "log(length)".
    `BadInput` for a value that is not finite; the message names its row by the index.

    Args:
        terms: without random effects, e.g. "1 + log(length) * surprisal"; without "0 + " there is
            an intercept.
        rows: have the columns that the terms name.
    """
    from formulaic import model_matrix

    with _errors_in_one_line(terms), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # "ignore" keeps rows with a missing value, which are refused below by their name
        values = model_matrix(terms, rows, context={**FUNCTIONS}, na_action="ignore")
    not_finite = np.argwhere(~np.isfinite(values.to_numpy(float)))
    if not_finite.size:
        row, column = not_finite[0]
        raise BadInput(f"{rows.index[row]}: {values.columns[column]} is not a finite number")
    return values


@contextmanager
def _errors_in_one_line(formula: str) -> Iterator[None]:
    """Turns an error of formulaic inside the block to a `BadInput` of one line with the formula."""
    from formulaic.errors import FormulaicError

    try:
        yield
    except FormulaicError as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"formula {formula!r} cannot be read: {reason}") from None


def fit_formula(formula: str, rows: DataFrame, folds: int = 0) -> LinearFit:
    """Fits the linear model that a formula names, and returns coefficients and likelihood.

    It is fitted by least squares; a mixed model, in sample, by maximum likelihood.

    Args:
        formula: e.g. "time ~ surprisal + length"; with bars it is a mixed model.
        rows: have its columns: numbers, and texts behind bars. The index names rows in messages.
        folds: see `fit_least_squares`; 0 for a mixed model.
    """
    response, terms = sides(formula)
    if not is_mixed(formula):
        response_values = evaluate_terms(f"0 + {response}", rows).to_numpy(float)[:, 0]
        return fit_least_squares(evaluate_terms(terms, rows), response_values, folds)
    if folds:
        raise BadInput("folds are for least squares: a mixed model is fitted in sample, --folds 0")
    name_of = _names_of_computed_parts(formula)
    groups = grouping_columns(formula)
    values = {}
    for part, name in name_of.items():
        column = part.strip("`")
        # the values of a grouping column are names, and stay as they are
        is_group = column in groups
        values[name] = rows[column] if is_group else evaluate_terms(f"0 + {part}", rows).iloc[:, 0]
    formula_of_columns = _COMPUTED.sub(lambda match: name_of[match[0]], formula)
    table = rows.assign(**values).reset_index(drop=True)  # errors of `fit_mixed` name no rows
    fit = fit_mixed(formula_of_columns, table, reml=False)
    # terms get the names of the formula back
    written_as = {name: part for part, name in name_of.items()} | {"(Intercept)": "Intercept"}
    return replace(fit, terms=fit.terms.rename(index=partial(with_labels, labels=written_as)))


def _names_of_computed_parts(formula: str) -> dict[str, str]:
    """Returns the functions and the names in backticks of a formula -> columns in place of them.

    `fit_mixed` has neither. A column whose name the formula has already gets "_" at its end.

    >>> _names_of_computed_parts("log(rt) ~ `word length` + word_length + (1 | subject)")
    {'log(rt)': 'log_rt', '`word length`': 'word_length_'}
    """
    taken = {*names_in(formula)}
    name_of = {}
    for part in dict.fromkeys(_COMPUTED.findall(formula)):
        name = re.sub(r"\W+", "_", part).strip("_")
        is_same_column = part == f"`{name}`"  # a plain name that stands in backticks
        while name in taken and not is_same_column:
            name += "_"
        taken.add(name)
        name_of[part] = name
    return name_of
