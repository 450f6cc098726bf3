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
import torch
from hub import LoopbackHub

from lmdiag.models.loading.checkpoint import resolve
from lmdiag.models.loading.files import check_model_files
from lmdiag.models.loading.load import load_parts
from lmdiag.models.loading.options import LoadOptions
from lmdiag.types import BadInput

from .refusals import edit, refusal

pytest_plugins = ["hub.fixtures"]

INDEX = "model.safetensors.index.json"
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
    return lambda folder: [(folder / name).unlink() for name in names]


def grow(name: str, size: int) -> Break:
    """Makes a file huge; it is sparse and takes no room."""
    return lambda folder: os.truncate(folder / name, size)


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


def without_mask(folder: Path) -> None:
    edit(folder, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    content = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    del content["mask_token"]
    write("tokenizer_config.json", json.dumps(content))(folder)


def broken_table(folder: Path) -> None:
    """The tokenizers library panics, which is not an Exception."""
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "=x"}
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")


def moved(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / WEIGHTS).rename(folder / "sub" / WEIGHTS)
    edit(folder, "config.json", transformers_weights=f"sub/{WEIGHTS}")


def linked_out(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder.parent / "outside.safetensors")
    (folder / WEIGHTS).symlink_to(folder.parent / "outside.safetensors")


def linked_to_itself(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).symlink_to(folder / WEIGHTS)


def distributed(folder: Path) -> None:
    """torch reports what is missing by an exception that is not an Exception."""
    (folder / WEIGHTS).rename(folder / "shard-00001-model-00001-of-00001.safetensors")


HUGE = config(hidden_size=2**20, intermediate_size=2**30)
REMOTE = {"AutoConfig": "code.MyConfig", "AutoModelForMaskedLM": "code.MyModel"}
ADAPTER = write("adapter_config.json", '{"base_model_name_or_path": "gpt2"}')
FOLDERS: list[tuple[str, Break, dict[str, Any], str]] = [
    ("bert", config(model_type="bert9000"), {}, "bert9000"),
    ("bert", config(model_type="vit", architectures=["ViTForImageClassification"]), {},
     "(ViTForImageClassification) is not a language model"),
    ("gpt2", lambda f: edit(f, "tokenizer_config.json", mask_token="<|endoftext|>"),
     {"kind": "masked"}, "choose another --kind"),
    ("bert", config(intermediate_size=64), {}, "shapes"),
    ("bert", config(model_type="my-bert", auto_map=REMOTE), {}, "--trust-remote-code"),
    ("bert", lambda f: None, {"revision": "step1000"}, "no revision step1000"),
    ("bert", ADAPTER, {}, "adapter_config.json) beside its weights: merge"),
    # weights
    ("bert", write(WEIGHTS, b""), {}, "damaged"),
    ("bert", write(WEIGHTS, b"garbage" * 100), {}, "damaged"),
    ("bert", tear, {}, "damaged"),
    ("bert", remove(WEIGHTS), {}, "no weights"),
    ("bert", remove(WEIGHTS), {"allow_pickle": True}, "no weights"),
    ("bert", without_head, {"kind": "masked"}, "(first: cls.predictions"),
    ("llama", without_output, {}, "(first: lm_head.weight), which would be random"),
    ("bert", moved, {}, "does not cover"),
    ("bert", linked_out, {}, "model.safetensors is a link"),
    ("bert", linked_to_itself, {}, "weights"),
    ("bert", distributed, {}, "Missing key in checkpoint state_dict"),
    # tokenizers
    ("bert", remove("tokenizer.json", "tokenizer_config.json"), {}, "without a tokenizer"),
    *(("bert", write("tokenizer.json", content), {}, "tokenizer")
      for content in ("{", "{}", '{"version": "1.0"}', "")),
    ("albert", broken_table, {}, "cannot load its tokenizer"),
    ("bert", without_mask, {}, "no mask token"),
    # memory
    ("bert", HUGE, {}, "try --dtype bfloat16, --quantization 4bit or --device-map auto"),
    ("bert", HUGE, {"device_map": "auto"}, "all devices and the disk"),
    ("bert", config(hidden_size=2**31, intermediate_size=2**31, vocab_size=2**31), {},
     "config.json"),
    # options
    ("bert", lambda f: None, {"tp": True}, "several processes"),
    ("bert", lambda f: None, {"attention": "sideways"}, "attention"),
    ("bert", lambda f: None, {"attention": "flash_attention_2"}, "lash"),
    *(("bert", lambda f: None, {option: name}, f"no device {name!r} here")
      for option in ("device", "device_map")
      for name in ("cuda:99", "abacus", "autos", "meta", "", "cuda:-1")),
    ("bert", lambda f: None, {"device_map": "cuda:99"}, "give auto"),
    # files
    *(("bert", write("config.json", content), {}, "configuration") for content in (
        b'{"model_type": "bert", ', b"[1, 2]", b"{}", b"", b"\xff\xfe{}", b"[" * 100_000,
        b'{"a": ' * 5_000, b"1" * 10_000, b'{"a": NaN', b'"x"', b"null", b"\xef\xbb\xbf{}",
        b'{"model_type": "\\ud800"}', b"\x00" * 100,
    )),
    ("bert", grow("config.json", 2**25), {}, "larger than 16 MB"),
    ("bert", grow("config.json", 2**40), {}, "config.json is larger than 256 MB"),
    ("bert", grow("tokenizer.json", 2**40), {}, "tokenizer.json is larger than 256 MB"),
    # configuration
    *(("bert", config(**{name: value}), {}, f"configuration (config.json), {name}")
      for name, value in (
          ("hidden_size", "32"), ("hidden_size", -1), ("hidden_size", 0), ("hidden_size", 32.5),
          ("hidden_size", True), ("vocab_size", 10**12), ("num_attention_heads", 0),
          ("num_hidden_layers", "two"), ("num_hidden_layers", 10**12),
          ("num_hidden_layers", float("nan")), ("max_position_embeddings", 10**400),
          ("layer_norm_eps", float("nan")), ("num_labels", 10**12), ("dtype", 3),
          ("model_type", ["bert"]), ("architectures", "BertForMaskedLM"), ("architectures", [1]),
          ("auto_map", "code.X"), ("attn_implementation", "someone/kernel"),
          ("text_config", {"num_hidden_layers": 10**12}), ("quantization_config", "awq"),
          ("quantization_config", {"quant_method": "magic"}), ("quantization_config", {}),
          ("quantization_config", {"quant_method": ["awq"]}), ("quantization_config", 7),
      )),
    ("bert", config(num_hidden_layers=10**400), {}, "num_hidden_layers"),
    ("bert", config(model_type=None), {}, "configuration (config.json)"),
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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dtype", "load"), ("hidden_act", "sideways"), ("hidden_act", {"a": [1]}),
        ("num_attention_heads", 7), ("id2label", [1, 2]), ("id2label", {"one": "two"}),
        ("is_decoder", "maybe"), ("vocab_size", None), ("hidden_size", [[]]),
        ("max_position_embeddings", "x"), ("max_position_embeddings", -5),
        ("initializer_range", {}), ("attn_implementation", 5), ("pad_token_id", "x"),
        ("\n\x1b[31mred", 10**400),
    ],
)  # fmt: skip
def test_what_only_transformers_can_tell(bert: Path, field: str, value: object) -> None:
    edit(bert, "config.json", **{field: value})
    line = str(bert)
    try:
        load_parts(line)
    except BadInput as error:
        line = str(error)
    assert str(bert) in line
    assert line.isprintable()


