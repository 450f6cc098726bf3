"""Subject-verb agreement: TSE over minimal pairs, EW and MW over contexts (Newman et al. 2021).

EW (equally weighted): the share of all verbs whose right form is more probable than the wrong
form: does the model conjugate any verb correctly? MW (model-weighted): the probability mass on
right forms divided by the mass on all forms: does it conjugate correctly what it is likely to say?
Both are computed by `lmdiag.models` while the distribution over the vocabulary is available; here
they are averaged. `ew_mw` is the literal definition for one context.

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

from lmdiag.measures.scores import Floats, Items, Scores, Statistic, floats, number_text, positions
from lmdiag.measures.trials import Trials, higher


class Cutoff(NamedTuple):
    """Part of the distribution whose verbs count.

    Attributes:
        end: "top" for the most probable tokens, "bottom" for the least probable ones.
        mass: cumulative probability up to which tokens are kept, from that end.
    """

    end: Literal["top", "bottom"]
    mass: float

    def __str__(self) -> str:
        return f"{self.end}={number_text(self.mass)}"


_TOP = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0)
_BOTTOM = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
CUTOFFS = (*(Cutoff("top", mass) for mass in _TOP), *(Cutoff("bottom", mass) for mass in _BOTTOM))
"""The cut-offs of the curves of the paper, top first."""

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


def agreement(trials: Trials) -> list[Scores]:
    """Returns tse, ew, mw and the values at every cut-off; what is not predicted is left out.

    Args:
        trials: predictions `log_prob` and `n_tokens` give TSE, `agreement` (one `AGREEMENT_LAYOUT`
            per row) gives EW and MW.
    """
    return [*tse(trials), *weighted(trials)]


def tse(trials: Trials) -> list[Scores]:
    """Returns sensitivity over the minimal pairs whose verbs are all single tokens."""
    if not trials.has("log_prob") or not trials.has("n_tokens"):
        return []
    contrasts = trials.contrasts
    several = floats(trials.predictions["n_tokens"]) != 1
    bad = np.bincount(contrasts.bad_of, several[contrasts.bad], minlength=len(contrasts.ids)) > 0
    verdict = higher(*contrasts.pairs(trials.log_prob))
    values = np.where(bad | several[contrasts.good], np.nan, verdict)
    scores = contrasts.build("tse", values, chance=contrasts.chance)
    # a pair with a verb of several tokens is outside the measure by definition, not left out of it
    return [replace(scores, left_out=())]


def weighted(trials: Trials) -> list[Scores]:
    """Returns EW and MW, over all verbs and at each cut-off, as means over distinct contexts.

    A context counts once, with the levels of its first pair; a break-down counts it once in each of
    its levels. A context without a kept verb is left out of a cut-off; `left_out@top=0.1` is their
    share, and `mass@top=0.1` the mean mass on the verb forms that count.
    """
    if not trials.has("agreement"):
        return []
    contexts = _distinct_contexts(trials)
    items = {level: trials.ids[where] for level, where in contexts.items()}
    tables = {
        level: _table(trials.predictions["agreement"], where) for level, where in contexts.items()
    }
    scores = [_column(name, items, tables, AGREEMENT_LAYOUT.index(name)) for name in ("ew", "mw")]
    for start, cutoff in enumerate(CUTOFFS):
        column = 2 + 3 * start
        scores += [
            _column(f"{name}@{cutoff}", items, tables, column + offset)
            for offset, name in enumerate(("ew", "mw", "mass"))
        ]
        missing = {level: np.isnan(values[:, [column]]) * 1.0 for level, values in tables.items()}
        scores.append(_column(f"left_out@{cutoff}", items, missing, 0, "proportion"))
    return scores


_Level = tuple[str, str] | None
"""A level as (break-down, level); None for all."""


def _distinct_contexts(trials: Trials) -> dict[_Level, NDArray[np.intp]]:
    """For all and for each level, the first good row of each of its distinct contexts."""
    rows = trials.rows
    right = [""] * len(rows["id"]) if trials.left_only else rows["right_context"]
    contexts = list(zip(rows["context"], right, strict=True))
    good = np.flatnonzero(np.array(rows["good"], dtype=bool))
    places: dict[_Level, NDArray[np.intp]] = {None: good}
    for column, labels in trials.levels.items():
        for level, where in positions(labels).items():
            places[column, level] = np.intersect1d(where, good, assume_unique=True)
    return {level: _first_of_each(contexts, where) for level, where in places.items()}


def _first_of_each(
    contexts: Sequence[tuple[str, str]], where: NDArray[np.intp]
) -> NDArray[np.intp]:
    first: dict[tuple[str, str], int] = {}
    for i in where.tolist():
        first.setdefault(contexts[i], i)
    return np.array(list(first.values()), dtype=np.intp)


def _table(agreement: Sequence[Sequence[float | None] | None], where: NDArray[np.intp]) -> Floats:
    """The values of some rows, (rows, len(AGREEMENT_LAYOUT)), NaN where undefined."""
    nothing = (None,) * len(AGREEMENT_LAYOUT)
    values = np.array([agreement[i] or nothing for i in where], dtype=np.float64)
    return values.reshape(len(where), len(AGREEMENT_LAYOUT))


def _column(
    name: str,
    items: Mapping[_Level, Items],
    tables: Mapping[_Level, Floats],
    column: int,
    statistic: Statistic = "share",
) -> Scores:
    """The scores of one column of the tables, with its levels as break-downs.

    Guessing between the two forms of a verb gives EW and MW of 1/2 at any cut-off.
    """
    has_chance = name.startswith(("ew", "mw"))
    by: dict[str, dict[str, Scores]] = {}
    for level, values in tables.items():
        defined = ~np.isnan(values[:, column])
        chance = np.full(int(defined.sum()), 0.5) if has_chance else None
        part = Scores(
            name, items[level][defined], values[defined, column], statistic, chance=chance
        )
        if level is None:
            whole, missing = part, items[level][~defined]
        elif defined.any():
            by.setdefault(level[0], {})[level[1]] = part
    return replace(whole, by=by, left_out=tuple(missing))
