"""What the tests of an analysis of conditions say: sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from lmdiag.analysis.designs import UNITS, Analysis
from lmdiag.report import numbers
from lmdiag.studies.comparison import ALPHA
from lmdiag.text import capital, listing, visible


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
        return self.p < ALPHA


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
    return f"{capital(response)} is {size} {_direction(effect)} {effect.levels} {test}."


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
        return f"{capital(response)} {listing(parts)}{tests}{rest}."
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
