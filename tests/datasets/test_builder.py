"""The builder class, called from Python."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest
from loading.builder import Lmdiag
from loading.columns import COLUMNS, features
from loading.lines import BadSource


@pytest.mark.parametrize("config", COLUMNS)
def test_every_config_has_its_builder(config: str, tmp_path: Path) -> None:
    builder = Lmdiag(config_name=config, source="demo", cache_dir=str(tmp_path))
    assert builder.info.features == features(config)
    assert list(builder.info.features) == list(COLUMNS[config])
    builder.download_and_prepare()
    assert list(builder.as_dataset()) == ["test"]
    assert builder.as_dataset(split="test").num_rows > 0


def test_it_is_a_builder_with_configs() -> None:
    assert issubclass(Lmdiag, datasets.GeneratorBasedBuilder)
    assert [config.name for config in Lmdiag.BUILDER_CONFIGS] == list(COLUMNS)


def test_changed_source_files_are_read_again(tree: Path, tmp_path: Path) -> None:
    def first_context() -> str:
        builder = Lmdiag(config_name="neg136", source=str(tree), cache_dir=str(tmp_path / "cache"))
        builder.download_and_prepare()
        return builder.as_dataset(split="test")[0]["context"]

    assert first_context() == "A trout is a"
    path = tree / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    path.write_text(path.read_text("utf-8").replace("A trout is", "A perch is"), "utf-8")
    assert first_context() == "A perch is a"


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="no directory"):
        Lmdiag(config_name="neg136", source=str(tmp_path / "nowhere"), cache_dir=str(tmp_path))
