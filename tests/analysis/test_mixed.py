"""Mixed models against a second fit; lme4's published figures: test_reproduced.py."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from profiled import Grouping, fit_profiled

from lmdiag.analysis.mixed import fit_mixed
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


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize(
    ("random", "slopes", "correlated", "n_covariances"),
    [
        ("(1 | subject)", "", True, 1),
        ("(1 + a + b || subject)", "ab", False, 3),
        ("(1 + a | subject)", "a", True, 3),
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
    groupings = [
        Grouping(table[["one", *slopes]].to_numpy(), table.subject.to_numpy(), correlated),
        Grouping(table[["one"]].to_numpy(), table.item.to_numpy()),
    ]
    x = table.assign(ab=table.a * table.b)[["one", "a", "b", "ab"]].to_numpy()
    other = fit_profiled(table.y.to_numpy(), x, groupings, reml)
    assert [term.estimate for term in fit.terms] == pytest.approx(other.beta, rel=1e-4)
    assert [term.se for term in fit.terms] == pytest.approx(other.se, rel=1e-4)
    sds = [sd for terms in fit.random_sd.values() for sd in terms.values()]
    assert sds == pytest.approx(other.sd, rel=1e-3)
    assert fit.residual_sd == pytest.approx(other.sigma, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-5)
    # variances and covariances of subjects, of items, of residuals, and four coefficients
    n_parameters = n_covariances + 1 + 1 + 4
    assert fit.aic == pytest.approx(2 * n_parameters - 2 * fit.log_likelihood)


def test_a_singular_fit_says_so() -> None:
    table = simulated(1)
    table["y"] -= table.groupby("item").y.transform("mean")  # no variance between items is left
    assert fit_mixed("y ~ a + (1 | item)", table).warning.startswith("singular fit: ")


def test_levels_of_text_columns_are_named() -> None:
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
def test_a_formula_that_cannot_be_fitted(formula: str, message: str) -> None:
    table = simulated(3)
    with pytest.raises(BadInput, match=message):
        fit_mixed(formula, table.assign(double=2 * table.a))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mixedlm", None)
    with pytest.raises(BadInput, match=r"pip install 'lmdiag\[mixed\]'"):
        fit_mixed("y ~ a + (1 | item)", simulated(3))
