"""What happens when a model fails at its first texts: one line, or another way to read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from families import FAMILIES
from tokenizer_files import byte_level, wordpiece

from lmdiag.models import LoadOptions, load
from lmdiag.models.loading.checks import check_precision
from lmdiag.models.loading.errors import one_line_errors
from lmdiag.models.loading.load import _dtype
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.types import BadInput, Query, Question
from models.toys import alone, asked, bert, gpt2

BYTES = byte_level("Ġ b", "Ġb i")
TOKENIZER = wordpiece("a", "the", "robin", "is", "bird", "tree", "##s", ".", "near")


class TestOneLine:
    @pytest.mark.parametrize("error", [ValueError, IndexError, AttributeError, RuntimeError])
    @pytest.mark.parametrize("unit", ["token", "word"])
    def test_a_model_that_fails(self, error: type[Exception], unit: str) -> None:
        network = gpt2(len(BYTES))

        def fail(*_: Any) -> None:
            raise error("no such place\nand more lines")

        network.register_forward_pre_hook(fail)
        with pytest.raises(BadInput) as caught:
            asked(network, BYTES, "causal", unit=unit)
        kind = "" if error is ValueError else f"{error.__name__}: "
        assert str(caught.value) == (
            f"model toy cannot read a short text ({kind}no such place): check that its "
            "config.json belongs to its weights, or try another --kind or --attention eager"
        )

    def test_a_full_device(self) -> None:
        line = "model toy runs out of memory on a short text: use"
        with pytest.raises(BadInput, match=line), one_line_errors("toy"):
            raise torch.OutOfMemoryError("CUDA out of memory")

    def test_refusals_pass(self) -> None:
        with pytest.raises(BadInput, match="as it is"), one_line_errors("toy"):
            raise BadInput("as it is")

    def test_a_model_with_an_adapter_for_each_language(self, tmp_path: Path) -> None:
        family = FAMILIES["xmod"]
        folder = family.make(tmp_path / "xmod")
        file = folder / "config.json"
        config = json.loads(file.read_text("utf-8")) | {"default_language": None}
        file.write_text(json.dumps(config), "utf-8")
        with pytest.raises(BadInput, match=r'no default: set "default_language" in its config'):
            load(str(folder))


class TestAnotherWay:
    def test_a_model_that_reads_one_row_at_a_time(self) -> None:
        """What fails with several rows is asked row by row, with the same numbers."""
        network = gpt2(len(BYTES))

        def refuse(_: Any, __: Any, inputs: dict[str, torch.Tensor]) -> None:
            if len(inputs["input_ids"]) > 1 or inputs["attention_mask"].dim() > 2:
                raise ValueError("one row at a time")

        network.register_forward_pre_hook(refuse, with_kwargs=True)
        model = asked(network, BYTES, "causal")
        assert model.reader.layout == "alone"
        rows = [
            TokenRow((1, 2, 3, 4), (3,)),
            TokenRow((5, 6, 7, 8), (0, 3)),
            TokenRow((7, 8), (1,)),
        ]
        found = model.reader.read(rows)
        plain = gpt2(len(BYTES))
        right = [alone(plain, row.ids, read) for row in rows for read in row.reads]
        assert (found - torch.stack(right)).abs().max() < 1e-5

    def test_a_gate_that_counts_rows(self) -> None:
        """A module behind the gate that wants as many rows as there are texts (as XMOD's)."""
        network = bert(len(TOKENIZER))
        given: list[int] = []
        network.register_forward_pre_hook(
            lambda _, __, inputs: given.append(len(inputs["input_ids"])), with_kwargs=True
        )

        def count(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
            if len(inputs[0]) != given[-1]:
                raise IndexError("the shape of the mask does not match")

        network.bert.encoder.layer[-1].output.register_forward_pre_hook(count)
        model = asked(network, TOKENIZER, "masked")
        assert model.reader.gate is network.get_output_embeddings()

    def test_a_gate_that_cuts_at_the_length_of_a_row(self) -> None:
        """A model that drops positions beyond a row's length behind its attention (as LUKE)."""
        network = bert(len(TOKENIZER))
        widths: list[int] = []
        network.register_forward_pre_hook(
            lambda _, __, inputs: widths.append(inputs["input_ids"].shape[1]), with_kwargs=True
        )
        network.bert.encoder.layer[-1].attention.register_forward_hook(
            lambda _, __, states: (states[0][:, : widths[-1]], *states[1:])
        )
        model = asked(network, TOKENIZER, "masked", packing="never")
        assert model.reader.gate is network.get_output_embeddings()
        questions = [Question(Query("a"), ("bird", "tree"))] * 30
        assert len(model.answer([model.encode(question) for question in questions], 3)) == 30


class TestPrecision:
    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    @pytest.mark.parametrize("name", ["gpt2", "bert", "t5"])
    def test_unit_word_is_refused_in_half_precision(
        self, name: str, dtype: Any, family_dir: Callable[[str], Path]
    ) -> None:
        folder = str(family_dir(name))
        with pytest.raises(
            BadInput, match=rf"model .*{name}: with {dtype} .*: use --dtype float32"
        ):
            load(folder, LoadOptions(unit="word", dtype=dtype))
        assert load(folder, LoadOptions(dtype=dtype)).info.dtype == dtype

    def test_quantized(self) -> None:
        network = gpt2(len(BYTES))
        check_precision(network, "toy")
        network.is_quantized = True
        with pytest.raises(BadInput, match="leave --quantization out and use --dtype float32"):
            check_precision(network, "toy")

    def test_auto_is_float32_for_unit_word(self) -> None:
        device = torch.device("cuda")
        assert _dtype(LoadOptions(), device) == "auto"
        assert _dtype(LoadOptions(unit="word"), device) == "float32"
        assert _dtype(LoadOptions(unit="word", dtype="float16"), device) == "float16"
