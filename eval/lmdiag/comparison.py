"""Two runs on the same rows: differences, how sure they are, and which survive being many (SPEC 4).

A pair of runs is compared item by item: by rows for accuracy, by contrasts for sensitivity, by
pairs or contexts for agreement. Items that only one of the two could score count for neither. Of
several runs each is compared with the first.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lmdiag import diagnostics, stats
from lmdiag.evaluation import HUMAN, scores
from lmdiag.measures import Scores
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    from lmdiag.results import Run

RESAMPLES = 10_000
CONTEXTUAL = ("ew", "mw")
"""Measures over contexts, which are others for a model that sees the left side alone."""


Part = tuple[str, str]
"""A break-down and a level of it; two empty strings for the whole."""

WHOLE: Part = ("", "")


@dataclass(frozen=True)
class Comparison:
    """One measure of two runs.

    Attributes:
        task, setting, measure: what was measured.
        by, level: break-down and its level, where a task is compared by levels; "" for the whole.
        statistic: see `lmdiag.measures.Statistic`.
        n: items that both could score; both values are over these.
        a, b: the values.
        difference: a - b.
        ci_low, ci_high: 95% interval of the difference, paired bootstrap over items. NaN where the
            two do not differ in any item: then nothing is known of how much they might.
        p: exact McNemar where each item is right or wrong, else from the bootstrap; NaN where the
            two do not differ in any item.
        p_adjusted: by Holm's method, over all measures and pairs that were compared and have a p.
        test: "mcnemar" or "bootstrap"; "none" where the two do not differ in any item.
        second: number of the run that the first one, number 0, is compared with.
    """

    task: str
    setting: str
    measure: str
    by: str
    level: str
    statistic: str
    n: int
    a: float
    b: float
    difference: float
    ci_low: float
    ci_high: float
    p: float
    p_adjusted: float
    test: str
    second: int = 1


class Pair(NamedTuple):
    """One measure of two runs, item by item, before it is compared."""

    task: str
    setting: str
    part: Part
    a: Scores
    b: Scores
    second: int = 1


def compare(
    first: Run, *others: Run, seed: int = 0, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Returns a comparison of the first run with each other one, for each measure that both have.

    The curves of EW and MW over cut-offs are left out of it, for they would swell the family to
    which the p-values are adjusted, and so are EW and MW where only one model sees both sides.

    Args:
        first, others: finished runs.
        seed: of the bootstrap; each measure draws from a generator of its own.
        resamples: of the bootstrap.

    Raises:
        BadInput: runs differ in data or protocol; the parts of the signature that do are named.
    """
    for other in others:
        refuse_different(first, other)
    pairs = (pair for i, other in enumerate(others, start=1) for pair in paired(first, other, i))
    return compare_pairs(pairs, seed=seed, resamples=resamples)


def compare_pairs(pairs: Iterable[Pair], *, seed: int, resamples: int) -> list[Comparison]:
    """Returns a comparison for each pair, p adjusted over all of them."""
    found = [compare_scores(pair, seed=seed, resamples=resamples) for pair in pairs]
    adjusted = stats.holm([comparison.p for comparison in found])
    return [replace(one, p_adjusted=p) for one, p in zip(found, adjusted, strict=True)]


def refuse_different(a: Run, b: Run) -> None:
    """Raises BadInput that names each part of the signature in which two runs differ."""
    if different := differing(a.results.signature, b.results.signature):
        raise BadInput(
            f"{a.path} and {b.path} cannot be compared: their signatures differ in {different}; "
            "run both models with the same data and options"
        )


def differing(first: str, second: str) -> str:
    """Returns the parts in which two signatures differ, with both values; "" for none.

    >>> differing("data:1a2b3c4d|k:1,5", "data:1a2b3c4d|k:1,5|bos:never")
    'bos (- and never)'
    """
    a, b = parts(first), parts(second)
    different = [key for key in a | b if a.get(key) != b.get(key)]
    return "; ".join(f"{key} ({a.get(key, '-')} and {b.get(key, '-')})" for key in different)


def parts(signature: str) -> dict[str, str]:
    """Returns the keys and values of a signature.

    >>> parts("lmdiag:0.1|data:1a2b3c4d|k:1,5")
    {'lmdiag': '0.1', 'data': '1a2b3c4d', 'k': '1,5'}
    """
    return {key: value for key, _, value in (part.partition(":") for part in signature.split("|"))}


def paired(a: Run, b: Run, second: int = 1) -> Iterator[Pair]:
    """Yields both runs' scores of each measure that can be compared."""
    unlike = sides_differ(a.results.model.kind, b.results.model.kind)
    for task, settings in a.results.tasks.items():
        for setting in settings:
            first, other = over_runs(a, task, setting), over_runs(b, task, setting)
            yield from paired_scores(task, setting, first, other, unlike=unlike, second=second)


