"""Rows through the network: distributions at the positions that are read, and nowhere else.

The projection to the vocabulary takes most of the memory and, for small models, much of the time,
so all other positions are dropped before it, at the first module after which positions no longer
see each other. The softmax runs in float32 or better.

Rows go through together in packs (`packing`), or beside other rows of the same length, so that
nothing is padded. `probing.choose_layout` tries once per model which of them leaves the numbers
unchanged.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, Literal, cast

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.activations import FastGELUActivation, NewGELUActivation

from lmdiag.models.forward.layers import ORDINARY, Layer, Layers, States, find_layers
from lmdiag.models.forward.packing import pack_contexts
from lmdiag.models.forward.sizes import sizes_for
from lmdiag.models.positions import padding_index
from lmdiag.models.tokens.encoded_questions import TokenRow

_USUAL_ARGUMENTS = {
    "input_ids", "attention_mask", "position_ids", "decoder_input_ids", "encoder_outputs",
}  # fmt: skip
"""Arguments that models of transformers take."""

Layout = Literal["packed", "equal", "alone"]
ModelInputs = dict[str, Any]
Reads = Sequence[tuple[int, int]]
"""(row, position) of each distribution that is wanted."""

Pick = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes a few numbers of some reads: given (distributions, vocabulary) log-probabilities, and for
each read its distribution and its wanted token."""


