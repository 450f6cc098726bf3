"""The perturbed texts, checked on every published item by another formulation of the same rules."""

import re

import pytest

from lmdiag import stimuli
from lmdiag.diagnostics.cprag102 import random_order
from lmdiag.stimuli import perturbations
from lmdiag.types import BadInput


@pytest.fixture(scope="module")
def cprag(data_dir):
    return stimuli.load(str(data_dir), "cprag102")


@pytest.fixture(scope="module")
def role(data_dir):
    return stimuli.load(str(data_dir), "role88")


def contexts(rows, name, run=0, seed=0):
    return perturbations.perturb(rows, name, run, seed).columns()["context"]


def source_lines(upstream, name):
    """The fields of every line of a source file, read anew."""
    path = upstream / f"lm-diagnostics/datasets/{name}/{name}.tsv"
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]


def test_trunc_on_all_items(upstream, cprag):
    lines = source_lines(upstream, "CPRAG-102")
    expected = [f"{first} {' '.join(second.split(' ')[-2:])}" for _, first, second, *_ in lines]
    assert contexts(cprag, "trunc") == [text for text in expected for _ in range(3)]


@pytest.mark.parametrize("name", ["shuf", "shuf_trunc"])
def test_shuffled_texts_on_all_items(upstream, cprag, name):
    texts = contexts(cprag, name, run=3, seed=1)
    items = cprag.columns()["item"]
    for i, (_, first, second, *_) in enumerate(source_lines(upstream, "CPRAG-102")):
        assert len(set(texts[3 * i : 3 * i + 3])) == 1
        end = second if name == "shuf" else " ".join(second.split(" ")[-2:])
        shuffled, period, rest = texts[3 * i].partition(". ")
        # Periods inside sentence 1 are deleted, so the first one is the one that was added.
        assert (period, rest) == (". ", end)
        words = first.replace(".", "").split(" ")
        order = random_order(len(words), items[3 * i], shuffle=3, seed=1)
        assert shuffled.split(" ") == [words[place] for place in order]
        assert sorted(order) == [*range(len(words))] != order
    changed = perturbations.perturb(cprag, name, 1, 0)
    assert changed.fingerprint == cprag.fingerprint
    assert changed.columns() | {"context": 0} == cprag.columns() | {"context": 0}


@pytest.mark.parametrize(
    ("name", "pattern", "by"),
    [
        ("obj", r"which \S+ the (\S+) had$", r"which one the \1 had"),
        ("sub", r"which (\S+) the \S+ had$", r"which \1 the other had"),
        ("both", r"which \S+ the \S+ had$", "which one the other had"),
    ],
)
def test_nouns_replaced_on_all_items(upstream, role, name, pattern, by):
    replaced = [re.subn(pattern, by, line[1].strip()) for line in source_lines(upstream, "ROLE-88")]
    assert [count for _, count in replaced] == [1] * 88
    assert contexts(role, name) == [text for text, _ in replaced]


def test_the_order_depends_on_seed_item_and_run_alone():
    def order(item="7", run=3, seed=0):
        return tuple(random_order(12, item, run, seed))

    # Saved results depend on these orders: they must never change.
    assert order() == order() == (0, 5, 1, 10, 6, 2, 9, 3, 8, 4, 7, 11)
    assert len({order(), order(item="8"), order(run=4), order(seed=1), order(run=13)}) == 5


def test_mistakes_are_named(cprag, role):
    assert perturbations.chosen(["none"], ["cprag102"]) == ()
    for asked, message in (
        (["shuff"], r"'shuff' \(did you mean 'shuf'\?\): choose"),
        (["none", "shuf"], "--perturb none cannot be combined"),
    ):
        with pytest.raises(BadInput, match=message):
            perturbations.chosen(asked, ["cprag102"])
    other = role.with_contexts(["Another text"] * 88)
    row = {"context": "We saw which", "target": "bitten", "expected_cloze": 1, "target_cloze": 1}
    for rows, name, message in (
        (cprag, "obj", "the perturbation obj is made for role88, not for cprag102: add such"),
        (other, "obj", r"role88-61-b: the context has no 'which .* the' to replace"),
        (stimuli.load([row], "role88"), "sub", "the perturbation sub needs the column object"),
    ):
        with pytest.raises(BadInput, match=message):
            contexts(rows, name)