def paired_scores(
    task: str,
    setting: str,
    a: Mapping[str, Scores],
    b: Mapping[str, Scores],
    *,
    unlike: bool,
    second: int = 1,
) -> Iterator[Pair]:
    """Yields the measures of one setting that can be compared, by level where the task says so.

    Args:
        task, setting: what was measured.
        a, b: name -> scores.
        unlike: whether only one of the models sees what is right of the blank.
        second: see `Comparison`.
    """
    for name, whole in a.items():
        skipped = unlike and name in CONTEXTUAL
        if name in b and is_compared(name) and not skipped:
            others = levels_compared(task, b[name])
            for part, own in levels_compared(task, whole).items():
                if part in others:
                    yield Pair(task, setting, part, own, others[part], second)


def levels_compared(task: str, whole: Scores) -> dict[Part, Scores]:
    """Returns the parts of a measure that are compared each for itself: levels, or the whole.

    A measure without any item, which says why it is not defined, has none.
    """
    by = diagnostics.get(task).compared_by.get(whole.name.partition("@")[0], "")
    if by in whole.by:
        return {(by, level): part for level, part in whole.by[by].items()}
    return {WHOLE: whole} if len(whole.items) else {}


def sides_differ(a: str, b: str) -> bool:
    """Returns whether only one of two kinds of model sees what is right of the blank."""
    return (a, b).count("causal") == 1


def is_compared(measure: str) -> bool:
    """Returns whether a measure is one of models, and no point of a curve."""
    return not measure.startswith(HUMAN) and "=" not in measure


def over_runs(run: Run, task: str, setting: str) -> dict[str, Scores]:
    """Returns the scores of a setting by name; those of a shuffled one are means over its runs."""
    protocol, model = run.results.protocol, run.results.model
    of_runs: dict[str, list[Scores]] = {}
    for (name, _), part in sorted(run.predictions[task].items()):
        if name == setting:
            found = scores(run.stimuli[task], part, protocol, model.cased, model.kind)
            for one in found:
                of_runs.setdefault(one.name, []).append(one)
    return {name: average(several) for name, several in of_runs.items()}


def average(several: Sequence[Scores]) -> Scores:
    """Returns the scores of several shuffles as one, each item's values averaged over them."""
    first = several[0]
    if len(several) == 1:
        return first
    items = common([one.items.tolist() for one in several])
    values = np.mean([at(one, items) for one in several], axis=0)
    statistic = "share" if first.statistic == "proportion" else first.statistic
    return Scores(first.name, np.array(items, dtype=object), values, statistic)


def compare_scores(pair: Pair, *, seed: int, resamples: int) -> Comparison:
    """Returns the comparison of one measure; its p-value is not adjusted yet."""
    a, b = pair.a, pair.b
    items = common([a.items.tolist(), b.items.tolist()])
    first, second = at(a, items), at(b, items)
    place = "/".join(filter(None, (pair.task, pair.setting, a.name, *pair.part)))
    rng = np.random.default_rng([seed, zlib.crc32(place.encode())])
    difference, test = tested(first, second, a.statistic, rng, resamples)
    return Comparison(
        task=pair.task,
        setting=pair.setting,
        measure=a.name,
        by=pair.part[0],
        level=pair.part[1],
        statistic=a.statistic,
        n=len(items),
        a=stats.point(first, a.statistic),
        b=stats.point(second, a.statistic),
        difference=difference.value,
        ci_low=difference.ci_low,
        ci_high=difference.ci_high,
        p=difference.p,
        p_adjusted=math.nan,
        test=test,
        second=pair.second,
    )


def tested(
    first: stats.Floats,
    second: stats.Floats,
    statistic: str,
    rng: np.random.Generator,
    resamples: int,
) -> tuple[stats.Difference, str]:
    """Returns the difference with its interval and p, and the name of the test that p is from."""
    if np.array_equal(first, second):  # no item differs: no spread to take an interval from
        value = stats.point(first, statistic) - stats.point(second, statistic)
        return stats.Difference(value, math.nan, math.nan, math.nan), "none"
    difference = stats.paired_bootstrap(first, second, statistic, rng, resamples)
    if statistic != "proportion":
        return difference, "bootstrap"
    return replace(difference, p=stats.mcnemar(first, second)), "mcnemar"


def common(lists: Sequence[Sequence[str]]) -> list[str]:
    """Returns the items that are in all lists, in the order of the first."""
    shared = set(lists[0]).intersection(*lists[1:])
    return [item for item in lists[0] if item in shared]


def at(scores: Scores, items: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Returns the values of some items, in their order."""
    place: Mapping[str, int] = {item: i for i, item in enumerate(scores.items)}
    return scores.values[[place[item] for item in items]]
