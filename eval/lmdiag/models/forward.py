"""Rows through the model: distributions at the positions that are read, and nowhere else.

The projection to the vocabulary is most of the memory and, for small models, much of the time, so a
hook on it drops all other positions first; a model that projects otherwise (without the module that
it names) projects everywhere and is cut down afterwards. The softmax runs in float32 or better.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from lmdiag.models.rows import Row

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class Reader:
    """Reads distributions off a model.

    Args:
        model: in evaluation mode, on its device.
        pad: id that fills rows up; whichever, since it is masked.
    """

    def __init__(self, model: PreTrainedModel, pad: int) -> None:
        self.model = model
        self._pad = pad
        self._accepted = frozenset(inspect.signature(model.forward).parameters)

    def read(self, rows: Sequence[Row]) -> torch.Tensor:
        """Returns the log-probabilities (nats) at all reads of all rows, in order.

        Returns:
            (reads, vocabulary) on the model's device, float32 or the model's dtype if that is
            finer.
        """
        return self._padded(rows)

    def _padded(self, rows: Sequence[Row]) -> torch.Tensor:
        """Reads rows as they are, the shorter ones filled up on the right."""
        inputs = self._fill([row.ids for row in rows])
        if rows[0].source:
            inputs = {f"decoder_{name}": tensor for name, tensor in inputs.items()}
            inputs |= self._fill([row.source for row in rows])
        places = [(index, read) for index, row in enumerate(rows) for read in row.reads]
        return self.run(inputs, places)

    def _fill(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        import torch

        width = max(map(len, rows))
        ids = [[*row, *[self._pad] * (width - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    def run(
        self, inputs: dict[str, torch.Tensor], places: Sequence[tuple[int, int]]
    ) -> torch.Tensor:
        """Runs the model once.

        Args:
            inputs: its arguments; those that it does not take are left out.
            places: (row, position) of each distribution that is wanted.

        Returns:
            (places, vocabulary) log-probabilities in nats, see `read`.
        """
        import torch

        device = cast("torch.Tensor", self.model.get_input_embeddings().weight).device
        arguments: dict[str, Any] = {name: value.to(device) for name, value in inputs.items()}
        arguments["use_cache"] = False
        arguments = {name: value for name, value in arguments.items() if name in self._accepted}
        index = torch.tensor(places).T
        with torch.inference_mode(), self._gathering(index) as gathered:
            logits = self.model(**arguments).logits
            logits = logits[0] if gathered else _take(logits, index)
            dtype = torch.promote_types(logits.dtype, torch.float32)
            return logits.log_softmax(-1, dtype=dtype)

    @contextmanager
    def _gathering(self, index: torch.Tensor) -> Iterator[list[bool]]:
        """Has the output projection see the wanted positions only.

        Yields:
            a list that is no longer empty once that has happened.
        """
        head = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]
        happened: list[bool] = []

        def gather(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            happened.append(True)
            return (_take(inputs[0], index)[None], *inputs[1:])

        handle = head.register_forward_pre_hook(gather) if head is not None else None
        try:
            yield happened
        finally:
            if handle is not None:
                handle.remove()


def _take(states: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Returns (places, features) of (rows, positions, features)."""
    rows, positions = index.to(states.device)
    return states[rows, positions]
