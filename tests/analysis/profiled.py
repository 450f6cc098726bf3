"""A second fit of linear mixed models: the profiled deviance of Bates et al. (2015), dense.

With y = X b + Z u + e and the relative factor of the covariance of u being L(theta), the penalised
least squares problem of section 3 is solved by dense matrices, and the (restricted) profiled
deviance, equations 39 and 41, is minimised by scipy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.optimize import minimize

Matrix = NDArray[np.float64]


class Grouping(NamedTuple):
    """Random effects of one term: columns (n, q), group of each row, and whether they correlate."""

    columns: Matrix
    group: NDArray[np.intp]
    correlated: bool = True


class Profiled(NamedTuple):
    """Coefficients, their standard errors, standard deviations, log-likelihood."""

    beta: Matrix
    se: Matrix
    sd: list[float]
    sigma: float
    log_likelihood: float


def fit_profiled(y: Matrix, x: Matrix, groupings: list[Grouping], reml: bool) -> Profiled:
    """Minimises the profiled deviance from several starts."""
    n_groups = [grouping.group.max() + 1 for grouping in groupings]
    z = np.hstack([
        np.einsum("ng,nq->ngq", np.eye(n)[of.group], of.columns).reshape(len(y), -1)
        for n, of in zip(n_groups, groupings, strict=True)
    ])  # fmt: skip
    sizes = [of.columns.shape[1] for of in groupings]
    # theta: the lower triangles of all factors, or their diagonals
    where = [np.tril_indices(q) if of.correlated else np.diag_indices(q)
             for q, of in zip(sizes, groupings, strict=True)]  # fmt: skip
    degrees = len(y) - (x.shape[1] if reml else 0)

    def solve(theta: Matrix) -> Profiled:
        factors = [np.zeros((q, q)) for q in sizes]
        starts = np.cumsum([len(places[0]) for places in where])[:-1]
        for factor, places, part in zip(factors, where, np.split(theta, starts), strict=True):
            factor[places] = part
        blocks = [f for f, n in zip(factors, n_groups, strict=True) for _ in range(n)]
        zl = z @ block_diag(*blocks)
        a = zl.T @ zl + np.eye(zl.shape[1])
        m = np.linalg.solve(a, np.column_stack([zl.T @ x, zl.T @ y]))
        information = x.T @ x - x.T @ zl @ m[:, :-1]
        beta = np.linalg.solve(information, x.T @ y - x.T @ zl @ m[:, -1])
        u = m[:, -1] - m[:, :-1] @ beta
        r2 = ((y - x @ beta - zl @ u) ** 2).sum() + u @ u
        deviance = np.linalg.slogdet(a)[1] + degrees * (1 + np.log(2 * np.pi * r2 / degrees))
        deviance += np.linalg.slogdet(information)[1] if reml else 0
        sigma = np.sqrt(r2 / degrees)
        se = sigma * np.sqrt(np.diag(np.linalg.inv(information)))
        sd = [sigma * np.sqrt((row**2).sum()) for factor in factors for row in factor]
        return Profiled(beta, se, sd, sigma, -deviance / 2)

    best = np.concatenate([np.eye(q)[of] for q, of in zip(sizes, where, strict=True)])
    for _ in range(3):  # Nelder-Mead restarted where it stopped
        options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20_000, "maxfev": 20_000}
        best = minimize(
            lambda theta: -solve(theta).log_likelihood, best, method="Nelder-Mead", options=options
        ).x
    return solve(best)
