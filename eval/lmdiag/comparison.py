"""Models on the same rows: differences, how certain they are, and which survive multiple testing.

A pair of runs is compared item by item: by rows for accuracy, by contrasts for sensitivity, by
pairs or contexts for agreement. Items that only one of the two could score count for neither. Of
several runs each is compared with the first.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lmdiag import diagnostics, stats
from lmdiag.evaluation import HUMAN_MEASURES, chosen_measures, scores
from lmdiag.measures import Scores, Statistic
from lmdiag.protocol import KNOBS
from lmdiag.results import FigureKey
from lmdiag.text import suggest
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from lmdiag.results import Run

CONTEXTUAL = ("ew", "mw")
"""Measures over contexts, which are others for a model that sees the left side alone."""
SAME_TEST = {"tse": "sensitivity", "prediction_accuracy": "suite_accuracy"}
"""Measure -> the measure with which it is equal by construction where both have the same items: all
verbs are single tokens; each suite has one prediction."""
PER_WORD = "surprisal_per_word"
"""Not compared between masked and causal models, for the reason `PSEUDO`."""
PSEUDO = "the pseudo-log-likelihood of a masked model is not the probability of a sentence"


@dataclass(frozen=True)
class Comparison:
    """One measure of two runs.

    Attributes:
        task, setting, measure: what was measured.
        by, level: break-down and its level, where a task is compared by levels; "" for the whole.
        statistic: see `lmdiag.measures.Statistic`.
        n: items that both could score; both values are over these.
        a, b: the values.
        difference: a - b, the first minus the second.
        ci_low, ci_high: 95% interval of the difference, which excludes 0 exactly where p < .05. NaN
            for fewer than eight items, for medians and correlations, and where a mean differs in no
            item or in all items by the same.
        p: of `test`; NaN where the two do not differ in any item.
        p_adjusted: by Holm's method, over the `n_tests` distinct tests of all measures and pairs of
            runs that were compared.
        test: "mcnemar" where each item is right or wrong, "sign-flip" for a mean over items,
            "permutation" for a median or a correlation; see `lmdiag.stats`. "none" where the two
            do not differ in any item.
        second: number of the run that the first one, number 0, is compared with.
        same_as: the measure that has the same numbers by construction, whose test this is; "" for a
            test of its own.
        n_tests: distinct tests over which p is adjusted.
    """

    task: str
    setting: str
    measure: str
    by: str
    level: str
    statistic: Statistic
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
    same_as: str = ""
    n_tests: int = 1


class Side(NamedTuple):
    """One model, as far as it is compared.

    Attributes:
        name: in messages.
        model: its name (`--name`), else its id.
        signature: see `lmdiag.results.signature`.
        kind: of the model.
        settings: (task, setting) of everything that was measured.
        scores: (task, setting) -> name -> scores; those of a shuffled setting are means.
    """

    name: str
    model: str
    signature: str
    kind: Kind
    settings: Sequence[tuple[str, str]]
    scores: Callable[[str, str], dict[str, Scores]]


class Pair(NamedTuple):
    """The figure of two models, item by item; see `Comparison`."""

    key: FigureKey
    a: Scores
    b: Scores
    second: int = 1


def compare_runs(
    *models: Run | Side,
    seed: int = 0,
    across: Sequence[str] = (),
    tasks: Sequence[str] = (),
    measures: Sequence[str] = (),
) -> list[Comparison]:
    """Returns a comparison of the first with each other one, for each measure that both have.

    The curves of EW and MW over cut-offs are left out, for they would enlarge the family to which
    the p-values are adjusted, and so are EW, MW and surprisal_per_word where only one model sees
    both sides. Which of two sentences a model prefers is compared in any case.

    Args:
        models: what is compared, two or more.
        seed: of random signs and permutations; each measure draws from a generator of its own.
        across: keys of `KNOBS` in which they may differ.
        tasks, measures: what to compare, before p-values are adjusted; all if empty. Names of
            measures are those of `chosen_measures`.

    Raises:
        BadInput: see `refuse_different`; or a task or measure is not among what can be compared.
    """
    first, *others = (model if isinstance(model, Side) else side_of(model) for model in models)
    for other in others:
        refuse_different(first, other, across)
    known = dict.fromkeys(task for task, _ in first.settings)
    for task in tasks:
        if task not in known:
            suggestion = suggest(task, known)
            raise BadInput(
                f"the runs have no task {task}{suggestion}: choose from {', '.join(known)}"
            )
    keys = []
    for task, setting in first.settings:
        if task not in (tasks or known):
            continue
        for name, whole in first.scores(task, setting).items():
            if "=" in name or name.startswith(HUMAN_MEASURES):  # a point of EW over cut-offs
                continue
            by = diagnostics.get(task).compared_by.get(name.partition("@")[0], "")
            levels = [(by, level) for level in whole.by.get(by, {})] or [("", "")]
            keys += [FigureKey(task, setting, name, *level) for level in levels]
    pairs = [
        pair
        for second, other in enumerate(others, start=1)
        for key in keys
        if (pair := pair_at(first, other, key, second))
    ]
    if measures:
        chosen = chosen_measures(measures, dict.fromkeys(pair.key.measure for pair in pairs))
        pairs = [pair for pair in pairs if pair.key.measure in chosen]
    return compare_pairs(pairs, seed=seed)


def compare_pairs(pairs: Sequence[Pair], *, seed: int) -> list[Comparison]:
    """Returns a comparison for each pair, p adjusted over the distinct tests of all of them."""
    numbers = {(pair.key, pair.second): i for i, pair in enumerate(pairs)}
    same = {}  # number of a pair -> number of the pair with the same numbers by construction
    comparisons = []
    for i, (key, first, second, number) in enumerate(pairs):
        twin = numbers.get((key._replace(measure=SAME_TEST.get(key.measure, "")), number), i)
        of_both = zip((first, second), pairs[twin][1:3], strict=True)
        if twin != i and all(np.array_equal(x.values, y.values) for x, y in of_both):
            same[i] = twin
        items, (a, b) = _on_common_items((first, second))
        statistic = first.statistic
        rng = _generator(key, seed)
        values = stats.point(a, statistic), stats.point(b, statistic)
        name, outcome = _paired_test(a, b, statistic, rng)
        test = "none" if np.array_equal(a, b) else name
        same_as = pairs[same[i]].key.measure if i in same else ""
        comparison = Comparison(
            *key, statistic, len(items), *values, values[0] - values[1], outcome.ci_low,
            outcome.ci_high, outcome.p, math.nan, test, number, same_as,
        )  # fmt: skip
        comparisons.append(comparison)
    p_values = [math.nan if i in same else x.p for i, x in enumerate(comparisons)]
    adjusted = stats.holm(p_values)
    n_tests = sum(not math.isnan(p) for p in p_values)
    return [
        replace(x, p_adjusted=adjusted[same.get(i, i)], n_tests=n_tests)
        for i, x in enumerate(comparisons)
    ]


def _paired_test(
    a: stats.Values, b: stats.Values, statistic: Statistic, rng: np.random.Generator
) -> tuple[str, stats.PairedTest]:
    """The test of a difference with its name and interval; medians and correlations have none."""
    if statistic == "proportion":
        return "mcnemar", stats.mcnemar(a, b)
    if statistic in ("share", "mean"):
        return "sign-flip", stats.sign_flip(a - b, rng)
    return "permutation", stats.PairedTest(stats.swap_test(a, b, statistic, rng))


def _generator(key: FigureKey, seed: int = 0) -> np.random.Generator:
    """The random generator of a figure, the same for all pairs of models."""
    return np.random.default_rng([seed, zlib.crc32("/".join(filter(None, key)).encode())])


def refuse_different(a: Side, b: Side, across: Sequence[str] = ()) -> None:
    """Refuses two models whose signatures differ, but for the knobs `across`, keys of `KNOBS`.

    `BadInput` names the parts that differ, or a name in `across` that is not a knob.
    """
    across = [across] if isinstance(across, str) else across
    for name in across:
        if name not in KNOBS:
            raise BadInput(f"across {name!r}{suggest(name, KNOBS)}: choose from {', '.join(KNOBS)}")
    parts = differing(a.signature, b.signature, {})
    option_of = {knob.key: option for option, knob in KNOBS.items()}
    remedy = "use the same data and options for both"
    if parts.keys() <= option_of.keys():
        remedy += f", or compare them with --across {','.join(option_of[key] for key in parts)}"
    if refused := [text for key, text in parts.items() if option_of.get(key) not in across]:
        raise BadInput(
            f"{a.name} and {b.name} cannot be compared: their signatures differ in "
            f"{'; '.join(refused)}; {remedy}"
        )


def differing(first: str, second: str, missing: Mapping[str, str]) -> dict[str, str]:
    """Returns the parts in which two signatures differ, each as text with both values.

    A value that a signature does not have is that of `missing`, else "-".

    >>> differing("data:1a2b3c4d|k:1,5", "data:1a2b3c4d|k:1,5|bos:never", {})
    {'bos': 'bos (- and never)'}
    """
    parts = ([part.partition(":")[::2] for part in x.split("|")] for x in (first, second))
    a, b = map(dict, parts)
    return {
        key: f"{key} ({' and '.join(x.get(key, missing.get(key, '-')) for x in (a, b))})"
        for key in a | b
        if a.get(key) != b.get(key)
    }


def side_of(run: Run) -> Side:
    """Returns a finished run as it is compared."""
    results = run.results
    model = run.results.model
    settings = [(task, setting) for task, parts in results.tasks.items() for setting in parts]

    @cache
    def averaged(task: str, setting: str) -> dict[str, Scores]:
        shuffles = [
            scores(run.stimuli[task], part, results.protocol, model.cased, model.kind)
            for (name, _), part in sorted(run.predictions[task].items())
            if name == setting
        ]
        if len(shuffles) < 2:
            return shuffles[0] if shuffles else {}
        means = {}
        for name, first in shuffles[0].items():
            items, values = _on_common_items([of[name] for of in shuffles if name in of])
            statistic = "share" if first.statistic == "proportion" else first.statistic
            array = np.array(items, dtype=object)
            means[name] = Scores(name, array, np.mean(values, axis=0), statistic)
        return means

    path = str(run.path)
    name = model.name or model.id
    return Side(path, name, results.signature, model.kind, settings, averaged)


def pair_at(a: Side, b: Side, key: FigureKey, second: int = 1) -> Pair | None:
    """Returns both sides' scores of a figure; None where they cannot be compared."""
    task, setting, measure, by, level = key
    sides_differ = (a.kind, b.kind).count("causal") == 1
    if sides_differ and measure.partition("@")[0] in (*CONTEXTUAL, PER_WORD):
        return None
    wholes = [side.scores(task, setting).get(measure) for side in (a, b)]
    parts = [whole.by.get(by, {}).get(level) if whole and by else whole for whole in wholes]
    first, other = (part if part and len(part.items) else None for part in parts)
    return Pair(key, first, other, second) if first and other else None


