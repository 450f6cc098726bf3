"""Loading: kinds, commits, training steps, and one clear line for whatever cannot be loaded."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES

from lmdiag.models.loading.checkpoint import digest, resolve
from lmdiag.models.loading.kinds import detect
from lmdiag.models.loading.load import LoadOptions, Parts, load_parts
from lmdiag.schema import BadInput
from lmdiag.training_steps import training_step

FamilyDir = Callable[[str], Path]


@pytest.fixture
def bert(family_dir: FamilyDir, tmp_path: Path) -> Path:
    """A BERT of one's own, to be broken."""
    return Path(shutil.copytree(family_dir("bert"), tmp_path / "my-bert"))


@pytest.fixture
def gpt2(family_dir: FamilyDir, tmp_path: Path) -> Path:
    """A GPT-2 of one's own, to be broken."""
    return Path(shutil.copytree(family_dir("gpt2"), tmp_path / "my-gpt2"))


def refusal(model: object, **options: Any) -> str:
    """Returns the one line with which a model is refused; it names the model."""
    with pytest.raises(BadInput) as caught:
        load_parts(str(model), LoadOptions(**options))
    message = str(caught.value)
    assert "\n" not in message
    assert str(model) in message
    return message


def edit(folder: Path, file: str, **changes: Any) -> None:
    """Changes entries of a JSON file; None removes an entry."""
    content = json.loads((folder / file).read_text("utf-8")) | changes
    kept = {key: value for key, value in content.items() if value is not None}
    (folder / file).write_text(json.dumps(kept), "utf-8")


