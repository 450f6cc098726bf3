"""Model folders that are broken or made to harm: each is refused in one line, and no code runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from hub import LoopbackHub

from lmdiag.models.loading.checkpoint import resolve
from lmdiag.models.loading.files import check_files
from lmdiag.models.loading.load import LoadOptions, load_parts
from lmdiag.schema import BadInput

from .refusals import edit, refusal

pytest_plugins = ["hub.fixtures"]

INDEX = "model.safetensors.index.json"


@pytest.fixture
def sharded(bert: Path) -> Path:
    """A small BERT in several files of weights."""
    load_parts(str(bert)).model.save_pretrained(bert, max_shard_size="20KB")
    (bert / "model.safetensors").unlink(missing_ok=True)
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
