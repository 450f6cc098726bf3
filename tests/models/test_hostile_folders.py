"""Model folders that are broken or made to harm: each is refused in one line, and no code runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub import LoopbackHub

from lmdiag.models import size
from lmdiag.models.checkpoint import resolve
from lmdiag.models.files import check_files
from lmdiag.models.loading import LoadOptions, load_parts
from lmdiag.schema import BadInput

pytest_plugins = ["hub.fixtures"]

INDEX = "model.safetensors.index.json"


@pytest.fixture
def bert(family_dir: Callable[[str], Path], tmp_path: Path) -> Path:
    """A small BERT, to be broken."""
    return Path(shutil.copytree(family_dir("bert"), tmp_path / "my-bert"))


@pytest.fixture
def sharded(bert: Path) -> Path:
    """A small BERT in several files of weights."""
    load_parts(str(bert)).model.save_pretrained(bert, max_shard_size="20KB")
    (bert / "model.safetensors").unlink(missing_ok=True)
    assert (bert / INDEX).is_file()
    return bert


def refusal(model: object, **options: Any) -> str:
    """Returns the one line with which a model is refused; it names the model."""
    with pytest.raises(BadInput) as caught:
        load_parts(str(model), LoadOptions(**options))
    message = str(caught.value)
    assert message.isprintable()
    assert str(model) in message
    assert len(message) < 1000
    return message


def edit(folder: Path, file: str, **changes: Any) -> None:
    """Changes entries of a JSON file."""
    content = json.loads((folder / file).read_text("utf-8")) | changes
    (folder / file).write_text(json.dumps(content), "utf-8")


def rename_shard(folder: Path, name: str, index: str = INDEX, every: bool = False) -> None:
    """Gives the first weight file, or every one, another name in the index."""
    content = json.loads((folder / INDEX).read_text("utf-8"))
    first = min(content["weight_map"].values())
    for weight, file in content["weight_map"].items():
        if every or file == first:
            content["weight_map"][weight] = name
    (folder / index).write_text(json.dumps(content), "utf-8")


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


class TestWeightsOutside:
    def test_several_files_in_the_folder_load(self, sharded: Path) -> None:
        assert load_parts(str(sharded)).kind == "masked"

    @pytest.mark.parametrize("place", ["../outside.safetensors", "sub/x.safetensors", "{absolute}"])
    def test_an_index_that_names_another_folder(self, sharded: Path, place: str) -> None:
        """The weights are good ones, so that only their place is wrong."""
        name = place.format(absolute=sharded.parent / "outside.safetensors")
        target = sharded / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(sorted(sharded.glob("model-*.safetensors"))[0], target)
        rename_shard(sharded, name)
        message = refusal(sharded)
        assert INDEX in message
        assert "does not cover" in message

    def test_a_configuration_that_names_another_folder(self, bert: Path) -> None:
        (bert / "sub").mkdir()
        (bert / "model.safetensors").rename(bert / "sub/model.safetensors")
        edit(bert, "config.json", transformers_weights="sub/model.safetensors")
        assert "does not cover" in refusal(bert)

    def test_a_pickle_that_the_digest_does_not_cover(self, sharded: Path) -> None:
        rename_shard(sharded, "other.pt", index="pytorch_model.bin.index.json")
        (sharded / INDEX).unlink()
        assert "does not cover" in refusal(sharded, allow_pickle=True)

    def test_a_link_that_leads_out(self, bert: Path) -> None:
        outside = bert.parent / "outside.safetensors"
        (bert / "model.safetensors").rename(outside)
        (bert / "model.safetensors").symlink_to(outside)
        message = refusal(bert)
        assert "model.safetensors is a link" in message
        assert "copy the file" in message

    def test_links_within_the_folder_and_to_it_are_followed(self, bert: Path) -> None:
        (bert / "model.safetensors").rename(bert / "weights")
        (bert / "model.safetensors").symlink_to("weights")
        (bert.parent / "last").symlink_to(bert)
        assert load_parts(str(bert.parent / "last")).kind == "masked"

    def test_links_into_the_cache_of_the_hub_are_followed(self, bert: Path) -> None:
        blobs = bert.parent / "models--org--bert/blobs"
        blobs.mkdir(parents=True)
        (bert / "model.safetensors").rename(blobs / "0123abcd")
        (bert / "model.safetensors").symlink_to(blobs / "0123abcd")
        assert load_parts(str(bert)).kind == "masked"

    def test_a_distributed_checkpoint_that_lacks_weights(self, bert: Path) -> None:
        """torch reports it by an exception that is not an Exception."""
        name = "shard-00001-model-00001-of-00001.safetensors"
        (bert / "model.safetensors").rename(bert / name)
        assert "Missing key in checkpoint state_dict" in refusal(bert)

    def test_a_link_to_itself(self, bert: Path) -> None:
        (bert / "model.safetensors").unlink()
        (bert / "model.safetensors").symlink_to(bert / "model.safetensors")
        assert "weights" in refusal(bert)


class TestPickles:
    @pytest.fixture(autouse=True)
    def no_pickle_is_read(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """Notes each call of torch.load, which transformers restricts to tensors besides."""
        import torch

        calls: list[object] = []

        def load(file: object, **_: object) -> None:
            calls.append(file)
            raise AssertionError("torch.load was called")

        monkeypatch.setattr(torch, "load", load)
        return calls

    @pytest.mark.parametrize("every", [False, True])
    def test_named_by_an_index_of_safetensors(
        self, sharded: Path, every: bool, no_pickle_is_read: list[object]
    ) -> None:
        """transformers decides by the first file whether all of them are safetensors."""
        rename_shard(sharded, "pytorch_model.bin", every=every)
        sprung = lay_trap(sharded / "pytorch_model.bin")
        assert "--allow-pickle" in refusal(sharded)
        assert no_pickle_is_read == []
        assert not sprung.exists()

    def test_named_by_an_index_of_pickles(
        self, sharded: Path, no_pickle_is_read: list[object]
    ) -> None:
        rename_shard(sharded, "pytorch_model-1.bin", index="pytorch_model.bin.index.json")
        (sharded / INDEX).unlink()
        sprung = lay_trap(sharded / "pytorch_model-1.bin")
        assert "--allow-pickle" in refusal(sharded)
        assert no_pickle_is_read == []
        assert not sprung.exists()

    def test_named_by_the_configuration(self, bert: Path, no_pickle_is_read: list[object]) -> None:
        """transformers allows this one name of a pickle."""
        edit(bert, "config.json", transformers_weights="adapter_model.bin")
        sprung = lay_trap(bert / "adapter_model.bin")
        refusal(bert)
        assert no_pickle_is_read == []
        assert not sprung.exists()


def test_a_pickle_that_is_allowed_still_runs_nothing(bert: Path) -> None:
    (bert / "model.safetensors").unlink()
    sprung = lay_trap(bert / "pytorch_model.bin")
    refusal(bert, allow_pickle=True)
    assert not sprung.exists()


class TestAdapters:
    def test_beside_the_weights(self, bert: Path) -> None:
        (bert / "adapter_config.json").write_text('{"base_model_name_or_path": "gpt2"}')
        message = refusal(bert)
        assert "adapter_config.json" in message
        assert "merge" in message


class TestConfiguration:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("hidden_size", "32"), ("hidden_size", -1), ("hidden_size", 0), ("hidden_size", 32.5),
            ("hidden_size", True), ("vocab_size", 10**12), ("num_attention_heads", 0),
            ("num_hidden_layers", "two"), ("num_hidden_layers", 10**12),
            ("num_hidden_layers", float("nan")), ("num_hidden_layers", 10**400),
            ("max_position_embeddings", 10**400), ("layer_norm_eps", float("nan")),
            ("num_labels", 10**12), ("dtype", 3), ("model_type", ["bert"]), ("model_type", None),
            ("architectures", "BertForMaskedLM"), ("architectures", [1]), ("auto_map", "code.X"),
            ("attn_implementation", "someone/kernel"),
            ("text_config", {"num_hidden_layers": 10**12}),
        ],
    )  # fmt: skip
    def test_a_value_that_is_not_one(self, bert: Path, field: str, value: object) -> None:
        edit(bert, "config.json", **{field: value})
        message = refusal(bert)
        assert "configuration (config.json)" in message
        assert field in message or value is None

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
    def test_what_only_transformers_can_tell(self, bert: Path, field: str, value: object) -> None:
        edit(bert, "config.json", **{field: value})
        line = ""
        try:
            load_parts(str(bert))
        except BadInput as error:
            line = str(error)
        assert line == "" or str(bert) in line
        assert line == "" or line.isprintable()

    @pytest.mark.parametrize(
        "content",
        [b"\xff\xfe{}", b"[" * 100_000, b'{"a": ' * 5_000, b"1" * 10_000, b'{"a": NaN', b'"x"',
         b"null", b"\xef\xbb\xbf{}", b'{"model_type": "\\ud800"}', b"\x00" * 100],
    )  # fmt: skip
    def test_no_json_object(self, bert: Path, content: bytes) -> None:
        (bert / "config.json").write_bytes(content)
        assert "configuration" in refusal(bert)

    @pytest.mark.parametrize(
        ("name", "bytes_", "told"),
        [
            ("config.json", 2**25, "larger than 16 MB"),
            ("config.json", 2**40, "config.json is larger than 256 MB"),
            ("tokenizer.json", 2**40, "tokenizer.json is larger than 256 MB"),
        ],
    )
    def test_a_huge_file(self, bert: Path, name: str, bytes_: int, told: str) -> None:
        with (bert / name).open("ab") as file:
            file.truncate(bytes_)  # sparse: it takes no room
        assert told in refusal(bert)

    @pytest.mark.parametrize(
        "quantization",
        [{"quant_method": "magic"}, {}, {"quant_method": 4}, {"quant_method": ["awq"]}, "awq", 7],
    )
    def test_quantized_in_a_way_that_transformers_would_ignore(
        self, bert: Path, quantization: object
    ) -> None:
        edit(bert, "config.json", quantization_config=quantization)
        message = refusal(bert)
        assert "quantization_config" in message

    def test_every_problem_is_found_before_transformers_reads_the_file(self, bert: Path) -> None:
        """Where the time and the memory go is decided by the plain checks alone."""
        edit(bert, "config.json", num_hidden_layers=10**12)
        with pytest.raises(BadInput, match="num_hidden_layers must be an integer from 0 to 500"):
            check_files(resolve(str(bert)), LoadOptions())

    @pytest.mark.parametrize(
        "content", ["[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}, "metadata": {}}',
                    '{"weight_map": {"a": ""}, "metadata": {}}', "{", '{"weight_map": {}}'],
    )  # fmt: skip
    def test_an_index_that_is_none(self, sharded: Path, content: str) -> None:
        (sharded / INDEX).write_text(content)
        assert INDEX in refusal(sharded)


class TestMemory:
    def test_a_model_for_which_no_memory_is_large_enough(self, bert: Path) -> None:
        edit(bert, "config.json", hidden_size=2**20, intermediate_size=2**30)
        message = refusal(bert)
        assert "of memory for its weights" in message
        assert "--quantization 4bit" in message
        assert "--device-map auto" in message

    def test_with_a_device_map_the_disk_counts(self, bert: Path) -> None:
        edit(bert, "config.json", hidden_size=2**20, intermediate_size=2**30)
        assert "all devices and the disk" in refusal(bert, device_map="auto")

    def test_sizes_beyond_what_torch_can_count(self, bert: Path) -> None:
        edit(bert, "config.json", hidden_size=2**31, intermediate_size=2**31, vocab_size=2**31)
        assert "config.json" in refusal(bert)

    def test_more_tensors_than_are_counted(
        self, bert: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(size, "MOST_TENSORS", 20)
        assert "more than 20 parameter tensors" in refusal(bert)

    @pytest.mark.parametrize(
        ("options", "bytes_each"),
        [({}, 4), ({"dtype": "bfloat16"}, 2), ({"dtype": "float64"}, 8)],
    )
    def test_what_is_needed_is_what_the_loaded_model_takes(
        self,
        family_dir: Callable[[str], Path],
        monkeypatch: pytest.MonkeyPatch,
        options: dict[str, Any],
        bytes_each: int,
    ) -> None:
        """BERT's output layer is its input embeddings, and counts once."""
        folder = family_dir("bert")
        model = load_parts(str(folder), LoadOptions(device="cpu", **options)).model
        buffers = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
        needed = model.num_parameters() * bytes_each + buffers
        monkeypatch.setattr(size, "memory_available", lambda *_: needed)
        assert load_parts(str(folder), LoadOptions(device="cpu", **options)).kind == "masked"
        monkeypatch.setattr(size, "memory_available", lambda *_: needed - 1)
        assert "of memory" in refusal(folder, device="cpu", **options)

    def test_quantized_weights_are_smaller(self, family_dir: Callable[[str], Path]) -> None:
        import torch
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(family_dir("gpt2"))
        needed = {}
        for name in (None, "8bit", "4bit"):
            options = LoadOptions(quantization=name)  # type: ignore[arg-type]
            model = size.outline(config, "causal", options)
            needed[name] = size.memory_needed(model, config, options, torch.device("cpu"))
        assert needed[None] > needed["8bit"] > needed["4bit"]

    def test_the_configuration_stays_as_it_was(self, family_dir: Callable[[str], Path]) -> None:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(family_dir("bert"))
        before = config.to_dict()
        model = size.outline(config, "masked", LoadOptions(dtype="bfloat16"))
        assert all(parameter.is_meta for parameter in model.parameters())
        assert config.to_dict() == before

    def test_memory_of_a_backend_that_does_not_tell(
        self, family_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(size, "memory_available", lambda *_: None)
        assert load_parts(str(family_dir("bert"))).kind == "masked"

    def test_there_is_memory(self) -> None:
        import torch

        available = size.memory_available(torch.device("cpu"), LoadOptions())
        assert available is not None
        assert available > 0


class TestDevices:
    @pytest.mark.parametrize("name", ["cuda:99", "abacus", "autos", "meta", "", "cuda:-1"])
    def test_no_such_device(self, bert: Path, name: str) -> None:
        message = refusal(bert, device_map=name)
        assert f"no device {name!r} here" in message
        assert "give auto" in message
        assert f"no device {name!r} here" in refusal(bert, device=name)

    def test_cuda_where_there_is_none(self, bert: Path) -> None:
        import torch

        if torch.cuda.is_available():
            pytest.skip("this machine has a CUDA device")
        for name in ("cuda", "cuda:1"):
            assert f"no device {name!r} here" in refusal(bert, device_map=name)

    @pytest.mark.parametrize("name", ["cpu", "auto", "sequential"])
    def test_one_that_is_there(self, bert: Path, name: str) -> None:
        assert load_parts(str(bert), LoadOptions(device_map=name)).kind == "masked"


class TestHub:
    """The same refusals for repositories on the Hub."""

    @staticmethod
    def publish(hub: LoopbackHub, folder: Path) -> str:
        from huggingface_hub import HfApi

        api = HfApi(endpoint=hub.url, token="hf_test")
        api.create_repo("org/broken")
        api.upload_folder(repo_id="org/broken", folder_path=folder)
        return "org/broken"

    def test_weights_outside_the_repository(self, hub: LoopbackHub, sharded: Path) -> None:
        rename_shard(sharded, "../../../outside.safetensors")
        assert "does not cover" in refusal(self.publish(hub, sharded))

    def test_a_pickle_in_the_index(self, hub: LoopbackHub, sharded: Path) -> None:
        rename_shard(sharded, "pytorch_model.bin")
        sprung = lay_trap(sharded / "pytorch_model.bin")
        assert "--allow-pickle" in refusal(self.publish(hub, sharded))
        assert not sprung.exists()

    def test_an_adapter(self, hub: LoopbackHub, bert: Path) -> None:
        (bert / "adapter_config.json").write_text("{}")
        assert "adapter_config.json" in refusal(self.publish(hub, bert))

    def test_an_absurd_configuration(self, hub: LoopbackHub, bert: Path) -> None:
        edit(bert, "config.json", num_hidden_layers=10**12)
        assert "num_hidden_layers" in refusal(self.publish(hub, bert))
