"""What was found, in one or two sentences: the beginning of a page.

A sentence claims what a test says and nothing else: a model "prefers" something where the figure
is above its chance level, and values are "higher" where p (adjusted, where there are several
tests) is below .05. All else cannot be told from chance. Undefined figures are passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from lmdiag import diagnostics
from lmdiag.analysis.designs import UNITS, Analysis
from lmdiag.analysis.fit import HumanFit, ModelFit
from lmdiag.analysis.regression import names_in, sides
from lmdiag.diagnostics import Diagnostic, Finding
from lmdiag.measures import MeasureName, Statistic
from lmdiag.report import numbers
from lmdiag.results import Figure, FigureKey, Results
from lmdiag.results.model_labels import model_label
from lmdiag.results.published_figures import REFERENCES, reference_figures
from lmdiag.results.results import VersusChance
from lmdiag.studies.cloze_norms import ClozeNorms
from lmdiag.studies.multiverse import Multiverse
from lmdiag.text import visible

_ALPHA = 0.05

_ORDER: tuple[VersusChance, ...] = ("above", "below", "not distinguishable")
"""The order in which a sentence names figures."""

_NAMED = 3
"""Figures of a comparison that a sentence names in each direction."""

_SIDES: Mapping[VersusChance, str] = {
    "above": "is above chance in", "below": "is below chance in",
    "not distinguishable": "cannot be told from chance in",
}  # fmt: skip


_PLACE = re.compile(r"(layer|step) \d+")
"""Matches what layers and checkpoints are called; other names are those of models."""


def listing(texts: Sequence[str]) -> str:
    """Returns texts as a list in a sentence.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


# ---- a model against chance ---------------------------------------------------------------------


class _Clause(NamedTuple):
    """What a model does on one diagnostic, and the published models that do the same."""

    text: str
    same: tuple[str, ...]
    is_alone: bool


def run_findings(results: Results, subject: str = "") -> list[str]:
    """Returns what a model prefers, by its figures against chance: a sentence or more.

    Diagnostics with one figure share the first sentence; one with several has its own. `subject`
    takes the place of the name of the model.
    """
    clauses = [clause for task in results.tasks if (clause := _clause(results, task))]
    shared = [clause for clause in clauses if not clause.is_alone]
    groups = [shared] if shared else []
    groups += [[clause] for clause in clauses if clause.is_alone]
    subject = visible(subject or model_label(results.model))
    sentences = []
    for group in groups:
        same = [name for name in group[0].same if all(name in clause.same for clause in group)]
        text = listing([clause.text for clause in group])
        sentences.append(f"{subject} {text}{_as_published(same)}.")
        subject = "It"
    return sentences


def _clause(results: Results, task: str) -> _Clause | None:
    """What a model does on a diagnostic; None without a figure that has a chance level."""
    figures = _tested(results, task)
    if not figures:
        return None
    diagnostic = results.diagnostic(task)
    same = _same_verdicts(results, task, figures)
    say = _shares_of_items if diagnostic.finding.noun else _sides_of_chance
    return _Clause(say(diagnostic, figures), same, len(figures) > 1)


def _sides_of_chance(diagnostic: Diagnostic, figures: Mapping[FigureKey, Figure]) -> str:
    """What a model does in the items of figures above, below and at chance."""
    texts = []
    chance = None
    for verdict in _ORDER:
        items = []
        for key, figure in figures.items():
            if figure.versus_chance == verdict:
                level = "" if figure.chance == chance else f", chance {_percent(figure.chance)}"
                items.append(f"{_where(diagnostic, key)} ({_percent(figure.value)}{level})")
                chance = figure.chance
        if items:
            texts.append(f"{_verb(diagnostic.finding, verdict)} {listing(items)}")
    return listing(texts)


