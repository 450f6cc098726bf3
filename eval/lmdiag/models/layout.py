"""How rows may go through a model together without changing its numbers: tried once per model.

Position schemes, convolutions, state-space recurrences and Fourier mixing all have their own idea
of neighbours. So instead of a list of families, a few contexts are read one at a time, by the plain
model, and then together in each layout; the fastest layout that gives the same numbers is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.models.causality import check_causality
from lmdiag.models.forward import gates
from lmdiag.models.kernels import quicken
from lmdiag.models.rows import Asker, Row
from lmdiag.schema import BadInput, Query, Question

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

    from lmdiag.models.forward import Reader

PROBES = (
    Question(Query("The old man said that it was a"), ("house", "wheelbarrow", "wheelhouse")),
    Question(Query("The old dog had a"), ("home", "philosophy")),
)
"""Two contexts of unlike length that begin alike, with words of several pieces."""

SHORT_PROBE = Question(Query("It is a"), ())
"""For models of very few positions."""

ROUNDING = 100.0
"""Differences that pass for rounding: so many times the dtype's epsilon, by the largest value."""

COARSE_ROUNDING = 8.0
"""The same for half precision, where 100 steps would pass anything."""

NARROWEST = 16
"""Packs of fewer tokens gain nothing."""


def settle(reader: Reader, asker: Asker, packing: str, model_id: str) -> None:
    """Finds the reader's layout: the first of packed, padded, equal and alone that is exact.

    Packing is tried on processors, which gain by it, and in float32 or better, where rounding does
    not hide an error.

    A model that cannot read the probes, since they are too long for it, is asked with all care:
    rows of one length, everything projected.

    Args:
        reader: its `layout`, `width` and `gate` are set.
        asker: makes rows of the probes.
        packing: auto, always (also on accelerators and in half precision) or never.
        model_id: for messages.

    Raises:
        BadInput: packing is asked for and changes the model's numbers, or a model that is asked
            from left to right sees to the right.
    """
    import torch

    reader.gate = None
    rows = reader.parts(_probes(asker, PROBES))
    tried = rows or _probes(asker, (SHORT_PROBE,))
    whole = [reader.whole(row) for row in tried]
    if tried and (reader.causal or tried[0].source):
        check_causality(reader, tried[0], whole[0], model_id)
    if not rows:
        reader.layout = "equal"
        return
    alone = torch.cat([each[list(row.reads)] for row, each in zip(rows, whole, strict=True)])
    quicken(reader.model)
    _open_gate(reader, rows, whole)
    limits = (reader.width, reach(reader.model.config), reader.short_limit)
    reader.width = min(limit for limit in limits if limit is not None)
    if packing != "never" and _may_pack(reader, packing):
        reader.layout = "packed"
        if _tries(reader, rows, alone):
            return
    if packing == "always":
        raise BadInput(
            f"model {model_id} cannot read several contexts in one row, or gives other numbers "
            "then: leave --packing always out"
        )
    _choose_rows(reader, rows, alone)


def _choose_rows(reader: Reader, rows: Sequence[Row], alone: torch.Tensor) -> None:
    """Sets the layout of a model that is not packed: which rows are read together."""
    import torch

    reader.layout = "padded"
    mixes = reader.model.config.model_type == "fnet"  # positions, padded ones too, by design
    if not mixes and _tries(reader, rows, alone):
        return
    reader.layout = "equal"
    if not _tries(reader, [*rows, *rows], torch.cat([alone, alone])):
        reader.layout = "alone"


def _open_gate(reader: Reader, rows: Sequence[Row], whole: Sequence[torch.Tensor]) -> None:
    """Sets the first gate that gives the numbers of the rows alone; None if none does.

    A model that pads long inputs by itself cuts that off again, so that it has the projection only.

    Args:
        reader: its `gate` is set.
        rows: the probes.
        whole: (tokens, vocabulary) log-probabilities of each row alone.
    """
    projection = reader.model.get_output_embeddings()  # type: ignore[no-untyped-call]
    for gate in gates(reader.model):
        reader.gate = gate
        suits = reader.short_limit is None or gate is projection
        if suits and _pass(reader, rows, whole):
            return
    reader.gate = None


