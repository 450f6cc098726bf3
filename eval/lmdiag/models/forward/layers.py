"""The layers of a network, and what the network would answer if it stopped after one of them.

The state after a layer goes through what follows the layers in the model's own code: the last
normalisation, the head, soft caps. To have the model's own forward do this, its list of layers is
replaced by a list of one stand-in that returns the state.

Source: nostalgebraist (2020), "interpreting GPT: the logit lens".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

Layer = int | None
"""Number of a layer; 0 is the input of the first one, None the last one: the ordinary answer."""

ORDINARY: tuple[Layer, ...] = (None,)
"""The last layer alone."""

States = dict[int, torch.Tensor]
"""Number of a layer -> the (positions, hidden) states after it."""


class _LayerReached(Exception):
    """Ends a pass after the last layer that is asked."""


class _ConstantLayer(nn.Module):
    """Takes the place of all layers: returns a given state, and has the attributes of a layer.

    Args:
        layer: has the attributes that the model's code asks of a layer.
        output: what `forward` returns, whatever its arguments.
    """

    def __init__(self, layer: nn.Module, output: Any) -> None:
        super().__init__()
        self._layer = (layer,)  # in a tuple, so that PyTorch does not register it as a submodule
        self._output = output

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the layer that it stands for, if it has none of this name."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._layer[0], name)

    def forward(self, *_: Any, **__: Any) -> Any:
        return self._output


@dataclass
class Layers:
    """The layers of a model.

    Attributes:
        model: the model.
        owner, name: the module that has the list of layers, and its name there.
        modules: the layers in order.
        other_outputs: what a layer returns after its state, in a tuple; None if it returns the
            state only.
        skipped: numbers of layers that do not run on a text, as those that read images; the state
            after one is that before it.
    """

    model: PreTrainedModel
    owner: nn.Module
    name: str
    modules: nn.ModuleList
    other_outputs: tuple[Any, ...] | None = field(default=None, init=False)
    skipped: Collection[int] = field(default=(), init=False)

    def __len__(self) -> int:
        return len(self.modules)

    @contextmanager
    def record_states(
        self, numbers: Collection[int], take: Callable[[torch.Tensor], torch.Tensor], *, ends: bool
    ) -> Iterator[States]:
        """Records the states after some layers while the model runs in the block.

        The dictionary that the block gets is filled by hooks of the layers.

        Args:
            numbers: of the layers; 0 is the input of the first one.
            take: is given the states at all positions, and returns the (positions, hidden) ones
                that are kept.
            ends: whether the block ends after the last of these layers.
        """
        states: States = {}
        # number -> the last layer up to it that runs on a text, which has the same state
        layer_run = {number: self._last_layer_run(number) for number in numbers}
        last_layer = max(layer_run.values())

        def keep(number: int, state: torch.Tensor) -> None:
            """Records the state after a layer, and ends the block if it is the last one asked."""
            states[number] = take(state)
            if ends and number == last_layer:
                raise _LayerReached

        def keep_input(_: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            """A hook before the first layer: records its input as state 0."""
            keep(0, inputs[0] if inputs else named["hidden_states"])

        def keep_output(number: int) -> Callable[..., None]:
            """Returns a hook after layer `number` that records its output."""
            return lambda module, inputs, output: keep(number, self._state_of(output))

        with ExitStack() as hooks:
            for number in set(layer_run.values()):
                if number:
                    layer = self.modules[number - 1]
                    hook = layer.register_forward_hook(keep_output(number))
                else:
                    first_layer = self.modules[0]
                    hook = first_layer.register_forward_pre_hook(keep_input, with_kwargs=True)
                hooks.callback(hook.remove)
            with suppress(_LayerReached):  # if `ends`, the rest of the block does not run
                yield states
        # the state after a layer that does not run is that before it
        for number, source in layer_run.items():
            # before `check_layers` has set `skipped`, a layer that does not run has no state
            if source in states:
                states[number] = states[source]

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Returns the (positions, vocabulary) logits that the model makes of states after a layer.

        The model's own code runs with a list of one layer that returns the states. Each position
        goes through as a text of one token, whose id does not matter.

        Args:
            states: (positions, hidden).
        """
        states = states[:, None]  # (texts, positions, hidden), with one position per text
        tokens = torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
        inputs: dict[str, Any] = {"input_ids": tokens}
        if self.model.config.is_encoder_decoder:
            inputs = {"decoder_input_ids": tokens}
            inputs["encoder_outputs"] = BaseModelOutput(last_hidden_state=states)
        output = states if self.other_outputs is None else (states, *self.other_outputs)
        constant_layer = _ConstantLayer(self.modules[-1], output)
        setattr(self.owner, self.name, nn.ModuleList([constant_layer]))
        try:
            with torch.inference_mode():
                logits: torch.Tensor = self.model(**inputs).logits
        finally:
            setattr(self.owner, self.name, self.modules)
        return logits[:, 0]

    def _last_layer_run(self, number: int) -> int:
        """Returns the number of the last layer that runs on a text, up to layer `number`."""
        while number in self.skipped:
            number -= 1
        return number

    def _state_of(self, output: Any) -> torch.Tensor:
        """Returns the state in what a layer returns; sets `other_outputs` if there are others."""
        state: torch.Tensor = output
        if isinstance(output, tuple | list):  # a list in GPT-1
            state = output[0]
            self.other_outputs = tuple(output[1:])
        return state


def find_layers(model: PreTrainedModel) -> Layers | None:
    """Returns the layers of a model, the decoder's of an encoder-decoder; None if not found.

    They are the list of modules in the base model that has as many modules as the configuration has
    layers. Of several such lists the one with the most parameters is taken. The towers of a
    multimodal model, which read images or sound, are models of another type, and their lists do not
    count.
    """
    base: Any = model.base_model
    if model.config.is_encoder_decoder:
        base = model.get_decoder()  # type: ignore[no-untyped-call]
    config = model.config.get_text_config(decoder=True)
    n_layers = getattr(config, "num_decoder_layers", None)
    n_layers = n_layers or getattr(config, "num_hidden_layers", None) or None
    text_types = (config.model_type, base.config.model_type)
    tower_modules: set[nn.Module] = set()
    for module in base.modules():
        is_inner_model = isinstance(module, PreTrainedModel) and module is not base
        if is_inner_model and module.config.model_type not in text_types:
            tower_modules.update(module.modules())
    candidates = []
    for owner in base.modules():
        if owner in tower_modules:
            continue
        for name, modules in owner.named_children():
            if isinstance(modules, nn.ModuleList) and len(modules) == n_layers:
                candidates.append(Layers(model, owner, name, modules))

    def n_parameters(layers: Layers) -> int:
        return sum(parameter.numel() for parameter in layers.modules.parameters())

    return max(candidates, key=n_parameters, default=None)
