"""Models that see to the right are refused, and no family of left-to-right models is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from families import CAUSAL, SEEING_RIGHT, Family
from tokenizer_files import byte_level, wordpiece
from transformers import AutoModelForCausalLM

from lmdiag.models import LoadOptions, load
from lmdiag.models.forward.causality import check_causality
from lmdiag.models.forward.reader import Reader
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.types import BadInput
from models.toys import asked, bert, gpt2

BYTES = byte_level("Ġ b", "Ġb i")
TEXT = TokenRow((5, 9, 17, 33, 7, 21, 8, 40, 13, 6), (9,))


@pytest.mark.parametrize("family", SEEING_RIGHT, ids=lambda family: family.name)
def test_refused(family: Family, tmp_path: Path) -> None:
    folder = str(family.make(tmp_path / family.name))
    kind = "causal" if family.name == "xlm" else "auto"  # XLM is masked unless asked otherwise
    with pytest.raises(BadInput, match=r"is not causal: a token .* --kind masked") as caught:
        load(folder, LoadOptions(kind=kind))  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"model {folder} ({family.model})")
    assert "\n" not in str(caught.value)


def checked(model: Any, name: str) -> None:
    """Checks the causality of a model as it is loaded, whatever its kind."""
    reader = Reader(model, 0, causal=True)
    check_causality(reader, [TEXT], [reader.whole(TEXT)], name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["xlm", "cpmant"])
def test_refused_in_half_precision(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    (family,) = (family for family in SEEING_RIGHT if family.name == name)
    folder = family.make(tmp_path / family.name)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    with pytest.raises(BadInput, match="is not causal"):
        checked(model.eval(), family.name)


def test_a_masked_model_without_the_flag_of_a_decoder() -> None:
    tokenizer = wordpiece("a", "the", "old", "man", "it")
    with pytest.raises(BadInput, match=r"model toy \(BertForMaskedLM\) is not causal"):
        asked(bert(len(tokenizer)), tokenizer, "causal")


def test_a_prefix_language_model() -> None:
    """One that reads both sides of its first tokens and goes on from left to right."""
    network = gpt2(len(BYTES))
    forward = network.forward

    def with_prefix(input_ids: torch.Tensor, **inputs: Any) -> Any:
        length = input_ids.shape[1]
        sees = torch.ones(length, length).tril().bool()
        sees[:6, :6] = True
        inputs["attention_mask"] = sees[None, None]
        return forward(input_ids=input_ids, **inputs)

    network.forward = with_prefix  # type: ignore[method-assign]
    with pytest.raises(BadInput, match="is not causal"):
        asked(network, BYTES, "causal")


def test_a_glance_at_the_next_token() -> None:
    """One token to the right is enough."""
    network = gpt2(len(BYTES))

    def mix(_: Any, __: Any, states: torch.Tensor) -> torch.Tensor:
        return states + 0.1 * torch.nn.functional.pad(states, (0, 0, 0, 1))[:, 1:]

    network.transformer.ln_f.register_forward_hook(mix)
    with pytest.raises(BadInput, match="is not causal"):
        asked(network, BYTES, "causal")


@pytest.mark.parametrize("family", CAUSAL, ids=lambda family: family.name)
def test_rounding_is_not_taken_for_it(family: Family, family_dir: Callable[[str], Path]) -> None:
    """Alibi, sliding windows, recurrences in half precision; `test_families` has float32."""
    model = AutoModelForCausalLM.from_pretrained(family_dir(family.name), dtype=torch.bfloat16)
    model.eval()
    checked(model, family.name)


def test_broken_numbers_are_not_taken_for_it() -> None:
    """NaN is refused where it is met, with the context, and not as a look to the right."""
    network = gpt2(len(BYTES))

    def spoil(_: Any, __: Any, logits: torch.Tensor) -> torch.Tensor:
        return logits * torch.nan

    network.lm_head.register_forward_hook(spoil)
    assert asked(network, BYTES, "causal").reader.causal
