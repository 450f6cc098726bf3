"""Small models of every family, made once a session."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from families import FAMILIES, SENTENCE_FAMILIES


@pytest.fixture(scope="session")
def family_dir(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function from a family's name to the folder of its model, made on first use."""
    made: dict[str, Path] = {}
    families = FAMILIES | SENTENCE_FAMILIES

    def make(name: str) -> Path:
        if name not in made:
            made[name] = families[name].make(tmp_path_factory.mktemp("family") / name)
        return made[name]

    return make


@pytest.fixture
def bert(family_dir: Callable[[str], Path], tmp_path: Path) -> Path:
    """A small BERT, to be broken."""
    return Path(shutil.copytree(family_dir("bert"), tmp_path / "my-bert"))
