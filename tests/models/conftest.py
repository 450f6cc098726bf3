"""Small models of every family, made once a session."""

import shutil
from pathlib import Path

import pytest
from families import FAMILIES, SENTENCE_FAMILIES


@pytest.fixture(scope="session")
def family_dir(tmp_path_factory):
    """Returns a function from a family's name to the folder of its model, made on first use."""
    made = {}
    families = FAMILIES | SENTENCE_FAMILIES

    def make(name):
        if name not in made:
            made[name] = families[name].make(tmp_path_factory.mktemp("family") / name)
        return made[name]

    return make


@pytest.fixture
def bert(family_dir, tmp_path):
    """A small BERT, to be broken."""
    return Path(shutil.copytree(family_dir("bert"), tmp_path / "my-bert"))