@dataclass
class Pass:
    """What one pass through the network gives at its reads.

    Attributes:
        logits: (reads, vocabulary) of the ordinary answer; None where the pass ended before.
        states: of the other layers that were asked.
        layers: of the network; None where only the ordinary answer was asked.
    """

    logits: torch.Tensor | None = None
    states: States = field(default_factory=dict)
    layers: Layers | None = None

    def logits_after(
        self, layers: Sequence[Layer], most: int, reads: Sequence[int] | None = None
    ) -> Iterator[torch.Tensor]:
        """Yields the (reads, vocabulary) logits after each of some layers.

        Several inner layers go through what follows the layers together: a projection of few states
        takes as long as one of many. Nothing is yielded for the last layer if `logits` is None: the
        pass ended before, or `Reader.read_layers` has used the logits and freed them.

        Args:
            layers: those that were asked; None is the last one, the ordinary answer.
            most: states of inner layers that go through together.
            reads: numbers of the reads; None for all.
        """
        inner_layers = [layer for layer in layers if layer is not None]
        inner_logits = self._inner_logits(inner_layers, most, reads)
        for layer in layers:
            if layer is not None:
                yield next(inner_logits)
            elif self.logits is not None:
                yield self.logits if reads is None else self.logits[list(reads)]

    def _inner_logits(
        self, layers: Sequence[int], most: int, reads: Sequence[int] | None
    ) -> Iterator[torch.Tensor]:
        """Yields the (reads, vocabulary) logits after each inner layer; see `logits_after`."""
        if not layers or self.layers is None:
            return
        states = [self.states[layer] for layer in layers]
        if reads is not None:
            states = [state[list(reads)] for state in states]
        n_reads = len(states[0])
        n_layers_together = max(1, most // max(1, n_reads))
        for start in range(0, len(states), n_layers_together):
            logits = self.layers.logits(torch.cat(states[start : start + n_layers_together]))
            yield from torch.split(logits, n_reads)


class Reader:
    """Reads distributions of a model.

    Args:
        model: in evaluation mode, on its device.
        pad: id of the tokenizer's padding token; None for no such token.
        causal: whether a token sees only the tokens before it.

    Attributes:
        layout: packed (several rows side by side in one), equal (rows of one length at a time; of
            an encoder-decoder, rows whose sources have one length), or alone (one row at a time,
            for models that take no more).
        sizes: how much is read at a time.
        width: tokens in a packed row; longer rows are read beside others of their length.
        projection_module: module that only the wanted positions go into; None for no such module.
        padding_index: token id that the model leaves out when it counts positions, which then
            begin at the number after it; None for no such id.
    """

    def __init__(self, model: PreTrainedModel, pad: int | None, *, causal: bool) -> None:
        self.model = model
        self.causal = causal
        self.layout: Layout = "equal"
        self.sizes = sizes_for(self.device.type)
        self.width = self.sizes.width
        self.projection_module: torch.nn.Module | None = None
        self.padding_index = padding_index(model)
        self.accepted_arguments = _accepted_arguments(model)
        # Fills up short rows, masked. One that was added after training often has no embedding.
        n_embeddings = len(cast("torch.Tensor", model.get_input_embeddings().weight))
        self._pad = 0
        if pad is not None and pad < n_embeddings:
            self._pad = pad
        if model.device.type == "cpu" and model.dtype == torch.float32:
            # transformers computes the tanh form of GELU in seven operations: one takes a tenth
            # less time for the shape of gpt2.
            for name, module in [*model.named_modules()]:
                if isinstance(module, NewGELUActivation | FastGELUActivation):
                    model.set_submodule(name, torch.nn.GELU(approximate="tanh"))
        if hasattr(model.base_model, "set_attention_type"):  # BigBird
            # Its sparse attention draws blocks at random, and depends on the length of the batch.
            cast("Any", model.base_model).set_attention_type("original_full")

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go; accelerate moves them on where weights are offloaded."""
        device = cast("torch.Tensor", self.model.get_input_embeddings().weight).device
        return torch.device("cpu") if device.type == "meta" else device

    @cached_property
    def layers(self) -> Layers | None:
        """The layers of the network; None if they are not found."""
        return find_layers(self.model)

    def read(self, rows: Sequence[TokenRow], pick: Pick | None = None) -> torch.Tensor:
        """Returns the log-probabilities (nats) at all reads of all rows, in order.

        Args:
            rows: the inputs.
            pick: takes the few numbers that are wanted of some distributions; None for all.

        Returns:
            (reads, vocabulary or what `pick` takes) on the model's device, float32 or the model's
            dtype if that is finer.
        """
        return next(self.read_layers(rows, ORDINARY, pick))  # of one layer

    def read_layers(
        self, rows: Sequence[TokenRow], layers: Sequence[Layer], pick: Pick | None = None
    ) -> Iterator[torch.Tensor]:
        """Yields for each layer the log-probabilities (nats) at all reads of all rows, in order.

        The rows go through the network once. Inner layers are projected to the vocabulary when
        their turn comes, the last one at once.

        Args:
            rows: the inputs.
            layers: after which the model answers; None is the last one.
            pick: takes the few numbers that are wanted of some distributions; None for all.
        """
        # All rows go through the network, a pass for each group.
        first_reads = [0, *accumulate(len(row.reads) for row in rows)]  # of each row, and the end
        read_order: list[int] = []  # number of each read, in the order in which groups are read
        passes: list[Pass] = []
        # for each pass, the function from logits to log-probabilities, or to what `pick` takes
        finishers: list[Callable[[torch.Tensor], torch.Tensor]] = []
        ordinary_parts: list[torch.Tensor] = []  # of the last layer, one per pass
        for numbers, is_packed in self._groups(rows):
            group_rows = [rows[number] for number in numbers]
            lay_out = self.packed if is_packed else self.side_by_side
            inputs, reads = lay_out(group_rows)
            finish = _log_softmax
            if pick is not None:
                wanted = [token for row in group_rows for token in row.wanted]
                finish = partial(self._pick, reads=reads, wanted=wanted, pick=pick)
                reads = list(dict.fromkeys(reads))  # a position of several packed rows is read once
            network_pass = self.network(inputs, reads, layers)
            if network_pass.logits is not None:
                ordinary_parts.append(finish(network_pass.logits))
                # the largest tensor of a pass: freed before the next one
                network_pass.logits = None
            passes.append(network_pass)
            finishers.append(finish)
            for number in numbers:
                read_order += range(first_reads[number], first_reads[number + 1])
        # Then, layer by layer, the parts of all passes are put together. The logits of all passes
        # are in memory at the same time, so that they share the number of states that is allowed.
        most_projected = self.most_projected // max(1, len(passes))
        logits_of_passes = [
            network_pass.logits_after(layers, most_projected) for network_pass in passes
        ]
        for layer in layers:
            parts = ordinary_parts
            if layer is not None:
                parts = [
                    finish(next(logits))
                    for logits, finish in zip(logits_of_passes, finishers, strict=True)
                ]
            if len(parts) == 1:
                yield parts[0]
            else:
                order = torch.tensor(read_order).argsort()  # back to the order of the rows
                yield torch.cat(parts)[order.to(parts[0].device)]

    def _groups(self, rows: Sequence[TokenRow]) -> list[tuple[list[int], bool]]:
        """Returns which rows go through the network together, without padding.

        For each group these are the numbers of its rows, and whether they are packed into few rows.
        For example, rows of 5, 7 and 5 tokens in the layout "equal" are the groups ([0, 2], False)
        and ([1], False).
        """
        # what the rows of a group have in common -> their numbers; () is for packed rows
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, row in enumerate(rows):
            # The rows of one sentence go through a decoder together, so that it is encoded once;
            # other rows, whose source is empty, beside rows of their own length.
            key: tuple[int, ...] = (len(row.source), 0) if row.source else (0, len(row.ids))
            if self.layout == "packed" and len(row.ids) <= self.width:
                key = ()
            elif self.layout == "alone":
                key = (number,)
            groups.setdefault(key, []).append(number)
        return [(numbers, key == ()) for key, numbers in groups.items()]

    def run(self, inputs: Mapping[str, Any], reads: Reads) -> torch.Tensor:
        """Runs the model once; returns (reads, vocabulary) log-probabilities as `read` does."""
        with torch.inference_mode():
            network_pass = self.network(inputs, reads)
            return next(self.log_probs(network_pass, ORDINARY))

    def log_probs(
        self, network_pass: Pass, layers: Sequence[Layer], reads: Sequence[int] | None = None
    ) -> Iterator[torch.Tensor]:
        """Yields (reads, vocabulary) log-probabilities of a pass after each of some layers.

        `reads` are the numbers of the reads that are wanted; None for all.
        """
        return map(_log_softmax, network_pass.logits_after(layers, self.most_projected, reads))

    @cached_property
    def most_projected(self) -> int:
        """States of inner layers that are projected to the vocabulary together, at most."""
        n_items = int(self.model.config.get_text_config().vocab_size)
        return max(1, self.sizes.searched // n_items)

    def network(
        self, inputs: Mapping[str, Any], reads: Reads, layers: Sequence[Layer] = ORDINARY
    ) -> Pass:
        """Runs the model once, and projects to the vocabulary only what is read.

        Args:
            inputs: arguments of the model. Tensors are moved to its device; arguments that it does
                not know are left out.
            reads: (row, position) of each distribution that is wanted.
            layers: after which the model answers; it stops after the last of them.
        """
        arguments = {
            name: value.to(self.device) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }
        # a cache that nobody continues takes memory for every token of every layer
        arguments["use_cache"] = "past_key_values" in inputs
        arguments = {
            name: value for name, value in arguments.items() if name in self.accepted_arguments
        }
        index = torch.tensor(reads).T  # (2, reads)
        projects_reads_alone = False  # until the projection module runs

        def take_reads(states: torch.Tensor) -> torch.Tensor:
            """Returns (reads, hidden) of (rows, positions, hidden)."""
            rows, positions = index.to(states.device)
            return states[rows, positions]

        def keep_reads(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            """Replaces the inputs of the projection module."""
            nonlocal projects_reads_alone
            projects_reads_alone = True
            # one row of the reads alone: all later modules see one position at a time
            return tuple(take_reads(states)[None] for states in inputs)

        network_pass = Pass(layers=self.layers)
        with ExitStack() as hooks:
            inner_layers = [layer for layer in layers if layer is not None]
            if inner_layers and self.layers is not None:
                stops_early = None not in layers
                recording = self.layers.record_states(inner_layers, take_reads, ends=stops_early)
                network_pass.states = hooks.enter_context(recording)
            if self.projection_module is not None:
                hook = self.projection_module.register_forward_pre_hook(keep_reads)
                hooks.callback(hook.remove)
            with torch.inference_mode():
                # the model's own head sees the reads alone if `keep_reads` ran before it
                logits: torch.Tensor = self.model(**arguments).logits
                network_pass.logits = logits[0] if projects_reads_alone else take_reads(logits)
        return network_pass

    def side_by_side(self, rows: Sequence[TokenRow]) -> tuple[ModelInputs, Reads]:
        """Returns the model's inputs for rows of one length side by side, and the reads.

        Of an encoder-decoder, the sources have one length, and each distinct source is encoded
        once. The reads are (row, position) of each read of the rows, in order.
        """
        inputs: ModelInputs = dict(self.fill([row.ids for row in rows]))
        if rows[0].source:
            inputs = {f"decoder_{name}": tensor for name, tensor in inputs.items()}
            distinct_sources = list(dict.fromkeys(row.source for row in rows))
            number_of_source = {source: n for n, source in enumerate(distinct_sources)}
            encoded = self.encode(distinct_sources)
            inputs |= select_sources(encoded, [number_of_source[row.source] for row in rows])
        return inputs, [(index, read) for index, row in enumerate(rows) for read in row.reads]

    def packed(self, rows: Sequence[TokenRow]) -> tuple[ModelInputs, Reads]:
        """Returns the model's inputs with several rows in one, and the reads.

        The mask lets each token attend to its own context alone, and positions are counted in its
        own context. The reads are (pack, position) of each read of the rows, in order.
        """
        packs, packed_at = pack_contexts([row.ids for row in rows], self.width, causal=self.causal)
        width = max(len(pack.ids) for pack in packs)
        sees = torch.from_numpy(np.stack([pack.mask(width, causal=self.causal) for pack in packs]))
        sees = sees.to(self.device)  # a byte for each number of the mask
        mask = torch.zeros(sees.shape, dtype=self.model.dtype, device=self.device)
        # the least finite number: a sum with -inf is NaN where a model adds a bias to the mask
        mask.masked_fill_(~sees, torch.finfo(self.model.dtype).min)
        positions = torch.zeros(len(packs), width, dtype=torch.long)
        positions_of_rows = self.positions(self.fill([row.ids for row in rows])["input_ids"])
        for (index, offsets), row_positions in zip(packed_at, positions_of_rows, strict=True):
            positions[index, offsets] = row_positions[: len(offsets)]
        inputs = {
            "input_ids": self.fill([pack.ids for pack in packs])["input_ids"],
            "attention_mask": mask[:, None],  # (packs, 1, width, width): the same for all heads
            "position_ids": positions,
        }
        reads = []
        for row, (index, offsets) in zip(rows, packed_at, strict=True):
            reads += [(index, offsets[read]) for read in row.reads]
        return inputs, reads

    def encode(self, sources: Sequence[Sequence[int]]) -> ModelInputs:
        """Runs the encoder of an encoder-decoder on token ids of sources.

        Returns `encoder_outputs` and `attention_mask`, as the decoder takes them.
        """
        inputs = {name: value.to(self.device) for name, value in self.fill(sources).items()}
        with torch.inference_mode():
            outputs = self.model.get_encoder()(**inputs)
        return {"encoder_outputs": outputs, "attention_mask": inputs["attention_mask"]}

    def positions(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the position of each token as the model counts them: both (rows, tokens).

        RoBERTa and its relatives count the tokens other than padding, also where a text has it.
        """
        if self.padding_index is None:
            return torch.arange(ids.shape[1]).expand_as(ids)
        is_counted = ids != self.padding_index
        # padding has the position `padding_index`, the first counted token the next one
        return self.padding_index + is_counted.cumsum(1) * is_counted

    def fill(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Returns `input_ids` and `attention_mask`, (rows, width), of rows filled on the right."""
        width = max(map(len, rows))
        ids = [[*row, *[self._pad] * (width - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    @torch.inference_mode()
    def _pick(
        self, logits: torch.Tensor, *, reads: Reads, wanted: Sequence[int], pick: Pick
    ) -> torch.Tensor:
        """Returns what `pick` takes of the distributions at some reads, in the order of the reads.

        A few of the distributions are normalised at a time: they stay in the processor's cache, and
        no second table of the size of the logits is allocated.

        Args:
            logits: (distinct reads, vocabulary), in order of first appearance in `reads`.
            reads: (row, position) of each read, some of which may be the same.
            wanted: the token that is wanted at each read.
            pick: see `Pick`.
        """
        # `logits` have a row for each distinct read, which several reads may share
        number_of_read = {read: number for number, read in enumerate(dict.fromkeys(reads))}
        logits_row = torch.tensor([number_of_read[read] for read in reads])  # for each read
        tokens = torch.tensor(wanted)
        parts, order = [], []
        size = self.sizes.normalised
        for start in range(0, len(logits), size):
            log_probs = _log_softmax(logits[start : start + size])
            # numbers of the reads whose row is in this chunk, and where it is in the chunk
            is_in_chunk = (logits_row >= start) & (logits_row < start + size)
            reads_in_chunk = is_in_chunk.nonzero()[:, 0]
            row_in_chunk = (logits_row[reads_in_chunk] - start).to(logits.device)
            parts.append(pick(log_probs, row_in_chunk, tokens[reads_in_chunk].to(logits.device)))
            order.append(reads_in_chunk)
        # from the order of the chunks back to that of the reads
        return torch.cat(parts)[torch.cat(order).argsort().to(logits.device)]


def _accepted_arguments(model: PreTrainedModel) -> frozenset[str]:
    """Returns the names of the arguments that a model's forward takes.

    A forward with `**kwargs` passes them on to that of its base class, to the model below its head
    or, in a model's own code, to a model inside it.
    """
    names: set[str] = set()
    is_own_code = not type(model).__module__.startswith("transformers.")
    for base in type(model).__mro__:
        # of a class without a forward of its own, the model's, whose names are there in any case
        forward = vars(base).get("forward", model.forward)
        parameters = inspect.signature(forward).parameters
        names.update(parameters)
        passes_on = any(x.kind == x.VAR_KEYWORD for x in parameters.values())
        if not passes_on:
            break
        if is_own_code:  # its inner model may be of any class of transformers
            names |= _USUAL_ARGUMENTS
        # the model below the head may take it, although this class does not name it
        names |= {"use_cache"} & inspect.signature(model.base_model.forward).parameters.keys()
    return frozenset(names)


def select_sources(encoded: Mapping[str, Any], numbers: Sequence[int]) -> ModelInputs:
    """Returns the result of `Reader.encode` for the sources with these numbers, in this order.

    A number may occur several times. The encoder's output keeps its class: decoders of mixtures of
    experts need more of it than the states.
    """
    outputs = copy.copy(encoded["encoder_outputs"])
    states, mask = outputs.last_hidden_state, encoded["attention_mask"]
    index = torch.tensor(numbers)
    outputs.last_hidden_state = states[index.to(states.device)]
    return {"encoder_outputs": outputs, "attention_mask": mask[index.to(mask.device)]}


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Returns log-probabilities in float32, or in the dtype of the model if that is finer.

    In half precision, a log-probability near −10 would have steps of 0.06 nats.
    """
    return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
