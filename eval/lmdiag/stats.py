"""How certain a number is: intervals, paired tests, adjustment for multiple testing.

Pure functions; random draws come from a generator that the caller passes in. scipy does much of the
arithmetic and is imported where it is used, because it loads slowly. Undefined is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""Confidence of every interval."""

VersusChance = Literal["above", "below", "not distinguishable"]
"""Where a figure lies against the chance level, by a two-sided test at the 5% level."""

CORRELATIONS = ("spearman", "pearson")

MOST_EXACT = 16
"""Differences other than 0 of which a sign-flip test takes all patterns of signs."""

Values = NDArray[np.float64]
"""Values of items, (n,), or (n, 2) for correlations."""
Interval = tuple[float, float]
_UNDEFINED = (math.nan, math.nan)


@dataclass(frozen=True)
class Estimate:
    """A measure's value and its 95% interval.

    Attributes:
        value: NaN where there is nothing to measure.
        n: number of items.
        ci_low, ci_high: bounds of the interval; NaN where undefined.
    """

    value: float
    n: int
    ci_low: float
    ci_high: float


# ---- one sample ---------------------------------------------------------------------------------


def point(values: Values, statistic: str) -> float:
    """Returns the value of a measure from its items' values.

    Args:
        values: (n,), or (n, 2) for the correlations.
        statistic: "proportion", "share" or "mean" (all means), "median", "spearman" or "pearson".

    Returns:
        The value; NaN for no items, and for a correlation of fewer than two or of constant values.
    """
    return float(_points(values[np.newaxis], statistic)[0]) if len(values) else math.nan


def _points(samples: Values, statistic: str) -> Values:
    """The value of each sample of the first axis, (samples,); see `point`."""
    if statistic == "median":
        return np.asarray(np.median(samples, axis=1))
    if statistic not in CORRELATIONS:
        return np.asarray(samples.mean(axis=1))
    if statistic == "spearman":
        samples = _ranks(samples)
    centred = samples - samples.mean(axis=1, keepdims=True)
    first, second = centred[..., 0], centred[..., 1]
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        r = np.clip((first * second).sum(axis=1) / spread, -1, 1)
    return np.where(spread > 0, r, np.nan)


def _ranks(samples: Values) -> Values:
    """Returns the ranks from 1 along axis 1; equal values share the mean of theirs.

    The same as `scipy.stats.rankdata`, whose import takes longer than to score a run.
    """
    values = np.ascontiguousarray(np.moveaxis(samples, 1, -1))
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    begins = np.insert(ordered[..., 1:] != ordered[..., :-1], 0, True, axis=-1).ravel()
    starts = np.flatnonzero(begins)  # of runs of equal values, over all samples
    lengths = np.diff(starts, append=begins.size)
    means = starts % values.shape[-1] + (lengths + 1) / 2
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, np.repeat(means, lengths).reshape(values.shape), axis=-1)
    return np.moveaxis(ranks, -1, 1)


def estimate(values: Values, statistic: str) -> Estimate:
    """Returns value, n and interval: Wilson, t, order statistics, or Fisher's z.

    The interval of a median is between two order statistics, because the number of values below the
    median of the population is binomial, whatever the distribution; it is NaN for fewer than six
    values, whose whole range covers the median with less than 95%. That of a correlation is exact
    for Pearson of normal data, an approximation for Spearman; it is NaN for fewer than four.

    Args:
        values, statistic: see `point`; a "share" is a mean of values in [0, 1].

    Source: Conover (1999), Practical Nonparametric Statistics, section 3.2, for the median.
    """
    value, n, bounds = point(values, statistic), len(values), _UNDEFINED
    # shares that never vary have no spread for t, but are not more certain than proportions
    if statistic == "proportion" or (statistic == "share" and n and not np.ptp(values)):
        bounds = wilson(float(values.sum()), n)
    elif statistic in CORRELATIONS and n > 3 and not math.isnan(value):
        from scipy.special import ndtri

        margin = float(ndtri((1 + LEVEL) / 2)) / math.sqrt(n - 3)
        centre = math.atanh(value) if abs(value) < 1 else math.copysign(math.inf, value)
        bounds = math.tanh(centre - margin), math.tanh(centre + margin)
    elif statistic in ("share", "mean"):
        bounds = mean_interval(values, within=(0.0, 1.0) if statistic == "share" else None)
    elif statistic == "median" and n > 5:
        from scipy.stats import binom

        cut = int(binom.ppf((1 - LEVEL) / 2, n, 0.5))  # the cut-th values from both ends
        low, high = np.sort(values)[[cut - 1, n - cut]]
        bounds = float(low), float(high)
    return Estimate(value, n, *bounds)


