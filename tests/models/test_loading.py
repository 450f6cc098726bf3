"""Loading: options, kinds, commits, training steps, memory and devices."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
import torch
import transformers

import lmdiag
from lmdiag.models.loading.checkpoint import model_digest
from lmdiag.models.loading.load import detect, load_parts
from lmdiag.models.loading.options import LoadOptions
from lmdiag.types import BadInput
from models.toys import edit, refusal

FamilyDir = Callable[[str], Path]


def test_what_is_known_about_a_model(bert: Path) -> None:
    parts = load_parts(str(bert))
    assert (parts.kind, parts.commit) == ("masked", model_digest(bert))
    assert (parts.training_step, parts.model.dtype) == (None, torch.float32)
    assert not parts.model.training
    assert not any(parameter.requires_grad for parameter in parts.model.parameters())
    # transformers can ask a service on the Hub to convert pickled weights; it must not.
    assert os.environ["DISABLE_SAFETENSORS_CONVERSION"] == "1"


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float32"}, {"dtype": "bfloat16"}, {"dtype": "float16"}, {"attention": "eager"},
        {"device_map": "auto"}, {"device_map": "cpu"}, {"device_map": "sequential"},
    ],
)  # fmt: skip
def test_options(bert: Path, options: dict[str, Any]) -> None:
    parts = load_parts(str(bert), LoadOptions(**options))
    assert parts.model.dtype == getattr(torch, options.get("dtype", "float32"))
    assert parts.model.config._attn_implementation == options.get("attention", "sdpa")


def test_half_precision_weights_are_float32_on_the_cpu(bert: Path) -> None:
    load_parts(str(bert), LoadOptions(dtype="bfloat16")).model.save_pretrained(bert)
    assert json.loads((bert / "config.json").read_text("utf-8"))["dtype"] == "bfloat16"
    assert load_parts(str(bert), LoadOptions(device="cpu")).model.dtype == torch.float32


def test_loading_is_quiet(
    bert: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    edit(bert, "config.json", eos_token_id=99999)  # transformers would warn
    level = logging.getLogger("transformers").level
    load_parts(str(bert))
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert logging.getLogger("transformers").level == level


class TestKinds:
    @pytest.mark.parametrize(
        ("name", "architecture", "kind"),
        [
            ("BertConfig", "BertLMHeadModel", "causal"), ("BertConfig", None, "masked"),
            ("BertConfig", "BertForMaskedLM", "masked"),
            ("BertConfig", "BertForPreTraining", "masked"),
            ("ElectraConfig", "ElectraForPreTraining", "masked"),
            ("RobertaConfig", "RobertaForCausalLM", "causal"),
            ("GPT2Config", "GPT2DoubleHeadsModel", "causal"),
            ("T5Config", "T5WithLMHeadModel", "seq2seq"),
            ("BartConfig", "BartForConditionalGeneration", "seq2seq"),
            ("BartConfig", "BartModel", "seq2seq"), ("XLMConfig", "XLMWithLMHeadModel", "masked"),
        ],
    )  # fmt: skip
    def test_the_architecture_decides(self, name: str, architecture: str | None, kind: str) -> None:
        architectures = None if architecture is None else [architecture]
        config = getattr(transformers, name)(architectures=architectures)
        assert detect("some-model", config) == kind

    def test_a_bert_decoder_looks_to_the_left_alone(self, bert: Path) -> None:
        parts = load_parts(str(bert), LoadOptions(kind="causal"))
        assert parts.kind == "causal"
        first, second = (parts.model(torch.tensor([[2, 9, 10, n]])).logits for n in (11, 12))
        assert torch.equal(first[:, :3], second[:, :3])
        assert not torch.equal(first[:, 3], second[:, 3])


class TestCheckpoint:
    def test_digest_follows_what_decides_the_answers(self, bert: Path) -> None:
        before = model_digest(bert)
        assert len(before) == len("sha256:") + 16
        assert model_digest(shutil.copytree(bert, bert.with_name("copy"))) == before
        (bert / "README.md").write_text("another card")
        (bert / "optimizer.pt").write_bytes(b"state")
        assert model_digest(bert) == before
        weights = bytearray((bert / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (bert / "model.safetensors").write_bytes(weights)
        changed = model_digest(bert)
        assert changed != before
        edit(bert, "tokenizer_config.json", model_max_length=63)
        assert model_digest(bert) not in (before, changed)

    def test_a_file_that_cannot_be_read(self, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As on a broken disk: one line, and nothing is remembered."""

        def broken(file: Any, name: str) -> Any:
            raise OSError(errno.EIO, "Input/output error", file.name)

        with monkeypatch.context() as patch:
            patch.setattr(hashlib, "file_digest", broken)
            with pytest.raises(BadInput, match=r"model folder .*: cannot read .*config.json"):
                load_parts(str(bert))
        assert load_parts(str(bert)).commit == model_digest(bert)