def _shares_of_items(diagnostic: Diagnostic, figures: Mapping[FigureKey, Figure]) -> str:
    """In which shares of the items of each level a model does what a finding says."""
    finding = diagnostic.finding
    shares = [f"{_short(x.value)} of {finding.items[key.level]}" for key, x in figures.items()]
    chance = f"chance {listing([*dict.fromkeys(_short(x.chance) for x in figures.values())])}"
    unclear = [x.value for x in figures.values() if x.versus_chance == "not distinguishable"]
    if unclear and len(unclear) == len(figures):
        chance += f"; {'none can' if len(figures) > 1 else 'this cannot'} be told from it"
    elif unclear:
        chance += f"; {listing([*dict.fromkeys(map(_short, unclear))])} cannot be told from it"
    return f"{finding.above} in {listing(shares)} {finding.noun} ({chance})"


def _where(diagnostic: Diagnostic, key: FigureKey) -> str:
    """The items of a figure, as the place where a model does something."""
    finding = diagnostic.finding
    if finding.noun:
        return f"in {finding.items[key.level]} {finding.noun}"
    return finding.items[key.level] or f"on {visible(diagnostic.short_title)}"


def _tested(results: Results, task: str) -> dict[FigureKey, Figure]:
    """The figures of a diagnostic that findings name, those with a test against chance."""
    finding = results.diagnostic(task).finding
    measure = next((name for name in finding.measures if results.measure(task, "none", name)), "")
    keys = [FigureKey(task, "none", measure, finding.by, level) for level in finding.items]
    figures = {key: results.figure(key) for key in keys}
    return {key: figure for key, figure in figures.items() if figure and figure.versus_chance}


def prediction_findings(results: Results) -> list[str]:
    """Returns the share of the predictions of test suites that hold for a model: suite_accuracy.

    It has an interval and no test, for no chance level is defined.
    """
    name = visible(model_label(results.model))
    sentences = []
    for task in results.tasks:
        figure = results.figure(FigureKey(task, "none", "suite_accuracy"))
        if figure and figure.value is not None:
            share = f"{_percent(figure.value)} of the predictions hold for {name}"
            n = f"{figure.n} item{'s' * (figure.n != 1)}"
            sentences.append(f"On average over {n}, {share}{_within(figure, figure.statistic)}.")
    return sentences


def models_findings(runs: Sequence[Results]) -> list[str]:
    """Returns how many of several models are above, and how many below, each chance level."""
    counts: dict[VersusChance, dict[str, int]] = {"above": {}, "below": {}}
    for results in runs:
        for task in results.tasks:
            diagnostic = results.diagnostic(task)
            for key, figure in _tested(results, task).items():
                where = _where(diagnostic, key)
                for verdict, of_verdict in counts.items():
                    of_verdict.setdefault(where, 0)
                    of_verdict[where] += figure.versus_chance == verdict
    if not counts["above"]:
        return []
    above = listing([f"{n} {where}" for where, n in counts["above"].items()])
    below = [f"{n} {where}" for where, n in counts["below"].items() if n]
    rest = f"; below chance are {listing(below)}" if below else ""
    return [f"Of {len(runs)} models, above chance are {above}{rest}."]


def _verb(finding: Finding, verdict: VersusChance) -> str:
    verbs = {"above": finding.above, "below": finding.below}
    return verbs.get(verdict, "cannot be told from chance")


def _same_verdicts(
    results: Results, task: str, figures: Mapping[FigureKey, Figure]
) -> tuple[str, ...]:
    """Models of the paper whose published figures lie on the same sides of chance."""
    published = reference_figures(results, task)
    same = []
    for model, name in REFERENCES.items():
        reported = [published.get((model, key)) for key in figures]
        verdicts = [
            # the count that was rounded to a percentage
            Figure(round(x.value / 100 * x.n) / x.n, x.n, chance=figure.chance).versus_chance
            for x, figure in zip(reported, figures.values(), strict=True)
            if x is not None
        ]
        is_other = results.model.id.rpartition("/")[2] != model
        if is_other and verdicts == [figure.versus_chance for figure in figures.values()]:
            same.append(name)
    return tuple(same)


def _as_published(names: Sequence[str]) -> str:
    verb = "do" if len(names) > 1 else "does"
    return f", as the published {listing(names)} {verb}" if names else ""


