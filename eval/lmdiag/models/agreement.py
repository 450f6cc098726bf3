"""EW and MW of a context, from the whole distribution at its blank (docs/specification.md, 4).

With label = the right number: EW is the share of verbs whose right form is more probable than the
wrong one, MW the mass on right forms over the mass on all forms (Newman et al. 2021). With a
cut-off, the vocabulary is sorted by probability, tokens are kept from one end until their
cumulative mass reaches it, and the two values are interpolated linearly there, between the last
token before it and the first at or past it. In the top a verb counts for EW if either form is kept,
and for MW only kept forms count; in the bottom both forms must be kept.

All contexts, cut-offs and verbs are computed at once, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

TOP_CUTOFFS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0)
BOTTOM_CUTOFFS = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
"""Cut-offs of the paper's curves; a test compares them with those of `lmdiag.measures`."""

_ELEMENTS = 2**20
"""Vocabulary items that are sorted at a time, to bound the memory."""


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
        labels = torch.tensor(plural, device=log_probs.device)
        chunk = max(1, _ELEMENTS // log_probs.shape[-1])
        chunks = zip(torch.split(log_probs, chunk), torch.split(labels, chunk), strict=True)
        values = torch.cat([self._values(some, label) for some, label in chunks])
        return [
            tuple(None if value != value else value for value in row)  # NaN
            for row in values.tolist()
        ]

    def _values(self, log_probs: torch.Tensor, plural: torch.Tensor) -> torch.Tensor:
        """Returns (contexts, values), NaN where undefined."""
        both = torch.stack([self.plural, self.singular]).to(log_probs.device)
        ids = torch.where(plural[:, None, None], both, both.flip(0))  # right forms, wrong forms
        p = log_probs.gather(-1, ids.flatten(1)).double().exp().view_as(ids)
        ordered, rank = sort_vocabulary(log_probs, ids.flatten(1))
        mass, rank = ordered.double().exp(), rank.view_as(ids)
        size = torch.full((len(mass), 1), mass.shape[-1], device=mass.device)
        whole = _tally(p, rank, size, both_forms=False)
        top = _cut(mass, TOP_CUTOFFS[:-1], p, rank, both_forms=False)
        last = mass.shape[-1] - 1
        bottom = _cut(mass.flip(-1), BOTTOM_CUTOFFS, p, last - rank, both_forms=True)
        cuts = torch.cat([top, whole, bottom], dim=1)  # a top cut-off of 1 keeps the whole
        return torch.cat([whole[:, 0, :2], cuts.flatten(1)], dim=-1)


def sort_vocabulary(
    log_probs: torch.Tensor, ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the vocabulary from the most to the least probable item, and some items' places.

    Equally probable items are in the order of their ids. In float32, value and id are put into one
    integer, which sorts in less than half the time of a stable sort and leaves no ties: the bits of
    floats of one sign, read as integers, are in the order of the floats.

    Args:
        log_probs: (contexts, vocabulary), nats, none above 0.
        ids: (contexts, items).

    Returns:
        (contexts, vocabulary) nats, descending, and (contexts, items) places in it, from 0.
    """
    everything = torch.arange(log_probs.shape[-1], device=log_probs.device)
    if log_probs.dtype != torch.float32:
        ordered, order = log_probs.sort(dim=-1, descending=True, stable=True)
        places = torch.empty_like(order).scatter_(-1, order, everything.expand_as(order))
        return ordered, places.gather(-1, ids)
    keys = (log_probs.abs().view(torch.int32).long() << 32) | everything
    wanted = keys.gather(-1, ids)
    if keys.device.type == "cpu":  # NumPy is faster: in place, the rows shared by the threads
        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            list(threads.map(lambda row: row.sort(), keys.numpy()))
    else:
        keys = keys.sort(dim=-1).values
    return -(keys >> 32).int().view(torch.float32), torch.searchsorted(keys, wanted)


def _cut(
    mass: torch.Tensor,
    cutoffs: Sequence[float],
    p: torch.Tensor,
    rank: torch.Tensor,
    *,
    both_forms: bool,
) -> torch.Tensor:
    """Returns EW, MW and mass at each cut-off, (contexts, cut-offs, 3).

    Args:
        mass: (contexts, vocabulary) probabilities, sorted from the end that is kept.
        cutoffs: cumulative masses.
        p: (contexts, 2, verbs) probabilities of right and wrong forms.
        rank: (contexts, 2, verbs) places of the forms in `mass`.
        both_forms: whether a verb counts only if both of its forms are kept.
    """
    cumulative = mass.cumsum(-1)
    wanted = torch.tensor(cutoffs, dtype=mass.dtype, device=mass.device).expand(len(mass), -1)
    at = torch.searchsorted(cumulative, wanted.contiguous()).clamp(max=mass.shape[-1] - 1)
    tally = _tally(p, rank, torch.cat([at, at + 1], dim=1), both_forms=both_forms)
    before, past = tally.chunk(2, dim=1)
    step = mass.gather(-1, at)
    share = (wanted - (cumulative.gather(-1, at) - step)) / step
    return torch.where(before.isnan(), past, before + share[:, :, None] * (past - before))


def _tally(
    p: torch.Tensor, rank: torch.Tensor, sizes: torch.Tensor, *, both_forms: bool
) -> torch.Tensor:
    """Returns EW, MW and mass, (contexts, cut-offs, 3), over the forms among so many tokens.

    `sizes` is (contexts, cut-offs), see `_cut` for the others; NaN if no verb is kept.
    """
    verb = rank.amax(1) if both_forms else rank.amin(1)  # the place from which on a verb counts
    right_rank, wrong_rank = (verb, verb) if both_forms else rank.unbind(1)
    better = (p[:, 0] > p[:, 1]).double()
    verbs = _sum_kept(torch.stack([better, torch.ones_like(better)], dim=-1), verb, sizes)
    right = _sum_kept(p[:, 0, :, None], right_rank, sizes)
    mass = right + _sum_kept(p[:, 1, :, None], wrong_rank, sizes)
    values = torch.cat([verbs[..., :1] / verbs[..., 1:], right / mass, mass], dim=-1)
    return torch.where(mass > 0, values, torch.nan)


def _sum_kept(values: torch.Tensor, rank: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Returns (contexts, cut-offs, quantities): sums of (contexts, verbs, quantities) below."""
    return (rank[:, None] < sizes[:, :, None]).double() @ values
