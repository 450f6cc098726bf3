"""What the tests of an analysis of conditions say: sentences.

Of one model in one region, they are on its effects: first interactions, each followed by its simple
effects, then the others, by p. Of several models, regions or suites they say for which of them an
effect is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from pandas import isna

from lmdiag.analysis.designs import UNITS, Analysis
from lmdiag.analysis.rows import EACH_REGION
from lmdiag.report import numbers
from lmdiag.report.labels import noun_of
from lmdiag.report.reported_tests import (
    ReportedTest,
    each_p,
    in_direction,
    of_all,
    untested_in_items,
)
from lmdiag.studies.comparison import ALPHA
from lmdiag.text import capital, listing, visible

_MOST_EFFECTS = 2
"""Effects that sentences name."""

_FEW = 8
"""Items below which the exact test stands beside a t test that it contradicts."""


class _Effect(NamedTuple):
    """An effect of one group: its row in `Analysis.effects`, its test and its levels in words.

    A group is a model, a region or a suite.

    Attributes:
        row: effect, n, estimate, ci_low, ci_high, t, df, p, p_sign_flip or p_holm.
        test: the record that sentences are made from.
        levels: condition -> the first and the second of its levels, of each condition of an
            effect; the estimate is second less first.
    """

    row: Any
    test: ReportedTest
    levels: Mapping[str, tuple[str, str]]

    @property
    def where(self) -> str:
        """Where the response of a main effect is higher or lower, and than where."""
        return _where(self.levels, "than ")

    @property
    def is_interaction(self) -> bool:
        """Whether it is a difference of differences."""
        return ":" in self.row.effect and len(self.levels) != 1

    @property
    def factors(self) -> str:
        """The conditions of an interaction."""
        return listing([*map(visible, self.levels or self.row.effect.split(":"))])

    @property
    def exact(self) -> str:
        """The exact p of few items where the t test contradicts it; else ""."""
        p_exact = getattr(self.row, "p_sign_flip", math.nan)
        if self.row.n >= _FEW or isna(p_exact) or (p_exact < ALPHA) == (self.row.p < ALPHA):
            return ""
        return f"exact p = {numbers.p_value(p_exact)}"

    @property
    def how(self) -> str:
        """How p was adjusted, behind it."""
        return " (Holm)" if self.test.n_tests > 1 else ""


def _where(levels: Mapping[str, tuple[str, str]], than: str) -> str:
    """Two levels of a condition in words: `where a is y than where it is x`."""
    ((condition, (first, second)),) = levels.items()
    return f"where {visible(condition)} is {visible(second)} {than}where it is {visible(first)}"


def analysis_findings(analysis: Analysis) -> list[str]:
    """Returns what the tests of the effects say, on at most two effects."""
    if analysis.effects.empty:
        return []
    groups = dict(_effects(analysis))
    if len(groups) == 1:
        (effects,) = groups.values()
        return [*_sentences_of_one(analysis, effects)]
    return [*_sentences_of_several(analysis, groups)]


def _effects(analysis: Analysis) -> Iterator[tuple[str, list[_Effect]]]:
    """Yields name of each model and suite -> its effects: clear interactions first, then by p.

    The name has only what differs between groups, "" where there is one.
    """
    levels = _levels_of_effects(analysis.conditions)
    keys = [key for key in ("suite", "model") if key in analysis.effects]
    n_of = {key: analysis.effects[key].nunique() for key in keys}
    varying_keys = [key for key in keys if n_of[key] > 1]
    for names, table in analysis.effects.groupby(keys, sort=False):
        texts = [
            visible(str(x)).strip()
            for key, x in zip(keys, names, strict=True)
            if key in varying_keys
        ]
        name = " of ".join(texts)
        effects = [_effect_of(analysis, row, name, levels) for row in table.itertuples()]
        effects.sort(key=lambda x: (not (x.is_interaction and x.test.is_clear), _or_last(x.test.p)))
        yield name, effects


def _or_last(p: float) -> float:
    """Returns a p-value to sort by; an effect without a test comes last."""
    return 2.0 if math.isnan(p) else p


def _effect_of(
    analysis: Analysis, row: Any, name: str, levels: Mapping[str, Mapping[str, tuple[str, str]]]
) -> _Effect:
    """An effect with the record of its test."""
    n_tests = getattr(row, "n_tests", math.nan)
    n_tests = 1 if isna(n_tests) else int(n_tests)
    p = float(row.p_holm if n_tests > 1 else row.p)
    test = ReportedTest(name, _size(analysis, row.estimate), row.estimate, p, n_tests, row.n)
    return _Effect(row, test, levels.get(row.effect, {}))


def _levels_of_effects(
    conditions: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, tuple[str, str]]]:
    """Name of an effect -> the two levels of each of its conditions, up to two conditions."""
    levels_of_effect: dict[str, dict[str, tuple[str, str]]] = {}
    levels_of_main_effect = {}
    for condition, names in conditions.items():
        pairs = [*combinations(map(str, names), 2)]
        levels_of_main_effect[condition] = {
            condition + (f"[{second} - {first}]" if len(names) > 2 else ""): (first, second)
            for first, second in pairs
        }
        levels_of_effect |= {
            name: {condition: pair} for name, pair in levels_of_main_effect[condition].items()
        }
    for condition_a, condition_b in combinations(conditions, 2):
        for (a, pair_a), (b, pair_b) in product(
            levels_of_main_effect[condition_a].items(), levels_of_main_effect[condition_b].items()
        ):
            levels_of_effect[f"{a}:{b}"] = {condition_a: pair_a, condition_b: pair_b}
    return levels_of_effect


# ---- one model in one region --------------------------------------------------------------------


def _sentences_of_one(analysis: Analysis, effects: Sequence[_Effect]) -> Iterator[str]:
    """Yields the clear effects; or that none is clear; then what has no test."""
    clear = [effect for effect in effects if effect.test.is_clear]
    tested = [effect for effect in effects if effect.test.is_tested]
    for effect in clear[:_MOST_EFFECTS]:
        yield _effect_sentence(analysis, effect)
        if effect.is_interaction:
            yield from _simple_sentence(analysis, effect)
    if tested and not clear:
        yield _no_effect(analysis, tested)
    for effect in effects:
        if not effect.test.is_tested and effect.test.direction:
            yield f"{_untested_effect(analysis, effect)}."


def _effect_sentence(analysis: Analysis, effect: _Effect) -> str:
    """Returns the sentence about an effect whose test rejects, with its size, interval and test."""
    row = effect.row
    test = _test_text(analysis, effect)
    if not effect.is_interaction:
        size = _size(analysis, abs(row.estimate))
        what = f"is {size} {effect.test.direction} {effect.where}"
        return f"{capital(_response(analysis))} {what} {test}."
    what = f"There is an interaction of {effect.factors} in {_response(analysis)}"
    if len(effect.levels) != 2:  # a difference of differences of differences
        return f"{what}: {effect.test.text} {test}."
    (_, (first, second)), (other, pair) = effect.levels.items()
    size = _size(analysis, abs(row.estimate))
    difference = f"the difference {visible(second)} − {visible(first)} is {size}"
    where = _where({other: pair}, "than ")
    return f"{what}: {difference} {effect.test.direction} {where} {test}."


def _test_text(analysis: Analysis, effect: _Effect) -> str:
    """Interval, t and p, without the sign of a direction in words."""
    row = effect.row
    bounds = [row.ci_low, row.ci_high]
    if len(effect.levels) in (1, 2):
        bounds = sorted(map(abs, bounds))  # of a clear effect, on one side of 0
    interval = ", ".join(_amount(analysis, bound) for bound in bounds)
    p = numbers.p_value(effect.test.p)
    p = p if p.startswith("<") else f"= {p}"
    exact = f", {effect.exact}" if effect.exact else ""
    return f"[{interval}], t({row.df:g}) = {numbers.decimals(row.t)}, p {p}{effect.how}{exact}"


def _simple_sentence(analysis: Analysis, effect: _Effect) -> Iterator[str]:
    """Yields what the first condition of an interaction does at each level of the second."""
    table = analysis.simple
    rows = table[table["interaction"] == effect.row.effect] if len(table) else table
    parts = []
    for row in rows[rows["level"] != ""].itertuples() if len(rows) else ():
        where = f"where {visible(row.condition)} is {visible(row.level)}"
        p = numbers.p_value(row.p_holm)
        p = f"p {p}" if p.startswith("<") else f"p = {p}"
        size = _size(analysis, abs(row.estimate))
        direction = "higher" if row.estimate > 0 else "lower"
        if isna(row.p_holm):
            same = f"{size} {direction} in every item" if row.estimate else "the same in every item"
            parts.append(f"{same} {where} (no test)")
        elif row.p_holm < ALPHA:
            parts.append(f"{size} {direction} {where} ({p})")
        else:
            parts.append(f"not distinguishable {where} ({p})")
    if parts:
        # effects are of the first condition, at each level of the second
        condition, (first, second) = next(iter(effect.levels.items()))
        compared = (
            f"where {visible(condition)} is {visible(second)}, compared with {visible(first)}"
        )
        how = "p by Holm over these and their interaction"
        yield f"{capital(_response(analysis))} {compared}: {listing(parts)}; {how}."


def _no_effect(analysis: Analysis, tested: Sequence[_Effect]) -> str:
    """Says that no effect is clear, with the smallest p of several."""
    p = numbers.p_value(min(effect.test.p for effect in tested))
    smallest = f"smallest p = {p}" if len(tested) > 1 else f"p = {p}"
    exact = "".join(f"; {effect.exact}" for effect in tested if len(tested) == 1 and effect.exact)
    factors = _factors_of(tested)
    where = f"of {factors} on {_response(analysis)}"
    return f"No effect {where} can be told from chance ({smallest}{exact})."


def _factors_of(effects: Sequence[_Effect]) -> str:
    """The conditions of some effects."""
    names = dict.fromkeys(name for effect in effects for name in effect.levels)
    return listing([*map(visible, names)])


def _untested_effect(analysis: Analysis, effect: _Effect) -> str:
    """An effect without a test."""
    items = "in the one item" if effect.row.n == 1 else f"in each of {effect.row.n} items"
    size = _size(analysis, abs(effect.row.estimate))
    response = capital(_response(analysis))
    if effect.is_interaction:
        return f"The interaction of {effect.factors} is {effect.test.text} {items}; no test"
    return f"{response} is {size} {effect.test.direction} {effect.where} {items}; no test"


# ---- several models, regions or suites ----------------------------------------------------------


def _sentences_of_several(
    analysis: Analysis, groups: Mapping[str, Sequence[_Effect]]
) -> Iterator[str]:
    """Yields the effects that are clear in most groups, and in which of them they are."""
    by_effect: dict[str, list[_Effect]] = {}
    for effects in groups.values():
        for effect in effects:
            by_effect.setdefault(effect.row.effect, []).append(effect)
    noun = _noun(analysis, [*groups])
    n_clear = {name: sum(x.test.is_clear for x in of) for name, of in by_effect.items()}
    clear = sorted((name for name in by_effect if n_clear[name]), key=lambda name: -n_clear[name])
    for name in clear[:_MOST_EFFECTS]:
        yield _sentence_of_several(analysis, by_effect[name], noun)
    if clear:
        return
    all_effects = [effect for effects in by_effect.values() for effect in effects]
    tested = [effect for effect in all_effects if effect.test.is_tested]
    if tested:
        names = [*dict.fromkeys(effect.test.subject for effect in tested)]
        which = f"in any of the {len(names)} {noun}" if len(names) == len(groups) else ""
        which = which or f"for {listing(names)}"
        where = f"of {_factors_of(tested)} on {_response(analysis)}"
        yield f"No effect {where} can be told from chance {which}."
    for effects in by_effect.values():
        if without := untested_in_items([x.test for x in effects]):
            yield f"{_effect_subject(analysis, effects[0])}: {without}."


def _sentence_of_several(analysis: Analysis, effects: Sequence[_Effect], noun: str) -> str:
    """One effect of several groups: its direction, and its size in each of them."""
    tests = [_with_exact(effect) for effect in effects]
    first = effects[0]
    clear = [test for test in tests if test.is_clear]
    parts = []
    for direction in ("higher", "lower"):
        if of_direction := in_direction(tests, direction):
            names = of_all(of_direction, len(tests), noun)
            what = f"is {direction} {first.where} " if not first.is_interaction else ""
            parts.append(f"{what}for {names}")
    subject = capital(_response(analysis))
    if first.is_interaction:
        subject = f"There is an interaction of {first.factors} in {_response(analysis)}"
    text = f"{subject} {listing(parts)}, {each_p(clear, first.how)}"
    if unclear := [test.named for test in tests if test.is_tested and not test.is_clear]:
        text += f"; for {listing(unclear)} this cannot be told from chance"
    if without := untested_in_items(tests):
        text += f"; {without}"
    return f"{text}."


def _with_exact(effect: _Effect) -> ReportedTest:
    """The test, with the exact p where it contradicts t."""
    exact = f"; {effect.exact}" if effect.exact else ""
    return effect.test._replace(text=effect.test.text + exact)


def _effect_subject(analysis: Analysis, effect: _Effect) -> str:
    """Returns the beginning of a sentence on an effect without a direction: response and levels."""
    if effect.is_interaction:
        return f"The interaction of {effect.factors} in {_response(analysis)}"
    ((condition, (first, second)),) = effect.levels.items()
    what = f"{visible(second)} − {visible(first)} of {visible(condition)}"
    return f"{capital(_response(analysis))}, {what}"


def _noun(analysis: Analysis, groups: Sequence[str]) -> str:
    """What the groups are."""
    table = analysis.effects
    if "suite" not in table or table["suite"].nunique() == 1:
        return noun_of(groups)
    parts = "regions" if analysis.region == EACH_REGION else "suites"
    return parts if table["model"].nunique() == 1 else f"{parts} and models"


# ---- the response -------------------------------------------------------------------------------


def _response(analysis: Analysis) -> str:
    """The response in words; of several regions, without "in each region"."""
    response = analysis.response_text()
    return visible(response.removesuffix(" in each region"))


def _unit(analysis: Analysis) -> str:
    """The unit of the response behind a number, with a blank before it; "" without one."""
    unit = UNITS.get(analysis.response, "")
    return " percentage points" if unit == "share" else f" {unit}".rstrip()


def _amount(analysis: Analysis, value: float) -> str:
    """A difference of the response, in percentage points where it is a share."""
    is_share = UNITS.get(analysis.response) == "share"
    return numbers.number(value, "share") if is_share else numbers.decimals(value)


def _size(analysis: Analysis, value: float) -> str:
    """Returns a difference of the response with its unit."""
    return _amount(analysis, value) + _unit(analysis)
