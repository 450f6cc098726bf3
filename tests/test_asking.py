"""Each batch is asked once, by any process, however often the run is interrupted.

The model here is arithmetic: its answer depends only on the question, and it records what it is
asked. Real models on real processes are in `tests/test_processes.py`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed import HashStore

from lmdiag.runs.asking import ask, unanswered
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes, Queue
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
    shown = r"org/model: 23 contexts\norg/model: asked 23 contexts in 0:\d\d, .* contexts/s\n"
    assert re.fullmatch(shown, capsys.readouterr().err)
    assert ask(model, QUESTIONS, top=5) == answers  # type: ignore[arg-type]


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


def test_a_process_without_a_journal_resumes_with_the_first(tmp_path: Path) -> None:
    """With tensor parallelism only the first process keeps a journal; all ask the same batches."""
    with pytest.raises(KeyboardInterrupt):
        run(Arithmetic(fails_at=2), tmp_path)
    saved = Journal(tmp_path).read()
    shared = iter([set(saved), Arithmetic().plan(QUESTIONS, None)])

    class Second(Processes):
        def share(self, value: Any) -> Any:
            return next(shared)

    second, model = Second(alone=True, together=True), Arithmetic()
    second.rank = 1
    assert ask(model, QUESTIONS, top=5, processes=second) == []  # type: ignore[arg-type]
    assert len(model.asked) == len(QUESTIONS) - len(saved)


@given(st.lists(st.text("abcdef", max_size=2), max_size=20), st.sets(st.sampled_from("abcdef")))
def test_each_question_that_is_not_answered_is_in_one_batch(
    keys: list[str], known: set[str]
) -> None:
    """Questions with equal keys are one question."""
    batches = [[*range(start, min(start + 3, len(keys)))] for start in range(0, len(keys), 3)]
    rest = unanswered(batches, keys, known)
    assert all(rest)
    assert sorted(keys[n] for batch in rest for n in batch) == sorted({*keys} - known)


@given(length=st.integers(0, 30), takers=st.integers(1, 4), data=st.data())
def test_a_queue_hands_each_number_to_exactly_one_process(
    length: int, takers: int, data: st.DataObject
) -> None:
    store = HashStore()
    queues = [iter(Queue(store, "1", length)) for _ in range(takers)]
    taken = []
    while queues:
        queue = data.draw(st.sampled_from(queues))
        if (number := next(queue, None)) is None:
            queues.remove(queue)
        else:
            taken.append(number)
    assert taken == list(range(length))


def test_a_queue_ends_on_all_processes_where_bad_input_ends_one() -> None:
    store = HashStore()
    mine, other = Queue(store, "1", 9), Queue(store, "1", 9)
    numbers = iter(mine)
    assert next(numbers) == 0
    with pytest.raises(BadInput), other:
        raise BadInput("NaN")
    assert list(numbers) == []
    assert Queue(store, "2", 2).done(3) == 3
