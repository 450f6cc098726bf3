"""Differences between models on the same rows, with intervals, tests and adjusted p-values.

A pair of runs is compared item by item: by rows for accuracy, by contrasts for sensitivity, by
pairs or contexts for agreement. Items that only one of the two could score count for neither. Of
several runs the first is the base, and each of the others is new: differences are new minus base.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic_core import to_jsonable_python

from lmdiag import diagnostics, stats
from lmdiag.asking.protocol import KNOBS, QueryOptions
from lmdiag.diagnostics import CHOICE_HEADLINES, Diagnostic, FigureSelection
from lmdiag.measures import (
    MeasureName,
    Scores,
    Statistic,
    is_human,
    is_pooled,
    measures_of,
    shown_as,
)
from lmdiag.measures.scores import object_array
from lmdiag.presentable import Presentable
from lmdiag.results import FigureKey, Results, comparable_part
from lmdiag.results.evaluation import select_measures
from lmdiag.results.figures import matching_names
from lmdiag.results.item_scores import MeasureScores, on_common_items
from lmdiag.results.model_labels import model_label, model_labels
from lmdiag.stimuli.perturbations import NONE
from lmdiag.text import decimals, shortened, suggest, visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.results import Run

SAME_TEST = {"tse": "sensitivity", "prediction_accuracy": "suite_accuracy"}
"""Measure -> the measure with which it is equal by construction where both have the same items: all
verbs are single tokens; each suite has one prediction."""


ALPHA = 0.05
"""A test whose p is below this rejects."""

IN_PERCENT = ("proportion", "share")
"""Statistics of figures in percent."""

Verdict = Literal["higher", "lower", "not distinguishable"]


@dataclass(frozen=True)
class Comparison:
    """One measure of two runs.

    Attributes:
        task, setting, measure, by, level: see `FigureKey`, by the names of the base run.
        statistic: see `lmdiag.measures.Statistic`.
        n: items that both could score and that are tied in neither; both values are over these.
            Where there are none, all numbers are NaN.
        base, new, difference: the values of the two runs, and the new minus the base.
        ci_low, ci_high: 95% interval of the difference, which excludes 0 exactly where p < .05. NaN
            for fewer than eight items, for medians and correlations, and where a mean differs in no
            item or in all items by the same.
        p: of `test`; NaN where the two do not differ in any item.
        p_adjusted, n_tests: by Holm's method, over the distinct tests of all measures and pairs of
            runs that were compared, and their number.
        test: "mcnemar" where each item is right or wrong, "sign-flip" for a mean over items,
            "permutation" for a median or a correlation; see `lmdiag.stats`. "none" where the two
            do not differ in any item, or there are none.
        number: of the new run; that of the base is 0.
        same_as: the measure that has the same numbers by construction, whose test this is.
        n_tied: items that both could score and that are tied in one of the two, which are not in n.
    """

    task: str
    setting: str
    measure: str
    by: str
    level: str
    statistic: Statistic
    n: int
    base: float
    new: float
    difference: float
    ci_low: float
    ci_high: float
    p: float
    p_adjusted: float
    test: str
    number: int = 1
    same_as: str = ""
    n_tests: int = 1
    n_tied: int = 0

    @property
    def key(self) -> FigureKey:
        """The address of the figure, by the names of the base run."""
        return FigureKey(self.task, self.setting, self.measure, self.by, self.level)

    @property
    def label(self) -> str:
        """What was compared, in words: the label of a headline figure, or measure and level.

        For example "accuracy@5" or "sensitivity, simple".
        """
        diagnostic = diagnostics.get(self.task)
        for headline in diagnostic.headlines:
            is_same = self.by == headline.by and self.level in headline.levels
            if headline.label and is_same and self.measure in headline.measures:
                return visible(headline.label)
        level = diagnostic.level_label(self.by, self.level) if self.by else ""
        return visible(", ".join(filter(None, (MeasureName.of(self.measure).label, level))))

    @property
    def verdict(self) -> Verdict | None:
        """What the adjusted p says of the new run; None where nothing was tested."""
        if math.isnan(self.p_adjusted):
            return None
        if self.p_adjusted >= ALPHA:
            return "not distinguishable"
        return "higher" if self.difference > 0 else "lower"

    def is_loss(self, points: float | None = None) -> bool:
        """Returns whether the figure is in percent and lower in the new run.

        Args:
            points: percentage points by more than which it has to be lower; None if the adjusted p
                has to be below .05.
        """
        if self.statistic not in IN_PERCENT:
            return False
        if points is None:
            return self.verdict == "lower"
        return -100 * self.difference > points + 1e-9  # 100 * (.8 - .7) is a little more than 10


class Comparisons(Presentable, list[Comparison]):
    """Comparisons of a model with others, one a measure and other model.

    Attributes:
        runs: of the models; the others are compared with the first one.
        names: of the models.
        signatures: parallel; see `lmdiag.results.signature`.
        across: keys of `KNOBS` in which the runs may differ.
        seed: of the tests.
        points: percentage points by more than which a figure that is lower is a loss; None where
            its adjusted p says so.
    """

    points: float | None = None

    def __init__(
        self,
        rows: Sequence[Comparison],
        runs: Sequence[Run],
        across: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        """Makes a list of `rows`, the comparisons of some runs; see the class for the arguments."""
        super().__init__(rows)
        self.runs = runs
        self.across = across
        self.seed = seed
        models = [run.results.model for run in runs]
        protocols = [run.results.protocol for run in runs]
        self.names = model_labels(models, protocols)
        self.signatures = [run.results.signature for run in runs]

    def __repr__(self) -> str:
        reference, *others = self.names
        return f"<{len(self)} comparisons of {reference} with {', '.join(others)}>"

    def losses(self, points: float | None = None) -> list[str]:
        """Returns a line for each figure in percent that is lower in a new run than in the base.

        Args:
            points: percentage points by more than which it is lower; None for those whose adjusted
                p is below .05.

        Raises:
            BadInput: points are not a number from 0 to 100, or no figure is in percent.
        """
        if points is not None and not 0 <= points <= 100:
            raise BadInput(f"a loss of {points:g} points: give a number from 0 to 100")
        if all(row.statistic not in IN_PERCENT for row in self):
            raise BadInput("no figure in percent is compared, so that none can be a loss")
        lines = []
        for row in self:
            if not row.is_loss(points):
                continue
            figure = f"{row.measure} of {row.task}"
            if row.level:
                diagnostic = self.runs[0].results.diagnostic(row.task)
                figure += f" ({diagnostic.level_label(row.by, row.level)})"
            values = f"{decimals(100 * row.base, 1)} to {decimals(100 * row.new, 1)}"
            model = self.names[row.number]
            lines.append(f"{figure}: {values} ({model}), adjusted p = {row.p_adjusted:.3g}")
        return lines

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per comparison.

        `base_model` and `new_model` name the models, `base` and `new` are their figures.
        Undefined is NaN; the other columns are those of `Comparison`.
        """
        from pandas import DataFrame

        records = []
        for row in self:
            names = {"base_model": self.names[0], "new_model": self.names[row.number]}
            records.append(names | asdict(row) | {"label": row.label, "verdict": row.verdict})
        frame = DataFrame(records)
        return frame.drop(columns="number", errors="ignore")  # without rows, there are no columns

    def to_json(self) -> dict[str, Any]:
        """Returns what `lmdiag compare --json` prints; undefined numbers are None."""
        fact_names = ("commit", "dtype", "quantization", "server")
        models = []
        for name, run in zip(self.names, self.runs, strict=True):
            model = run.results.model
            model_facts = {fact: getattr(model, fact) for fact in fact_names}
            model_facts = {fact: value for fact, value in model_facts.items() if value is not None}
            models.append({"name": name, "model": model.id} | model_facts)
        records = []
        for row in self:
            fields = asdict(row)
            new_model = self.names[fields.pop("number")]
            names = {"base_model": self.names[0], "new_model": new_model, "label": row.label}
            judgement = {"verdict": row.verdict, "loss": row.is_loss(self.points)}
            records.append(names | fields | judgement)
        document: dict[str, Any] = {"signature": self.signatures[0], "models": models}
        if self.across:
            document |= {"across": self.across, "signatures": self.signatures}
        document |= {"seed": self.seed, "direction": "new minus base", "comparisons": records}
        plain: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")
        return plain


