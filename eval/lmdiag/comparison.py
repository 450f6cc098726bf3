"""Two runs on the same rows: differences, how sure they are, and which survive being many (SPEC 4).

A pair of runs is compared item by item: by rows for accuracy, by contrasts for sensitivity, by
pairs or contexts for agreement. Items that only one of the two could score count for neither.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lmdiag import stats
from lmdiag.measures import Scores
from lmdiag.schema import BadInput, Protocol
from lmdiag.summary import ABOUT_PEOPLE, scores

if TYPE_CHECKING:
    from lmdiag.results import Run

RESAMPLES = 10_000
CONTEXTUAL = ("ew", "mw")
"""Measures over contexts, which are others for a model that sees the left side alone."""


@dataclass(frozen=True)
class Comparison:
    """One measure of two runs.

    Attributes:
        task, setting, measure: what was measured.
        statistic: see `lmdiag.measures.Statistic`.
        n: items that both could score; both values are over these.
        a, b: the values.
        difference: a - b.
        ci_low, ci_high: 95% interval of the difference, paired bootstrap over items.
        p: exact McNemar where each item is right or wrong, else from the bootstrap.
        p_adjusted: by Holm's method, over all measures that were compared.
        test: "mcnemar" or "bootstrap".
    """

    task: str
    setting: str
    measure: str
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


def compare(a: Run, b: Run, *, seed: int = 0, resamples: int = RESAMPLES) -> list[Comparison]:
    """Returns a comparison for each measure that both runs have, in the order of the tables.

    The curves of EW and MW over cut-offs are left out of it, for they would swell the family to
    which the p-values are adjusted, and so are EW and MW where only one model sees both sides.

    Args:
        a, b: finished runs.
        seed: of the bootstrap; each measure draws from a generator of its own.
        resamples: of the bootstrap.

    Raises:
        BadInput: the runs differ in data or protocol; the parts of the signature that do are named.
    """
    refuse_different(a, b)
    return compare_pairs(paired(a, b), seed=seed, resamples=resamples)


def compare_pairs(
    pairs: Iterable[tuple[str, str, Scores, Scores]], *, seed: int, resamples: int
) -> list[Comparison]:
    """Returns a comparison for each (task, setting, scores of A, scores of B), p adjusted."""
    found = [
        compare_scores(task, setting, first, second, seed=seed, resamples=resamples)
        for task, setting, first, second in pairs
    ]
    adjusted = stats.holm([comparison.p for comparison in found])
    return [replace(one, p_adjusted=p) for one, p in zip(found, adjusted, strict=True)]


def refuse_different(a: Run, b: Run) -> None:
    """Raises BadInput that names each part of the signature in which two runs differ."""
    first, second = parts(a.results["signature"]), parts(b.results["signature"])
    different = [key for key in first | second if first.get(key) != second.get(key)]
    if different:
        pairs = {key: f"{first.get(key, '-')} and {second.get(key, '-')}" for key in different}
        named = "; ".join(f"{key} ({pair})" for key, pair in pairs.items())
        raise BadInput(
            f"{a.path} and {b.path} cannot be compared: their signatures differ in {named}; "
            "run both models with the same data and options"
        )


def parts(signature: str) -> dict[str, str]:
    """Returns the keys and values of a signature.

    >>> parts("lmdiag:0.1|data:1a2b3c4d|k:1,5")
    {'lmdiag': '0.1', 'data': '1a2b3c4d', 'k': '1,5'}
    """
    return {key: value for key, _, value in (part.partition(":") for part in signature.split("|"))}


def paired(a: Run, b: Run) -> Iterator[tuple[str, str, Scores, Scores]]:
    """Yields task, setting and both runs' scores of each measure that can be compared."""
    unlike = sides_differ(a, b)
    for task in a.results["tasks"]:
        for setting in a.results["tasks"][task]:
            first, second = over_runs(a, task, setting), over_runs(b, task, setting)
            for name in first:
                skipped = unlike and name in CONTEXTUAL
                if name in second and is_compared(name) and not skipped:
                    yield task, setting, first[name], second[name]


def sides_differ(a: Run, b: Run) -> bool:
    """Returns whether only one of the models sees what is right of the blank."""
    return [run.results["model"]["kind"] for run in (a, b)].count("causal") == 1


def is_compared(measure: str) -> bool:
    """Returns whether a measure is one of models, and no point of a curve."""
    return not measure.startswith(ABOUT_PEOPLE) and "=" not in measure


def over_runs(run: Run, task: str, setting: str) -> dict[str, Scores]:
    """Returns the scores of a setting by name; those of a shuffled one are means over its runs."""
    protocol = Protocol.from_json(run.results["protocol"])
    model = run.results["model"]
    of_runs: dict[str, list[Scores]] = {}
    for (name, _), part in sorted(run.predictions[task].items()):
        if name == setting:
            found = scores(run.stimuli[task], part, protocol, model["cased"], model["kind"])
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


def compare_scores(
    task: str, setting: str, a: Scores, b: Scores, *, seed: int, resamples: int
) -> Comparison:
    """Returns the comparison of one measure; its p-value is not adjusted yet."""
    items = common([a.items.tolist(), b.items.tolist()])
    first, second = at(a, items), at(b, items)
    rng = np.random.default_rng([seed, zlib.crc32(f"{task}/{setting}/{a.name}".encode())])
    difference = stats.paired_bootstrap(first, second, a.statistic, rng, resamples)
    verdicts = a.statistic == "proportion"
    return Comparison(
        task=task,
        setting=setting,
        measure=a.name,
        statistic=a.statistic,
        n=len(items),
        a=stats.point(first, a.statistic),
        b=stats.point(second, a.statistic),
        difference=difference.value,
        ci_low=difference.ci_low,
        ci_high=difference.ci_high,
        p=stats.mcnemar(first, second) if verdicts else difference.p,
        p_adjusted=math.nan,
        test="mcnemar" if verdicts else "bootstrap",
    )


def common(lists: Sequence[Sequence[str]]) -> list[str]:
    """Returns the items that are in all lists, in the order of the first."""
    shared = set(lists[0]).intersection(*lists[1:])
    return [item for item in lists[0] if item in shared]


def at(scores: Scores, items: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Returns the values of some items, in their order."""
    place: Mapping[str, int] = {item: i for i, item in enumerate(scores.items)}
    return scores.values[[place[item] for item in items]]
