"""EW and MW of a context, from the whole distribution at its blank (docs/specification.md, 4).

The vocabulary is sorted as plain values, since sorting it with its ids takes several times as long:
a form's rank follows from its own value, and from the ids of equal values where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmdiag.types import BOTTOM_CUTOFFS, TOP_CUTOFFS

if TYPE_CHECKING:
    import torch

_CONTEXTS_AT_ONCE = 8
"""Contexts whose vocabulary is sorted together, to bound the memory."""

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def agreement_values(
    verbs: Sequence[tuple[int, int]], log_probs: torch.Tensor, plural: Sequence[bool]
) -> list[tuple[float | None, ...]]:
    """Returns the values of some contexts, in the order of `measures.AGREEMENT_LAYOUT`.

    EW is the share of the verbs whose right form is more probable than the wrong one, MW the share
    of the probability of all forms that is on the right ones.

    Args:
        verbs: ids of the forms that go with a singular subject and with a plural one, of verbs
            whose two forms are both single tokens.
        log_probs: (contexts, vocabulary), nats.
        plural: for each context, whether the plural forms are the right ones.

    Returns:
        for each context EW and MW of all verbs, then EW, MW and mass at each top and each bottom
        cut-off; None if no verb is kept.

    The toy example of the paper's text, with the verbs are/is and exist/exists:

    >>> import torch
    >>> toy = torch.tensor([[0.6, 0.05, 0.1, 0.25]], dtype=torch.float64).log()
    >>> ew, mw, *_ = agreement_values([(1, 0), (3, 2)], toy, [True])[0]
    >>> round(ew, 12), round(mw, 12)
    (0.5, 0.7)
    """
    forms = np.array(verbs, dtype=np.int64).reshape(-1, 2).T  # row 0: singular, row 1: plural
    values: list[tuple[float | None, ...]] = []
    for start in range(0, len(log_probs), _CONTEXTS_AT_ONCE):
        chunk = log_probs[start : start + _CONTEXTS_AT_ONCE]
        if chunk.device.type == "cpu":  # NumPy sorts in a tenth of the time
            ascending = np.sort(chunk.numpy())
        else:
            ascending = chunk.sort().values.cpu().numpy()
        for offset, nats in enumerate(chunk.cpu().numpy()):
            right_first = forms[::-1] if plural[start + offset] else forms
            values.append(values_of_distribution(nats, ascending[offset], right_first))
    return values


def values_of_distribution(
    nats: NDArray[np.floating], ascending: NDArray[np.floating], forms: _Ints
) -> tuple[float | None, ...]:
    """Returns the values of one context, see `agreement_values`.

    Args:
        nats: (vocabulary,) log-probabilities.
        ascending: the same in ascending order.
        forms: (2, verbs) ids, the right forms first.
    """
    values = _values(nats, ascending, forms).tolist()
    return tuple(None if math.isnan(value) else value for value in values)


def _values(nats: NDArray[np.floating], ascending: NDArray[np.floating], forms: _Ints) -> _Floats:
    """Returns the measures of agreement of one context in the order of `AGREEMENT_LAYOUT`.

    These are EW and MW over all forms, then EW, MW and mass at each top and each bottom cut-off.
    NaN where a measure is undefined, since a cut-off keeps no form.

    Args:
        nats: (vocabulary,) log-probability of each item.
        ascending: the same values, sorted.
        forms: (2, verbs) ids of the verbs' forms, right ones in row 0, wrong ones in row 1.
    """
    size = len(nats)
    ranks = _ranks(nats, ascending, forms)
    probabilities = np.exp(nats[forms].astype(np.float64))
    mass = np.exp(ascending.astype(np.float64))
    n_kept_below, bottom_shares = _items_at_cutoffs(mass, BOTTOM_CUTOFFS)
    top_ranks, top_shares = _items_at_cutoffs(mass[::-1], TOP_CUTOFFS[:-1])
    bottom_ranks = size - n_kept_below  # ranks count from the most probable item
    # (1, 3) of all forms: the rank `size` is after all of them
    whole_values = _values_of_kept(probabilities, ranks, np.array([size]), top=True)
    # A cut-off lies within an item: its values are between those without and with this item, by
    # the part of the item's mass that is below the cut-off.
    without_item = np.concatenate([
        _values_of_kept(probabilities, ranks, top_ranks, top=True),
        _values_of_kept(probabilities, ranks, bottom_ranks, top=False),
    ])  # fmt: skip
    with_item = np.concatenate([
        _values_of_kept(probabilities, ranks, top_ranks + 1, top=True),
        _values_of_kept(probabilities, ranks, bottom_ranks - 1, top=False),
    ])  # fmt: skip
    added = np.concatenate([top_shares, bottom_shares])[:, None] * (with_item - without_item)
    # where no form is kept without the item, the values are those with the item
    cut_values = np.where(np.isnan(without_item), with_item, without_item + added)
    # The last top cut-off, 1, keeps all items; its values stand before those of the bottom ones.
    cut_values = np.insert(cut_values, len(top_ranks), whole_values, axis=0)
    return np.concatenate([whole_values[0, :2], cut_values.ravel()])


def _ranks(nats: NDArray[np.floating], ascending: NDArray[np.floating], forms: _Ints) -> _Ints:
    """Returns how many items come before each form: more probable ones, and equal ones by id.

    Args:
        nats: (vocabulary,) log-probabilities.
        ascending: the same values, sorted.
        forms: (2, verbs) ids of the forms, as the result.
    """
    ids = np.unique(forms)
    ids = ids[nats[ids].argsort()]  # searchsorted is several times as fast for sorted values
    n_up_to = np.searchsorted(ascending, nats[ids], side="right")  # items at most as probable
    ranks = np.empty(len(nats), dtype=np.int64)  # filled for the forms alone
    ranks[ids] = len(nats) - n_up_to
    # `ascending[n_up_to - 1]` is the form's own value: an equal one before it is another item's
    is_tied = (n_up_to > 1) & (ascending[n_up_to - 2] == nats[ids])
    for form in ids[is_tied]:
        ranks[form] += np.count_nonzero(nats[:form] == nats[form])
    return ranks[forms]


def _items_at_cutoffs(mass: _Floats, cutoffs: Sequence[float]) -> tuple[_Ints, _Floats]:
    """Returns the item at which each cut-off lies, and how much of its mass is below the cut-off.

    For example, of the masses .5, .3, .2 the cut-off .65 lies at item 1, half of which is below.

    Args:
        mass: probabilities of the items, in the order in which they are kept.
        cutoffs: cumulative probabilities.

    Returns:
        the number of the item, (cut-offs,), and the part of its mass from 0 to 1, (cut-offs,).
    """
    cumulative = np.cumsum(mass)
    # rounding may leave the last cumulative mass below a cut-off
    item_at_cutoff = np.searchsorted(cumulative, cutoffs).clip(max=len(mass) - 1)
    item_mass = mass[item_at_cutoff]
    mass_before_item = cumulative[item_at_cutoff] - item_mass
    return item_at_cutoff, (np.array(cutoffs) - mass_before_item) / item_mass


def _values_of_kept(probabilities: _Floats, ranks: _Ints, cuts: _Ints, *, top: bool) -> _Floats:
    """Returns EW, MW and mass over the forms that are kept at each cut, (cuts, 3).

    NaN where no verb is kept.

    Args:
        probabilities: (2, verbs), the right forms first.
        ranks: (2, verbs) of the forms.
        cuts: (cuts,) ranks at which the items are cut.
        top: keep the forms before the cut; a verb counts for EW if either of its forms is kept.
            If false, keep the verbs both of whose forms are at the cut or after it.
    """
    # each of the three is (cuts, verbs)
    if top:
        keeps_right, keeps_wrong = ((form_ranks < cuts[:, None]) for form_ranks in ranks)
        keeps_verb = keeps_right | keeps_wrong
    else:
        keeps_verb = keeps_right = keeps_wrong = ranks.min(0) >= cuts[:, None]
    prefers_right = (probabilities[0] > probabilities[1]).astype(float)
    right_mass = keeps_right @ probabilities[0]
    mass = right_mass + keeps_wrong @ probabilities[1]
    with np.errstate(invalid="ignore", divide="ignore"):  # no verb is kept
        ew = keeps_verb @ prefers_right / keeps_verb.sum(1)
        mw = right_mass / mass
    values = np.stack([ew, mw, mass], 1)
    return np.where(mass[:, None] > 0, values, np.nan)
