"""Models that are broken or made to harm: each is refused in one line, and no code runs."""

import json
import os
import pickle
import shutil
from functools import partial
from pathlib import Path

import httpx2
import pytest
import tokenizer_files

from lmdiag.models import LoadOptions, load
from lmdiag.models.loading.load import load_parts
from models.toys import edit, refusal

INDEX = "model.safetensors.index.json"
PICKLED_INDEX = "pytorch_model.bin.index.json"
WEIGHTS = "model.safetensors"


def changed(file, **entries):
    return lambda folder: edit(folder, file, **entries)


config, tokenizer = partial(changed, "config.json"), partial(changed, "tokenizer_config.json")


def write(name, content):
    raw = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(raw)


def remove(*names):
    return lambda folder: [(folder / name).unlink(missing_ok=True) for name in names]


def all_of(*breaks):
    return lambda folder: [damage(folder) for damage in breaks]


def indexed(index, *names):
    """Has an index name weight files, the first of which are good ones."""
    content = {"metadata": {}, "weight_map": {f"w{n}": name for n, name in enumerate(names)}}
    return all_of(remove(WEIGHTS), write(index, json.dumps(content)))


def without_head(folder):
    load_parts(str(folder)).model.base_model.save_pretrained(folder)


def one_embedding_less(folder):
    model = load_parts(str(folder)).model
    model.resize_token_embeddings(439)
    model.save_pretrained(folder)


