"""Whatever is in a model folder: the model answers, or one line says why not; no code runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lmdiag.models import load
from lmdiag.schema import BadInput, Query, Question

from .folder_fuzz import mutate, watched

BASES = ("bert", "gpt2", "llama", "t5")


@pytest.fixture(scope="module")
def bases(
    family_dir: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """Valid folders: with one file of weights and, the last one, with several."""
    from lmdiag.models.loading.load import load_parts

    folders = [family_dir(name) for name in BASES]
    sharded = tmp_path_factory.mktemp("fuzz") / "sharded"
    parts = load_parts(str(family_dir("bert")))
    parts.model.save_pretrained(sharded, max_shard_size="20KB")
    parts.tokenizer.save_pretrained(sharded)
    return [*folders, sharded]


def outcome(folder: Path) -> str:
    """Returns "works" or the line with which the folder is refused; any other exception escapes."""
    question = Question(Query("The bird sat on the", "."), ("tree", "zzz"))
    try:
        model = load(str(folder))
        answers = model.answer([model.encode(question)], 3)
    except BadInput as error:
        return str(error)
    assert len(answers[0].top_words) == 3
    return "works"


def fuzz(bases: list[Path], target: Path, seeds: range) -> dict[str, int]:
    """Returns outcome -> number of folders; fails with the seed that led to anything else."""
    counts = {"works": 0, "refused": 0}
    for seed in seeds:
        told = mutate(bases[seed % len(bases)], target, seed)
        with watched() as events:
            try:
                line = outcome(target)
            except Exception as error:
                raise AssertionError(f"seed {seed} ({told}): {error!r}") from error
        assert events == [], f"seed {seed} ({told})"
        assert line.isprintable(), f"seed {seed} ({told})"
        assert len(line) < 1_500, f"seed {seed} ({told})"
        counts["works" if line == "works" else "refused"] += 1
    return counts


def test_a_few_broken_folders(bases: list[Path], tmp_path: Path) -> None:
    counts = fuzz(bases, tmp_path / "broken", range(50))
    assert counts["refused"] > 10
    assert counts["works"] > 5


@pytest.mark.slow
def test_many_broken_folders(bases: list[Path], tmp_path: Path) -> None:
    """LMDIAG_FUZZ sets the number of folders."""
    number = int(os.environ.get("LMDIAG_FUZZ", "1000"))
    counts = fuzz(bases, tmp_path / "broken", range(1000, 1000 + number))
    assert counts["refused"] > number / 5
    assert counts["works"] > number / 10