class TestParts:
    def test_what_is_known_about_a_model(self, bert: Path) -> None:
        parts = load_parts(str(bert))
        assert isinstance(parts, Parts)
        assert parts.kind == "masked"
        assert parts.dtype == "float32"
        assert parts.commit == digest(bert)
        assert parts.attention == "sdpa"
        assert (parts.quantization, parts.training_step) == (None, None)

    def test_nothing_is_trained_or_dropped_out(self, bert: Path) -> None:
        model = load_parts(str(bert)).model
        assert not model.training
        assert not any(parameter.requires_grad for parameter in model.parameters())

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    def test_dtype(self, bert: Path, dtype: str) -> None:
        assert load_parts(str(bert), LoadOptions(dtype=dtype)).dtype == dtype  # type: ignore[arg-type]

    def test_half_precision_weights_are_float32_on_the_cpu(self, bert: Path) -> None:
        load_parts(str(bert), LoadOptions(dtype="bfloat16")).model.save_pretrained(bert)
        assert json.loads((bert / "config.json").read_text("utf-8"))["dtype"] == "bfloat16"
        assert load_parts(str(bert), LoadOptions(device="cpu")).dtype == "float32"

    def test_attention(self, bert: Path) -> None:
        assert load_parts(str(bert), LoadOptions(attention="eager")).attention == "eager"

    def test_device_map(self, bert: Path) -> None:
        parts = load_parts(str(bert), LoadOptions(device_map="auto", dtype="float32"))
        assert parts.model.device.type in ("cpu", "cuda")

    def test_loading_is_quiet(
        self, bert: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        edit(bert, "config.json", eos_token_id=99999)  # transformers would say so
        level = logging.getLogger("transformers").level
        load_parts(str(bert))
        assert capfd.readouterr() == ("", "")
        assert caplog.records == []
        assert logging.getLogger("transformers").level == level

    def test_home_folder(self, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(bert.parent))
        assert load_parts("~/my-bert").kind == "masked"


class TestKinds:
    @pytest.mark.parametrize("name", FAMILIES)
    def test_every_family_is_known(self, name: str, family_dir: FamilyDir) -> None:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(str(family_dir(name)))
        assert detect(name, config) == FAMILIES[name].kind

    @pytest.mark.parametrize(
        ("config", "kind"),
        [
            (("BertConfig", ["BertLMHeadModel"]), "causal"),
            (("BertConfig", ["BertForMaskedLM"]), "masked"),
            (("BertConfig", ["BertForPreTraining"]), "masked"),
            (("BertConfig", None), "masked"),
            (("ElectraConfig", ["ElectraForPreTraining"]), "masked"),
            (("RobertaConfig", ["RobertaForCausalLM"]), "causal"),
            (("GPT2Config", ["GPT2DoubleHeadsModel"]), "causal"),
            (("T5Config", ["T5WithLMHeadModel"]), "seq2seq"),
            (("BartConfig", ["BartForConditionalGeneration"]), "seq2seq"),
            (("BartConfig", ["BartModel"]), "seq2seq"),
            (("XLMConfig", ["XLMWithLMHeadModel"]), "masked"),
        ],
    )
    def test_the_architecture_decides(
        self, config: tuple[str, list[str] | None], kind: str
    ) -> None:
        import transformers

        name, architectures = config
        made = getattr(transformers, name)(architectures=architectures)
        assert detect("some-model", made) == kind

    def test_a_bert_decoder_looks_to_the_left_alone(self, bert: Path) -> None:
        import torch

        parts = load_parts(str(bert), LoadOptions(kind="causal"))
        assert parts.kind == "causal"
        one, other = torch.tensor([[2, 9, 10, 11]]), torch.tensor([[2, 9, 10, 12]])
        first, second = parts.model(one).logits, parts.model(other).logits
        assert torch.equal(first[:, :3], second[:, :3])
        assert not torch.equal(first[:, 3], second[:, 3])

    def test_a_model_of_pictures(self, bert: Path) -> None:
        edit(bert, "config.json", model_type="vit", architectures=["ViTForImageClassification"])
        message = refusal(bert)
        assert "ViTForImageClassification" in message
        assert "no language model" in message

    def test_a_kind_that_the_type_does_not_have(self, gpt2: Path) -> None:
        edit(gpt2, "tokenizer_config.json", mask_token="<|endoftext|>")
        assert "choose another --kind" in refusal(gpt2, kind="masked")


class TestCheckpoint:
    @pytest.mark.parametrize(
        ("name", "step"),
        [
            ("step1000", 1000), ("step-1000", 1000), ("step_20k", 20_000), ("1000-steps", 1000),
            ("checkpoint-500", 500), ("global_step95000", 95_000), ("step0", 0),
            ("stage1-step140000-tokens294B", 140_000), ("seed_0-step_1900k", 1_900_000),
            ("iter_0010000", 10_000), ("step1M", 1_000_000), ("100k-steps", 100_000),
            ("main", None), ("v1.0", None), ("footstep9", None), ("step3b2f", None),
            ("0123456789abcdef", None), ("bert-base-uncased", None),
        ],
    )  # fmt: skip
    def test_training_step(self, name: str, step: int | None) -> None:
        assert training_step(name) == step

    def test_folder_of_a_checkpoint(self, bert: Path) -> None:
        folder = bert.rename(bert.with_name("checkpoint-1500"))
        assert resolve(str(folder)).training_step == 1500

    def test_digest_follows_what_decides_the_answers(self, bert: Path) -> None:
        before = digest(bert)
        assert len(before) == len("sha256:") + 16
        (bert / "README.md").write_text("another card")
        (bert / "optimizer.pt").write_bytes(b"state")
        assert digest(bert) == before
        weights = bytearray((bert / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (bert / "model.safetensors").write_bytes(weights)
        changed = digest(bert)
        assert changed != before
        edit(bert, "tokenizer_config.json", model_max_length=63)
        assert digest(bert) not in (before, changed)

    def test_the_same_files_elsewhere_have_the_same_digest(self, bert: Path) -> None:
        copy = shutil.copytree(bert, bert.with_name("copy"))
        assert digest(copy) == digest(bert)


class TestFolders:
    def test_no_such_folder(self, tmp_path: Path) -> None:
        assert "check the path" in refusal(tmp_path / "nowhere")

    @pytest.mark.parametrize("name", ["a/b/c", "what is this?", "-bert", "no:colon"])
    def test_neither_folder_nor_hub_id(self, name: str) -> None:
        assert refusal(name).startswith("no model")

    def test_a_file(self, bert: Path) -> None:
        assert "give the folder" in refusal(bert / "model.safetensors")

    def test_empty_folder(self, tmp_path: Path) -> None:
        assert "has no config.json" in refusal(tmp_path)

    def test_adapter(self, tmp_path: Path) -> None:
        (tmp_path / "adapter_config.json").write_text("{}")
        assert "merge the adapter" in refusal(tmp_path)

    def test_folders_have_no_revisions(self, bert: Path) -> None:
        assert "no revision step1000" in refusal(bert, revision="step1000")

    @pytest.mark.parametrize("content", ['{"model_type": "bert", ', "[1, 2]", "{}", ""])
    def test_broken_configuration(self, bert: Path, content: str) -> None:
        (bert / "config.json").write_text(content)
        assert "configuration" in refusal(bert)

    def test_unknown_type(self, bert: Path) -> None:
        edit(bert, "config.json", model_type="bert9000")
        assert "bert9000" in refusal(bert)

    def test_shapes_that_the_configuration_does_not_say(self, bert: Path) -> None:
        edit(bert, "config.json", intermediate_size=64)
        assert "shapes" in refusal(bert)


class TestWeights:
    @pytest.mark.parametrize("content", [b"", b"garbage" * 100])
    def test_damaged(self, bert: Path, content: bytes) -> None:
        (bert / "model.safetensors").write_bytes(content)
        assert "damaged" in refusal(bert)

    def test_torn(self, bert: Path) -> None:
        weights = (bert / "model.safetensors").read_bytes()
        (bert / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        assert "damaged" in refusal(bert)

    def test_pickled(self, bert: Path) -> None:
        import torch

        weights = load_parts(str(bert)).model.state_dict()
        (bert / "model.safetensors").unlink()
        torch.save(weights, bert / "pytorch_model.bin")
        assert "--allow-pickle" in refusal(bert)
        parts = load_parts(str(bert), LoadOptions(allow_pickle=True))
        assert torch.equal(parts.model.state_dict()["cls.predictions.bias"],
                           weights["cls.predictions.bias"])  # fmt: skip

    def test_none(self, bert: Path) -> None:
        (bert / "model.safetensors").unlink()
        assert "no weights" in refusal(bert)
        assert "no weights" in refusal(bert, allow_pickle=True)

    def test_missing_part_of_several(self, bert: Path) -> None:
        load_parts(str(bert)).model.save_pretrained(bert, max_shard_size="20KB")
        (bert / "model.safetensors").unlink(missing_ok=True)
        first = sorted(bert.glob("model-*.safetensors"))[0]
        first.unlink()
        assert first.name in refusal(bert)

    def test_encoder_without_a_head(self, bert: Path) -> None:
        load_parts(str(bert)).model.bert.save_pretrained(bert)
        message = refusal(bert, kind="masked")
        assert "would be random" in message
        assert "cls.predictions" in message

    def test_decoder_without_a_head_of_its_own(self, family_dir: FamilyDir, tmp_path: Path) -> None:
        """Llama's output layer is not its input embeddings: without it there is no model."""
        folder = Path(shutil.copytree(family_dir("llama"), tmp_path / "llama"))
        model = load_parts(str(folder)).model
        weights = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
        model.save_pretrained(folder, state_dict=weights)
        assert "lm_head.weight" in refusal(folder)

    def test_tied_weights_are_not_missing(self, gpt2: Path) -> None:
        """GPT-2's output layer is its input embeddings: checkpoints leave it out."""
        model = load_parts(str(gpt2)).model
        model.transformer.save_pretrained(gpt2)
        again = load_parts(str(gpt2), LoadOptions(kind="causal")).model
        assert again.lm_head.weight.equal(model.lm_head.weight)

    def test_old_names_of_weights(self, bert: Path) -> None:
        """The published BERT has gamma and beta, and no second copy of its tied weights."""
        from safetensors.torch import load_file, save_file

        weights = load_file(bert / "model.safetensors")
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): value
            for name, value in weights.items()
            if "decoder" not in name
        }
        assert set(renamed) != set(weights)
        save_file(renamed, bert / "model.safetensors", {"format": "pt"})
        assert load_parts(str(bert)).kind == "masked"


class TestTokenizers:
    def test_none(self, bert: Path) -> None:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (bert / name).unlink()
        assert "without a tokenizer" in refusal(bert)

    @pytest.mark.parametrize("content", ["{", "{}", '{"version": "1.0"}', ""])
    def test_broken(self, bert: Path, content: str) -> None:
        (bert / "tokenizer.json").write_text(content)
        assert "tokenizer" in refusal(bert)

    def test_no_mask_token(self, bert: Path) -> None:
        edit(bert, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
        edit(bert, "tokenizer_config.json", mask_token=None)
        assert "no mask token" in refusal(bert)

    def test_of_another_model(self, bert: Path, family_dir: FamilyDir) -> None:
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(family_dir("roberta") / file, bert / file)
        message = refusal(bert)
        assert "ids up to 439" in message
        assert "belongs to another model" in message

    def test_added_tokens_beyond_the_embeddings_do_no_harm(self, gpt2: Path) -> None:
        """Gemma 3 has one for pictures, which no text makes."""
        content = json.loads((gpt2 / "tokenizer.json").read_text("utf-8"))
        picture = content["added_tokens"][0] | {"id": 440, "content": "<picture>"}
        content["added_tokens"].append(picture)
        (gpt2 / "tokenizer.json").write_text(json.dumps(content), "utf-8")
        assert load_parts(str(gpt2)).tokenizer.convert_tokens_to_ids("<picture>") == 440

    def test_slow(self, tmp_path: Path) -> None:
        """CTRL's tokenizer exists in Python alone."""
        from transformers import CTRLConfig, CTRLLMHeadModel

        config = CTRLConfig(vocab_size=6, n_embd=8, dff=8, n_layer=1, n_head=1)
        CTRLLMHeadModel(config).save_pretrained(tmp_path)
        pieces = ["<unk>", "a", "b</w>", "a</w>", "ab</w>"]
        (tmp_path / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
        (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w> 1\n")
        assert "no fast version" in refusal(tmp_path)


class TestOptions:
    def test_code_of_the_models_own(self, bert: Path) -> None:
        classes = {"AutoConfig": "code.MyConfig", "AutoModelForMaskedLM": "code.MyModel"}
        edit(bert, "config.json", model_type="my-bert", auto_map=classes)
        assert "--trust-remote-code" in refusal(bert)

    def test_code_of_the_models_own_runs_with_the_flag(self, bert: Path) -> None:
        (bert / "own_code.py").write_text(
            "from transformers import BertConfig, BertForMaskedLM\n"
            "class MyConfig(BertConfig):\n    model_type = 'my-bert'\n"
            "class MyModel(BertForMaskedLM):\n    config_class = MyConfig\n"
        )
        classes = {"AutoConfig": "own_code.MyConfig", "AutoModelForMaskedLM": "own_code.MyModel"}
        edit(bert, "config.json", model_type="my-bert", auto_map=classes, architectures=["MyModel"])
        parts = load_parts(str(bert), LoadOptions(trust_remote_code=True))
        assert (type(parts.model).__name__, parts.kind) == ("MyModel", "masked")

    @pytest.mark.parametrize("quantization", ["8bit", "4bit"])
    def test_quantization_without_its_library(self, bert: Path, quantization: str) -> None:
        from importlib.util import find_spec

        if find_spec("bitsandbytes") is not None:
            pytest.skip("bitsandbytes is installed")
        assert f"{quantization} weights need bitsandbytes" in refusal(
            bert, quantization=quantization
        )

    def test_tensor_parallel_in_one_process(self, bert: Path) -> None:
        assert "several processes" in refusal(bert, tp=True)

    def test_tensor_parallel_and_device_map(
        self, bert: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert "exclude each other" in refusal(bert, tp=True, device_map="auto")

    def test_tensor_parallel_without_a_plan(
        self, gpt2: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert "no plan to split a gpt2" in refusal(gpt2, tp=True)

    def test_tensor_parallel_with_heads_that_do_not_divide(
        self, family_dir: FamilyDir, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert "1 key-value heads" in refusal(family_dir("llama"), tp=True)

    def test_unknown_attention(self, bert: Path) -> None:
        assert "attention" in refusal(bert, attention="sideways")

    def test_attention_that_is_not_installed(self, bert: Path) -> None:
        assert "flash" in refusal(bert, attention="flash_attention_2").lower()

    @pytest.mark.parametrize("device", ["cuda:99", "abacus"])
    def test_no_such_device(self, bert: Path, device: str) -> None:
        assert device in refusal(bert, device=device)


def test_no_conversion_of_weights_by_others(bert: Path) -> None:
    """transformers can ask a service on the Hub to convert pickled weights; not in our name."""
    load_parts(str(bert))
    assert os.environ["DISABLE_SAFETENSORS_CONVERSION"] == "1"
