"""The folder of the data set, and imports of its files that are not in a package."""

import shutil
from importlib.machinery import SourceFileLoader
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def scripts(root):
    return root / "datasets" / "lmdiag"


@pytest.fixture
def tree(scripts, tmp_path):
    """A copy of the demo source, to be changed."""
    return shutil.copytree(scripts / "demo", tmp_path / "tree")


@pytest.fixture(scope="session")
def import_file():
    """Imports a file that is not in a package."""

    def load(path):
        module = ModuleType(f"file_{path.stem}")
        module.__file__ = str(path)
        SourceFileLoader(module.__name__, str(path)).exec_module(module)
        return module

    return load
