"""EW and MW of one context, literally by the definition of Newman et al. (2021), for tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from lmdiag.measures import Cutoff


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
        return _kept_ew_mw(probabilities, pairs, set(probabilities), "top")
    order = sorted(probabilities, key=lambda token: -probabilities[token])
    if cutoff.end == "bottom":
        order.reverse()
    before, cumulative = 0, 0.0
    while before < len(order) and cumulative + probabilities[order[before]] < cutoff.mass:
        cumulative += probabilities[order[before]]
        before += 1
    last = _kept_ew_mw(probabilities, pairs, set(order[:before]), cutoff.end)
    first = _kept_ew_mw(probabilities, pairs, set(order[: before + 1]), cutoff.end)
    if math.isnan(last[0]) or before >= len(order):
        return first
    share = (cutoff.mass - cumulative) / probabilities[order[before]]
    ew, mw, mass = (a + share * (b - a) for a, b in zip(last, first, strict=True))
    return ew, mw, mass


def _kept_ew_mw(
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
