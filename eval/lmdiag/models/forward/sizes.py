"""How much goes through a network at a time, by the type of its device.

No number depends on it, but for rounding. The sizes of processors were measured, so that work stays
in their caches; those of accelerators follow from their memory: `make bench ARGS="gpu"` measures
the others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of what is computed together.

    Attributes:
        budget: tokens in a batch, halved until they fit into memory.
        packs: whether rows are packed, if that leaves the numbers of the model alone.
        width: tokens in the longest packs. Longer ones gain less, since attention grows with the
            square.
        logits: logits that are held at a time for whole sentences.
        searched: the same for searches over words.
        normalised: distributions that are normalised at a time where a few items are wanted.
        entropies: distributions whose entropies are computed at a time.
    """

    budget: int
    packs: bool
    width: int
    logits: int
    searched: int
    normalised: int
    entropies: int


_BY_DEVICE = {
    "cpu": Sizes(
        budget=1536, packs=True, width=64, logits=2**26, searched=2**23, normalised=64, entropies=4
    )
}
_ACCELERATOR = Sizes(
    budget=16_384, packs=False, width=64, logits=2**29, searched=2**28, normalised=512,
    entropies=256,
)  # fmt: skip


def sizes_for(device: str) -> Sizes:
    """Returns the sizes for a type of device, e.g. "cuda"."""
    return _BY_DEVICE.get(device, _ACCELERATOR)
