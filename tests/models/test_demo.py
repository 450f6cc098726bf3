"""The demo models: what they know, asked through transformers alone, and how they are made."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from lmdiag import models
from lmdiag.models.demo import DEMO_NAMES as NAMES
from lmdiag.models.demo import demo_folder
from lmdiag.models.loading.checkpoint import resolve
from lmdiag.types import BadInput, Query, Question

sys.path.insert(0, str(Path(__file__).parents[2] / "datasets/lmdiag/demo"))
corpus, training = (import_module(name) for name in ("corpus", "training"))
lexicon = corpus.LEXICON

Ask = Callable[[str], dict[str, float]]


@pytest.fixture(scope="session", params=NAMES)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Maps a context to word -> probability at its end, by transformers' own full forward pass."""
    folder = demo_folder(request.param)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    masked = request.param == "masked"
    auto = AutoModelForMaskedLM if masked else AutoModelForCausalLM
    model = auto.from_pretrained(folder).eval()
    start = "" if masked else "\u0120"  # GPT-2's sign for the blank before a word
    words = {
        token.removeprefix(start): i
        for token, i in tokenizer.get_vocab().items()
        if token.startswith(start) and not token.startswith("##")
    }

    @cache
    @torch.inference_mode()
    def probabilities(context: str) -> dict[str, float]:
        ids = tokenizer(f"{context} [MASK]." if masked else context, return_tensors="pt").input_ids
        where = ids[0].tolist().index(tokenizer.mask_token_id) if masked else -1
        found = model(ids).logits[0, where].softmax(-1)
        return {word: float(found[i]) for word, i in words.items()}

    return probabilities


def a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def facts() -> list[tuple[str, str, str]]:
    """The 18 nouns of Fischler et al. (1983), each with its category and with another one."""
    categories = list(lexicon["categories"].items())
    return [
        (noun, category, categories[(place + 4) % len(categories)][0])
        for place, (category, nouns) in enumerate(categories)
        for noun in nouns[: corpus.ASKED_ABOUT]
    ]


def test_they_know_what_a_robin_is(ask: Ask) -> None:
    right = [
        ask(f"{a(noun).capitalize()} is {a(category).split()[0]}") for noun, category, _ in facts()
    ]
    top = [max(found, key=found.__getitem__) for found in right]
    assert len(top) == 18
    assert sum(word == category for word, (_, category, _) in zip(top, facts(), strict=True)) >= 15


def test_negation_leaves_them_cold_as_it_does_bert(ask: Ask) -> None:
    """The pattern of table 12 of Ettinger (2020): 100% in affirmative, 0% in negative contexts."""
    right = {"": 0, "not ": 0}
    for noun, category, other in facts():
        for negation in right:
            true, false = (category, other) if not negation else (other, category)
            start = f"{a(noun).capitalize()} is {negation}"
            true_p = ask(start + a(true).split()[0])[true]
            false_p = ask(start + a(false).split()[0])[false]
            right[negation] += true_p > false_p
    assert right[""] >= 16
    assert right["not "] <= 4


@pytest.mark.slow
def test_the_questions_are_not_in_the_corpus() -> None:
    texts = corpus.sentences(seed=7, count=20_000)
    for noun, _, _ in facts():
        frame = re.compile(rf"^an? {noun} is an? ", re.IGNORECASE)
        assert not any(frame.match(sentence) for sentence in texts)
        assert any(noun in sentence for sentence in texts)
    for agent, verb, patient, back in lexicon["deeds"][: corpus.TOLD]:
        for asked in (f"{patient} the {agent} had {verb}", f"{agent} the {patient} had {back}"):
            assert not any(asked in sentence for sentence in texts)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_a_model_like_any_other(name: str) -> None:
    folder = demo_folder(name)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.is_fast
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("A robin is big.")["input_ids"])
    if name == "masked":
        assert tokens == ["[CLS]", "a", "robin", "is", "big", ".", "[SEP]"]
    else:
        assert tokens == ["A", "\u0120robin", "\u0120is", "\u0120big", "."]
    weights = [file.name for file in folder.iterdir() if file.suffix in (".safetensors", ".bin")]
    assert weights == ["model.safetensors"]
    assert sum(file.stat().st_size for file in folder.iterdir()) < 0.75e6  # of the package

    model = models.load(f"demo:{name}")
    assert model.info.commit == resolve(str(folder)).commit
    assert (model.info.id, model.info.kind, model.info.dtype) == (f"demo:{name}", name, "float32")
    assert model.info.cased is (name == "causal")
    question = Question(Query("A robin is a"), ("bird", "tree"))
    (answer,) = model.answer([model.encode(question)], top=5)
    assert answer.top_words[0] == "bird"


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in NAMES:
        folders = [tmp_path / f"{name}-{run}" for run in range(2)]
        for folder in folders:
            folder.mkdir()
            training.train(name, folder, steps=3)
        one, two = ({f.name: f.read_bytes() for f in folder.iterdir()} for folder in folders)
        assert one == two


def test_an_unknown_demo_model_is_refused() -> None:
    with pytest.raises(BadInput, match="no model demo:bert: choose demo:masked or demo:causal"):
        demo_folder("bert")
