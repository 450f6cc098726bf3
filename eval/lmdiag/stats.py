"""How certain a number is: intervals, paired tests, adjustment for multiple testing.

Pure functions; random draws come from a generator that the caller passes in. scipy is imported
where it is used, because it loads slowly. Undefined is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""Confidence of every interval."""

CORRELATIONS = ("spearman", "pearson")

MEANS = ("share", "mean", "mean_correlation")
"""Statistics that are means of values of items, which are not right or wrong alone."""

MOST_EXACT = 16
"""Items of which a sign-flip test takes all patterns of signs."""

_MOST_EXACT_SWAPS = 12
"""Items of which a permutation test takes all ways to swap them."""

_VALUES_AT_ONCE = 4_000_000
"""Values of permuted samples in memory at a time."""

FEWEST = 8
"""Items that an interval of a paired difference needs."""

Values = NDArray[np.float64]
"""Values of items, (n,), or (n, 2) for correlations."""
Interval = tuple[float, float]
_UNDEFINED = (math.nan, math.nan)


@dataclass(frozen=True)
class Estimate:
    """The value of a measure over n items and the bounds of its 95% interval."""

    value: float
    n: int
    ci_low: float
    ci_high: float


# ---- one sample ---------------------------------------------------------------------------------


def point(values: Values, statistic: str) -> float:
    """Returns the value of a measure from its items' values.

    NaN for no items, and for a correlation of fewer than two or of constant values.

    >>> point(np.array([1.0, 2.0, 4.0]), "median"), point(np.array([1.0, 2.0, 6.0]), "mean")
    (2.0, 3.0)

    Args:
        values: (n,), or (n, 2) for the correlations.
        statistic: "proportion" or one of `MEANS` (all means), "median", "spearman" or "pearson".
    """
    return float(_points(values[np.newaxis], statistic)[0]) if len(values) else math.nan


def _points(samples: Values, statistic: str) -> Values:
    """Returns the value of each sample, (samples,); see `point`.

    `samples` is (samples, n), or (samples, n, 2) for the correlations.
    """
    if statistic == "median":
        return np.asarray(np.median(samples, axis=1))
    if statistic not in CORRELATIONS:
        return np.asarray(samples.mean(axis=1))
    if statistic == "spearman":
        samples = _ranks(samples)
    centred = samples - samples.mean(axis=1, keepdims=True)
    x = centred[..., 0]
    y = centred[..., 1]
    norms = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    with np.errstate(invalid="ignore"):  # 0 / 0 where a variable is constant
        r = np.clip((x * y).sum(axis=1) / norms, -1, 1)  # rounding
    return np.where(norms > 0, r, np.nan)


def _ranks(samples: Values) -> Values:
    """Returns the ranks within each sample, from 1; equal values share the mean of their ranks.

    For example, the values 1, 3 and 3 of a sample have the ranks 1, 2.5 and 2.5. `samples` and the
    ranks are (samples, n, variables).
    """
    from pandas import DataFrame

    variables = np.moveaxis(samples, -1, 0)
    ranks = [DataFrame(variable).rank(axis=1).to_numpy() for variable in variables]
    return np.stack(ranks, axis=-1)


def estimate(values: Values, statistic: str) -> Estimate:
    """Returns value, n and interval: Wilson, t, order statistics, or Fisher's z; see `point`.

    The interval of a mean of shares is `share_interval`; where all items have the same share, it is
    Wilson's. The interval of a mean of correlations is Student's t on Fisher's z of the mean, which
    is `share_interval` of (1 + r) / 2; where all items have the same correlation, it is NaN.

    Args:
        values: (n,), or (n, 2) for the correlations.
        statistic: see `point`.
    """
    value = point(values, statistic)
    n = len(values)
    bounds = _UNDEFINED
    # `np.ptp`, largest less smallest, is 0 where all items have the same value: such shares have no
    # spread for t, but are not more certain than proportions
    if statistic == "proportion" or (statistic == "share" and n and not np.ptp(values)):
        bounds = wilson(float(values.sum()), n)
    elif statistic in CORRELATIONS:
        bounds = _correlation_interval(value, n, statistic)
    elif statistic == "share":
        bounds = share_interval(values)
    elif statistic == "mean":
        bounds = mean_interval(values)
    elif statistic == "mean_correlation" and n and np.ptp(values):
        low, high = share_interval((1 + values) / 2)
        bounds = 2 * low - 1, 2 * high - 1
    elif statistic == "median":
        bounds = _median_interval(values)
    return Estimate(value, n, *bounds)