def _pass(reader: Reader, rows: Sequence[Row], whole: Sequence[torch.Tensor]) -> bool:
    """Whether the reader's gate leaves the numbers of all rows alone.

    The positions are read in reverse order, and there are more of them than a row is long: some
    models count the rows behind the gate (XMOD) or cut off positions beyond the length of a row
    (LUKE), and a module after which positions still see each other would not have them all, or not
    in their places. All rows are read at once; where filling them up changes numbers, each is read
    by itself, beside a copy of which one position is read again and again.
    """
    import torch

    backwards = [list(reversed(range(len(row.ids)))) for row in rows]
    every = [(index, position) for index, each in enumerate(backwards) for position in each]
    if _passes(reader, rows, every, torch.cat([each.flip(0) for each in whole])):
        return True
    for row, positions, right in zip(rows, backwards, whole, strict=True):
        again = [row.reads[-1]] * len(positions)
        places = [(0, position) for position in positions] + [(1, position) for position in again]
        if not _passes(reader, [row, row], places, right[positions + again]):
            return False
    return True


def _passes(
    reader: Reader, rows: Sequence[Row], places: Sequence[tuple[int, int]], right: torch.Tensor
) -> bool:
    """Whether rows in one batch have the right numbers at places, (row, position) each."""
    try:
        inputs, _ = reader.padded(rows)
        found = reader.run(inputs, places)
    except Exception:  # whatever a model raises that does not know such states
        return False
    return same(reader, found, right)


def _probes(asker: Asker, questions: Sequence[Question]) -> list[Row]:
    """Returns some rows of each probe; none if the model cannot read as many tokens."""
    try:
        return [row for question in questions for row in asker.encode(question).rows[:2]]
    except BadInput:
        return []


def reach(config: PretrainedConfig) -> int | None:
    """Returns how far apart two tokens may lie that see each other in every layer; None: any.

    A mask of one's own takes the place of a sliding window, so that packs must fit into it.
    """
    text = config.get_text_config()
    windows = [getattr(text, name, None) for name in ("sliding_window", "window_size")]
    local = getattr(text, "local_attention", None)  # both sides together (ModernBERT)
    windows.append(local // 2 if local else None)
    return min((int(window) for window in windows if window), default=None)


def _may_pack(reader: Reader, packing: str) -> bool:
    suits = _is_fine(reader) and reader.device.type == "cpu"
    attention = getattr(reader.model.config, "_attn_implementation", None)
    return (
        (suits or packing == "always")
        and reader.width >= NARROWEST
        and attention in (None, "eager", "sdpa")
        and {"attention_mask", "position_ids"} <= reader.accepted
    )


def _tries(reader: Reader, rows: Sequence[Row], alone: torch.Tensor) -> bool:
    """Whether the reader, as it is set, runs at all and gives the numbers of each row alone."""
    try:
        together = reader.read(rows)
    except Exception:  # whatever a model raises that does not know such masks or such states
        return False
    return same(reader, together, alone)


def same(reader: Reader, one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two sets of log-probabilities differ by no more than the model's dtype rounds.

    NaN equals NaN here: a broken model is refused with the context that it cannot answer.

    Args:
        reader: has the model.
        one, other: (reads, vocabulary), nats.
    """
    import torch

    epsilon = max(torch.finfo(reader.model.dtype).eps, torch.finfo(torch.float32).eps)
    steps = ROUNDING if _is_fine(reader) else COARSE_ROUNDING
    largest = other.nan_to_num(0.0, 0.0, 0.0).abs().max()
    scale = max(1.0, float(largest))
    if one.shape != other.shape:  # a gate that is called otherwise than by position
        return False
    return torch.allclose(one, other, rtol=0.0, atol=steps * epsilon * scale, equal_nan=True)


def _is_fine(reader: Reader) -> bool:
    """Whether the model computes in float32 or better."""
    import torch

    return torch.finfo(reader.model.dtype).eps <= torch.finfo(torch.float32).eps
