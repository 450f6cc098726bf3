"""EW and MW of a context, from the whole distribution at its blank (docs/specification.md, 4).

The vocabulary is sorted as plain values, since sorting it with its ids takes several times as long:
a form's rank follows from its own value, and from the ids of equal values where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmdiag.types import BOTTOM_CUTOFFS, TOP_CUTOFFS

if TYPE_CHECKING:
    import torch

_AT_ONCE = 8
"""Contexts whose vocabulary is sorted together, to bound the memory."""

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def agreement_values(
    verbs: Sequence[tuple[int, int]], log_probs: torch.Tensor, plural: Sequence[bool]
) -> list[tuple[float | None, ...]]:
    """Returns the values of some contexts, in the order of `measures.AGREEMENT_LAYOUT`.

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
    forms = np.array(verbs, dtype=np.int64).reshape(-1, 2).T
    values: list[tuple[float | None, ...]] = []
    for start in range(0, len(log_probs), _AT_ONCE):
        chunk = log_probs[start : start + _AT_ONCE]
        on_cpu = chunk.device.type == "cpu"  # where NumPy sorts in a tenth of the time
        ascending = np.sort(chunk.numpy()) if on_cpu else chunk.sort().values.cpu().numpy()
        for nats, ordered in zip(chunk.cpu().numpy(), ascending, strict=True):
            right_first = forms[::-1] if plural[len(values)] else forms
            values.append(values_of_distribution(nats, ordered, right_first))
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
    return tuple(None if value != value else value for value in values)


def _values(nats: NDArray[np.floating], ascending: NDArray[np.floating], forms: _Ints) -> _Floats:
    """Returns the measures of agreement of one context in the order of `values_of_distribution`.

    NaN where a measure is undefined, as no form is among the words above a cut-off.

    Args:
        nats: (n,) log-probability of each item of the vocabulary.
        ascending: the same, sorted.
        forms: (2, n_verbs) numbers of the forms of verbs in the vocabulary, right ones first.
    """
    size = len(nats)
    ranks = _ranks(nats, ascending, forms)
    probabilities = np.exp(nats[forms].astype(np.float64))
    mass = np.exp(ascending.astype(np.float64))
    bottom_ranks, bottom_shares = _cut(mass, BOTTOM_CUTOFFS)
    top_ranks, top_shares = _cut(mass[::-1], TOP_CUTOFFS[:-1])
    bottom = size - bottom_ranks  # the number of items before those that are kept
    whole_values = _kept(probabilities, ranks, np.array([size]), top=True)
    # A cut-off lies within an item: its values are between those without and with this item, by
    # the part of the item's mass that is below the cut-off.
    without_item = np.concatenate([
        _kept(probabilities, ranks, top_ranks, top=True),
        _kept(probabilities, ranks, bottom, top=False),
    ])  # fmt: skip
    with_item = np.concatenate([
        _kept(probabilities, ranks, top_ranks + 1, top=True),
        _kept(probabilities, ranks, bottom - 1, top=False),
    ])  # fmt: skip
    added = np.concatenate([top_shares, bottom_shares])[:, None] * (with_item - without_item)
    cut_values = np.where(np.isnan(without_item), with_item, without_item + added)
    cut_values = np.insert(
        cut_values, len(top_ranks), whole_values, axis=0
    )  # a top cut-off of 1 keeps the whole
    return np.concatenate([whole_values[0, :2], cut_values.ravel()])


def _ranks(nats: NDArray[np.floating], ascending: NDArray[np.floating], forms: _Ints) -> _Ints:
    """Returns how many items come before each form: more probable ones, and equal ones by id."""
    ids = np.unique(forms)
    ids = ids[nats[ids].argsort()]  # values in their order are found several times as fast
    n_up_to = np.searchsorted(ascending, nats[ids], side="right")
    ranks = np.empty(len(nats), dtype=np.int64)  # of the forms alone
    ranks[ids] = len(nats) - n_up_to
    for form in ids[(n_up_to > 1) & (ascending[n_up_to - 2] == nats[ids])]:
        ranks[form] += np.count_nonzero(nats[:form] == nats[form])
    return ranks[forms]


def _cut(mass: _Floats, cutoffs: Sequence[float]) -> tuple[_Ints, _Floats]:
    """Returns the item at which each cut-off lies, and how much of its mass is below the cut-off.

    Args:
        mass: probabilities of the items, in the order in which they are kept.
        cutoffs: cumulative probabilities.

    Returns:
        the number of the item, (cut-offs,), and the part of its mass from 0 to 1, (cut-offs,).
    """
    cumulative = np.cumsum(mass)
    item_at_cutoff = np.searchsorted(cumulative, cutoffs).clip(max=len(mass) - 1)
    item = mass[item_at_cutoff]
    return item_at_cutoff, (np.array(cutoffs) - (cumulative[item_at_cutoff] - item)) / item


def _kept(probabilities: _Floats, ranks: _Ints, cuts: _Ints, *, top: bool) -> _Floats:
    """Returns (cut-offs, 3) EW, MW and mass over the forms before or from some ranks.

    Args:
        probabilities: (2, verbs), the right forms first.
        ranks: (2, verbs) of the forms.
        cuts: (cut-offs,) ranks at which the items are cut.
        top: whether forms before the cut are kept, and a verb counts for EW if either is; else
            verbs both of whose forms are at the cut or after it. NaN if no verb is kept.
    """
    if top:
        right, wrong = ((form < cuts[:, None]) for form in ranks)
        verbs = right | wrong
    else:
        verbs = right = wrong = ranks.min(0) >= cuts[:, None]
    better = probabilities[0] > probabilities[1]
    on_right = right @ probabilities[0]
    mass = on_right + wrong @ probabilities[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.stack([verbs @ better.astype(float) / verbs.sum(1), on_right / mass, mass], 1)
    return np.where(mass[:, None] > 0, values, np.nan)
