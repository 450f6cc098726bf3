"""Where cut-offs on cumulative probability divide a vocabulary, and which items each of them keeps.

The vocabulary is sorted as plain values: sorting it with its ids takes twice the time, and the
order of equally probable items, which is that of their ids, is needed only where such items are at
a cut-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Counts = NDArray[np.int8]

_ELEMENTS, _ELEMENTS_ON_CPU = 2**22, 2**17
"""Vocabulary items that are sorted at a time: what bounds the memory, and what suits a cache."""


@dataclass(frozen=True)
class Cuts:
    """The item at each cut-off: the first at or past it.

    Attributes:
        places: (contexts, cut-offs) number of items before it, from the most probable one.
        nats: (contexts, cut-offs) its log-probability.
        starts, ends: (contexts, cut-offs) places of the first item that is as probable, and of the
            first that is less probable.
        shares: (contexts, cut-offs) part of its mass that reaches the cut-off, float64.
    """

    places: torch.Tensor
    nats: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor
    shares: torch.Tensor


def find_cuts(log_probs: torch.Tensor, top: Sequence[float], bottom: Sequence[float]) -> Cuts:
    """Finds the items at cut-offs from the most and from the least probable item.

    Args:
        log_probs: (contexts, vocabulary), nats.
        top, bottom: cumulative masses, summed in float64 from that end; top ones come first.
    """
    elements = _ELEMENTS_ON_CPU if log_probs.device.type == "cpu" else _ELEMENTS
    rows = min(len(log_probs), max(1, elements // log_probs.shape[-1]))
    costs = torch.empty_like(log_probs[:rows])
    mass, cumulative = (torch.empty_like(costs, dtype=torch.float64) for _ in range(2))
    wanted = mass.new_tensor([*top, *bottom])
    last, parts = costs.shape[-1] - 1, []
    for some in torch.split(log_probs, rows):
        costs, mass, cumulative = (x[: len(some)] for x in (costs, mass, cumulative))
        _sort(torch.neg(some, out=costs))
        mass.copy_(costs).neg_().exp_()
        at, reached = _reach(torch.cumsum(mass, -1, out=cumulative), top)
        at_end, end_reached = _reach(torch.cumsum(mass.flip(-1), -1, out=cumulative), bottom)
        places = torch.cat([at, last - at_end], dim=1)
        cost = costs.gather(-1, places)
        starts, ends = (torch.searchsorted(costs, cost, right=right) for right in (False, True))
        sums = torch.cat([reached, end_reached], dim=1)
        parts.append((places, cost, starts, ends, sums, mass.gather(-1, places)))
    places, cost, starts, ends, sums, step = map(torch.cat, zip(*parts, strict=True))
    return Cuts(places, -cost, starts, ends, (wanted - (sums - step)) / step)


def count_passed(cuts: Cuts, log_probs: torch.Tensor, ids: torch.Tensor) -> tuple[Counts, Counts]:
    """Returns how many of the items at the cut-offs come before some items of the vocabulary.

    Args:
        cuts: of these contexts.
        log_probs: (contexts, vocabulary), nats.
        ids: (contexts, items).

    Returns:
        two arrays (contexts, items): how many come before the item, and how many come before it or
        are the item itself.
    """
    nats = log_probs.gather(-1, ids)
    before, up_to = _count_below(-cuts.nats, -nats)
    several = cuts.ends - cuts.starts > 1
    for row in several.any(-1).nonzero()[:, 0].tolist():
        starts, first = np.unique(cuts.starts[row, several[row]].cpu().numpy(), return_index=True)
        values = cuts.nats[row, several[row]][first, None]
        equal = nats[row] == values
        if equal.any():  # equally probable items are in the order of their ids
            which, items = equal.nonzero().cpu().numpy().T
            same = (log_probs[row] == values).cumsum(-1, dtype=torch.int32)
            places = torch.from_numpy(starts[which] - 1) + same[which, ids[row, items]].cpu()
            exact = _count_below(cuts.places[row], places)
            before[row, items], up_to[row, items] = exact
    return before, up_to


def _sort(costs: torch.Tensor) -> None:
    """Sorts each row in place; on the CPU, NumPy takes a tenth of the time."""
    if costs.device.type == "cpu":
        costs.numpy().sort(axis=-1)
    else:
        costs.copy_(costs.sort(dim=-1).values)


def _reach(cumulative: torch.Tensor, wanted: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the place of the first item at or past each cumulative mass, and the mass there."""
    masses = cumulative.new_tensor(wanted).repeat(len(cumulative), 1)
    at = torch.searchsorted(cumulative, masses).clamp_(max=cumulative.shape[-1] - 1)
    return at, cumulative.gather(-1, at)


def _count_below(cuts: torch.Tensor, items: torch.Tensor) -> tuple[Counts, Counts]:
    """Returns how many values of a row of `cuts` are below each item, and below or equal."""
    values = items.cpu().numpy()
    below, up_to = np.zeros(values.shape, np.int8), np.zeros(values.shape, np.int8)
    for cut in np.moveaxis(cuts.cpu().numpy(), -1, 0)[..., None]:
        below += cut < values
        up_to += cut <= values
    return below, up_to
