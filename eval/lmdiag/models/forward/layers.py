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


class _StandIn(nn.Module):
    """Takes the place of all layers: returns a state, and has the attributes of a layer."""

    def __init__(self, layer: nn.Module, output: Any) -> None:
        super().__init__()
        self._replaced = (layer,)  # in a tuple, so that PyTorch does not register it as a submodule
        self._output = output

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._replaced[0], name)

    def forward(self, *_: Any, **__: Any) -> Any:
        return self._output


@dataclass
class Layers:
    """The layers of a model.

    Attributes:
        model: the model.
        owner, name: the module that has the list of layers, and its name there.
        modules: the layers in order.
        others: what a layer returns after its state, in a tuple; None if it returns the state only.
        skipped: numbers of layers that do not run on a text, as those that read images; the state
            after one is that before it.
    """

    model: PreTrainedModel
    owner: nn.Module
    name: str
    modules: nn.ModuleList
    others: tuple[Any, ...] | None = field(default=None, init=False)
    skipped: Collection[int] = field(default=(), init=False)

    def __len__(self) -> int:
        return len(self.modules)

    @contextmanager
    def keeping(
        self, numbers: Collection[int], take: Callable[[torch.Tensor], torch.Tensor], *, ends: bool
    ) -> Iterator[States]:
        """Keeps states while the model runs in the block.

        Args:
            numbers: of the layers.
            take: makes (positions, hidden) of the states at all positions.
            ends: whether the block ends after the last of these layers.
        """
        states: States = {}
        sources = {number: self._last_run(number) for number in numbers}
        last_layer = max(sources.values())

        def keep(number: int, state: torch.Tensor) -> None:
            states[number] = take(state)
            if ends and number == last_layer:
                raise _LayerReached

        def keep_input(_: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            keep(0, inputs[0] if inputs else named["hidden_states"])

        def keep_output(number: int) -> Callable[..., None]:
            return lambda module, inputs, output: keep(number, self._state_of(output))

        with ExitStack() as hooks:
            for number in {*sources.values()}:
                if number:
                    module = self.modules[number - 1]
                    hook = module.register_forward_hook(keep_output(number))
                else:
                    first = self.modules[0]
                    hook = first.register_forward_pre_hook(keep_input, with_kwargs=True)
                hooks.callback(hook.remove)
            with suppress(_LayerReached):
                yield states
        for number, source in sources.items():
            if source in states:
                states[number] = states[source]

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Returns the (positions, vocabulary) logits that the model makes of states after a layer.

        Each position goes through as a text of one token, of which nothing is used.
        """
        states = states[:, None]
        tokens = torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
        inputs: dict[str, Any] = {"input_ids": tokens}
        if self.model.config.is_encoder_decoder:
            inputs = {"decoder_input_ids": tokens}
            inputs["encoder_outputs"] = BaseModelOutput(last_hidden_state=states)
        output = states if self.others is None else (states, *self.others)
        setattr(self.owner, self.name, nn.ModuleList([_StandIn(self.modules[-1], output)]))
        try:
            with torch.inference_mode():
                logits: torch.Tensor = self.model(**inputs).logits
        finally:
            setattr(self.owner, self.name, self.modules)
        return logits[:, 0]

    def _last_run(self, number: int) -> int:
        """Returns the number of the last layer up to a layer that runs on a text."""
        while number in self.skipped:
            number -= 1
        return number

    def _state_of(self, output: Any) -> torch.Tensor:
        """Returns the state in what a layer returns, and remembers the rest."""
        state: torch.Tensor = output
        if isinstance(output, tuple | list):  # a list in GPT-1
            state = output[0]
            self.others = tuple(output[1:])
        return state


def find_layers(model: PreTrainedModel) -> Layers | None:
    """Returns the layers of a model, the decoder's of an encoder-decoder; None if not found.

    They are the list of modules in the base model that has as many as the configuration says, of
    several such lists the one with the most parameters. The towers of a multimodal model, which
    read images or sound, are models of another type and have layers of their own.
    """
    base: Any = model.base_model
    if model.config.is_encoder_decoder:
        base = model.get_decoder()  # type: ignore[no-untyped-call]
    config = model.config.get_text_config(decoder=True)
    counts = (getattr(config, name, None) for name in ("num_decoder_layers", "num_hidden_layers"))
    n_layers = next(filter(None, counts), None)
    text_types = (config.model_type, base.config.model_type)
    in_towers: set[nn.Module] = set()
    for part in base.modules():
        is_model = isinstance(part, PreTrainedModel) and part is not base
        if is_model and part.config.model_type not in text_types:
            in_towers.update(part.modules())
    candidates = []
    for owner in base.modules():
        for name, modules in owner.named_children() if owner not in in_towers else ():
            if isinstance(modules, nn.ModuleList) and len(modules) == n_layers:
                candidates.append(Layers(model, owner, name, modules))

    def n_parameters(layers: Layers) -> int:
        return sum(map(torch.numel, layers.modules.parameters()))

    return max(candidates, key=n_parameters, default=None)
