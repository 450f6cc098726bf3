"""Mixed models against a second fit and against lme4's published figures."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from profiled import Grouping, Profiled, fit_profiled

from lmdiag.analysis.mixed import MixedFit, fit_mixed
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


def assert_equal(fit: MixedFit, other: Profiled) -> None:
    terms = [(term.estimate, term.se) for term in fit.terms]
    assert terms == [
        pytest.approx(pair, rel=1e-4) for pair in zip(other.beta, other.se, strict=True)
    ]
    sds = [sd for terms in fit.random_sd.values() for sd in terms.values()]
    assert sds == pytest.approx(np.concatenate(other.sd), rel=1e-3)
    assert fit.residual_sd == pytest.approx(other.sigma, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-5)


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("design", ["crossed", "independent slopes", "correlated slope"])
def test_the_profiled_deviance_gives_the_same_fit(design: str, reml: bool) -> None:
    table = simulated(4)
    one, a, b = np.ones(len(table)), table.a.to_numpy(), table.b.to_numpy()
    subject, item = table.subject.to_numpy(), table.item.to_numpy()
    items = Grouping(one[:, None], item)
    columns = {
        "crossed": ("(1 | subject)", [one], True),
        "independent slopes": ("(1 + a + b || subject)", [one, a, b], False),
        "correlated slope": ("(1 + a | subject)", [one, a], True),
    }
    random, slopes, correlated = columns[design]
    fit = fit_mixed(f"y ~ a * b + {random} + (1 | item)", table, reml=reml)
    x = np.column_stack([one, a, b, a * b])
    by_subject = Grouping(np.column_stack(slopes), subject, correlated)
    assert_equal(fit, fit_profiled(table.y.to_numpy(), x, [by_subject, items], reml))
    # variances and covariances, the residual variance, and four coefficients
    n_covariances = {"crossed": 1, "independent slopes": 3, "correlated slope": 3}[design]
    assert fit.n_parameters == n_covariances + 1 + 1 + 4
    assert fit.aic == pytest.approx(2 * fit.n_parameters - 2 * fit.log_likelihood)
    assert (fit.n, fit.groups) == (240, {"subject": 20, "item": 12})
    assert [term.term for term in fit.terms] == ["(Intercept)", "a", "b", "a:b"]
    assert not fit.warning


def test_a_singular_fit_says_so() -> None:
    table = simulated(1)
    table["y"] -= table.groupby("item").y.transform("mean")  # no variance between items is left
    assert fit_mixed("y ~ a + (1 | item)", table).warning.startswith("singular fit: ")


def test_levels_of_text_columns_are_named() -> None:
    table = simulated(2).assign(c=["one", "two", "three"] * 80)
    names = [term.term for term in fit_mixed("y ~ c * a + (1 | item)", table).terms]
    assert names == ["(Intercept)", "c[three]", "c[two]", "a", "c[three]:a", "c[two]:a"]
    fit = fit_mixed("y ~ c + (1 | subject)", table, coding={"c": "sum"})
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


def test_rows_without_a_value_are_left_out_and_counted() -> None:
    table = simulated(3)
    table.loc[:4, "y"] = np.nan
    fit = fit_mixed("y ~ a + (1 | item)", table)
    assert (fit.n, fit.left_out) == (235, 5)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mixedlm", None)
    with pytest.raises(BadInput, match=r"pip install 'lmdiag\[mixed\]'"):
        fit_mixed("y ~ a + (1 | item)", simulated(3))


# ---- lme4's published figures --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "f", "df"), [("gpt2-xl.causal", 64.012946, 156.66253),
                           ("albert-xxlarge-v2.masked", 20.611759, 82.28501)],
)  # fmt: skip
def test_f_tests_of_itos_items(human: Path, model: str, f: float, df: float) -> None:
    """Michaelov & Bergen (2022): semantically related against unrelated, REML, Satterthwaite."""
    folder = human / "michaelov-bergen-2022"
    stimuli = pd.read_csv(folder / "stimuli/ito_2016.tsv", sep="\t")
    name = f"surprisal/ito_2016.surprisal.{model}.output"
    surprisals = pd.read_csv(folder / name, sep="\t").drop(columns="Sentence")
    table = stimuli.merge(surprisals, left_on="Sentence", right_on="FullSentence")
    table = table[table.Condition.isin(["semantically_related", "unrelated"])]
    table = table.assign(target=table.TargetWords.str.strip())
    fit = fit_mixed("Surprisal ~ Condition + (1 | SentenceFrame) + (1 | target)", table)
    assert fit.terms[1].t ** 2 == pytest.approx(f, rel=1e-3)
    assert fit.terms[1].df == pytest.approx(df, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "aic"), [("EleutherAI__pythia-160m", 133358.62416500566),
                       ("state-spaces__mamba-130m-hf", 133277.0200286161)],
)  # fmt: skip
def test_aic_of_the_maze_trials(human: Path, model: str, aic: float) -> None:
    """Michaelov et al. (2024): slopes of three predictors by subject, maximum likelihood."""
    folder = human / "michaelov-2024"
    trials = pd.read_csv(folder / "cleaned_datasets/boyce_2023.tsv", sep="\t", quoting=3)
    name = f"results/futrell_2018_dl.surprisal.{model}.causal.output"
    surprisals = pd.read_csv(folder / name, sep="\t", quoting=3)
    table = trials.drop_duplicates().merge(surprisals, on=["docid", "sentid", "sentpos"])
    numbers = ["rt", "Surprisal", "wlen", "unigramsurp", "sentpos"]
    table["sentence"] = table.docid + " " + table.sentid.astype(str)
    table["rt"] = np.log(table.rt)
    table[numbers] = (table[numbers] - table[numbers].mean()) / table[numbers].std()
    fit = fit_mixed(
        "rt ~ Surprisal + wlen + unigramsurp + sentpos "
        "+ (1 + Surprisal + wlen + sentpos || subject) + (1 | sentence)",
        table,
        reml=False,
    )
    assert fit.n == 56_447
    assert fit.aic == pytest.approx(aic, abs=1e-6)
