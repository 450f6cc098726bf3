"""Asks a model all questions: in batches, on several processes, resuming an interrupted run.

The batches depend only on the questions and the batch size. The journal of an interrupted run
holds whole batches, so the batches that remain are those of an undisturbed run, for any number of
processes, and the answers are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import Predictions
from lmdiag.questions import Setting, collect_parts, key_of, spread
from lmdiag.runs.processes import Processes
from lmdiag.runs.progress import show_progress
from lmdiag.types import Question, Sentence

if TYPE_CHECKING:
    from lmdiag.models import Model
    from lmdiag.runs.journal import Journal


def predict(
    model: Model,
    settings: Sequence[Setting],
    *,
    top: int,
    batch_size: int | None = None,
    journal: Journal | None = None,
    processes: Processes | None = None,
    label: str | None = None,
) -> tuple[list[Predictions], int]:
    """Asks each distinct question of all settings once.

    Args:
        model, top, batch_size, journal, processes, label: see `ask`.
        settings: the rows in every setting.

    Returns:
        the predictions of each setting and the number of distinct contexts; ([], 0) on all
        processes but the first.
    """
    kind, cased = model.info.kind, model.info.cased
    parts = collect_parts(settings, kind=kind, cased=cased)
    questions = [*chain.from_iterable(parts)]
    answers = ask(
        model, questions, [*map(len, parts)], top=top, batch_size=batch_size, journal=journal,
        processes=processes, label=label,
    )  # fmt: skip
    if processes is not None and not processes.first:
        return [], 0
    by_key = {key_of(q): answer for q, answer in zip(questions, answers, strict=True)}
    n_contexts = len({q if isinstance(q, Sentence) else q.query for q in questions})
    predictions = [spread(setting, by_key, kind=kind, cased=cased) for setting in settings]
    return predictions, n_contexts


def ask(
    model: Model,
    questions: Sequence[Question | Sentence],
    sizes: Sequence[int] | None = None,
    *,
    top: int,
    batch_size: int | None = None,
    journal: Journal | None = None,
    processes: Processes | None = None,
    label: str | None = None,
) -> list[Any]:
    """Returns the answers to all questions, in their order; [] on all processes but the first.

    Args:
        model: the model to ask.
        questions: distinct questions, the same on every process: all about blanks, which gives an
            `Answer` each, or all about sentences, which gives a `SentenceAnswer` each.
        sizes: number of questions of each part (see `plan_parts`); None for one part.
        top: length of the lists of top words.
        batch_size: questions in a batch; None for what suits the device.
        journal: saves finished batches, and has answers of earlier runs; None to keep nothing.
        processes: the processes that share the work; None for this one alone.
        label: name of the model in the progress bar; None for no bar.

    Raises:
        BadInput: the model cannot answer (a context is too long, NaN in its logits); raised on
            every process, after the batches before it were saved.
    """
    processes = processes or Processes(alone=True)
    with processes.shared_errors():
        encoded = [model.encode(question) for question in questions]
    keys = [model.key(question, top) for question in encoded]
    answers: dict[str, Any] = journal.read() if journal else {}
    known = processes.share({*answers} & {*keys} if processes.first else None)
    sizes = [len(encoded)] if sizes is None else sizes
    plan = plan_parts(model, encoded, sizes, batch_size) if processes.first else None
    batches = unanswered(processes.share(plan), keys, known)
    n_known = len(questions) - sum(map(len, batches))
    unit = "sentences" if questions and isinstance(questions[0], Sentence) else "contexts"
    with show_progress(len(questions), n_known, label, unit=unit) as show:
        mine = _answer_batches(
            partial(model.answer, top=top),
            [[(keys[number], encoded[number]) for number in batch] for batch in batches],
            processes,
            journal,
            lambda done: show(n_known + done),
        )
    for part in processes.gather(mine):
        answers |= part
    return [answers[key] for key in keys] if processes.first else []


def plan_parts(
    model: Model, encoded: Sequence[Any], sizes: Sequence[int], batch_size: int | None
) -> list[list[int]]:
    """Returns the numbers of the questions of each batch; no batch has questions of two parts.

    The last bits of an answer depend on the other questions of its batch. Runs that have a part in
    common have its batches and answers in common, whatever else they ask.

    Args:
        model, batch_size: see `Model.plan`.
        encoded: the questions of all parts.
        sizes: number of questions of each part, in order.
    """
    batches: list[list[int]] = []
    start = 0
    for size in sizes:
        part = model.plan(encoded[start : start + size], batch_size)
        batches += [[start + number for number in batch] for batch in part]
        start += size
    return batches


def _answer_batches(
    answer: Callable[[Sequence[Any]], Sequence[Any]],
    batches: Sequence[Sequence[tuple[str, Any]]],
    processes: Processes,
    journal: Journal | None,
    show: Callable[[int], None],
) -> dict[str, Any]:
    """Answers batches until none is left; returns what this process answered.

    Args:
        answer: see `Model.answer`.
        batches: keys of the questions of each, and the encoded questions.
        processes, journal: see `ask`.
        show: takes the number of questions that all processes have answered.
    """
    mine: dict[str, Any] = {}
    queue = processes.queue(len(batches))
    try:
        with processes.shared_errors(), queue:
            for place in queue:
                keys, encoded = zip(*batches[place], strict=True)
                finished = dict(zip(keys, answer(encoded), strict=True))
                if journal:
                    journal.append(finished)
                mine |= finished
                show(queue.done(len(finished)))
    finally:
        show(queue.done(0))  # includes what others did after our last batch
    return mine


def unanswered(
    batches: Sequence[Sequence[int]], keys: Sequence[str], known: set[str]
) -> list[list[int]]:
    """Returns the batches without questions that are answered, or equal to an earlier question.

    Args:
        batches: numbers of the questions of each batch.
        keys: of all questions, see `Model.key`.
        known: keys of the questions that are answered.
    """
    seen, rest = set(known), []
    for batch in batches:
        new = {keys[number]: number for number in reversed(batch) if keys[number] not in seen}
        seen |= new.keys()
        if new:
            rest.append([*reversed(new.values())])
    return rest
