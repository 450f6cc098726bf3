"""A second fit of linear mixed models: the profiled deviance of Bates et al. (2015), dense.

With y = X b + Z u + e and the relative factor of the covariance of u being L(theta), the penalised
least squares problem of section 3 is solved by dense matrices, and the (restricted) profiled
deviance, equations 39 and 41, is minimised by scipy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.optimize import minimize

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Grouping:
    """Random effects of one term: columns (n, q), group of each row, and whether they correlate."""

    columns: Matrix
    group: NDArray[np.intp]
    correlated: bool = True

    def z(self) -> Matrix:
        """The design (n, groups * q)."""
        indicators = np.eye(self.group.max() + 1)[self.group]
        return np.einsum("ng,nq->ngq", indicators, self.columns).reshape(len(indicators), -1)

    def factors(self, theta: list[float]) -> Matrix:
        """Takes the first parameters off theta and returns their lower-triangular factor (q, q)."""
        q = self.columns.shape[1]
        factor = np.zeros((q, q))
        where = np.tril_indices(q) if self.correlated else np.diag_indices(q)
        for i, j in sorted(zip(*where, strict=True), key=lambda place: (place[1], place[0])):
            factor[i, j] = theta.pop(0)
        return factor


@dataclass(frozen=True)
class Profiled:
    """Coefficients, their standard errors, standard deviations, log-likelihood."""

    beta: Matrix
    se: Matrix
    sd: list[Matrix]
    sigma: float
    log_likelihood: float


def fit_profiled(y: Matrix, x: Matrix, groupings: list[Grouping], reml: bool) -> Profiled:
    """Minimises the profiled deviance from several starts."""
    z = np.hstack([grouping.z() for grouping in groupings])
    degrees = len(y) - (x.shape[1] if reml else 0)

    def solve(theta: Matrix) -> tuple[float, Profiled]:
        left = list(theta)
        small = [grouping.factors(left) for grouping in groupings]
        blocks = [
            f for f, g in zip(small, groupings, strict=True) for _ in range(g.group.max() + 1)
        ]
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
        sd = [sigma * np.sqrt((f**2).sum(axis=1)) for f in small]
        return deviance, Profiled(beta, se, sd, sigma, -deviance / 2)

    sizes = [(g.columns.shape[1], g.correlated) for g in groupings]
    start = np.concatenate([np.eye(q)[np.triu_indices(q)] if c else np.ones(q) for q, c in sizes])
    best = start
    for _ in range(3):  # Nelder-Mead restarted where it stopped
        options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20_000, "maxfev": 20_000}
        best = minimize(lambda t: solve(t)[0], best, method="Nelder-Mead", options=options).x
    return solve(best)[1]
