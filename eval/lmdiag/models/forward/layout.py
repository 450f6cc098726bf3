"""How rows may go through a model together without changing its numbers: tried once per model.

Position schemes, convolutions, state-space recurrences and Fourier mixing differ in which positions
influence each other. So instead of relying on a list of families, a few contexts are read one at a
time, by the plain model, and then together in each layout; the fastest layout that gives the same
numbers is used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.activations import FastGELUActivation, NewGELUActivation

from lmdiag.models.forward.causality import check_causality
from lmdiag.models.forward.reader import Reader, RowLayout
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.types import BadInput, Query, Question

PROBES = (
    Question(Query("The old man said that it was a"), ("house", "wheelbarrow", "wheelhouse")),
    Question(Query("The old dog had a"), ("home", "philosophy")),
)
"""Two contexts of different length that begin alike, with words of several pieces."""

_SHORT_PROBE = Question(Query("It is a"), ())
"""For models of very few positions."""

_ROUNDING = 100.0
"""Tolerance, in units of the dtype's epsilon times the largest value."""

_COARSE_ROUNDING = 8.0
"""The same for half precision, where 100 units would accept anything."""

_NARROWEST = 16
"""Packs of fewer tokens gain nothing."""

_packing: dict[Hashable, tuple[int, str | None]] = {}
"""Model that reads packs -> their width and the name of its gate, see `choose_layout`."""


def choose_layout(
    reader: Reader,
    encoder: QuestionEncoder,
    packing: str,
    model_id: str,
    *,
    is_as_loaded: bool = False,
) -> None:
    """Sets the reader's layout: the first of packed, padded, equal and alone that is exact.

    Packing is tried on processors, which gain by it, and in float32 or better, where rounding does
    not hide an error. A model that cannot read the probes, since they are too long for it, reads
    rows of one length and projects everything.

    Checkpoints of one model differ in their weights alone. Where the first one reads packs, the
    others are tried on one row: alone, and at all positions in a pack with the other rows.

    Args:
        reader: its `layout`, `width` and `gate` are set.
        encoder: makes rows of the probes.
        packing: auto, always (also on accelerators and in half precision) or never.
        model_id: for messages.
        is_as_loaded: whether class and configuration say all about the model but its weights.

    Raises:
        BadInput: packing is asked for and changes the model's numbers, or a causal model sees to
            the right.
    """
    rows = reader.parts(_probes(encoder, PROBES))
    key = (_class_of(reader), packing, *rows) if is_as_loaded else None
    if key in _packing and _packs_again(reader, rows, *_packing[key]):
        return
    tried = rows or _probes(encoder, (_SHORT_PROBE,))
    whole = [reader.whole(row) for row in tried]
    if tried and not encoder.masked:
        check_causality(reader, tried, whole, model_id)
    if not rows:
        reader.layout = "equal"
        return
    alone = torch.cat([nats[list(row.reads)] for row, nats in zip(rows, whole, strict=True)])
    _fuse_gelu(reader.model)
    _open_gate(reader, rows, whole)
    limits = (reader.width, reach(reader.model.config), reader.short_limit)
    reader.width = min(limit for limit in limits if limit is not None)
    if packing != "never" and _may_pack(reader, packing):
        reader.layout = "packed"
        if _agrees(reader, lambda: reader.read(rows), alone):
            if key is not None:
                _packing[key] = (reader.width, _name(reader.model, reader.gate))
            return
    if packing == "always":
        raise BadInput(
            f"model {model_id} cannot read several contexts in one row, or gives other numbers "
            "then: leave --packing always out"
        )
    reader.layout = _without_packs(reader, rows, alone)


def _without_packs(reader: Reader, rows: Sequence[TokenRow], alone: torch.Tensor) -> RowLayout:
    """Returns the first of padded, equal and alone that is exact."""
    reader.layout = "padded"
    mixes = reader.model.config.model_type == "fnet"  # positions, padded ones too, by design
    if not mixes and _agrees(reader, lambda: reader.read(rows), alone):
        return "padded"
    reader.layout = "equal"
    twice = torch.cat([alone, alone])
    return "equal" if _agrees(reader, lambda: reader.read([*rows, *rows]), twice) else "alone"


def _class_of(reader: Reader) -> Hashable:
    """Identifies what a model's class and configuration say, which is all but its weights."""
    model = reader.model
    config = model.config.to_dict()
    config.pop("_name_or_path", None)
    attention = getattr(model.config, "_attn_implementation", None)  # not in the dictionary
    place = model.dtype, str(reader.device), reader.first_position
    return type(model), reader.causal, repr(config), attention, *place


def _name(model: PreTrainedModel, module: torch.nn.Module | None) -> str | None:
    return next((name for name, each in model.named_modules() if each is module), None)


def _packs_again(reader: Reader, rows: Sequence[TokenRow], width: int, gate: str | None) -> bool:
    """Sets a layout that is known; returns whether the shortest row has the same numbers in a pack.

    They differ if a causal model sees to the right, too: in a pack, no token sees later ones.
    """
    row, *others = sorted(rows, key=lambda row: len(row.ids))
    alone = reader.whole(row)
    _fuse_gelu(reader.model)
    reader.layout, reader.width = "packed", width
    reader.gate = None if gate is None else reader.model.get_submodule(gate)
    every = replace(row, reads=tuple(range(len(row.ids))))
    if _agrees(reader, lambda: reader.read([every, *others])[: len(alone)], alone):
        return True
    reader.reset()
    return False


