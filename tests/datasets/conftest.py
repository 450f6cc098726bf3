"""Makes the loading scripts importable, as they are for a script that runs from their folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

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
    return shutil.copytree(SCRIPTS / "demo", tmp_path / "tree")


@pytest.fixture(scope="session")
def import_file() -> Callable[[Path], ModuleType]:
    """Imports a file that is not in a package."""

    def load(path: Path) -> ModuleType:
        module = ModuleType(f"file_{path.stem}")
        module.__file__ = str(path)
        SourceFileLoader(module.__name__, str(path)).exec_module(module)
        return module

    return load
