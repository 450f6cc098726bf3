"""What a family's model answers, beside what the float64 reference says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from families import FAMILIES
from reference import Reference, Scored
from vocabularies import UNKNOWN

from lmdiag.models import LoadOptions, Model, load
from lmdiag.protocol import Unit
from lmdiag.types import Answer, Query, Question

QUERIES = (
    Query("He said “the Café on Mondays is not so quiet”, but a robin is a"),
    Query("The doctor told José that the", "was asleep in the garden."),
    Query("In the evening Zoë walks her old", ", and the cat sleeps!"),
    Query("A"),
    Query("The 日本 and the ½ chased one", "near the sea."),
)
"""Curly quotes, accents, capitals, marks after the blank, a short context, unknown letters."""

WORDS = ("bird", "tree", "student", "like", "penguin", "wrench", "Peter", "naïve", "sparrows")
"""Some are one piece and some several, in every vocabulary."""

QUESTIONS = [Question(query, (*WORDS, UNKNOWN)) for query in QUERIES]

PLAIN = "tree"
"""A word that leaves the pieces around it alone in every vocabulary."""

TOP = 8

TOLERANCES = {"token": 1e-5, "word": 2e-5}
"""Nats; the models are float32, the reference float64."""


def ask(
    model: Model, questions: Sequence[Question], size: int | None = None, top: int = TOP
) -> list[Answer]:
    """Returns the answers, asked in batches of a size, in the questions' order."""
    encoded = [model.encode(question) for question in questions]
    size = size or len(encoded)
    batches = [encoded[start : start + size] for start in range(0, len(encoded), size)]
    return [answer for batch in batches for answer in model.answer(batch, top)]


def check_family(name: str, folder: Path, unit: Unit = "token", bos: str = "auto") -> list[Answer]:
    """Compares a family's answers with its reference; the list only in unit `token`."""
    family = FAMILIES[name]
    answers = ask(load(str(folder), LoadOptions(bos=bos, unit=unit)), QUESTIONS)  # type: ignore[arg-type]
    reference = Reference(folder, family.kind, family.convention, bos, family.attention)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        score = reference.score_whole if unit == "word" else reference.score
        scored = {word: score(*question.query, word) for word in question.words}
        if unit == "token":
            # Two more than the answer has, so that its last ones can be told from a near tie.
            check_top(answer, reference.top(*question.query, PLAIN, TOP + 2))
        check_words(answer, scored, unit)
        sizes = [len(each.pieces) > 1 for each in scored.values() if each is not None]
        assert min(sizes.count(True), sizes.count(False)) >= 2
    return answers


def check_words(answer: Answer, scored: dict[str, Scored | None], unit: Unit = "token") -> None:
    """Scores are the reference's."""
    for word, right in scored.items():
        given = answer.words[word]
        if right is None:
            assert given == (None, None, 0), word
            continue
        assert given.log_prob == pytest.approx(right.log_prob, abs=TOLERANCES[unit]), word
        assert given.n_tokens == len(right.pieces), word
        assert unit == "word" or given.rank in right.ranks, word


def check_top(answer: Answer, top: Sequence[tuple[str | None, float]]) -> None:
    """Each place holds the reference's item, or one that is as good within the tolerance."""
    tolerance = TOLERANCES["token"]
    values = [value for _, value in top]
    assert answer.top_log_probs == pytest.approx(values[:TOP], abs=tolerance)
    for word, value in zip(answer.top_words, values, strict=False):
        near = {shown for shown, other in top if abs(other - value) < 2 * tolerance}
        assert word in near or None in near, (word, near)


def check_same(first: Iterable[Answer], second: Iterable[Answer], unit: Unit = "token") -> None:
    """Answers to the same questions are the same up to float32."""
    for one, other in zip(first, second, strict=True):
        assert one.top_words == other.top_words
        assert one.top_log_probs == pytest.approx(other.top_log_probs, abs=TOLERANCES[unit])
        for word, score in one.words.items():
            assert score[1:] == other.words[word][1:], word
            expected = other.words[word].log_prob
            assert score.log_prob == (expected and pytest.approx(expected, abs=TOLERANCES[unit]))