def _percent(share: float | None) -> str:
    return f"{numbers.number(share, 'share')}%"


def _short(share: float | None) -> str:
    """A share in percent, without a decimal that is 0."""
    return f"{numbers.number(share, 'share').removesuffix('.0')}%"


# ---- the conditions of a design -----------------------------------------------------------------


class _Effect(NamedTuple):
    """An effect of one model: its row in `Analysis.effects`, and its levels in words.

    Attributes:
        row: estimate, ci_low, ci_high, t, df, p or p_holm.
        second, first: levels of a main effect, whose estimate is second less first; "" of an
            interaction.
        condition: whose levels these are.
    """

    row: Any
    second: str = ""
    first: str = ""
    condition: str = ""

    @property
    def levels(self) -> str:
        """Where the response is higher or lower, and than where."""
        second, first, condition = map(visible, (self.second, self.first, self.condition))
        return f"where {condition} is {second} than where it is {first}"

    @property
    def p(self) -> float:
        """Adjusted where a condition has more than two levels."""
        return float(self.row.p_holm if self.is_adjusted else self.row.p)

    @property
    def is_adjusted(self) -> bool:
        """Whether p is adjusted over the pairs of levels."""
        return not math.isnan(getattr(self.row, "p_holm", math.nan))

    @property
    def is_clear(self) -> bool:
        """Whether the test of the effect rejects."""
        return self.p < _ALPHA


def analysis_findings(analysis: Analysis) -> list[str]:
    """Returns the effects of the conditions on the response, at most two sentences for a model.

    An interaction comes first where its test rejects, then the effects whose tests reject, by p. Of
    several models, a sentence says for which of them this is so.
    """
    if analysis.effects.empty:
        return []
    by_model = dict(_effects(analysis))
    if len(by_model) == 1:
        (effects,) = by_model.values()
        clear = [effect for effect in effects if effect.is_clear]
        if not clear:
            return [_no_effect(analysis, effects)] if effects else []
        return [_effect_sentence(analysis, effect) for effect in clear[:2]]
    return _sentences_of_models(analysis, by_model)


def _effects(analysis: Analysis) -> Iterator[tuple[str, list[_Effect]]]:
    """Yields each model with its effects: interactions first, then by p."""
    levels = {}
    for condition, names in analysis.conditions.items():
        for first, second in combinations(names, 2):
            pair = f"[{second} - {first}]" if len(names) > 2 else ""
            levels[condition + pair] = (str(second), str(first), condition)
    keys = [key for key in ("suite", "model") if key in analysis.effects]
    for names, table in analysis.effects.groupby(keys, sort=False):
        effects = [_Effect(row, *levels.get(row.effect, ())) for row in table.itertuples()]
        effects = [effect for effect in effects if not math.isnan(effect.p)]
        effects.sort(key=lambda effect: (bool(effect.second) or not effect.is_clear, effect.p))
        yield " ".join(names), effects


def _effect_sentence(analysis: Analysis, effect: _Effect) -> str:
    """A clear effect of one model with its interval and its test."""
    row = effect.row
    response = visible(analysis.response_text())
    bounds = [row.ci_low, row.ci_high]
    if effect.second:
        bounds = sorted(map(abs, bounds))  # of a clear effect, on one side of 0
    interval = ", ".join(_amount(analysis, bound) for bound in bounds)
    p = numbers.p_value(effect.p)
    p = p if p.startswith("<") else f"= {p}"
    how = " (Holm)" if effect.is_adjusted else ""
    test = f"[{interval}], t({row.df:g}) = {numbers.decimals(row.t)}, p {p}{how}"
    if not effect.second:
        factors = listing(visible(row.effect).split(":"))
        size = _size(analysis, row.estimate)
        return f"The effects of {factors} on {response} depend on each other: {size} {test}."
    size = _size(analysis, abs(row.estimate))
    return f"{_capital(response)} is {size} {_direction(effect)} {effect.levels} {test}."


