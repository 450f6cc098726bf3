"""Asking a model all questions: batches, processes, resume.

The batches are a function of the questions and the batch size alone. Answers that an earlier,
interrupted run saved are taken from its journal; since batches are saved whole, those still to be
asked are the very batches of an undisturbed run, whatever the number of processes, and the numbers
are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from lmdiag.schema import Answer, Question

if TYPE_CHECKING:
    from lmdiag.journal import Journal
    from lmdiag.models import Model
    from lmdiag.processes import Processes


class Bar(Protocol):
    """Shows how far a run is."""

    def update(self, done_total: int) -> None:
        """Says that so many questions are answered, by earlier runs and all processes."""


OpenProgress = Callable[[int, int], AbstractContextManager[Bar]]
"""Given the number of questions and how many of them are answered already, opens a bar."""


def ask(
    model: Model,
    questions: Sequence[Question],
    *,
    top: int,
    batch_size: int | None,
    journal: Journal,
    processes: Processes,
    progress: OpenProgress,
) -> list[Answer]:
    """Returns the answers to all questions, in their order, on every process.

    Args:
        model: the model to ask.
        questions: the distinct questions, the same on every process.
        top: length of the top-k lists.
        batch_size: questions in a batch; None for what suits the device.
        journal: where finished batches are saved and earlier ones are found.
        processes: those that share the work.
        progress: opens the bar.

    Raises:
        BadInput: on every process, where the model cannot answer on one of them (a context that is
            too long, NaN in its logits); what was answered before is saved.
    """
    saved = journal.read()
    found = processes.gather(set(saved))
    known: set[int] = set().union(*found)
    mine = {number: saved[number] for number in saved.keys() - found[0]}
    with processes.shared_errors():
        encoded = [model.encode(question) for question in questions]
    plan = processes.share(model.plan(encoded, batch_size) if processes.first else None)
    batches = open_batches(plan, known)
    queue = processes.queue(len(batches))
    with progress(len(questions), len(known)) as bar:
        try:
            with processes.shared_errors(), queue.stopped_by_error():
                for number in queue:
                    batch = batches[number]
                    answers = model.answer([encoded[index] for index in batch], top)
                    finished = dict(zip(batch, answers, strict=True))
                    journal.append(finished)
                    mine.update(finished)
                    bar.update(len(known) + queue.done(len(finished)))
        finally:
            bar.update(len(known) + queue.done(0))  # with what others did after our last batch
    for part in processes.gather(mine):
        saved.update(part)
    return [saved[number] for number in range(len(questions))]


def open_batches(batches: Sequence[Sequence[int]], known: set[int]) -> list[list[int]]:
    """Returns the batches without the questions that are answered already, empty ones left out."""
    rest = ([number for number in batch if number not in known] for batch in batches)
    return [batch for batch in rest if batch]
