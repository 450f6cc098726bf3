"""Subject-verb agreement: TSE over minimal pairs, EW and MW over contexts (Newman et al. 2021).

EW (equally weighted): the share of all verbs whose right form is more probable than the wrong one,
that is whether a model conjugates any verb rightly. MW (model-weighted): the mass on right forms
over the mass on all forms, that is whether it conjugates rightly what it is likely to say. Both are
computed while the distribution over the vocabulary is at hand, by `lmdiag.models`; here they are
averaged. What they mean is stated a second time by `ew_mw`, slowly and literally, for one context.

Source: Newman, Ang, Gong and Hewitt (2021), sections on EW, MW and on high and low probability
verbs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.contrasts import Contrasts, higher
from lmdiag.measures.levels import Levels
from lmdiag.measures.scores import (
    Columns,
    Floats,
    Items,
    Scores,
    Statistic,
    floats,
    known,
    label,
    objects,
    positions,
)


class Cutoff(NamedTuple):
    """Part of the distribution whose verbs count.

    Attributes:
        end: "top" for the most probable tokens, "bottom" for the least probable ones.
        mass: cumulative probability up to which tokens are kept, from that end.
    """

    end: Literal["top", "bottom"]
    mass: float

    def __str__(self) -> str:
        return f"{self.end}={label(self.mass)}"


TOP = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0)
BOTTOM = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
CUTOFFS = (*(Cutoff("top", mass) for mass in TOP), *(Cutoff("bottom", mass) for mass in BOTTOM))
"""The cut-offs of the paper's curves (SPEC 4), top first."""

AGREEMENT_LAYOUT: tuple[str, ...] = (
    "ew",
    "mw",
    *(f"{name}@{cutoff}" for cutoff in CUTOFFS for name in ("ew", "mw", "mass")),
)
"""Names of the values of one context, in the order of `Answer.agreement`.

`ew` and `mw` are over all verbs, then for each cut-off follow `ew@top=0.1`, `mw@top=0.1` and
`mass@top=0.1`, the probability mass on the verb forms that count. None where no verb is kept.
"""


# ---- one context, literally ----------------------------------------------------------------------


def ew_mw(
    probabilities: Mapping[str, float],
    pairs: Iterable[tuple[str, str]],
    cutoff: Cutoff | None = None,
) -> tuple[float, float, float]:
    """Returns EW, MW and the mass that counts, of one context: the definition, not the fast way.

    Without a cut-off all verbs count. A cut-off keeps tokens from its end of the vocabulary, sorted
    by probability, until their cumulative mass reaches it; the values are interpolated linearly at
    the cut-off between the last token before and the first at or past it, and where only one of the
    two is defined, it is used. In the top a verb counts for EW when either form is kept, and for MW
    only kept forms do; in the bottom both forms must be kept. A top cut-off of 1 keeps the whole
    vocabulary.

    Args:
        probabilities: every item of the vocabulary -> its probability; equal ones in order of id.
        pairs: (right form, wrong form) of every verb whose forms are both single items.
        cutoff: which part of the distribution counts; None for all.

    Returns:
        (EW, MW, mass); NaN where no verb is kept.

    The toy example of Newman's text, where *keys* want *are* and *exist*:

    >>> toy = {"are": 0.6, "is": 0.05, "exist": 0.1, "exists": 0.25}
    >>> ew, mw, mass = ew_mw(toy, [("are", "is"), ("exist", "exists")])
    >>> round(ew, 12), round(mw, 12), round(mass, 12)
    (0.5, 0.7, 1.0)
    """
    pairs = list(pairs)
    if cutoff is None or cutoff == ("top", 1.0):
        return kept_ew_mw(probabilities, pairs, set(probabilities), "top")
    order = sorted(probabilities, key=lambda token: -probabilities[token])
    if cutoff.end == "bottom":
        order.reverse()
    before, cumulative = 0, 0.0
    while before < len(order) and cumulative + probabilities[order[before]] < cutoff.mass:
        cumulative += probabilities[order[before]]
        before += 1
    last = kept_ew_mw(probabilities, pairs, set(order[:before]), cutoff.end)
    first = kept_ew_mw(probabilities, pairs, set(order[: before + 1]), cutoff.end)
    if math.isnan(last[0]) or before >= len(order):
        return first
    share = (cutoff.mass - cumulative) / probabilities[order[before]]
    ew, mw, mass = (a + share * (b - a) for a, b in zip(last, first, strict=True))
    return ew, mw, mass


def kept_ew_mw(
    probabilities: Mapping[str, float],
    pairs: Sequence[tuple[str, str]],
    kept: set[str],
    end: Literal["top", "bottom"],
) -> tuple[float, float, float]:
    """Returns EW, MW and mass when exactly these items are kept; NaN where no verb is."""
    enough = 1 if end == "top" else 2
    counted = [pair for pair in pairs if sum(form in kept for form in pair) >= enough]
    right = sum(probabilities[pair[0]] for pair in counted if pair[0] in kept)
    mass = right + sum(probabilities[pair[1]] for pair in counted if pair[1] in kept)
    if not counted or mass == 0:
        return math.nan, math.nan, math.nan
    ew = sum(probabilities[a] > probabilities[b] for a, b in counted) / len(counted)
    return ew, right / mass, mass


# ---- all pairs and contexts ----------------------------------------------------------------------


