"""A model to be broken."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def bert(family_dir, tmp_path):
    """A small BERT, to be broken."""
    return Path(shutil.copytree(family_dir("bert"), tmp_path / "my-bert"))
