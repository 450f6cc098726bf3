"""EW and MW of a context, from the whole distribution at its blank (docs/specification.md, 4).

With label = the right number: EW is the share of verbs whose right form is more probable than the
wrong one, MW the mass on right forms over the mass on all forms (Newman et al. 2021). With a
cut-off, the vocabulary is sorted by probability, tokens are kept from one end until their
cumulative mass reaches it, and the two values are interpolated linearly there, between the last
token before it and the first at or past it. In the top a verb counts for EW if either form is kept,
and for MW only kept forms count; in the bottom both forms must be kept.

Only the items at the cut-offs depend on the whole vocabulary. It is sorted without its ids and
summed up on the model's device, in float64. All else depends on the forms and these items, and is
computed on the CPU: which cut-offs a form lies between decides where it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lmdiag.models.cutoffs import Counts, count_passed, find_cuts

TOP_CUTOFFS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0)
BOTTOM_CUTOFFS = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
"""Cut-offs of the paper's curves; a test compares them with those of `lmdiag.measures`."""

_AT_ONCE = 32
"""Contexts whose values are computed together, to bound the memory."""

_N_CUTS = len(TOP_CUTOFFS) - 1 + len(BOTTOM_CUTOFFS)

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verbs:
    """Verbs whose two forms are both single tokens.

    Attributes:
        singular: (verbs,) ids of the forms that go with a singular subject.
        plural: (verbs,) ids of the forms that go with a plural one.
    """

    singular: torch.Tensor
    plural: torch.Tensor

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]]) -> Verbs:
        """Makes them of (singular, plural) ids."""
        singular, plural = torch.tensor(pairs, dtype=torch.long).view(-1, 2).T
        return cls(singular, plural)

    def __len__(self) -> int:
        return len(self.singular)

    def agreement(
        self, log_probs: torch.Tensor, plural: Sequence[bool]
    ) -> list[tuple[float | None, ...]]:
        """Returns the values of some contexts, in the order of `measures.AGREEMENT_LAYOUT`.

        Args:
            log_probs: (contexts, vocabulary), nats.
            plural: for each context, whether the plural forms are the right ones.

        Returns:
            for each context EW and MW of all verbs, then EW, MW and mass at each top and each
            bottom cut-off; None if no verb is kept.

        The toy example of the paper's text, with the verbs are/is and exist/exists:

        >>> toy = torch.tensor([[0.6, 0.05, 0.1, 0.25]], dtype=torch.float64).log()
        >>> ew, mw, *_ = Verbs.of([(1, 0), (3, 2)]).agreement(toy, [True])[0]
        >>> round(ew, 12), round(mw, 12)
        (0.5, 0.7)
        """
        labels = torch.split(torch.tensor(plural), _AT_ONCE)
        chunks = zip(torch.split(log_probs, _AT_ONCE), labels, strict=True)
        values = np.concatenate([self._values(some, label) for some, label in chunks])
        return [
            tuple(None if value != value else value for value in row)  # NaN
            for row in values.tolist()
        ]

    def _values(self, log_probs: torch.Tensor, plural: torch.Tensor) -> _Floats:
        """Returns (contexts, values), NaN where undefined."""
        both = torch.cat([self.plural, self.singular]), torch.cat([self.singular, self.plural])
        ids = torch.where(plural[:, None], *both).to(log_probs.device)  # right forms, wrong forms
        forms = log_probs.gather(-1, ids).double().exp().cpu().numpy()
        cuts = find_cuts(log_probs, TOP_CUTOFFS[:-1], BOTTOM_CUTOFFS)
        before, up_to = (_Tally(forms, n) for n in count_passed(cuts, log_probs, ids))
        columns = cuts.places.argsort(-1).argsort(-1).cpu().numpy()
        top, bottom = np.split(columns, [len(TOP_CUTOFFS) - 1], axis=1)
        without_item = np.concatenate([up_to.top(top), before.bottom(bottom)], axis=1)
        with_item = np.concatenate([before.top(top), up_to.bottom(bottom)], axis=1)
        step = cuts.shares.cpu().numpy()[:, :, None] * (with_item - without_item)
        cut = np.where(np.isnan(without_item), with_item, without_item + step)
        whole = before.top(np.full((len(ids), 1), _N_CUTS))  # a top cut-off of 1 keeps the whole
        cut = np.insert(cut, [top.shape[1]], whole, axis=1)
        return np.concatenate([whole[:, 0, :2], cut.reshape(len(ids), -1)], axis=1)


class _Tally:
    """EW, MW and mass over the forms that are kept at each cut-off.

    The cut-offs are in the order of their items: a form is kept in the top at those whose items it
    comes before, and in the bottom at the others. So each sum is a cumulative one, from either end,
    over the number of items that come before a form.

    Args:
        forms: (contexts, 2 * verbs) probabilities, the right forms first.
        passed: (contexts, 2 * verbs) how many of the items come before each form.
    """

    def __init__(self, forms: _Floats, passed: Counts) -> None:
        right, wrong = np.split(forms, 2, axis=1)
        n, m = np.split(passed + np.arange(len(forms))[:, None] * (_N_CUTS + 1), 2, axis=1)
        first = np.minimum(n, m)  # of the two forms of a verb
        verbs = [_histogram(first), _histogram(first, right > wrong)]
        self._top = [*verbs, _histogram(n, right), _histogram(m, wrong)]
        self._bottom = [*verbs, _histogram(first, right), _histogram(first, wrong)]

    def top(self, columns: NDArray[np.int64]) -> _Floats:
        """Returns (contexts, columns, 3): a verb counts if either form is kept."""
        return _values(np.cumsum(self._top, axis=-1), columns)

    def bottom(self, columns: NDArray[np.int64]) -> _Floats:
        """Returns the same: a verb counts if both forms are kept."""
        return _values(np.cumsum(np.flip(self._bottom, -1), axis=-1), _N_CUTS - 1 - columns)


def _histogram(bins: NDArray[np.int64], weights: NDArray[Any] | None = None) -> _Floats:
    """Returns (contexts, cut-offs + 1): sums of the weights, 1 each if None, in verbs' order."""
    size = len(bins) * (_N_CUTS + 1)
    sums = np.bincount(bins.ravel(), None if weights is None else weights.ravel(), size)
    return sums.reshape(len(bins), _N_CUTS + 1).astype(np.float64, copy=False)


def _values(sums: _Floats, columns: NDArray[np.int64]) -> _Floats:
    """Returns EW, MW and mass at some columns; NaN if no verb is kept."""
    number, better, right, wrong = np.take_along_axis(sums, columns[None], axis=-1)
    mass = right + wrong
    with np.errstate(invalid="ignore"):
        values = np.stack([better / number, right / mass, mass], axis=-1)
    return np.where(mass[:, :, None] > 0, values, np.nan)
