"""Subject-verb agreement: TSE over minimal pairs, EW and MW over contexts (Newman et al. 2021).

EW (equally weighted): the share of all verbs whose right form is more probable than the wrong
form: does the model conjugate any verb correctly? MW (model-weighted): the probability mass on
right forms divided by the mass on all forms: does it conjugate correctly what it is likely to say?
Both are computed by `lmdiag.models` while the distribution over the vocabulary is available; here
they are averaged.

Source: Newman, Ang, Gong and Hewitt (2021), sections on EW, MW and on high and low probability
verbs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.scores import Floats, Scores, Statistic, floats, number_text, positions
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
    undefined = (None,) * len(AGREEMENT_LAYOUT)
    rows = [row or undefined for row in trials.predictions["agreement"]]
    columns = dict(zip(AGREEMENT_LAYOUT, np.array(rows, dtype=np.float64).T, strict=True))
    parts = _distinct_contexts(trials)
    scores = [_means(trials, parts, name, columns[name]) for name in ("ew", "mw")]
    for cutoff in CUTOFFS:
        names = (f"ew@{cutoff}", f"mw@{cutoff}", f"mass@{cutoff}")
        scores += [_means(trials, parts, name, columns[name]) for name in names]
        missing = np.isnan(columns[names[0]]).astype(np.float64)
        scores.append(_means(trials, parts, f"left_out@{cutoff}", missing, "proportion"))
    return scores


_Parts = dict[tuple[str, str] | None, NDArray[np.intp]]
"""(break-down, level), None for all -> rows."""


def _distinct_contexts(trials: Trials) -> _Parts:
    """For all and for each level, the first good row of each of its distinct contexts."""
    rows = trials.rows
    right = [""] * len(rows["id"]) if trials.left_only else rows["right_context"]
    contexts = list(zip(rows["context"], right, strict=True))
    good = np.flatnonzero(np.array(rows["good"], dtype=bool))
    parts: _Parts = {None: good}
    for column, labels in trials.levels.items():
        for level, where in positions(labels).items():
            parts[column, level] = np.intersect1d(where, good, assume_unique=True)
    for part, where in parts.items():
        first: dict[tuple[str, str], int] = {}
        for row in where.tolist():
            first.setdefault(contexts[row], row)
        parts[part] = np.array([*first.values()], dtype=np.intp)
    return parts


def _means(
    trials: Trials, parts: _Parts, name: str, values: Floats, statistic: Statistic = "share"
) -> Scores:
    """The scores of a value of contexts, with the levels as break-downs.

    Guessing between the two forms of a verb gives EW and MW of 1/2 at any cut-off.
    """
    chance = np.full(len(values), 0.5) if name.startswith(("ew", "mw")) else None
    rows = Scores(name, trials.ids, values, statistic, chance=chance)
    known = {part: where[~np.isnan(values[where])] for part, where in parts.items()}
    by: dict[str, dict[str, Scores]] = {}
    for part, where in known.items():
        if part and len(where):
            by.setdefault(part[0], {})[part[1]] = rows.take(where)
    missing = parts[None][np.isnan(values[parts[None]])]
    return replace(rows.take(known[None]), by=by, left_out=tuple(trials.ids[missing]))