def _correlation_interval(r: float, n: int, statistic: str) -> Interval:
    """Returns the interval of a correlation r over n items: z ± 1.96 SE for z = atanh r.

    SE is 1 / sqrt(n - 3) for Pearson and sqrt((1 + r²/2) / (n - 3)) for Spearman. NaN for fewer
    than four items, and where r is NaN.

    Source: Bonett and Wright (2000), Psychometrika 65, for Spearman.
    """
    if n < 4 or math.isnan(r):
        return _UNDEFINED
    from scipy.special import ndtri

    variance = 1 + r**2 / 2 if statistic == "spearman" else 1.0
    margin = float(ndtri((1 + LEVEL) / 2)) * math.sqrt(variance / (n - 3))
    centre = math.atanh(r) if abs(r) < 1 else math.copysign(math.inf, r)
    return math.tanh(centre - margin), math.tanh(centre + margin)


def _median_interval(values: Values) -> Interval:
    """Returns the interval of a median, which is between two of the values in their order.

    The number of values below the median of the population is binomial. NaN for fewer than six
    values, whose whole range covers the median with less than 95%.

    Source: Conover (1999), Practical Nonparametric Statistics, section 3.2.
    """
    n = len(values)
    if n < 6:
        return _UNDEFINED
    from scipy.stats import binom

    rank = int(binom.ppf((1 - LEVEL) / 2, n, 0.5))  # of the bounds, from both ends
    in_order = np.sort(values)
    return float(in_order[rank - 1]), float(in_order[n - rank])


@cache
def wilson(successes: float, n: float, z: float = math.nan) -> Interval:
    """Returns Wilson's score interval of a proportion; NaN for n = 0.

    With p = successes / n and z the normal quantile, unless another one is given, the bounds are

        (p + z²/2n) / (1 + z²/n) ± z √(p (1 - p) / n + z²/4n²) / (1 + z²/n)

    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)

    Source: Wilson (1927).
    """
    if n == 0:
        return _UNDEFINED
    from scipy.special import ndtri

    if math.isnan(z):
        z = -float(ndtri((1 - LEVEL) / 2))
    p = successes / n
    z2 = z**2  # Wilson's bounds solve (p - bound)² = z² bound (1 - bound) / n
    scale = 1 + z2 / n
    center = (p + z2 / (2 * n)) / scale
    margin = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n**2)) / scale
    # rounding may leave a bound slightly outside [0, p] or [p, 1]
    return max(0.0, min(center - margin, p)), min(1.0, max(center + margin, p))


def mean_interval(values: Values) -> Interval:
    """Returns Student's t interval of the mean of some values, (n,): its lower and upper bound.

    Both are NaN for fewer than two values.
    """
    if len(values) < 2:
        return _UNDEFINED
    mean = float(values.mean())
    margin = _t_margin(values)
    return mean - margin, mean + margin


def cell_interval(values: Values, mean: float) -> Interval:
    """Returns the interval of the accuracy of a cell, whose values are 0 or 1, or shares.

    It is Wilson's interval with two changes. Student's t takes the place of the normal quantile.
    The number of items is m (1 - m) / s², at which independent answers would have the standard
    error s of the values; if m is 0 or 1, it is n. NaN for fewer than eight items.

    Args:
        values: of the items, (n,), without what the items add to all cells; they may be outside of
            [0, 1].
        mean: m, their mean.

    Coverage: docs/specification.md, section 5.
    """
    n = len(values)
    if n < FEWEST:
        return _UNDEFINED
    from scipy.special import stdtrit

    squared_error = float(values.var(ddof=1)) / n
    mean = min(max(mean, 0.0), 1.0)  # rounding
    n_effective: float = n
    if squared_error > 0 and 0 < mean < 1:
        n_effective = mean * (1 - mean) / squared_error
    t = float(stdtrit(n - 1, (1 + LEVEL) / 2))
    return wilson(mean * n_effective, n_effective, t)


