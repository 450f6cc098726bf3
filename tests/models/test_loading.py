"""Loading: options, kinds, commits, pickles, code of a model, the Hub, memory."""

import hashlib
import json
import os
import shutil
from threading import current_thread, main_thread
from unittest.mock import Mock

import psutil
import pytest
import torch
import transformers

import lmdiag
from lmdiag.models import load
from lmdiag.models.forward.reader import Reader
from lmdiag.models.loading.checkpoint import model_digest, resolve
from lmdiag.models.loading.load import detect, load_parts
from lmdiag.models.loading.load_options import LoadOptions
from lmdiag.types import BadInput
from models.toys import edit, refusal


def test_what_is_known_about_a_model(bert, caplog):
    edit(bert, "config.json", eos_token_id=99999)  # transformers would warn
    parts = load_parts(str(bert))
    assert (parts.kind, parts.commit) == ("masked", model_digest(bert))
    assert (parts.training_step, parts.model.dtype) == (None, torch.float32)
    assert not parts.model.training
    assert not any(parameter.requires_grad for parameter in parts.model.parameters())
    assert caplog.messages == []
    # transformers can ask a service on the Hub to convert pickled weights; it must not.
    assert os.environ["DISABLE_SAFETENSORS_CONVERSION"] == "1"


def test_lines_of_transformers_are_not_shown(family_dir, caplog):
    """As those about kernels that are not installed, which come with the first forward pass."""
    transformers.utils.logging.warning_once.cache_clear()
    load(str(family_dir("mamba")))
    assert caplog.messages == []


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "bfloat16"}, {"device_map": "auto"},
        {"device_map": "cpu"}, {"kind": "causal"},  # its causality is tested, too
    ],
)  # fmt: skip
def test_options(bert, options):
    info = load(str(bert), LoadOptions(**options)).info
    expected = {"dtype": "float32", "kind": "masked"} | options
    assert (info.dtype, info.attention, info.kind) == (expected["dtype"], "sdpa", expected["kind"])


def test_half_precision_weights_are_float32_on_the_cpu(bert):
    load_parts(str(bert), LoadOptions(dtype="bfloat16")).model.save_pretrained(bert)
    assert json.loads((bert / "config.json").read_text("utf-8"))["dtype"] == "bfloat16"
    assert load_parts(str(bert), LoadOptions(device="cpu")).model.dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "architecture", "kind"),
    [
        ("BertConfig", "BertLMHeadModel", "causal"), ("BertConfig", None, "masked"),
        ("BertConfig", "BertForPreTraining", "masked"),
        ("RobertaConfig", "RobertaForCausalLM", "causal"),
        ("GPT2Config", "GPT2DoubleHeadsModel", "causal"),
        ("T5Config", "T5WithLMHeadModel", "seq2seq"),
        ("BartConfig", "BartForConditionalGeneration", "seq2seq"),
        ("BartConfig", "BartModel", "seq2seq"), ("XLMConfig", "XLMWithLMHeadModel", "masked"),
    ],
)  # fmt: skip
def test_the_architecture_decides(name, architecture, kind):
    config = getattr(transformers, name)(architectures=architecture and [architecture])
    assert detect("some-model", config) == kind


