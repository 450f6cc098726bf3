"""Checkpoints of one model: what is known from the first one, and what is asked of each."""

from __future__ import annotations

import pytest
import torch
from tokenizer_files import byte_level, wordpiece
from transformers import PreTrainedModel

from lmdiag.types import BadInput, Kind
from models.toys import asked, bert, checkpoint, gpt2

BYTES = byte_level("Ġ b", "Ġb i")
WORDS = wordpiece("a", "the", "old", "man", "dog", "it", "##s")


def other(network: PreTrainedModel, scale: float = 1.5) -> PreTrainedModel:
    """Changes the weights of a network."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    return network


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_further_checkpoints_are_read_twice(kind: Kind) -> None:
    """One row alone, and once in a pack; with the layout of the first one."""
    tokenizer = WORDS if kind == "masked" else BYTES
    make = bert if kind == "masked" else gpt2
    first, runs = checkpoint(make(len(tokenizer)), tokenizer, kind)
    assert first.reader.layout == "packed"
    assert runs > 2
    second, again = checkpoint(other(make(len(tokenizer))), tokenizer, kind)
    assert again == 2
    assert (second.reader.layout, second.reader.width) == ("packed", first.reader.width)
    assert second.reader.gate is not None
    names = [
        next(
            name for name, module in each.parts.model.named_modules() if module is each.reader.gate
        )
        for each in (first, second)
    ]
    assert names[0] == names[1]


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"num_attention_heads": 4}])
def test_another_configuration_is_tried_by_itself(change: dict[str, object]) -> None:
    runs = [checkpoint(bert(len(WORDS), **some), WORDS, "masked")[1] for some in ({}, change)]
    assert runs[0] == runs[1] > 2


def test_a_network_that_was_put_together_is_tried_by_itself() -> None:
    """It may have hooks, of which class and configuration say nothing."""
    checkpoint(bert(len(WORDS)), WORDS, "masked")
    network = bert(len(WORDS))
    runs: list[int] = []
    network.register_forward_pre_hook(lambda *_: runs.append(1))
    asked(network, WORDS, "masked")
    assert len(runs) > 2


def still(network: PreTrainedModel) -> PreTrainedModel:
    """Takes away what attention adds: no position depends on another."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "attention.output.dense" in name:
                parameter.zero_()
    return network


def test_a_look_to_the_right_that_the_first_weights_hide() -> None:
    """BERT reads both sides; the first checkpoint of it gives every distance the weight 0."""
    first, _ = checkpoint(still(bert(len(WORDS))), WORDS, "causal")
    assert first.reader.layout == "packed"
    with pytest.raises(BadInput, match="is not causal"):
        checkpoint(bert(len(WORDS)), WORDS, "causal")


def mixing(weight: float) -> PreTrainedModel:
    """A model that adds to all positions of a batch something of their mean."""
    network = bert(len(WORDS))
    network.cls.register_forward_hook(
        lambda _, __, logits: logits + weight * logits.mean((0, 1), keepdim=True)
    )
    return network


def test_a_layout_that_the_first_weights_hide() -> None:
    assert checkpoint(mixing(0.0), WORDS, "masked")[0].reader.layout == "packed"
    assert checkpoint(mixing(1.0), WORDS, "masked")[0].reader.layout == "equal"
