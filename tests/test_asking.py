"""Each batch is asked once, by any process, however often the run is interrupted.

The model here is arithmetic: its answer depends only on the question, and it records what it is
asked. Real models on real processes are in `tests/test_processes.py`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.runs.asking import ask, unanswered
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes
from lmdiag.types import Answer, BadInput, Query, Question, WordScore

QUESTIONS = [Question(Query("x" * (n % 7) + str(n)), ("bird",)) for n in range(23)]


class Arithmetic:
    """Log-probabilities are made of lengths; raises `error` before batch number `fails_at`."""

    def __init__(self, fails_at: int | None = None, error: BaseException | None = None) -> None:
        self.batches: list[list[str]] = []
        self._fails_at, self._error = fails_at, error or KeyboardInterrupt()

    @property
    def asked(self) -> Counter[str]:
        return Counter(context for batch in self.batches for context in batch)

    def encode(self, question: Question) -> Question:
        return question

    def plan(self, encoded: Sequence[Question], batch_size: int | None) -> list[list[int]]:
        size = batch_size or 4
        order = sorted(range(len(encoded)), key=lambda n: -len(encoded[n].query.context))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def key(self, encoded: Question, top: int) -> str:
        return encoded.query.context

    def answer(self, batch: Sequence[Question], top: int) -> list[Answer]:
        if self._fails_at == len(self.batches):
            raise self._error
        self.batches.append([question.query.context for question in batch])
        return [self._answer(question, top) for question in batch]

    def _answer(self, question: Question, top: int) -> Answer:
        words = {word: WordScore(-math.sqrt(len(word) + 1), 1, 1) for word in question.words}
        tops = tuple(f"{question.query.context}{number}" for number in range(top))
        return Answer(words, tops, tuple(-float(number) for number in range(top)))


def run(model: Arithmetic, folder: Path, **options: Any) -> list[Answer]:
    with Journal(folder) as journal:
        return ask(model, QUESTIONS, top=5, journal=journal, **options)  # type: ignore[arg-type]


def test_answers_come_in_the_order_of_the_questions_and_progress_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Arithmetic()
    answers = run(model, tmp_path, label="org/model")
    assert [a.top_words[0] for a in answers] == [f"{q.query.context}0" for q in QUESTIONS]
    assert set(model.asked.values()) == {1}
    shown = r"org/model: 23 contexts\norg/model: asked 23 contexts in 0:00:\d\d, .* contexts/s\n"
    assert re.fullmatch(shown, capsys.readouterr().err)
    assert ask(model, QUESTIONS, top=5) == answers  # type: ignore[arg-type]


@settings(max_examples=25)
@given(deaths=st.lists(st.integers(0, 6), max_size=4))
def test_a_run_interrupted_anywhere_asks_nothing_twice_and_ends_the_same(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    undisturbed = Arithmetic()
    expected = run(undisturbed, tmp_path_factory.mktemp("undisturbed"))
    models = [Arithmetic(death) for death in [*deaths, None]]
    for model in models:
        try:
            answers = run(model, folder)
        except KeyboardInterrupt:
            assert model is not models[-1]
    assert answers == expected
    asked = [batch for model in models for batch in model.batches]
    assert sorted(asked) == sorted(undisturbed.batches)


def test_another_batch_size_resumes_too(tmp_path: Path) -> None:
    first, second = Arithmetic(fails_at=2), Arithmetic()
    with pytest.raises(KeyboardInterrupt):
        run(first, tmp_path, batch_size=3)
    run(second, tmp_path, batch_size=5)
    assert set((first.asked + second.asked).values()) == {1}
    assert len(first.asked) == 6


def test_a_context_that_cannot_be_answered_ends_the_run_and_keeps_the_rest(tmp_path: Path) -> None:
    first = Arithmetic(fails_at=3, error=BadInput("NaN in the logits"))
    with pytest.raises(BadInput, match="NaN in the logits"):
        run(first, tmp_path)
    assert len(Journal(tmp_path).read()) == sum(first.asked.values()) == 12


class Several(Processes):
    """One of several processes, without the others: it takes what the first one shared."""

    def __init__(self, rank: int, count: int, shared: list[Any], *, together: bool = False) -> None:
        super().__init__(alone=True, together=together)
        self.rank, self.count, self._shared = rank, count, shared
        self._next = iter([*shared])

    def share(self, value: Any) -> Any:
        if self.first:
            self._shared.append(value)
        return value if self.first else next(self._next)

    def gather(self, value: Any) -> list[Any]:
        return [value]


@pytest.mark.parametrize("together", [False, True])
def test_several_processes_ask_each_batch_once_or_all_of_them_each(
    tmp_path: Path, together: bool
) -> None:
    """With tensor parallelism only the first process keeps a journal; all ask the same batches."""
    with pytest.raises(KeyboardInterrupt):
        run(Arithmetic(fails_at=1), tmp_path)
    saved, shared = Journal(tmp_path).read(), list[Any]()
    models = [Arithmetic() for _ in range(3)]
    for rank, model in enumerate(models):
        processes = Several(rank, 3, shared, together=together)
        journal = None if rank and together else Journal(tmp_path / str(rank))
        if not rank:
            journal = Journal(tmp_path)
        with suppress(KeyError):  # the first process lacks the answers of the others
            ask(model, QUESTIONS, top=5, processes=processes, journal=journal)  # type: ignore[arg-type]
    left = {q.query.context for q in QUESTIONS} - {*saved}
    asked = sum((model.asked for model in models), Counter[str]())
    assert asked == Counter(dict.fromkeys(left, 3 if together else 1))


@given(st.lists(st.text("abcdef", max_size=2), max_size=20), st.sets(st.sampled_from("abcdef")))
def test_each_question_that_is_not_answered_is_in_one_batch(
    keys: list[str], known: set[str]
) -> None:
    """Questions with equal keys are one question."""
    batches = [[*range(start, min(start + 3, len(keys)))] for start in range(0, len(keys), 3)]
    rest = unanswered(batches, keys, known)
    assert all(rest)
    assert sorted(keys[n] for batch in rest for n in batch) == sorted({*keys} - known)
