"""Model folders that are broken or made to harm: each is refused in one line, and no code runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tokenizer_files
from hub import LoopbackHub

from lmdiag.models.loading.load import load_parts
from models.toys import edit, refusal

INDEX = "model.safetensors.index.json"
PICKLED_INDEX = "pytorch_model.bin.index.json"
WEIGHTS = "model.safetensors"
Break = Callable[[Path], object]


def config(**changes: Any) -> Break:
    """Changes entries of the configuration."""
    return lambda folder: edit(folder, "config.json", **changes)


def write(name: str, content: bytes | str) -> Break:
    """Writes a file."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(raw)


def remove(*names: str) -> Break:
    """Removes files."""
    return lambda folder: [(folder / name).unlink(missing_ok=True) for name in names]


def indexed(index: str, *names: object) -> Break:
    """Has an index name weight files, the first of which are good ones."""
    content = {"metadata": {}, "weight_map": {f"w{n}": name for n, name in enumerate(names)}}
    return lambda folder: [remove(WEIGHTS)(folder), write(index, json.dumps(content))(folder)]


def tear(folder: Path) -> None:
    weights = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(weights[: len(weights) // 2])


def without_head(folder: Path) -> None:
    load_parts(str(folder)).model.base_model.save_pretrained(folder)


def without_output(folder: Path) -> None:
    """Llama's output layer is not its input embeddings: without it the model is incomplete."""
    model = load_parts(str(folder)).model
    weights = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    model.save_pretrained(folder, state_dict=weights)


def broken_table(folder: Path) -> None:
    """The tokenizers library panics, which is not an Exception."""
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "=x"}
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")


def slow_tokenizer(folder: Path) -> None:
    """CTRL's tokenizer exists in Python alone."""
    from transformers import CTRLConfig, CTRLLMHeadModel

    remove("tokenizer.json", "tokenizer_config.json")(folder)
    shape = CTRLConfig(vocab_size=6, n_embd=8, dff=8, n_layer=1, n_head=1)
    CTRLLMHeadModel(shape).save_pretrained(folder)
    pieces = ["<unk>", "a", "b</w>", "a</w>", "ab</w>"]
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\na b</w> 1\n")


def distributed(folder: Path) -> None:
    """torch reports what is missing by an exception that is not an Exception."""
    (folder / WEIGHTS).rename(folder / "shard-00001-model-00001-of-00001.safetensors")


class Trap:
    """An object whose unpickling creates a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def trap(name: str) -> Break:
    """Puts a pickle in the place of the weights."""
    return lambda folder: [
        (folder / WEIGHTS).unlink(missing_ok=True),
        (folder / name).write_bytes(pickle.dumps(Trap(folder.parent / "sprung"))),
    ]


def all_of(*breaks: Break) -> Break:
    return lambda folder: [damage(folder) for damage in breaks]


nothing = all_of()
"""The folder is good."""


REMOTE = {"AutoConfig": "code.MyConfig", "AutoModelForMaskedLM": "code.MyModel"}
ADAPTER = write("adapter_config.json", '{"base_model_name_or_path": "gpt2"}')


def tokenizer_of_roberta(folder: Path) -> None:
    tokenizer_files.write("roberta", folder)


FOLDERS: list[tuple[str, Break, dict[str, Any], str]] = [
    ("bert", config(model_type="bert9000"), {}, "bert9000"),
    ("bert", config(model_type="vit", architectures=["ViTForImageClassification"]), {},
     "(ViTForImageClassification) is not a language model"),
    ("gpt2", lambda f: edit(f, "tokenizer_config.json", mask_token="<|endoftext|>"),
     {"kind": "masked"}, "choose another --kind"),
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
    ("bert", write(WEIGHTS, b""), {}, "damaged"),
    ("bert", write(WEIGHTS, b"garbage" * 100), {}, "damaged"),
    ("bert", tear, {}, "damaged"),
    ("bert", remove(WEIGHTS), {}, "no weights"),
    ("bert", remove(WEIGHTS), {"allow_pickle": True}, "no weights"),
    ("bert", without_head, {"kind": "masked"}, "(first: cls.predictions"),
    ("llama", without_output, {}, "(first: lm_head.weight), which would be random"),
    ("bert", config(intermediate_size=64), {}, "shapes"),
    ("bert", distributed, {}, "Missing key in checkpoint state_dict"),
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
    ("albert", broken_table, {}, "cannot load its tokenizer"),
    ("bert", lambda f: edit(f, "tokenizer_config.json", mask_token=None), {}, "no mask token"),
    ("bert", slow_tokenizer, {}, "no fast version"),
    ("bert", tokenizer_of_roberta, {}, "ids up to 439"),
    # options
    ("bert", nothing, {"tp": True}, "several processes"),
    ("bert", nothing, {"attention": "sideways"}, "attention"),
    *(("bert", nothing, {option: name}, f"no device {name!r} here")
      for option in ("device", "device_map") for name in ("cuda:99", "abacus", "meta", "")),
    ("bert", nothing, {"device_map": "cuda:99"}, "give auto"),
    # configuration
    *(("bert", write("config.json", content), {}, "configuration") for content in (
        b'{"model_type": "bert", ', b"[1, 2]", b"{}", b"", b"\xff\xfe{}", b"[" * 100_000,
        b'{"a": ' * 5_000, b"1" * 10_000, b'"x"', b"null", b"\xef\xbb\xbf{}",
        b'{"model_type": "\\ud800"}', b"\x00" * 100,
    )),
    *(("bert", config(quantization_config=value), {}, "quantization_config")
      for value in ("awq", {"quant_method": "magic"}, {}, {"quant_method": ["awq"]}, 7)),
    *(("bert", config(**{name: value}), {}, "")
      for name, value in (
          ("hidden_size", "32"), ("hidden_size", -1), ("num_attention_heads", 7),
          ("hidden_act", "sideways"), ("vocab_size", None), ("max_position_embeddings", "x"),
          ("id2label", [1, 2]),
      )),
]  # fmt: skip
"""Family, what is broken, options, and a part of the line."""


@pytest.mark.parametrize(("family", "damage", "options", "told"), FOLDERS)
def test_a_broken_folder(
    family: str,
    damage: Break,
    options: dict[str, Any],
    told: str,
    family_dir: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    folder = Path(shutil.copytree(family_dir(family), tmp_path / family))
    damage(folder)
    assert told in refusal(folder, **options)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a/b/c", "no model"), ("what is this?", "no model"), ("-bert", "no model"),
        ("no:colon", "no model"), ("./nowhere", "check the path"),
        ("{bert}/model.safetensors", "give the folder"), ("{bert}/..", "has no config.json"),
    ],
)  # fmt: skip
def test_neither_folder_nor_hub_id(bert: Path, name: str, told: str) -> None:
    assert told in refusal(name.format(bert=bert))


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("bert", {"device_map": "auto"}, "exclude each other"),
        ("gpt2", {}, "no plan to split a gpt2"),
        ("llama", {}, "1 key-value heads"),
    ],
)
def test_tensor_parallel(
    name: str,
    options: dict[str, Any],
    told: str,
    family_dir: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert told in refusal(family_dir(name), tp=True, **options)


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_quantization_without_its_library(bert: Path) -> None:
    assert "4bit weights need bitsandbytes" in refusal(bert, quantization="4bit")


def test_shards_and_links_are_followed(bert: Path) -> None:
    load_parts(str(bert)).model.save_pretrained(bert, max_shard_size="20KB")
    (bert / WEIGHTS).unlink(missing_ok=True)
    blobs = bert.parent / "models--org--bert/blobs"
    blobs.mkdir(parents=True)
    (bert / "config.json").rename(blobs / "0123abcd")
    (bert / "config.json").symlink_to(blobs / "0123abcd")
    (bert.parent / "last").symlink_to(bert)
    assert load_parts(str(bert.parent / "last")).kind == "masked"
    sorted(bert.glob("model-*.safetensors"))[0].unlink()
    assert "model-00001" in refusal(bert)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (indexed(INDEX, "../../../outside.safetensors"), "does not cover"),
        (all_of(trap("x.bin"), indexed(INDEX, WEIGHTS, "x.bin")), "--allow-pickle"),
        (ADAPTER, "adapter_config.json"),
    ],
)
def test_the_same_refusals_for_the_hub(
    damage: Break, told: str, hub: LoopbackHub, bert: Path
) -> None:
    from huggingface_hub import HfApi

    damage(bert)
    api = HfApi(endpoint=hub.url, token="hf_test")
    api.create_repo("org/broken")
    api.upload_folder(repo_id="org/broken", folder_path=bert)
    assert told in refusal("org/broken")
    assert not (bert.parent / "sprung").exists()
