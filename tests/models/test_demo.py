"""The demo models: what they know, and how they are made."""

import re
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from lmdiag import models
from lmdiag.models.demo import DEMO_NAMES as NAMES
from lmdiag.models.demo import demo_folder
from lmdiag.models.loading.checkpoint import model_digest

sys.path.insert(0, str(Path(__file__).parents[2] / "datasets/lmdiag/demo"))
corpus, training = (import_module(name) for name in ("corpus", "training"))
lexicon = corpus.LEXICON


@pytest.mark.slow
def test_the_questions_are_not_in_the_corpus():
    texts = corpus.sentences(seed=7, count=20_000)
    # the 18 nouns of Fischler et al. (1983)
    for noun in chain(*(nouns[: corpus.ASKED_ABOUT] for nouns in lexicon["categories"].values())):
        frame = re.compile(rf"^an? {noun} is an? ", re.IGNORECASE)
        assert not any(frame.match(sentence) for sentence in texts)
        assert any(noun in sentence for sentence in texts)
    for agent, verb, patient, back in lexicon["deeds"][: corpus.TOLD]:
        for asked in (f"{patient} the {agent} had {verb}", f"{agent} the {patient} had {back}"):
            assert not any(asked in sentence for sentence in texts)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_a_model_like_any_other(name):
    folder = demo_folder(name)
    tokens = AutoTokenizer.from_pretrained(folder).tokenize("A robin is big.")
    masked = ["a", "robin", "is", "big", "."]
    assert tokens == (masked if name == "masked" else ["A", "Ġrobin", "Ġis", "Ġbig", "."])
    assert sum(file.stat().st_size for file in folder.iterdir()) < 0.75e6  # of the package
    info = models.load(f"demo:{name}").info
    assert (info.id, info.kind, info.dtype) == (f"demo:{name}", name, "float32")
    assert (info.commit, info.cased) == (model_digest(folder), name == "causal")


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_bytes(tmp_path):
    for name in NAMES:
        made = []
        for folder in (tmp_path / f"{name}-1", tmp_path / f"{name}-2"):
            folder.mkdir()
            training.train(name, folder, steps=3)
            made.append({file.name: file.read_bytes() for file in folder.iterdir()})
        assert made[0] == made[1]