def share_interval(values: Values) -> Interval:
    """Returns the interval of a mean of shares: Student's t on the logit of the mean.

    With m the mean and s its t margin, the bounds are logistic(logit(m) ± s / (m (1 - m))) (delta
    method), so that they are inside of [0, 1] and follow the skew of shares near its ends; NaN for
    fewer than two values, and for a mean of 0 or 1.

    Coverage: docs/specification.md, section 5, where the plain t interval stands beside it.
    """
    if len(values) < 2:
        return _UNDEFINED
    mean = float(values.mean())
    if not 0 < mean < 1:
        return _UNDEFINED
    centre = math.log(mean) - math.log1p(-mean)
    margin = _t_margin(values) / (mean * (1 - mean))
    return _logistic(centre - margin), _logistic(centre + margin)


def _t_margin(values: Values) -> float:
    """Returns half the width of Student's t interval of the mean of two values or more."""
    from scipy.special import stdtrit

    n = len(values)
    t = stdtrit(n - 1, (1 + LEVEL) / 2)
    return float(t * values.std(ddof=1) / math.sqrt(n))


def _logistic(logit: float) -> float:
    """Returns the probability whose log-odds are `logit`."""
    from scipy.special import expit

    return float(expit(logit))


# ---- against the chance level -------------------------------------------------------------------


@cache
def chance_p(value: float, n: int, chance: float) -> float:
    """Returns the two-sided p of the exact binomial test of a proportion of n items.

    As `scipy.stats.binomtest`, whose import takes longer than to score a run: p is the sum over the
    counts that are at most as probable as the observed one. A fractional count, such as a mean over
    shuffles, is rounded towards chance. Where the probability that guessing is right differs
    between items, `chance` is its mean, and the test conservative (Hoeffding 1956).
    """
    from scipy.special import gammaln, xlog1py, xlogy

    round_to_chance = math.floor if value > chance else math.ceil
    nearest = round(value * n)
    is_whole = abs(value * n - nearest) < 1e-6  # but for rounding
    count = nearest if is_whole else round_to_chance(value * n)
    # the logarithms of binomial coefficients, since they overflow from n = 1,030 on
    counts = np.arange(n + 1)
    log_ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    log_probabilities = log_ways + xlogy(counts, chance) + xlog1py(n - counts, -chance)
    probabilities = np.exp(log_probabilities)
    # equal but for rounding counts as equal
    is_as_rare = probabilities <= probabilities[count] * (1 + 1e-7)
    return min(1.0, float(probabilities[is_as_rare].sum()))


# ---- two paired samples -------------------------------------------------------------------------


@dataclass(frozen=True)
class PairedTest:
    """The two-sided p of a paired difference, and the 95% interval that it does not reject.

    The interval excludes 0 exactly where p < .05; NaN for fewer than eight items.
    """

    p: float
    ci_low: float = math.nan
    ci_high: float = math.nan