class ScoredPair(NamedTuple):
    """The scores of two models behind a figure, without items that are tied.

    Attributes:
        key: the figure, by the names of the base run.
        base, new: scores of items; items that one of the models could not score may differ.
        number, n_tied: see `Comparison`.
    """

    key: FigureKey
    base: Scores
    new: Scores
    number: int = 1
    n_tied: int = 0


def compare_runs(
    *runs: Run,
    seed: int = 0,
    across: Sequence[str] = (),
    tasks: Sequence[str] = (),
    measures: Sequence[str] = (),
) -> list[Comparison]:
    """Returns a comparison of the first with each other one, for each figure that both have.

    The first run is the base of all comparisons.

    The figures are the headline figures of the tasks, unperturbed, unless measures are named. The
    curves of EW and MW over cut-offs are left out, for they would enlarge the family to which the
    p-values are adjusted, and so are EW, MW and surprisal_per_word where only one model sees both
    sides. Which of two sentences a model prefers is compared in any case.

    Args:
        runs: what is compared, two or more.
        seed: of random signs and permutations; each measure draws from a generator of its own.
        across: keys of `KNOBS` in which they may differ.
        tasks: what to compare, by the names of the first run; all if empty.
        measures: what to compare in all settings, before p-values are adjusted; the headline
            figures if empty. Names are those of `select_measures`, or "all".

    Raises:
        BadInput: see `refuse_different`; or a task or measure is not among what can be compared.
    """
    reference, *new_runs = runs
    refuse_different(runs, across)
    available_tasks = reference.results.tasks
    for task in tasks:
        if task not in available_tasks:
            choices = f"{suggest(task, available_tasks)}: choose from {', '.join(available_tasks)}"
            raise BadInput(f"the runs have no task {task}{choices}")
    keys: list[FigureKey] = []
    for task in available_tasks:
        if not tasks or task in tasks:
            keys += _compared_figures(reference, task, headlines_only=not measures)
    pairs = []
    for number, new_run in enumerate(new_runs, start=1):
        for key in keys:
            pair = _comparable_scores(reference, new_run, key, number)
            # a pair without common items is undefined, which is shown if a run has items at all
            if pair and (len(pair.base.items) or len(pair.new.items) or pair.n_tied):
                pairs.append(pair)
    # measures are chosen by the names that both runs have, and before p-values are adjusted
    if measures and "all" not in measures:
        available_measures = dict.fromkeys(pair.key.measure for pair in pairs)
        chosen = select_measures(measures, available_measures)
        pairs = [pair for pair in pairs if pair.key.measure in chosen]
    return compare_pairs(pairs, seed=seed)