def wilson(successes: float, n: int) -> Interval:
    """Returns Wilson's score interval of a proportion; NaN for n = 0.

    With p the proportion and z the normal quantile, the bounds are

        (p + z²/2n) / (1 + z²/n) ± z √(p (1 - p) / n + z²/4n²) / (1 + z²/n)

    Source: Wilson (1927).
    """
    if n == 0:
        return _UNDEFINED
    from scipy.special import ndtri

    z = -float(ndtri((1 - LEVEL) / 2))
    p, z2 = successes / n, z**2
    scale = 1 + z2 / n
    center = (p + z2 / (2 * n)) / scale
    margin = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n**2)) / scale
    # rounding may leave a bound slightly outside [0, p] or [p, 1]
    return max(0.0, min(center - margin, p)), min(1.0, max(center + margin, p))


def mean_interval(values: Values, within: Interval | None = None) -> Interval:
    """Returns Student's t interval of a mean; NaN for fewer than two values.

    Args:
        values: (n,).
        within: what the mean can be at all, e.g. (0, 1) for shares; the bounds are clipped to it.
    """
    if len(values) < 2:
        return _UNDEFINED
    from scipy.special import stdtrit

    margin = float(
        stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / math.sqrt(len(values))
    )
    low, high = within or (-math.inf, math.inf)
    return max(low, float(values.mean()) - margin), min(high, float(values.mean()) + margin)


# ---- against the chance level -------------------------------------------------------------------


def versus_chance(
    value: float, n: int, chance: float, interval: Interval | None = None
) -> VersusChance:
    """Returns whether a figure is above or below the chance level, or cannot be told from it.

    Args:
        value: a proportion of n items, or a mean of values in [0, 1].
        n: number of items.
        chance: probability that guessing counts an item as right; where it differs between items,
            its mean, with which the binomial test is conservative (Hoeffding 1956).
        interval: None for a proportion: the exact binomial test decides. For a mean of values, its
            95% t interval, which leaves out the chance level exactly where the t test rejects it.
    """
    if interval is not None and value not in (0, 1):
        is_different = not interval[0] <= chance <= interval[1]
    else:
        is_different = chance_p(value, n, chance) < 0.05
    if not is_different:
        return "not distinguishable"
    return "above" if value > chance else "below"


@cache
def chance_p(value: float, n: int, chance: float) -> float:
    """Returns the two-sided p of the exact binomial test of a proportion of n items.

    The sum of the probabilities of all counts that are at most as probable as the observed one: the
    same as `scipy.stats.binomtest`, whose import takes longer than to score a run. A fractional
    count, such as a mean over shuffles, is rounded towards chance.
    """
    from scipy.special import gammaln, xlog1py, xlogy

    towards = math.floor if value > chance else math.ceil
    is_whole = abs(value * n - round(value * n)) < 1e-6
    count = round(value * n) if is_whole else towards(value * n)
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    probabilities = np.exp(ways + xlogy(k, chance) + xlog1py(n - k, -chance))
    as_rare = probabilities <= probabilities[count] * (1 + 1e-7)  # ties but for rounding
    return min(1.0, float(probabilities[as_rare].sum()))


# ---- two paired samples -------------------------------------------------------------------------


def mcnemar(first: Values, second: Values) -> float:
    """Returns the two-sided p of McNemar's exact test on paired verdicts.

    Only items on which the two disagree count: without a difference, each of them is a fair coin.

    Args:
        first, second: (n,), each value 0 or 1.

    Raises:
        ValueError: values other than 0 and 1, or not paired.

    Source: McNemar (1947) in its exact binomial form; scipy computes it.
    """
    if first.shape != second.shape or not np.isin(np.concatenate([first, second]), (0, 1)).all():
        raise ValueError("McNemar's test takes two arrays of 0 and 1 of one length")
    from scipy.stats import binomtest

    won, lost = int((first > second).sum()), int((first < second).sum())
    return float(binomtest(won, won + lost, 0.5).pvalue) if won + lost else 1.0