def test_problems_are_reported_before_transformers_reads_the_file(bert: Path) -> None:
    """The plain checks alone bound time and memory."""
    edit(bert, "config.json", num_hidden_layers=10**12)
    with pytest.raises(BadInput, match="num_hidden_layers must be an integer from 0 to 500"):
        check_model_files(resolve(str(bert)), LoadOptions())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a/b/c", "no model"), ("what is this?", "no model"), ("-bert", "no model"),
        ("no:colon", "no model"), ("./nowhere", "check the path"),
    ],
)  # fmt: skip
def test_neither_folder_nor_hub_id(name: str, told: str) -> None:
    assert told in refusal(name)


def test_paths_that_are_not_models(bert: Path, tmp_path: Path) -> None:
    assert "give the folder" in refusal(bert / WEIGHTS)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no config.json" in refusal(empty)
    ADAPTER(empty)
    assert "merge the adapter" in refusal(empty)


def test_a_tokenizer_of_another_model(bert: Path, family_dir: Callable[[str], Path]) -> None:
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(family_dir("roberta") / file, bert / file)
    assert "ids up to 439" in (message := refusal(bert))
    assert "belongs to another model" in message


def test_a_slow_tokenizer(tmp_path: Path) -> None:
    """CTRL's tokenizer exists in Python alone."""
    from transformers import CTRLConfig, CTRLLMHeadModel

    shape = CTRLConfig(vocab_size=6, n_embd=8, dff=8, n_layer=1, n_head=1)
    CTRLLMHeadModel(shape).save_pretrained(tmp_path)
    pieces = ["<unk>", "a", "b</w>", "a</w>", "ab</w>"]
    (tmp_path / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w> 1\n")
    assert "no fast version" in refusal(tmp_path)


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
@pytest.mark.parametrize("quantization", ["8bit", "4bit"])
def test_quantization_without_its_library(bert: Path, quantization: str) -> None:
    assert f"{quantization} weights need bitsandbytes" in refusal(bert, quantization=quantization)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_cuda_where_there_is_none(bert: Path, name: str) -> None:
    assert f"no device {name!r} here" in refusal(bert, device_map=name)


@pytest.fixture
def sharded(bert: Path) -> Path:
    """A small BERT in several files of weights."""
    load_parts(str(bert)).model.save_pretrained(bert, max_shard_size="20KB")
    (bert / WEIGHTS).unlink(missing_ok=True)
    assert (bert / INDEX).is_file()
    return bert


def rename_shard(folder: Path, name: str, index: str = INDEX, every: bool = False) -> None:
    """Gives the first weight file, or every one, another name in the index."""
    content = json.loads((folder / INDEX).read_text("utf-8"))
    first = min(content["weight_map"].values())
    for weight, file in content["weight_map"].items():
        if every or file == first:
            content["weight_map"][weight] = name
    (folder / index).write_text(json.dumps(content), "utf-8")


class TestShards:
    def test_several_files_in_the_folder_load(self, sharded: Path) -> None:
        assert load_parts(str(sharded)).kind == "masked"
        first = sorted(sharded.glob("model-*.safetensors"))[0]
        first.unlink()
        assert first.name in refusal(sharded)

    @pytest.mark.parametrize("place", ["../outside.safetensors", "sub/x.safetensors", "{absolute}"])
    def test_an_index_that_names_another_folder(self, sharded: Path, place: str) -> None:
        """The weights are good ones: only their place is wrong."""
        name = place.format(absolute=sharded.parent / "outside.safetensors")
        (sharded / name).parent.mkdir(exist_ok=True)
        shutil.copy(sorted(sharded.glob("model-*.safetensors"))[0], sharded / name)
        rename_shard(sharded, name)
        assert INDEX in (message := refusal(sharded))
        assert "does not cover" in message

    def test_a_pickle_that_the_digest_does_not_cover(self, sharded: Path) -> None:
        rename_shard(sharded, "other.pt", index="pytorch_model.bin.index.json")
        (sharded / INDEX).unlink()
        assert "does not cover" in refusal(sharded, allow_pickle=True)

    @pytest.mark.parametrize(
        "content",
        ["[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}, "metadata": {}}',
         '{"weight_map": {"a": ""}, "metadata": {}}', "{", '{"weight_map": {}}'],
    )  # fmt: skip
    def test_a_broken_index(self, sharded: Path, content: str) -> None:
        (sharded / INDEX).write_text(content)
        assert INDEX in refusal(sharded)


def test_links_within_the_folder_and_into_the_cache_of_the_hub_are_followed(bert: Path) -> None:
    blobs = bert.parent / "models--org--bert/blobs"
    blobs.mkdir(parents=True)
    (bert / WEIGHTS).rename(blobs / "0123abcd")
    (bert / WEIGHTS).symlink_to(blobs / "0123abcd")
    (bert / "config.json").rename(bert / "settings")
    (bert / "config.json").symlink_to("settings")
    (bert.parent / "last").symlink_to(bert)
    assert load_parts(str(bert.parent / "last")).kind == "masked"


class Trap:
    """An object whose unpickling creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def lay_trap(pickled: Path) -> Path:
    """Writes a pickle; returns the path that exists once the pickle has been loaded."""
    sprung = pickled.parent.parent / "sprung"
    pickled.write_bytes(pickle.dumps(Trap(sprung)))
    return sprung


class TestPickles:
    @pytest.mark.parametrize(
        ("index", "every"),
        [(INDEX, False), (INDEX, True), ("pytorch_model.bin.index.json", False)],
    )
    def test_named_by_an_index(
        self, sharded: Path, index: str, every: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """transformers decides by the first file whether all of them are safetensors."""
        name = "pytorch_model.bin" if index == INDEX else "pytorch_model-1.bin"
        rename_shard(sharded, name, index, every=every)
        if index != INDEX:
            (sharded / INDEX).unlink()
        assert "--allow-pickle" in self.check(sharded, sharded / name, monkeypatch)

    def test_named_by_the_configuration(self, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """transformers allows this one name of a pickle."""
        edit(bert, "config.json", transformers_weights="adapter_model.bin")
        self.check(bert, bert / "adapter_model.bin", monkeypatch)

    def check(self, folder: Path, pickled: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        """The pickle is never read; transformers would restrict torch.load to tensors, too."""
        calls: list[object] = []
        monkeypatch.setattr(torch, "load", lambda file, **_: calls.append(file))
        sprung = lay_trap(pickled)
        message = refusal(folder)
        assert calls == []
        assert not sprung.exists()
        return message

    def test_an_allowed_pickle_still_runs_nothing(self, bert: Path) -> None:
        (bert / WEIGHTS).unlink()
        sprung = lay_trap(bert / "pytorch_model.bin")
        refusal(bert, allow_pickle=True)
        assert not sprung.exists()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda folder: rename_shard(folder, "../../../outside.safetensors"), "does not cover"),
        (lambda folder: rename_shard(folder, "pytorch_model.bin"), "--allow-pickle"),
        (ADAPTER, "adapter_config.json"),
        (config(num_hidden_layers=10**12), "num_hidden_layers"),
    ],
)
def test_the_same_refusals_for_the_hub(
    damage: Break, told: str, hub: LoopbackHub, sharded: Path
) -> None:
    from huggingface_hub import HfApi

    damage(sharded)
    sprung = lay_trap(sharded / "pytorch_model.bin")
    api = HfApi(endpoint=hub.url, token="hf_test")
    api.create_repo("org/broken")
    api.upload_folder(repo_id="org/broken", folder_path=sharded)
    assert told in refusal("org/broken")
    assert not sprung.exists()
