"""Models on the same rows: differences, how certain they are, and which survive multiple testing.

A pair of runs is compared item by item: by rows for accuracy, by contrasts for sensitivity, by
pairs or contexts for agreement. Items that only one of the two could score count for neither. Of
several runs each is compared with the first.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from lmdiag import diagnostics, stats
from lmdiag.diagnostics import CHOICE_HEADLINES, Diagnostic, FigureSelection
from lmdiag.evaluation import chosen_measures
from lmdiag.measures import Scores, Statistic
from lmdiag.measures.scores import objects
from lmdiag.perturb import NONE
from lmdiag.protocol import KNOBS, QueryOptions
from lmdiag.results import FigureKey, Results
from lmdiag.results.figures import in_patterns
from lmdiag.results.models import model_label, model_labels
from lmdiag.results.scores import HUMAN_MEASURES, MeasureScores, is_curve_point, on_common_items
from lmdiag.text import shortened, suggest
from lmdiag.types import BadInput

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

    @property
    def key(self) -> FigureKey:
        """The address of the figure, by the names of the first run."""
        return FigureKey(self.task, self.setting, self.measure, self.by, self.level)


class ComparedModel(Protocol):
    """What is compared: a finished run, or the measures of predictions."""

    @property
    def results(self) -> Results:
        """Its figures and facts."""

    @property
    def contents(self) -> Mapping[str, str]:
        """Task -> what its rows are under any name of the task."""

    def mean_scores(self, task: str, setting: str) -> MeasureScores:
        """Returns measure -> its per-item scores in a setting, means over its shuffles."""


class ScoredPair(NamedTuple):
    """The scores of two models behind a figure; see `Comparison`."""

    key: FigureKey
    a: Scores
    b: Scores
    second: int = 1


def compare_runs(
    *models: ComparedModel,
    seed: int = 0,
    across: Sequence[str] = (),
    tasks: Sequence[str] = (),
    measures: Sequence[str] = (),
) -> list[Comparison]:
    """Returns a comparison of the first with each other one, for each figure that both have.

    The figures are the headline figures of the tasks, unperturbed, unless measures are named. The
    curves of EW and MW over cut-offs are left out, for they would enlarge the family to which the
    p-values are adjusted, and so are EW, MW and surprisal_per_word where only one model sees both
    sides. Which of two sentences a model prefers is compared in any case.

    Args:
        models: what is compared, two or more.
        seed: of random signs and permutations; each measure draws from a generator of its own.
        across: keys of `KNOBS` in which they may differ.
        tasks: what to compare, by the names of the first model; all if empty.
        measures: what to compare in all settings, before p-values are adjusted; the headline
            figures if empty. Names are those of `chosen_measures`, or "all".

    Raises:
        BadInput: see `refuse_different`; or a task or measure is not among what can be compared.
    """
    first, *others = models
    refuse_different(models, across)
    of_tasks = first.results.tasks
    for task in tasks:
        if task not in of_tasks:
            choices = f"{suggest(task, of_tasks)}: choose from {', '.join(of_tasks)}"
            raise BadInput(f"the runs have no task {task}{choices}")
    family = _all_figures if measures else _headlines
    keys = [
        FigureKey(task, setting, *address)
        for task in of_tasks
        for setting in (of_tasks[task] if measures or NONE not in of_tasks[task] else [NONE])
        for address in family(first.results.diagnostic(task), first.mean_scores(task, setting))
        if task in (tasks or of_tasks)
    ]
    pairs = [
        pair
        for second, other in enumerate(others, start=1)
        for key in keys
        if (pair := scored_pair(first, other, key, second))
    ]
    if measures and "all" not in measures:
        chosen = chosen_measures(measures, dict.fromkeys(pair.key.measure for pair in pairs))
        pairs = [pair for pair in pairs if pair.key.measure in chosen]
    return compare_pairs(pairs, seed=seed)


def _headlines(diagnostic: Diagnostic, scores: MeasureScores) -> list[tuple[str, str, str]]:
    """Measure, break-down and level of the figures that a report shows first."""
    declared = _selected(diagnostic.headlines, scores)
    usual = _selected(diagnostics.get("").headlines, scores)
    return (declared or usual) + _selected(CHOICE_HEADLINES, scores)


def _selected(
    selections: Sequence[FigureSelection], scores: MeasureScores
) -> list[tuple[str, str, str]]:
    """Measure, break-down and level of selected figures."""
    return [
        (name, selection.by, level)
        for selection in selections
        for name in in_patterns(scores, selection.measures)
        for level in selection.levels or scores[name].levels_of(selection.by)
        if level in scores[name].levels_of(selection.by)
    ]


def _all_figures(diagnostic: Diagnostic, scores: MeasureScores) -> list[tuple[str, str, str]]:
    """Measure, break-down and level of all figures that can be compared."""
    addresses = []
    for name, measure in scores.items():
        by = diagnostic.compared_by.get(name.partition("@")[0], "")
        by = by if by in measure.levels else ""
        if not (is_curve_point(name) or name.startswith(HUMAN_MEASURES)):
            addresses += [(name, by, level) for level in measure.levels_of(by)]
    return addresses


def compare_pairs(pairs: Sequence[ScoredPair], *, seed: int) -> list[Comparison]:
    """Returns a comparison for each pair, p adjusted over the distinct tests of all of them."""
    same = _same_by_construction(pairs)
    comparisons = []
    for number, pair in enumerate(pairs):
        items, (a, b) = on_common_items((pair.a, pair.b))
        statistic = pair.a.statistic
        values = stats.point(a, statistic), stats.point(b, statistic)
        test, outcome = _paired_test(a, b, statistic, _generator(pair.key, seed))
        comparison = Comparison(
            *pair.key, statistic, len(items), *values, values[0] - values[1], outcome.ci_low,
            outcome.ci_high, outcome.p, math.nan, "none" if np.array_equal(a, b) else test,
            pair.second, pairs[same[number]].key.measure if number in same else "",
        )  # fmt: skip
        comparisons.append(comparison)
    p_values = [math.nan if i in same else x.p for i, x in enumerate(comparisons)]
    adjusted = stats.holm(p_values)
    n_tests = sum(not math.isnan(p) for p in p_values)
    return [
        replace(comparison, p_adjusted=adjusted[same.get(number, number)], n_tests=n_tests)
        for number, comparison in enumerate(comparisons)
    ]


def _same_by_construction(pairs: Sequence[ScoredPair]) -> dict[int, int]:
    """Position of a pair -> position of the pair of another measure with the same numbers."""
    positions = {(pair.key, pair.second): i for i, pair in enumerate(pairs)}
    repeated = {}
    for number, pair in enumerate(pairs):
        key = pair.key._replace(measure=SAME_TEST.get(pair.key.measure, ""))
        other = positions.get((key, pair.second))
        if other is not None and all(
            np.array_equal(scores.values, others.values)
            for scores, others in ((pair.a, pairs[other].a), (pair.b, pairs[other].b))
        ):
            repeated[number] = other
    return repeated


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


def refuse_different(models: Sequence[ComparedModel], across: Sequence[str] = ()) -> None:
    """Refuses models whose signature differs from the first one's, but for the knobs `across`.

    Args:
        models: what is compared.
        across: keys of `KNOBS`.

    Raises:
        BadInput: signatures differ (the parts are named), or a name in `across` is not a knob.
    """
    across = [across] if isinstance(across, str) else across
    for name in across:
        if name not in KNOBS:
            raise BadInput(f"across {name!r}{suggest(name, KNOBS)}: choose from {', '.join(KNOBS)}")
    option_of = {knob.key: option for option, knob in KNOBS.items()}
    first, *others = models
    for number, other in enumerate(others, start=2):
        parts = differing(first.results, other.results)
        if "data" in parts and {*first.contents.values()} == {*other.contents.values()}:
            del parts["data"]
        remedy = "use the same data and options for both"
        if parts.keys() <= option_of.keys():
            remedy += f", or compare them with --across {','.join(option_of[x] for x in parts)}"
        if refused := [text for key, text in parts.items() if option_of.get(key) not in across]:
            raise BadInput(
                f"{_name_of(first, 1)} and {_name_of(other, number)} cannot be compared: their "
                f"signatures differ in {'; '.join(refused)}; {remedy}"
            )


def _name_of(model: ComparedModel, number: int) -> str:
    """What messages call a run, or the measures that were given in this place."""
    path = getattr(model, "path", None)
    return str(path) if path else f"number {number} ({model_label(model.results.model)})"


def differing(a: Results, b: Results) -> dict[str, str]:
    """Returns key -> text with both values, of the parts in which two signatures differ."""
    lines = [x.signature.split("|") for x in (a, b)]
    first, second = (dict(part.partition(":")[::2] for part in line) for line in lines)
    parts = {
        key: f"{key} ({first.get(key, '-')} and {second.get(key, '-')})"
        for key in first | second
        if first.get(key) != second.get(key)
    }
    knobs = differing_knobs(a.protocol, b.protocol)
    return {key: knobs.get(key, text) for key, text in parts.items()}


def differing_knobs(first: QueryOptions, second: QueryOptions) -> dict[str, str]:
    """Returns key -> text with both values, in words, of the knobs that two protocols differ in.

    >>> differing_knobs(QueryOptions(), QueryOptions(chat=True, prompt="<s>{context}"))
    {'prompt': 'prompt (none and chat template)'}
    """
    texts = {}
    for option, knob in KNOBS.items():
        if getattr(first, knob.name) != getattr(second, knob.name):
            choices = dict.fromkeys(shortened(knob.words(asked), 60) for asked in (first, second))
            alike = "each its own " * (len(choices) == 1)
            texts[knob.key] = f"{option} ({alike}{' and '.join(choices)})"
    return texts


def scored_pair(
    a: ComparedModel, b: ComparedModel, key: FigureKey, second: int = 1
) -> ScoredPair | None:
    """Returns the scores of both models behind a figure; None where they cannot be compared.

    The names of `key` are those of the first model; the second one may call the same data by
    another name.
    """
    kinds = [model.results.model.kind for model in (a, b)]
    unlike = (*CONTEXTUAL, PER_WORD, "slor")
    if kinds.count("causal") == 1 and key.measure.partition("@")[0] in unlike:
        return None
    other_task = _name_of_data(b, key.task, a)
    if key.setting not in b.results.tasks.get(other_task, {}):
        return None
    found = []
    for model, task in ((a, key.task), (b, other_task)):
        scores = model.mean_scores(task, key.setting).get(key.measure)
        found.append(scores.at(key.by, key.level) if scores else None)
    first, other = found
    if not (first and other and len(first.items) and len(other.items)):
        return None
    if _fingerprint(a, key.task) != _fingerprint(b, other_task):  # ids begin with the task
        start = f"{other_task}-"
        items = [
            x.replace(start, f"{key.task}-", 1) if x.startswith(start) else x for x in other.items
        ]
        other = replace(other, items=objects(items))
    return ScoredPair(key, first, other, second)


def _fingerprint(model: ComparedModel, task: str) -> str:
    return model.results.data.tasks[task].fingerprint


def _name_of_data(model: ComparedModel, task: str, first: ComparedModel) -> str:
    """The name that a model has for the data of a task of the first model."""
    tasks = model.results.tasks
    names = [name for name in tasks if _fingerprint(model, name) == _fingerprint(first, task)]
    if not names and task not in tasks:
        names = [name for name, rows in model.contents.items() if rows == first.contents[task]]
    return task if task in names or not names else names[0]


def unlike_first(runs: Sequence[Run]) -> list[int]:
    """Returns the positions of runs that see another side of a word than the first one.

    One is causal and the other is not: what they give for a context or a whole sentence is not
    compared.
    """
    is_causal = [run.results.model.kind == "causal" for run in runs]
    return [number for number, causal in enumerate(is_causal) if causal != is_causal[0]]


def not_compared(runs: Sequence[Run]) -> list[str]:
    """Returns a line for each measure that some runs cannot be compared in with the first one."""
    first = runs[0].results
    unlike = unlike_first(runs)
    labels = model_labels([run.results.model for run in runs])
    pair = f"{labels[0]} and {', '.join(labels[number] for number in unlike)}"
    lines = {
        f"{' and '.join(CONTEXTUAL)} of {pair}: only one of the models sees what is right of the "
        "blank": any(first.diagnostic(task).has_verbs for task in first.tasks),
        f"{PER_WORD} of {pair}: {PSEUDO}": any(
            first.measure(task, "none", PER_WORD) for task in first.tasks
        ),
    }
    return [line for line, applies in lines.items() if unlike and applies]


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
    numbers = [*permutations(range(len(runs)), 2)]
    compared = {}
    for key in keys:
        if any(key.setting not in run.results.tasks.get(key.task, ()) for run in runs):
            continue
        pairs = {(i, j): x for i, j in numbers if (x := scored_pair(runs[i], runs[j], key))}
        compared[key] = _with_shared_draws(pairs)
        for pair in [pair for pair in pairs if pair not in compared[key]]:
            (only,) = compare_pairs([pairs[pair]], seed=0)
            compared[key][pair] = only.difference, only.ci_low, only.ci_high, only.p
    return compared


def _with_shared_draws(
    pairs: Mapping[tuple[int, int], ScoredPair],
) -> dict[tuple[int, int], tuple[float, ...]]:
    """The results of `compare_all` for means over the same items, if they need random draws.

    Sums of items with random signs are linear: those of the values of a run are computed once for
    all its pairs.
    """
    with_items: dict[tuple[str, ...], dict[int, ScoredPair]] = {}
    for i, pair in {i: pair for (i, _), pair in pairs.items()}.items():
        if pair.a.statistic in ("share", "mean") and len(pair.a.items) > stats.MOST_EXACT:
            with_items.setdefault(tuple(pair.a.items), {})[i] = pair
    results: dict[tuple[int, int], tuple[float, ...]] = {}
    for pair_of_run in with_items.values():
        values = np.column_stack([pair.a.values for pair in pair_of_run.values()])
        rng = _generator(next(iter(pair_of_run.values())).key)
        sums = stats.random_flips(np.column_stack([values, np.ones(len(values))]), rng)
        for (a, i), (b, j) in permutations(enumerate(pair_of_run), 2):
            d = values[:, a] - values[:, b]
            if (i, j) in pairs and d.any():
                pair_sums = np.column_stack([sums[:, a] - sums[:, b], sums[:, -1]])
                outcome = stats.flip_test(pair_sums, d)
                difference = float(d.mean())
                results[i, j] = difference, outcome.ci_low, outcome.ci_high, outcome.p
    return results