class Trap:
    """An object whose unpickling creates a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def trap(name):
    """Puts a pickle in the place of the weights."""
    return lambda folder: [
        remove(WEIGHTS)(folder),
        (folder / name).write_bytes(pickle.dumps(Trap(folder.parent / "sprung"))),
    ]


nothing = all_of()
"""The folder is good."""

REMOTE = {"AutoConfig": "code.MyConfig", "AutoModelForMaskedLM": "code.MyModel"}
ADAPTER = write("adapter_config.json", '{"base_model_name_or_path": "gpt2"}')

# The tokenizers library panics, which is not an Exception.
PANIC = changed("tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": "=x"})
# CTRL's tokenizer exists in Python alone.
CTRL = all_of(
    remove("tokenizer.json", "tokenizer_config.json"), config(model_type="ctrl"),
    write("vocab.json", '{"<unk>": 0, "a": 1, "b</w>": 2, "ab</w>": 3}'),
    write("merges.txt", "#version: 0.2\na b</w> 1\n"),
)  # fmt: skip

FOLDERS = [
    ("bert", config(model_type="bert9000"), {}, "bert9000"),
    ("bert", config(model_type="vit", architectures=["ViTForImageClassification"]), {},
     "(ViTForImageClassification) is not a language model"),
    ("t5", partial(tokenizer_files.write, "bert"), {}, "is not supported: t5 is an encoder-dec"),
    ("xmod", config(default_language=None), {}, "set_default_language"),
    ("gpt2", tokenizer(mask_token="<|endoftext|>"), {"kind": "masked"}, "choose another --kind"),
    ("bert", nothing, {"revision": "step1000"}, "no revision step1000"),
    ("bert", ADAPTER, {}, "adapter_config.json) beside its weights: merge"),
    # code and pickles
    ("bert", config(model_type="my-bert", auto_map=REMOTE), {}, "--trust-remote-code"),
    ("bert", config(attn_implementation="someone/kernel"), {}, "must be a part of transformers"),
    ("bert", config(text_config={"a": [{"_attn_implementation": "x/y"}]}), {}, "not 'x/y'"),
    ("bert", trap("pytorch_model.bin"), {}, "--allow-pickle"),
    ("bert", trap("pytorch_model.bin"), {"allow_pickle": True}, "cannot load its masked model"),
    ("bert", all_of(trap("x.bin"), indexed(INDEX, WEIGHTS, "x.bin")), {}, "--allow-pickle"),
    ("bert", all_of(trap("x.bin"), config(transformers_weights="x.bin")), {}, "--allow-pickle"),
    ("bert", all_of(trap("x.bin"), indexed("x.safetensors.index.json", "x.bin"),
                    config(transformers_weights="x.safetensors.index.json")), {}, "--allow-pickle"),
    ("bert", all_of(trap("x-1.bin"), indexed(PICKLED_INDEX, "x-1.bin")), {}, "--allow-pickle"),
    # weights
    *(("bert", write(WEIGHTS, content), {}, "damaged") for content in (b"", b"garbage" * 100)),
    ("bert", remove(WEIGHTS), {"allow_pickle": True}, "no weights: put model.safetensors"),
    ("bert", remove(WEIGHTS), {}, "no safetensors weights: put model.safetensors"),
    ("bert", without_head, {"kind": "masked"}, "(first: cls.predictions"),
    ("bert", config(intermediate_size=64), {}, "shapes"),
    ("bert", all_of(write("shard-00001-model-00001-of-00001.safetensors", ""), remove(WEIGHTS)),
     {}, "from shard-*.safetensors"),  # torch's exception is not an Exception
    ("bert", indexed(INDEX, "model-1.safetensors"), {}, "model-1.safetensors"),
    *(("bert", indexed(INDEX, name), {}, "does not cover")
      for name in ("../x.safetensors", "sub/x.safetensors", "/x.safetensors", "", 1)),
    ("bert", indexed(PICKLED_INDEX, "../x.pt"), {"allow_pickle": True}, "does not cover"),
    ("bert", config(transformers_weights=f"sub/{WEIGHTS}"), {}, "does not cover"),
    *(("bert", write(INDEX, content), {}, INDEX)
      for content in ("[]", '{"weight_map": []}', '{"weight_map": {}}', "{")),
    # tokenizers
    ("bert", remove("tokenizer.json", "tokenizer_config.json"), {}, "without a tokenizer"),
    *(("bert", write("tokenizer.json", content), {}, "tokenizer")
      for content in ("{", "{}", '{"version": "1.0"}', "")),
    ("albert", PANIC, {}, "cannot load its tokenizer"),
    ("bert", tokenizer(mask_token=None), {}, "no mask token"),
    ("bert", CTRL, {}, "no fast version"),
    ("gpt2", one_embedding_less, {}, "ids up to 439 but the model only 439 embeddings"),
    # options
    ("bert", lambda _: os.environ.pop("WORLD_SIZE"), {"tp": True}, "several processes"),
    ("llama", nothing, {"tp": True}, "1 key-value heads"),
    ("bert", nothing, {"quantization": "4bit"}, "requires bitsandbytes"),
    *(("bert", nothing, {option: name}, f"no device {name!r} here")
      for option in ("device", "device_map") for name in ("cuda:99", "meta", "")),
    ("bert", nothing, {"device_map": "cuda:99"}, "give auto"),
    *((name, nothing, {"unit": "word", "dtype": "bfloat16"}, "with bfloat16 weights the")
      for name in ("gpt2", "bert", "t5")),
    # configuration
    *(("bert", write("config.json", content), {}, "configuration") for content in (
        b"[1, 2]", b"{}", b"\xff\xfe{}", b"[" * 100_000, b"1" * 10_000, b'"x"', b"null",
        b'{"model_type": "\\ud800"}',
    )),
    *(("bert", config(quantization_config=value), {}, "quantization_config")
      for value in ("awq", {"quant_method": "magic"}, {}, {"quant_method": ["awq"]}, 7)),
    *(("bert", config(**{name: value}), {}, "") for name, value in (
        ("hidden_size", "32"), ("num_attention_heads", 7), ("hidden_act", "sideways"),
        ("vocab_size", None), ("id2label", [1, 2]),
    )),
]  # fmt: skip
"""Family, what is broken, options, and a part of the line."""


@pytest.mark.parametrize(("family", "damage", "options", "told"), FOLDERS)
def test_a_broken_folder(family, damage, options, told, family_dir, tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    folder = Path(shutil.copytree(family_dir(family), tmp_path / family))
    damage(folder)
    assert told in refusal(folder, **options)
    assert not (tmp_path / "sprung").exists()
    assert caplog.messages == []  # no traceback of a library


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a/b/c", "no model"), ("what is this?", "Hub: Repo id"), ("./nowhere", "check the path"),
        ("{bert}/model.safetensors", "give the folder"), ("{bert}/..", "has no config.json"),
    ],
)  # fmt: skip
def test_neither_folder_nor_hub_id(bert, name, told):
    assert told in refusal(name.format(bert=bert))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (all_of(trap("x.bin"), indexed(INDEX, WEIGHTS, "x.bin")), "--allow-pickle"),
        (ADAPTER, "adapter_config.json"),
    ],
)
def test_the_same_refusals_for_the_hub(damage, told, api, bert):
    damage(bert)
    api.create_repo("org/broken")
    api.upload_folder(repo_id="org/broken", folder_path=bert)
    assert told in refusal("org/broken")
    assert not (bert.parent / "sprung").exists()


@pytest.mark.parametrize(
    ("status", "header", "reason", "told"),
    [
        (401, "Error-Code", "RepoNotFound", "check the name, or use `hf auth login`"),
        (401, "Error-Message", "Invalid credentials in Authorization header", "accept the token"),
        (403, "Error-Code", "GatedRepo", "ask for access"),
        (404, "Error-Code", "RevisionNotFound", "at revision step1000: it has no such revision"),
        (404, "Error-Code", "EntryNotFound", "has no config.json"),
        (500, "", "", "it is not in the cache, and the Hub answers 500"),
        (None, "", "", "the Hub cannot be reached; check the network"),
    ],
)
def test_the_hub_refuses(status, header, reason, told, tmp_path, monkeypatch):
    def answer(request):
        if status is None:
            raise httpx2.ConnectError("Connection refused")
        return httpx2.Response(status, headers={f"X-{header}": reason})

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    monkeypatch.setattr("huggingface_hub.utils._http._GLOBAL_CLIENT", client)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    assert told in refusal("org/model", revision="step1000")


@pytest.mark.parametrize("kind", ["auto", "masked", "causal", "mntp"])
def test_masked_diffusion_models(kind, bert):
    """As LLaDA and Dream: their own code has no masked head, and they are not causal."""
    classes = {"AutoConfig": "own.MyConfig", "AutoModelForCausalLM": "own.MyModel"}
    (bert / "own.py").write_text(
        "from transformers import BertConfig, BertForMaskedLM\n"
        "class MyConfig(BertConfig):\n    model_type = 'my-diffusion'\n"
        "class MyModel(BertForMaskedLM):\n    config_class = MyConfig\n"
    )
    edit(bert, "config.json", model_type="my-diffusion", auto_map=classes, mask_token_id=4)
    line = refusal(bert, trust_remote_code=True, kind=kind)
    assert "is a masked diffusion model" in line
    assert "AutoModelForMaskedLM; lmdiag reads those that have it, with --kind masked" in line
    edit(bert, "config.json", auto_map=classes | {"AutoModelForMaskedLM": "own.MyModel"})
    if kind == "masked":
        assert load(str(bert), LoadOptions(kind=kind, trust_remote_code=True)).info.kind == kind