def mcnemar(first: Values, second: Values) -> PairedTest:
    """Returns McNemar's score test of paired verdicts, and Tango's interval.

    With b items that only the first has right and c that only the second has right,
    z = (b - c) / sqrt(b + c); p is NaN where the two do not differ in any item. The interval has
    all differences of proportions that the same score test does not reject.

    Args:
        first, second: (n,), each value 0 or 1; otherwise a `ValueError` is raised.

    Source: McNemar (1947); Tango (1998), Statistics in Medicine 17, section 3; recommended together
        by Fagerland, Lydersen and Laake (2014), Statistics in Medicine 33.
    """
    if first.shape != second.shape or not np.isin(np.concatenate([first, second]), (0, 1)).all():
        raise ValueError("McNemar's test takes two arrays of 0 and 1 of one length")
    from scipy.special import ndtr

    n = len(first)
    won = int((first > second).sum())  # items that only the first has right
    lost = int((first < second).sum())  # items that only the second has right
    z = _tango_score(0.0, won, lost, n)
    p = 2 * float(ndtr(-abs(z))) if won + lost else math.nan
    ci_low, ci_high = tango(won, lost, n) if n >= FEWEST else _UNDEFINED
    return PairedTest(p, ci_low, ci_high)


@cache
def tango(won: int, lost: int, n: int) -> Interval:
    """Returns Tango's score interval of the difference of two paired proportions, (won - lost) / n.

    Of n items, `won` are those that only the first has right, `lost` that only the second has.

    >>> low, high = tango(5, 1, 20)
    >>> round(low, 3), round(high, 3)
    (-0.049, 0.437)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = float(ndtri((1 + LEVEL) / 2))
    observed = (won - lost) / n

    def bound(critical_value: float, end: float) -> float:
        """Returns a bound of the interval: the difference whose score is a critical value.

        It is searched between the observed difference and `end`, the lowest (-1) or highest (1)
        possible difference.
        """
        if observed == end:
            return end

        def score_beyond_critical(difference: float) -> float:
            """Returns how far the score of a difference is above the critical value.

            This is 0 at the bound, which `brentq` searches.
            """
            return _tango_score(difference, won, lost, n) - critical_value

        return float(brentq(score_beyond_critical, observed, end, xtol=1e-12))

    # the observed difference has the score 0, and a larger difference has a lower score
    return bound(z, -1.0), bound(-z, 1.0)


def _tango_score(difference: float, won: int, lost: int, n: int) -> float:
    """Returns the score statistic, a z, of the hypothesis of a difference of paired proportions.

    Args:
        difference: first less second, as supposed.
        won, lost: items that only the first, or only the second, has right.
        n: number of items.
    """
    # q, the maximum-likelihood probability of an item that only the second has right, solves
    # 2 n q^2 + b q + c = 0
    b = (2 * n - won + lost) * difference - won - lost
    c = -lost * difference * (1 - difference)
    q = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)  # negative only by rounding
    variance = n * (2 * q + difference * (1 - difference))
    numerator = won - lost - n * difference
    if variance <= 0:
        return math.copysign(math.inf, numerator) if numerator else 0.0
    return numerator / math.sqrt(variance)


def sign_flip(
    differences: Values, rng: np.random.Generator | None = None, flips: int = 100_000
) -> PairedTest:
    """Returns a sign-flip test that paired differences have a mean of 0, and its 95% interval.

    p is the share of sign patterns whose sum is at least as far from 0 as the observed sum: of all
    2^n patterns for up to 16 items, else of random ones, with one added to both counts so that p is
    never 0. The interval has all values m that the test does not reject: the test of the
    differences less m has p of at least .05. p is NaN if all differences are 0, if there are none,
    or if one is not finite. The interval is NaN in these cases, if all differences are equal, and
    for fewer than eight items.

    >>> sign_flip(np.array([1.0, 2.0, 3.0])).p
    0.25

    Args:
        differences: first minus second, (n,).
        rng: where random patterns come from; None for a generator with seed 0.
        flips: how many random patterns.

    Source: Fisher (1935), The Design of Experiments, section 21; the bounds are order statistics of
        means of subsets of items (Hartigan 1969, Using Subsample Values as Typical Values).
    """
    n = len(differences)
    if not np.isfinite(differences).all() or not differences.any():
        return PairedTest(math.nan)
    # the sum of ones with the signs of a pattern tells how many items the pattern flips
    with_ones = np.column_stack([differences, np.ones(n)])
    if n <= MOST_EXACT:
        return flip_test(_signed_sums(with_ones), differences, is_exact=True)
    rng = np.random.default_rng(0) if rng is None else rng
    return flip_test(random_flips(with_ones, rng, flips), differences)


def flip_test(sums: Values, differences: Values, *, is_exact: bool = False) -> PairedTest:
    """Returns the test and the interval of `sign_flip` from sums with random signs.

    A pattern of signs flips a set F of items. The flipped sum of the differences less m is at least
    as far from 0 as the sum without flips exactly if m does not lie between the mean difference
    over F and the mean difference over the other items. So p for any m, and with it the interval of
    all m with a p of at least .05, follows from these two means of each pattern.

    Args:
        sums: (flips, 2), for each pattern of signs the sum of the differences with these signs, and
            the sum of the signs alone, which is the number of items that keep their sign minus that
            of the flipped items.
        differences: (n,).
        is_exact: whether the sums are those of all patterns, and not of random ones.
    """
    n = len(differences)
    total = differences.sum()
    # the means over the items that each pattern flips, and over the other items: the total less a
    # flipped sum is twice the sum over the flipped items
    with np.errstate(invalid="ignore", divide="ignore"):
        flipped = (total - sums[:, 0]) / (n - sums[:, 1])
        unflipped = (total + sums[:, 0]) / (n + sums[:, 1])
    # a pattern that flips all items or none, and lacks one of the means, counts for every m
    has_means = np.isfinite(flipped + unflipped)
    low = np.where(has_means, np.minimum(flipped, unflipped), -math.inf)
    high = np.where(has_means, np.maximum(flipped, unflipped), math.inf)
    rounding = 1e-9 * float(np.abs(differences).mean())
    # random patterns do not include the observed one, which counts so that p is never 0
    n_observed = 0 if is_exact else 1
    n_patterns = len(sums) + n_observed
    n_far = (low <= rounding).sum() if total > 0 else (high >= -rounding).sum()
    p = min(1.0, float((n_far + n_observed) / n_patterns))
    if abs(total) <= rounding * n:
        p = 1.0
    if n < FEWEST or not np.ptp(differences):
        return PairedTest(p)
    # the smallest m of which p is at least .05, and the largest; 1e-9 against rounding
    rank = math.ceil((1 - LEVEL) * n_patterns - n_observed - 1e-9)
    ci_low = float(np.partition(low, rank - 1)[rank - 1])
    ci_high = -float(np.partition(-high, rank - 1)[rank - 1])
    if abs(ci_low) <= rounding:
        ci_low = 0.0
    if abs(ci_high) <= rounding:
        ci_high = 0.0
    return PairedTest(p, ci_low, ci_high)


def random_flips(values: Values, rng: np.random.Generator, flips: int = 100_000) -> Values:
    """Returns the sums of n items' values with random signs, one sum per column and flip.

    The signs are the same in each column: the sums of a difference of two columns are the
    difference of their sums.

    Args:
        values: (n,) or (n, columns); the sums are (flips,) or (flips, columns).
        rng: where the signs come from.
        flips: how many patterns of signs are drawn.
    """
    sums = np.zeros((flips, *values.shape[1:]))
    drawn_sums = np.empty_like(sums)  # used again by each step
    for start in range(0, len(values), 8):  # a random byte chooses the signs of eight items
        sums_of_eight = _signed_sums(values[start : start + 8])
        patterns = rng.integers(len(sums_of_eight), size=flips, dtype=np.uint8)
        # the mode "raise" would copy `out`
        sums += sums_of_eight.take(patterns, axis=0, out=drawn_sums, mode="clip")
    return sums


def _signed_sums(values: Values) -> Values:
    """Returns the sums of n items' values with all patterns of signs.

    `values` is (n,) or (n, columns), and the result (2^n,) or (2^n, columns).

    >>> _signed_sums(np.array([1.0, 2.0])).tolist()
    [3.0, 1.0, -1.0, -3.0]
    """
    sums = np.zeros((1, *values.shape[1:]))
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def swap_test(
    first: Values,
    second: Values,
    statistic: str,
    rng: np.random.Generator | None = None,
    swaps: int = 10_000,
) -> float:
    """Returns the two-sided p of a permutation test of a difference of medians or correlations.

    p is the share of ways to swap the two values of some items that leave a difference at least as
    large as the observed one: of all 2^n ways for up to 12 items, else of random ones, with one
    added to both counts. p is NaN if the difference is undefined, or if no item differs.

    The items of a correlation have two variables. The first one, e.g. the log-probability by a
    model, may have another scale in each sample: before the swaps it is ranked within the sample
    (Spearman) or standardised (Pearson). The second one, e.g. a share of people, is the same in
    both samples.

    Args:
        first, second: (n,) or (n, 2), paired.
        statistic: see `point`.
        rng: where random swaps come from; None for a generator with seed 0.
        swaps: how many random ways.

    Source: Noreen (1989), Computer-Intensive Methods for Testing Hypotheses; for correlations
        Deutsch, Dror and Roth (2021), A Statistical Analysis of Summarization Evaluation Metrics.
    """
    first = _with_first_variable_standardised(first, statistic)
    second = _with_first_variable_standardised(second, statistic)
    observed = point(first, statistic) - point(second, statistic)
    if math.isnan(observed) or np.array_equal(first, second):
        return math.nan
    n = len(first)
    is_exact = n <= _MOST_EXACT_SWAPS
    n_ways = 2**n if is_exact else swaps
    at_once = max(1, _VALUES_AT_ONCE // n)  # ways whose samples are in memory at a time
    rng = np.random.default_rng(0) if rng is None else rng
    parts = []
    for start in range(0, n_ways, at_once):
        size = min(at_once, n_ways - start)
        if is_exact:
            # bit i of a number says whether item i is swapped; n is at most 12, so start is 0
            is_swapped = (np.arange(size)[:, np.newaxis] >> np.arange(n) & 1).astype(bool)
        else:
            is_swapped = rng.random((size, n)) < 0.5
        if statistic in CORRELATIONS:  # both variables of an item are swapped
            is_swapped = is_swapped[..., np.newaxis]
        points_of_first = _points(np.where(is_swapped, second, first), statistic)
        points_of_second = _points(np.where(is_swapped, first, second), statistic)
        parts.append(points_of_first - points_of_second)
    differences = np.concatenate(parts)
    differences = np.abs(differences[~np.isnan(differences)])
    is_far = differences >= abs(observed) * (1 - 1e-9)  # equal but for rounding counts as equal
    n_observed = 0 if is_exact else 1  # random ways do not include the observed one
    return float((is_far.sum() + n_observed) / (len(differences) + n_observed))


def _with_first_variable_standardised(values: Values, statistic: str) -> Values:
    """Returns the values; of correlations, with ranks or standard scores as first variable.

    The two samples of a correlation may have it on different scales, as log-probabilities of two
    models have, and values that are swapped must be comparable.

    Args:
        values: (n,), or (n, 2) for the correlations; a copy is returned.
        statistic: ranks for "spearman", standard scores for "pearson".
    """
    values = values.astype(np.float64)
    if statistic == "spearman" and len(values):
        values[:, 0] = _ranks(values[np.newaxis])[0, :, 0]
    elif statistic == "pearson" and len(values):
        sd = values[:, 0].std()
        if sd > 0:
            values[:, 0] = (values[:, 0] - values[:, 0].mean()) / sd
    return values


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted over their family by Holm's method; NaN stays and does not count.

    The smallest of m values is multiplied by m, the next one by m - 1 and so on; none may become
    smaller than the one before it or larger than 1.

    >>> holm([0.01, 0.04, math.nan, 0.03])
    [0.03, 0.06, nan, 0.06]

    Source: Holm (1979).
    """
    p = np.array(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]  # positions, of the smallest p first
    multiplied = p[order] * np.arange(len(order), 0, -1)
    p[order] = np.minimum(np.maximum.accumulate(multiplied), 1.0)
    return list(map(float, p))
