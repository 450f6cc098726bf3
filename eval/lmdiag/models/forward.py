"""Rows through the model: distributions at the positions that are read, and nowhere else.

The projection to the vocabulary is most of the memory and, for small models, much of the time, so
all other positions are dropped before it: at a gate, the module from which on positions no longer
see each other. A model that projects otherwise (without the module that it names) projects
everywhere and is cut down afterwards. The softmax runs in float32 or better.

Rows go through together in one of four layouts. Which of them leaves the numbers alone depends on
the model, and is found out once by `layout.settle`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, cast

from lmdiag.models.lengths import choose_attention, short_limit, split
from lmdiag.models.packing import WIDTH, pack
from lmdiag.models.rows import Row

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

Layout = Literal["packed", "padded", "equal", "alone"]
Place = tuple[int, int]
"""Row of a batch and position in it."""


class Reader:
    """Reads distributions off a model.

    Args:
        model: in evaluation mode, on its device.
        pad: id that fills rows up; whichever, since it is masked.
        causal: whether a token sees those before it alone.

    Attributes:
        layout: packed (several rows side by side in one), padded (each row by itself, the shorter
            ones filled up on the right), equal (rows of the same length at a time) or alone (one
            row at a time).
        width: tokens in a packed row.
        gate: module that only the wanted positions go into, see `gates`; None for no such module.
        first_position: number of the first position, where positions are given.
        short_limit: longest row in tokens that the model reads as a short one, see `lengths`; None
            where the length makes no difference.
    """

    def __init__(
        self, model: PreTrainedModel, pad: int, *, causal: bool, first_position: int = 0
    ) -> None:
        self.model = model
        self.causal = causal
        self.layout: Layout = "padded"
        self.width = WIDTH
        self.gate: torch.nn.Module | None = None
        self.first_position = first_position
        self.short_limit = short_limit(model)
        self.accepted = frozenset(inspect.signature(model.forward).parameters)
        self._pad = pad
        choose_attention(model)

    def read(self, rows: Sequence[Row]) -> torch.Tensor:
        """Returns the log-probabilities (nats) at all reads of all rows, in order.

        Returns:
            (reads, vocabulary) on the model's device, float32 or the model's dtype if that is
            finer.
        """
        import torch

        rows = self.parts(rows)
        groups = self._groups(rows)
        parts = [self._read_together(rows, group) for group in groups]
        if len(parts) == 1:
            return parts[0]
        starts = [0]
        for row in rows:
            starts.append(starts[-1] + len(row.reads))
        order = [
            read for group in groups for n in group for read in range(starts[n], starts[n + 1])
        ]
        joined = torch.cat(parts)
        return torch.empty_like(joined).index_copy_(
            0, torch.tensor(order, device=joined.device), joined
        )

    def parts(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Returns the rows, cut where a causal model reads short and long ones differently."""
        if not self.causal or self.short_limit is None:
            return rows
        return [part for row in rows for part in split(row, self.short_limit)]

    def _groups(self, rows: Sequence[Row]) -> list[list[int]]:
        """Returns the numbers of the rows that go through the model together."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, row in enumerate(rows):
            long = self.short_limit is not None and len(row.ids) > self.short_limit
            key: tuple[int, ...] = ()
            if self.layout == "alone":
                key = (number,)
            elif self.layout == "equal" or long:
                key = (len(row.source), len(row.ids))
            elif self.layout == "packed":
                key = (len(row.ids) > self.width,)
            groups.setdefault(key, []).append(number)
        return list(groups.values())

    def whole(self, row: Row) -> torch.Tensor:
        """Returns the log-probabilities at all positions of a row that is read by itself.

        Returns:
            (tokens, vocabulary), see `read`.
        """
        inputs, _ = self.padded([row])
        return self.run(inputs, [(0, position) for position in range(len(row.ids))])

    def _read_together(self, rows: Sequence[Row], group: Sequence[int]) -> torch.Tensor:
        chosen = [rows[number] for number in group]
        packed = self.layout == "packed" and len(chosen[0].ids) <= self.width
        inputs, places = self.packed(chosen) if packed else self.padded(chosen)
        return self.run(inputs, places)

    def padded(self, rows: Sequence[Row]) -> tuple[dict[str, Any], list[Place]]:
        """Returns the model's inputs with each row by itself, and where its reads are."""
        inputs: dict[str, Any] = dict(self.fill([row.ids for row in rows]))
        if rows[0].source:
            inputs = {f"decoder_{name}": tensor for name, tensor in inputs.items()}
            inputs |= self._encoded([row.source for row in rows])
        return inputs, [(index, read) for index, row in enumerate(rows) for read in row.reads]

    def _encoded(self, sources: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Returns a decoder's inputs about the encoder, which reads each distinct source once."""
        distinct = {source: number for number, source in enumerate(dict.fromkeys(sources))}
        encoder = self.encode([*distinct])
        return select(encoder, [distinct[source] for source in sources])

    def encode(self, sources: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Has the encoder read sources; returns what a decoder's inputs say about them."""
        import torch

        inputs = {name: value.to(self.device) for name, value in self.fill(sources).items()}
        with torch.inference_mode():
            outputs = self.model.get_encoder()(**inputs)
        return {"encoder_outputs": outputs, "attention_mask": inputs["attention_mask"]}

    def packed(self, rows: Sequence[Row]) -> tuple[dict[str, Any], list[Place]]:
        """Returns the model's inputs with several rows in one, and where their reads are."""
        import numpy as np
        import torch

        packs, placed = pack([row.ids for row in rows], self.width, causal=self.causal)
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
        places = [
            (index, tokens[read])
            for row, (index, tokens) in zip(rows, placed, strict=True)
            for read in row.reads
        ]
        return inputs, places

    def run(self, inputs: Mapping[str, Any], places: Sequence[Place]) -> torch.Tensor:
        """Runs the model once.

        Args:
            inputs: its arguments; those that it does not take are left out, tensors are moved to
                its device.
            places: of the distributions that are wanted.

        Returns:
            (places, vocabulary) log-probabilities in nats, see `read`.
        """
        import torch

        arguments = {
            name: each.to(self.device) if isinstance(each, torch.Tensor) else each
            for name, each in inputs.items()
        }
        arguments["use_cache"] = "past_key_values" in inputs
        arguments = {name: value for name, value in arguments.items() if name in self.accepted}
        index = torch.tensor(places).T
        with torch.inference_mode(), self._gathering(index) as gathered:
            logits = self.model(**arguments).logits
            logits = logits[0] if gathered else _take(logits, index)
            dtype = torch.promote_types(logits.dtype, torch.float32)
            return logits.log_softmax(-1, dtype=dtype)

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go; accelerate moves them on where weights are offloaded."""
        import torch

        home = cast("torch.Tensor", self.model.get_input_embeddings().weight).device
        return torch.device("cpu") if home.type == "meta" else home

    def fill(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Returns `input_ids` and `attention_mask` of rows filled up on the right."""
        import torch

        width = max(map(len, rows))
        ids = [[*row, *[self._pad] * (width - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    @contextmanager
    def _gathering(self, index: torch.Tensor) -> Iterator[list[bool]]:
        """Has the gate see the wanted positions only.

        Yields:
            a list that is no longer empty once that has happened.
        """
        happened: list[bool] = []
        if self.gate is None:
            yield happened
            return

        def gather(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            happened.append(True)
            return tuple(_take(states, index)[None] for states in inputs)

        handle = self.gate.register_forward_pre_hook(gather)
        try:
            yield happened
        finally:
            handle.remove()


def gates(model: PreTrainedModel) -> Iterator[torch.nn.Module]:
    """Yields the modules that might be a model's gate, the one that saves most first.

    BERT's kin close their attention with a module of its own that adds the residual. After the last
    one nothing mixes positions, so that even the last layer need not be computed elsewhere. All
    models but a few have the projection to the vocabulary.
    """
    closing = [each for each in model.modules() if type(each).__name__.endswith("SelfOutput")]
    yield from closing[-1:]
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is not None:
        yield head


def select(encoded: Mapping[str, Any], numbers: Sequence[int]) -> dict[str, Any]:
    """Returns the inputs of `Reader.encode` for some of its sources, in the order of their numbers.

    The encoder's output keeps its class, since decoders of mixtures of experts look for more in it
    than the states.
    """
    import torch

    outputs = copy.copy(encoded["encoder_outputs"])
    states, mask = outputs.last_hidden_state, encoded["attention_mask"]
    index = torch.tensor(numbers)
    outputs.last_hidden_state = states[index.to(states.device)]
    return {"encoder_outputs": outputs, "attention_mask": mask[index.to(mask.device)]}


def _take(states: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Returns (places, features) of (rows, positions, features)."""
    rows, positions = index.to(states.device)
    return states[rows, positions]
