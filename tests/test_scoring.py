"""Batches are asked once each, whoever asks them and however often the run is interrupted.

The model here is arithmetic: its answer is a function of the question alone, and it counts what it
is asked. Real models under real processes are in `tests/test_processes.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.runs.asking import ask
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import LocalStore, Processes, Queue
from lmdiag.schema import Answer, BadInput, Query, Question, WordScore


class Arithmetic:
    """A model whose log-probabilities are made of lengths; `dies_at` ends it before a batch."""

    def __init__(self, dies_at: int | None = None, error: BaseException | None = None) -> None:
        self.asked: Counter[str] = Counter()
        self.batches: list[list[str]] = []
        self._dies_at, self._error = dies_at, error

    def encode(self, question: Question) -> Question:
        return question

    def plan(self, encoded: Sequence[Question], batch_size: int | None) -> list[list[int]]:
        size = batch_size or 4
        order = sorted(range(len(encoded)), key=lambda n: -len(encoded[n].query.context))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def answer(self, batch: Sequence[Question], top: int) -> list[Answer]:
        if self._dies_at == len(self.batches):
            raise self._error or KeyboardInterrupt
        self.batches.append([question.query.context for question in batch])
        self.asked.update(self.batches[-1])
        return [self._one(question, top) for question in batch]

    def _one(self, question: Question, top: int) -> Answer:
        words = {w: WordScore(-math.sqrt(len(w) + 1), 1, 1) for w in question.words}
        tops = tuple(f"{question.query.context}{number}" for number in range(top))
        return Answer(words, tops, tuple(-float(number) for number in range(top)))


def questions(count: int) -> list[Question]:
    return [Question(Query("x" * (number % 7) + str(number)), ("bird",)) for number in range(count)]


@contextmanager
def bar(total: int, done: int) -> Iterator[Any]:
    updates: list[int] = [done]
    yield SimpleNamespace(update=updates.append)
    assert updates == sorted(updates)
    assert updates[-1] <= total


def run(model: Arithmetic, wanted: list[Question], folder: Path, **more: Any) -> list[Answer]:
    with Journal(folder) as journal:
        return ask(
            model,  # type: ignore[arg-type]
            wanted,
            top=5,
            batch_size=more.get("batch_size"),
            journal=journal,
            processes=more.get("processes") or Processes(),
            progress=bar,  # type: ignore[arg-type]
        )


def test_answers_come_in_the_order_of_the_questions(tmp_path: Path) -> None:
    model, wanted = Arithmetic(), questions(23)
    answers = run(model, wanted, tmp_path)
    assert [a.top_words[0] for a in answers] == [f"{q.query.context}0" for q in wanted]
    assert set(model.asked.values()) == {1}


@given(deaths=st.lists(st.integers(0, 6), max_size=4))
def test_a_run_interrupted_anywhere_asks_nothing_twice_and_ends_the_same(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[int]
) -> None:
    folder, wanted = tmp_path_factory.mktemp("run"), questions(23)
    undisturbed = Arithmetic()
    expected = run(undisturbed, wanted, tmp_path_factory.mktemp("undisturbed"))
    asked: Counter[str] = Counter()
    batches = []
    for death in [*deaths, None]:
        model = Arithmetic(dies_at=death)
        try:
            answers = run(model, wanted, folder)
        except KeyboardInterrupt:
            assert death is not None
        asked += model.asked
        batches += model.batches
    assert answers == expected
    assert set(asked.values()) == {1}
    assert sorted(batches) == sorted(undisturbed.batches)


def test_another_batch_size_resumes_too(tmp_path: Path) -> None:
    wanted = questions(23)
    first = Arithmetic(dies_at=2)
    with pytest.raises(KeyboardInterrupt):
        run(first, wanted, tmp_path, batch_size=3)
    second = Arithmetic()
    run(second, wanted, tmp_path, batch_size=5)
    assert set((first.asked + second.asked).values()) == {1}
    assert len(first.asked) == 6


def test_a_context_that_the_model_cannot_answer_ends_the_run_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    wanted = questions(23)
    first = Arithmetic(dies_at=3, error=BadInput("NaN in the logits"))
    with pytest.raises(BadInput, match="NaN in the logits"):
        run(first, wanted, tmp_path)
    assert len(Journal(tmp_path).read()) == sum(first.asked.values()) == 12


@given(st.lists(st.integers(0, 9), max_size=9), st.sets(st.integers(0, 30)))
def test_open_batches_are_the_rest_of_all_batches(sizes: list[int], known: set[int]) -> None:
    numbers = iter(range(sum(sizes)))
    batches = [[next(numbers) for _ in range(size)] for size in sizes]
    rest = open_batches(batches, known)
    assert all(rest)
    assert sorted(n for batch in rest for n in batch) == sorted(set(range(sum(sizes))) - known)


@given(length=st.integers(0, 30), takers=st.integers(1, 4), data=st.data())
def test_a_queue_hands_each_number_to_exactly_one_process(
    length: int, takers: int, data: st.DataObject
) -> None:
    store = LocalStore()
    open_queues = [iter(Queue(store, "1", length)) for _ in range(takers)]
    taken = []
    while open_queues:
        queue = data.draw(st.sampled_from(open_queues))
        number = next(queue, None)
        if number is None:
            open_queues.remove(queue)
        else:
            taken.append(number)
    assert taken == list(range(length))


def test_a_stopped_queue_hands_out_nothing_more() -> None:
    store = LocalStore()
    mine, other = Queue(store, "1", 9), Queue(store, "1", 9)
    numbers = iter(mine)
    assert next(numbers) == 0
    other.stop()
    assert list(numbers) == []
    assert Queue(store, "2", 2).done(3) == 3
