"""The perturbed texts, checked on every published item by another formulation of SPEC 3."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag import perturb, stimuli
from lmdiag.schema import BadInput

WORDS = st.lists(st.text("abcde’,“", min_size=1, max_size=5), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def cprag(data_dir: Path) -> stimuli.Stimuli:
    return stimuli.load(str(data_dir), "cprag102")


@pytest.fixture(scope="module")
def role(data_dir: Path) -> stimuli.Stimuli:
    return stimuli.load(str(data_dir), "role88")


def contexts(rows: stimuli.Stimuli, name: str, run: int = 0, seed: int = 0) -> list[str]:
    return perturb.perturb(rows, name, run, seed).columns()["context"]


def sentences(upstream: Path) -> list[tuple[str, str]]:
    """The two sentences of every CPRAG-102 item, read anew from the source file."""
    path = upstream / "lm-diagnostics/datasets/CPRAG-102/CPRAG-102.tsv"
    lines = path.read_text("utf-8").splitlines()[1:]
    return [(line.split("\t")[1], line.split("\t")[2]) for line in lines]


def last_two_words(sentence: str) -> str:
    found = re.search(r"\S+ \S+$", sentence)
    assert found is not None
    return found[0]


def test_trunc_on_all_items(upstream: Path, cprag: stimuli.Stimuli) -> None:
    due = [f"{first} {last_two_words(second)}" for first, second in sentences(upstream)]
    assert contexts(cprag, "trunc") == [text for text in due for _ in range(3)]


@pytest.mark.parametrize("name", ["shuf", "shuf_trunc"])
def test_shuffled_texts_on_all_items(upstream: Path, cprag: stimuli.Stimuli, name: str) -> None:
    found = contexts(cprag, name, run=3)
    moved = 0
    for i, (first, second) in enumerate(sentences(upstream)):
        assert len({found[3 * i], found[3 * i + 1], found[3 * i + 2]}) == 1
        end = second if name == "shuf" else last_two_words(second)
        shuffled, period, rest = found[3 * i].partition(". ")
        # Sentence 1 has no period inside any more, so the first one is that which was added.
        assert (period, rest) == (". ", end)
        assert Counter(shuffled.split(" ")) == Counter(first.replace(".", "").split(" "))
        moved += shuffled != first.removesuffix(".")
    assert moved == 34  # sentences of 7 to 19 words: an order that changes nothing is unheard of


PATTERNS = {
    "obj": [(r"which \S+ the (\S+) had$", r"which one the \1 had")],
    "sub": [(r"which (\S+) the \S+ had$", r"which \1 the other had")],
    "both": [(r"which \S+ the \S+ had$", "which one the other had")],
}


@pytest.mark.parametrize("name", PATTERNS)
def test_nouns_replaced_on_all_items(upstream: Path, role: stimuli.Stimuli, name: str) -> None:
    path = upstream / "lm-diagnostics/datasets/ROLE-88/ROLE-88.tsv"
    due = []
    for line in path.read_text("utf-8").splitlines()[1:]:
        text = line.split("\t")[1].strip()
        for pattern, by in PATTERNS[name]:
            text, count = re.subn(pattern, by, text)
            assert count == 1
        due.append(text)
    assert len(due) == 88
    assert contexts(role, name) == due


def test_only_contexts_change(cprag: stimuli.Stimuli) -> None:
    changed = perturb.perturb(cprag, "shuf", 1, 0)
    assert changed.fingerprint == cprag.fingerprint
    for column, values in cprag.columns().items():
        assert (changed.columns()[column] == values) == (column != "context")


def test_the_order_depends_on_seed_item_and_run_alone() -> None:
    def orders(**changes: object) -> tuple[int, ...]:
        return tuple(perturb.order(12, **{"item": "7", "run": 3, "seed": 0, **changes}))

    assert orders() == orders()
    # Kept results depend on these orders: they may never change.
    assert orders() == (0, 5, 1, 10, 6, 2, 9, 3, 8, 4, 7, 11)
    others = {orders(), orders(item="8"), orders(run=4), orders(seed=1), orders(run=13)}
    assert len(others) == 5


def test_other_items_do_not_matter(data_dir: Path, cprag: stimuli.Stimuli) -> None:
    few = stimuli.load(str(data_dir), "cprag102", limit=9)
    assert contexts(few, "shuf", run=5) == contexts(cprag, "shuf", run=5)[:9]


def test_every_order_is_equally_likely() -> None:
    runs = 6000
    counts = Counter(tuple(perturb.order(3, "0", run, 0)) for run in range(runs))
    assert len(counts) == 6
    # 1000 expected each, standard deviation 29: chi-square with 5 degrees of freedom.
    assert sum((n - 1000) ** 2 / 1000 for n in counts.values()) < 20.5  # p = 0.001


@given(WORDS, st.integers(0, 99), st.integers(0, 9))
def test_shuffling_keeps_the_words(words: list[str], run: int, seed: int) -> None:
    found = perturb.shuffle(" ".join(words) + ".", "1", run, seed)
    assert sorted(found.removesuffix(".").split(" ")) == sorted(words)


def test_periods_inside_are_deleted() -> None:
    assert sorted(perturb.shuffle("Mr. A. Bell rang.", "1", 0, 0)[:-1].split()) == [
        "A", "Bell", "Mr", "rang",
    ]  # fmt: skip


def test_settings_begin_with_the_unperturbed() -> None:
    assert perturb.settings("cprag102", ["all"], 2) == [
        ("none", 0), ("shuf", 0), ("shuf", 1), ("trunc", 0), ("shuf_trunc", 0), ("shuf_trunc", 1),
    ]  # fmt: skip
    assert perturb.settings("role88", perturb.NAMES, 2) == [
        ("none", 0), ("obj", 0), ("sub", 0), ("both", 0),
    ]  # fmt: skip
    assert perturb.settings("neg136", ["all"], 100) == [("none", 0)]
    assert perturb.settings("cprag102", ["none"], 100) == [("none", 0)]


def test_mistakes_are_named(cprag: stimuli.Stimuli, role: stimuli.Stimuli) -> None:
    with pytest.raises(BadInput, match=r"'shuff' \(did you mean 'shuf'\?\): choose"):
        perturb.settings("cprag102", ["shuff"], 100)
    with pytest.raises(BadInput, match="--shuffles must be at least 1 for shuf, not 0"):
        perturb.settings("cprag102", ["shuf"], 0)
    with pytest.raises(BadInput, match="the perturbation obj is for role88, not for cprag102"):
        perturb.perturb(cprag, "obj", 0, 0)
    with pytest.raises(
        BadInput, match=r"role88-61-b: the context has no 'which .* the' to replace"
    ):
        perturb.perturb(role.with_contexts(["Nothing of the kind"] * 88), "obj", 0, 0)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    header = "id,item,condition,context,target,good,contrast,expected\n"
    file = tmp_path / "role88.csv"
    file.write_text(
        f"{header}a,1,x,We saw which cat the dog had,bitten,1,1,\nb,1,y,No,eaten,0,1,\n"
    )
    own = stimuli.load(str(file), "role88")
    with pytest.raises(BadInput, match="the perturbation sub needs the column object"):
        perturb.perturb(own, "sub", 0, 0)
