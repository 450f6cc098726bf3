"""EW and MW of one context, literally by the definition of Newman et al. (2021)."""

import math

from lmdiag.measures import AGREEMENT_LAYOUT, CUTOFFS


def ew_mw(probabilities, pairs, cutoff=None):
    """Returns EW, MW and the mass that counts; NaN where no verb is kept.

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
    """
    enough = 2 if cutoff and cutoff.end == "bottom" else 1

    def values(kept):
        """When exactly these items are kept."""
        counted = [pair for pair in pairs if sum(form in kept for form in pair) >= enough]
        right = sum(probabilities[pair[0]] for pair in counted if pair[0] in kept)
        mass = right + sum(probabilities[pair[1]] for pair in counted if pair[1] in kept)
        if not counted or mass == 0:
            return math.nan, math.nan, math.nan
        ew = sum(probabilities[a] > probabilities[b] for a, b in counted) / len(counted)
        return ew, right / mass, mass

    if cutoff is None or cutoff == ("top", 1.0):
        return values(probabilities)
    order = sorted(probabilities, key=lambda token: -probabilities[token])
    if cutoff.end == "bottom":
        order.reverse()
    before, cumulative = 0, 0.0
    while before < len(order) and cumulative + probabilities[order[before]] < cutoff.mass:
        cumulative += probabilities[order[before]]
        before += 1
    last, first = values({*order[:before]}), values({*order[: before + 1]})
    if math.isnan(last[0]) or before >= len(order):
        return first
    share = (cutoff.mass - cumulative) / probabilities[order[before]]
    ew, mw, mass = (a + share * (b - a) for a, b in zip(last, first, strict=True))
    return ew, mw, mass


def literal(p, verbs):
    """Every value of a context, over all verbs and at every cut-off; NaN where undefined.

    Args:
        p: probability of every token.
        verbs: ids of the right and the wrong form of every verb.
    """
    words = {str(token): value for token, value in enumerate(p)}
    pairs = [(str(right), str(wrong)) for right, wrong in verbs]
    values = [*ew_mw(words, pairs)[:2]]
    for cutoff in CUTOFFS:
        values += ew_mw(words, pairs, cutoff)
    return dict(zip(AGREEMENT_LAYOUT, values, strict=True))
