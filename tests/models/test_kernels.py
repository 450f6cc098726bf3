"""Faster layers: the numbers of transformers' own, in float64, and nothing else changed."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers.activations import FastGELUActivation, NewGELUActivation

from lmdiag.models import kernels
from models.toys import bert, gpt2

IDS = torch.tensor([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]])


@pytest.mark.parametrize("make", [bert, gpt2])
@pytest.mark.parametrize("worthwhile", [0, kernels.WORTHWHILE])
def test_same_numbers(make: object, worthwhile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By oneDNN (worth it from the first multiplication on) and, too small for it, by MKL."""
    monkeypatch.setattr(kernels, "WORTHWHILE", worthwhile)
    network = make(40)  # type: ignore[operator]
    right = copy.deepcopy(network).double()(input_ids=IDS).logits
    names = [name for name, _ in network.named_parameters()]
    kernels.quicken(network)
    with torch.inference_mode():
        found = network(input_ids=IDS).logits
    assert (found - right).abs().max() < 2e-5
    assert [name for name, _ in network.named_parameters()] == names
    again = copy.deepcopy(network).double()(input_ids=IDS).logits  # other dtypes still work
    assert (again - right).abs().max() < 1e-12


@pytest.mark.parametrize("spelt_out", [NewGELUActivation, FastGELUActivation])
def test_gelu_in_one_operation(spelt_out: type[torch.nn.Module]) -> None:
    states = torch.linspace(-6, 6, 1001)
    network = gpt2(40)
    network.transformer.h[0].mlp.act = spelt_out()
    right = spelt_out()(states)
    kernels.quicken(network)
    fused = network.transformer.h[0].mlp.act
    assert type(fused) is not spelt_out
    assert (fused(states) - right).abs().max() < 1e-6


def test_half_precision_is_left_alone() -> None:
    network = gpt2(40).to(torch.bfloat16)
    classes = [type(module) for module in network.modules()]
    kernels.quicken(network)
    assert [type(module) for module in network.modules()] == classes


@pytest.mark.parametrize(("rows", "pays"), [(255, False), (256, True)])
def test_small_products_are_not_worth_it(rows: int, pays: bool) -> None:
    """256 rows by 256 x 256 weights are 2^24 multiplications."""
    states, weight = torch.empty(rows, 256), torch.empty(256, 256)
    assert kernels.pays(states, weight) == pays
    assert not kernels.pays(states.double(), weight.double())
