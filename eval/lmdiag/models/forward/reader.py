"""Rows through the network: distributions at the positions that are read, and nowhere else.

The projection to the vocabulary takes most of the memory and, for small models, much of the time,
so all other positions are dropped before it: at a gate, the module from which on positions no
longer see each other. A model that projects otherwise projects everywhere and is cut afterwards.
The softmax runs in float32 or better.

Rows go through together in one of four layouts. `layout.choose_layout` tries once per model which
of them leaves the numbers unchanged.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Literal, cast

import numpy as np
import torch
from transformers import PreTrainedModel

from lmdiag.models.forward.lengths import choose_attention, short_limit, split
from lmdiag.models.forward.packing import PACK_WIDTH, pack
from lmdiag.models.tokens.questions import TokenRow

_AT_ONCE = 64
"""Distributions that are normalised at a time where only some of their items are wanted."""

RowLayout = Literal["packed", "padded", "equal", "alone"]


class Reader:
    """Reads distributions of a model.

    Args:
        model: in evaluation mode, on its device.
        pad: id that fills up short rows; any id that has an embedding, since it is masked.
        causal: whether a token sees only the tokens before it.

    Attributes:
        layout: packed (several rows side by side in one), padded (each row by itself, the shorter
            ones filled up on the right), equal (rows of one length at a time) or alone (one row at
            a time).
        width: tokens in a packed row.
        gate: module that only the wanted positions go into; None for no such module.
        first_position: number of the first position, where positions are given.
        short_limit: longest row in tokens that the model reads as a short one, see `lengths`; None
            if the length makes no difference.
    """

    def __init__(
        self, model: PreTrainedModel, pad: int, *, causal: bool, first_position: int = 0
    ) -> None:
        self.model = model
        self.causal = causal
        self.reset()
        self.first_position = first_position
        self.short_limit = short_limit(model)
        self.accepted = frozenset(inspect.signature(model.forward).parameters)
        self._pad = pad
        choose_attention(model)

    def reset(self) -> None:
        """Forgets the layout that was chosen."""
        self.layout: RowLayout = "padded"
        self.width = PACK_WIDTH
        self.gate: torch.nn.Module | None = None

    def again(self) -> Reader:
        """Returns a reader of the same model whose layout is not chosen yet."""
        other = copy.copy(self)
        other.reset()
        return other

    def read(self, rows: Sequence[TokenRow]) -> torch.Tensor:
        """Returns the log-probabilities (nats) at all reads of all rows, in order.

        Returns:
            (reads, vocabulary) on the model's device, float32 or the model's dtype if that is
            finer.
        """
        groups = self._in_groups(rows)
        return _in_order(groups, [self.run(*self._inputs(group)) for group, _ in groups])

    def score(
        self,
        rows: Sequence[TokenRow],
        wanted: Sequence[int],
        end: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Returns the log-probability (nats) of one item at each read of all rows, in order.

        A position that several packed rows share is projected once.

        Args:
            rows: the inputs.
            wanted: id of the item at each read.
            end: makes one number of each distribution, (reads, vocabulary) -> (reads,), which
                becomes a second column; None for one column.

        Returns:
            (reads, 1 or 2) on the model's device.
        """
        groups, parts = self._in_groups(rows), []
        for group, numbers in groups:
            inputs, reads = self._inputs(group)
            distinct = {read: place for place, read in enumerate(dict.fromkeys(reads))}
            logits = self._logits(inputs, [*distinct])
            places = torch.tensor([distinct[read] for read in reads], device=logits.device)
            items = torch.tensor([wanted[number] for number in numbers], device=logits.device)
            parts.append(_chosen(logits, places, items, end))
        return _in_order(groups, parts)

    def _in_groups(self, rows: Sequence[TokenRow]) -> list[tuple[list[TokenRow], list[int]]]:
        """The rows that go through the model together, with the numbers of their reads."""
        rows = self.parts(rows)
        starts = [0, *accumulate(len(row.reads) for row in rows)]
        return [
            (
                [rows[number] for number in group],
                [n for number in group for n in range(*starts[number : number + 2])],
            )
            for group in self._groups(rows)
        ]

    def parts(self, rows: Sequence[TokenRow]) -> Sequence[TokenRow]:
        """Returns the rows, cut where a causal model reads short and long ones differently."""
        if not self.causal or self.short_limit is None:
            return rows
        return [part for row in rows for part in split(row, self.short_limit)]

    def _groups(self, rows: Sequence[TokenRow]) -> list[list[int]]:
        """Returns the numbers of the rows that go through the model together."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, row in enumerate(rows):
            key: tuple[int, ...] = ()
            if self.layout == "alone":
                key = (number,)
            elif self.layout == "equal" or len(row.ids) > (self.short_limit or len(row.ids)):
                key = (len(row.source), len(row.ids))
            elif self.layout == "packed":
                key = (len(row.ids) > self.width,)
            groups.setdefault(key, []).append(number)
        return list(groups.values())

    def _inputs(self, rows: Sequence[TokenRow]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
        """The model's inputs for rows of one group, and (row, position) of the reads."""
        packed = self.layout == "packed" and len(rows[0].ids) <= self.width
        return self.packed(rows) if packed else self.padded(rows)

    def whole(self, row: TokenRow) -> torch.Tensor:
        """Returns the (tokens, vocabulary) log-probabilities at all positions of a single row."""
        inputs, _ = self.padded([row])
        return self.run(inputs, [(0, position) for position in range(len(row.ids))])

    def padded(self, rows: Sequence[TokenRow]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
        """Returns the model's inputs with each row by itself, and (row, position) of the reads."""
        inputs: dict[str, Any] = dict(self.fill([row.ids for row in rows]))
        if rows[0].source:
            inputs = {f"decoder_{name}": tensor for name, tensor in inputs.items()}
            sources = {row.source: None for row in rows}
            numbers = {source: number for number, source in enumerate(sources)}
            inputs |= select_sources(self.encode([*sources]), [numbers[row.source] for row in rows])
        return inputs, [(index, read) for index, row in enumerate(rows) for read in row.reads]

    def encode(self, sources: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Has the encoder read sources; returns what a decoder's inputs say about them."""
        inputs = {name: value.to(self.device) for name, value in self.fill(sources).items()}
        with torch.inference_mode():
            outputs = self.model.get_encoder()(**inputs)
        return {"encoder_outputs": outputs, "attention_mask": inputs["attention_mask"]}

    def packed(self, rows: Sequence[TokenRow]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
        """Returns the model's inputs with several rows in one, and (row, position) of the reads."""
        packs, places = pack([row.ids for row in rows], self.width, causal=self.causal)
        width = max(len(one.ids) for one in packs)
        sees = torch.from_numpy(np.stack([one.sees(width) for one in packs]))
        mask = torch.zeros(sees.shape, dtype=self.model.dtype)
        mask.masked_fill_(~sees, torch.finfo(self.model.dtype).min)
        positions = [
            [self.first_position + depth for depth in one.depths] + [0] * (width - len(one.ids))
            for one in packs
        ]
        inputs = {
            "input_ids": self.fill([one.ids for one in packs])["input_ids"],
            "attention_mask": mask[:, None],
            "position_ids": torch.tensor(positions),
        }
        reads = [
            (index, tokens[read])
            for row, (index, tokens) in zip(rows, places, strict=True)
            for read in row.reads
        ]
        return inputs, reads

    def run(self, inputs: Mapping[str, Any], reads: Sequence[tuple[int, int]]) -> torch.Tensor:
        """Runs the model once.

        Args:
            inputs: its arguments; tensors are moved to its device, unknown arguments left out.
            reads: (row, position) of the distributions that are wanted.

        Returns:
            (reads, vocabulary) log-probabilities in nats, see `read`.
        """
        with torch.inference_mode():
            logits = self._logits(inputs, reads)
            return logits.log_softmax(-1, dtype=_fine(logits))

    def _logits(self, inputs: Mapping[str, Any], reads: Sequence[tuple[int, int]]) -> torch.Tensor:
        """The (reads, vocabulary) logits; see `run`."""
        arguments = {
            name: value.to(self.device) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }
        arguments["use_cache"] = "past_key_values" in inputs
        arguments = {name: value for name, value in arguments.items() if name in self.accepted}
        index = torch.tensor(reads).T
        with torch.inference_mode(), self._gathering(index) as gathered:
            logits = self.model(**arguments).logits
            return logits[0] if gathered else _take(logits, index)

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go; accelerate moves them on where weights are offloaded."""
        device = cast("torch.Tensor", self.model.get_input_embeddings().weight).device
        return torch.device("cpu") if device.type == "meta" else device

    def fill(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Returns `input_ids` and `attention_mask` of rows filled up on the right."""
        width = max(map(len, rows))
        ids = [[*row, *[self._pad] * (width - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    @contextmanager
    def _gathering(self, index: torch.Tensor) -> Iterator[list[bool]]:
        """Has the gate see the wanted positions only; the list is not empty once it has run."""
        happened: list[bool] = []

        def gather(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            happened.append(True)
            return tuple(_take(states, index)[None] for states in inputs)

        gate = self.gate
        handle = None if gate is None else gate.register_forward_pre_hook(gather)
        try:
            yield happened
        finally:
            if handle is not None:
                handle.remove()


def select_sources(encoded: Mapping[str, Any], numbers: Sequence[int]) -> dict[str, Any]:
    """Returns the result of `Reader.encode` for some of its sources, in the order of their numbers.

    The encoder's output keeps its class: decoders of mixtures of experts need more of it than the
    states.
    """
    outputs = copy.copy(encoded["encoder_outputs"])
    states, mask = outputs.last_hidden_state, encoded["attention_mask"]
    index = torch.tensor(numbers)
    outputs.last_hidden_state = states[index.to(states.device)]
    return {"encoder_outputs": outputs, "attention_mask": mask[index.to(mask.device)]}


@torch.inference_mode()
def _chosen(
    logits: torch.Tensor,
    places: torch.Tensor,
    items: torch.Tensor,
    end: Callable[[torch.Tensor], torch.Tensor] | None,
) -> torch.Tensor:
    """Returns the log-probabilities of some items; see `Reader.score`.

    A few distributions are normalised at a time: they stay in the processor's cache, and no second
    table of the size of the logits is allocated.

    Args:
        logits: (positions, vocabulary).
        places, items: position and id of each read, (reads,).
        end: makes a second column.
    """
    columns = 1 if end is None else 2
    values = torch.empty(len(places), columns, dtype=_fine(logits), device=logits.device)
    for start in range(0, len(logits), _AT_ONCE):
        log_probs = logits[start : start + _AT_ONCE].log_softmax(-1, dtype=values.dtype)
        own = ((places >= start) & (places < start + _AT_ONCE)).nonzero()[:, 0]
        values[own, 0] = log_probs[places[own] - start, items[own]]
        if end is not None:
            values[own, 1] = end(log_probs)[places[own] - start]
    return values


def _fine(logits: torch.Tensor) -> torch.dtype:
    """The type in which distributions are normalised: float32, or that of the model if finer."""
    return torch.promote_types(logits.dtype, torch.float32)


def _in_order(
    groups: Sequence[tuple[list[TokenRow], list[int]]], parts: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Joins what was read in groups, in the order of the reads."""
    if len(parts) == 1:
        return parts[0]
    joined = torch.cat([*parts])
    order = torch.tensor([number for _, numbers in groups for number in numbers])
    return joined[order.to(joined.device).argsort()]


def _take(states: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Returns (reads, features) of (rows, positions, features)."""
    rows, positions = index.to(states.device)
    return states[rows, positions]