def _no_effect(analysis: Analysis, effects: Sequence[_Effect]) -> str:
    """Says that no effect is clear, with the smallest p of several."""
    response = visible(analysis.response_text())
    p = numbers.p_value(min(effect.p for effect in effects))
    smallest = "smallest p" if len(effects) > 1 else "p"
    factors = listing([visible(name) for name in analysis.conditions])
    return f"No effect of {factors} on {response} can be told from chance ({smallest} = {p})."


def _sentences_of_models(
    analysis: Analysis, by_model: Mapping[str, Sequence[_Effect]]
) -> list[str]:
    """The effects that are clear in most models; for which of them they are."""
    response = visible(analysis.response_text())
    by_effect: dict[str, dict[str, _Effect]] = {}
    for model, effects in by_model.items():
        for effect in effects:
            by_effect.setdefault(effect.row.effect, {})[model] = effect
    n_clear = {
        name: sum(effect.is_clear for effect in of_models.values())
        for name, of_models in by_effect.items()
    }
    ordered = sorted(by_effect, key=lambda name: -n_clear[name])
    clear = [name for name in ordered if n_clear[name]]
    if not clear:
        factors = listing([visible(name) for name in analysis.conditions])
        return [
            f"No effect of {factors} on {response} can be told from chance in any of the "
            f"{len(by_model)} models."
        ]
    return [_sentence_of_models(analysis, by_effect[name]) for name in clear[:2]]


def _sentence_of_models(analysis: Analysis, effects: Mapping[str, _Effect]) -> str:
    """One effect of several models: its direction, and its size in each group of models."""
    response = visible(analysis.response_text())
    groups: dict[str, list[str]] = {}
    for model, effect in effects.items():
        direction = _direction(effect) if effect.is_clear else "unclear"
        size = _size(analysis, effect.row.estimate)
        groups.setdefault(direction, []).append(f"{visible(model)} ({size})")
    n_clear = sum(effect.is_clear for effect in effects.values())
    unclear = groups.pop("unclear", [])
    some = next(iter(effects.values()))
    parts = []
    for direction, models in groups.items():
        of_all = "both models" if len(effects) == 2 else f"all {len(effects)} models"
        which = f"{of_all}: " if len(models) == len(effects) else ""
        if some.second:
            parts.append(f"is {direction} {some.levels} for {which}{listing(models)}")
        else:
            parts.append(f"for {which}{listing(models)}")
    tests = f", {'each ' * (n_clear > 1)}p < .05"
    rest = f"; for {listing(unclear)} this cannot be told from chance" if unclear else ""
    if some.second:
        return f"{_capital(response)} {listing(parts)}{tests}{rest}."
    factors = listing(visible(some.row.effect).split(":"))
    what = f"The effects of {factors} on {response} depend on each other"
    return f"{what} {listing(parts)}{tests}{rest}."


def _direction(effect: _Effect) -> str:
    return "higher" if effect.row.estimate > 0 else "lower"


def _unit(analysis: Analysis) -> str:
    """The unit of the response behind a number, with a blank before it; "" without one."""
    unit = UNITS.get(analysis.response, "")
    return " percentage points" if unit == "share" else f" {unit}".rstrip()


def _amount(analysis: Analysis, value: float) -> str:
    """A difference of the response, in percentage points where it is a share."""
    is_share = UNITS.get(analysis.response) == "share"
    return numbers.number(value, "share") if is_share else numbers.decimals(value)


def _size(analysis: Analysis, value: float) -> str:
    return _amount(analysis, value) + _unit(analysis)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---- two models on the same items ---------------------------------------------------------------


class Difference(NamedTuple):
    """A figure of one model less the same figure of another one.

    Attributes:
        label: of the figure, with its diagnostic where there are several.
        text: the difference as tables show it, with its sign and unit.
        value: of the difference.
        p: adjusted over all figures; NaN where the models do not differ in any item.
    """

    label: str
    text: str
    value: float
    p: float