class TestWeights:
    def test_allowed_pickles(self, bert: Path) -> None:
        weights = load_parts(str(bert)).model.state_dict()
        (bert / "model.safetensors").unlink()
        torch.save(weights, bert / "pytorch_model.bin")
        assert "--allow-pickle" in refusal(bert)
        parts = load_parts(str(bert), LoadOptions(allow_pickle=True))
        bias = "cls.predictions.bias"
        assert torch.equal(parts.model.state_dict()[bias], weights[bias])

    def test_tied_weights_are_not_missing(self, family_dir: FamilyDir, tmp_path: Path) -> None:
        """GPT-2's output layer is its input embeddings: checkpoints leave it out."""
        folder = shutil.copytree(family_dir("gpt2"), tmp_path / "gpt2")
        model = load_parts(str(folder)).model
        model.transformer.save_pretrained(folder)
        again = load_parts(str(folder), LoadOptions(kind="causal")).model
        assert again.lm_head.weight.equal(model.lm_head.weight)

    def test_added_tokens_beyond_the_embeddings_do_no_harm(
        self, family_dir: FamilyDir, tmp_path: Path
    ) -> None:
        """Gemma 3 has one for pictures, which no text makes."""
        folder = shutil.copytree(family_dir("gpt2"), tmp_path / "gpt2")
        content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        added = content["added_tokens"]
        added.append(added[0] | {"id": 440, "content": "<picture>"})
        (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
        assert load_parts(str(folder)).tokenizer.convert_tokens_to_ids("<picture>") == 440

    def test_old_names_of_weights(self, bert: Path) -> None:
        """The published BERT has gamma and beta, and no second copy of its tied weights."""
        from safetensors.torch import load_file, save_file

        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        weights = load_file(bert / "model.safetensors")
        renamed = {
            next((name.replace(new, old[new]) for new in old if new in name), name): value
            for name, value in weights.items()
            if "decoder" not in name
        }
        assert set(renamed) != set(weights)
        save_file(renamed, bert / "model.safetensors", {"format": "pt"})
        assert load_parts(str(bert)).kind == "masked"

    def test_code_of_the_models_own_runs_with_the_flag(self, bert: Path) -> None:
        (bert / "own_code.py").write_text(
            "from transformers import BertConfig, BertForMaskedLM\n"
            "class MyConfig(BertConfig):\n    model_type = 'my-bert'\n"
            "class MyModel(BertForMaskedLM):\n    config_class = MyConfig\n"
        )
        classes = {"AutoConfig": "own_code.MyConfig", "AutoModelForMaskedLM": "own_code.MyModel"}
        edit(bert, "config.json", model_type="my-bert", auto_map=classes, architectures=["MyModel"])
        assert "--trust-remote-code" in refusal(bert)
        parts = load_parts(str(bert), LoadOptions(trust_remote_code=True))
        assert (type(parts.model).__name__, parts.kind) == ("MyModel", "masked")


def test_weights_that_are_larger_than_the_free_memory(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (bert / "model.safetensors").stat().st_size
    for free in (size, size - 1):
        monkeypatch.setattr(psutil, "virtual_memory", lambda free=free: Mock(available=free))
        if free == size:
            load_parts(str(bert), LoadOptions(device="cpu"))
    assert "memory are free on device cpu: try --device-map auto" in refusal(bert, device="cpu")
    load_parts(str(bert), LoadOptions(device_map="auto"))  # may go to the disk


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unit": "words"}, "option unit must be one of token, word, not 'words' (did you mean "),
        ({"unit": "word" * 10_000}, "option unit must be one of"),
        ({"bos": "allways"}, "(did you mean 'always'?)"),
        ({"kind": "mask"}, "(did you mean 'masked'?)"),
        ({"dtype": "bf16"}, "option dtype must be one of auto, float32"),
        ({"dtype": None}, "option dtype must be a string, not None"),
        ({"packing": "sometimes"}, "option packing must be one of auto, always, never"),
        ({"quantization": "4 bit"}, "(did you mean '4bit'?)"),
        ({"quantization": 4}, "option quantization must be a string, not 4"),
        ({"trust_remote_code": "no"}, "option trust_remote_code must be True or False, not 'no'"),
        ({"allow_pickle": 1}, "option allow_pickle must be True or False"),
        ({"revision": 3}, "option revision must be a string"),
        ({"device": ["cuda"]}, "option device must be a string"),
        ({"final_period": "no"}, "option final_period must be one of always, never"),
        ({"first_letter": "up"}, "option first_letter must be one of as-is, upper, lower"),
        ({"chat": "yes"}, "option chat must be True or False"),
        ({"prompt": "Go on."}, "prompt must be a text, or a file with a text, that has {context}"),
        ({"prompt": "{context} {context}"}, "once, where the context goes, not '{context} {"),
        ({"prompt": "a {context}", "chat": True}, "options chat and prompt exclude each other"),
        ({"bos": "always", "chat": True}, "options chat and bos exclude each other"),
        ({"chat": True, "instruction": "{context}"}, "option instruction must not have {con"),
        ({"units": "word"}, "unknown option 'units' (did you mean 'unit'?): choose from "),
        ({"revison": "main"}, "(did you mean 'revision'?)"),
    ],
)
def test_an_option_that_is_not_allowed(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as caught:
        lmdiag.load_model("no-such-folder/never/read", **options)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
