"""Statistics against cases calculated by hand, and against scipy where ours is written out."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag import stats
from lmdiag.results import Figure


def array(*values):
    return np.array(values, dtype=np.float64)


def rng(seed=0):
    return np.random.default_rng(seed)


NAN = math.nan
Z2 = 1.959963984540054**2
SPEARMAN = 0.2**0.5
"""The correlation of the ranks in one of the cases: two tied values, four values in four groups."""


@pytest.mark.parametrize(
    ("values", "statistic", "expected"),
    [
        # shares that never vary are not surer than proportions: of n of n, n / (n + z2) to 1
        ([1.0] * 44, "share", (1, 44 / (44 + Z2), 1)),
        # .9, 1, 1: mean .966667, logit 3.367296; margin 4.302653 * .033333 = .143422, over
        # .966667 * .033333 = .032222 is 4.451020: bounds with the logits -1.083724, 7.818316
        ([0.9, 1, 1], "share", (0.966667, 0.252802, 0.999598)),
        # 1 to 5: mean 3, sd sqrt(2.5), standard error sqrt(.5) = .707107, t(4) = 2.776445
        ([1, 2, 3, 4, 5], "mean", (3, 3 - 1.963243, 3 + 1.963243)),
        ([2.0], "mean", (2.0, NAN, NAN)),
        # of ten values, the binomial puts less than 2.5% on 0 and 1 below: P(X <= 1) = 11/1024, so
        # the bounds are the second value from either end
        ([3, 1, 4, 15, 9, 2, 6, 5, 35, 8], "median", (5.5, 2, 15)),
        ([3, 1, 4, 15, 9, 2], "median", (3.5, 1, 15)),  # all on one side: p = 2/64
        ([3, 1, 4, 15, 9], "median", (4, NAN, NAN)),
        # r = .5, n = 28: z = .549306, standard error 1 / 5, z -+ .391993 = .157313, .941299
        ([[x, x / 2 + y * 0.75**0.5] for x in (1, -1) for y in (1, -1)] * 7, "pearson",
         (0.5, 0.156028, 0.735818)),
        # r = 1 / sqrt(5), n = 28: the variance of z is (1 + .1) / 25
        ([[x, x / 2 + y * 0.75**0.5] for x in (1, -1) for y in (1, -1)] * 7, "spearman",
         (SPEARMAN, *np.tanh(np.arctanh(SPEARMAN) + np.array([-1, 1]) * math.sqrt(
             Z2 * (1 + SPEARMAN**2 / 2) / 25)))),
        ([[i, 2 * i] for i in range(10)], "pearson", (1, 1, 1)),
        ([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0], [1.0, 5.0]], "spearman", (NAN, NAN, NAN)),
        (np.empty((0, 2)), "spearman", (NAN, NAN, NAN)),
        *(([], name, (NAN, NAN, NAN)) for name in ("proportion", "mean", "share")),
    ],
)  # fmt: skip
def test_intervals_by_hand(values, statistic, expected):
    one = stats.estimate(np.array(values, dtype=np.float64), statistic)
    assert one.n == len(values)
    assert (one.value, one.ci_low, one.ci_high) == pytest.approx(expected, abs=2e-6, nan_ok=True)


@pytest.mark.parametrize("end", [0, 1])
def test_shares_whose_mean_is_at_an_end_have_no_interval_of_the_logit(end):
    assert np.isnan(stats.share_interval(array(end, end))).all()


@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([1 / 2, 1 / 3, 0.3]))
def test_wilson_and_the_binomial_test_are_scipys(n, share, chance):
    successes = round(share * n)
    binomial = scipy.stats.binomtest(successes, n, chance)
    expected = binomial.proportion_ci(0.95, method="wilson")
    one = stats.estimate(np.arange(n) < successes, "proportion")
    assert (one.ci_low, one.ci_high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    p = stats.chance_p(successes / n, n, chance)
    assert p == pytest.approx(binomial.pvalue, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("value", "n", "chance", "interval", "standing"),
    [
        # Wilson's interval leaves out chance in these two: p = 2 * 9/256 = .070, .059
        (7 / 8, 8, 1 / 2, None, "not distinguishable"),
        (16 / 32, 32, 1 / 3, None, "not distinguishable"),
        # 2 / 2^5 = .0625, and 2 / 2^6 = .03125
        (1, 5, 1 / 2, None, "not distinguishable"),
        (1, 6, 1 / 2, None, "above"),
        (0, 6, 1 / 2, None, "below"),
        # a mean over shuffles is rounded towards chance: 8.9 of 10 is 8 (p = .109), 9.0 is 9 (.021)
        (0.89, 10, 1 / 2, None, "not distinguishable"),
        (0.90, 10, 1 / 2, None, "above"),
        # a mean of shares: as its interval, but counted where all are 0 or 1
        (0.6, 10, 1 / 2, (0.4, 0.8), "not distinguishable"),
        (0.6, 10, 1 / 2, (0.51, 0.7), "above"),
        (1.0, 5, 1 / 2, (0.57, 1.0), "not distinguishable"),
        (0.99, 1, 0.97, (None, None), "not distinguishable"),  # a single item has no interval
    ],
)
def test_figures_against_chance(value, n, chance, interval, standing):
    statistic = "share" if interval else "proportion"
    low, high = interval or (None, None)
    figure = Figure(value, n, low, high, chance, statistic=statistic)
    assert figure.versus_chance == standing


def test_mcnemars_test_is_for_verdicts():
    """Its p by hand: test_comparison.py."""
    with pytest.raises(ValueError, match="0 and 1"):
        stats.mcnemar(array(1, 0, 1), array(0.5, 0, 1))


def test_tangos_interval_of_a_published_example():
    # airway hyper-responsiveness before and after a transplantation in Fagerland et al. (2014):
    # 1 child alone before, 7 alone after, of 21
    assert stats.tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # without a difference, the score test of a shift d has z^2 = n d / (1 - d) (both ways)
    assert stats.tango(0, 0, 10)[1] == pytest.approx(Z2 / (10 + Z2), abs=1e-9)
    # all items for the first: q = (1 - d) / 2, so z^2 = n (1 - d) / (1 + d)
    assert stats.tango(9, 0, 9) == (pytest.approx((9 - Z2) / (9 + Z2)), 1.0)


@given(st.integers(8, 60), st.data())
def test_an_interval_of_a_difference_excludes_0_where_its_test_rejects(n, data):
    won = data.draw(st.integers(0, n))
    lost = data.draw(st.integers(0, n - won))
    first = array(*[1.0] * won, *[0.0] * (n - won))
    second = array(*[0.0] * won, *[1.0] * lost, *[0.0] * (n - won - lost))
    values = data.draw(st.lists(st.integers(-9, 20), min_size=n, max_size=n))
    tests = [stats.mcnemar(first, second)]
    if np.ptp(values):
        tests.append(stats.sign_flip(array(*map(float, values)), flips=2000))
    for test in tests:
        assert (test.p < 0.05) == (not test.ci_low <= 0 <= test.ci_high)


def test_the_bounds_of_a_mean_are_the_shifts_that_are_not_rejected():
    values = rng(8).normal(1, 2, 9)
    test = stats.sign_flip(values)
    for bound, outwards in ((test.ci_low, -1e-6), (test.ci_high, 1e-6)):
        assert stats.sign_flip(values - bound).p >= 0.05
        assert stats.sign_flip(values - (bound + outwards)).p < 0.05
    # of many items it is the interval by t, within the error of the draws
    many = rng(9).normal(1, 2, 400)
    expected = scipy.stats.ttest_1samp(many, 0).confidence_interval()
    test = stats.sign_flip(many)
    assert (test.ci_low, test.ci_high) == pytest.approx(tuple(expected), abs=0.02)


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        # sorted .01, .02, .04 times 3, 2, 1 gives .03, .04, .04, and none is below the one before
        ([0.04, 0.01, 0.02], [0.04, 0.03, 0.04]),
        # .01, .04, .03: times 3, 2 (of .03), 1 gives .03, .06, .04, which rises to .06
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.9, 0.8], [1.0, 1.0]),
        # equal ones share the larger of their adjusted values: .02 * 3
        ([0.02, 0.5, 0.02], [0.06, 0.5, 0.06]),
        # undefined p-values do not count
        ([0.01, NAN, 0.02], [0.02, NAN, 0.02]),
        ([], []),
    ],
)
def test_holm_by_hand(p, adjusted):
    assert stats.holm(p) == pytest.approx(adjusted, nan_ok=True)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        # of the 8 patterns of 1, 2, 3 four are as far out as -1 + 2 + 3 = 4; zeros change nothing
        ([-1, 0, 2, 3, 0], 4 / 8),
        # .1 + .2 - .3 is 0 but for rounding, so every pattern is as far out
        ([0.1, 0.2, -0.3], 1),
        # and .8 is as far out as eight times .1 in another order, which is .7999999999999999
        ([0.1] * 8, 2 / 2**8),
        # 16 differences are the most of which all patterns are taken
        ([1.0] * 16, 2 / 2**16),
        ([0.0, 0.0], NAN),
        ([1.0, math.inf], NAN),
    ],
)
def test_sign_flips_by_hand(differences, p):
    assert stats.sign_flip(array(*differences)).p == pytest.approx(p, nan_ok=True)


def test_random_sign_flips_agree_with_the_t_test():
    # each count has one added: p of 100,000 flips, none as far out, is 1 / 100,001
    assert stats.sign_flip(array(*[1.0] * 60)).p == pytest.approx(1 / 100_001)
    many = rng(3).normal(0.01, 1, 5000)
    expected = scipy.stats.ttest_1samp(many, 0).pvalue
    assert stats.sign_flip(many, rng(4)).p == pytest.approx(expected, abs=0.01)
    assert stats.sign_flip(many, rng(4), 999) == stats.sign_flip(many, rng(4), 999)


@pytest.mark.parametrize("statistic", ["mean", "median", "spearman"])
@settings(max_examples=20)
@given(st.integers(3, 7), st.integers(0, 10_000))
def test_all_swaps_are_scipys(statistic, n, seed):
    """A sign flip swaps the two values of an item, too."""
    draw = rng(seed)
    cloze = draw.random(n)
    first, second = draw.integers(0, 9, (2, n)).astype(np.float64)
    of = {"mean": np.mean, "median": np.median}.get(statistic)
    if statistic == "spearman":  # both have the same ranks, in another order: no rescaling
        first, second = (draw.permutation(n) + 1.0 for _ in range(2))
        of = lambda values: scipy.stats.spearmanr(values, cloze).statistic  # noqa: E731
    expected = scipy.stats.permutation_test(
        (first, second), lambda a, b: of(a) - of(b),
        vectorized=False, permutation_type="samples", n_resamples=np.inf,
    ).pvalue  # fmt: skip
    if np.array_equal(first, second):
        expected = NAN
    if statistic == "spearman":
        first, second = (np.column_stack([values, cloze]) for values in (first, second))
    is_mean = statistic == "mean"
    p = stats.sign_flip(first - second).p if is_mean else stats.swap_test(first, second, statistic)
    assert p == pytest.approx(expected, nan_ok=True)


def test_correlations_on_other_scales_are_compared_by_their_order():
    """A model whose log-probabilities are three times as large is not another model."""
    draw = rng(5)
    cloze = draw.random(60)
    good = np.column_stack([cloze + 0.2 * draw.random(60), cloze])
    poor = np.column_stack([30 * draw.random(60) - 40, cloze])
    other = poor + np.column_stack([20 * draw.random(60), np.zeros(60)])
    for statistic in ("spearman", "pearson"):
        assert stats.swap_test(good, poor, statistic, rng()) < 0.001
        stretched, p = poor * [3, 1] - [5, 0], stats.swap_test(other, poor, statistic, rng())
        assert stats.swap_test(other, stretched, statistic, rng()) == pytest.approx(p)
        assert 0.1 < p < 0.9
    assert stats.swap_test(good, poor, "pearson", rng(7), 99) == 1 / 100
    constant = np.column_stack([np.ones(60), cloze])
    assert math.isnan(stats.swap_test(good, constant, "spearman"))