def _compared_figures(run: Run, task: str, *, headlines_only: bool) -> Iterator[FigureKey]:
    """Yields the figures of a task of a run that are compared.

    They are the headline figures of unperturbed rows (of all settings if every row is perturbed),
    or with `headlines_only=False` all figures of all settings.
    """
    settings = run.results.tasks[task]
    if headlines_only and NONE in settings:
        settings = {NONE: settings[NONE]}
    diagnostic = run.results.diagnostic(task)
    for setting in settings:
        scores = run.mean_scores(task, setting)
        if headlines_only:
            figures = _headlines(diagnostic, scores)
        else:
            figures = _all_figures(diagnostic, scores)
        for figure in figures:
            yield FigureKey(task, setting, figure.measure, figure.by, figure.level)


class _MeasureLevel(NamedTuple):
    """A measure at a level of a break-down; `by` and `level` are "" for all items."""

    measure: str
    by: str = ""
    level: str = ""


def _headlines(diagnostic: Diagnostic, scores: MeasureScores) -> list[_MeasureLevel]:
    """The figures that a report shows first: those that the diagnostic names, or the usual ones.

    Those of choices between options are added, if the model was asked to choose. For example,
    [("sensitivity", "", "")] for the sensitivity over all items.

    Args:
        diagnostic: of the task.
        scores: measure -> scores of items, also by level.
    """
    declared = _selected_figures(diagnostic.headlines, scores)
    usual = _selected_figures(diagnostics.get("").headlines, scores)  # of own data
    return (declared or usual) + _selected_figures(CHOICE_HEADLINES, scores)


