"""Entropies over tokens: at blanks, before the words of sentences, in files, and in `fit`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import reference
from commands import Commands
from families import FAMILIES, family_params
from reference import CLOSE
from sentence_texts import SOME

import lmdiag
from lmdiag import models
from lmdiag.models import LoadOptions
from lmdiag.runs.asking import ask
from lmdiag.types import Query, Question, Sentence

CAUSAL = ("gpt2", "llama", "mamba", "gpt_neox", "opt", "qwen2", "gemma", "phi3")
QUERIES = Query("A robin is a"), Query("In the evening Zoë walks her old", ", and the cat sleeps!")
QUESTIONS = [Question(query, ("tree", "naïve"), None, True) for query in QUERIES]
CUT = "The well-known author’s dog sleeps."
SENTENCES = [Sentence(text, (), True) for text in SOME] + [Sentence(CUT, (8, 21), True)]


@pytest.mark.parametrize("name", family_params([*CAUSAL, "bert", "roberta", "deberta-v3", "t5"]))
def test_the_entropies_are_those_of_transformers(
    name: str, family_dir: Callable[[str], Path]
) -> None:
    """At blanks in both units, and before words and parts of words, for two batch sizes."""
    family = FAMILIES[name]
    folder, how = family_dir(name), {"attention": family.attention}
    at_blank = reference.Reference(folder, family.kind, family.convention, **how)
    blanks = [reference.entropy(at_blank.blank(*query, "tree")) for query in QUERIES]
    words = []
    if family.kind != "seq2seq":
        of_words = reference.SentenceReference(folder, family.kind, **how)
        words = [of_words.entropies(*sentence[:2]) for sentence in SENTENCES]
    for unit, size in product(("token", "word"), (1, 9)):
        model = models.load(str(folder), LoadOptions(unit=unit))  # type: ignore[arg-type]
        found = ask(model, QUESTIONS, top=1, batch_size=size)
        assert [answer.entropy for answer in found] == pytest.approx(blanks, abs=CLOSE)
        found = ask(model, SENTENCES, top=0, batch_size=size) if words else []
        for sentence, answer, expected in zip(SENTENCES, found, words, strict=False):
            known = [None if bits is None else pytest.approx(bits, abs=CLOSE) for bits in expected]
            assert [*answer.entropies] == known, sentence


def test_runs_tables_and_fits(command: Commands) -> None:
    """Equal figures and signature; the entropies of words and regions, also as a predictor."""
    folder, model = command.folder, command.models["gpt2"]
    (folder / "rows.csv").write_text("id,sentence\n1,A robin |is a bird.\n2,The dog |sleeps.\n")
    (folder / "texts.txt").write_text("A robin is a bird.\nThe dog sleeps.\n")
    start = ["run", "--model", model, "--quiet", "--data", folder / "rows.csv", "--output"]
    with_entropy = [*start, folder / "with", "--entropy"]
    assert command(*start, folder / "without")[0] == command(*with_entropy)[0] == 0
    refused = command.refused(*start, folder / "without", "--entropy")
    assert "has no entropies: --overwrite it" in refused
    assert command(*start, folder / "with")[0] == 0  # has more than is asked for
    plain, run = (lmdiag.load_run(folder / name) for name in ("without", "with"))
    assert plain.results.signature == run.results.signature
    assert plain.results.tasks == run.results.tasks
    words, regions = run.items("word"), run.items("region")
    assert words["entropy"].notna().sum() == len(words) == 8
    assert regions["entropy"].tolist() == words["entropy"][[0, 2, 5, 7]].tolist()
    assert "entropy" not in {*run.items(), *plain.items("word")}

    made = str(folder / "made.csv")
    texts = [folder / "texts.txt", "--quiet", "--entropy", "--output", made]
    assert command("surprisal", "--model", model, *texts)[0] == 0
    frame = pd.read_csv(made)
    assert frame["entropy"].tolist() == pytest.approx(words["entropy"].tolist(), abs=CLOSE)

    table = frame[["text", "position", "word"]].assign(rt=[1.0, 2, 4, 3, 5, 2, 1, 3])
    chosen: dict[str, Any] = {"predictors": ("surprisal", "entropy"), "controls": (), "lags": 0}
    asked, again, read = (  # again: from the answers that are kept
        [
            x.delta_log_likelihood
            for x in lmdiag.fit(table, **source, response="rt", **chosen).models
        ]
        for source in ({"models": str(model), "output": folder},) * 2 + ({"surprisal": made},)
    )
    assert asked == again == pytest.approx(read, rel=1e-3)