def test_digest_follows_what_decides_the_answers(bert, monkeypatch):
    before = model_digest(bert)
    assert len(before) == len("sha256:") + 16
    assert model_digest(shutil.copytree(bert, bert.with_name("copy"))) == before
    (bert / "README.md").write_text("another card")
    assert model_digest(bert) == before
    weights = bytearray((bert / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (bert / "model.safetensors").write_bytes(weights)
    changed = model_digest(bert)
    edit(bert, "tokenizer_config.json", model_max_length=63)
    assert len({before, changed, model_digest(bert)}) == 3
    monkeypatch.setattr(hashlib, "file_digest", Mock(side_effect=OSError(5, "I/O error", "x.bin")))
    assert "cannot read x.bin" in refusal(bert)


def test_the_digest_is_computed_once_and_beside_loading(bert, monkeypatch):
    threads = []

    def watched(folder):
        threads.append(current_thread())
        return model_digest(folder)

    monkeypatch.setattr("lmdiag.models.loading.checkpoint.model_digest", watched)
    assert load_parts(str(bert)).commit == model_digest(bert)
    assert len(threads) == 1
    assert threads != [main_thread()]


def test_allowed_pickles(bert):
    weights = load_parts(str(bert)).model.state_dict()
    (bert / "model.safetensors").unlink()
    torch.save(weights, bert / "pytorch_model.bin")
    parts = load_parts(str(bert), LoadOptions(allow_pickle=True))
    bias = "cls.predictions.bias"
    assert torch.equal(parts.model.state_dict()[bias], weights[bias])


def test_code_of_the_models_own_runs_with_the_flag(bert):
    (bert / "own_code.py").write_text(
        "from transformers import BertConfig, BertForMaskedLM\n"
        "class MyConfig(BertConfig):\n    model_type = 'my-bert'\n"
        "class MyModel(BertForMaskedLM):\n    config_class = MyConfig\n"
    )
    classes = {"AutoConfig": "own_code.MyConfig", "AutoModelForMaskedLM": "own_code.MyModel"}
    edit(bert, "config.json", model_type="my-bert", auto_map=classes, architectures=["MyModel"])
    parts = load_parts(str(bert), LoadOptions(trust_remote_code=True))
    assert (type(parts.model).__name__, parts.kind) == ("MyModel", "masked")


def test_shards_and_links_are_followed(bert):
    load_parts(str(bert)).model.save_pretrained(bert, max_shard_size="20KB")
    (bert / "model.safetensors").unlink(missing_ok=True)
    blob = bert.parent / "0123abcd"
    (bert / "config.json").rename(blob)
    (bert / "config.json").symlink_to(blob)
    (bert.parent / "last").symlink_to(bert)
    assert load_parts(str(bert.parent / "last")).kind == "masked"


def test_a_model_of_the_hub_is_pinned_to_its_commit(api, family_dir, monkeypatch):
    """Once it was read, no network is needed."""
    api.create_repo("org/tiny-gpt2")
    api.upload_folder(repo_id="org/tiny-gpt2", folder_path=family_dir("gpt2"))
    commit = api.model_info("org/tiny-gpt2").sha
    for revision in (None, "main", commit):
        assert load_parts("org/tiny-gpt2", LoadOptions(revision=revision)).commit == commit
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load_parts("org/tiny-gpt2").commit == commit
    assert "is not in the cache" in refusal("org/another")


def test_the_training_step_of_a_revision(monkeypatch):
    """The first checkpoint of Pythia is step0; without a revision the name of the model counts."""
    monkeypatch.setattr("lmdiag.models.loading.checkpoint._hub_commit", lambda *_: "0123abcd")
    revisions = ("step0", "step1000", "main", None)
    steps = [resolve("org/tiny-step500", revision).training_step for revision in revisions]
    assert steps == [0, 1000, 500, 500]
    assert resolve("org/tiny", "step0").training_step == 0


def test_weights_that_are_not_in_the_cache(api, family_dir, monkeypatch):
    api.create_repo("org/tiny-gpt2")
    api.upload_folder(repo_id="org/tiny-gpt2", folder_path=family_dir("gpt2"))
    transformers.AutoConfig.from_pretrained("org/tiny-gpt2")
    transformers.AutoTokenizer.from_pretrained("org/tiny-gpt2")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "its weights are not in the cache" in refusal("org/tiny-gpt2")


def test_weights_that_are_larger_than_the_free_memory(bert, monkeypatch):
    memory = Mock(available=(bert / "model.safetensors").stat().st_size)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    load_parts(str(bert), LoadOptions(device="cpu"))
    memory.available -= 1
    assert "memory are free on device cpu: try --device-map auto" in refusal(bert, device="cpu")
    load_parts(str(bert), LoadOptions(device_map="auto"))  # may go to the disk


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unit": "words"}, "option unit: input should be 'token' or 'word', not 'words'"),
        ({"unit": "word" * 10_000}, "option unit: input should be"),
        ({"dtype": None}, "option dtype: input should be 'auto', 'float32'"),
        ({"trust_remote_code": "no"}, "remote_code: input should be a valid boolean, not 'no'"),
        ({"prompt": "Go on."}, "prompt must be a text, or a file with a text, that has {context}"),
        ({"prompt": "{context} {context}"}, "once, where the context goes, not '{context} {"),
        ({"bos": "always", "chat": True}, "--bos cannot be used beside --chat: the chat template"),
        ({"chat": True, "instruction": "{context}"}, "option instruction must not have {con"),
        ({"elicitation": "choice", "choice_prompt": "x"}, "that has {options} in it"),
        ({"elicitation": "choice", "choice_prompt": "{options}" * 2}, "in it once"),
        ({"units": "word"}, "unknown option 'units' (did you mean 'unit'?): choose from "),
    ],
)
def test_an_option_that_is_not_allowed(options, told):
    with pytest.raises(BadInput) as caught:
        lmdiag.load_model("no-such-folder/never/read", **options)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("loaded", "options", "is_kept"),
    [
        ({}, {"bos": "always"}, True),
        ({}, {"unit": "word"}, True),  # the demo model's own dtype is float32, which it needs
        ({"unit": "word"}, {}, False),  # unit token may have another dtype
        ({"unit": "word", "dtype": "float32"}, {"dtype": "float32"}, True),
    ],
)
def test_an_accelerator_keeps_weights_of_the_dtype_that_other_options_need(
    loaded, options, is_kept, monkeypatch
):
    model = load("demo:causal", LoadOptions(**loaded))
    monkeypatch.setattr(Reader, "device", torch.device("cuda"))
    monkeypatch.setattr("lmdiag.models.local.assemble", lambda *given: given)
    assert (model.with_options(LoadOptions(**options)) is not None) == is_kept
