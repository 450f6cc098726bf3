"""Models that do not fit into memory, and devices that are not there, are refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmdiag.models.loading import memory
from lmdiag.models.loading.load import LoadOptions, load_parts

from .refusals import edit, refusal


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
        monkeypatch.setattr(memory, "_MOST_TENSORS", 20)
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
        monkeypatch.setattr(memory, "memory_available", lambda *_: needed)
        assert load_parts(str(folder), LoadOptions(device="cpu", **options)).kind == "masked"
        monkeypatch.setattr(memory, "memory_available", lambda *_: needed - 1)
        assert "of memory" in refusal(folder, device="cpu", **options)

    def test_quantized_weights_are_smaller(self, family_dir: Callable[[str], Path]) -> None:
        import torch
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(family_dir("gpt2"))
        needed = {}
        for name in (None, "8bit", "4bit"):
            options = LoadOptions(quantization=name)  # type: ignore[arg-type]
            model = memory.outline(config, "causal", options)
            needed[name] = memory.memory_needed(model, config, options, torch.device("cpu"))
        assert needed[None] > needed["8bit"] > needed["4bit"]

    def test_the_configuration_stays_as_it_was(self, family_dir: Callable[[str], Path]) -> None:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(family_dir("bert"))
        before = config.to_dict()
        model = memory.outline(config, "masked", LoadOptions(dtype="bfloat16"))
        assert all(parameter.is_meta for parameter in model.parameters())
        assert config.to_dict() == before

    def test_memory_of_a_backend_that_does_not_tell(
        self, family_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(memory, "memory_available", lambda *_: None)
        assert load_parts(str(family_dir("bert"))).kind == "masked"

    def test_memory_of_an_accelerator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        monkeypatch.setattr(torch.accelerator, "get_memory_info", lambda _: (100, 200))
        cuda = torch.device("cuda", 0)
        assert memory.memory_available(cuda, LoadOptions()) == 100
        assert memory.memory_available(cuda, LoadOptions(device_map="cuda")) == 100
        monkeypatch.setattr(memory, "_accelerators", lambda: [cuda, torch.device("cuda", 1)])
        spread = memory.memory_available(cuda, LoadOptions(device_map="auto"))
        assert spread is not None
        assert spread > 200

    def test_memory_in_a_container(self, tmp_path: Path) -> None:
        group = tmp_path / "sys/fs/cgroup/job/7"
        group.mkdir(parents=True)
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text("1:cpu:/other\n0::/job/7\n")
        (group / "memory.current").write_text("900\n")
        (group / "memory.stat").write_text("anon 700\ninactive_file 40\nactive_file 60\n")
        (group / "memory.max").write_text("1000\n")
        # 1000 - 900 are free, and 40 + 60 hold copies of files
        assert memory._free_in_group(tmp_path) == 200
        (group / "memory.max").write_text("max\n")
        assert memory._free_in_group(tmp_path) is None
        assert memory._free_in_group(tmp_path / "nowhere") is None

    def test_there_is_memory(self) -> None:
        import torch

        available = memory.memory_available(torch.device("cpu"), LoadOptions())
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