def agreement(
    rows: Columns, predictions: Columns, levels: Levels, *, left_only: bool
) -> list[Scores]:
    """Returns tse, ew, mw and the values at every cut-off.

    Args:
        rows: `contrast`, `good`, `context`, `right_context`, `template` and so on.
        predictions: `log_prob` and `n_tokens` for TSE; `agreement` (one `AGREEMENT_LAYOUT` a row)
            for EW and MW. What is missing is not computed.
        levels: break-down -> level of each row.
        left_only: contexts are distinct by their left side alone, as a causal model sees them.
    """
    over_contexts = weighted(rows, predictions, levels, left_only=left_only)
    return [*tse(rows, predictions, levels, left_only=left_only), *over_contexts]


def tse(
    rows: Columns, predictions: Columns, levels: Levels, *, left_only: bool = False
) -> list[Scores]:
    """Returns sensitivity over the minimal pairs whose verbs are all single tokens."""
    if not known(predictions, "log_prob") or not known(predictions, "n_tokens"):
        return []
    contrasts = Contrasts.of(rows, levels, left_only=left_only)
    single = floats(predictions["n_tokens"]) == 1
    whole = np.bincount(contrasts.bad_of, ~single[contrasts.bad], minlength=len(contrasts.ids)) == 0
    whole &= single[contrasts.good]
    verdict = higher(*contrasts.pairs(floats(predictions["log_prob"])))
    values = np.where(whole, verdict, np.nan)
    scores = contrasts.build("tse", values, chance=contrasts.chance)
    # a pair with a verb in pieces is outside the measure by definition, not left out of it
    return [replace(scores, left_out=())]


def weighted(
    rows: Columns, predictions: Columns, levels: Levels, *, left_only: bool
) -> list[Scores]:
    """Returns EW and MW, over all verbs and at each cut-off, as means over distinct contexts.

    A context counts once, with the label of its first pair; a break-down counts it once in each of
    its levels. A context with no kept verb is left out of a cut-off; `left_out@top=0.1` is their
    share, and `mass@top=0.1` the mean mass on the verb forms that count.
    """
    if not known(predictions, "agreement"):
        return []
    contexts = distinct_contexts(rows, levels, left_only=left_only)
    ids = objects(rows["id"])
    tables = {level: table(predictions["agreement"], where) for level, where in contexts.items()}
    items = {level: ids[where] for level, where in contexts.items()}
    found = [assemble(name, items, tables, AGREEMENT_LAYOUT.index(name)) for name in ("ew", "mw")]
    for start, cutoff in enumerate(CUTOFFS):
        column = 2 + 3 * start
        found += [
            assemble(f"{name}@{cutoff}", items, tables, column + offset)
            for offset, name in enumerate(("ew", "mw", "mass"))
        ]
        missing = {level: np.isnan(values[:, [column]]) * 1.0 for level, values in tables.items()}
        found.append(assemble(f"left_out@{cutoff}", items, missing, 0, "proportion"))
    return found


Level = tuple[str, str] | None
"""A level as (break-down, level); None for all."""


def distinct_contexts(
    rows: Columns, levels: Levels, *, left_only: bool
) -> dict[Level, NDArray[np.intp]]:
    """Returns for all and for each level the first good row of each of its distinct contexts."""
    right = [""] * len(rows["id"]) if left_only else rows["right_context"]
    contexts = list(zip(rows["context"], right, strict=True))
    good = np.flatnonzero(np.array(rows["good"], dtype=bool))
    places: dict[Level, NDArray[np.intp]] = {None: good}
    for column, labels in levels.items():
        for level, where in positions(labels).items():
            places[column, level] = np.intersect1d(where, good, assume_unique=True)
    return {level: first_of_each(contexts, where) for level, where in places.items()}


def first_of_each(contexts: Sequence[tuple[str, str]], where: NDArray[np.intp]) -> NDArray[np.intp]:
    """Returns the first position of each distinct context among some."""
    first: dict[tuple[str, str], int] = {}
    for i in where.tolist():
        first.setdefault(contexts[i], i)
    return np.array(list(first.values()), dtype=np.intp)


def table(agreement: Sequence[Sequence[float | None] | None], where: NDArray[np.intp]) -> Floats:
    """Returns the values of some rows, (rows, len(AGREEMENT_LAYOUT)), NaN where undefined."""
    nothing = (None,) * len(AGREEMENT_LAYOUT)
    values = np.array([agreement[i] or nothing for i in where], dtype=np.float64)
    return values.reshape(len(where), len(AGREEMENT_LAYOUT))


def assemble(
    name: str,
    items: Mapping[Level, Items],
    tables: Mapping[Level, Floats],
    column: int,
    statistic: Statistic = "share",
) -> Scores:
    """Returns the scores of one column of the tables, with those of the levels as break-downs.

    Guessing between the two forms of a verb gives EW and MW of 1/2 at any cut-off.
    """
    guessed = name.startswith(("ew", "mw"))
    by: dict[str, dict[str, Scores]] = {}
    for level, values in tables.items():
        defined = ~np.isnan(values[:, column])
        chance = np.full(int(defined.sum()), 0.5) if guessed else None
        part = Scores(
            name, items[level][defined], values[defined, column], statistic, chance=chance
        )
        if level is None:
            whole, missing = part, items[level][~defined]
        elif defined.any():
            by.setdefault(level[0], {})[level[1]] = part
    return replace(whole, by=by, left_out=tuple(missing))