def unlike_first(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs that see another side of a word than the first one, which is causal or not.

    What they give for a context or a whole sentence is not compared.
    """
    is_causal = runs[0].results.model.kind == "causal"
    return [run for run in runs if (run.results.model.kind == "causal") != is_causal]


def not_compared(runs: Sequence[Run]) -> list[str]:
    """Returns a line for each measure that some runs cannot be compared in with the first one."""
    first = runs[0].results
    unlike = unlike_first(runs)
    names = [run.results.model.name or run.results.model.id for run in (runs[0], *unlike)]
    if len({*names}) < len(names):
        names = [str(run.path) for run in (runs[0], *unlike)]
    pair = f"{names[0]} and {', '.join(names[1:])}"
    lines = {
        f"{' and '.join(CONTEXTUAL)} of {pair}: only one of the models sees what is right of the "
        "blank": any(diagnostics.get(task).has_verbs for task in first.tasks),
        f"{PER_WORD} of {pair}: {PSEUDO}": any(
            first.measure(task, "none", PER_WORD) for task in first.tasks
        ),
    }
    return [line for line, applies in lines.items() if unlike and applies]


def _on_common_items(several: Sequence[Scores]) -> tuple[list[str], list[stats.Values]]:
    """The items that all have, in the order of the first, and the values of each on them."""
    first = several[0]
    if all(np.array_equal(part.items, first.items) for part in several):
        return list(first.items), [part.values for part in several]
    positions = [{item: i for i, item in enumerate(part.items)} for part in several]
    items = [item for item in positions[0] if all(item in at for at in positions)]
    values = zip((part.values for part in several), positions, strict=True)
    return items, [of[[at[item] for item in items]] for of, at in values]


def compare_all(
    runs: Sequence[Run], keys: Collection[FigureKey]
) -> dict[FigureKey, dict[tuple[int, int], tuple[float, ...]]]:
    """Compares every two runs, with the numbers of `compare_runs` before p is adjusted.

    Args:
        runs: on the same rows.
        keys: of the figures; those that not all runs have are left out.

    Returns:
        for each figure, numbers of two runs -> difference, first minus second; lower and upper end
        of its 95% interval; p. Pairs that cannot be compared are left out.
    """
    sides = [*map(side_of, runs)]
    numbers = [*permutations(range(len(runs)), 2)]
    compared = {}
    for key in keys:
        if any((key.task, key.setting) not in side.settings for side in sides):
            continue
        pairs = {(i, j): x for i, j in numbers if (x := pair_at(sides[i], sides[j], key))}
        results = _with_shared_draws(pairs)
        of_counts: dict[tuple[int, ...], tuple[float, ...]] = {}
        for pair in [pair for pair in pairs if pair not in results]:
            counts: tuple[int, ...] = pair
            if pairs[pair].a.statistic == "proportion":  # only items, wins and losses count
                items, (a, b) = _on_common_items(pairs[pair][1:3])
                counts = len(items), int((a > b).sum()), int((a < b).sum())
            if counts not in of_counts:
                (only,) = compare_pairs([pairs[pair]], seed=0)
                of_counts[counts] = only.difference, only.ci_low, only.ci_high, only.p
            results[pair] = of_counts[counts]
        compared[key] = results
    return compared


def _with_shared_draws(
    pairs: Mapping[tuple[int, int], Pair],
) -> dict[tuple[int, int], tuple[float, ...]]:
    """The results of `compare_all` for means over the same items, if they need random draws.

    Sums of items with random signs are linear: those of the values of a run are computed once for
    all its pairs.
    """
    with_items: dict[tuple[str, ...], dict[int, Pair]] = {}
    for i, pair in {i: pair for (i, _), pair in pairs.items()}.items():
        if pair.a.statistic in ("share", "mean") and len(pair.a.items) > stats.MOST_EXACT:
            with_items.setdefault(tuple(pair.a.items), {})[i] = pair
    results: dict[tuple[int, int], tuple[float, ...]] = {}
    for of_items in with_items.values():
        values = np.column_stack([pair.a.values for pair in of_items.values()])
        rng = _generator(next(iter(of_items.values())).key)
        sums = stats.random_flips(np.column_stack([values, np.ones(len(values))]), rng)
        for (a, i), (b, j) in permutations(enumerate(of_items), 2):
            d = values[:, a] - values[:, b]
            if (i, j) in pairs and d.any():
                of_pair = np.column_stack([sums[:, a] - sums[:, b], sums[:, -1]])
                outcome = stats.flip_test(of_pair, d)
                difference = float(d.mean())
                results[i, j] = difference, outcome.ci_low, outcome.ci_high, outcome.p
    return results
