"""Mixed models against a second fit; lme4's published figures: test_reproduced.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from lmdiag.analysis.linear import fit_mixed
from lmdiag.types import BadInput


def simulated(seed: int) -> pd.DataFrame:
    """20 subjects x 12 items with two crossed factors, intercepts and slopes of both."""
    rng = np.random.default_rng(seed)
    subject, item = np.divmod(np.arange(240), 12)
    a, b = (item + subject) % 2 - 0.5, (item // 2 + subject // 2) % 2 - 0.5
    by_subject, by_item = rng.normal(0, (1.5, 0.8, 0.6), (20, 3)), rng.normal(0, 1, 12)
    y = 5 + by_subject[subject, 0] + by_item[item] + rng.normal(0, 1, 240)
    y += (0.7 + by_subject[subject, 1]) * a + (by_subject[subject, 2] - 0.4) * b
    return pd.DataFrame({"y": y, "a": a, "b": b, "subject": subject, "item": item})


def fit_marginal(y: Any, x: Any, random: Sequence[tuple[Any, Any, bool]], reml: bool) -> Any:
    """Fits by the marginal likelihood: y is normal with mean X b and variance sigma^2 V(theta).

    V is the identity plus, of each random term, Z L L' Z' within its groups, L(theta) being the
    relative factor of the covariance of its effects. b and sigma are those of generalized least
    squares; the (restricted) likelihood is maximised over theta by scipy.

    Args:
        y, x: response (n,) and design (n, p).
        random: of each term the columns (n, q), the group of each row, and whether they correlate.
        reml: whether by restricted maximum likelihood.

    Returns:
        Coefficients, their standard errors, standard deviations of the random effects and of the
        residuals, log-likelihood.
    """
    # theta: the lower triangles of all factors, or their diagonals
    where = [np.tril_indices(z.shape[1]) if correlated else np.diag_indices(z.shape[1])
             for z, _, correlated in random]  # fmt: skip
    starts = np.cumsum([len(places[0]) for places in where])[:-1]
    degrees = len(y) - (x.shape[1] if reml else 0)

    def solve(theta: Any) -> Any:
        v, sd = np.eye(len(y)), []
        parts = np.split(theta, starts)
        for (z, group, _), places, part in zip(random, where, parts, strict=True):
            factor = np.zeros((z.shape[1], z.shape[1]))
            factor[places] = part
            v += (z @ factor @ factor.T @ z.T) * (group[:, None] == group)
            sd += [*np.sqrt((factor**2).sum(axis=1))]
        weighted = np.linalg.solve(v, np.column_stack([x, y]))
        information = x.T @ weighted[:, :-1]
        beta = np.linalg.solve(information, x.T @ weighted[:, -1])
        sigma2 = (y - x @ beta) @ (weighted[:, -1] - weighted[:, :-1] @ beta) / degrees
        deviance = np.linalg.slogdet(v)[1] + degrees * (1 + np.log(2 * np.pi * sigma2))
        deviance += np.linalg.slogdet(information)[1] if reml else 0
        se = np.sqrt(sigma2 * np.diag(np.linalg.inv(information)))
        return beta, se, np.sqrt(sigma2) * np.array(sd), np.sqrt(sigma2), -deviance / 2

    best = np.concatenate(
        [np.eye(len(z[0]))[of] for (z, *_), of in zip(random, where, strict=True)]
    )
    for _ in range(3):  # restarted where it stopped
        options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 5000, "maxfev": 5000}
        best = minimize(lambda t: -solve(t)[-1], best, method="Nelder-Mead", options=options).x
    return solve(best)


@pytest.mark.parametrize(
    ("random", "slopes", "correlated", "n_covariances", "reml"),
    [
        ("(1 | subject)", "", True, 1, False),
        ("(1 + a + b || subject)", "ab", False, 3, True),
        ("(1 + a | subject)", "a", True, 3, False),
    ],
)
def test_the_profiled_deviance_gives_the_same_fit(
    random: str, slopes: str, correlated: bool, n_covariances: int, reml: bool
) -> None:
    table = simulated(4)
    table.loc[240] = {"y": np.nan, "a": 0.5, "b": 0.5, "subject": 0, "item": 0}
    fit = fit_mixed(f"y ~ a * b + {random} + (1 | item)", table, reml=reml)
    assert (fit.n, fit.left_out, fit.groups) == (240, 1, {"subject": 20, "item": 12})
    assert [term.term for term in fit.terms] == ["(Intercept)", "a", "b", "a:b"]
    assert not fit.warning
    table = simulated(4).assign(one=1.0)
    terms = [
        (table[["one", *slopes]].to_numpy(), table.subject.to_numpy(), correlated),
        (table[["one"]].to_numpy(), table.item.to_numpy(), True),
    ]
    x = table.assign(ab=table.a * table.b)[["one", "a", "b", "ab"]].to_numpy()
    beta, se, sd, sigma, log_likelihood = fit_marginal(table.y.to_numpy(), x, terms, reml)
    assert [term.estimate for term in fit.terms] == pytest.approx(beta, rel=1e-4)
    assert [term.se for term in fit.terms] == pytest.approx(se, rel=1e-4)
    sds = [sd for terms in fit.random_sd.values() for sd in terms.values()]
    assert sds == pytest.approx(sd, rel=1e-3)
    assert fit.residual_sd == pytest.approx(sigma, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(log_likelihood, abs=1e-5)
    # variances and covariances of subjects, of items, of residuals, and four coefficients
    n_parameters = n_covariances + 1 + 1 + 4
    assert fit.aic == pytest.approx(2 * n_parameters - 2 * fit.log_likelihood)


def test_singular_fits_say_so_and_levels_of_text_columns_are_named() -> None:
    table = simulated(1)
    table["y"] -= table.groupby("item").y.transform("mean")  # no variance between items is left
    assert fit_mixed("y ~ a + (1 | item)", table).warning.startswith("singular fit: ")
    table = simulated(2).assign(c=["one", "two", "three"] * 80)
    names = [term.term for term in fit_mixed("y ~ c * a + (1 | item)", table).terms]
    assert names == ["(Intercept)", "c[three]", "c[two]", "a", "c[three]:a", "c[two]:a"]
    fit = fit_mixed("y ~ c + (1 | subject)", table, coding="sum")
    assert [term.term for term in fit.terms] == ["(Intercept)", "c[one]", "c[three]"]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ a + (1 | item", "write it as lme4 has it"),
        ("y ~ a + (1 | pair)", "no column 'pair'; choose from y, a"),
        ("y ~ a + double + (1 | item)", "cannot be fitted: .* rank deficient"),
        ("y ~ a + (1 | y)", "240 rows for 240 random effects of y"),
    ],
)
def test_a_formula_that_cannot_be_fitted(
    formula: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = simulated(3)
    with pytest.raises(BadInput, match=message):
        fit_mixed(formula, table.assign(double=2 * table.a))
    monkeypatch.setitem(sys.modules, "mixedlm", None)
    with pytest.raises(BadInput, match=r"pip install 'lmdiag\[mixed\]'"):
        fit_mixed(formula, table)