def same(reader: Reader, one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two sets of log-probabilities differ by no more than the rounding of the dtype.

    NaN equals NaN here: a broken model is refused with the context that it cannot answer.

    Args:
        reader: has the model.
        one, other: (reads, vocabulary), nats.
    """
    epsilon = max(torch.finfo(reader.model.dtype).eps, torch.finfo(torch.float32).eps)
    steps = _ROUNDING if _is_fine(reader) else _COARSE_ROUNDING
    scale = max(1.0, float(other.nan_to_num(0.0, 0.0, 0.0).abs().max()))
    if one.shape != other.shape:  # a gate that is called otherwise than by position
        return False
    return torch.allclose(one, other, rtol=0.0, atol=steps * epsilon * scale, equal_nan=True)


def reach(config: PretrainedConfig) -> int | None:
    """Returns how far apart two tokens may be that see each other in every layer; None: any.

    The mask of a pack replaces a sliding window, so that packs must fit into it.
    """
    text = config.get_text_config()
    windows = [getattr(text, name, None) for name in ("sliding_window", "window_size")]
    local = getattr(text, "local_attention", None)  # both sides together (ModernBERT)
    windows.append(local // 2 if local else None)
    return min((int(window) for window in windows if window), default=None)


def gates(model: PreTrainedModel) -> Iterator[torch.nn.Module]:
    """Yields the modules that might be a model's gate, the one that saves most first.

    The attention of BERT and its relatives ends with a module that adds the residual. After the
    last one nothing mixes positions, so that the rest of the last layer is computed only where it
    is wanted. Almost all models have the projection to the vocabulary.
    """
    closing = [m for m in model.modules() if type(m).__name__.endswith("SelfOutput")]
    yield from closing[-1:]
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is not None:
        yield head


def _fuse_gelu(model: PreTrainedModel) -> None:
    """Replaces the tanh form of GELU, which transformers computes in seven operations, by one.

    It takes 7% off the time of gpt2. Without it the last bits of all its numbers would change.
    """
    if model.device.type == "cpu" and model.dtype == torch.float32:
        for name, module in [*model.named_modules()]:
            if isinstance(module, NewGELUActivation | FastGELUActivation):
                model.set_submodule(name, torch.nn.GELU(approximate="tanh"))


def _open_gate(reader: Reader, rows: Sequence[TokenRow], whole: Sequence[torch.Tensor]) -> None:
    """Sets the first gate that gives the numbers of the rows alone; None if none does.

    A model that pads long inputs by itself cuts the padding again after the gate, so that only the
    projection is possible.
    """
    projection = reader.model.get_output_embeddings()  # type: ignore[no-untyped-call]
    for gate in gates(reader.model):
        reader.gate = gate
        suits = reader.short_limit is None or gate is projection
        if suits and _gate_is_exact(reader, rows, whole):
            return
    reader.gate = None


def _gate_is_exact(reader: Reader, rows: Sequence[TokenRow], whole: Sequence[torch.Tensor]) -> bool:
    """Whether the reader's gate leaves the numbers of all rows alone.

    The positions are read in reverse order, and there are more of them than a row is long: some
    models count the rows behind the gate (XMOD) or cut off positions beyond the length of a row
    (LUKE), and a module after which positions still see each other would not have all of them in
    their order. All rows are read at once; if padding changes numbers, each is read by itself,
    beside a copy of which one position is read again and again.
    """
    backwards = [list(reversed(range(len(row.ids)))) for row in rows]
    every = [(index, position) for index, some in enumerate(backwards) for position in some]
    if _reads(reader, rows, every, torch.cat([nats.flip(0) for nats in whole])):
        return True
    for row, positions, right in zip(rows, backwards, whole, strict=True):
        again = [row.reads[-1]] * len(positions)
        both = [(0, position) for position in positions] + [(1, position) for position in again]
        if not _reads(reader, [row, row], both, right[positions + again]):
            return False
    return True


def _reads(
    reader: Reader,
    rows: Sequence[TokenRow],
    reads: Sequence[tuple[int, int]],
    expected: torch.Tensor,
) -> bool:
    """Whether padded rows have the expected numbers at (row, position) of each read."""
    return _agrees(reader, lambda: reader.run(reader.padded(rows)[0], reads), expected)


def _agrees(reader: Reader, read: Callable[[], torch.Tensor], expected: torch.Tensor) -> bool:
    """Whether the model runs at all and gives the expected numbers."""
    try:
        log_probs = read()
    except Exception:  # models raise anything for masks or states that they do not expect
        return False
    return same(reader, log_probs, expected)


def _probes(encoder: QuestionEncoder, questions: Sequence[Question]) -> list[TokenRow]:
    """Returns some rows of each probe; none if the model cannot read as many tokens.

    The rows of a probe differ in their length; those of a masked model in nothing else.
    """
    most = 1 if encoder.masked else 2
    try:
        return [row for question in questions for row in encoder.encode(question).rows[:most]]
    except BadInput:
        return []


def _may_pack(reader: Reader, packing: str) -> bool:
    suits = _is_fine(reader) and reader.device.type == "cpu"
    attention = getattr(reader.model.config, "_attn_implementation", None)
    return (
        (suits or packing == "always")
        and reader.width >= _NARROWEST
        and attention in (None, "eager", "sdpa")
        and {"attention_mask", "position_ids"} <= reader.accepted
    )


def _is_fine(reader: Reader) -> bool:
    """Whether the model computes in float32 or better."""
    return torch.finfo(reader.model.dtype).eps <= torch.finfo(torch.float32).eps