def _selected_figures(
    selections: Sequence[FigureSelection], scores: MeasureScores
) -> list[_MeasureLevel]:
    """The measures and levels that selections name, as far as there are scores.

    Args:
        selections: each names measures (`*` for any part of a name), a break-down ("" for none),
            and levels of it, () for all.
        scores: measure -> scores of items, also by level.
    """
    figures = []
    for selection in selections:
        if selection.unless in scores:  # the selected figures stand in for this measure
            continue
        for name in matching_names(scores, selection.measures):
            levels = scores[name].levels_of(selection.by)
            for level in selection.levels or levels:
                if level in levels:
                    figures.append(_MeasureLevel(name, selection.by, level))
    return figures


def _all_figures(diagnostic: Diagnostic, scores: MeasureScores) -> list[_MeasureLevel]:
    """The figures of all measures that can be compared.

    A measure that `diagnostic.compared_by` selects is compared at the levels that are selected, all
    others over all items. Left out are points of curves over cut-offs ("mw@top=0.1"), measures of
    people, and measures in place of which another one is shown.

    Args:
        diagnostic: of the task.
        scores: measure -> scores of items, also by level.
    """
    levels_of: dict[str, list[_MeasureLevel]] = {}
    for figure in _selected_figures(diagnostic.compared_by, scores):
        levels_of.setdefault(figure.measure, []).append(figure)
    figures = []
    for name in scores:
        is_left_out = MeasureName.of(name).is_curve_point or is_human(name) or shown_as(name)
        if not is_left_out:
            figures += levels_of.get(name, [_MeasureLevel(name)])
    return figures


def compare_pairs(pairs: Sequence[ScoredPair], *, seed: int) -> list[Comparison]:
    """Returns a comparison for each pair, in the same order.

    First each pair is tested, over the items that both models scored. Then the p-values are
    adjusted by Holm's method over the distinct tests of all pairs. If two measures are equal by
    construction, there is one test, and both comparisons have its p.

    Args:
        pairs: the scores of items of two models, for a figure each.
        seed: of random signs and permutations.
    """
    same_as = _same_by_construction(pairs)  # position of a pair -> of the pair with the same test
    comparisons = []
    for position, pair in enumerate(pairs):
        items, (base, new) = on_common_items((pair.base, pair.new))
        statistic = pair.base.statistic
        if not items:
            comparisons.append(_undefined_comparison(pair))
            continue
        base_value = stats.point(base, statistic)
        new_value = stats.point(new, statistic)
        test, outcome = _paired_test(base, new, statistic, _generator(pair.key, seed))
        comparisons.append(Comparison(
            *pair.key, statistic, n=len(items),
            base=base_value, new=new_value, difference=new_value - base_value,
            ci_low=outcome.ci_low, ci_high=outcome.ci_high, p=outcome.p, p_adjusted=math.nan,
            test="none" if np.array_equal(base, new) else test, number=pair.number,
            same_as=pairs[same_as[position]].key.measure if position in same_as else "",
            n_tied=pair.n_tied,
        ))  # fmt: skip
    # the same test under two names counts once in the family of tests: `holm` passes NaN over
    p_values = [math.nan if i in same_as else c.p for i, c in enumerate(comparisons)]
    p_adjusted = stats.holm(p_values)
    n_tests = sum(not math.isnan(p) for p in p_values)
    adjusted_comparisons = []
    for position, comparison in enumerate(comparisons):
        p = p_adjusted[same_as.get(position, position)]
        adjusted_comparisons.append(replace(comparison, p_adjusted=p, n_tests=n_tests))
    return adjusted_comparisons


