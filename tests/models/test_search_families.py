"""Unit `word` in every family: against the float64 reference, in batches, with what is shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES, family_params

from lmdiag.models import LoadOptions, Model, load
from lmdiag.models.forward.prefixes import KeyValues, Rereading, Sources
from lmdiag.models.whole_words.search import WordSearch
from lmdiag.schema import Answer, Query, Question
from models.comparison import QUERIES, WORDS, questions

TOLERANCE = 2e-5
"""Nats: float32 against float64."""

SOME = (
    "bert",
    "roberta",
    "albert",
    "fnet",
    "gpt2",
    "bloom",
    "mamba",
    "mistral",
    "llama",
    "t5",
    "bart",
)
NO_CACHE = ("mamba", "rwkv")


@pytest.fixture(scope="module")
def loaded(family_dir: Callable[[str], Path]) -> Callable[[str], Model]:
    """Returns a function from a family's name to its model in unit `word`."""
    models: dict[str, Model] = {}

    def get(name: str) -> Model:
        if name not in models:
            models[name] = load(str(family_dir(name)), LoadOptions(unit="word"))
        return models[name]

    return get


def ask(model: Model, questions: list[Question]) -> list[Answer]:
    """Returns the answers to questions asked together."""
    return model.answer([model.encode(question) for question in questions], 5)


@pytest.mark.parametrize("name", family_params(SOME))
def test_listed_words_are_candidates(name: str, loaded: Callable[[str], Model]) -> None:
    """A listed word, asked for, has the probability and the rank that it is listed with."""
    model = loaded(name)
    first = ask(model, [Question(query, ()) for query in QUERIES])
    again = ask(
        model, [Question(query, a.top_words) for query, a in zip(QUERIES, first, strict=True)]
    )
    for one, other in zip(first, again, strict=True):
        assert one.top_words == other.top_words
        assert len(one.top_words) == 5
        for rank, (word, log_prob) in enumerate(
            zip(one.top_words, one.top_log_probs, strict=True), start=1
        ):
            assert other.words[word].log_prob == pytest.approx(log_prob, abs=TOLERANCE)
            assert other.words[word].rank == rank


@pytest.mark.parametrize("name", family_params(SOME))
def test_batches_do_not_matter(name: str, loaded: Callable[[str], Model]) -> None:
    model = loaded(name)
    together = ask(model, questions())
    alone = [ask(model, [question])[0] for question in questions()]
    backwards = ask(model, questions()[::-1])[::-1]
    for one, *others in zip(together, alone, backwards, strict=True):
        for other in others:
            assert other.top_words == one.top_words
            assert other.top_log_probs == pytest.approx(one.top_log_probs, abs=TOLERANCE)
            for word, score in one.words.items():
                assert other.words[word][1:] == score[1:]
                assert other.words[word].log_prob == (
                    score.log_prob and pytest.approx(score.log_prob, abs=TOLERANCE)
                )


class TestSharing:
    @pytest.mark.parametrize("name", family_params(FAMILIES))
    def test_what_is_shared(self, name: str, loaded: Callable[[str], Model]) -> None:
        family = FAMILIES[name]
        words = loaded(family.name).words
        assert words is not None
        shared = {"masked": Rereading, "causal": KeyValues, "seq2seq": Sources}[family.kind]
        assert words.share is (Rereading if family.name in NO_CACHE else shared)

    @pytest.mark.parametrize("name", ["gpt2", "bloom", "gpt_neo", "mistral", "falcon-alibi", "t5"])
    def test_same_as_reading_again(self, name: str, loaded: Callable[[str], Model]) -> None:
        model = loaded(name)
        again = WordSearch(model.encoder, model.reader, model.vocabulary, model.info)
        again.share = Rereading
        batch = [again.encode(question) for question in questions()]
        for one, other in zip(ask(model, questions()), again.answer(batch, 5), strict=True):
            assert one.top_words == other.top_words
            for word in WORDS:
                assert one.words[word].log_prob == pytest.approx(
                    other.words[word].log_prob, abs=TOLERANCE
                )

    def test_contexts_are_read_once(self, loaded: Callable[[str], Model]) -> None:
        """All rounds together read each context's tokens once, and then the pieces alone."""
        model = loaded("gpt2")
        given = counted(model)
        batch = [model.encode(question) for question in questions()]
        model.answer(batch, 5)
        contexts, *rounds = given
        assert contexts == (len(batch), max(len(each.rows[0].ids) for each in batch))
        assert len(rounds) > 2
        assert max(width for _, width in rounds) <= 8


def counted(model: Model) -> list[tuple[int, ...]]:
    """Returns a list that fills with the shapes of what a model is given."""
    given: list[tuple[int, ...]] = []

    def note(_: Any, __: Any, arguments: dict[str, Any]) -> None:
        given.append(tuple(arguments["input_ids"].shape))

    model.reader.model.register_forward_pre_hook(note, with_kwargs=True)
    return given


def test_agreement_is_about_tokens(family_dir: Callable[[str], Path]) -> None:
    """EW and MW do not depend on the unit."""
    pairs = [("is", "are"), ("likes", "like"), ("smiles", "laugh")]
    question = Question(Query("The author that the guards like", "."), ("is", "are"), "singular")
    for name in ("bert", "gpt2"):
        found = []
        for unit in ("token", "word"):
            model = load(str(family_dir(name)), LoadOptions(unit=unit))
            assert model.set_verbs(pairs) > 0
            (answer,) = ask(model, [question])
            found.append(answer.agreement)
        assert found[0] is not None
        assert found[1] == pytest.approx(found[0], abs=1e-6)