def comparison_findings(new: str, base: str, differences: Iterable[Difference]) -> list[str]:
    """Returns in which figures a model is higher or lower than another one, by adjusted p."""
    tested = [*differences]
    if not tested:
        return []
    subject = _capital(new) if _PLACE.fullmatch(new) else visible(new)  # names stay as they are
    names = f"{visible(new)} and {visible(base)}"
    n = len(tested)
    figures = f"the {n} compared figures" if n > 1 else tested[0].label
    if all(math.isnan(x.p) for x in tested):
        return [f"{subject} and {visible(base)} do not differ in any item of {figures}."]
    clear = [x for x in tested if x.p < _ALPHA]
    if not clear:
        any_of = "any of " if n > 1 else ""
        return [f"No difference between {names} can be told from chance in {any_of}{figures}."]
    parts = []
    for word, group in (
        ("higher", [x for x in clear if x.value > 0]),
        ("lower", [x for x in clear if x.value < 0]),
    ):
        if group:
            group.sort(key=lambda x: x.p)
            named = [f"{x.label} ({x.text})" for x in group[:_NAMED]]
            if len(group) > _NAMED:
                named.append(f"{len(group) - _NAMED} more")
            parts.append(f"{word} than {visible(base)} in {listing(named)}")
    sentences = [f"{subject} is {listing(parts)} (adjusted p < .05)."]
    if rest := n - len(clear):
        others = "other figure" if rest == 1 else f"other {rest} figures"
        sentences.append(f"The difference in the {others} cannot be told from chance.")
    return sentences


def comparisons_findings(base: str, pairs: Mapping[str, Sequence[Difference]]) -> list[str]:
    """Returns, for each of some models, in how many figures it is higher or lower than the base.

    Of a single one, the figures are named: see `comparison_findings`.
    """
    if len(pairs) == 1:
        return [
            sentence
            for new, differences in pairs.items()
            for sentence in comparison_findings(new, base, differences)
        ]
    counts = []
    for new, differences in pairs.items():
        clear = [x.value for x in differences if x.p < _ALPHA]
        higher = sum(value > 0 for value in clear)
        lower = len(clear) - higher
        sides = [f"{word} in {n}" for word, n in (("higher", higher), ("lower", lower)) if n]
        counts.append(f"{visible(new)} is {listing(sides or ['different in none'])}")
    n = max((len(differences) for differences in pairs.values()), default=0)
    if not n:
        return []
    figures = f"the {n} compared figures" if n > 1 else "the compared figure"
    return [f"Against {visible(base)}, of {figures} {listing(counts)} (adjusted p < .05)."]


# ---- human measures -----------------------------------------------------------------------------


def fit_findings(fit: HumanFit) -> list[str]:
    """Returns for which models surprisal predicts the response beyond the baseline, by the test."""
    response = visible(names_in(sides(fit.full)[0])[0])
    what = " and ".join(fit.table.procedure.predictors)
    tested = [model for model in fit.models if not math.isnan(model.p)]
    if len(fit.models) == 1:
        return [_fit_sentence(model, what, response) for model in tested]
    clear = [model for model in tested if model.p < _ALPHA]
    if not clear:
        models = f"any of the {len(tested)} models"
        return [f"No gain of {what} for {response} can be told from chance for {models}."]
    best = max(clear, key=lambda model: model.per_word)
    names = listing([visible(model.name) for model in clear[:_NAMED]])
    if len(clear) > _NAMED:
        names = f"{len(clear)} of {len(tested)} models"
    unit = "row" if fit.is_mixed else "word"
    gain = numbers.decimals(best.per_word, 5)
    return [
        f"{_capital(what)} predicts {response} beyond the baseline for {names} (each p < .05).",
        f"The gain in log-likelihood is largest for {visible(best.name)}: {gain} per {unit}.",
    ]


def _fit_sentence(model: ModelFit, what: str, response: str) -> str:
    """The test of one model."""
    name = "F" if model.test == "F" else "chi-squared"
    df = ", ".join(map(str, model.df))
    p = numbers.p_value(model.p)
    p = p if p.startswith("<") else f"= {p}"
    test = f"{name}({df}) = {numbers.decimals(model.statistic)}, p {p}"
    model_name = visible(model.name)
    if model.p < _ALPHA:
        return f"{_capital(what)} of {model_name} predicts {response} beyond the baseline: {test}."
    return f"No gain of {what} of {model_name} for {response} can be told from chance: {test}."


