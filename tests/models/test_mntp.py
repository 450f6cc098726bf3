"""Masked models that answer one place before the mask: asked as such, and told from the others.

Beside the network alone in float64, and the same network that answers at the mask.
"""

import json
import shutil

import pytest
import torch
import transformers
from families import MASKED
from reference import CLOSE, double

import lmdiag
from lmdiag.models import LoadOptions, load
from lmdiag.models.demo import demo_folder
from lmdiag.types import BadInput, Query, Question, Sentence
from models.toys import ask, check_same, edit, refusal

CODE = """
from transformers import {0}, {1}
class MyConfig({0}):
    model_type = "my-model"
class MyModel({1}):
    config_class = MyConfig
    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = output.logits.roll(-1, 1)  # the answer for a token stands before it
        return output
"""
QUESTIONS = [
    Question(
        Query("The doctor said that the", "was here."), ("bird", "sparrows", "tree"), None, True
    ),
    Question(Query("", "is a bird."), ("Robin", "tree")),
    Question(Query("A robin is a"), ("bird", "wrench", "naïve")),
]


def shifted(folder, target):
    """A copy of a masked model whose own code answers one place before the mask."""
    shutil.copytree(folder, target)
    name = json.loads((target / "config.json").read_text("utf-8"))["architectures"][0]
    config = getattr(transformers, name).config_class.__name__
    (target / "own_code.py").write_text(CODE.format(config, name))
    classes = {"AutoConfig": "own_code.MyConfig", "AutoModelForMaskedLM": "own_code.MyModel"}
    edit(target, "config.json", model_type="my-model", auto_map=classes, architectures=["MyModel"])
    return target


def asked_as(folder, kind, **options):
    return load(str(folder), LoadOptions(kind=kind, trust_remote_code=True, **options))


@pytest.mark.parametrize("family", ["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def test_a_word_of_several_pieces_by_the_network_alone(family, family_dir, tmp_path):
    folder = shifted(family_dir(family), tmp_path / "shifted")
    model = asked_as(folder, "mntp")
    assert model.info.kind == "mntp"
    with double():
        network = transformers.AutoModelForMaskedLM.from_pretrained(
            folder, trust_remote_code=True, dtype=torch.float64, attn_implementation="eager"
        ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(family_dir(family))
    before, after = "A robin is a", "in the garden."
    question = Question(Query(before, after), ("bird", "sparrows", "wrench"))
    for word, given in ask(model, question)[0].words.items():
        whole = tokenizer(f"{before} {word} {after}", return_offsets_mapping=True)
        ids, offsets = whole["input_ids"], whole["offset_mapping"]
        start, end = len(before), len(before) + 1 + len(word)
        places = [i for i, (left, right) in enumerate(offsets) if left < end and right > start]
        total = 0.0
        for number, place in enumerate(places):
            hidden = places[number:]
            row = [tokenizer.mask_token_id if i in hidden else id for i, id in enumerate(ids)]
            with torch.inference_mode(), double():
                logits = network(input_ids=torch.tensor([row])).logits
            total += float(logits[0, place - 1].log_softmax(-1)[ids[place]])
        assert given.n_tokens == len(places)
        assert given.log_prob == pytest.approx(total, abs=CLOSE), word


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize(
    "name",
    ["bert", *(pytest.param(x.name, marks=pytest.mark.nightly) for x in MASKED if x.name in
               ("roberta", "deberta-v3", "modernbert", "albert", "electra"))],
)  # fmt: skip
def test_its_answers_are_those_of_the_same_network_at_the_mask(name, unit, family_dir, tmp_path):
    """Words, lists, entropies and whole sentences."""
    plain = load(str(family_dir(name)), LoadOptions(unit=unit))
    model = asked_as(shifted(family_dir(name), tmp_path / name), "mntp", unit=unit)
    check_same(ask(model, *QUESTIONS), ask(plain, *QUESTIONS))
    if unit == "token":
        sentences = [Sentence("The dogs near the gate bark loudly."), Sentence("A robin sings.")]
        answers, expected = (ask(part, *sentences) for part in (model, plain))
        for one, other in zip(answers, expected, strict=True):
            nats = [[word.log_prob for word in answer.words] for answer in (one, other)]
            assert nats[0] == pytest.approx(nats[1], abs=CLOSE)


def test_windows_of_a_long_text(family_dir, tmp_path):
    text = "The old man said that a robin is a bird in the garden near the house. " * 12
    folder = family_dir("bert")
    words = [
        [word.log_prob for word in ask(model, Sentence(text))[0].words]
        for model in (load(str(folder)), asked_as(shifted(folder, tmp_path / "bert"), "mntp"))
    ]
    assert words[1] == pytest.approx(words[0], abs=CLOSE)


def test_a_trained_model_is_told_from_one_that_answers_at_the_mask(tmp_path):
    folder = shifted(demo_folder("masked"), tmp_path / "shifted")
    line = refusal(folder, trust_remote_code=True)
    assert "answers one place before the mask (" in line
    assert line.endswith("): use --kind mntp")
    with pytest.raises(BadInput, match=r"answers at the mask .*: use --kind masked$"):
        load("demo:masked", LoadOptions(kind="mntp"))
    check_same(ask(asked_as(folder, "mntp"), *QUESTIONS), ask(load("demo:masked"), *QUESTIONS))


def test_a_run_says_where_it_was_read(tmp_path, demo_dir):
    folder = shifted(demo_folder("masked"), tmp_path / "shifted")
    how = {"tasks": ["role88"], "trust_remote_code": True, "output": tmp_path / "runs"}
    runs = [
        lmdiag.run(str(folder), demo_dir, kind="mntp", **how),
        lmdiag.run("demo:masked", demo_dir, tasks=["role88"], output=tmp_path / "runs"),
    ]
    assert [run.results.model.kind for run in runs] == ["mntp", "masked"]
    figures = [run.results.tasks["role88"]["none"].measures["sensitivity"].value for run in runs]
    assert figures[0] == figures[1]