def sign_flip(
    differences: Values, rng: np.random.Generator | None = None, flips: int = 100_000
) -> float:
    """Returns the two-sided p of a sign-flip test that paired differences have a mean of 0.

    Without a difference between the two, each item's difference is as likely to have the other
    sign. p is the share of sign patterns whose sum is at least as far from 0 as the observed sum:
    of all 2^n patterns for up to 16 differences other than 0, else of random ones, with one added
    to both counts so that p is never 0. Differences of 0 do not change p.

    Args:
        differences: first minus second, (n,).
        rng: where random patterns come from; None for a generator with seed 0.
        flips: how many random patterns.

    Returns:
        p; NaN where all differences are 0, where there are none, and where one is not finite.

    Source: Fisher (1935), The Design of Experiments, section 21.
    """
    changing = differences[differences != 0]
    if len(changing) == 0 or not np.isfinite(changing).all():
        return math.nan
    if len(changing) <= MOST_EXACT:
        return flip_p(_signed_sums(changing), changing, is_exact=True)
    rng = np.random.default_rng(0) if rng is None else rng
    return flip_p(random_flips(differences, rng, flips), differences)


def random_flips(values: Values, rng: np.random.Generator, flips: int = 100_000) -> Values:
    """Returns the sums of items' values with random signs, the same signs in each column.

    The sums of a difference of two columns are the difference of their sums.

    Args:
        values: (n,) or (n, columns).
        rng: where the signs come from.
        flips: how many patterns of signs.

    Returns:
        (flips,) or (flips, columns).
    """
    sums = np.zeros((flips, *values.shape[1:]))
    drawn = np.empty_like(sums)
    for start in range(0, len(values), 8):  # a random byte chooses the signs of eight items
        patterns = _signed_sums(values[start : start + 8])
        chosen = rng.integers(len(patterns), size=flips, dtype=np.uint8)
        sums += patterns.take(chosen, axis=0, out=drawn, mode="clip")  # "raise" would copy `out`
    return sums


def flip_p(sums: Values, differences: Values, *, is_exact: bool = False) -> float:
    """Returns the p of `sign_flip` from the sums of the differences with random signs, (flips,).

    Sums that are equal to the observed one but for rounding count as equal.
    """
    least = abs(differences.sum()) - 1e-9 * np.abs(differences).sum()
    n_far, added = (np.abs(sums) >= least).sum(), 0 if is_exact else 1
    return float((n_far + added) / (len(sums) + added))


def _signed_sums(values: Values) -> Values:
    """The sums of n items' values with all patterns of signs, (2^n,) or (2^n, columns)."""
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
    """Returns the two-sided p of a permutation test of the difference of a median or correlation.

    Without a difference between the two, it does not matter which of them an item's two values are
    of. p is the share of ways to swap the two values of some items that leave a difference at
    least as large as the observed one: of all 2^n ways for up to 12 items, else of random ones,
    with one added to both counts. Before the swaps of a correlation, the first variable, which may
    have another scale in each sample, is ranked within the sample (Spearman) or standardised
    (Pearson). The second variable is the same in both samples.

    Args:
        first, second: (n,) or (n, 2), paired.
        statistic: see `point`.
        rng: where random swaps come from; None for a generator with seed 0.
        swaps: how many random ways.

    Returns:
        p; NaN where the difference is undefined, and where no item differs.

    Source: Noreen (1989), Computer-Intensive Methods for Testing Hypotheses; for correlations
        Deutsch, Dror and Roth (2021), A Statistical Analysis of Summarization Evaluation Metrics.
    """
    scaled = []
    for values in (first, second):
        values = values.astype(np.float64)
        if statistic == "spearman" and len(values):
            values[:, 0] = _ranks(values[np.newaxis])[0, :, 0]
        elif statistic == "pearson" and len(values) and (spread := values[:, 0].std()) > 0:
            values[:, 0] = (values[:, 0] - values[:, 0].mean()) / spread
        scaled.append(values)
    first, second = scaled
    observed = point(first, statistic) - point(second, statistic)
    if math.isnan(observed) or np.array_equal(first, second):
        return math.nan
    n, is_exact, all_drawn = len(first), len(first) <= 12, []
    rng = np.random.default_rng(0) if rng is None else rng
    for size in [2**n] if is_exact else batch_sizes(swaps, n):
        if is_exact:
            ways = (np.arange(size)[:, np.newaxis] >> np.arange(n) & 1).astype(bool)
        else:
            ways = rng.random((size, n)) < 0.5
        ways = ways[..., np.newaxis] if statistic in CORRELATIONS else ways
        a, b = np.where(ways, second, first), np.where(ways, first, second)
        all_drawn.append(_points(a, statistic) - _points(b, statistic))
    drawn = np.concatenate(all_drawn)
    drawn = np.abs(drawn[~np.isnan(drawn)])
    is_far = drawn >= abs(observed) * (1 - 1e-9)  # equal but for rounding counts as equal
    added = 0 if is_exact else 1
    return float((is_far.sum() + added) / (len(drawn) + added))


