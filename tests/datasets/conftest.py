"""Makes the loading scripts importable, as they are for a script that runs from their folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "datasets" / "lmdiag"
sys.path.insert(0, str(SCRIPTS))


@pytest.fixture(scope="session")
def scripts() -> Path:
    """The folder of the loading scripts."""
    return SCRIPTS


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the demo source, to be changed."""
    shutil.copytree(SCRIPTS / "demo", tmp_path / "tree")
    return tmp_path / "tree"
