"""The demo source: large enough, small enough, our own sentences, and made again by its program."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def generate(scripts: Path) -> ModuleType:
    """The program that makes the generated part."""
    spec = importlib.util.spec_from_file_location("generate", scripts / "demo" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(folder: Path, config: str) -> dict[str, list]:
    return pq.read_table(folder / config).to_pydict()


def test_sizes(demo_dir: Path, scripts: Path) -> None:
    assert len(set(rows(demo_dir, "cprag102")["contrast"])) >= 12
    assert set(rows(demo_dir, "cprag102")["constraint"]) == {"high", "low"}
    assert all(rows(demo_dir, "cprag102")["explanation"])
    assert len(set(rows(demo_dir, "role88")["contrast"])) >= 16
    negation = rows(demo_dir, "neg136")
    items = set(zip(negation["subset"], negation["item"], strict=True))
    assert Counter(subset for subset, _ in items) == {"simp": 18, "nat": 8}
    files = [path for path in (scripts / "demo").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if path.suffix != ".pyc") < 300_000


def test_agreement_has_the_paper_s_templates_in_both_numbers(demo_dir: Path) -> None:
    found = rows(demo_dir, "agreement")
    cells = Counter(zip(found["template"], found["number"], found["good"], strict=True))
    assert len(cells) == 19 * 2 * 2
    assert set(cells.values()) == {10}


def test_demo_templates_are_those_of_the_published_pairs(scripts: Path, upstream: Path) -> None:
    def stems(folder: Path) -> set[str]:
        return {f"{path.parent.name}/{path.stem}" for path in folder.rglob("*.jsonl")}

    assert stems(scripts / "demo/refining-tse") == stems(upstream / "refining-tse")


def sentences(folder: Path, config: str) -> set[str]:
    """Whole sentences of good rows, but for NEG-SIMP, which both sources have."""
    return {
        " ".join((row["context"], row["target"], row["right_context"])).lower()
        for row in pq.read_table(folder / config).to_pylist()
        if row["good"] and row.get("subset") != "simp"
    }


@pytest.mark.slow
def test_no_demo_sentence_is_a_published_one(
    demo_dir: Path, data_dir: Path, agreement_dir: Path
) -> None:
    for config in ("cprag102", "role88", "neg136", "agreement"):
        published = sentences(agreement_dir if config == "agreement" else data_dir, config)
        assert not sentences(demo_dir, config) & published


def test_simple_negation_is_rebuilt_from_its_nouns(
    generate: ModuleType, demo_dir: Path, data_dir: Path
) -> None:
    """Issue 2: NEG-SIMP of the demo has the 18 subjects, 9 categories and their pairing."""
    assert len(generate.CATEGORIES) == 9
    assert sum(map(len, generate.CATEGORIES.values())) == 18
    ours, theirs = (
        {
            (row["context"], row["target"], row["good"])
            for row in pq.read_table(folder / "neg136").to_pylist()
            if row["subset"] == "simp"
        }
        for folder in (demo_dir, data_dir)
    )
    assert ours == theirs


def test_the_program_makes_what_is_kept(
    generate: ModuleType, scripts: Path, tmp_path: Path
) -> None:
    generate.write_agreement(tmp_path)
    kept = scripts / "demo/refining-tse/data"
    for path in tmp_path.rglob("*.jsonl"):
        assert path.read_bytes() == (kept / path.relative_to(tmp_path)).read_bytes()
    generate.write_simple_negation(tmp_path / "simp.tsv")
    simp = scripts / "demo/lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    assert (tmp_path / "simp.tsv").read_bytes() == simp.read_bytes()


@pytest.mark.slow
def test_the_program_makes_the_verbs(generate: ModuleType, scripts: Path, tmp_path: Path) -> None:
    pytest.importorskip("lemminflect")
    pytest.importorskip("wordfreq")
    generate.write_verbs(tmp_path / "verbs.csv")
    kept = scripts / "demo/refining-tse/data/verbs/combined_verb_list.csv"
    assert (tmp_path / "verbs.csv").read_bytes() == kept.read_bytes()


def test_a_pair_s_label_is_the_number_of_its_verb(scripts: Path) -> None:
    """Where the blank's verb is next to its subject, the subject's ending tells the number."""
    path = scripts / "demo/refining-tse/data/ML/obj_rel_no_comp_within_anim_all.jsonl"
    for line in path.read_text("utf-8").splitlines():
        pair = json.loads(line)
        _, _, _, subject, verb, *_ = pair["sentence_good"].split()
        plural = subject.endswith("s") or subject in ("children", "women")
        assert pair["label"] == (-2 if plural else -1)
        assert verb.endswith("s") != plural