def _undefined_comparison(pair: ScoredPair) -> Comparison:
    """The comparison of a figure for which no item is left, so that all its numbers are NaN.

    No item has scores of both models, or all that have are tied in one of them.
    """
    nan = math.nan
    return Comparison(
        *pair.key, pair.base.statistic, n=0, base=nan, new=nan, difference=nan,
        ci_low=nan, ci_high=nan, p=nan, p_adjusted=nan, test="none",
        number=pair.number, n_tied=pair.n_tied,
    )  # fmt: skip


def _same_by_construction(pairs: Sequence[ScoredPair]) -> dict[int, int]:
    """Position of a pair -> position of the pair of another measure whose test is the same.

    For example, {3: 1} if the pair 3 is of `tse` and the pair 1 of `sensitivity`, of the same two
    models with the same scores. Only measures of `SAME_TEST` can have such a pair. The same test
    counts once when p-values are adjusted.
    """
    positions = {(pair.key, pair.number): position for position, pair in enumerate(pairs)}
    same_as = {}
    for position, pair in enumerate(pairs):
        other_key = pair.key._replace(measure=SAME_TEST.get(pair.key.measure, ""))
        other_position = positions.get((other_key, pair.number))
        if other_position is None:
            continue
        other = pairs[other_position]
        has_same_base = np.array_equal(pair.base.values, other.base.values)
        has_same_new = np.array_equal(pair.new.values, other.new.values)
        if has_same_base and has_same_new:
            same_as[position] = other_position
    return same_as


def _paired_test(
    base: stats.Values, new: stats.Values, statistic: Statistic, rng: np.random.Generator
) -> tuple[str, stats.PairedTest]:
    """The name of the test of a difference, and its p and interval.

    Tests of medians and correlations have no interval (NaN).

    Args:
        base, new: scores of both models, (n items,).
        statistic: that summarises them.
        rng: for random signs and permutations.
    """
    if statistic == "proportion":
        return "mcnemar", stats.mcnemar(new, base)
    if statistic in stats.MEANS:
        return "sign-flip", stats.sign_flip(new - base, rng)
    return "permutation", stats.PairedTest(stats.swap_test(new, base, statistic, rng))


def _generator(key: FigureKey, seed: int = 0) -> np.random.Generator:
    """Returns the random generator of a figure, the same for all pairs of models.

    Its seed has a checksum of the figure's address, since Python's own hashes of texts differ
    between processes.
    """
    address = "/".join(filter(None, key))
    return np.random.default_rng([seed, zlib.crc32(address.encode())])


def refuse_different(runs: Sequence[Run], across: Sequence[str] = ()) -> None:
    """Raises `BadInput` if the figures of some runs cannot be compared with those of the first one.

    Args:
        runs: two or more. They must have equal data and signatures, but for the knobs `across`.
        across: keys of `KNOBS`; an unknown one is refused, too.
    """
    across = [across] if isinstance(across, str) else across  # Python's users may name a single one
    for name in across:
        if name not in KNOBS:
            raise BadInput(f"across {name!r}{suggest(name, KNOBS)}: choose from {', '.join(KNOBS)}")
    option_of = {knob.key: option for option, knob in KNOBS.items()}
    reference, *others = runs
    for number, other in enumerate(others, start=2):
        differences = signature_differences(reference.results, other.results)
        contents = {*reference.contents.values()}  # none of a run whose rows were not loaded
        if "data" in differences and contents and contents == {*other.contents.values()}:
            del differences["data"]  # the same rows under other names
        refused = [text for key, text in differences.items() if option_of.get(key) not in across]
        if refused:
            remedy = "use the same data and options for both"
            if differences.keys() <= option_of.keys():
                options = ",".join(option_of[key] for key in differences)
                remedy += f", or compare them with --across {options}"
            names = f"{_name_in_message(reference, 1)} and {_name_in_message(other, number)}"
            raise BadInput(
                f"{names} cannot be compared: their signatures differ in {'; '.join(refused)}; "
                f"{remedy}"
            )


