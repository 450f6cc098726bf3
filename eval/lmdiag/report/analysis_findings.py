"""Sentences on what the tests of an analysis of conditions (factors within items) say.

Of one model in one region, they are on its effects: first interactions, each followed by its simple
effects, then the others, by p. Of several models, regions or suites they say for which of them an
effect is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from pandas import isna

from lmdiag.analysis.designs import UNITS, Analysis
from lmdiag.analysis.rows import EACH_REGION
from lmdiag.report import numbers
from lmdiag.report.labels import noun_of
from lmdiag.report.reported_tests import (
    DIRECTIONS,
    ReportedTest,
    clear_tests,
    p_below_alpha,
    subjects_with_values,
    untested_item_values,
)
from lmdiag.studies.comparison import ALPHA
from lmdiag.text import capital, listing, visible

_MOST_EFFECTS = 2
"""Effects that sentences name."""

_ENOUGH_ITEMS = 8
"""Number of items from which on the t test stands alone; below, the exact test that contradicts it
stands beside it."""


class _Effect(NamedTuple):
    """An effect of one group: its row in `Analysis.effects`, its test and its levels in words.

    A group is a model, a region or a suite.

    Attributes:
        row: effect, n, estimate, ci_low, ci_high, t, df, p, p_sign_flip or p_holm.
        test: the record that sentences are made from; its subject is the name of the group.
        levels: each condition of the effect -> the two levels that are compared; the estimate is
            that of the second minus that of the first. {} for three conditions and more.
    """

    row: Any
    test: ReportedTest
    levels: Mapping[str, tuple[str, str]]

    @property
    def compared_levels(self) -> str:
        """The levels of a main effect in words: "where type is B than where it is A"."""
        ((condition, levels),) = self.levels.items()
        return _compared_levels(condition, levels)

    @property
    def is_interaction(self) -> bool:
        """Whether it is an effect of several conditions, a difference of differences.

        The name of a single condition may have a colon, too.
        """
        return ":" in self.row.effect and len(self.levels) != 1

    @property
    def condition_names(self) -> str:
        """The conditions as a list in a sentence: "type and number"."""
        names = self.levels or self.row.effect.split(":")
        return listing([visible(name) for name in names])

    @property
    def exact_p(self) -> str:
        """The p of the exact test, "exact p = .063", if there are few items and it contradicts t.

        "" otherwise.
        """
        p_exact = getattr(self.row, "p_sign_flip", math.nan)
        agrees = (p_exact < ALPHA) == (self.row.p < ALPHA)
        if self.row.n >= _ENOUGH_ITEMS or isna(p_exact) or agrees:
            return ""
        return f"exact p = {numbers.p_value(p_exact)}"

    @property
    def how_adjusted(self) -> str:
        """How p was adjusted, to stand behind it: " (Holm)", or ""."""
        return " (Holm)" if self.test.n_tests > 1 else ""


def _compared_levels(condition: str, levels: tuple[str, str]) -> str:
    """Returns two levels in words, the second first: "where type is B than where it is A"."""
    first, second = map(visible, levels)
    return f"where {visible(condition)} is {second} than where it is {first}"


def analysis_findings(analysis: Analysis) -> list[str]:
    """Returns what the tests of the effects say, in sentences on at most two effects.

    For example, ["Surprisal is 1.20 bits higher where type is B than where it is A [0.40, 2.00],
    t(15) = 3.10, p = .007."].
    """
    if analysis.effects.empty:
        return []
    groups = dict(_effects_of_groups(analysis))
    if len(groups) == 1:
        (effects,) = groups.values()
        return [*_sentences_of_one(analysis, effects)]
    return [*_sentences_of_several(analysis, groups)]


def _effects_of_groups(analysis: Analysis) -> Iterator[tuple[str, list[_Effect]]]:
    """Yields the name of each group and its effects: clear interactions first, then by p.

    A group is a model in a suite or region. Its name has what differs between groups: "suite 1 of
    gpt2", with one model "suite 1", and "" for a single group.
    """
    levels = _levels_of_effects(analysis.conditions)
    keys = [key for key in ("suite", "model") if key in analysis.effects]
    varies = {key: analysis.effects[key].nunique() > 1 for key in keys}
    for values, table in analysis.effects.groupby(keys, sort=False):
        names = [
            visible(str(value)).strip()
            for key, value in zip(keys, values, strict=True)
            if varies[key]
        ]
        group = " of ".join(names)
        effects = [_effect_of(analysis, row, group, levels) for row in table.itertuples()]
        effects.sort(key=_rank_of_effect)
        yield group, effects


def _rank_of_effect(effect: _Effect) -> tuple[bool, float]:
    """Returns what effects are sorted by: clear interactions, then p, then those without a test."""
    is_clear_interaction = effect.is_interaction and effect.test.is_clear
    p = effect.test.p if effect.test.is_tested else 2.0  # after all p
    return not is_clear_interaction, p


def _effect_of(
    analysis: Analysis, row: Any, group: str, levels: Mapping[str, Mapping[str, tuple[str, str]]]
) -> _Effect:
    """Returns the effect of a row of `Analysis.effects`, with the record of its test.

    Args:
        analysis: which has the unit of the estimate.
        row: with the fields effect, n, estimate, p and, if there are several pairs of levels,
            p_holm and n_tests.
        group: name of its model, suite or region.
        levels: name of an effect -> each of its conditions -> the two levels that are compared.
    """
    n_tests = getattr(row, "n_tests", math.nan)
    n_tests = 1 if isna(n_tests) else int(n_tests)
    p = float(row.p_holm if n_tests > 1 else row.p)
    test = ReportedTest(
        subject=group, text=_with_unit(analysis, row.estimate), value=row.estimate,
        p=p, n_tests=n_tests, n=row.n,
    )  # fmt: skip
    return _Effect(row, test, levels.get(row.effect, {}))


def _levels_of_effects(
    conditions: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, tuple[str, str]]]:
    """Returns name of an effect -> each of its conditions -> the two levels that are compared.

    Main effects and interactions of two conditions have the names of `Analysis.effects`:

    >>> _levels_of_effects({"type": ["A", "B"], "number": ["sg", "pl"]})["type:number"]
    {'type': ('A', 'B'), 'number': ('sg', 'pl')}
    >>> [*_levels_of_effects({"type": ["A", "B", "C"]})]
    ['type[B - A]', 'type[C - A]', 'type[C - B]']

    Args:
        conditions: condition -> its levels in order.
    """
    main_effects: dict[str, dict[str, tuple[str, str]]] = {}  # condition -> effect -> levels
    for condition, names in conditions.items():
        effects = main_effects.setdefault(condition, {})
        for first, second in combinations(map(str, names), 2):
            effect = f"{condition}[{second} - {first}]" if len(names) > 2 else condition
            effects[effect] = (first, second)
    levels_of_effect: dict[str, dict[str, tuple[str, str]]] = {}
    for condition, effects in main_effects.items():
        for effect, levels in effects.items():
            levels_of_effect[effect] = {condition: levels}
    for a, b in combinations(conditions, 2):
        for effect_a, levels_a in main_effects[a].items():
            for effect_b, levels_b in main_effects[b].items():
                levels_of_effect[f"{effect_a}:{effect_b}"] = {a: levels_a, b: levels_b}
    return levels_of_effect


# ---- one model in one region --------------------------------------------------------------------


def _sentences_of_one(analysis: Analysis, effects: Sequence[_Effect]) -> Iterator[str]:
    """Yields a sentence on each of the first two effects whose test rejects.

    If no test rejects, there is one sentence that says so. Then follow sentences on effects without
    a test, which are the same in every item.

    Args:
        analysis: that the effects are from.
        effects: of one model, in the order in which they are named.
    """
    clear = [effect for effect in effects if effect.test.is_clear]
    tested = [effect for effect in effects if effect.test.is_tested]
    for effect in clear[:_MOST_EFFECTS]:
        yield _effect_sentence(analysis, effect)
        if effect.is_interaction:
            yield from _simple_effects_sentence(analysis, effect)
    if tested and not clear:
        yield _no_effect_sentence(analysis, tested)
    for effect in effects:
        if not effect.test.is_tested and effect.test.direction:
            yield _untested_effect_sentence(analysis, effect)


def _effect_sentence(analysis: Analysis, effect: _Effect) -> str:
    """Returns the sentence about an effect whose test rejects, with its size, interval and test.

    For example, "Surprisal is 1.20 bits higher where type is B than where it is A [0.40, 2.00],
    t(15) = 3.10, p = .007.", or "There is an interaction of type and number in surprisal: the
    difference B − A is 0.80 bits higher where number is pl than where it is sg [...].".
    """
    test = _test_text(analysis, effect)
    size = _with_unit(analysis, abs(effect.row.estimate))
    direction = effect.test.direction
    if not effect.is_interaction:
        response = capital(_response(analysis))
        return f"{response} is {size} {direction} {effect.compared_levels} {test}."
    start = f"There is an interaction of {effect.condition_names} in {_response(analysis)}"
    if len(effect.levels) != 2:
        # an interaction of three or more conditions: its sign says nothing that is plain in words,
        # so that the text of the test gives it as a number, "0.80 bits"
        return f"{start}: {effect.test.text} {test}."
    (_, (first, second)), (other_condition, other_levels) = effect.levels.items()
    difference = f"the difference {visible(second)} − {visible(first)} is {size}"
    where = _compared_levels(other_condition, other_levels)
    return f"{start}: {difference} {direction} {where} {test}."


def _test_text(analysis: Analysis, effect: _Effect) -> str:
    """Returns interval, t and p of an effect: "[0.40, 2.00], t(15) = 3.10, p = .007 (Holm)"."""
    row = effect.row
    bounds = [row.ci_low, row.ci_high]
    if len(effect.levels) in (1, 2):
        # the sentence has the direction in words; both bounds of a clear effect have one sign
        bounds = sorted(map(abs, bounds))
    interval = ", ".join(_amount(analysis, bound) for bound in bounds)
    p = f"{numbers.p_in_sentence(effect.test.p)}{effect.how_adjusted}"
    exact_p = f", {effect.exact_p}" if effect.exact_p else ""
    return f"[{interval}], t({row.df:g}) = {numbers.decimals(row.t)}, {p}{exact_p}"


def _simple_effects_sentence(analysis: Analysis, effect: _Effect) -> Iterator[str]:
    """Yields what the first condition of an interaction does at each level of the second.

    For example, "Surprisal where type is B, compared with A: 1.20 bits higher where number is pl
    (p = .007) and not distinguishable where number is sg (p = .410); p by Holm over ...".
    Yields nothing for an interaction whose simple effects the analysis does not have.
    """
    simple = analysis.simple
    if simple.empty:
        return
    is_at_level = simple["level"] != ""  # the other rows are of the interaction itself
    rows = simple[(simple["interaction"] == effect.row.effect) & is_at_level]
    parts = []
    for row in rows.itertuples():
        where = f"where {visible(row.condition)} is {visible(row.level)}"
        size = _with_unit(analysis, abs(row.estimate))
        direction = "higher" if row.estimate > 0 else "lower"
        p = numbers.p_in_sentence(row.p_holm)
        if isna(row.p_holm):
            same = f"{size} {direction} in every item" if row.estimate else "the same in every item"
            parts.append(f"{same} {where} (no test)")
        elif row.p_holm < ALPHA:
            parts.append(f"{size} {direction} {where} ({p})")
        else:
            parts.append(f"not distinguishable {where} ({p})")
    if parts:
        condition, (first, second) = next(iter(effect.levels.items()))
        where = f"where {visible(condition)} is {visible(second)}, compared with {visible(first)}"
        how_adjusted = "p by Holm over these and their interaction"
        yield f"{capital(_response(analysis))} {where}: {listing(parts)}; {how_adjusted}."


def _no_effect_sentence(analysis: Analysis, tested: Sequence[_Effect]) -> str:
    """Returns the sentence about effects none of which is clear, with the smallest p of several.

    For example, "No effect of type and number on surprisal can be told from chance (smallest p =
    .120).".
    """
    p = numbers.p_value(min(effect.test.p for effect in tested))
    p_text = f"smallest p = {p}"
    if len(tested) == 1:
        p_text = f"p = {p}"
        if tested[0].exact_p:
            p_text += f"; {tested[0].exact_p}"
    where = f"of {_conditions_of(tested)} on {_response(analysis)}"
    return f"No effect {where} can be told from chance ({p_text})."


def _conditions_of(effects: Sequence[_Effect]) -> str:
    """Returns the distinct conditions of some effects in words, for example "type and number"."""
    names = dict.fromkeys(name for effect in effects for name in effect.levels)
    return listing([*map(visible, names)])


def _untested_effect_sentence(analysis: Analysis, effect: _Effect) -> str:
    """Returns the sentence about an effect that is the same in every item, so that no test exists.

    For example, "Surprisal is 1.20 bits higher where type is B than where it is A in each of 3
    items; no test.", or "The interaction of type and number is +0.80 bits in each of 3 items; no
    test.": `effect.test.text` is the size of the effect, with its sign.
    """
    items = "in the one item" if effect.row.n == 1 else f"in each of {effect.row.n} items"
    if effect.is_interaction:
        subject = f"The interaction of {effect.condition_names}"
        return f"{subject} is {effect.test.text} {items}; no test."
    size = _with_unit(analysis, abs(effect.row.estimate))
    what = f"is {size} {effect.test.direction} {effect.compared_levels} {items}"
    return f"{capital(_response(analysis))} {what}; no test."


# ---- several models, regions or suites ----------------------------------------------------------


def _sentences_of_several(
    analysis: Analysis, groups: Mapping[str, Sequence[_Effect]]
) -> Iterator[str]:
    """Yields a sentence on each of the two effects that are clear in most groups.

    If no effect is clear in any group, a sentence says so, and others give the effects without a
    test.

    Args:
        groups: name of each model, region or suite -> its effects.
    """
    by_effect: dict[str, list[_Effect]] = {}
    for effects in groups.values():
        for effect in effects:
            by_effect.setdefault(effect.row.effect, []).append(effect)
    noun = _noun_of_groups(analysis, [*groups])
    n_clear = {
        name: sum(effect.test.is_clear for effect in effects) for name, effects in by_effect.items()
    }
    clear = sorted((name for name in by_effect if n_clear[name]), key=lambda name: -n_clear[name])
    for name in clear[:_MOST_EFFECTS]:
        yield _sentence_on_groups(analysis, by_effect[name], noun)
    if clear:
        return
    all_effects = [effect for effects in by_effect.values() for effect in effects]
    tested = [effect for effect in all_effects if effect.test.is_tested]
    if tested:
        names = [*dict.fromkeys(effect.test.subject for effect in tested)]
        which = f"for {listing(names)}"
        if len(names) == len(groups):
            which = f"in any of the {len(names)} {noun}"
        where = f"of {_conditions_of(tested)} on {_response(analysis)}"
        yield f"No effect {where} can be told from chance {which}."
    for effects in by_effect.values():
        if untested := untested_item_values([effect.test for effect in effects]):
            yield f"{_effect_without_direction(analysis, effects[0])}: {untested}."


def _sentence_on_groups(analysis: Analysis, effects: Sequence[_Effect], noun: str) -> str:
    """Returns the sentence on one effect in several groups: its direction and size in each group.

    For example, "Surprisal is higher where type is B than where it is A for gpt2 (1.20 bits),
    p < .05; for bert (0.10 bits) this cannot be told from chance.".

    Args:
        effects: the effect in each group, clear in one at least.
        noun: what the groups are, in the plural.
    """
    tests = [_test_with_exact_p(effect) for effect in effects]
    clear = [test for test in tests if test.is_clear]
    effect = effects[0]  # conditions, levels and adjustment are the same in all groups
    parts = []
    for direction in DIRECTIONS:
        if tests_of_direction := clear_tests(tests, direction):
            names = subjects_with_values(tests_of_direction, len(tests), noun)
            if effect.is_interaction:
                parts.append(f"for {names}")
            else:
                parts.append(f"is {direction} {effect.compared_levels} for {names}")
    subject = capital(_response(analysis))
    if effect.is_interaction:
        subject = f"There is an interaction of {effect.condition_names} in {_response(analysis)}"
    text = f"{subject} {listing(parts)}, {p_below_alpha(clear, effect.how_adjusted)}"
    unclear = [test for test in tests if test.is_tested and not test.is_clear]
    if unclear:
        names = listing([test.subject_with_value for test in unclear])
        text += f"; for {names} this cannot be told from chance"
    if untested := untested_item_values(tests):
        text += f"; {untested}"
    return f"{text}."


def _test_with_exact_p(effect: _Effect) -> ReportedTest:
    """Returns the test of an effect, with the exact p behind the value where it contradicts t.

    The text of its value is then, for example, "1.20 bits; exact p = .063".
    """
    exact_p = f"; {effect.exact_p}" if effect.exact_p else ""
    return effect.test._replace(text=effect.test.text + exact_p)


def _effect_without_direction(analysis: Analysis, effect: _Effect) -> str:
    """Returns an effect in words that say no direction: "Surprisal, B − A of type"."""
    if effect.is_interaction:
        return f"The interaction of {effect.condition_names} in {_response(analysis)}"
    ((condition, (first, second)),) = effect.levels.items()
    difference = f"{visible(second)} − {visible(first)} of {visible(condition)}"
    return f"{capital(_response(analysis))}, {difference}"


def _noun_of_groups(analysis: Analysis, groups: Sequence[str]) -> str:
    """Returns what groups with these names are: "models", "layers", "regions and models", ..."""
    table = analysis.effects
    if "suite" not in table or table["suite"].nunique() == 1:
        return noun_of(groups)
    parts = "regions" if analysis.region == EACH_REGION else "suites"
    return parts if table["model"].nunique() == 1 else f"{parts} and models"


# ---- the response -------------------------------------------------------------------------------


def _response(analysis: Analysis) -> str:
    """Returns the response in words: "surprisal of region 2".

    Of an analysis of each region, "surprisal" alone: sentences name the regions.
    """
    response = analysis.response_text()
    return visible(response.removesuffix(" in each region"))


def _amount(analysis: Analysis, value: float) -> str:
    """Returns a value in the unit of the response as text; shares are in percentage points."""
    is_share = UNITS.get(analysis.response) == "share"
    return numbers.number(value, "share") if is_share else numbers.decimals(value)


def _with_unit(analysis: Analysis, value: float) -> str:
    """Returns a value of the response with its unit: "1.20 bits", "12.5 percentage points"."""
    unit = UNITS.get(analysis.response, "")
    if unit == "share":
        unit = "percentage points"
    return f"{_amount(analysis, value)} {unit}".rstrip()