def paired_bootstrap(
    first: Values, second: Values, statistic: str, rng: np.random.Generator, resamples: int = 10_000
) -> Interval:
    """Returns the percentile interval of the difference first - second, over resampled items.

    Items are drawn with replacement, each with both its values.

    Args:
        first, second: (n,) or (n, 2), paired.
        statistic: see `point`.
        rng: where the resamples come from.
        resamples: how many.

    Returns:
        The bounds; NaN for fewer than eight items, where percentiles of so few distinct resamples
        say little, where the difference is undefined, and where all items differ by the same.

    Source: Efron and Tibshirani (1993), chapter 13.
    """
    if first.shape != second.shape:
        raise ValueError(f"paired samples differ in shape: {first.shape} and {second.shape}")
    if len(first) < 8 or math.isnan(point(first, statistic) - point(second, statistic)):
        return _UNDEFINED
    if not np.ptp(first - second, axis=0).any():
        return _UNDEFINED
    if statistic in ("share", "mean"):
        return percentiles(resampled_means(first - second, rng, resamples))
    n, drawn = len(first), []
    distinct, counts = np.unique(first - second, return_counts=True)
    for size in batch_sizes(resamples, n):
        if statistic == "proportion":  # how often each of at most three differences is drawn
            drawn.append(rng.multinomial(n, counts / n, size=size) @ distinct / n)
        else:
            chosen = rng.integers(n, size=(size, n))
            drawn.append(_points(first[chosen], statistic) - _points(second[chosen], statistic))
    return percentiles(np.concatenate(drawn))


def resampled_means(values: Values, rng: np.random.Generator, resamples: int) -> Values:
    """Returns the means of resamples of items, the same items in each column.

    The means of a difference of two columns are the difference of their means.

    Args:
        values: (n,) or (n, columns).
        rng: where the resamples come from.
        resamples: how many.

    Returns:
        (resamples,) or (resamples, columns).
    """
    n, means = len(values), []
    for size in batch_sizes(resamples, n):
        drawn = rng.integers(n, size=(size, n))
        if values.ndim == 1:
            means.append(values[drawn].mean(axis=1))
            continue
        drawn += n * np.arange(size)[:, np.newaxis]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        means.append(counts @ values / n)
    return np.concatenate(means)


def percentiles(drawn: Values) -> Interval:
    """Returns the percentile interval of the figures of resamples, without undefined ones."""
    # a resample of one item over and over has no correlation
    low, high = np.quantile(drawn[~np.isnan(drawn)], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def batch_sizes(resamples: int, n: int, cells: int = 4_000_000) -> list[int]:
    """Returns sizes of batches of resamples that keep at most `cells` values in memory each."""
    size = max(1, cells // n)
    return [min(size, resamples - start) for start in range(0, resamples, size)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted over their family by Holm's method; NaN stays and does not count.

    The smallest of m values is multiplied by m, the next one by m - 1 and so on; none may become
    smaller than the one before it or larger than 1.

    Source: Holm (1979).
    """
    p = np.array(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    p[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return list(map(float, p))