def _name_in_message(run: Run, number: int) -> str:
    """Returns what a message calls a run: its directory, or its number and model.

    Measures that are not in a run directory have no path.
    """
    is_file = run.path != Path()
    return str(run.path) if is_file else f"number {number} ({model_label(run.results.model)})"


def signature_differences(a: Results, b: Results) -> dict[str, str]:
    """Returns key -> text with both values, for each key in which two signatures differ.

    For example, {"unit": "unit (token and word)", "data": "data (a1 and b2)"}. The text of a knob,
    an option of how models are asked, is in words. {} means that the figures of both can be
    compared. A model of word counts is not asked, so that the knobs of the other run make no
    difference.
    """
    values_a = _values_in_signature(a.signature)
    values_b = _values_in_signature(b.signature)
    knobs = differing_knobs(a.protocol, b.protocol)
    ignores_knobs = a.model.counts_words or b.model.counts_words
    texts = {}
    for key in values_a | values_b:
        value_a = values_a.get(key, "-")
        value_b = values_b.get(key, "-")
        if value_a != value_b and not (ignores_knobs and key in knobs):
            texts[key] = knobs.get(key, f"{key} ({value_a} and {value_b})")
    return texts


def _values_in_signature(signature: str) -> dict[str, str]:
    """Returns key -> value of a signature such as "key:value|key:value".

    Its last part, `model:`, says what answered and is left out.
    """
    values = {}
    for part in comparable_part(signature).split("|"):
        key, _, value = part.partition(":")
        values[key] = value
    return values


def differing_knobs(a: QueryOptions, b: QueryOptions) -> dict[str, str]:
    """Returns key -> text with both values, in words, of the knobs that two protocols differ in.

    The keys are those of signatures.

    >>> differing_knobs(QueryOptions(), QueryOptions(chat=True, prompt="<s>{context}"))
    {'prompt': 'prompt (none and chat template)'}
    >>> differing_knobs(QueryOptions(layer=0), QueryOptions())
    {'layer': 'layer (0 and last)'}
    """
    texts = {}
    for option, knob in KNOBS.items():
        if getattr(a, knob.name) != getattr(b, knob.name):
            # `words` of a knob in a model's name begin with the option, which the text has anyway
            in_words = knob.choice if knob.is_in_model_name else knob.words
            choice_a = shortened(in_words(a), 60)
            choice_b = shortened(in_words(b), 60)
            if choice_a == choice_b:  # long texts that differ after the end of what is shown
                texts[knob.key] = f"{option} (each its own {choice_a})"
            else:
                texts[knob.key] = f"{option} ({choice_a} and {choice_b})"
    return texts


def scored_pair(base: Run, new: Run, key: FigureKey) -> ScoredPair | None:
    """Returns the scores of items of which two runs have a figure; None if they are not comparable.

    They are not comparable if no item was scored by both models, or the measure is on another scale
    for one of them, or missing. The pair has all scores of each run: an item that only one of the
    models could score is in its scores alone.

    Args:
        base, new: runs on the same rows.
        key: the figure: task, setting, measure, break-down and level by the names of the base. The
            new run may call the same data by another name.
    """
    pair = _comparable_scores(base, new, key)
    if pair is None:
        return None
    common_items, _ = on_common_items((pair.base, pair.new))
    return pair if common_items else None


