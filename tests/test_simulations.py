"""How often each printed test rejects a true null hypothesis, and how often its interval covers.

`PYTHONPATH=tests python tests/test_simulations.py` prints the table of docs/specification.md,
section 5, with which the tests compare.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import lmdiag
from lmdiag import stats
from lmdiag.analysis.effects import within_item_intervals
from lmdiag.measures import item_measures
from lmdiag.measures.cloze import STATISTICS
from lmdiag.measures.scores import Trials
from lmdiag.results import Figure

PAGE = Path(__file__).parents[1] / "docs" / "specification.md"
HEADER = "| test | data | draws | true nulls rejected at .05 | coverage |"


class Outcome(NamedTuple):
    """What a procedure says of one sample: p, and whether its interval has the true value."""

    p: float | None  # None where the null hypothesis is false, or there is no test
    covers: bool | None = None  # None without an interval


class Simulation(NamedTuple):
    """A procedure, repeated on samples of one kind.

    Attributes:
        test, data, draws: the first columns of the row in the table.
        draw: the procedure on one sample, which a generator and `arguments` make.
        is_bounded: whether the rates must be within the bounds that the test asserts; skewed
            values, and tests that are asymptotic, are shown without a bound.
    """

    test: str
    data: str
    draws: int
    draw: Callable[..., Outcome]
    arguments: tuple[Any, ...] = ()
    is_bounded: bool = True

    def rates(self):
        """The shares of samples with p < .05 and with the true value covered; NaN for none."""
        rng = np.random.default_rng(0)
        outcomes = [self.draw(rng, *self.arguments) for _ in range(self.draws)]
        # a p that is undefined, where two models do not differ in any item, rejects nothing
        rejected = [outcome.p < 0.05 for outcome in outcomes if outcome.p is not None]
        covered = [outcome.covers for outcome in outcomes if outcome.covers is not None]
        return _share(rejected), _share(covered)

    def row(self):
        cells = [self.test, self.data, f"{self.draws:,}", *map(_shown, self.rates())]
        return f"| {' | '.join(cells)} |"


def _share(values):
    return float(np.mean(values)) if values else math.nan


def _shown(rate):
    return "–" if math.isnan(rate) else f"{rate:.3f}".lstrip("0")


def covers(tested, truth=0.0):
    """Whether the interval of a test, an estimate, or a row of a table has the true value."""
    return None if math.isnan(tested.ci_low) else tested.ci_low <= truth <= tested.ci_high


# ---- two models on the same items ---------------------------------------------------------------


def verdicts(rng, n, only_first, only_second):
    kinds = rng.choice(3, size=n, p=[only_first, only_second, 1 - only_first - only_second])
    test = stats.mcnemar((kinds == 0).astype(float), (kinds == 1).astype(float))
    difference = only_first - only_second
    return Outcome(None if difference else test.p, covers(test, difference))


def differences(rng, n, kind):
    if kind == "normal":
        values = rng.normal(size=n)
    elif kind == "heavy":
        values = rng.standard_t(3, size=n)
    else:
        values = rng.exponential(size=n) - 1
    test = stats.sign_flip(values, rng, flips=2_000)
    return Outcome(test.p, covers(test))


def swapped(rng, n, statistic):
    shared = rng.normal(size=n)
    first = shared + rng.normal(size=n)
    second = shared + rng.normal(size=n)
    if statistic in stats.CORRELATIONS:
        cloze = 0.5 * shared + rng.normal(size=n)
        first = np.column_stack([first, cloze])
        second = np.column_stack([second, cloze])
    return Outcome(stats.swap_test(first, second, statistic, rng, swaps=500))


# ---- one model ----------------------------------------------------------------------------------


def against_chance(rng, n, chance):
    right = int(rng.binomial(n, chance))
    estimated = stats.estimate(np.arange(n) < right, "proportion")
    return Outcome(stats.chance_p(right / n, n, chance), covers(estimated, chance))


@cache
def contrasts(n, rows):
    """n contrasts of some rows, without predictions."""
    of = [(i, row) for i in range(n) for row in range(rows)]
    columns = {
        "id": [f"{i}-{row}" for i, row in of], "contrast": [str(i) for i, _ in of],
        "good": [row == 0 for _, row in of], "context": [""] * len(of),
        "right_context": [""] * len(of), "target": [str(row) for _, row in of],
    }  # fmt: skip
    predictions = {"log_prob": [-float(row) for _, row in of]}
    return Trials(columns, predictions, {}).contrasts


def guesses(rng, n, rows, step):
    """Which row is preferred at random, by log-probabilities that are multiples of a step."""
    values = rng.normal(size=n * rows)
    return contrasts(n, rows).share_with_good_highest("sensitivity", np.round(values / step) * step)


def tied_against_chance(rng, n, rows, step):
    scores = guesses(rng, n, rows, step)
    n_tied = int(scores.tied.sum())
    value = float(scores.values.mean())
    return Outcome(Figure(value, n, chance=1 / rows, n_tied=n_tied).p_chance)


def tied_in_one(rng, n, rows, steps):
    base, new = (guesses(rng, n, rows, step) for step in steps)
    kept = ~(base.tied | new.tied)
    return Outcome(stats.mcnemar(new.values[kept], base.values[kept]).p)


def means(rng, n):
    return Outcome(None, covers(stats.estimate(rng.normal(size=n), "mean")))


def shares(rng, n, a, b, statistic):
    values = rng.beta(a, b, size=n)
    return Outcome(None, covers(stats.estimate(values, statistic), a / (a + b)))


def medians(rng, n):
    return Outcome(None, covers(stats.estimate(rng.exponential(size=n), "median"), math.log(2)))


def correlations(rng, n, r, statistic):
    # the rank correlation of the population of a normal distribution with correlation r
    truth = 6 / math.pi * math.asin(r / 2) if statistic == "spearman" else r
    values = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], size=n)
    return Outcome(None, covers(stats.estimate(values, statistic), truth))


# ---- cloze norms --------------------------------------------------------------------------------


@cache
def cloze_population():
    """Measures of 20,000 items of 3 to 11 words, 30 responses each, whose model half agrees."""
    rng = np.random.default_rng(1)
    rows = []
    for size in rng.integers(3, 12, 20_000):
        people = rng.dirichlet(np.ones(size))
        counts = rng.multinomial(30, people)
        p = rng.beta(2, 2) * (people + rng.dirichlet(np.ones(size))) / 2
        said = counts > 0
        rows.append(item_measures(counts[said] / 30, np.log(p[said]), 0.0))
    return pd.DataFrame(rows)


def cloze_means(rng, n, measure):
    values = cloze_population()[measure].dropna().to_numpy()
    return Outcome(
        None, covers(stats.estimate(rng.choice(values, n), STATISTICS[measure]), values.mean())
    )


def cells_of_accuracy(rng, n, right):
    """Right and wrong answers of n items in two cells."""
    values = (rng.random((n, 2)) < [right, 0.7]).astype(float)
    low, high = within_item_intervals(values, is_accuracy=True)[0]
    return Outcome(None, low <= right <= high)


# ---- conditions ---------------------------------------------------------------------------------


def two_by_two(n):
    names = ["item", "first", "second"]
    cells = pd.MultiIndex.from_product([range(n), ["a", "b"], ["x", "y"]], names=names)
    return cells.to_frame(index=False)


def items_and_noise(table, rng):
    """Surprisals of items that differ, also in the size of the effect, whose mean is 0."""
    item = table["item"].to_numpy()
    n = item.max() + 1
    level = rng.normal(10, 2, n)
    slope = rng.normal(0, 1, n)
    is_second = (table["first"] == "b").to_numpy()
    noise = rng.normal(size=len(table))
    return table.assign(surprisal=level[item] + slope[item] * is_second + noise)


def within_items(rng, effect):
    analysis = lmdiag.analyse(items_and_noise(two_by_two(24), rng))
    row = analysis.effects.set_index("effect").loc[effect]
    return Outcome(row.p, covers(row))


def between_items(rng):
    table = two_by_two(24)
    table["group"] = np.where(table["item"] < 8, "few", "many")
    table = items_and_noise(table, rng)
    analysis = lmdiag.analyse(table, conditions=["first"], by="group")
    welch = analysis.by_level.iloc[-1]
    return Outcome(welch.p, covers(welch))


def mixed(rng):
    formula = "surprisal ~ first * second + (1 + first | item)"
    analysis = lmdiag.analyse(items_and_noise(two_by_two(24), rng), formula=formula)
    (fit,) = analysis.mixed.values()
    term = fit.terms.iloc[1]
    return Outcome(term.p, covers(term))


# ---- human measures -----------------------------------------------------------------------------

CONTROLS = ["length", "log_frequency"]


def corpus(rng, words):
    """Words whose reading times depend on length and frequency, and on no surprisal."""
    frame = pd.DataFrame({"text": 1, "position": range(words), "word": "w"})
    frame["length"] = rng.integers(1, 12, words).astype(float)
    frame["log_frequency"] = rng.normal(size=words) - 0.2 * frame["length"]
    frame["bits"] = rng.exponential(4, words) - frame["log_frequency"]
    time = 300 + 5 * frame["length"] - 10 * frame["log_frequency"]
    return frame.assign(rt=time + rng.normal(0, 40, words))


def read_by(rng, readers):
    """80 words, each with its reading time for all readers, in a row per word and reader."""
    words = corpus(rng, 80)
    words["rt"] += rng.normal(0, 20, 80)
    rows = words.loc[words.index.repeat(readers)].reset_index(drop=True)
    return rows.assign(reader=np.tile(np.arange(readers), 80))


def fitted(frame, *surprisals, **options):
    return lmdiag.fit(frame, surprisal=surprisals, response="rt", controls=CONTROLS, **options)


def one_reader(rng):
    return Outcome(fitted(corpus(rng, 300), "bits").models[0].p)


def many_readers(rng):
    rows = read_by(rng, 30)
    rows["rt"] += rng.normal(0, 60, len(rows))
    return Outcome(fitted(rows, "bits", reader="reader").models[0].p)


def readers_and_words(rng):
    rows = read_by(rng, 10)
    rows["word"] = [f"w{number // 10}" for number in range(800)]
    rows["rt"] += rng.normal(0, 40, 10)[rows["reader"]] + rng.normal(0, 60, len(rows))
    formula = "rt ~ surprisal + length + log_frequency + (1 | reader) + (1 | word)"
    fit = lmdiag.fit(rows, surprisal="bits", reader="reader", formula=formula)
    return Outcome(fit.models[0].p)


def two_surprisals(rng):
    """Two noisy measures of what the reading times depend on, equally good."""
    words = corpus(rng, 300)
    surprisal = rng.exponential(4, 300)
    words["rt"] += 5 * surprisal
    words["bits"] = surprisal + rng.normal(0, 4, 300)
    words["other"] = surprisal + rng.normal(0, 4, 300)
    (compared,) = fitted(words, "bits", "other").comparisons.itertuples()
    return Outcome(compared.p, covers(compared))


PAIRS = "McNemar's score test, Tango's interval"
FLIPS = "sign-flip test and its interval"
SWAPS = "permutation test of two models"
CHANCE = "exact binomial test, Wilson's interval"
SIMULATIONS = [
    Simulation(PAIRS, "n = 12; 15% right by each alone", 2_000, verdicts, (12, 0.15, 0.15)),
    Simulation(PAIRS, "n = 34; 15% right by each alone", 2_000, verdicts, (34, 0.15, 0.15)),
    Simulation(PAIRS, "n = 102; 30% and 10% right by one", 2_000, verdicts, (102, 0.3, 0.1)),
    Simulation(FLIPS, "n = 12, normal", 2_000, differences, (12, "normal")),
    Simulation(FLIPS, "n = 30, normal", 2_000, differences, (30, "normal")),
    Simulation(FLIPS, "n = 30, t with 3 df", 2_000, differences, (30, "heavy")),
    Simulation(FLIPS, "n = 30, exponential", 2_000, differences, (30, "skewed"), is_bounded=False),
    Simulation(SWAPS, "medians, n = 34", 500, swapped, (34, "median")),
    Simulation(SWAPS, "Spearman correlations, n = 44", 500, swapped, (44, "spearman")),
    Simulation(CHANCE, "n = 34, chance 1/3", 2_000, against_chance, (34, 1 / 3)),
    Simulation(CHANCE, "n = 102, chance 1/2", 2_000, against_chance, (102, 1 / 2)),
    *(
        Simulation("exact binomial test without ties", f"n = 34, {rows} rows, {ties}% tied", 2_000,
                   tied_against_chance, (34, rows, step))
        for rows, ties, step in ((2, 27, 1.0), (2, 80, 3.2), (3, 36, 1.0), (3, 85, 3.2))
    ),
    *(
        Simulation("McNemar's score test without ties",
                   f"n = 100, {rows} rows, none and {ties}% tied", 2_000, tied_in_one,
                   (100, rows, (1e-9, 3.2)))
        for rows, ties in ((2, 80), (3, 85))
    ),
    Simulation("t interval of a mean", "n = 12, normal", 2_000, means, (12,)),
    *(
        Simulation("interval of a mean of shares", f"n = {n}, Beta({a}, {b})", 2_000, shares,
                   (n, a, b, "share"), is_bounded=False)
        for a, b in ((0.2, 2), (0.5, 2), (2, 5))
        for n in (8, 20, 50)
    ),
    Simulation("plain t interval of shares (not used)", "n = 8, Beta(0.2, 2)", 2_000, shares,
               (8, 0.2, 2, "mean"), is_bounded=False),
    *(
        Simulation("interval of `cloze`", f"{measure}, {n} items", 2_000, cloze_means,
                   (n, measure), is_bounded=False)
        for measure in ("mass", "divergence", "spearman")
        for n in (8, 20, 50)
    ),
    *(
        Simulation("interval of a cell of `analyse`, right or wrong",
                   f"{n} items, {100 * right:g}% right", 2_000, cells_of_accuracy, (n, right),
                   is_bounded=False)
        for right in (0.5, 0.8, 0.95)
        for n in (8, 20, 50)
    ),
    Simulation("interval of a median", "n = 102, exponential", 2_000, medians, (102,)),
    Simulation("Spearman's interval", "n = 44, r = 0", 2_000, correlations, (44, 0.0, "spearman")),
    Simulation("Spearman's interval", "n = 44, r = .9", 2_000, correlations, (44, 0.9, "spearman")),
    Simulation("Pearson's interval", "n = 44, r = .9", 2_000, correlations, (44, 0.9, "pearson")),
    Simulation("paired t test, main effect", "2 x 2, n = 24", 1_000, within_items, ("first",)),
    Simulation("paired t test, interaction", "2 x 2, n = 24", 1_000, within_items,
               ("first:second",)),
    Simulation("Welch's t test (`--by`)", "n = 8 and 16", 1_000, between_items),
    Simulation("mixed model, Satterthwaite's df", "2 x 2, n = 24, slopes", 500, mixed),
    Simulation("F test of `fit`", "300 words", 500, one_reader),
    Simulation("F test of `fit`", "80 words x 30 readers, averaged", 500, many_readers),
    # its chi-square distribution holds for many words
    Simulation("LR test of `fit --formula`", "80 words x 10 readers", 500, readers_and_words,
               is_bounded=False),
    Simulation("sign-flip test of `fit`, two models", "300 words, equally good", 500,
               two_surprisals),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("simulation", SIMULATIONS, ids=lambda x: f"{x.test}, {x.data}")
def test_rates_are_those_of_the_specification(simulation):
    rejected, covered = simulation.rates()
    if simulation.is_bounded:
        assert not rejected > 0.065
        assert not covered < 0.93
        assert not covered > 0.98
    *_, table = PAGE.read_text().partition(HEADER)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    (stated,) = [row[3:] for row in rows if row[:2] == [simulation.test, simulation.data]]
    # one sample of another verdict on another processor
    for shown, rate in zip(stated, (rejected, covered), strict=True):
        value = math.nan if shown == "–" else float(shown)
        assert value == pytest.approx(rate, abs=0.0026, nan_ok=True)


if __name__ == "__main__":
    print(HEADER, "| --- | --- | ---: | ---: | ---: |", sep="\n")
    for simulation in SIMULATIONS:
        print(simulation.row(), flush=True)