# ---- cloze norms --------------------------------------------------------------------------------


def cloze_findings(norms: ClozeNorms) -> list[str]:
    """Returns how often the first words of people and models agree, and what sets models apart."""
    sentences = []
    for model, table in norms.figures.groupby("model", sort=False):
        figures = {row.measure: row for row in table.itertuples() if not math.isnan(row.value)}
        agrees = figures.get("top_agrees")
        mass = figures.get("mass")
        name = visible(str(model))
        parts = []
        if agrees:
            share = f"{_percent(agrees.value)} of {agrees.n} items{_within(agrees, 'share')}"
            parts.append(f"the first word of {name} is one that people gave most in {share}")
        if mass:
            value = f"{_percent(mass.value)}{_within(mass, 'share')}"
            parts.append(f"{name} gives all words of people together a probability of {value}")
        if parts:
            text = ", and ".join(parts)
            sentences.append(f"{_capital(text) if agrees else text}.")
    pairs: dict[str, list[Difference]] = {}
    for x in norms.comparisons:
        label = MeasureName.of(x.measure).label
        is_percent = x.statistic in ("proportion", "share")
        unit = " points" if is_percent else " bits" * label.endswith(", bits")
        label = label.removesuffix(", bits")
        text = numbers.signed(x.difference, x.statistic) + unit
        difference = Difference(label, text, x.difference, x.p_adjusted)
        pairs.setdefault(norms.models[x.number], []).append(difference)
    return sentences + (comparisons_findings(norms.models[0], pairs) if pairs else [])


def _within(row: Any, statistic: Statistic | None) -> str:
    """The interval of a figure with a blank before it; "" without one."""
    interval = numbers.bounds(row.ci_low, row.ci_high, statistic)
    return f" {interval}" if interval else ""


# ---- ways of asking -----------------------------------------------------------------------------


def multiverse_findings(multiverse: Multiverse) -> list[str]:
    """Returns which figures are on one side of chance in all ways of asking a model, and which not.

    A model that was asked in one way has no sentence.
    """
    sentences = []
    for model in multiverse.models:
        n = len(multiverse.numbers_of(model))
        verdicts = _verdicts_of_ways(multiverse, model) if n > 1 else {}
        parts = [
            f"{_SIDES[verdict]} {_first(labels)}"
            for verdict in _ORDER
            if (labels := [label for label, found in verdicts.items() if found == {verdict}])
        ]
        changing = [label for label, found in verdicts.items() if len(found) > 1]
        rest = f"the result in {_first(changing)} depends on the way of asking" * bool(changing)
        name = visible(model)
        if parts:
            text = f"In all {n} ways of asking, {name} {listing(parts)}"
            sentences.append(f"{'; '.join(filter(None, (text, rest)))}.")
        elif rest:
            sentences.append(f"For {name}, asked in {n} ways, {rest}.")
    return sentences


def _first(labels: Sequence[str]) -> str:
    """A few labels as a list in a sentence, and how many more there are."""
    more = [f"{len(labels) - _NAMED} more"] if len(labels) > _NAMED else []
    return listing([*map(visible, labels[:_NAMED]), *more]) if labels else ""


def _verdicts_of_ways(multiverse: Multiverse, model: str) -> dict[str, set[VersusChance]]:
    """Label of a figure with a chance level -> its results against chance in all ways."""
    runs = [multiverse.runs[number] for number in multiverse.numbers_of(model)]
    several = len({headline.task for headline in multiverse.figures}) > 1
    verdicts = {}
    for headline in multiverse.figures:
        figures = [run.results.figure(headline.key) for run in runs]
        found = {x.versus_chance for x in figures if x and x.versus_chance is not None}
        diagnostic = diagnostics.get(headline.task, multiverse.forms.get(headline.task, ""))
        if found:
            verdicts[f"{diagnostic.short_title} " * several + headline.label] = found
    return verdicts