def _comparable_scores(base: Run, new: Run, key: FigureKey, number: int = 1) -> ScoredPair | None:
    """Returns the scores of two runs behind a figure, also if no item was scored by both models.

    Items that are tied in one of the runs are left out of both. None if the measure has no values
    of items, is on another scale in the other run, or is missing.

    Args:
        base, new: runs on the same rows.
        key: the figure, by the names of the base.
        number: of the new run among those that are compared; that of the base is 0.
    """
    needs_one_kind = _reason_for_one_kind(base.results, key) != ""
    if is_pooled(key.measure) or (needs_one_kind and runs_of_other_kind([base, new])):
        return None
    new_task = _name_of_data(new, key.task, base)
    base_measures = base.mean_scores(key.task, key.setting)
    new_measures = new.mean_scores(new_task, key.setting)
    if key.measure not in base_measures or key.measure not in new_measures:
        return None
    base_scores = base_measures[key.measure].at(key.by, key.level)
    new_scores = new_measures[key.measure].at(key.by, key.level)
    # equal rows with another fingerprint have other ids, since these begin with the task's name
    if _fingerprint(base, key.task) != _fingerprint(new, new_task):
        new_scores = _with_task_in_items(new_scores, new_task, key.task)
    # a tie counts as not right in a figure, but says nothing in a comparison of models
    tied_items = {*base_scores.tied_items, *new_scores.tied_items}
    n_tied = len(tied_items.intersection(base_scores.items).intersection(new_scores.items))
    if tied_items:
        base_scores = base_scores.without(tied_items)
        new_scores = new_scores.without(tied_items)
    return ScoredPair(key, base_scores, new_scores, number, n_tied)


def _with_task_in_items(scores: Scores, task: str, new_task: str) -> Scores:
    """Scores whose ids of items begin with the name of another task: "a-1" becomes "b-1".

    Two runs may call the same data by two names, with which the ids begin. Items are paired by
    their ids, so those of one run get the name in the other.

    Args:
        scores: of the items.
        task: with which the ids begin, "a".
        new_task: with which they are to begin, "b".
    """
    prefix = f"{task}-"
    items = []
    for item in scores.items:
        if item.startswith(prefix):
            item = f"{new_task}-{item.removeprefix(prefix)}"
        items.append(item)
    return replace(scores, items=object_array(items))


def _fingerprint(run: Run, task: str) -> str:
    """Returns the fingerprint of a task: a digest of its rows with their ids."""
    return run.results.data.tasks[task].fingerprint


def _name_of_data(run: Run, task: str, reference: Run) -> str:
    """Returns what a run calls the data of a task of the reference: `task`, or another name.

    Equal data can have several names, since data of a user are called by their file.
    """
    run_tasks = run.results.tasks
    fingerprint = _fingerprint(reference, task)
    names = [name for name in run_tasks if _fingerprint(run, name) == fingerprint]
    if not names and task not in run_tasks:
        # ids of rows are in the fingerprint, and begin with the task; contents are without them
        content = reference.contents[task]
        names = [name for name, run_content in run.contents.items() if run_content == content]
    if task in names or not names:
        return task
    return names[0]


def runs_of_other_kind(runs: Sequence[Run]) -> list[int]:
    """Returns the positions of runs whose models are causal if the first is not, or vice versa.

    A causal model reads left contexts, others both sides of a word. Their values for a context or a
    whole sentence are not compared.
    """
    is_causal = [run.results.model.kind == "causal" for run in runs]
    return [position for position, causal in enumerate(is_causal) if causal != is_causal[0]]


def not_compared(runs: Sequence[Run]) -> list[str]:
    """Returns lines that say which measures are not compared between runs of two kinds, and why.

    A line has all measures with the same reason, and the models; [] if all models are causal, or
    none is.
    """
    other_kind = runs_of_other_kind(runs)
    if not other_kind:
        return []
    reference = runs[0].results
    labels = model_labels([run.results.model for run in runs])
    models = f"{labels[0]} and {', '.join(labels[number] for number in other_kind)}"
    labels_of_reason: dict[str, dict[str, None]] = {}  # in order, each label once
    for key, _ in reference.figures():
        name = MeasureName.of(key.measure)
        reason = _reason_for_one_kind(reference, key)
        if reason and not name.is_curve_point and not shown_as(key.measure):
            labels_of_reason.setdefault(reason, {})[name.label.removesuffix(", bits")] = None
    return [
        f"{' and '.join(measures)} of {models}: {reason}"
        for reason, measures in labels_of_reason.items()
    ]


