"""The folder of the data set, and imports of its files that are not in a package."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def scripts(root: Path) -> Path:
    return root / "datasets" / "lmdiag"


@pytest.fixture
def tree(scripts: Path, tmp_path: Path) -> Path:
    """A copy of the demo source, to be changed."""
    return shutil.copytree(scripts / "demo", tmp_path / "tree")


@pytest.fixture(scope="session")
def import_file() -> Callable[[Path], ModuleType]:
    """Imports a file that is not in a package."""

    def load(path: Path) -> ModuleType:
        module = ModuleType(f"file_{path.stem}")
        module.__file__ = str(path)
        SourceFileLoader(module.__name__, str(path)).exec_module(module)
        return module

    return load
