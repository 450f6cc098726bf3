"""The demo source: its size, its sentences, and that its program makes it again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def generate(import_file: Any, scripts: Path) -> ModuleType:
    """The program that makes the generated part."""
    return import_file(scripts / "demo/generate.py")


def rows(folder: Path, config: str) -> dict[str, list]:
    return pq.read_table(folder / config).to_pydict()


def sentences(folder: Path, config: str) -> set[str]:
    """Whole sentences of good rows, except NEG-SIMP, which both sources have."""
    return {
        " ".join((row["context"], row["target"], row["right_context"])).lower()
        for row in pq.read_table(folder / config).to_pylist()
        if row["good"] and row.get("subset") != "simp"
    }


def test_sizes(demo_dir: Path, scripts: Path) -> None:
    cprag = rows(demo_dir, "cprag102")
    assert set(cprag["constraint"]) == {"high", "low"}
    assert all(cprag["explanation"])
    negation = rows(demo_dir, "neg136")
    items = set(zip(negation["subset"], negation["item"], strict=True))
    assert Counter(subset for subset, _ in items) == {"simp": 18, "nat": 8}
    pairs = rows(demo_dir, "agreement")
    cells = Counter(zip(pairs["template"], pairs["number"], pairs["good"], strict=True))
    assert len(cells) == 19 * 2 * 2
    assert set(cells.values()) == {10}
    files = [path for path in (scripts / "demo").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if path.suffix != ".pyc") < 300_000


def test_demo_templates_are_those_of_the_published_pairs(scripts: Path, upstream: Path) -> None:
    def stems(folder: Path) -> set[str]:
        return {f"{path.parent.name}/{path.stem}" for path in folder.rglob("*.jsonl")}

    assert stems(scripts / "demo/refining-tse") == stems(upstream / "refining-tse")


@pytest.mark.slow
def test_no_demo_sentence_is_a_published_one(
    demo_dir: Path, data_dir: Path, agreement_dir: Path
) -> None:
    for config in ("cprag102", "role88", "neg136", "agreement"):
        published = sentences(agreement_dir if config == "agreement" else data_dir, config)
        assert not sentences(demo_dir, config) & published


def test_simple_negation_is_the_published_one(
    generate: ModuleType, demo_dir: Path, data_dir: Path
) -> None:
    """It follows from 18 subjects, 9 categories and their pairing."""
    assert [len(nouns) for nouns in generate.TEMPLATES["categories"].values()] == [2] * 9
    demo, published = (
        {
            (row["context"], row["target"], row["good"])
            for row in pq.read_table(folder / "neg136").to_pylist()
            if row["subset"] == "simp"
        }
        for folder in (demo_dir, data_dir)
    )
    assert demo == published


def test_the_program_makes_the_committed_files(
    generate: ModuleType, scripts: Path, tmp_path: Path
) -> None:
    generate.write_agreement(tmp_path)
    committed = scripts / "demo/refining-tse/data"
    for path in tmp_path.rglob("*.jsonl"):
        assert path.read_bytes() == (committed / path.relative_to(tmp_path)).read_bytes()
    generate.write_simple_negation(tmp_path / "simp.tsv")
    simp = scripts / "demo/lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    assert (tmp_path / "simp.tsv").read_bytes() == simp.read_bytes()