def _reason_for_one_kind(results: Results, key: FigureKey) -> str:
    """Returns why a measure is compared only between models of one kind; "" if it is not limited.

    See `Measure.one_kind`.
    """
    diagnostic = results.diagnostic(key.task)
    base = MeasureName.of(key.measure).base  # without a cut-off
    # measures are registered by the form of users' data, or by the name of a built-in diagnostic
    for measure in measures_of(diagnostic.form or diagnostic.name, diagnostic.asks):
        if base in measure.labels:
            return measure.one_kind
    return ""


class Outcome(NamedTuple):
    """The difference of two runs in a figure, its 95% interval, and p before it is adjusted."""

    difference: float
    ci_low: float
    ci_high: float
    p: float


def compare_all(
    runs: Sequence[Run], keys: Collection[FigureKey]
) -> dict[FigureKey, dict[tuple[int, int], Outcome]]:
    """Compares every two runs on the same rows in some figures, with the numbers of `compare_runs`.

    Returns:
        for each figure that all runs have, numbers of the base and the new run -> outcome of the
        new minus the base. Pairs that cannot be compared are left out.
    """
    outcomes = {}
    for key in keys:
        if any(key.setting not in run.results.tasks.get(key.task, ()) for run in runs):
            continue
        pairs = {}
        for i, j in permutations(range(len(runs)), 2):
            pair = scored_pair(runs[i], runs[j], key)
            if pair:
                pairs[i, j] = pair
        outcomes[key] = _outcomes_with_shared_draws(pairs)
        # the pairs that cannot share random draws are tested one by one
        for numbers, pair in pairs.items():
            if numbers not in outcomes[key]:
                [c] = compare_pairs([pair], seed=0)
                outcomes[key][numbers] = Outcome(c.difference, c.ci_low, c.ci_high, c.p)
    return outcomes


def _outcomes_with_shared_draws(
    pairs: Mapping[tuple[int, int], ScoredPair],
) -> dict[tuple[int, int], Outcome]:
    """Returns the outcomes of the pairs of a figure that are tested by random signs.

    Each draw gives every item a random sign and sums the signed values. The sum of the differences
    of two runs is the difference of their sums, so the sums of a run are computed once for all
    pairs of runs with the same items, instead of once for each pair.

    Args:
        pairs: (number of the base run, number of the new run) -> their scores of one figure; with
            (0, 1) also (1, 0), whose differences have the opposite sign.

    Returns:
        the same numbers of two runs -> outcome. Left out are pairs of other statistics than means,
        of two runs with different items or with ties, of so few items that the test is exact, and
        of runs that do not differ in any item.
    """
    # ids of items -> the pairs both of whose runs have scores of exactly these items
    pairs_on_items: dict[tuple[str, ...], dict[tuple[int, int], ScoredPair]] = {}
    for numbers, pair in pairs.items():
        items = tuple(pair.base.items)
        has_same_items = items == tuple(pair.new.items)
        is_mean = pair.base.statistic in stats.MEANS
        if is_mean and has_same_items and not pair.n_tied and len(items) > stats.MOST_EXACT:
            pairs_on_items.setdefault(items, {})[numbers] = pair
    outcomes: dict[tuple[int, int], Outcome] = {}
    for items, pairs_of_items in pairs_on_items.items():
        values_of_run: dict[int, stats.Values] = {}
        for (base, new), pair in pairs_of_items.items():
            values_of_run[base] = pair.base.values
            values_of_run[new] = pair.new.values
        figure = next(iter(pairs_of_items.values())).key  # the same in all pairs
        # `flip_test` also needs the sums of the signs alone, which are those of a column of ones
        columns = np.column_stack([*values_of_run.values(), np.ones(len(items))])
        *sums_of_runs, sums_of_signs = stats.random_flips(columns, _generator(figure)).T
        sums_of_run = dict(zip(values_of_run, sums_of_runs, strict=True))
        for base, new in pairs_of_items:
            differences = values_of_run[new] - values_of_run[base]
            if differences.any():
                sums = np.column_stack([sums_of_run[new] - sums_of_run[base], sums_of_signs])
                test = stats.flip_test(sums, differences)
                mean = float(differences.mean())
                outcomes[base, new] = Outcome(mean, test.ci_low, test.ci_high, test.p)
    return outcomes
