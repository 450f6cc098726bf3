"""Statistics against cases worked out by hand, and against scipy where ours is written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from lmdiag import stats


def array(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---- intervals ----------------------------------------------------------------------------------


def test_wilson_by_hand() -> None:
    # 7 of 18, z = 1.959964: z2 = 3.841459, p = .388889
    # centre (p + z2 / 36) / (1 + z2 / 18) = .495596 / 1.213414 = .408431
    # half   z sqrt(p (1 - p) / 18 + z2 / 1296) / 1.213414 = 1.959964 * .127150 / 1.213414 = .205379
    assert stats.wilson(7, 18) == pytest.approx(
        (0.408431 - 0.205379, 0.408431 + 0.205379), abs=2e-6
    )


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_is_scipys(n: int, share: float) -> None:
    successes = round(share * n)
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    low, high = stats.wilson(successes, n)
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= low <= successes / n <= high <= 1


def test_wilson_at_the_ends() -> None:
    # for 0 of n the upper bound is z2 / (n + z2), for n of n the lower one is n / (n + z2)
    z2 = scipy.stats.norm.ppf(0.975) ** 2
    assert stats.wilson(0, 44) == pytest.approx((0, z2 / (44 + z2)))
    assert stats.wilson(44, 44) == pytest.approx((44 / (44 + z2), 1))


def test_t_interval_by_hand() -> None:
    # 1 to 5: mean 3, sd sqrt(2.5), standard error sqrt(.5) = .707107, t(4) = 2.776445
    low, high = stats.mean_interval(array(1, 2, 3, 4, 5))
    assert (low, high) == pytest.approx((3 - 1.963243, 3 + 1.963243), abs=1e-6)


def test_shares_stay_shares() -> None:
    # .9, 1, 1: mean .966667, se .033333, t(2) = 4.302653: .823245 to 1.110089, which is clipped
    found = stats.estimate(array(0.9, 1, 1), "share")
    assert (found.ci_low, found.ci_high) == pytest.approx((0.823245, 1.0), abs=1e-6)


def test_shares_that_never_vary_are_no_surer_than_proportions() -> None:
    found = stats.estimate(array(*[1.0] * 44), "share")
    assert (found.ci_low, found.ci_high) == stats.wilson(44, 44)


def test_fisher_by_hand() -> None:
    # r = .5, n = 28: z = .549306, standard error 1 / 5, z -+ .391993 = .157313, .941299
    assert stats.correlation_interval(0.5, 28) == pytest.approx((0.156028, 0.735818), abs=1e-6)


def test_a_perfect_correlation_is_certain_by_fisher() -> None:
    assert stats.correlation_interval(1.0, 10) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("values", "statistic"),
    [
        (np.empty(0), "proportion"),
        (np.empty(0), "mean"),
        (np.empty(0), "share"),
        (np.empty((0, 2)), "spearman"),
        (np.array([[1.0, 2.0]]), "pearson"),
        (np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0], [1.0, 5.0]]), "spearman"),
    ],
)
def test_nothing_to_measure_is_undefined_and_not_zero(values: stats.Floats, statistic: str) -> None:
    found = stats.estimate(values, statistic)
    assert found.n == len(values)
    assert all(math.isnan(value) for value in (found.value, found.ci_low, found.ci_high))


def test_one_value_has_a_mean_and_no_interval() -> None:
    found = stats.estimate(array(2.0), "mean")
    assert found.value == 2.0
    assert math.isnan(found.ci_low)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60))
def test_the_value_of_a_proportion_is_k_of_n_and_in_its_interval(values: list[float]) -> None:
    found = stats.estimate(array(*values), "proportion")
    assert found.value == sum(values) / len(values)
    assert 0 <= found.ci_low <= found.value <= found.ci_high <= 1


pairs = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=30)


@given(pairs)
def test_correlations_are_scipys(values: list[tuple[int, int]]) -> None:
    data = np.array(values, dtype=np.float64)
    if (np.ptp(data, axis=0) == 0).any():
        assert math.isnan(stats.point(data, "spearman"))
        return
    assert stats.point(data, "spearman") == pytest.approx(scipy.stats.spearmanr(*data.T).statistic)
    assert stats.point(data, "pearson") == pytest.approx(scipy.stats.pearsonr(*data.T).statistic)


# ---- two models ---------------------------------------------------------------------------------


def test_mcnemar_by_hand() -> None:
    # the two disagree on six items, five of them for the first: 2 (C(6,0) + C(6,1)) / 2^6 = 14 / 64
    first = array(1, 1, 1, 1, 1, 0, 1, 0)
    second = array(0, 0, 0, 0, 0, 1, 1, 0)
    assert stats.mcnemar(first, second) == pytest.approx(14 / 64)
    assert stats.mcnemar(second, first) == pytest.approx(14 / 64)


def test_mcnemar_of_models_that_agree() -> None:
    assert stats.mcnemar(array(1, 0, 1), array(1, 0, 1)) == 1.0


@pytest.mark.parametrize("second", [array(1, 0), array(0.5, 0, 1)])
def test_mcnemar_takes_verdicts_alone(second: stats.Floats) -> None:
    with pytest.raises(ValueError, match="0 and 1"):
        stats.mcnemar(array(1, 0, 1), second)


def test_holm_by_hand() -> None:
    # sorted .01, .02, .04 times 3, 2, 1 gives .03, .04, .04, and none is below the one before
    assert stats.holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    # .01, .04, .03: times 3, 2 (of .03), 1 gives .03, .06, .04, which rises to .06
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    # equal ones share the larger of their adjusted values: .02 * 3 = .02 * 2 raised to it
    assert stats.holm([0.02, 0.5, 0.02]) == pytest.approx([0.06, 0.5, 0.06])


def test_undefined_p_values_do_not_count() -> None:
    adjusted = stats.holm([0.01, math.nan, 0.02])
    assert adjusted[0] == pytest.approx(0.02)
    assert adjusted[2] == pytest.approx(0.02)
    assert math.isnan(adjusted[1])
    assert all(map(math.isnan, stats.holm([math.nan])))
    assert stats.holm([]) == []


# ---- the bootstrap ------------------------------------------------------------------------------


def test_models_that_are_the_same_do_not_differ() -> None:
    values = array(0.1, 0.5, 0.7, 0.2, 0.9)
    found = stats.paired_bootstrap(values, values, "mean", rng())
    assert (found.value, found.ci_low, found.ci_high, found.p) == (0, 0, 0, 1)


def test_a_constant_difference_is_certain() -> None:
    values = array(0.1, 0.5, 0.7, 0.2, 0.9)
    found = stats.paired_bootstrap(values + 0.25, values, "mean", rng(), resamples=99)
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx((0.25, 0.25, 0.25))
    assert found.p == 2 / 100  # no resample is on the other side; one is added to both counts


@pytest.mark.parametrize("few", [True, False])
def test_the_interval_is_scipys(few: bool) -> None:
    """Both ways of drawing, the multinomial for few distinct differences and the plain one."""
    draw = rng(1)
    first, second = draw.random((2, 40))
    if few:
        first, second = np.round(first), np.round(second)
    found = stats.paired_bootstrap(first, second, "mean", rng(2), resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        paired=True, method="percentile", n_resamples=20_000, rng=rng(3),
    ).confidence_interval  # fmt: skip
    assert found.value == pytest.approx(first.mean() - second.mean())
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(theirs), abs=0.01)


def test_the_interval_of_a_correlation_is_scipys() -> None:
    draw = rng(1)
    cloze = draw.random(60)
    first, second = (np.column_stack([cloze + draw.random(60) * s, cloze]) for s in (0.5, 2.0))

    def difference(chosen: np.ndarray, axis: int) -> np.ndarray:
        return np.array(
            [
                scipy.stats.spearmanr(*first[i].T).statistic
                - scipy.stats.spearmanr(*second[i].T).statistic
                for i in chosen.reshape(-1, 60).astype(int)
            ]
        )

    theirs = scipy.stats.bootstrap(
        (np.arange(60),), difference, method="percentile", n_resamples=1000, rng=rng(3),
    ).confidence_interval  # fmt: skip
    found = stats.paired_bootstrap(first, second, "spearman", rng(2), resamples=4000)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(theirs), abs=0.04)


def test_p_is_large_without_and_small_with_a_difference() -> None:
    draw = rng(4)
    first = draw.random(80)
    noise = draw.normal(size=80) * 0.1
    noise -= noise.mean()
    assert stats.paired_bootstrap(first + noise, first, "mean", rng(), 2000).p > 0.9
    assert stats.paired_bootstrap(first + noise + 0.1, first, "mean", rng(), 2000).p < 0.01


def test_a_generator_gives_the_same_again_and_memory_is_bounded() -> None:
    first, second = rng(5).random((2, 30))
    once = stats.paired_bootstrap(first, second, "mean", rng(7), 500)
    assert stats.paired_bootstrap(first, second, "mean", rng(7), 500) == once
    assert stats.paired_bootstrap(first, second, "mean", rng(8), 500) != once
    assert sum(stats.batches(10_000, 78_153)) == 10_000
    assert max(stats.batches(10_000, 78_153)) * 78_153 <= 4_000_000
    assert stats.batches(3, 10**9) == [1, 1, 1]


def test_one_item_or_none_has_no_interval() -> None:
    found = stats.paired_bootstrap(array(1.0), array(0.0), "mean", rng())
    assert found.value == 1.0
    assert math.isnan(found.p)
    assert math.isnan(stats.paired_bootstrap(array(), array(), "mean", rng()).value)


def test_samples_that_are_not_paired_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in shape"):
        stats.paired_bootstrap(array(1, 0), array(1), "mean", rng())


# ---- medians ------------------------------------------------------------------------------------


def test_the_interval_of_a_median_is_made_of_order_statistics() -> None:
    # of ten values, the binomial puts less than 2.5% on 0 and 1 below: P(X <= 1) = 11/1024, so the
    # bounds are the second value from either end
    values = np.array([3, 1, 4, 15, 9, 2, 6, 5, 35, 8], dtype=float)
    found = stats.estimate(values, "median")
    assert (found.value, found.n, found.ci_low, found.ci_high) == (5.5, 10, 2, 15)
    few = stats.estimate(values[:5], "median")
    assert few.value == 4
    assert math.isnan(few.ci_low)
    assert math.isnan(few.ci_high)


def test_medians_are_compared_as_medians() -> None:
    rng = np.random.default_rng(0)
    first, second = np.arange(21.0), np.arange(21.0)
    second[-1] = 1000.0  # moves the mean by far, the median not at all
    found = stats.paired_bootstrap(first, second, "median", rng, resamples=200)
    assert (found.value, found.ci_low, found.ci_high) == (0, 0, 0)
